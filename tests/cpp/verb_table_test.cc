// The table of verbs, tests/behaviours/verbs.tsv, with every verb that makes a value or a future of another.
// rust/purlin/tests/verbs.rs runs the same rows in Rust.
#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "purlin/async_value.h"
#include "purlin/async_value_verbs.h"
#include "purlin/executor.h"
#include "purlin/future.h"
#include "purlin/inline_executor.h"
#include "purlin/promise.h"
#include "table.h"

namespace purlin {
namespace {

constexpr char kPayload[] = "purlin.test/party";

/// What becomes of the source, or what the function answers: OK, an error, or nothing, because a promise is dropped.
using Outcome = std::optional<StatusCode>;

struct Row {
  std::string name;
  std::string kind;
  Outcome source;
  std::string when;
  std::string executor;
  bool is_called;
  Outcome function;
  StatusCode code;
  std::string message;
  std::string from;
};

Outcome OutcomeOf(const std::string& text) {
  if (text == "drop" || text == "-") return std::nullopt;
  return text == "ok" ? StatusCode::kOk : CodeOf(text);
}

std::vector<Row> Rows() {
  std::vector<Row> rows;
  for (const std::vector<std::string>& cells : ReadTable(PURLIN_VERBS_TABLE, 9)) {
    rows.push_back({cells.at(0), cells.at(1), OutcomeOf(cells.at(2)), cells.at(3), cells.at(4), cells.at(5) != "-",
                    OutcomeOf(cells.at(5)), CodeOf(cells.at(6)), cells.at(7), cells.at(8)});
  }
  EXPECT_GE(rows.size(), 10U);
  return rows;
}

/// The error of `party`, with a payload and a place of its own.
Status ErrorOf(const std::string& party, StatusCode code) {
  Status error(code, party, SourceLocation("party", 7));
  error.SetPayload(kPayload, party);
  return error;
}

/// Refuses every task.
class Full final : public Executor {
 public:
  Status Execute(Task) override { return ResourceExhaustedError("full"); }
};

/// Where the function runs, unless the row says "none".
Executor& ExecutorOf(const Row& row) {
  static InlineExecutor runs;
  static Full full;
  return row.executor == "runs" ? static_cast<Executor&>(runs) : full;
}

/// The function of one run of a row, which counts its calls.
class Function {
 public:
  explicit Function(const Row& row) : answer_(row.is_called ? row.function : Outcome(StatusCode::kOk)) {}

  /// Of verbs whose function cannot fail.
  int Value(int value) const {
    ++calls_;
    return value + 1;
  }
  /// Of those whose function may.
  StatusOr<int> Result(int value) const {
    ++calls_;
    if (*answer_ == StatusCode::kOk) return value + 1;
    return ErrorOf("function", *answer_);
  }
  /// Of those whose function answers with a future.
  Future<int> InFuture(int value) const {
    if (!answer_) {
      ++calls_;
      return MakePromise<int>("function").second;
    }
    return Future<int>(Result(value));
  }
  /// Of those whose function answers with a value.
  AsyncValueRef<int> InValue(int value) const {
    StatusOr<int> result = Result(value);
    if (!result.ok()) return AsyncValueRef<int>(result.status());
    return MakeAvailableAsyncValueRef<int>(*result);
  }
  std::size_t calls() const { return calls_; }

 private:
  Outcome answer_;
  mutable std::size_t calls_ = 0;
};

template <typename Made>
void Check(const Row& row, const std::string& verb, const Made& made) {
  SCOPED_TRACE(row.name + ": " + verb);
  const Event event = made.AsEvent();
  ASSERT_TRUE(event.IsReady());
  const Status status = event.error();
  EXPECT_EQ(status.code(), row.code) << status;
  CheckMessage(status, row.message);
  if (row.from == "-") return;
  EXPECT_EQ(status.GetPayload(kPayload), std::optional(row.from)) << status;
  EXPECT_STREQ(status.location().file(), "party");
  EXPECT_EQ(status.location().line(), 7U);
}

/// Makes a source, calls every verb that the row holds for, on a pending source and on a complete one as the row says,
/// and checks what has become of all of them, and how often the function was called.
template <typename MakeSource, typename CallVerbs>
void CheckRow(const Row& row, const MakeSource& make, const CallVerbs& call_verbs) {
  for (const std::string_view when : {"before", "after"}) {
    if (row.when != "any" && row.when != when) continue;
    SCOPED_TRACE(when);
    const Function function(row);
    auto [source, complete] = make(row);
    if (when == "before") complete();
    auto made = call_verbs(row, source, function);
    if (when == "after") complete();
    for (const auto& [verb, result] : made) Check(row, verb, result);
    const bool is_called = row.is_called && row.executor != "refuses";
    EXPECT_EQ(function.calls(), is_called ? made.size() : 0U) << row.name;
  }
}

template <typename Result>
using Made = std::vector<std::pair<std::string, Result>>;

TEST(VerbTableTest, OfValues) {
  for (const Row& row : Rows()) {
    // A value has no promise that could be dropped.
    if (!row.source || (row.is_called && !row.function)) continue;
    CheckRow(
        row,
        [](const Row& of) {
          auto source = MakeUnconstructedAsyncValueRef<int>("source");
          const StatusCode code = *of.source;
          return std::pair(source, [source, code] {
            if (code == StatusCode::kOk) {
              source.emplace(41);
            } else {
              source.SetError(ErrorOf("source", code));
            }
          });
        },
        [](const Row& row, const AsyncValueRef<int>& source, const Function& function) {
          Executor& executor = ExecutorOf(row);
          Made<AsyncValueRef<int>> made;
          const bool here = row.executor == "none";
          if (row.kind == "all") {
            const auto call = [&](int value) { return function.Value(value); };
            made.emplace_back("Map", here ? source.Map(call) : source.Map(executor, call));
          }
          if (row.kind != "flat") {
            const auto call = [&](int value) { return function.Result(value); };
            made.emplace_back("TryMap", here ? source.TryMap(call) : source.TryMap(executor, call));
          }
          const auto call = [&](int value) { return function.InValue(value); };
          made.emplace_back("FlatMap", here ? source.FlatMap(call) : source.FlatMap(executor, call));
          return made;
        });
  }
}

TEST(VerbTableTest, OfFutures) {
  for (const Row& row : Rows()) {
    CheckRow(
        row,
        [](const Row& of) {
          auto [promise, future] = MakePromise<int>("source");
          const Outcome outcome = of.source;
          return std::pair(std::move(future), [outcome, promise = std::move(promise)]() mutable {
            Promise<int> taken = std::move(promise);
            if (!outcome) return;
            if (*outcome == StatusCode::kOk) {
              taken.Set(41);
            } else {
              taken.Set(ErrorOf("source", *outcome));
            }
          });
        },
        [](const Row& row, const Future<int>& source, const Function& function) {
          Executor& executor = ExecutorOf(row);
          Made<Future<int>> made;
          const bool here = row.executor == "none";
          const auto map = [&](auto call) { return here ? source.Map(call) : source.Map(executor, call); };
          if (row.kind == "all") {
            const auto call = [&](int value) { return function.Value(value); };
            made.emplace_back("Map to a value", map(call));
            made.emplace_back("MapAlways", here ? source.MapAlways(call) : source.MapAlways(executor, call));
          }
          if (row.kind != "flat") {
            made.emplace_back("Map to a result", map([&](int value) { return function.Result(value); }));
          }
          made.emplace_back("Map to a future", map([&](int value) { return function.InFuture(value); }));
          return made;
        });
  }
}

}  // namespace
}  // namespace purlin

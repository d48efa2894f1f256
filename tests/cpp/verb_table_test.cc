// The table of verbs, tests/behaviours/verbs.tsv, with every verb of values and futures, from every kind of source.
// rust/purlin/tests/verbs.rs runs the same rows in Rust.
#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <memory>
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
  bool has_source;
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
    rows.push_back({cells.at(0), cells.at(1), cells.at(2) != "-", OutcomeOf(cells.at(2)), cells.at(3), cells.at(4),
                    cells.at(5) != "-", OutcomeOf(cells.at(5)), CodeOf(cells.at(6)), cells.at(7), cells.at(8)});
  }
  EXPECT_GE(rows.size(), 30U);
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
  /// Of observers: what they make of what they are given.
  StatusOr<int> Seen(StatusOr<int> given) const {
    ++calls_;
    if (given.ok()) return *given + 1;
    return given;
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

/// The value that is 42 where all is well, of a value or future that is complete.
int ValueOf(const AsyncValueRef<int>& made) { return made.get(); }
int ValueOf(const Future<int>& made) { return *made.Await(); }
int ValueOf(const Future<>&) { return 42; }

template <typename Made>
void Check(const Row& row, const std::string& verb, const Made& made) {
  SCOPED_TRACE(row.name + ": " + verb);
  const Event event = made.AsEvent();
  ASSERT_TRUE(event.IsReady());
  const Status status = event.error();
  EXPECT_EQ(status.code(), row.code) << status;
  CheckMessage(status, row.message);
  if (status.ok()) {
    EXPECT_EQ(ValueOf(made), verb == "Detach" ? 41 : 42);
  }
  if (row.from == "-") return;
  EXPECT_EQ(status.GetPayload(kPayload), std::optional(row.from)) << status;
  EXPECT_STREQ(status.location().file(), "party");
  EXPECT_EQ(status.location().line(), 7U);
}

/// A source of some kind, and what completes it.
template <typename Value>
struct Source {
  std::string kind;
  Value value;
  std::function<void()> complete;
};

/// What a verb has made, by its name.
template <typename Result>
using Made = std::vector<std::pair<std::string, Result>>;

/// Calls the verbs on each kind of source, pending or complete as the row says, and checks what has become of all of
/// them, and how often the function was called.
template <typename MakeSources, typename CallVerbs>
void CheckRow(const Row& row, const MakeSources& make, const CallVerbs& call_verbs) {
  for (const std::string& when : {std::string("before"), std::string("after")}) {
    if (row.when != "any" && row.when != when) continue;
    SCOPED_TRACE(when);
    for (const auto& source : make(row.source, when)) {
      SCOPED_TRACE(source.kind);
      const Function function(row);
      if (when == "before") source.complete();
      std::size_t verbs = 0;
      std::vector<std::function<void()>> checks;
      call_verbs(row, source.value, function, [&](const std::string& verb, auto made) {
        checks.push_back([&row, verb, made = std::move(made)] { Check(row, verb, made); });
        ++verbs;
      });
      if (when == "after") source.complete();
      for (const std::function<void()>& check : checks) check();
      const bool is_called = row.is_called && row.executor != "refuses";
      EXPECT_EQ(function.calls(), is_called ? verbs : 0U) << row.name;
    }
  }
}

/// Every kind of value that comes to be so or, "before", is so from the beginning.
std::vector<Source<AsyncValueRef<int>>> Values(Outcome outcome, const std::string& when) {
  using Value = AsyncValueRef<int>;
  const StatusCode code = *outcome;
  const bool is_ok = code == StatusCode::kOk;
  const auto fail_or = [is_ok, code](const Value& value, bool (*succeed)(const Value&)) {
    return [=] { EXPECT_TRUE(is_ok ? succeed(value) : value.SetError(ErrorOf("source", code))); };
  };
  const auto set = [fail_or](const Value& value) {
    return fail_or(value, [](const Value& pending) { return pending.emplace(41); });
  };
  const auto publish = [fail_or](const Value& value) {
    return fail_or(value, [](const Value& pending) { return pending.SetStateConcrete(); });
  };
  const Value unconstructed = MakeUnconstructedAsyncValueRef<int>("source");
  const Value constructed = MakeConstructedAsyncValueRef<int>(Named("source"), 41);
  const Value indirect = MakeIndirectAsyncValueRef<int>("source");
  const Value inner = MakeUnconstructedAsyncValueRef<int>("source");
  const Value forwarded = MakeIndirectAsyncValueRef<int>("forwarded");
  EXPECT_TRUE(forwarded.ForwardTo(inner));
  std::vector<Source<Value>> values = {
      {"unconstructed", unconstructed, set(unconstructed)},
      {"constructed", constructed, publish(constructed)},
      {"indirect", indirect, set(indirect)},
      {"forwarded", forwarded, set(inner)},
  };
  if (when == "before") {
    values.push_back({"complete from the beginning",
                      is_ok ? MakeAvailableAsyncValueRef<int>(41) : Value(ErrorOf("source", code)), [] {}});
    if (is_ok) values.push_back({"shared", MakeAsyncValueRefFromSharedPtr(std::make_shared<int>(41)), [] {}});
  }
  return values;
}

/// A number whose value keeps it beside an error.
struct Kept : KeepOnError {
  explicit Kept(int number) : number(number) {}
  operator int() const { return number; }  // NOLINT(google-explicit-constructor): the functions take numbers.
  int number;
};

/// The kind of value that keeps its payload.
std::vector<Source<AsyncValueRef<Kept>>> KeptValues(Outcome outcome, const std::string&) {
  const AsyncValueRef<Kept> kept = MakeConstructedAsyncValueRef<Kept>(Named("source"), 41);
  const StatusCode code = *outcome;
  return {{"kept on error", kept, [kept, code] {
             const bool is_ok = code == StatusCode::kOk;
             EXPECT_TRUE(is_ok ? kept.SetStateConcrete() : kept.SetError(ErrorOf("source", code)));
           }}};
}

/// Futures of promises, and of every kind of value.
std::vector<Source<Future<int>>> Futures(Outcome outcome, const std::string& when) {
  const auto end = [outcome](auto promise) {
    // Copyable, as std::function wants it.
    auto kept = std::make_shared<decltype(promise)>(std::move(promise));
    return [outcome, kept] {
      auto taken = std::move(*kept);
      if (!outcome) return;
      EXPECT_TRUE(taken.Set(*outcome == StatusCode::kOk ? StatusOr<int>(41) : ErrorOf("source", *outcome)));
    };
  };
  auto [promise, future] = MakePromise<int>("source");
  auto [shared, of_shared] = MakeSharedPromise<int>("source");
  std::vector<Source<Future<int>>> futures = {{"a promise", future, end(std::move(promise))},
                                              {"a shared promise", of_shared, end(std::move(shared))}};
  if (!outcome) return futures;
  for (const Source<AsyncValueRef<int>>& value : Values(outcome, when)) {
    futures.push_back({value.kind, Future<int>(value.value), value.complete});
  }
  return futures;
}

/// What an observer was given, which `attach` attaches.
template <typename Attach>
Future<int> Observed(const Function& function, const Attach& attach) {
  auto [promise, future] = MakePromise<int>("observer");
  attach([&function, promise = std::move(promise)](StatusOr<int> given) mutable {
    promise.Set(function.Seen(std::move(given)));
  });
  return future;
}

TEST(VerbTableTest, OfValues) {
  for (const Row& row : Rows()) {
    // A value has no promise that could be dropped.
    if (!row.source || (row.is_called && !row.function)) continue;
    const auto call_verbs = [](const Row& row, const auto& source, const Function& function, const auto& made) {
      Executor& executor = ExecutorOf(row);
      const bool here = row.executor == "none";
      if (row.kind == "observe") {
        made("AndThen", Observed(function, [&](auto observer) {
               auto call = [observer = std::move(observer)](auto given) mutable {
                 observer(given.ok() ? StatusOr<int>(static_cast<int>(**given)) : StatusOr<int>(given.status()));
               };
               here ? source.AndThen(std::move(call)) : source.AndThen(executor, std::move(call));
             }));
      }
      if (row.kind == "all") {
        const auto call = [&](int value) { return function.Value(value); };
        made("Map", here ? source.Map(call) : source.Map(executor, call));
      }
      if (row.kind == "all" || row.kind == "fallible") {
        const auto call = [&](int value) { return function.Result(value); };
        made("TryMap", here ? source.TryMap(call) : source.TryMap(executor, call));
      }
      if (row.kind == "all" || row.kind == "fallible" || row.kind == "flat") {
        const auto call = [&](int value) { return function.InValue(value); };
        made("FlatMap", here ? source.FlatMap(call) : source.FlatMap(executor, call));
      }
    };
    CheckRow(row, Values, call_verbs);
    CheckRow(row, KeptValues, call_verbs);
  }
}

TEST(VerbTableTest, OfFutures) {
  for (const Row& row : Rows()) {
    if (!row.has_source) continue;
    CheckRow(row, Futures, [](const Row& row, const Future<int>& source, const Function& function, const auto& made) {
      Executor& executor = ExecutorOf(row);
      const bool here = row.executor == "none";
      if (row.kind == "pass") {
        made("MapTo", source.MapTo(42));
        auto [promise, nested] = MakePromise<Future<int>>("nested");
        source.OnReady([promise = std::move(promise)](StatusOr<int> given) mutable {
          using Nested = StatusOr<Future<int>>;
          EXPECT_TRUE(promise.Set(given.ok() ? Nested(Future<int>(*given + 1)) : Nested(given.status())));
        });
        made("Flatten", nested.Flatten());
        made("GetReadyFuture", source.GetReadyFuture());
        return;
      }
      if (row.kind == "detach") return made("Detach", source.Detach(executor));
      if (row.kind == "observe") {
        return made("OnReady", Observed(function, [&](auto observer) {
                      here ? source.OnReady(std::move(observer)) : source.OnReady(executor, std::move(observer));
                    }));
      }
      const auto map = [&](auto call) { return here ? source.Map(call) : source.Map(executor, call); };
      if (row.kind == "all") {
        const auto call = [&](int value) { return function.Value(value); };
        made("Map to a value", map(call));
        made("MapAlways", here ? source.MapAlways(call) : source.MapAlways(executor, call));
      }
      if (row.kind != "flat") {
        made("Map to a result", map([&](int value) { return function.Result(value); }));
      }
      made("Map to a future", map([&](int value) { return function.InFuture(value); }));
    });
  }
}

TEST(VerbTableTest, OfTasks) {
  std::size_t shown = 0;
  for (const Row& row : Rows()) {
    if (row.kind != "make") continue;
    const Function function(row);
    Executor& executor = ExecutorOf(row);
    Check(row, "MakeFutureOn", MakeFutureOn(executor, [&] { return function.Result(41); }));
    Check(row, "TryMakeAsyncValueRef", TryMakeAsyncValueRef(executor, [&] { return function.Result(41); }));
    EXPECT_EQ(function.calls(), row.is_called ? 2U : 0U) << row.name;
    ++shown;
  }
  EXPECT_GE(shown, 3U);
}

}  // namespace
}  // namespace purlin

// The table of joins, tests/behaviours/joins.tsv, with every verb that joins. rust/purlin/tests/joins.rs runs the same
// rows in Rust.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "purlin/count_down.h"
#include "purlin/join_events.h"
#include "purlin/join_futures.h"
#include "purlin/run_when_ready.h"
#include "purlin/stream_event_map.h"
#include "table.h"

namespace purlin {
namespace {

constexpr char kPayload[] = "purlin.test/member";
constexpr std::array<std::pair<const char*, ErrorPolicy>, 4> kPolicies{{{"FirstByIndex", ErrorPolicy::kFirstByIndex},
                                                                        {"FirstInTime", ErrorPolicy::kFirstInTime},
                                                                        {"LastInTime", ErrorPolicy::kLastInTime},
                                                                        {"All", ErrorPolicy::kAll}}};

/// What becomes of a member: OK, an error, or nothing, because its promise is dropped.
struct Step {
  std::size_t index;
  std::optional<StatusCode> code;
};

struct Row {
  std::string name;
  std::size_t members;
  std::vector<Step> before;
  std::vector<Step> after;
  std::vector<ErrorPolicy> policies;
  std::vector<bool> fail_fast;
  std::size_t complete;
  StatusCode code;
  std::string message;
  std::optional<std::size_t> from;
};

std::vector<Step> StepsOf(const std::string& cell) {
  std::vector<Step> steps;
  std::istringstream words(cell);
  for (std::string word; words >> word;) {
    const std::vector<std::string> parts = Split(word, '=');
    Step step{std::stoul(parts.at(0)), std::nullopt};
    if (parts.at(1) != "drop") step.code = parts.at(1) == "ok" ? StatusCode::kOk : CodeOf(parts.at(1));
    steps.push_back(step);
  }
  return steps;
}

Row RowOf(const std::vector<std::string>& cells) {
  Row row{cells.at(0), std::stoul(cells.at(1)), StepsOf(cells.at(2)), StepsOf(cells.at(3)), {},
          {},          std::stoul(cells.at(6)), CodeOf(cells.at(7)),  cells.at(8),          std::nullopt};
  for (const auto& [name, policy] : kPolicies) {
    if (cells.at(4) == "any" || cells.at(4) == name) row.policies.push_back(policy);
  }
  if (cells.at(5) != "yes") row.fail_fast.push_back(false);
  if (cells.at(5) != "no") row.fail_fast.push_back(true);
  EXPECT_FALSE(row.policies.empty()) << row.name;
  if (cells.at(9) != "-") row.from = std::stoul(cells.at(9));
  return row;
}

const std::vector<Row>& Rows() {
  static const std::vector<Row> rows = [] {
    std::vector<Row> read;
    for (const std::vector<std::string>& cells : ReadTable(PURLIN_JOINS_TABLE, 10)) read.push_back(RowOf(cells));
    return read;
  }();
  return rows;
}

/// Each row with each of its policies, with and without `fail_fast`, as it says.
void Each(const std::function<void(const Row&, const JoinOptions&)>& check) {
  EXPECT_GE(Rows().size(), 40U);
  for (const Row& row : Rows()) {
    for (const ErrorPolicy policy : row.policies) {
      for (const bool fail_fast : row.fail_fast) {
        JoinOptions options;
        options.policy = policy;
        options.fail_fast = fail_fast;
        check(row, options);
      }
    }
  }
}

/// The rows that a verb without options can show.
void EachByDefault(const std::function<void(const Row&)>& check) {
  Each([&](const Row& row, const JoinOptions& options) {
    if (options.policy == ErrorPolicy::kFirstByIndex && !options.fail_fast) check(row);
  });
}

std::string LetterOf(std::size_t index) { return std::string(1, static_cast<char>('a' + index)); }

Status StatusOf(const Step& step) {
  Status status(*step.code, LetterOf(step.index), SourceLocation("member", static_cast<std::uint32_t>(step.index + 1)));
  status.SetPayload(kPayload, LetterOf(step.index));
  return status;
}

/// Takes one step after another; checks when the join completes, with what, and that this stays.
template <typename Take, typename Result>
void Check(const Row& row, const std::string& verb, const Take& take, const Result& result) {
  SCOPED_TRACE(verb + ": " + row.name);
  for (std::size_t taken = 0; taken < row.after.size(); ++taken) {
    ASSERT_EQ(result().has_value(), taken >= row.complete) << "after " << taken << " steps";
    take(row.after[taken]);
  }
  const std::optional<Status> status = result();
  ASSERT_TRUE(status.has_value()) << "not complete at the end";
  EXPECT_EQ(status->code(), row.code) << *status;
  CheckMessage(*status, row.message);
  EXPECT_EQ(status->GetPayload(kPayload), row.from ? std::optional(LetterOf(*row.from)) : std::nullopt) << *status;
  if (row.from) {
    EXPECT_STREQ(status->location().file(), "member");
    EXPECT_EQ(status->location().line(), *row.from + 1);
  }
}

/// Members that are events.
struct Events {
  explicit Events(const Row& row) {
    for (std::size_t i = 0; i < row.members; ++i) {
      promises.emplace_back(EventPromise("member"));
      events.push_back(promises.back()->event());
    }
    for (const Step& step : row.before) Take(step);
  }
  void Take(const Step& step) {
    if (step.code) promises[step.index]->Set(StatusOf(step));
    promises[step.index].reset();
  }
  std::vector<std::optional<EventPromise>> promises;
  std::vector<Event> events;
};

std::optional<Status> ResultOf(const Event& event) {
  return event.IsReady() ? std::optional(event.error()) : std::nullopt;
}

/// Members that are futures; each has its index, or nothing.
template <typename T>
struct Futures {
  explicit Futures(const Row& row) {
    for (std::size_t i = 0; i < row.members; ++i) {
      auto [promise, future] = MakePromise<T>("member");
      promises.emplace_back(std::move(promise));
      futures.push_back(std::move(future));
    }
    for (const Step& step : row.before) Take(step);
  }
  void Take(const Step& step) {
    Promise<T> promise = *std::exchange(promises[step.index], std::nullopt);
    if (!step.code) return;
    Status status = StatusOf(step);
    if constexpr (std::is_void_v<T>) {
      promise.Set(std::move(status));
    } else if (status.ok()) {
      promise.Set(static_cast<T>(step.index));
    } else {
      promise.Set(std::move(status));
    }
  }
  std::vector<std::optional<Promise<T>>> promises;
  std::vector<Future<T>> futures;
};

template <typename T, typename Join>
void CheckFutures(const std::string& verb, const Join& join) {
  Each([&](const Row& row, const JoinOptions& options) {
    Futures<T> members(row);
    auto joined = join(members.futures, options);
    if (!joined.IsValid()) return;
    members.futures.clear();
    Check(row, verb, [&](const Step& step) { members.Take(step); }, [&] { return ResultOf(joined.AsEvent()); });
  });
}

TEST(JoinTableTest, OfEvents) {
  Each([](const Row& row, const JoinOptions& options) {
    Events members(row);
    const Event joined = WhenAll(members.events, options);
    Check(
        row, "WhenAll(events, options)", [&](const Step& step) { members.Take(step); },
        [&] { return ResultOf(joined); });
  });
  EachByDefault([](const Row& row) {
    Events members(row);
    const Event joined = WhenAll(members.events);
    Check(row, "WhenAll(events)", [&](const Step& step) { members.Take(step); }, [&] { return ResultOf(joined); });
  });
}

TEST(JoinTableTest, OfStreams) {
  EachByDefault([](const Row& row) {
    Events members(row);
    StreamEventMap last;
    for (std::size_t stream = 0; stream < row.members; ++stream) last.Record(stream, members.events[stream]);
    members.events.clear();
    const Event joined = last.All();
    Check(row, "StreamEventMap::All", [&](const Step& step) { members.Take(step); }, [&] { return ResultOf(joined); });
  });
}

TEST(JoinTableTest, OfFuturesWithoutValues) {
  CheckFutures<void>("JoinFutures<>", [](const std::vector<Future<>>& futures, const JoinOptions& options) {
    return JoinFutures(Span<const Future<>>(futures), options);
  });
}

TEST(JoinTableTest, OfFuturesWithValues) {
  CheckFutures<int>("JoinFutures<int>", [](const std::vector<Future<int>>& futures, const JoinOptions& options) {
    return JoinFutures(futures, options);
  });
}

TEST(JoinTableTest, OfFuturesOfDifferentTypes) {
  CheckFutures<int>("JoinFuturesTo", [](const std::vector<Future<int>>& futures, const JoinOptions& options) {
    using Three = std::tuple<int, int, int>;
    return futures.size() == 3 ? JoinFuturesTo<Three>(options, futures[0], futures[1], futures[2]) : Future<Three>();
  });
}

TEST(JoinTableTest, OfEventsAsAFuture) {
  Each([](const Row& row, const JoinOptions& options) {
    Events members(row);
    const Future<> joined = MakeFutureWhenReady(members.events, options);
    Check(
        row, "MakeFutureWhenReady", [&](const Step& step) { members.Take(step); },
        [&] { return ResultOf(joined.AsEvent()); });
  });
}

TEST(JoinTableTest, OfCountedSteps) {
  Each([](const Row& row, const JoinOptions& options) {
    const auto is_drop = [](const Step& step) { return !step.code.has_value(); };
    if (std::any_of(row.before.begin(), row.before.end(), is_drop)) return;
    if (std::any_of(row.after.begin(), row.after.end(), is_drop)) return;
    CountDownAsyncValueRef<Chain> count(row.members, {options.policy, options.fail_fast});
    const Event event = count.AsRef().AsEvent();
    const auto take = [&](const Step& step) { count.CountDown(1, StatusOf(step), step.index); };
    std::vector<Step> before = row.before;
    std::sort(before.begin(), before.end(), [](const Step& a, const Step& b) { return a.index < b.index; });
    for (const Step& step : before) take(step);
    Check(row, "CountDown", take, [&] { return ResultOf(event); });
  });
}

TEST(JoinTableTest, OfValues) {
  EachByDefault([](const Row& row) {
    std::vector<AsyncValueRef<int>> values;
    for (std::size_t i = 0; i < row.members; ++i) values.push_back(MakeUnconstructedAsyncValueRef<int>("member"));
    const auto take = [&values](const Step& step) {
      const AsyncValueRef<int> value = std::exchange(values[step.index], AsyncValueRef<int>());
      if (!step.code) return;
      if (Status status = StatusOf(step); status.ok()) {
        value.emplace(1);
      } else {
        value.SetError(std::move(status));
      }
    };
    // RunWhenReady keeps no value, and joins those that have completed too.
    std::vector<AsyncValueRef<int>> joined = values;
    for (const Step& step : row.before) take(step);
    std::optional<Status> result;
    RunWhenReady(joined, [&result](Status status) { result = std::move(status); });
    joined.clear();
    Check(row, "RunWhenReady", take, [&] { return result; });
  });
}

TEST(JoinTableTest, OfWhatDoesNotMindErrors) {
  EachByDefault([](const Row& with_errors) {
    Row row = with_errors;
    row.complete = row.after.size();
    row.code = StatusCode::kOk;
    row.message.clear();
    row.from.reset();
    Events members(row);
    const Event joined = AfterAll(members.events);
    Check(row, "AfterAll", [&](const Step& step) { members.Take(step); }, [&] { return ResultOf(joined); });
  });
}

}  // namespace
}  // namespace purlin

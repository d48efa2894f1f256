// CancelSource, CancelToken, Semaphore, Timer, deadlines, Watchdog and reports, UserContext, traces, versions.
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <future>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "purlin/cancel.h"
#include "purlin/semaphore.h"
#include "purlin/stall.h"
#include "purlin/timer.h"
#include "purlin/trace.h"
#include "purlin/user_context.h"
#include "purlin/version.h"
#include "tests/cpp/testing.h"
#include "tests/misuse/misuse.h"

namespace purlin {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

// Cancellation --------------------------------------------------------------------------------------------------------

TEST(CancelMisuse, TheSecondCancelIsToldSo) {
  const CancelSource source("twice");
  EXPECT_TRUE(source.Cancel(AbortedError("first")));
  EXPECT_FALSE(source.Cancel(DataLossError("second")));
  EXPECT_TRUE(Fails(source.token().status(), StatusCode::kAborted, {"first"}));
}

TEST(CancelMisuse, AReasonThatIsOkNamesTheSource) {
  const CancelSource source("no reason");
  EXPECT_TRUE(source.Cancel(OkStatus()));
  EXPECT_TRUE(Fails(source.token().status(), StatusCode::kCancelled, {"no reason"}));
}

TEST(CancelMisuse, AMovedFromSourceCancelsNothing) {
  CancelSource source("moved");
  const CancelToken token = source.token();
  const CancelSource taken = std::move(source);
  EXPECT_FALSE(source.Cancel());
  EXPECT_FALSE(token.IsCancelled());
  EXPECT_TRUE(source.token().IsRetired());
}

TEST(CancelMisuse, AMovedFromTokenIsNeverCancelled) {
  const CancelSource source("moved token");
  CancelToken token = source.token();
  const CancelToken taken = std::move(token);
  source.Cancel();
  EXPECT_FALSE(token.IsCancelled());
  EXPECT_TRUE(token.IsRetired());
  EXPECT_TRUE(Ok(token.status()));
  EXPECT_TRUE(taken.IsCancelled());
}

TEST(CancelMisuse, ATokenWhoseSourcesAreGoneSaysSo) {
  CancelToken token;
  {
    token = CancelSource("gone").token();
  }
  EXPECT_TRUE(token.IsRetired());
  EXPECT_TRUE(Fails(token.event(), StatusCode::kFailedPrecondition, {"gone"}));
}

TEST(CancelMisuse, TheDefaultTokenTakesCallbacksAndNeverCallsThem) {
  NoLeak no_leak;
  bool called = false;
  CancelRegistration registration = CancelToken().OnCancel([&called, kept = Counted(1)] { called = true; });
  EXPECT_FALSE(registration.Unregister());
  EXPECT_FALSE(called);
}

TEST(CancelMisuse, ACallbackMayDestroyItsOwnRegistration) {
  const CancelSource source("own registration");
  std::optional<CancelRegistration> registration;
  int calls = 0;
  registration = source.token().OnCancel([&] {
    registration.reset();
    ++calls;
  });
  EXPECT_TRUE(source.Cancel());
  EXPECT_EQ(calls, 1);
}

TEST(CancelMisuse, ACallbackMayCancelAgainAndRegisterMore) {
  const CancelSource source("again");
  int calls = 0;
  bool again = true;
  std::vector<CancelRegistration> registrations;
  registrations.push_back(source.token().OnCancel([&] {
    again = source.Cancel();
    registrations.push_back(source.token().OnCancel([&calls] { ++calls; }));
    ++calls;
  }));
  EXPECT_TRUE(source.Cancel());
  EXPECT_FALSE(again);
  EXPECT_EQ(calls, 2);
}

TEST(CancelMisuse, ACallbackMayDropTheLastSource) {
  auto source = std::make_unique<CancelSource>("dropped inside");
  const CancelToken token = source->token();
  CancelRegistration registration = token.OnCancel([&source] { source.reset(); });
  const CancelSource keeps = *source;
  EXPECT_TRUE(keeps.Cancel());
  EXPECT_TRUE(token.IsCancelled());
}

TEST(CancelMisuse, UnregisteringTwiceAndOnceMovedFrom) {
  const CancelSource source("twice");
  CancelRegistration registration = source.token().OnCancel([] {});
  CancelRegistration taken = std::move(registration);
  EXPECT_FALSE(registration.Unregister());
  EXPECT_TRUE(taken.Unregister());
  EXPECT_FALSE(taken.Unregister());
  EXPECT_FALSE(CancelRegistration().Unregister());
}

TEST(CancelMisuse, AHundredThousandGenerationsAreCancelledWithoutAStack) {
  OnSmallStack([] {
    const CancelSource root("root");
    std::vector<CancelSource> line{root};
    for (int i = 0; i < 100000; ++i) line.emplace_back(line.back().token());
    EXPECT_TRUE(root.Cancel(AbortedError("all of you")));
    EXPECT_TRUE(Fails(line.back().token().status(), StatusCode::kAborted, {"all of you"}));
  });
}

TEST(CancelMisuse, AChildOfACancelledParentIsCancelledAtOnce) {
  const CancelSource parent("parent");
  parent.Cancel(AbortedError("before"));
  const CancelSource child(parent.token(), "child");
  EXPECT_TRUE(Fails(child.token().status(), StatusCode::kAborted, {"before"}));
  EXPECT_FALSE(child.Cancel());
}

// Semaphore -----------------------------------------------------------------------------------------------------------

TEST(SemaphoreMisuse, MoreThanThereAreIsRefusedByNumber) {
  const Semaphore semaphore("launches", 3);
  EXPECT_TRUE(Fails(semaphore.TryAcquire(4), StatusCode::kInvalidArgument, {"4", "3", "launches"}));
  EXPECT_TRUE(Fails(semaphore.Acquire(std::numeric_limits<std::size_t>::max()), StatusCode::kInvalidArgument));
  EXPECT_TRUE(Fails(semaphore.AcquireFor(4, seconds(1)), StatusCode::kInvalidArgument));
  Status seen;
  semaphore.AcquireAsync(5, [&seen](StatusOr<Permit> permit) { seen = permit.status(); });
  EXPECT_TRUE(Fails(seen, StatusCode::kInvalidArgument, {"5"}));
}

TEST(SemaphoreMisuse, OfNoUnits) {
  const Semaphore semaphore("none", 0);
  EXPECT_TRUE(Fails(semaphore.TryAcquire(1), StatusCode::kInvalidArgument));
  const auto nothing = semaphore.TryAcquire(0);
  ASSERT_TRUE(Ok(nothing));
  EXPECT_EQ(nothing->amount(), 0U);
}

TEST(SemaphoreMisuse, APermitIsGivenBackOnce) {
  const Semaphore semaphore("once", 2);
  Permit permit = semaphore.Acquire(2).value();
  Permit taken = std::move(permit);
  EXPECT_EQ(permit.amount(), 0U);
  permit.Release();
  EXPECT_EQ(semaphore.available(), 0U);
  taken.Release();
  taken.Release();
  EXPECT_EQ(semaphore.available(), 2U);
}

TEST(SemaphoreMisuse, ATimeoutThatIsNegative) {
  const Semaphore semaphore("patient", 1);
  const Permit all = semaphore.Acquire(1).value();
  EXPECT_TRUE(Fails(semaphore.AcquireFor(1, nanoseconds(-1)), StatusCode::kDeadlineExceeded, {"patient"}));
  EXPECT_TRUE(Fails(semaphore.AcquireFor(1, nanoseconds::min()), StatusCode::kDeadlineExceeded));
  EXPECT_EQ(semaphore.waiting(), 0U);
}

TEST(SemaphoreMisuse, ATokenThatWasCancelledRefuses) {
  const Semaphore semaphore("cancelled", 1);
  const CancelSource source("user");
  source.Cancel(AbortedError("before"));
  EXPECT_TRUE(Fails(semaphore.Acquire(1, source.token()), StatusCode::kCancelled));
  EXPECT_EQ(semaphore.available(), 1U);
}

TEST(SemaphoreMisuse, ClosedTwiceItRefusesAndTellsWhoWaits) {
  const Semaphore semaphore("closed", 1);
  Permit all = semaphore.Acquire(1).value();
  Status seen;
  semaphore.AcquireAsync(1, [&seen](StatusOr<Permit> permit) { seen = permit.status(); });
  semaphore.Close();
  semaphore.Close();
  EXPECT_TRUE(Fails(seen, StatusCode::kCancelled, {"closed"}));
  EXPECT_TRUE(Fails(semaphore.TryAcquire(1), StatusCode::kCancelled));
  EXPECT_TRUE(Fails(semaphore.Acquire(1), StatusCode::kCancelled));
  all.Release();
}

TEST(SemaphoreMisuse, ACallbackMayReleaseCloseAndAcquireAgain) {
  const Semaphore semaphore("re-entered", 1);
  int granted = 0;
  Permit all = semaphore.Acquire(1).value();
  semaphore.AcquireAsync(1, [&](StatusOr<Permit> permit) {
    ASSERT_TRUE(Ok(permit));
    ++granted;
    semaphore.AcquireAsync(1, [&](StatusOr<Permit> inner) {
      granted += inner.ok() ? 1 : 0;
      semaphore.Close();
    });
    permit->Release();
  });
  all.Release();
  EXPECT_EQ(granted, 2);
  EXPECT_TRUE(Fails(semaphore.TryAcquire(1), StatusCode::kCancelled));
}

TEST(SemaphoreMisuse, APermitOutlivesEveryHandle) {
  std::optional<Permit> permit;
  {
    permit = Semaphore("short", 3).Acquire(2).value();
  }
  EXPECT_EQ(permit->amount(), 2U);
  permit.reset();
}

TEST(SemaphoreMisuse, AHundredThousandCallbacksThatPassOnePermitOn) {
  OnSmallStack([] {
    const Semaphore semaphore("relay", 1);
    Permit first = semaphore.Acquire(1).value();
    int granted = 0;
    for (int i = 0; i < 100000; ++i) {
      semaphore.AcquireAsync(1, [&granted](StatusOr<Permit> permit) { granted += permit.ok() ? 1 : 0; });
    }
    first.Release();
    EXPECT_EQ(granted, 100000);
  });
}

// Timers --------------------------------------------------------------------------------------------------------------

TEST(TimerMisuse, TimesOutOfAllRange) {
  EXPECT_TRUE(Ok(Timer::After(nanoseconds::min()).event()));
  EXPECT_TRUE(Ok(Timer::After(nanoseconds(-1)).event()));
  EXPECT_TRUE(Ok(Timer::At(steady_clock::time_point::min()).event()));
  Timer never = Timer::After(nanoseconds::max(), "never");
  Timer end = Timer::At(steady_clock::time_point::max(), "end of time");
  EXPECT_FALSE(never.event().IsReady());
  EXPECT_FALSE(end.event().IsReady());
  EXPECT_TRUE(never.Cancel());
  EXPECT_TRUE(end.Cancel());
}

TEST(TimerMisuse, ACancelledTimerFailsByNameAndOnce) {
  Timer timer = Timer::After(std::chrono::hours(1), "tea");
  const Event event = timer.event();
  EXPECT_TRUE(timer.Cancel());
  EXPECT_FALSE(timer.Cancel());
  timer.Detach();
  EXPECT_TRUE(timer.event().IsReady());
  EXPECT_TRUE(Fails(event, StatusCode::kCancelled, {"tea"}));
}

TEST(TimerMisuse, AMovedFromTimerIsEmpty) {
  Timer timer = Timer::After(std::chrono::hours(1), "moved");
  Timer taken = std::move(timer);
  EXPECT_TRUE(timer.event().IsReady());
  EXPECT_FALSE(timer.Cancel());
  EXPECT_FALSE(taken.event().IsReady());
}

TEST(TimerMisuse, AWaiterMayCancelAndMakeTimers) {
  Timer other = Timer::After(std::chrono::hours(1), "other");
  std::promise<void> again;
  Timer inner = Timer::After(std::chrono::hours(1), "placeholder");
  Timer timer = Timer::After(milliseconds(1), "outer");
  timer.event().OnReady([&] {
    other.Cancel();
    inner = Timer::After(nanoseconds(0), "inner");
    inner.event().OnReady([&again] { again.set_value(); });
  });
  again.get_future().wait();
}

TEST(TimerMisuse, ADeadlineThatHasPassedNamesTheEvent) {
  EventPromise promise("slow copy");
  EXPECT_TRUE(Fails(WithDeadline(promise.event(), steady_clock::time_point::min()), StatusCode::kDeadlineExceeded,
                    {"slow copy"}));
  EXPECT_TRUE(Fails(WithTimeout(promise.event(), nanoseconds::min()), StatusCode::kDeadlineExceeded, {"slow copy"}));
  EXPECT_FALSE(promise.event().IsReady());
  promise.SetReady();
}

TEST(TimerMisuse, ADeadlineOfAReadyEventIsTheEvent) {
  EXPECT_TRUE(WithTimeout(Event(), nanoseconds(0)).IsReady());
  EXPECT_TRUE(Fails(WithTimeout(Event::Error(DataLossError("x")), seconds(0)), StatusCode::kDataLoss, {"x"}));
}

TEST(TimerMisuse, DeadlinesOfDeadlinesOfDeadlines) {
  EventPromise promise("innermost");
  Event event = promise.event();
  for (int i = 0; i < 1000; ++i) event = WithTimeout(event, std::chrono::hours(1));
  promise.SetReady();
  EXPECT_TRUE(Ok(event));
}

// Reports and watchdogs -----------------------------------------------------------------------------------------------

TEST(WatchdogMisuse, ATimeThatIsTooShortIsRefusedByValue) {
  WatchdogOptions options;
  options.older_than = milliseconds(9);
  EXPECT_TRUE(Fails(Watchdog::Start(options), StatusCode::kInvalidArgument, {"9"}));
  options.older_than = nanoseconds::min();
  EXPECT_TRUE(Fails(Watchdog::Start(options), StatusCode::kInvalidArgument));
}

TEST(WatchdogMisuse, AnUnknownActionIsRefusedByNumber) {
  WatchdogOptions options;
  options.action = static_cast<WatchdogAction>(3);
  EXPECT_TRUE(Fails(Watchdog::Start(options), StatusCode::kInvalidArgument, {"3"}));
  options.action = static_cast<WatchdogAction>(-1);
  EXPECT_TRUE(Fails(Watchdog::Start(options), StatusCode::kInvalidArgument, {"-1"}));
  options.action = static_cast<WatchdogAction>(std::numeric_limits<int>::max());
  EXPECT_TRUE(Fails(Watchdog::Start(options), StatusCode::kInvalidArgument, {"2147483647"}));
}

TEST(WatchdogMisuse, AnAgeThatIsNegativeOrEnormous) {
  EventPromise promise("reported");
  EXPECT_NE(DumpStalls(nanoseconds::min()).find("'reported'"), std::string::npos);
  EXPECT_EQ(DumpStalls(nanoseconds::max()).find("'reported'"), std::string::npos);
  promise.SetReady();
}

TEST(WatchdogMisuse, AMovedFromWatchdogIsEmpty) {
  auto watchdog = Watchdog::Start({});
  ASSERT_TRUE(Ok(watchdog));
  Watchdog taken = std::move(*watchdog);
  *watchdog = std::move(taken);
}

TEST(WatchdogMisuse, ASinkMayReportAllocateAndSetEvents) {
  EventPromise stuck("stuck");
  const Event event = stuck.event();
  WatchdogOptions options;
  options.older_than = milliseconds(10);
  std::promise<std::string> told;
  bool first = true;
  options.sink = [&](std::string_view) {
    if (!std::exchange(first, false)) return;
    const std::string inner = DumpStalls();
    stuck.SetReady();
    told.set_value(inner);
  };
  const auto watchdog = Watchdog::Start(std::move(options));
  ASSERT_TRUE(Ok(watchdog));
  EXPECT_NE(told.get_future().get().find("'stuck'"), std::string::npos);
  EXPECT_TRUE(Ok(event));
}

TEST(WatchdogMisuse, PoisonFailsWhatAUserOwesAndNamesIt) {
  EventPromise forgotten("forgotten");
  WatchdogOptions options;
  options.older_than = milliseconds(10);
  options.action = WatchdogAction::kPoison;
  options.sink = [](std::string_view) {};
  const auto watchdog = Watchdog::Start(std::move(options));
  ASSERT_TRUE(Ok(watchdog));
  EXPECT_TRUE(Fails(forgotten.event(), StatusCode::kDeadlineExceeded, {"'forgotten'"}));
  EXPECT_FALSE(forgotten.SetReady());
}

TEST(WatchdogMisuse, EndedInItsOwnSink) {
  EventPromise stuck("stuck");
  std::optional<Watchdog> watchdog;
  std::promise<void> begun;
  std::shared_future<void> started = begun.get_future().share();
  std::promise<void> ended;
  bool first = true;
  WatchdogOptions options;
  options.older_than = milliseconds(10);
  options.sink = [&](std::string_view) {
    if (!std::exchange(first, false)) return;
    started.wait();
    watchdog.reset();
    ended.set_value();
  };
  watchdog = Watchdog::Start(std::move(options)).value();
  begun.set_value();
  ended.get_future().wait();
  EXPECT_FALSE(watchdog.has_value());
  stuck.SetReady();
}

TEST(WatchdogMisuse, PoisonDoesNotEndALoopThatUsesItsCallersStack) {
  auto pool = PoolOf(2);
  WatchdogOptions options;
  options.older_than = milliseconds(10);
  options.action = WatchdogAction::kPoison;
  std::atomic<int> reports{0};
  options.sink = [&reports](std::string_view) { ++reports; };
  const auto watchdog = Watchdog::Start(std::move(options));
  ASSERT_TRUE(Ok(watchdog));
  EventPromise stuck("so that there are reports");
  std::atomic<int> calls{0};
  EXPECT_TRUE(Ok(pool.ParallelFor(4, Grain(1), [&](std::size_t, std::size_t) {
    const int now = reports.load();
    while (reports.load() < now + 1 && reports.load() < 1) std::this_thread::yield();
    ++calls;
  })));
  EXPECT_EQ(calls.load(), 4);
  static_cast<void>(stuck.SetReady());
}

TEST(WatchdogMisuse, AReportWhileEventsComeAndGo) {
  std::atomic<bool> stop{false};
  std::thread reporter([&stop] {
    while (!stop.load()) static_cast<void>(DumpStalls().size());
  });
  Together(4, [](int) {
    for (int i = 0; i < 2000; ++i) {
      EventPromise a("a"), b("b");
      const Event all = WhenAll({a.event(), b.event()});
      a.SetReady();
      b.SetReady();
      EXPECT_TRUE(all.IsReady());
    }
  });
  stop.store(true);
  reporter.join();
}

// User contexts -------------------------------------------------------------------------------------------------------

TEST(UserContextMisuse, NoneIsNone) {
  const UserContext none;
  EXPECT_FALSE(none);
  EXPECT_EQ(none.id(), 0U);
  EXPECT_EQ(none.DebugString(), "");
  EXPECT_FALSE(UserContext::Chained(none, none));
  EXPECT_FALSE(UserContext::Fused({}));
  EXPECT_FALSE(UserContext::Lookup(0));
  EXPECT_FALSE(UserContext::Lookup(std::numeric_limits<std::uint64_t>::max()));
  EXPECT_TRUE(UserContext::Annotated(none, "x"));
}

TEST(UserContextMisuse, TheNumberZeroIsRefused) {
  EXPECT_TRUE(Fails(UserContext::WithId(0, "zero"), StatusCode::kInvalidArgument, {"0"}));
}

TEST(UserContextMisuse, BytesThatAreNotTextAreReplaced) {
  EXPECT_EQ(UserContext::Create("a\xFF").DebugString(), "a\xEF\xBF\xBD");
  EXPECT_EQ(UserContext::Create([] { return std::string("b\xFE"); }).DebugString(), "b\xEF\xBF\xBD");
}

TEST(UserContextMisuse, AScopeOfAMovedFromContextIsNone) {
  UserContext context = UserContext::Create("moved");
  const UserContext taken = std::move(context);
  const UserContextScope outer(taken);
  const UserContextScope scope(context);
  EXPECT_FALSE(CurrentUserContext());
}

TEST(UserContextMisuse, AnOriginMayAskForItsOwnContext) {
  UserContext context;
  int depth = 0;
  context = UserContext::Create([&]() -> std::string {
    return ++depth > 3 ? "enough" : "around " + UserContext::Lookup(context.id()).DebugString();
  });
  EXPECT_EQ(context.DebugString(), "around around around enough");
}

TEST(UserContextMisuse, AnErrorKeepsItsContextAndAnOkHasNone) {
  const UserContext context = UserContext::Create("mine");
  EXPECT_TRUE(AnnotateWithUserContext(OkStatus(), context).ok());
  const Status once = AnnotateWithUserContext(InternalError("x"), context);
  EXPECT_EQ(AnnotateWithUserContext(once, UserContext::Create("other")).GetPayload(kUserContextPayload),
            std::to_string(context.id()));
  EXPECT_FALSE(AnnotateWithUserContext(InternalError("x"), UserContext()).GetPayload(kUserContextPayload).has_value());
}

TEST(UserContextMisuse, APayloadThatIsNoNumberIsLeftAlone) {
  Status status = InternalError("forged");
  status.SetPayload(kUserContextPayload, "12,abc,99999999999999999999999999,,");
  const Status shown = ExpandUserContexts(status);
  EXPECT_FALSE(shown.ok());
  EXPECT_NE(shown.message().find("forged"), std::string_view::npos);
}

TEST(UserContextMisuse, ThousandsOfChainedContexts) {
  UserContext chain = UserContext::Create("0");
  for (int i = 1; i < 2000; ++i) chain = UserContext::Annotated(chain, std::to_string(i));
  EXPECT_NE(chain.DebugString().find("1999 (in 1998 (in"), std::string::npos);
}

// Traces --------------------------------------------------------------------------------------------------------------

class TraceMisuse : public testing::Test {
 protected:
  TraceMisuse() { std::filesystem::create_directories(folder_); }
  ~TraceMisuse() override { std::filesystem::remove_all(folder_); }
  std::string folder_ = testing::TempDir() + "purlin_trace_misuse_" + std::to_string(getpid());
};

TEST_F(TraceMisuse, WhereNoFileCanBe) {
  EXPECT_TRUE(Fails(StartTrace(""), StatusCode::kInvalidArgument));
  EXPECT_TRUE(Fails(StartTrace(folder_ + "/none/trace.json"), StatusCode::kNotFound, {"/none/trace.json"}));
  EXPECT_TRUE(Fails(StartTrace(folder_), StatusCode::kFailedPrecondition, {folder_, "directory"}));
  EXPECT_TRUE(Fails(StartTrace(std::string(5000, 'x')), StatusCode::kInvalidArgument));
  EXPECT_FALSE(StartTrace(std::string_view("a\0b", 3)).ok());
}

TEST_F(TraceMisuse, StoppingWhatWasNotStarted) {
  EXPECT_TRUE(Fails(StopTrace(), StatusCode::kFailedPrecondition));
  EXPECT_TRUE(Fails(StopTrace(), StatusCode::kFailedPrecondition));
}

TEST_F(TraceMisuse, StartingTwice) {
  const std::string path = folder_ + "/trace.json";
  ASSERT_TRUE(Ok(StartTrace(path)));
  EXPECT_TRUE(Fails(StartTrace(folder_ + "/other.json"), StatusCode::kFailedPrecondition));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/other.json"));
  EXPECT_TRUE(Ok(StopTrace()));
  EXPECT_TRUE(std::filesystem::exists(path));
}

TEST_F(TraceMisuse, SpansThatEndAfterTheTraceAndOnAnotherThread) {
  auto before = std::make_unique<TraceSpan>("began before");
  ASSERT_TRUE(Ok(StartTrace(folder_ + "/trace.json")));
  auto during = std::make_unique<TraceSpan>("ends after");
  before.reset();
  EXPECT_TRUE(Ok(StopTrace()));
  std::thread([&during] { during.reset(); }).join();
  const TraceSpan nothing{Label()};
}

TEST_F(TraceMisuse, AFolderThatGoesWhileATraceIsRecorded) {
  ASSERT_TRUE(Ok(StartTrace(folder_ + "/trace.json")));
  std::filesystem::remove_all(folder_);
  EXPECT_TRUE(Fails(StopTrace(), StatusCode::kNotFound, {"trace.json"}));
  EXPECT_TRUE(Fails(StopTrace(), StatusCode::kFailedPrecondition));
}

TEST(VersionMisuse, TheLinkedLibraryIsThatOfTheHeaders) {
  EXPECT_EQ(AbiVersion(), kAbiVersion);
  EXPECT_STREQ(VersionString(), PURLIN_VERSION_STRING);
}

}  // namespace
}  // namespace purlin

// Purlin: one future out of several.
//
// ```cpp
// const purlin::Future<float> norm(1.5F);
// const purlin::Future<int> count(3);
// const purlin::Future<std::tuple<float, int>> both = purlin::JoinFutures(norm, count);
// const purlin::Future<std::vector<float>> all = purlin::JoinFutures(std::vector<purlin::Future<float>>{norm, norm});
// const purlin::StatusOr<std::tuple<float, int>> values = both.Await();
// if (!values.ok()) return values.status();
// ```
//
// A join is ready after all of its members are, or as JoinOptions say; error_policy.h is the contract of its errors. No
// lock is held while other code runs. If all members are ready, nothing is allocated for the join itself. A join of no
// members is ready; a join with an invalid member is invalid. A waiting join keeps no member alive: a member whose
// promise is dropped unset fails it.
#ifndef PURLIN_JOIN_FUTURES_H_
#define PURLIN_JOIN_FUTURES_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "purlin/error_policy.h"
#include "purlin/event.h"
#include "purlin/future.h"
#include "purlin/internal/cell.h"
#include "purlin/internal/future.h"
#include "purlin/label.h"
#include "purlin/promise.h"
#include "purlin/source_location.h"
#include "purlin/span.h"
#include "purlin/status.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {

namespace internal {

/// The error of a join whose members are all ready; OK if none failed. `first` and `last` are the indices of the first
/// and last errors in time; no policy asks for the order of those between.
inline Status JoinErrorOf(Span<const Event> members, ErrorPolicy policy, std::size_t first, std::size_t last) {
  if (first == JoinErrors::kNoIndex) return Status();
  JoinErrors errors;
  errors.Add(members[first].error(), first);
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (i == first || i == last) continue;
    if (Status error = members[i].error(); !error.ok()) errors.Add(std::move(error), i);
  }
  if (last != first) errors.Add(members[last].error(), last);
  return errors.Merge(policy, members.size());
}

/// A join that waits. `Make` makes the result when all members have a value; it has a reference to each.
///
/// While a member is pending the join drops its own references to it, and takes them again when the member completes: a
/// join that kept its members would keep itself, and a value whose last setter is gone would never fail.
template <typename R, typename Make>
class JoinState final {
 public:
  JoinState(std::vector<Event> members, Promise<R> promise, JoinOptions options, Make make)
      : missing_(members.size() + 1),
        members_(std::move(members)),
        promise_(std::move(promise)),
        options_(options),
        make_(std::move(make)) {}

  /// `result` is the promise's.
  static void Start(const std::shared_ptr<JoinState>& state, EventHeader* result) {
    state->owed_ =
        EventOwesSeveral(result, reinterpret_cast<EventHeader* const*>(state->members_.data()), state->members_.size());
    for (std::size_t i = 0; i < state->members_.size(); ++i) {
      state->members_[i].OnReady([state, i](const Status& status) { state->Arrive(i, status); });
    }
    // Members that have completed meanwhile have one more reference for each that is dropped here.
    for (const Event& member : state->members_) {
      for (std::size_t i = 0; i < kReferences; ++i) EventRelease(member.header());
    }
    state->Leave();
  }

 private:
  static constexpr std::size_t kNone = JoinErrors::kNoIndex;
  /// To each member: one in `members_`, and `Make`'s.
  static constexpr std::size_t kReferences = 1 + Make::kReferences;

  void Arrive(std::size_t index, const Status& status) {
    if (owed_ != nullptr) EventArrived(owed_, index);
    // The thread that runs the waiters keeps the member until they have run.
    for (std::size_t i = 0; i < kReferences; ++i) EventRetain(members_[index].header());
    if (!status.ok()) {
      std::size_t none = kNone;
      first_.compare_exchange_strong(none, index, std::memory_order_relaxed);
      last_.store(index, std::memory_order_relaxed);
      if (options_.fail_fast) promise_.Set(status);
    }
    Leave();
  }
  void Leave() {
    // Release: what an arrival wrote is seen by the last one, which acquires.
    if (missing_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    EventsArrived(owed_);
    Status error = JoinErrorOf(members_, options_.policy, first_.load(std::memory_order_relaxed),
                               last_.load(std::memory_order_relaxed));
    if (error.ok()) {
      // Copies the members' values, which may throw.
      error = StatusOfThrow("copying the values of a join", SourceLocation(), [this] { promise_.Set(make_()); });
    }
    if (!error.ok()) promise_.Set(std::move(error));
  }

  std::atomic<std::size_t> missing_;
  std::atomic<std::size_t> first_{kNone};
  std::atomic<std::size_t> last_{kNone};
  std::vector<Event> members_;
  Promise<R> promise_;
  JoinOptions options_;
  Make make_;
  // What reports know of the members.
  void* owed_ = nullptr;
};

/// Joins `count` members whose events `event(i)` gives; `make()` makes the result once all have a value. `make` may own
/// what `event` looks at: it is moved from only after the last call of `event`.
template <typename R, typename EventAt, typename Make>
Future<R> Join(std::size_t count, const EventAt& event, const JoinOptions& options, SourceLocation location,
               Make& make) {
  if (Status unknown = CheckErrorPolicy(options.policy, location); !unknown.ok()) {
    return Future<R>(AsyncValueRef<FuturePayload<R>>(std::move(unknown), location));
  }
  bool all_ready = true;
  std::size_t first_error = JoinErrors::kNoIndex;
  std::size_t last_error = first_error;
  for (std::size_t i = 0; i < count; ++i) {
    const Event member = event(i);
    all_ready = all_ready && member.IsReady();
    if (member.error().ok()) continue;
    if (first_error > count) first_error = i;
    last_error = i;
  }
  const bool failed = first_error < count;
  if (all_ready && !failed) {
    Future<R> made;
    Status thrown = StatusOfThrow("copying the values of a join", location,
                                  [&] { made = Future<R>(typename Future<R>::Result(make()), location); });
    if (!thrown.ok()) made = Future<R>(AsyncValueRef<FuturePayload<R>>(std::move(thrown), location));
    return made;
  }
  if (failed && (options.fail_fast || (all_ready && options.policy == ErrorPolicy::kFirstByIndex))) {
    return Future<R>(AsyncValueRef<FuturePayload<R>>(event(first_error).error(), location));
  }
  std::vector<Event> members;
  members.reserve(count);
  for (std::size_t i = 0; i < count; ++i) members.push_back(event(i));
  if (all_ready) {
    return Future<R>(
        AsyncValueRef<FuturePayload<R>>(JoinErrorOf(members, options.policy, first_error, last_error), location));
  }
  auto [promise, future] = MakeGuardingPromise<R>(options.label, location);
  using State = JoinState<R, Make>;
  State::Start(std::make_shared<State>(std::move(members), std::move(promise), options, std::move(make)),
               future.async_value().header());
  return std::move(future);
}

/// The value of a ready future, copied or moved out; Chain for nothing.
template <typename T>
FuturePayload<T> TakeValue(Future<T>& future) {
  auto& value = future.async_value().get();
  if constexpr (IsCopyable<T>::value) {
    return static_cast<const FuturePayload<T>&>(value);
  } else {
    return std::move(value);
  }
}

/// Makes nothing out of members that have no values.
struct MakeOk {
  static constexpr std::size_t kReferences = 0;
  Status operator()() const { return OkStatus(); }
};

/// Makes a vector.
template <typename T>
struct MakeVector {
  static constexpr std::size_t kReferences = 1;
  std::vector<Future<T>> members;
  std::vector<T> operator()() {
    std::vector<T> values;
    values.reserve(members.size());
    for (Future<T>& member : members) values.push_back(TakeValue(member));
    return values;
  }
};

/// Makes an R out of different values.
template <typename R, typename... Ts>
struct MakeOf {
  static constexpr std::size_t kReferences = 1;
  std::tuple<Future<Ts>...> members;
  R operator()() {
    return std::apply([](Future<Ts>&... member) { return R(TakeValue(member)...); }, members);
  }
  Event event(std::size_t index) const {
    Event found;
    [[maybe_unused]] std::size_t at = 0;
    std::apply([&](const Future<Ts>&... member) { ((at++ == index ? void(found = member.AsEvent()) : void()), ...); },
               members);
    return found;
  }
};

}  // namespace internal

/// Ready when all of `futures` are.
inline Future<> JoinFutures(Span<const Future<>> futures, const JoinOptions& options = JoinOptions(),
                            SourceLocation location = SourceLocation::Current()) {
  for (const Future<>& future : futures) {
    if (!future.IsValid()) return Future<>();
  }
  if (futures.size() == 1 && internal::CheckErrorPolicy(options.policy, location).ok()) return futures[0];
  internal::MakeOk make;
  return internal::Join<void>(
      futures.size(), [&](std::size_t i) { return futures[i].AsEvent(); }, options, location, make);
}

/// The values of all of `futures`, in their order: copied, or moved out of move-only ones.
template <typename T, typename = std::enable_if_t<!std::is_void_v<T>>>
Future<std::vector<T>> JoinFutures(std::vector<Future<T>> futures, const JoinOptions& options = JoinOptions(),
                                   SourceLocation location = SourceLocation::Current()) {
  for (const Future<T>& future : futures) {
    if (!future.IsValid()) return Future<std::vector<T>>();
  }
  internal::MakeVector<T> make{std::move(futures)};
  return internal::Join<std::vector<T>>(
      make.members.size(), [&](std::size_t i) { return make.members[i].AsEvent(); }, options, location, make);
}
/// As above, of copies.
template <typename T, typename = std::enable_if_t<!std::is_void_v<T> && internal::IsCopyable<T>::value>>
Future<std::vector<T>> JoinFutures(Span<const Future<T>> futures, const JoinOptions& options = JoinOptions(),
                                   SourceLocation location = SourceLocation::Current()) {
  return JoinFutures(std::vector<Future<T>>(futures.begin(), futures.end()), options, location);
}
/// As above. Takes the members over: they are invalid afterwards.
template <typename T, typename = std::enable_if_t<!std::is_void_v<T> && !std::is_const_v<T>>>
Future<std::vector<T>> JoinFutures(Span<Future<T>> futures, const JoinOptions& options = JoinOptions(),
                                   SourceLocation location = SourceLocation::Current()) {
  std::vector<Future<T>> taken;
  taken.reserve(futures.size());
  for (Future<T>& future : futures) taken.push_back(std::move(future));
  return JoinFutures(std::move(taken), options, location);
}

/// An `R` made of the values of all: a Chain for each Future<>.
template <typename R, typename... Ts>
Future<R> JoinFuturesTo(const JoinOptions& options, Future<Ts>... futures) {
  if (!(futures.IsValid() && ...)) return Future<R>();
  internal::MakeOf<R, Ts...> make{std::tuple<Future<Ts>...>(std::move(futures)...)};
  return internal::Join<R>(
      sizeof...(Ts), [&](std::size_t i) { return make.event(i); }, options, SourceLocation(), make);
}
/// As above, with the default options: `JoinFutures<R>(a, b)`.
template <typename R, typename... Ts>
Future<R> JoinFutures(Future<Ts>... futures) {
  return JoinFuturesTo<R>(JoinOptions(), std::move(futures)...);
}
/// The values of all, as a tuple, also of one or none: a Chain for each Future<>.
template <int&... kNothingIsNamed, typename... Ts>
Future<std::tuple<internal::FuturePayload<Ts>...>> JoinFutures(Future<Ts>... futures) {
  return JoinFuturesTo<std::tuple<internal::FuturePayload<Ts>...>>(JoinOptions(), std::move(futures)...);
}

/// Ready when all of `events` are.
inline Future<> MakeFutureWhenReady(Span<const Event> events, const JoinOptions& options = JoinOptions(),
                                    SourceLocation location = SourceLocation::Current()) {
  internal::MakeOk make;
  return internal::Join<void>(events.size(), [&](std::size_t i) { return events[i]; }, options, location, make);
}

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_JOIN_FUTURES_H_

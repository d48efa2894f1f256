// What the arrays of a plugin must be, kept beside them.
#ifndef PURLIN_TESTS_PLUGIN_CALLS_MODEL_H_
#define PURLIN_TESTS_PLUGIN_CALLS_MODEL_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "api.h"

using Dims = std::vector<std::int64_t>;

inline std::size_t ElementCount(const Dims& dims) {
  std::int64_t count = 1;
  for (const std::int64_t dim : dims) count *= dim;
  return static_cast<std::size_t>(count);
}

/// What an array comes to: elements or an error, now or when the test says so. Arrays that depend on others share their
/// fates with what they depend on.
class Fate {
 public:
  using Values = std::vector<float>;
  enum class State { kPending, kReady, kFailed };

  static std::shared_ptr<Fate> Ready(Values values) { return std::make_shared<Fate>(State::kReady, std::move(values)); }
  static std::shared_ptr<Fate> Pending() { return std::make_shared<Fate>(State::kPending, Values()); }
  static std::shared_ptr<Fate> Failed(PurlinPjrtErrorCode code) {
    auto fate = std::make_shared<Fate>(State::kFailed, Values());
    fate->codes_ = {code};
    return fate;
  }
  /// `combine` of the values of `parents`, which is what an elementwise program computes, not before `earlier` are
  /// settled: a program that is given memory waits for what still reads it.
  static std::shared_ptr<Fate> Of(std::vector<std::shared_ptr<Fate>> parents,
                                  std::vector<std::shared_ptr<Fate>> earlier,
                                  std::function<Values(const std::vector<const Values*>&)> combine) {
    auto fate = Pending();
    fate->parents_ = std::move(parents);
    fate->earlier_ = std::move(earlier);
    fate->combine_ = std::move(combine);
    return fate;
  }

  Fate(State state, Values values) : state_(state), values_(std::move(values)) {}

  State state() {
    if (state_ == State::kPending && combine_ != nullptr && asked_at_ != settled) {
      asked_at_ = settled;
      Settle();
    }
    return state_;
  }
  const Values& values() const { return values_; }
  /// Whether it may have failed so: a run fails with the error of one of its arguments.
  bool FailsWith(PurlinPjrtErrorCode code) const {
    return std::find(codes_.begin(), codes_.end(), code) != codes_.end();
  }
  void Set(Values values) {
    ++settled;
    state_ = State::kReady;
    values_ = std::move(values);
    Forget();
  }
  void SetError(PurlinPjrtErrorCode code) {
    ++settled;
    state_ = State::kFailed;
    codes_ = {code};
    Forget();
  }

 private:
  // What it depended on is not needed any more.
  void Forget() { parents_.clear(), earlier_.clear(); }

  // While an argument has failed and another is pending, a run may be either, and the test does not ask.
  void Settle() {
    for (const auto& parent : parents_) {
      if (parent->state() == State::kPending) return;
    }
    for (const auto& other : earlier_) {
      if (other->state() == State::kPending) return;
    }
    std::vector<const Values*> values;
    for (const auto& parent : parents_) {
      codes_.insert(codes_.end(), parent->codes_.begin(), parent->codes_.end());
      values.push_back(&parent->values());
    }
    if (codes_.empty()) return Set(combine_(values));
    ++settled;
    state_ = State::kFailed;
    Forget();
  }

  // How many fates of this thread are settled; what is pending is asked again only when that has changed.
  static inline thread_local std::uint64_t settled = 1;

  State state_;
  std::uint64_t asked_at_ = 0;
  Values values_;
  std::vector<PurlinPjrtErrorCode> codes_;
  std::vector<std::shared_ptr<Fate>> parents_, earlier_;
  std::function<Values(const std::vector<const Values*>&)> combine_;
};

/// An array of the plugin's, and what it must be.
struct Array {
  Array(PurlinPjrtBuffer* made, Dims dimensions, std::shared_ptr<Fate> what, std::size_t place)
      : buffer(made), dims(std::move(dimensions)), fate(std::move(what)), memory(place) {}

  PurlinPjrtBuffer* buffer;
  Dims dims;
  std::shared_ptr<Fate> fate;
  std::size_t memory;  // Its number.
  bool is_deleted = false;
  bool is_uninitialized = false;
  int references = 0;
  // Runs that read its memory, shared by all arrays over that.
  std::shared_ptr<std::vector<std::shared_ptr<Fate>>> uses = std::make_shared<std::vector<std::shared_ptr<Fate>>>();
  bool has_memory() const { return ElementCount(dims) > 0; }
};

#endif  // PURLIN_TESTS_PLUGIN_CALLS_MODEL_H_

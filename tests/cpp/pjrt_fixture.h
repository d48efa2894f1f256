// What tests of adapters/pjrt_tables.h share: objects of another implementation of the same tables.
#ifndef PURLIN_TESTS_CPP_PJRT_FIXTURE_H_
#define PURLIN_TESTS_CPP_PJRT_FIXTURE_H_

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "purlin/adapters/pjrt_tables.h"

namespace purlin {

/// An error with a table of its own; counts those that are alive.
struct ForeignError {
  PurlinPjrtError visible;
  int code;
  std::string message;
  std::vector<std::pair<std::string, std::string>> payloads;

  static inline std::atomic<int> alive{0};

  static PurlinPjrtError* Make(int code, std::string message,
                               std::vector<std::pair<std::string, std::string>> payloads = {}) {
    alive.fetch_add(1);
    return &(new ForeignError{{Table()}, code, std::move(message), std::move(payloads)})->visible;
  }
  static const ForeignError* Of(const PurlinPjrtError* error) { return reinterpret_cast<const ForeignError*>(error); }
  static const PurlinPjrtErrorTable* Table() {
    static const PurlinPjrtErrorTable table = {
        sizeof(PurlinPjrtErrorTable),
        sizeof(PurlinPjrtError),
        nullptr,
        [](PurlinPjrtError* error) {
          alive.fetch_sub(1);
          delete Of(error);
        },
        [](const PurlinPjrtError* error, const char** message, std::size_t* size) {
          *message = Of(error)->message.data();
          *size = Of(error)->message.size();
        },
        [](const PurlinPjrtError* error) { return Of(error)->code; },
        [](const PurlinPjrtError* error, PurlinPjrtErrorPayloadVisitor visitor, void* user_arg) {
          for (const auto& [key, value] : Of(error)->payloads) {
            visitor(key.data(), key.size(), value.data(), value.size(), user_arg);
          }
        },
    };
    return &table;
  }
};

/// An event with a table of its own, counted by hand; its callbacks run where it is completed.
class ForeignEvent {
 public:
  PurlinPjrtDeviceEvent Lend() { return {Table(), this}; }
  PurlinPjrtDeviceEvent Give() {
    refs.fetch_add(1);
    return Lend();
  }
  void Complete(int code, std::string message) {
    std::vector<std::function<void()>> callbacks;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      code_ = code;
      message_ = std::move(message);
      state_ = code == 0 ? kPurlinPjrtDeviceEventState_Ready : kPurlinPjrtDeviceEventState_Error;
      callbacks.swap(callbacks_);
    }
    for (const auto& callback : callbacks) callback();
  }
  std::atomic<int> refs{1};

  static const PurlinPjrtDeviceEventTable* Table() {
    static const PurlinPjrtDeviceEventTable table = {
        sizeof(PurlinPjrtDeviceEventTable),
        nullptr,
        [](void* event) { Of(event)->refs.fetch_add(1); },
        [](void* event) { EXPECT_GT(Of(event)->refs.fetch_sub(1), 0) << "one reference too many was given up"; },
        [](void* event, void (*callback)(void*), void* user_arg) {
          {
            const std::lock_guard<std::mutex> lock(Of(event)->mutex_);
            if (Of(event)->state_ == kPurlinPjrtDeviceEventState_Unavailable) {
              return Of(event)->callbacks_.push_back([callback, user_arg] { callback(user_arg); });
            }
          }
          callback(user_arg);
        },
        [](void* event, int* code, const char** message, std::size_t* size) {
          const std::lock_guard<std::mutex> lock(Of(event)->mutex_);
          if (Of(event)->state_ != kPurlinPjrtDeviceEventState_Error) return 0;
          *code = Of(event)->code_;
          *message = Of(event)->message_.data();
          *size = Of(event)->message_.size();
          return 1;
        },
        nullptr,
        [](void* event) {
          const std::lock_guard<std::mutex> lock(Of(event)->mutex_);
          return Of(event)->state_;
        },
        [](void*, std::uint64_t*) { return std::intptr_t{0}; },
    };
    return &table;
  }

 private:
  static ForeignEvent* Of(void* event) { return static_cast<ForeignEvent*>(event); }

  std::mutex mutex_;
  int state_ = kPurlinPjrtDeviceEventState_Unavailable;
  int code_ = 0;
  std::string message_;
  std::vector<std::function<void()>> callbacks_;
};

/// A promise with a table of its own, which can be set by set_ready and set_error only, as one of XLA's can.
struct ForeignPromise {
  PurlinPjrtDeviceEventPromise visible{Table()};
  std::atomic<int> refs{1};
  std::atomic<int> sets{0};
  Status status = UnknownError("not set");

  static ForeignPromise* Of(PurlinPjrtDeviceEventPromise* promise) {
    return reinterpret_cast<ForeignPromise*>(promise);
  }
  static const PurlinPjrtDeviceEventPromiseTable* Table() {
    static const PurlinPjrtDeviceEventPromiseTable table = {
        sizeof(PurlinPjrtDeviceEventPromiseTable),
        sizeof(PurlinPjrtDeviceEventPromise),
        nullptr,
        [](PurlinPjrtDeviceEventPromise* promise) { Of(promise)->refs.fetch_add(1); },
        [](PurlinPjrtDeviceEventPromise* promise) { EXPECT_GT(Of(promise)->refs.fetch_sub(1), 0); },
        [](PurlinPjrtDeviceEventPromise*) { return PurlinPjrtDeviceEvent{nullptr, nullptr}; },
        [](PurlinPjrtDeviceEventPromise*, PurlinPjrtDeviceEvent) { ADD_FAILURE() << "set with an event not its own"; },
        [](PurlinPjrtDeviceEventPromise* promise, PurlinPjrtError* error) {
          Of(promise)->status = adapters::FromPjrt(error);
          Of(promise)->sets.fetch_add(1);
        },
        [](PurlinPjrtDeviceEventPromise* promise) {
          Of(promise)->status = OkStatus();
          Of(promise)->sets.fetch_add(1);
        },
    };
    return &table;
  }
};

}  // namespace purlin

#endif  // PURLIN_TESTS_CPP_PJRT_FIXTURE_H_

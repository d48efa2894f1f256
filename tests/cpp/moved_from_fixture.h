// Rows of methods that are called on empty objects, for moved_from_test.cc and moved_from_programs_test.cc.
#ifndef PURLIN_TESTS_CPP_MOVED_FROM_FIXTURE_H_
#define PURLIN_TESTS_CPP_MOVED_FROM_FIXTURE_H_

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "purlin/purlin.h"

namespace purlin {

/// The row that runs, to be named after a crash.
inline const char* running_type = "";
inline const char* running_method = "";

inline void BeginRow(const char* type, const char* method) {
  running_type = type;
  running_method = method;
  alarm(20);
}

/// `wrong` says what the row found wrong, or nothing.
inline void EndRow(const std::string& wrong) {
  alarm(0);
  EXPECT_EQ(wrong, "") << running_type << "::" << running_method << " of an empty object";
}

inline std::string Failed(const Status& status) {
  return IsFailedPrecondition(status) ? "" : "answers " + status.ToString() + ", not kFailedPrecondition";
}
template <typename T>
std::string Failed(const StatusOr<T>& result) {
  return Failed(result.status());
}
inline std::string Failed(const Event& event) {
  return event.IsReady() ? Failed(event.error()) : "answers an event that is pending";
}
/// The calls of a callback that must be called once, with a kFailedPrecondition.
struct CallbackLog {
  int times = 0;
  Status status;
  std::string Wrong() const { return times == 1 ? Failed(status) : "called " + std::to_string(times) + " times"; }
};
/// A T that was moved from.
template <typename T>
T Empty(T object) {
  T taken(std::move(object));
  T empty(std::move(taken));
  T kept(std::move(empty));
  return empty;  // NOLINT(bugprone-use-after-move): the point.
}

// Rows: each names the method, calls it, and says what is wrong. Here, and not in a child made by fork: there a client
// of this process answers nothing else than that it is one.
#define FAILS(type, method, call) \
  do {                            \
    BeginRow(#type, #method);     \
    EndRow(Failed(call));         \
  } while (false)
#define IS(type, method, condition)                  \
  do {                                               \
    BeginRow(#type, #method);                        \
    EndRow((condition) ? "" : "is not " #condition); \
  } while (false)
#define NOTHING(type, method, call) \
  do {                              \
    BeginRow(#type, #method);       \
    call;                           \
    EndRow("");                     \
  } while (false)
#define TELLS(type, method, call) \
  do {                            \
    BeginRow(#type, #method);     \
    CallbackLog told;             \
    call;                         \
    EndRow(told.Wrong());         \
  } while (false)

/// Names the row, and lets the signal end the process as it would.
inline void NameTheRow(int number) {
  for (const char* text : {running_type, "::", running_method, " of an empty object ends the process\n"}) {
    static_cast<void>(!write(STDERR_FILENO, text, std::strlen(text)));
  }
  signal(number, SIG_DFL);
  raise(number);
}

/// To itself, by move, by copy where there is one, and swapped with itself: as before, which `check` says.
template <typename T, typename Check>
void ToItself(const char* type, T object, Check check) {
  T& same = object;
  object = std::move(same);
  EXPECT_TRUE(check(object)) << type << " moved to itself";
  if constexpr (std::is_copy_assignable_v<T>) {
    object = static_cast<const T&>(same);
    EXPECT_TRUE(check(object)) << type << " copied to itself";
  }
  using std::swap;
  swap(object, same);
  EXPECT_TRUE(check(object)) << type << " swapped with itself";
}

class MovedFromTest : public testing::Test {
 protected:
  static Client NewClient() {
    ClientOptions options;
    options.worker_count = 1;
    return Client::Create(options).value();
  }

  // Before all else, as what stands below is made of empty objects, too.
  struct NamedSignals {
    NamedSignals() { Handle(NameTheRow); }
    ~NamedSignals() { Handle(SIG_DFL); }
    static void Handle(void (*handler)(int)) {
      for (const int number : {SIGSEGV, SIGBUS, SIGABRT, SIGALRM}) signal(number, handler);
    }
  } named_signals;

  const std::vector<std::int64_t> dims = {4};
  const Shape shape = Shape(DType::kU8, dims);
  alignas(64) char bytes[64] = {};

  Client client = NewClient();
  Device device = client.devices().at(0);
  MemorySpace space = device.default_memory_space();
  RawBuffer raw = RawBuffer::Allocate(space, 4).value();
  Buffer buffer = Buffer::FromHost(bytes, 4, DType::kU8, dims, space).value();

  Client no_client = Empty(client);
  Device no_device = Empty(device);
  MemorySpace no_space = Empty(space);
  RawBuffer no_raw = Empty(raw);
  Buffer no_buffer = Empty(buffer);
};

}  // namespace purlin

#endif  // PURLIN_TESTS_CPP_MOVED_FROM_FIXTURE_H_

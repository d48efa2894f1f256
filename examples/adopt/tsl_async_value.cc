// Code over tsl::AsyncValue adopts Purlin's events: a step in the middle of a chain is replaced, its neighbours stay.
//
// `before` copies in a closure that waits for a definition event, as XLA's CPU client does. `after` hands the same work
// to Purlin: the event crosses in, the copy is a task that waits for it, and its event crosses out. main runs both,
// with an event that happens and one that fails, and compares.
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "purlin/adapters/tsl_async_value.h"
#include "purlin/purlin.h"
#include "xla/tsl/concurrency/async_value_ref.h"
#include "xla/tsl/concurrency/chain.h"
#include "xla/tsl/concurrency/future.h"

using Bytes = std::vector<char>;

namespace before {

tsl::AsyncValueRef<tsl::Chain> Copy(const tsl::AsyncValueRef<tsl::Chain>& defined, const Bytes& from, Bytes& to) {
  auto copied = tsl::MakeConstructedAsyncValueRef<tsl::Chain>();
  defined.AndThen([copied, &from, &to](absl::Status status) {
    if (!status.ok()) return copied.SetError(std::move(status));
    std::memcpy(to.data(), from.data(), to.size());
    copied.SetStateConcrete();
  });
  return copied;
}

}  // namespace before

namespace after {

tsl::AsyncValueRef<tsl::Chain> Copy(const tsl::AsyncValueRef<tsl::Chain>& defined, const Bytes& from, Bytes& to) {
  static purlin::ThreadPoolAsyncWorkRunner pool = purlin::ThreadPoolAsyncWorkRunner::Create({}).value();
  purlin::EventPromise promise("copied");
  purlin::Event copied = promise.event();
  auto copy = [promise = std::move(promise), &from, &to](const purlin::Status& status) mutable {
    if (status.ok()) std::memcpy(to.data(), from.data(), to.size());
    promise.Set(status);
  };
  // A pool that refuses drops the promise, and `copied` fails with that error, so it is not handled here.
  pool.ScheduleWhenReady({purlin::adapters::FromTsl(defined)}, std::move(copy), "copy").IgnoreError();
  return purlin::adapters::ToTsl(copied);
}

}  // namespace after

template <typename Copy>
std::string Run(Copy copy) {
  std::string text;
  for (const bool fails : {false, true}) {
    const Bytes from = {'b', 'y', 't', 'e', 's', '\0'};
    Bytes to(from.size());
    const auto defined = tsl::MakeConstructedAsyncValueRef<tsl::Chain>();
    const auto copied = copy(defined, from, to);
    fails ? defined.SetError(absl::DataLossError("the input was lost")) : defined.SetStateConcrete();
    tsl::BlockUntilReady(copied.GetAsyncValue());
    text += copied.IsError() ? copied.GetError().ToString() : std::string(to.data());
    text += "; ";
  }
  return text;
}

int main() {
  const std::string was = Run(before::Copy);
  const std::string is = Run(after::Copy);
  std::printf("before: %s\nafter:  %s\n", was.c_str(), is.c_str());
  return was == is ? 0 : 1;
}

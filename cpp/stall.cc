#include "purlin/stall.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "cpp/internal/functions.h"
#include "cpp/internal/handle.h"
#include "cpp/internal/pin.h"
#include "purlin-bridge/src/stall.rs.h"

namespace purlin {
inline namespace v0 {
namespace {

using Sink = std::function<void(std::string_view report)>;

void Tell(void* sink, const char* data, std::size_t size_bytes) {
  (*static_cast<Sink*>(sink))(std::string_view(data, size_bytes));
}

void Destroy(void* sink) { delete static_cast<Sink*>(sink); }

}  // namespace

std::string DumpStalls(std::chrono::nanoseconds older_than) {
  std::string text;
  ffi::dump_stalls_to(older_than.count(), text);
  return text;
}

StatusOr<Watchdog> Watchdog::StartGuarded(WatchdogOptions options) {
  internal::Pin(__builtin_return_address(0));
  auto sink = options.sink ? std::make_unique<Sink>(std::move(options.sink)) : nullptr;
  const internal::StatusRep* error = nullptr;
  internal::WatchdogRep* rep = internal::purlin_watchdog_start(
      options.older_than.count(), static_cast<std::int32_t>(options.action), {sink.release(), &Tell, &Destroy}, &error);
  if (error != nullptr) return Status::FromRep(error);
  return Watchdog(rep);
}

Watchdog::~Watchdog() { internal::GiveUp<ffi::watchdog_stop>(rep_); }

}  // namespace v0
}  // namespace purlin

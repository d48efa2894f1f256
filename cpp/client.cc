#include "purlin/client.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "cpp/internal/convert.h"
#include "cpp/internal/functions.h"
#include "cpp/internal/gone.h"
#include "cpp/internal/handle.h"
#include "cpp/internal/memory_report.h"
#include "cpp/internal/pin.h"
#include "purlin-bridge/src/client.rs.h"
#include "purlin-bridge/src/memory_report.rs.h"

namespace purlin {
inline namespace v0 {
namespace {

using Hook = std::function<bool(const MemoryReport& report)>;

/// `field`, if the caller's struct, which may be older than this file, reaches past it; else the default.
template <typename T>
T Known(const ClientOptions& options, const T& field, const T& fallback) {
  const auto* begin = reinterpret_cast<const char*>(&options);
  const auto* end = reinterpret_cast<const char*>(&field + 1);
  return options.struct_size >= static_cast<std::size_t>(end - begin) ? field : fallback;
}

struct OwnedHook {
  Hook hook;
  internal::MemoryCalls calls;
};

internal::ForeignMemoryHook ToRust(Hook hook, const internal::MemoryCalls& calls) {
  return {hook ? new OwnedHook{std::move(hook), calls} : nullptr,
          [](void* data, const void* report) noexcept {
            const auto* self = static_cast<OwnedHook*>(data);
            return self->calls.ask(self->hook, internal::FromRust(*static_cast<const ffi::MemoryReport*>(report)));
          },
          [](void* data) noexcept { delete static_cast<OwnedHook*>(data); }};
}

struct OwnedAllocator {
  std::shared_ptr<HostMemoryAllocator> allocator;
  internal::MemoryCalls calls;
};

internal::ForeignAllocator ToRust(std::shared_ptr<HostMemoryAllocator> allocator, const internal::MemoryCalls& calls) {
  return {allocator != nullptr ? new OwnedAllocator{std::move(allocator), calls} : nullptr,
          [](void* data, std::size_t size_bytes, std::size_t alignment_bytes) noexcept {
            const auto* self = static_cast<OwnedAllocator*>(data);
            return self->calls.allocate(*self->allocator, size_bytes, alignment_bytes);
          },
          [](void* data, void* address, std::size_t size_bytes, std::size_t alignment_bytes) noexcept {
            const auto* self = static_cast<OwnedAllocator*>(data);
            self->calls.deallocate(*self->allocator, address, size_bytes, alignment_bytes);
          },
          [](void* data) noexcept { delete static_cast<OwnedAllocator*>(data); }};
}

}  // namespace

StatusOr<Client> Client::CreateGuarded(const ClientOptions& options, const internal::MemoryCalls& calls) {
  internal::Pin(__builtin_return_address(0));
  const std::string_view platform = Known(options, options.platform, ClientOptions().platform);
  const std::optional<int> process_index = Known(options, options.process_index, std::optional<int>());
  const std::optional<ShutdownOptions> at_end =
      Known(options, options.shutdown_at_end, std::optional<ShutdownOptions>());
  const ShutdownOptions end = at_end.value_or(ShutdownOptions());
  const internal::RawClientOptions raw = {
      options.struct_size,
      platform.data(),
      platform.size(),
      Known(options, options.memory_limit_bytes, std::size_t{0}),
      options.device_count,
      options.worker_count,
      Known(options, options.check_frozen_memory, false),
      Known(options, options.virtual_devices, false),
      process_index.has_value(),
      process_index.value_or(0),
      at_end.has_value(),
      static_cast<std::uint32_t>(end.mode),
      end.timeout_ns,
      ToRust(Known(options, options.on_out_of_memory, Hook()), calls),
      ToRust(Known(options, options.host_memory_allocator, std::shared_ptr<HostMemoryAllocator>()), calls)};
  const internal::StatusRep* error = nullptr;
  const internal::ClientRep* rep = internal::purlin_client_create(raw, &error);
  return internal::ToStatusOr<Client>(rep, error, [](const internal::ClientRep* made) { return Client(made); });
}

Client::Client(const Client& other) noexcept : Handle(internal::Shared<ffi::client_retain>(other.rep_)) {}

Client::~Client() { internal::GiveUp<ffi::client_release>(rep_); }

std::string_view Client::platform_name() const noexcept {
  if (rep_ == nullptr) return {};
  return internal::FromRust(ffi::client_platform_name(*rep_));
}

std::vector<Device> Client::devices() const {
  if (rep_ == nullptr) return {};

  std::vector<Device> devices;
  const std::size_t count = ffi::client_device_count(*rep_);
  devices.reserve(count);
  for (std::size_t id = 0; id < count; ++id) devices.push_back(LookupDevice(static_cast<int>(id)).value());
  return devices;
}

StatusOr<Device> Client::LookupDevice(int id) const {
  if (rep_ == nullptr) return internal::Gone("Client");

  const internal::StatusRep* error = nullptr;
  const internal::DeviceRep* rep = ffi::client_lookup_device(*rep_, id, error);
  return internal::ToStatusOr<Device>(rep, error);
}

StatusOr<int> Client::process_index() const {
  if (rep_ == nullptr) return internal::Gone("Client");

  const internal::StatusRep* error = nullptr;
  const int index = ffi::client_process_index(*rep_, error);
  if (error != nullptr) return Status::FromRep(error);
  return index;
}

StatusOr<std::vector<std::vector<int>>> Client::GetDefaultDeviceAssignment(std::size_t num_replicas,
                                                                           std::size_t num_partitions) const {
  if (rep_ == nullptr) return internal::Gone("Client");

  const internal::StatusRep* error = nullptr;
  const rust::Vec<std::int32_t> ids = ffi::client_default_device_assignment(*rep_, num_replicas, num_partitions, error);
  if (error != nullptr) return Status::FromRep(error);
  std::vector<std::vector<int>> replicas;
  const std::int32_t* const end = ids.data() + ids.size();
  for (const std::int32_t* id = ids.data(); id != end; id += num_partitions) {
    replicas.emplace_back(id, id + num_partitions);
  }
  return replicas;
}

ThreadPoolAsyncWorkRunner Client::runner() const noexcept {
  if (rep_ == nullptr) return ThreadPoolAsyncWorkRunner(nullptr);

  return ThreadPoolAsyncWorkRunner(ffi::client_runner(*rep_));
}

Status Client::Shutdown(const ShutdownOptions& options) const {
  if (rep_ == nullptr) return internal::Gone("Client");

  return Status::FromRep(ffi::client_shutdown(*rep_, static_cast<std::uint32_t>(options.mode), options.timeout_ns));
}

std::string Client::Describe() const {
  if (rep_ == nullptr) return "(no client)";

  std::string text;
  ffi::client_describe(*rep_, text);
  return text;
}

}  // namespace v0
}  // namespace purlin

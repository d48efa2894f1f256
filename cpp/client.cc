#include "purlin/client.h"

#include <cstddef>

#include "cpp/generated/client.rs.h"
#include "cpp/internal/convert.h"

namespace purlin {
inline namespace v0 {
namespace {

// A field may be read if the caller's struct, which may be older than this file, reaches past it.
constexpr std::size_t kPlatformEndBytes = offsetof(ClientOptions, platform) + sizeof(std::string_view);

std::string_view Platform(const ClientOptions& options) noexcept {
  return options.struct_size >= kPlatformEndBytes ? options.platform : ClientOptions().platform;
}

}  // namespace

StatusOr<Client> Client::Create(const ClientOptions& options) {
  const internal::StatusRep* error = nullptr;
  const internal::ClientRep* rep = ffi::client_create(options.struct_size, options.device_count, options.worker_count,
                                                      internal::ToRust(Platform(options)), error);
  return internal::ToStatusOr<Client>(rep, error, [](const internal::ClientRep* made) { return Client(made); });
}

Client::Client(const Client& other) noexcept : rep_(other.rep_) {
  if (rep_ != nullptr) ffi::client_retain(rep_);
}

Client::~Client() {
  if (rep_ != nullptr) ffi::client_release(rep_);
}

std::string_view Client::platform_name() const noexcept { return internal::FromRust(ffi::client_platform_name(*rep_)); }

std::vector<Device> Client::devices() const {
  std::vector<Device> devices;
  const std::size_t count = ffi::client_device_count(*rep_);
  devices.reserve(count);
  for (std::size_t id = 0; id < count; ++id) devices.push_back(LookupDevice(static_cast<int>(id)).value());
  return devices;
}

StatusOr<Device> Client::LookupDevice(int id) const {
  const internal::StatusRep* error = nullptr;
  const internal::DeviceRep* rep = ffi::client_lookup_device(*rep_, id, error);
  return internal::ToStatusOr<Device>(rep, error);
}

ThreadPoolAsyncWorkRunner Client::runner() const noexcept {
  return ThreadPoolAsyncWorkRunner(ffi::client_runner(*rep_));
}

std::string Client::Describe() const {
  std::string text;
  ffi::client_describe(*rep_, text);
  return text;
}

}  // namespace v0
}  // namespace purlin

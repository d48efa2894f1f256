// Purlin: the root of everything: a backend's devices and the runner that works for them.
//
//   purlin::ClientOptions options;
//   options.device_count = 4;
//   purlin::StatusOr<purlin::Client> client = purlin::Client::Create(options);
#ifndef PURLIN_CLIENT_H_
#define PURLIN_CLIENT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "purlin/device.h"
#include "purlin/executor.h"
#include "purlin/export.h"
#include "purlin/status_or.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace internal {
struct ClientRep;
}  // namespace internal

/// How to make a client.
struct ClientOptions {
  /// For versioning: leave it alone.
  std::size_t struct_size = sizeof(ClientOptions);
  /// Virtual devices, 1..1024.
  int device_count = 1;
  /// Threads of the client's runner, 1..4096; 0 takes what the machine allows (see ThreadPoolOptions).
  int worker_count = 0;
  /// "host": real memory of this machine. "null": keeps books but holds no bytes; for tests and for cloning. "sim": as
  /// devices with streams, on a simulated clock, for tests: copies run late and, where no event orders them, in an
  /// order that the environment variable PURLIN_SIM_SEED (a number, else 0) decides; copies that touch the same bytes
  /// without an event between them, or bring unwritten memory to the host, fail with kFailedPrecondition and name both
  /// places.
  std::string_view platform = "host";
};

/// A handle to a client: one word; copies share it. Buffers, devices and memory spaces keep what they need of it alive;
/// the last reference drains the runner (see ThreadPoolAsyncWorkRunner::Shutdown).
class Client final {
 public:
  /// kInvalidArgument, naming the value: a device or worker count out of range, a struct_size that no version has, or a
  /// PURLIN_SIM_SEED that is no number.
  /// kNotFound, naming the platforms that exist: an unknown platform. kInvalidArgument: PURLIN_SIM_SEED is no number.
  /// kResourceExhausted: threads could not be started.
  PURLIN_API static StatusOr<Client> Create(const ClientOptions& options = ClientOptions());

  /// Shares the client.
  PURLIN_API Client(const Client& other) noexcept;
  /// `other` may only be assigned to or destroyed.
  Client(Client&& other) noexcept : rep_(std::exchange(other.rep_, nullptr)) {}
  /// See the constructors.
  Client& operator=(Client other) noexcept {
    std::swap(rep_, other.rep_);
    return *this;
  }
  PURLIN_API ~Client();

  /// The backend: "host" or "null". Static storage.
  [[nodiscard]] PURLIN_API std::string_view platform_name() const noexcept;
  /// All devices; devices()[i].id() == i.
  [[nodiscard]] PURLIN_API std::vector<Device> devices() const;
  /// Device `id`; kNotFound, naming the count, if there is none.
  [[nodiscard]] PURLIN_API StatusOr<Device> LookupDevice(int id) const;
  /// The pool on which the client's copies run; yours to schedule on.
  [[nodiscard]] PURLIN_API ThreadPoolAsyncWorkRunner runner() const noexcept;
  /// A few lines: platform, devices, memory in use, and why the runner has as many threads as it has.
  [[nodiscard]] PURLIN_API std::string Describe() const;

 private:
  explicit Client(const internal::ClientRep* rep) noexcept : rep_(rep) {}
  const internal::ClientRep* rep_;
};

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_CLIENT_H_

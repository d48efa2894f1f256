// Purlin: a client owns a backend's devices and the runner that works for them.
//
// ```cpp
// purlin::ClientOptions options;
// options.device_count = 4;
// purlin::StatusOr<purlin::Client> client = purlin::Client::Create(options);
// if (!client.ok()) return client.status();
// const purlin::MemorySpace memory = client->devices()[0].default_memory_space();
// return client->Shutdown();  // waits for work in flight
// ```
//
// When memory is so short that small allocations fail, the process ends: SECURITY.md, "When memory is short".
#ifndef PURLIN_CLIENT_H_
#define PURLIN_CLIENT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "purlin/device.h"
#include "purlin/dma.h"
#include "purlin/executor.h"
#include "purlin/export.h"
#include "purlin/host_memory_allocator.h"
#include "purlin/internal/guard.h"
#include "purlin/internal/handle.h"
#include "purlin/internal/memory_calls.h"
#include "purlin/memory_report.h"
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
  /// Devices, 1..1024. Of hardware, 0 takes all; elsewhere devices are virtual, and 0 is an error.
  std::size_t device_count = 1;
  /// Threads of the client's runner, 1..4096; 0 takes what the machine allows (see ThreadPoolOptions).
  std::size_t worker_count = 0;
  /// "host": real memory of this machine. "null": accounts for memory but holds no bytes; for tests, and as a model for
  /// new backends. "sim": devices with streams on a simulated clock, for tests. Its copies run late and, where no event
  /// orders them, in an order that the environment variable PURLIN_SIM_SEED (a number, else 0) decides. Copies that
  /// touch the same bytes without an event between them, or bring unwritten memory to the host, fail with
  /// kFailedPrecondition and name both places. "cuda": NVIDIA's GPUs, by the driver that is found at run time. Without
  /// a driver, with one older than 12.2, without a GPU, or in a static program, it is kUnavailable, with what would
  /// help; in a child made by fork of a process that uses it, kFailedPrecondition.
  std::string_view platform = "host";
  /// The most bytes that each memory space takes from the system; 0: no limit. Memory that is kept for later
  /// allocations counts, and so does rounding (to 64 bytes, more for small allocations), so a space may be full a
  /// little earlier.
  std::size_t memory_limit_bytes = 0;
  /// Called when an allocation with OomPolicy::kRetry finds no memory: frees memory and returns true, or returns false.
  /// Called 1000 times at most for one allocation, on the allocating thread, so on any thread and on several at once,
  /// under no lock of Purlin. An exception from it is reported and counts as false. The client keeps it, so it must not
  /// keep the client.
  std::function<bool(const MemoryReport& report)> on_out_of_memory = nullptr;
  /// Where the memory of every space comes from; null: the system. For platform "host" only.
  std::shared_ptr<HostMemoryAllocator> host_memory_allocator = nullptr;
  /// For debugging: a checksum of host memory that must stay unchanged while it is used (HostBufferSemantics) is taken
  /// at the first and at the last use, and a difference is an error that names the array. The environment variable
  /// PURLIN_CHECK_FROZEN_MEMORY=1 sets this for every client.
  bool check_frozen_memory = false;
  /// The index of this process among those that work together, if it is one of several. It is not guessed: without it,
  /// Client::process_index is an error.
  std::optional<int> process_index = std::nullopt;
  /// What happens to work in flight when the last handle to the client is destroyed. None: it goes on, and keeps the
  /// parts of the client that it needs alive, for ever if an event that it waits for never completes. Otherwise that
  /// handle's destructor does what Client::Shutdown does with these options, and blocks as that does. On a thread of
  /// the client's own runner, or in a waiter of one of its operations, it does not block, and work that has not begun
  /// fails at once with kCancelled.
  std::optional<ShutdownOptions> shutdown_at_end = std::nullopt;
  /// Whether there may be more devices than hardware. Then device d is on GPU number d % n of n, with streams and
  /// memory of its own, in the context that all devices of a GPU share; what breaks a GPU breaks all of its devices.
  /// For tests, and for programs for several devices on a machine with one. Platforms without hardware have virtual
  /// devices anyway.
  bool virtual_devices = false;
};

/// A handle to a client: one word; copies share it. Buffers, devices, memory spaces and work in flight keep the parts
/// of it that they need alive, except under ClientOptions::shutdown_at_end; the last of them drains the runner (see
/// ThreadPoolAsyncWorkRunner::Shutdown). In a child made by fork() a client of the parent behaves as one that has been
/// shut down: statistics and host_pointer() can be read, and every new operation fails with kFailedPrecondition.
class Client final : public internal::Handle<Client, const internal::ClientRep> {
 public:
  /// kInvalidArgument, naming the value: a device or worker count out of range, a negative process_index, a struct_size
  /// that no version has, a host_memory_allocator for another platform, a ShutdownMode that does not exist, or a
  /// PURLIN_SIM_SEED that is no number.
  /// kNotFound, naming the platforms that exist: an unknown platform. kResourceExhausted: threads could not be started.
  /// Call it as Create(options): the parameter `Mode` keeps translation units with and without exceptions apart.
  template <typename Mode = internal::WithExceptions>
  static StatusOr<Client> Create(const ClientOptions& options = ClientOptions()) {
    return CreateGuarded(options, internal::GuardedMemoryCalls<Mode>());
  }

  /// Shares the client.
  PURLIN_API Client(const Client& other) noexcept;
  /// Leaves `other` empty, see purlin.h.
  Client(Client&& other) noexcept = default;
  /// See the constructors.
  Client& operator=(const Client& other) noexcept = default;
  /// See the constructors.
  Client& operator=(Client&& other) noexcept = default;
  PURLIN_API ~Client();

  /// The backend: "host", "null" or "sim". Static storage.
  [[nodiscard]] PURLIN_API std::string_view platform_name() const noexcept;
  /// All devices; devices()[i].id() == i.
  [[nodiscard]] PURLIN_API std::vector<Device> devices() const;
  /// Device `id`; kNotFound, naming the count, if there is none.
  [[nodiscard]] PURLIN_API StatusOr<Device> LookupDevice(int id) const;
  /// The index of this process among those that work together. kFailedPrecondition: the client was made without one.
  [[nodiscard]] PURLIN_API StatusOr<int> process_index() const;
  /// The devices for `num_replicas` replicas of a program in `num_partitions` partitions: for each replica the ids of
  /// its partitions' devices, in the order of the devices. kInvalidArgument, naming the numbers: a number below 1, or
  /// more than there are devices.
  [[nodiscard]] PURLIN_API StatusOr<std::vector<std::vector<int>>> GetDefaultDeviceAssignment(
      std::size_t num_replicas, std::size_t num_partitions) const;
  /// Makes `size_bytes` bytes of host memory at `data` reachable for the hardware, where that is needed (pinning,
  /// registering); copies are faster from and to such memory. The memory must stay until the mapping has ended (dma.h).
  /// kInvalidArgument, naming the range: null, empty, or past the end of the address space. kAlreadyExists: it overlaps
  /// another mapping of this client. Or the backend's error.
  PURLIN_API StatusOr<DmaMapping> DmaMap(const void* data, std::size_t size_bytes) const;
  /// The pool on which the client's copies run; users may schedule tasks on it, too.
  [[nodiscard]] PURLIN_API ThreadPoolAsyncWorkRunner runner() const noexcept;
  /// Ends the client's work, and blocks until that is done; a second call waits for the same. From now on, copies,
  /// allocations and buffers behind events are refused with kFailedPrecondition, "the client has been shut down".
  ///
  /// With ShutdownMode::kDrain, work in flight goes on for the timeout; without one for as long as it takes,
  /// which DumpStalls() shows. Then, or at once with kCancelPending, work that has not begun fails: copies and
  /// allocations behind pending events, memory that is waited for or promised (RawBuffer::CreateChannel), buffers whose
  /// definition event is pending, and events for the end of a buffer's last use (DonationHold::free_event,
  /// Buffer::Release; uses for which no such event was made are not in flight). Their errors, kDeadlineExceeded after
  /// the timeout and else kCancelled, name them and what they waited for; their memory is released, and every on_done
  /// is called once. Then the runner is shut down: it runs its queued tasks, or drops them. Handles stay valid: memory
  /// lives as long as they do, and memory that may be written until an event (Buffer::FromRaw, RawBuffer::RetainUntil,
  /// UsageHold::ReleaseAfter) lives until that event.
  ///
  /// kFailedPrecondition, and nothing happens: on a thread of the client's runner, in a waiter of one of the client's
  /// operations (also of one that a shutdown fails: it ends when that waiter has returned), or in a child made by
  /// fork(). kInvalidArgument, and nothing happens: no such ShutdownMode. kDeadlineExceeded, naming the operations that
  /// have failed for it and those that still run: work was in flight when the timeout was over.
  PURLIN_API Status Shutdown(const ShutdownOptions& options = ShutdownOptions()) const;
  /// A few lines: platform, devices, memory in use, and why the runner has as many threads as it has.
  [[nodiscard]] PURLIN_API std::string Describe() const;

 private:
  using Handle::Handle;

  PURLIN_API static StatusOr<Client> CreateGuarded(const ClientOptions& options, const internal::MemoryCalls& calls);
};

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_CLIENT_H_

// Purlin's adapter for XLA's buffers: one memory under a purlin::Buffer and an xla::PjRtBuffer, no copy, both ways.
//
//   auto argument = purlin::adapters::ToXla(ours, client, space);                // XLA reads Purlin's memory
//   auto results = executable->ExecuteSharded({argument->get()}, device, {});
//   auto ours = purlin::adapters::FromXla(std::move(results->front()), device);  // Purlin reads XLA's
//
// What crosses is the memory and the event that says when its bytes are there, also when that is pending or fails. Each
// side keeps the other's memory, and releases it once: XLA holds an ExternalReference of Purlin's, Purlin one of XLA's.
// So neither side donates or frees what the other reads. ToXlaAllocator includes XLA's own memory in Purlin's
// accounting.
//
// There are no foreign raw buffers here: the executables of XLA's CPU and GPU clients cast what they are given to their
// own class, so what XLA gets is its own object around Purlin's address. Hence the memory must be the host's, and
// aligned as XLA wants it, which everything is that Purlin allocates (docs/adapters.md lists the paths).
//
// Calls block only while a buffer is being donated, which is short. XLA's clients must outlive everything made from
// them, also what Purlin holds. The thread that makes a pending buffer ready holds it until its last waiter has run,
// and may be XLA's own, on which XLA's client must not be destroyed: so keep a reference to the client elsewhere until
// all buffers are gone. For the wheel of tensorflow-cpu 2.21, with NDEBUG as in tsl_async_value.h. XLA's headers need
// RTTI; exceptions are not needed.
//
// When memory is so short that small allocations fail, the process ends: SECURITY.md, "When memory is short".
#ifndef PURLIN_ADAPTERS_XLA_RAW_BUFFER_H_
#define PURLIN_ADAPTERS_XLA_RAW_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "purlin/adapters/absl.h"
#include "purlin/adapters/tsl_async_value.h"
#include "purlin/adapters/xla_types.h"
#include "purlin/alloc_options.h"
#include "purlin/buffer.h"
#include "purlin/buffer_holds.h"
#include "purlin/device.h"
#include "purlin/dtype.h"
#include "purlin/event.h"
#include "purlin/join_events.h"
#include "purlin/label.h"
#include "purlin/layout.h"
#include "purlin/raw_buffer.h"
#include "purlin/raw_buffer_promise.h"
#include "purlin/shape.h"
#include "purlin/source_location.h"
#include "purlin/status.h"
#include "purlin/status_or.h"
#include "purlin/version.h"
#include "xla/layout.h"
#include "xla/pjrt/common_pjrt_client.h"
#include "xla/pjrt/device_event.h"
#include "xla/pjrt/pjrt_client.h"
#include "xla/pjrt/plugin/xla_cpu/cpu_memory.h"
#include "xla/pjrt/raw_buffer.h"
#include "xla/shape.h"
#include "xla/tsl/concurrency/ref_count.h"

namespace purlin {
inline namespace v0 {
namespace adapters {

/// An event that happens or fails as `event` does.
inline Event FromXla(const tsl::RCReference<xla::PjRtDeviceEvent>& event,
                     SourceLocation location = SourceLocation::Current()) {
  return FromTsl(event ? event->async_value() : nullptr, location);
}

/// An event of XLA's that happens or fails as `event` does, on the thread that completes that: of the class that
/// `memory_space` wants. kUnimplemented: `client` is not one of XLA's own, which are xla::CommonPjRtClients.
inline absl::StatusOr<tsl::RCReference<xla::PjRtDeviceEvent>> ToXla(const Event& event, xla::PjRtClient& client,
                                                                    xla::PjRtMemorySpace* memory_space) {
  auto* const common = dynamic_cast<xla::CommonPjRtClient*>(&client);
  if (common == nullptr || memory_space == nullptr)
    return absl::UnimplementedError("events of Purlin need an xla::CommonPjRtClient, and a memory space of it");
  auto linked = common->CreateLinkedEventPromise(memory_space, absl::string_view("purlin::Event"));
  if (!linked.ok()) return std::move(linked).status();
  event.OnReady([promise = std::move(linked->first)](const Status& status) {
    status.ok() ? promise->SetReady() : promise->SetError(ToAbsl(status));
  });
  return std::move(linked->second);
}

namespace internal {

// Where the host finds the memory, or why it does not.
inline absl::StatusOr<void*> HostAddress(const RawBuffer& memory) {
  void* const address = memory.host_pointer();
  if (address != nullptr || memory.on_device_size_bytes() == 0) return address;
  const Event there = memory.allocation_event();
  if (!there.IsReady())
    return absl::FailedPreconditionError(
        "the memory is not there yet, and XLA needs its address: see allocation_event()");
  if (Status error = there.error(); !error.ok()) return ToAbsl(error);
  return absl::UnimplementedError("the host cannot reach memory of " +
                                  std::string(memory.memory_space().device().kind()));
}

// XLA's object around `memory`; `keep` is destroyed when XLA has released the memory, and at once if this fails.
template <typename Keep>
absl::StatusOr<tsl::RCReference<xla::CommonPjRtRawBuffer>> ImportIntoXla(const RawBuffer& memory, bool is_mutable,
                                                                         xla::CommonPjRtClient& client,
                                                                         xla::PjRtMemorySpace* memory_space,
                                                                         Keep keep) {
  if (!client.IsOnCpu(memory_space)) return absl::UnimplementedError("memory of the host for another device of XLA's");
  absl::StatusOr<void*> address = HostAddress(memory);
  if (!address.ok()) return std::move(address).status();
  return client.ImportForeignMemory(
      *address, [keep = std::move(keep)]() mutable { [[maybe_unused]] const Keep released = std::move(keep); },
      memory.on_device_size_bytes(), memory_space, is_mutable);
}

// XLA's shape for an array of Purlin's in that space.
inline absl::StatusOr<xla::Shape> XlaShapeIn(const Buffer& buffer, xla::CommonPjRtClient& client,
                                             xla::PjRtMemorySpace* memory_space) {
  const Shape ours = buffer.shape();
  if (ours.is_dynamic() || ours.dtype() == DType::kToken)
    return absl::UnimplementedError(ours.ToString() +
                                    " does not cross to XLA: dynamic dimensions and tokens are not memory");
  if (memory_space == nullptr || memory_space->client() != &client)
    return absl::InvalidArgumentError("the memory space is null, or another client's");
  absl::StatusOr<xla::Shape> shape = ToXla(ours);
  if (!shape.ok()) return shape;
  const xla::Layout layout = ToXla(buffer.layout());
  shape = client.MakeDefaultShapeForMemorySpace(memory_space, *std::move(shape), &layout);
  if (!shape.ok()) return shape;
  absl::StatusOr<std::int64_t> size = client.GetOnDeviceBytesCount(memory_space, *shape);
  if (!size.ok()) return std::move(size).status();
  if (static_cast<std::size_t>(*size) != buffer.on_device_size_bytes()) {
    return absl::UnimplementedError(ours.ToString() + " has " + std::to_string(buffer.on_device_size_bytes()) +
                                    " bytes here and " + std::to_string(*size) + " in XLA");
  }
  return shape;
}

// XLA's array of that memory, ready after `ready`.
inline absl::StatusOr<std::unique_ptr<xla::PjRtBuffer>> DefineInXla(const xla::Shape& shape, const Event& ready,
                                                                    tsl::RCReference<xla::CommonPjRtRawBuffer> memory,
                                                                    xla::CommonPjRtClient& client,
                                                                    xla::PjRtMemorySpace* memory_space) {
  auto defined = ToXla(ready, client, memory_space);
  if (!defined.ok()) return std::move(defined).status();
  return client.DefineBuffer(shape, memory_space, std::move(memory), {*std::move(defined)});
}

}  // namespace internal

/// XLA's own object around `memory`, which it keeps; may be written where `memory` may. What XLA does with it is
/// ordered by events only. kUnimplemented: `client` is no xla::CommonPjRtClient, `memory_space` is not the host's, or
/// the host cannot reach the memory. kFailedPrecondition: it is not there yet. kInvalidArgument, of XLA: it is not
/// aligned as XLA wants it.
inline absl::StatusOr<tsl::RCReference<xla::CommonPjRtRawBuffer>> ToXla(const RawBuffer& memory,
                                                                        xla::PjRtClient& client,
                                                                        xla::PjRtMemorySpace* memory_space) {
  auto* const common = dynamic_cast<xla::CommonPjRtClient*>(&client);
  if (common == nullptr || memory_space == nullptr)
    return absl::UnimplementedError("memory of Purlin needs an xla::CommonPjRtClient, and a memory space of it");
  return internal::ImportIntoXla(memory, memory.is_mutable(), *common, memory_space, memory);
}

/// An array of XLA's in the memory of `buffer`, in its layout, to be read: where a computation would write into an
/// argument, XLA copies it first. Becomes ready, or fails, with `buffer`. Holds an external reference of it until XLA
/// has released the memory, so that it cannot be donated and its memory outlives Buffer::Delete. With a client that
/// only has the public interface (TensorFlow's, or one behind the C API), it must be ready already.
///
/// The errors of Buffer::AcquireExternalReference. kUnimplemented: a dynamic shape or a token; a device of XLA's that
/// is not the host's processor; memory that the host cannot reach; XLA has another size for that type.
/// kFailedPrecondition: the memory is not there yet, or `buffer` is not ready for such a client. kInvalidArgument:
/// `memory_space` is null or another client's; of XLA: the memory is not aligned as XLA wants it.
inline absl::StatusOr<std::unique_ptr<xla::PjRtBuffer>> ToXla(const Buffer& buffer, xla::PjRtClient& client,
                                                              xla::PjRtMemorySpace* memory_space) {
  StatusOr<ExternalReference> reference = buffer.AcquireExternalReference();
  if (!reference.ok()) return ToAbsl(reference.status());
  const RawBuffer memory = reference->memory();
  const Event ready = reference->ready_event();
  auto* const common = dynamic_cast<xla::CommonPjRtClient*>(&client);
  // What is there needs no event of XLA's. Elements narrower than a byte may have another size in XLA.
  const bool is_view =
      ready.IsReady() && ready.error().ok() && memory.host_pointer() != nullptr && !IsSubByte(buffer.dtype());
  if (common != nullptr && !is_view) {
    absl::StatusOr<xla::Shape> shape = internal::XlaShapeIn(buffer, *common, memory_space);
    if (!shape.ok()) return std::move(shape).status();
    auto raw = internal::ImportIntoXla(memory, /*is_mutable=*/false, *common, memory_space, *std::move(reference));
    if (!raw.ok()) return std::move(raw).status();
    return internal::DefineInXla(*shape, ready, *std::move(raw), *common, memory_space);
  }
  if (common != nullptr && (memory_space == nullptr || memory_space->client() != &client))
    return absl::InvalidArgumentError("the memory space is null, or another client's");
  if (client.platform_name() != "cpu" || memory_space == nullptr)
    return absl::UnimplementedError("memory of the host for another platform of XLA's, or for no memory space of it");
  if (!ready.IsReady())
    return absl::FailedPreconditionError("this client of XLA takes no events: wait for ready_event() first");
  if (Status error = ready.error(); !error.ok()) return ToAbsl(error);
  absl::StatusOr<void*> address = internal::HostAddress(memory);
  if (!address.ok()) return std::move(address).status();
  absl::StatusOr<xla::Shape> shape = ToXla(buffer.shape());
  if (!shape.ok()) return std::move(shape).status();
  if (!shape->IsArray() || shape->is_dynamic())
    return absl::UnimplementedError(shape->ToString() + " does not cross to XLA");
  // XLA has made the row-major one.
  if (const Layout layout = buffer.layout(); shape->layout().minor_to_major() != ToAbsl(layout.minor_to_major()))
    *shape->mutable_layout() = ToXla(layout);
  if (common != nullptr) {
    // As CreateViewOfDeviceBuffer does, whose std::function wants an owner of the reference that can be copied.
    auto raw = internal::ImportIntoXla(memory, /*is_mutable=*/false, *common, memory_space, *std::move(reference));
    if (!raw.ok()) return std::move(raw).status();
    return common->DefineBuffer(*shape, memory_space, *std::move(raw), {});
  }
  const auto shared = std::make_shared<ExternalReference>(*std::move(reference));
  return client.CreateViewOfDeviceBuffer(*address, *shape, memory_space, [shared] { shared->Release(); });
}

/// As ToXla, but XLA owns the array from now on and may write it: a computation that says so puts its result into
/// Purlin's memory. `buffer` is gone for all its references, as after any donation. Becomes ready when `buffer` is
/// ready and no longer used. Purlin still accounts for the memory, and gets it back when XLA has released it. If this
/// fails, `buffer` is as before.
///
/// The errors of Buffer::Donate; kInvalidArgument: the memory may not be written; otherwise as ToXla. kUnimplemented:
/// `client` is no xla::CommonPjRtClient.
inline absl::StatusOr<std::unique_ptr<xla::PjRtBuffer>> DonateToXla(
    const Buffer& buffer, xla::PjRtClient& client, xla::PjRtMemorySpace* memory_space,
    SourceLocation location = SourceLocation::Current()) {
  auto* const common = dynamic_cast<xla::CommonPjRtClient*>(&client);
  if (common == nullptr) return absl::UnimplementedError("a donation to XLA needs an xla::CommonPjRtClient");
  absl::StatusOr<xla::Shape> shape = internal::XlaShapeIn(buffer, *common, memory_space);
  if (!shape.ok()) return std::move(shape).status();
  StatusOr<DonationHold> hold = buffer.Donate(Label("XLA"), location);
  if (!hold.ok()) return ToAbsl(hold.status());
  const RawBuffer memory = hold->memory();
  if (!memory.is_mutable()) return absl::InvalidArgumentError("a donation to XLA of memory that may not be written");
  auto raw = internal::ImportIntoXla(memory, /*is_mutable=*/true, *common, memory_space, memory);
  if (!raw.ok()) return std::move(raw).status();
  const Event ready = WhenAll({hold->ready_event(), hold->free_event()});
  auto defined = internal::DefineInXla(*shape, ready, *std::move(raw), *common, memory_space);
  if (!defined.ok()) return defined;
  if (StatusOr<RawBuffer> confirmed = hold->Confirm(); !confirmed.ok()) return ToAbsl(confirmed.status());
  return defined;
}

/// The memory of XLA's object, which is kept; no memory space accounts for it; may be written where XLA says so. Only
/// events order what Purlin does with it. If the memory is not there yet, as that of a result of a computation, it is
/// there later (RawBuffer::allocation_event). kInvalidArgument: null. kUnimplemented: the host cannot reach it.
/// Otherwise as RawBuffer::Import.
inline StatusOr<RawBuffer> FromXla(tsl::RCReference<xla::CommonPjRtRawBuffer> memory, const MemorySpace& memory_space,
                                   SourceLocation location = SourceLocation::Current()) {
  if (!memory) return InvalidArgumentError("FromXla of a null raw buffer", location);
  const auto import = [location](tsl::RCReference<xla::CommonPjRtRawBuffer> held,
                                 const MemorySpace& space) -> StatusOr<RawBuffer> {
    void* const address = held->GetHostPointer();
    if (address == nullptr) return UnimplementedError("memory of XLA's that the host cannot reach", location);
    const std::size_t size_bytes = held->GetOnDeviceSizeInBytes();
    const Mutability mutability = held->is_mutable() ? Mutability::kMutable : Mutability::kImmutable;
    return RawBuffer::Import(space, address, size_bytes, mutability,
                             [held = std::move(held)]() mutable { held.reset(); });
  };
  // Not MakeAllocationReadyEvent, which on the CPU is ready before the memory is there.
  const auto allocated = memory->GetRawBufferAsyncValue();
  if (!allocated.ok() || (*allocated)->IsConcrete()) return import(std::move(memory), memory_space);
  const Event there = FromTsl(allocated->get(), location);
  AllocOptions options;
  options.label = "xla::PjRtRawBuffer";
  auto channel = RawBuffer::CreateChannel(memory_space, memory->GetOnDeviceSizeInBytes(), options, location);
  if (!channel.ok()) return channel.status();
  there.OnReady([import, promise = std::move(channel->second), memory = std::move(memory),
                 memory_space](const Status& status) mutable {
    StatusOr<RawBuffer> imported = status.ok() ? import(std::move(memory), memory_space) : StatusOr<RawBuffer>(status);
    memory.reset();  // A waiter that sees an error may end XLA's client.
    // A buffer whose client has ended has failed with that already.
    (imported.ok() ? promise.Fulfil(*imported) : promise.Fail(imported.status())).IgnoreError();
  });
  return std::move(channel->first);
}

namespace internal {

// What keeps the memory of an array of XLA's that is ready. The reference is dropped before the array, as XLA requires,
// because members are dropped from the last to the first. The raw buffer keeps the memory if the array is deleted
// meanwhile.
struct HeldOfXla {
  std::shared_ptr<xla::PjRtBuffer> buffer;
  std::unique_ptr<xla::PjRtBuffer::ExternalReference> reference;
  tsl::RCReference<xla::PjRtRawBuffer> memory;
};

inline StatusOr<RawBuffer> ImportReadyXla(std::shared_ptr<xla::PjRtBuffer> buffer, std::size_t size_bytes,
                                          const MemorySpace& memory_space, SourceLocation location) {
  auto reference = buffer->AcquireExternalReference();
  if (!reference.ok()) return FromAbsl(reference.status(), location);
  if (size_bytes == 0) return RawBuffer::Allocate(memory_space, 0, AllocOptions(), location);
  void* const address = (*reference)->OpaqueDeviceMemoryDataPointer();
  HeldOfXla held{std::move(buffer), *std::move(reference), {}};
  if (auto raw = xla::PjRtRawBuffer::CreateRawAliasOfBuffer(held.buffer.get()); raw.ok()) held.memory = *std::move(raw);
  return RawBuffer::Import(
      memory_space, address, size_bytes, Mutability::kImmutable,
      [held = std::move(held)]() mutable { [[maybe_unused]] const HeldOfXla released = std::move(held); });
}

}  // namespace internal

/// An array of Purlin's in the memory of `buffer`, in its layout, to be read. Becomes ready, or fails, with it; if it
/// is pending, an error of XLA at that time is the array's error. Keeps `buffer`, and an external reference of it once
/// it is ready, until the last use; Purlin's handles stay valid when XLA's side deletes it. Released on the thread that
/// ends the last use of the memory. No memory space accounts for it. kInvalidArgument: null. kUnimplemented: not in
/// memory of the host; a dynamic shape, a tuple, a layout with tiles, a type that Purlin has not. Otherwise as
/// RawBuffer::Import, or XLA's error: deleted or donated.
inline StatusOr<Buffer> FromXla(std::shared_ptr<xla::PjRtBuffer> buffer, const MemorySpace& memory_space,
                                SourceLocation location = SourceLocation::Current()) {
  if (buffer == nullptr) return InvalidArgumentError("FromXla of a null buffer", location);
  const xla::Shape& theirs = buffer->on_device_shape();
  StatusOr<Shape> shape = FromXla(theirs, location);
  if (!shape.ok()) return shape.status();
  if (!buffer->IsOnCpu() || shape->is_dynamic() || !theirs.IsArray())
    return UnimplementedError("no memory of the host, or of no fixed shape: " + theirs.ToString(), location);
  StatusOr<Layout> layout = FromXla(theirs.layout(), location);
  if (!layout.ok()) return layout.status();
  StatusOr<std::size_t> size_bytes = FromAbsl(buffer->GetOnDeviceSizeInBytes(), location);
  if (!size_bytes.ok()) return size_bytes.status();
  xla::Future<> ready = buffer->GetReadyFuture();
  if (ready.IsReady()) {
    if (absl::Status error = ready.Await(); !error.ok()) {
      if (buffer->IsDeleted()) return FromAbsl(error, location);
      return Buffer::CreateError(FromAbsl(error, location), *shape, memory_space);
    }
    StatusOr<RawBuffer> memory = internal::ImportReadyXla(std::move(buffer), *size_bytes, memory_space, location);
    if (!memory.ok()) return memory.status();
    return Buffer::FromRaw(*memory, *shape, &*layout);
  }
  AllocOptions options;
  options.label = "xla::PjRtBuffer";
  auto channel = RawBuffer::CreateChannel(memory_space, *size_bytes, options, location);
  if (!channel.ok()) return channel.status();
  ready.OnReady([promise = std::move(channel->second), buffer = std::move(buffer), size_bytes = *size_bytes,
                 memory_space, location](const absl::Status& status) mutable {
    StatusOr<RawBuffer> memory = status.ok()
                                     ? internal::ImportReadyXla(std::move(buffer), size_bytes, memory_space, location)
                                     : StatusOr<RawBuffer>(FromAbsl(status, location));
    buffer.reset();  // A waiter that sees an error may end XLA's client.
    // A buffer whose client has ended has failed with that already.
    (memory.ok() ? promise.Fulfil(*memory) : promise.Fail(memory.status())).IgnoreError();
  });
  return Buffer::FromRaw(channel->first, *shape, &*layout);
}

namespace internal {

class XlaMemory final : public xla::CpuMemory {
 public:
  explicit XlaMemory(RawBuffer memory) : memory_(std::move(memory)) {}
  void* base() const override { return memory_.host_pointer(); }
  std::size_t size_bytes() const override { return memory_.on_device_size_bytes(); }

 private:
  const RawBuffer memory_;
};

}  // namespace internal

/// For xla::CpuClientOptions::allocator: what XLA's CPU client allocates, arrays and the temporary memory of
/// computations, comes from `memory_space`, with its limit, its cache and its reports, which name `location`. When
/// there is no room, the hook of Purlin's client is called (OomPolicy::kRetry), and then XLA gets kResourceExhausted
/// with the report as a payload.
template <typename AbslStatus = absl::Status>
std::function<absl::StatusOr<std::unique_ptr<xla::CpuMemory>>(std::size_t, std::size_t)> ToXlaAllocator(
    const MemorySpace& memory_space, SourceLocation location = SourceLocation::Current()) {
  return [memory_space, location](std::size_t size_bytes,
                                  std::size_t alignment_bytes) -> absl::StatusOr<std::unique_ptr<xla::CpuMemory>> {
    AllocOptions options;
    options.label = "XLA";
    options.alignment_bytes = alignment_bytes;
    options.oom = OomPolicy::kRetry;
    StatusOr<RawBuffer> memory = RawBuffer::Allocate(memory_space, size_bytes, options, location);
    if (!memory.ok()) return ToAbsl<AbslStatus>(memory.status());
    if (auto address = internal::HostAddress(*memory); !address.ok()) return std::move(address).status();
    return std::make_unique<internal::XlaMemory>(*std::move(memory));
  };
}

}  // namespace adapters
}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_ADAPTERS_XLA_RAW_BUFFER_H_

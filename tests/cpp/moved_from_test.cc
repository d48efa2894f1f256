// Every public class, every method, on an empty object: moved from, released, given away. The rule is in
// purlin/purlin.h: an error or the empty answer, never a crash. A row that crashes or hangs is named. .ci/check/empty
// looks that no class and no method is missing.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "purlin/adapters/pjrt_tables.h"
#include "purlin/compat/tsl.h"
#include "purlin/purlin.h"
#include "tests/cpp/moved_from_fixture.h"
#include "tests/cpp/testing.h"

namespace purlin {
namespace {

using std::chrono::nanoseconds;

TEST_F(MovedFromTest, ClientsAndDevices) {
  IS(Client, platform_name, no_client.platform_name().empty());
  IS(Client, devices, no_client.devices().empty());
  FAILS(Client, LookupDevice, no_client.LookupDevice(0));
  FAILS(Client, process_index, no_client.process_index());
  FAILS(Client, GetDefaultDeviceAssignment, no_client.GetDefaultDeviceAssignment(1, 1));
  FAILS(Client, DmaMap, no_client.DmaMap(bytes, 64));
  FAILS(Client, runner, no_client.runner().Schedule([] {}));
  FAILS(Client, Shutdown, no_client.Shutdown());
  NOTHING(Client, Describe, static_cast<void>(no_client.Describe()));
  IS(Device, id, no_device.id() == -1);
  IS(Device, kind, no_device.kind().empty());
  IS(Device, local_hardware_id, no_device.local_hardware_id() == -1);
  IS(Device, attributes, no_device.attributes().empty());
  IS(Device, memory_spaces, no_device.memory_spaces().empty());
  IS(Device, default_memory_space, no_device.default_memory_space() == no_space);
  FAILS(Device, memory_space, no_device.memory_space("device"));
  NOTHING(Device, DebugString, static_cast<void>(no_device.DebugString()));
  IS(Device, operator, no_device == no_device && no_device != device && device != no_device);
  IS(MemorySpace, id, no_space.id() == -1);
  IS(MemorySpace, kind, no_space.kind().empty());
  IS(MemorySpace, device, no_space.device() == no_device);
  IS(MemorySpace, alignment_bytes, no_space.alignment_bytes() == 0);
  IS(MemorySpace, Stats, no_space.Stats().num_allocs == 0);
  IS(MemorySpace, Report, no_space.Report().holders.empty());
  NOTHING(MemorySpace, Trim, no_space.Trim());
  NOTHING(MemorySpace, ClearPeakMemoryUsage, no_space.ClearPeakMemoryUsage());
  NOTHING(MemorySpace, DebugString, static_cast<void>(no_space.DebugString()));
  IS(MemorySpace, operator, no_space == no_space && no_space != space && space != no_space);
  const DmaMapping unmapped = Empty(client.DmaMap(bytes, 64).value());
  IS(DmaMapping, data, unmapped.data() == nullptr);
  IS(DmaMapping, size_bytes, unmapped.size_bytes() == 0);
  IS(DmaMapping, in_flight, unmapped.in_flight() == 0);
  FAILS(DmaMapping, Unmap, Empty(client.DmaMap(bytes, 64).value()).Unmap());
  FAILS(MemorySpace, ReadNpy, ReadNpy("/nonexistent", no_space));
  FAILS(Buffer, WriteNpy, WriteNpy("/nonexistent/x", no_buffer));
  FAILS(Buffer, WriteSafetensors, WriteSafetensors("/nonexistent/x", {NamedBuffer{"a", no_buffer}}));
  FAILS(Buffer, ToDLPack, ToDLPack(no_buffer));
  FAILS(Buffer, ToDLPack, ToDLPack(no_buffer, 1));
  const std::string path = testing::TempDir() + "moved_from_test." + std::to_string(getpid()) + ".safetensors";
  ASSERT_TRUE(WriteSafetensors(path, {NamedBuffer{"a", buffer}}).ok());
  const SafetensorsFile open = SafetensorsFile::Open(path).value();
  const SafetensorsFile none = Empty(SafetensorsFile(open));
  unlink(path.c_str());
  IS(SafetensorsFile, entries, none.entries().empty());
  IS(SafetensorsFile, metadata, none.metadata().empty());
  FAILS(SafetensorsFile, Read, none.Read("a", space));
  FAILS(SafetensorsFile, Read, open.Read("a", no_space));
  ToItself("SafetensorsFile", open, [](auto& x) { return x.entries().size() == 1; });
  FAILS(MemorySpace, FromDLPack, FromDLPack(nullptr, no_space));
  FAILS(MemorySpace, FromDLPack, FromDLPack(nullptr, no_space, 1));
}

TEST_F(MovedFromTest, RawBuffers) {
  const Event past[1] = {Event()};
  FAILS(RawBuffer, Allocate, RawBuffer::Allocate(no_space, 4));
  FAILS(RawBuffer, Import, RawBuffer::Import(no_space, bytes, 64, Mutability::kMutable, [] { std::abort(); }));
  FAILS(RawBuffer, Import, RawBuffer::Import(no_space, bytes, 64, Mutability::kMutable));
  FAILS(RawBuffer, CreateChannel, RawBuffer::CreateChannel(no_space, 4));
  IS(RawBuffer, on_device_size_bytes, no_raw.on_device_size_bytes() == 0);
  IS(RawBuffer, memory_space, no_raw.memory_space() == no_space);
  FAILS(RawBuffer, allocation_event, no_raw.allocation_event());
  IS(RawBuffer, is_mutable, !no_raw.is_mutable());
  IS(RawBuffer, host_pointer, no_raw.host_pointer() == nullptr);
  FAILS(RawBuffer, device_pointer, no_raw.device_pointer());
  FAILS(RawBuffer, Slice, no_raw.Slice(0, 0));
  FAILS(RawBuffer, Slices, no_raw.Slices({ByteRange()}));
  NOTHING(RawBuffer, RetainUntil, no_raw.RetainUntil(Event()));
  FAILS(RawBuffer, CopyFromHost, no_raw.CopyFromHost(bytes, 0, 4, past));
  FAILS(RawBuffer, CopyToHost, no_raw.CopyToHost(bytes, 0, 4, past));
  FAILS(RawBuffer, CopyTo, no_raw.CopyTo(raw));
  FAILS(RawBuffer, CopyTo, raw.CopyTo(no_raw));
  FAILS(RawBuffer, CopyRangeTo, no_raw.CopyRangeTo(0, raw, 0, 4));
  FAILS(RawBuffer, CopyRangeTo, raw.CopyRangeTo(0, no_raw, 0, 4));
  IS(RawBuffer, ToPjrt, adapters::ToPjrt(no_raw, nullptr) == nullptr);
  FAILS(RawBufferPromise, Fulfil, Empty(std::move(RawBuffer::CreateChannel(space, 4)->second)).Fulfil(raw));
  FAILS(RawBufferPromise, Fulfil, RawBuffer::CreateChannel(space, 4)->second.Fulfil(no_raw));
  FAILS(RawBufferPromise, Allocate, Empty(std::move(RawBuffer::CreateChannel(space, 4)->second)).Allocate());
  FAILS(RawBufferPromise, Fail, Empty(std::move(RawBuffer::CreateChannel(space, 4)->second)).Fail(AbortedError("x")));
}

TEST_F(MovedFromTest, Buffers) {
  using Strides = std::vector<std::int64_t>;
  FAILS(Buffer, FromHost, Buffer::FromHost(bytes, 4, DType::kU8, dims, no_space));
  FAILS(Buffer, FromHost, Buffer::FromHost(bytes, DType::kU8, dims, no_space, FromHostOptions()));
  TELLS(Buffer, FromHost,
        Buffer::FromHost(bytes, DType::kU8, dims, no_space, FromHostOptions(),
                         [&](Status status) {
                           ++told.times;
                           told.status = std::move(status);
                         })
            .status()
            .IgnoreError());
  TELLS(Buffer, FromHostShards, ([&] {
          HostShard shard{bytes, DType::kU8, dims, no_space};
          shard.on_done = [&told](Status status) {
            ++told.times;
            told.status = std::move(status);
          };
          Buffer::FromHostShards({HostShard{bytes, DType::kU8, dims, space}, shard}).status().IgnoreError();
        }()));
  FAILS(Buffer, CreateUninitialized, Buffer::CreateUninitialized(shape, no_space));
  FAILS(Buffer, CreateError, Buffer::CreateError(AbortedError("x"), shape, no_space));
  FAILS(Buffer, CreateToken, Buffer::CreateToken(no_space));
  FAILS(Buffer, FromRaw, Buffer::FromRaw(no_raw, shape));
  FAILS(Buffer, CreateChannel, Buffer::CreateChannel(shape, no_space));
  IS(Buffer, dtype, no_buffer.dtype() == DType::kInvalid);
  IS(Buffer, dims, no_buffer.dims().empty());
  IS(Buffer, shape, no_buffer.shape() == Shape(DType::kInvalid));
  IS(Buffer, layout, no_buffer.layout().rank() == 0);
  IS(Buffer, on_device_size_bytes, no_buffer.on_device_size_bytes() == 0);
  IS(Buffer, memory_space, no_buffer.memory_space() == no_space);
  IS(Buffer, device, no_buffer.device() == no_device);
  FAILS(Buffer, logical_dims, no_buffer.logical_dims());
  FAILS(Buffer, ready_event, no_buffer.ready_event());
  FAILS(Buffer, CopyToHost, no_buffer.CopyToHost(bytes, 4));
  FAILS(Buffer, CopyToHostStrided, no_buffer.CopyToHostStrided(bytes, Strides{1}));
  FAILS(Buffer, CopyRawToHost, no_buffer.CopyRawToHost(bytes, 0, 4));
  FAILS(Buffer, CopyRawToHostWhen, no_buffer.CopyRawToHostWhen(Future<void*>(static_cast<void*>(bytes)), 0, 4));
  FAILS(Buffer, CopyRawToHostWhen, buffer.CopyRawToHostWhen(Future<void*>(), 0, 4));
  FAILS(Buffer, CopyToDevice, no_buffer.CopyToDevice(device));
  FAILS(Buffer, CopyToDevice, buffer.CopyToDevice(no_device));
  FAILS(Buffer, CopyToMemorySpace, no_buffer.CopyToMemorySpace(space));
  FAILS(Buffer, CopyToMemorySpace, buffer.CopyToMemorySpace(no_space));
  FAILS(Buffer, CopyInto, no_buffer.CopyInto(buffer));
  FAILS(Buffer, CopyInto, buffer.CopyInto(no_buffer));
  FAILS(Buffer, RawAlias, no_buffer.RawAlias());
  FAILS(Buffer, AcquireUsageHold, no_buffer.AcquireUsageHold());
  FAILS(Buffer, TryAcquireUsageHold, no_buffer.TryAcquireUsageHold());
  FAILS(Buffer, AcquireExternalReference, no_buffer.AcquireExternalReference());
  FAILS(Buffer, Donate, no_buffer.Donate("x"));
  FAILS(Buffer, TryDonate, no_buffer.TryDonate("x"));
  IS(Buffer, hold_counts, no_buffer.hold_counts().usage == 0 && no_buffer.hold_counts().external == 0);
  FAILS(Buffer, DonateAfter, no_buffer.DonateAfter(Event()));
  FAILS(Buffer, Bitcast, no_buffer.Bitcast(shape));
  NOTHING(Buffer, Delete, no_buffer.Delete());
  IS(Buffer, Release, !no_buffer.Release().has_value());
  FAILS(Buffer, ReleaseDeviceMemoryOwnership, no_buffer.ReleaseDeviceMemoryOwnership(true));
  IS(Buffer, IsDeleted, no_buffer.IsDeleted());
  const auto promise = [this] { return std::move(Buffer::CreateChannel(shape, space)->second); };
  FAILS(BufferPromise, Fulfil, Empty(promise()).Fulfil(buffer));
  FAILS(BufferPromise, Fulfil, promise().Fulfil(no_buffer));
  FAILS(BufferPromise, Fail, Empty(promise()).Fail(AbortedError("x")));
}

TEST_F(MovedFromTest, Holds) {
  UsageHold usage = Empty(buffer.AcquireUsageHold().value());
  IS(UsageHold, memory, usage.memory().on_device_size_bytes() == 0);
  FAILS(UsageHold, ready_event, usage.ready_event());
  NOTHING(UsageHold, Release, usage.Release());
  NOTHING(UsageHold, ReleaseAfter, usage.ReleaseAfter(Event()));
  ExternalReference external = Empty(buffer.AcquireExternalReference().value());
  IS(ExternalReference, memory, external.memory().host_pointer() == nullptr);
  FAILS(ExternalReference, ready_event, external.ready_event());
  NOTHING(ExternalReference, Release, external.Release());
  DonationHold donation = Empty(Buffer(buffer).CopyToMemorySpace(space)->Donate("x").value());
  IS(DonationHold, memory, donation.memory().on_device_size_bytes() == 0);
  FAILS(DonationHold, ready_event, donation.ready_event());
  FAILS(DonationHold, free_event, donation.free_event());
  FAILS(DonationHold, Confirm, donation.Confirm());
  NOTHING(DonationHold, Release, donation.Release());
  // Released, not moved from.
  UsageHold released = buffer.AcquireUsageHold().value();
  released.Release();
  IS(UsageHold, memory, released.memory().on_device_size_bytes() == 0);
  FAILS(UsageHold, ready_event, released.ready_event());
  DonationHold confirmed = buffer.CopyToMemorySpace(space)->Donate("x").value();
  ASSERT_TRUE(confirmed.Confirm().ok());
  FAILS(DonationHold, ready_event, confirmed.ready_event());
  FAILS(DonationHold, Confirm, confirmed.Confirm());
}

TEST_F(MovedFromTest, StagingAndTransfers) {
  StagingOptions options;
  options.lease_bytes = 64;
  options.lease_count = 4;
  const StagingPool pool = StagingPool::Create(space, options).value();
  const StagingPool none = Empty(StagingPool(pool));
  const auto tell = [](CallbackLog& told) {
    return [&told](StatusOr<StagingLease> lease) {
      ++told.times;
      told.status = std::move(lease).status();
    };
  };
  FAILS(StagingPool, Create, StagingPool::Create(no_space));
  IS(StagingPool, lease_bytes, none.lease_bytes() == 0);
  IS(StagingPool, lease_count, none.lease_count() == 0);
  IS(StagingPool, free_count, none.free_count() == 0);
  IS(StagingPool, memory_space, none.memory_space() == no_space);
  FAILS(StagingPool, TryAcquire, none.TryAcquire());
  FAILS(StagingPool, Acquire, none.Acquire());
  TELLS(StagingPool, AcquireAsync, none.AcquireAsync(tell(told)));
  StagingLease lease = Empty(pool.TryAcquire().value());
  IS(StagingLease, data, lease.data() == nullptr && std::as_const(lease).data() == nullptr);
  IS(StagingLease, size_bytes, lease.size_bytes() == 0);
  IS(StagingLease, memory, lease.memory().on_device_size_bytes() == 0);
  NOTHING(StagingLease, Release, lease.Release());
  const StagedPiece piece = Empty(StagedPiece(pool.TryAcquire().value(), 0, 4, true));
  IS(StagedPiece, offset_bytes, piece.offset_bytes() == 0);
  IS(StagedPiece, size_bytes, piece.size_bytes() == 0);
  NOTHING(StagedPiece, is_last, static_cast<void>(piece.is_last()));
  IS(StagedPiece, data, piece.data() == nullptr);
  IS(StagedPiece, TakeLease, Empty(StagedPiece(pool.TryAcquire().value(), 0, 4, true)).data() == nullptr);
  StagingCopier copier = Empty(StagingCopier(pool));
  StagingCopier of_no_pool(none);
  StagingCopier alive(pool);
  const auto ignore = [](const StatusOr<StagedPiece>&) {};
  FAILS(StagingCopier, Read, copier.Read(raw, ignore));
  FAILS(StagingCopier, Read, of_no_pool.Read(raw, ignore));
  FAILS(StagingCopier, Read, alive.Read(no_raw, ignore));
  FAILS(StagingCopier, ReadBuffer, copier.ReadBuffer(buffer, ignore));
  FAILS(StagingCopier, ReadBuffer, alive.ReadBuffer(no_buffer, ignore));
  StagingSink sink = Empty(std::move(StagingSink::Create(raw).first));
  FAILS(StagingSink, Create, StagingSink::Create(no_raw).second);
  FAILS(StagingSink, Put, sink.Put(0, 4, std::move(lease)));
  FAILS(StagingSink, Poison, sink.Poison(AbortedError("x")));
  IS(StagingSink, begun_bytes, sink.begun_bytes() == 0);

  using Manager = AsyncHostToDeviceTransferManager;
  const std::vector<TransferSpec> specs = {TransferSpec{shape}};
  Manager manager = Empty(Manager::Create(specs, space).value());
  const auto hear = [](CallbackLog& told) {
    return [&told](Status status) {
      ++told.times;
      told.status = std::move(status);
    };
  };
  using Type = AsyncHostToDeviceTransferManager;
  static_cast<void>(sizeof(Type));
  FAILS(AsyncHostToDeviceTransferManager, Create, Manager::Create(specs, no_space));
  IS(AsyncHostToDeviceTransferManager, buffer_count, manager.buffer_count() == 0);
  IS(AsyncHostToDeviceTransferManager, memory_space, manager.memory_space() == no_space);
  IS(AsyncHostToDeviceTransferManager, device, manager.device() == no_device);
  FAILS(AsyncHostToDeviceTransferManager, buffer_size, manager.buffer_size(0));
  FAILS(AsyncHostToDeviceTransferManager, RetrieveBuffer, manager.RetrieveBuffer(0));
  FAILS(AsyncHostToDeviceTransferManager, TransferArrayToBuffer,
        manager.TransferArrayToBuffer(0, bytes, DType::kU8, dims));
  TELLS(AsyncHostToDeviceTransferManager, TransferArrayToBuffer,
        manager.TransferArrayToBuffer(0, bytes, DType::kU8, dims, std::nullopt, hear(told)).IgnoreError());
  FAILS(AsyncHostToDeviceTransferManager, TransferRawDataToBuffer, manager.TransferRawDataToBuffer(0, bytes, 4));
  TELLS(AsyncHostToDeviceTransferManager, TransferRawDataToBuffer,
        manager.TransferRawDataToBuffer(0, bytes, 4, hear(told)).IgnoreError());
  FAILS(AsyncHostToDeviceTransferManager, TransferRawDataToSubBuffer,
        manager.TransferRawDataToSubBuffer(0, bytes, 0, 4, true));
  TELLS(AsyncHostToDeviceTransferManager, TransferRawDataToSubBuffer,
        manager.TransferRawDataToSubBuffer(0, bytes, 0, 4, true, hear(told)).IgnoreError());
  FAILS(AsyncHostToDeviceTransferManager, SetBufferError, manager.SetBufferError(0, AbortedError("x")));
  NOTHING(AsyncHostToDeviceTransferManager, AddTransferMetadata, manager.AddTransferMetadata("a", "b"));
  IS(AsyncHostToDeviceTransferManager, transfer_metadata, manager.transfer_metadata().empty());
  FAILS(AsyncHostToDeviceTransferManager, ready_event, manager.ready_event());
}

TEST_F(MovedFromTest, Work) {
  ThreadPoolOptions one;
  one.thread_count = 1;
  ThreadPoolAsyncWorkRunner alive = ThreadPoolAsyncWorkRunner::Create(one).value();
  ThreadPoolAsyncWorkRunner pool = Empty(ThreadPoolAsyncWorkRunner(alive));
  const auto task = [] { return Task([] { std::abort(); }); };
  FAILS(ThreadPoolAsyncWorkRunner, Execute, pool.Execute(task()));
  FAILS(ThreadPoolAsyncWorkRunner, ExecuteWith, pool.ExecuteWith(task(), TaskOptions()));
  FAILS(ThreadPoolAsyncWorkRunner, ExecuteWhenReady, pool.ExecuteWhenReady({Event()}, task()));
  FAILS(ThreadPoolAsyncWorkRunner, ParallelForRanges, pool.ParallelFor(4, Grain(1), [](std::size_t, std::size_t) {}));
  IS(ThreadPoolAsyncWorkRunner, NumThreads, pool.NumThreads() == 0);
  IS(ThreadPoolAsyncWorkRunner, CurrentThreadId, !pool.CurrentThreadId().has_value());
  FAILS(ThreadPoolAsyncWorkRunner, ParallelForWithWorkerId,
        pool.ParallelForWithWorkerId(4, [](std::size_t, std::size_t, std::size_t) {}));
  NOTHING(ThreadPoolAsyncWorkRunner, Describe, static_cast<void>(pool.Describe()));
  FAILS(ThreadPoolAsyncWorkRunner, Join, pool.Join([] {}, [] {}));
  FAILS(ThreadPoolAsyncWorkRunner, JoinCalls, pool.JoinCalls(nullptr, nullptr, nullptr, nullptr));
  FAILS(ThreadPoolAsyncWorkRunner, Shutdown, pool.Shutdown());
  FAILS(AsyncWorkRunner, Schedule, pool.Schedule([] { std::abort(); }));
  FAILS(AsyncWorkRunner, ScheduleWhenReady, pool.ScheduleWhenReady({Event()}, [](const Status&) { std::abort(); }));
  FAILS(AsyncWorkRunner, ParallelFor, pool.ParallelFor(4, Grain(1), [](std::size_t, std::size_t) {}));
  FAILS(AsyncWorkRunner, ExecuteWhenReady, pool.ExecuteWhenReady({}, task()));
  FAILS(AsyncWorkRunner, ParallelForRanges, pool.ParallelForRanges(0, 0, nullptr, nullptr));
  FAILS(Executor, Execute, static_cast<Executor&>(pool).Execute(task()));
  FAILS(Executor, ExecuteWith, static_cast<Executor&>(pool).ExecuteWith(task(), TaskOptions()));
  ElasticPool elastic = Empty(ElasticPool::Create({}).value());
  FAILS(ElasticPool, Execute, elastic.Execute(task()));
  FAILS(ElasticPool, Schedule, elastic.Schedule([] { std::abort(); }));
  IS(ElasticPool, NumThreads, elastic.NumThreads() == 0);
  IS(ElasticPool, NumIdle, elastic.NumIdle() == 0);
  FAILS(ElasticPool, Shutdown, elastic.Shutdown());
  FAILS(ElasticPool, ShutdownCancelPending, elastic.ShutdownCancelPending());
  FAILS(ElasticPool, ShutdownBy, elastic.ShutdownBy(std::chrono::steady_clock::now()));
  for (SerialQueue queue : {Empty(SerialQueue(alive)), SerialQueue(pool)}) {
    FAILS(SerialQueue, Execute, queue.Execute(task()));
    FAILS(SerialQueue, Schedule, queue.Schedule([] { std::abort(); }));
    FAILS(SerialQueue, Drained, queue.Drained());
    FAILS(SerialQueue, Drain, queue.Drain());
    FAILS(SerialQueue, Shutdown, queue.Shutdown());
    IS(SerialQueue, HasBacklog, !queue.HasBacklog());
    NOTHING(SerialQueue, Close, queue.Close());
    IS(SerialQueue, CancelPending, queue.CancelPending() == 0);
  }
  FAILS(SerialQueue, Create, SerialQueue::Create(std::make_shared<ThreadPoolAsyncWorkRunner>(pool))->Execute(task()));
  const auto refused = [](const Status& status) { return IsInvalidArgument(status); };
  IS(Task, Run, (Empty(task()).Release() == nullptr));
  IS(Task, Run, (std::move(*std::make_unique<Task>(Empty(task()))).Run(), true));
  IS(InlineExecutor, Execute, refused(InlineExecutor().Execute(Empty(task()))));
  IS(ThreadPoolAsyncWorkRunner, Execute, refused(alive.Execute(Empty(task()))));
  const Semaphore semaphore = Empty(Semaphore("s", 1));
  IS(Semaphore, capacity, semaphore.capacity() == 0);
  IS(Semaphore, available, semaphore.available() == 0);
  IS(Semaphore, waiting, semaphore.waiting() == 0);
  FAILS(Semaphore, TryAcquire, semaphore.TryAcquire(1));
  FAILS(Semaphore, Acquire, semaphore.Acquire(1));
  FAILS(Semaphore, AcquireFor, semaphore.AcquireFor(1, nanoseconds(1)));
  TELLS(Semaphore, AcquireAsync, semaphore.AcquireAsync(1, [&](const StatusOr<Permit>& permit) {
    ++told.times;
    told.status = permit.status();
  }));
  NOTHING(Semaphore, Close, semaphore.Close());
  Permit permit = Empty(Semaphore("s", 1).TryAcquire(1).value());
  IS(Permit, amount, permit.amount() == 0);
  NOTHING(Permit, Release, permit.Release());
  Timer timer = Empty(Timer::After(std::chrono::hours(1)));
  IS(Timer, event, timer.event().IsReady());
  IS(Timer, Cancel, !timer.Cancel());
  NOTHING(Timer, Detach, timer.Detach());
  const CancelSource source = Empty(CancelSource());
  IS(CancelSource, token, source.token().IsRetired());
  IS(CancelSource, Cancel, !source.Cancel());
  const CancelToken token = Empty(CancelSource().token());
  IS(CancelToken, IsCancelled, !token.IsCancelled());
  IS(CancelToken, IsRetired, token.IsRetired());
  IS(CancelToken, status, token.status().ok());
  FAILS(CancelToken, event, token.event());
  NOTHING(CancelToken, OnCancel, static_cast<void>(token.OnCancel([] { std::abort(); })));
  IS(CancelRegistration, Unregister, !Empty(CancelSource().token().OnCancel([] {})).Unregister());
  WatchdogOptions quiet;
  quiet.sink = [](std::string_view) {};
  NOTHING(Watchdog, Watchdog, static_cast<void>(Empty(Watchdog::Start(quiet).value())));
}

TEST_F(MovedFromTest, Events) {
  const Event event = Empty(EventPromise("e").event());
  IS(Event, IsReady, event.IsReady());
  IS(Event, state, event.state() == EventState::kReady);
  IS(Event, error, event.error().ok());
  IS(Event, label, event.label().empty());
  IS(Event, location, event.location().line() == 0);
  IS(Event, definition_stream, !event.definition_stream().has_value());
  IS(Event, HasWaiters, !event.HasWaiters());
  IS(Event, NumRef, event.NumRef() == 0);
  IS(Event, Wait, event.Wait().ok());
  IS(Event, WaitFor, event.WaitFor(nanoseconds(-1)).ok());
  IS(Event, OnReady, ([&] {
       bool ran = false;
       event.OnReady([&ran] { ran = true; });
       return ran;
     }()));
  EventPromise promise = Empty(EventPromise("p"));
  IS(EventPromise, event, promise.event().IsReady());
  IS(EventPromise, SetReady, !promise.SetReady());
  IS(EventPromise, SetError, !promise.SetError(AbortedError("x")));
  IS(EventPromise, Set, !promise.Set(Status()));
  NOTHING(EventPromise, Forward, std::move(promise).Forward(event));
  NOTHING(EventPromise, OnReady, promise.OnReady([] {}));
  IS(Status, code, Empty(AbortedError("x")).ok());
  IS(Status, message, Empty(AbortedError("x")).message().empty());
  IS(Status, location, Empty(AbortedError("x")).location().line() == 0);
  IS(Status, raw_code, Empty(AbortedError("x")).raw_code() == 0);
  IS(Status, ToString, Empty(AbortedError("x")).ToString() == "OK");
  NOTHING(Status, Update, Empty(AbortedError("x")).Update(Status()));
  NOTHING(Status, IgnoreError, Empty(AbortedError("x")).IgnoreError());
  IS(Status, GetPayload, !Empty(AbortedError("x")).GetPayload("a").has_value());
  NOTHING(Status, SetPayload, Empty(AbortedError("x")).SetPayload("a", "b"));
  IS(Status, ErasePayload, !Empty(AbortedError("x")).ErasePayload("a"));
  NOTHING(Status, ForEachPayload, Empty(AbortedError("x")).ForEachPayload([](auto...) { std::abort(); }));
  IS(Status, ok, Empty(AbortedError("x")).ok());
  const StatusOr<int> error = Empty(StatusOr<int>(AbortedError("x")));
  IS(StatusOr, ok, !error.ok());
  IS(StatusOr, status, error.status().ok());
  IS(StatusOr, value_or, error.value_or(3) == 3);
  NOTHING(StatusOr, IgnoreError, error.IgnoreError());
  const UserContext context = Empty(UserContext::Create("text"));
  IS(UserContext, id, context.id() == 0 && !context);
  IS(UserContext, DebugString, context.DebugString().empty());
  IS(UserContext, Annotated, UserContext::Annotated(context, "a").id() != 0);
  IS(UserContext, Chained, !UserContext::Chained(context, context));
  IS(UserContext, Fused, !UserContext::Fused({context, context}));
  NOTHING(UserContextScope, UserContextScope, const UserContextScope scope(UserContext{context}));
  IS(UserContext, AnnotateWithUserContext, IsAborted(AnnotateWithUserContext(AbortedError("x"), context)));
  NOTHING(TraceSpan, TraceSpan, const TraceSpan span(nullptr));
  StreamEventMap map;
  NOTHING(StreamEventMap, Record, map.Record(1, event));
  IS(StreamEventMap, Exchange, map.Exchange(1, event).IsReady());
  IS(StreamEventMap, Last, map.Last(7).IsReady());
  NOTHING(StreamEventMap, Forget, map.Forget(7));
  IS(StreamEventMap, All, map.All().IsReady());
  NOTHING(StreamEventMap, Clear, map.Clear());
  IS(StreamEventMap, size, map.size() == 0);
  IS(Label, c_str, *Label(nullptr).c_str() == '\0');
  IS(SourceLocation, file, *SourceLocation(nullptr, 1).file() == '\0');
  IS(SourceLocation, line, SourceLocation(nullptr, 1).line() == 1);
  const Span<const int> span;
  IS(Span, data, span.data() == nullptr && span.begin() == span.end());
  IS(Span, size, span.size() == 0 && span.empty());
  IS(Span, begin, span.begin() == nullptr);
  IS(Span, end, span.end() == nullptr);
  IS(Span, empty, span.empty());
  IS(Span, subspan, span.subspan(1).empty());
  IS(Span, first, span.first(1).empty());
  IS(Span, last, span.last(1).empty());
  const Shape moved = Empty(Shape(DType::kU8, dims));
  IS(Shape, dtype, moved.dtype() == DType::kU8);
  NOTHING(Shape, dims, static_cast<void>(moved.dims().size()));
  NOTHING(Shape, rank, static_cast<void>(moved.rank()));
  IS(Shape, is_dynamic, !moved.is_dynamic());
  IS(Shape, is_dynamic_dimension, !moved.is_dynamic_dimension(99));
  NOTHING(Shape, element_count, static_cast<void>(moved.element_count()));
  NOTHING(Shape, on_device_size_bytes, static_cast<void>(moved.on_device_size_bytes()));
  NOTHING(Shape, host_size_bytes, static_cast<void>(moved.host_size_bytes()));
  NOTHING(Shape, ToString, static_cast<void>(moved.ToString()));
  const Layout layout = Empty(Layout::RowMajor(3));
  IS(Layout, rank, layout.rank() == 0);
  IS(Layout, minor_to_major, layout.minor_to_major().empty());
  NOTHING(Layout, ToString, static_cast<void>(layout.ToString()));
}

/// The functions that AsyncValueRef and AsyncValuePtr have in common.
template <typename Value>
void Verbs(const char* type, const Value value) {
  static InlineExecutor executor;
  const auto is = [type](const char* method, auto call) {
    BeginRow(type, method);
    EndRow(call() ? "" : "is not as the rule says");
  };
  const auto fails = [type](const char* method, auto call) {
    BeginRow(type, method);
    EndRow(Failed(call()));
  };
  is("IsAvailable", [=] { return value.IsAvailable() && !value.IsUnavailable() && value.IsError(); });
  is("IsConcrete", [=] { return !value.IsConcrete() && !value.IsConstructed(); });
  is("GetIfConcrete", [=] { return value.GetIfConcrete() == nullptr && value.GetIfConstructed() == nullptr; });
  is("IsUnconstructed", [=] { return !value.IsUnconstructed(); });
  is("state", [=] { return value.state() == AsyncValueState::kError; });
  fails("GetError", [=] { return value.GetError(); });
  fails("GetErrorIfPresent", [=] { return value.GetErrorIfPresent().value_or(Status()); });
  is("NumRef", [=] { return value.NumRef() == 0 && !value.IsUnique() && !value.HasWaiter(); });
  is("emplace", [=] { return !value.emplace(1) && !value.SetStateConcrete() && !value.SetError(AbortedError("x")); });
  is("ForwardTo", [=] { return !value.ForwardTo(AsyncValueRef<int>()); });
  fails("Wait", [=] { return value.Wait(); });
  fails("WaitFor", [=] { return value.WaitFor(nanoseconds(1)); });
  fails("AsEvent", [=] { return value.AsEvent(); });
  is("AndThen", [=] {
    int ran = 0;
    value.AndThen([&ran] { ++ran; });
    value.AndThen(executor, [&ran](const Status& status) { ran += IsFailedPrecondition(status) ? 1 : 100; });
    value.AndThen([&ran](StatusOr<int*> found) { ran += IsFailedPrecondition(found.status()) ? 1 : 100; });
    return ran == 3;
  });
  fails("Map", [=] { return value.Map([](int) { return 1; }).GetError(); });
  fails("Map", [=] { return value.Map(executor, [](int) { return 1; }).GetError(); });
  fails("TryMap", [=] { return value.TryMap([](int) { return StatusOr<int>(1); }).GetError(); });
  fails("TryMap", [=] { return value.TryMap(executor, [](int) { return StatusOr<int>(1); }).GetError(); });
  fails("FlatMap", [=] { return value.FlatMap([](int) { return MakeAvailableAsyncValueRef<int>(1); }).GetError(); });
  fails("FlatMap",
        [=] { return value.FlatMap(executor, [](int) { return MakeAvailableAsyncValueRef<int>(1); }).GetError(); });
}

TEST_F(MovedFromTest, Values) {
  const AsyncValueRef<int> ref = Empty(MakeAvailableAsyncValueRef<int>(1));
  Verbs("AsyncValueRef", ref);
  Verbs("AsyncValuePtr", AsyncValuePtr<int>());
  IS(AsyncValueVerbs, AsyncValueRef, !ref && !AsyncValuePtr<int>());
  IS(AsyncValueRef, CopyRef, !ref.CopyRef() && !ref.AsPtr() && !AsyncValuePtr<int>().CopyRef());
  IS(AsyncValuePtr, CopyRef, !AsyncValuePtr<int>().CopyRef());
  NOTHING(AsyncValueRef, reset, AsyncValueRef<int>(ref).reset());
  IS(AsyncValueRef, release, !AsyncValueRef<int>(ref).release());
  const ErrorAsyncValueRef error = Empty(MakeErrorAsyncValueRef(AbortedError("x")));
  IS(ErrorAsyncValueRef, event, error.event().IsReady());
  IS(AsyncValueRef, RunWhenReady, ([&] {
       int ran = 0;
       RunWhenReady(std::vector<AsyncValueRef<int>>{ref}, [&ran] { ++ran; });
       return ran == 1;
     }()));
  AsyncValueStorage<int> storage;
  const auto owner = Empty(MakeAvailableAsyncValueRef<int>(storage, 1));
  IS(AsyncValueOwningRef, AsPtr, !owner.AsPtr() && !owner.AsRef() && !owner);
  ScopedAsyncValue<int> scoped;
  IS(ScopedAsyncValue, AsPtr, scoped.AsPtr() && scoped.AsRef());
  IS(AsyncValueStorage, Begin, true);
  AsyncValueRef<int> gone = Empty(MakeAvailableAsyncValueRef<int>(1));
  IS(AsyncValueRef, GetAsyncValue, gone.GetAsyncValue() == nullptr);
  IS(AsyncValueRef, CopyRCRef, !gone.CopyRCRef());
  IS(AsyncValuePtr, CopyRCRef, !AsyncValuePtr<int>().CopyRCRef());
  IS(AsyncValueRef, ReleaseRCRef, !gone.ReleaseRCRef());
  CountDownAsyncValueRef<Chain> count = Empty(CountDownAsyncValueRef<Chain>(2));
  IS(CountDownAsyncValueRef, CountDown, !count.CountDown() && !count.CountDown(AbortedError("x")));
  IS(CountDownAsyncValueRef, left, count.left() == 0);
  IS(CountDownAsyncValueRef, count, count.count() == 0);
  IS(CountDownAsyncValueRef, is_error, !count.is_error());
  IS(CountDownAsyncValueRef, AsRef, !count.AsRef() && !count.AsPtr() && !count);

  InlineExecutor executor;
  const auto future = [] { return Empty(Future<int>(1)); };
  IS(Future, IsValid, !future().IsValid());
  IS(Future, IsReady, future().IsReady() && future().IsKnownReady());
  FAILS(Future, AsEvent, future().AsEvent());
  IS(Future, async_value, !future().async_value());
  FAILS(Future, Await, future().Await());
  FAILS(Future, Await, Empty(Future<>(OkStatus())).Await());
  FAILS(Future, Await, std::as_const(*std::make_unique<Future<int>>(future())).Await());
  FAILS(Future, AwaitFor, future().AwaitFor(nanoseconds(1)));
  FAILS(Future, AwaitPointer, future().AwaitPointer());
  TELLS(Future, OnReady, future().OnReady([&](const StatusOr<int>& result) {
    ++told.times;
    told.status = result.status();
  }));
  TELLS(Future, OnReady, future().OnReady(executor, [&](const StatusOr<int>& result) {
    ++told.times;
    told.status = result.status();
  }));
  FAILS(Future, Map, future().Map([](int) { return 1; }).AsEvent());
  FAILS(Future, Map, future().Map(executor, [](int) { return 1; }).AsEvent());
  FAILS(Future, MapAlways, future().MapAlways([](int) { return 1; }).AsEvent());
  FAILS(Future, MapAlways, future().MapAlways(executor, [](int) { return 1; }).AsEvent());
  FAILS(Future, MapTo, future().MapTo(2).AsEvent());
  FAILS(Future, GetReadyFuture, future().GetReadyFuture().AsEvent());
  FAILS(Future, Flatten, Empty(Future<Future<int>>(Future<int>(1))).Flatten().AsEvent());
  FAILS(Future, Detach, future().Detach(executor).AsEvent());
  FAILS(Future, JoinFutures, JoinFutures(std::vector<Future<int>>{future()}).AsEvent());
  FAILS(Future, JoinFutures, JoinFutures(future(), future()).AsEvent());
  const auto promise = [] { return Empty(Promise<int>("p")); };
  IS(Promise, Set, !promise().Set(1) && !promise().Set(AbortedError("x")) && !Empty(Promise<>("p")).Set());
  IS(Promise, Emplace, !promise().Emplace(1));
  NOTHING(Promise, Forward, promise().Forward(future()));
  IS(Promise, future, !promise().future().IsValid());
  IS(Promise, IsUniqueReference, !promise().IsUniqueReference());
  IS(Promise, ToShared, !promise().ToShared().Set(1));
  const SharedPromise<int> shared = Empty(Promise<int>("p").ToShared());
  IS(SharedPromise, Set, !shared.Set(1) && !Empty(Promise<>("p").ToShared()).Set());
  IS(SharedPromise, Emplace, !shared.Emplace(1));
  IS(SharedPromise, future, !shared.future().IsValid());
}

TEST_F(MovedFromTest, AnObjectSurvivesItself) {
  ToItself("Client", client, [](auto& x) { return x.platform_name() == "host"; });
  ToItself("Device", device, [](auto& x) { return x.id() == 0; });
  ToItself("MemorySpace", space, [](auto& x) { return x.kind() == "device"; });
  ToItself("RawBuffer", raw, [](auto& x) { return x.on_device_size_bytes() == 4; });
  ToItself("Buffer", buffer, [](auto& x) { return !x.IsDeleted(); });
  ToItself("UsageHold", buffer.AcquireUsageHold().value(), [](auto& x) { return x.ready_event().IsReady(); });
  ToItself("ExternalReference", buffer.AcquireExternalReference().value(),
           [](auto& x) { return x.memory().on_device_size_bytes() == 4; });
  ToItself("DonationHold", buffer.CopyToMemorySpace(space)->Donate("x").value(),
           [](auto& x) { return x.memory().on_device_size_bytes() == 4; });
  ToItself("BufferPromise", std::move(Buffer::CreateChannel(shape, space)->second), [](auto&) { return true; });
  ToItself("RawBufferPromise", std::move(RawBuffer::CreateChannel(space, 4)->second), [](auto&) { return true; });
  ToItself("DmaMapping", client.DmaMap(bytes, 64).value(), [](auto& x) { return x.size_bytes() == 64; });
  StagingOptions options;
  options.lease_bytes = 64;
  options.lease_count = 4;
  const StagingPool pool = StagingPool::Create(space, options).value();
  ToItself("StagingPool", pool, [](auto& x) { return x.lease_count() == 4; });
  ToItself("StagingLease", pool.TryAcquire().value(), [](auto& x) { return x.size_bytes() == 64; });
  ToItself("StagedPiece", StagedPiece(pool.TryAcquire().value(), 0, 4, true),
           [](auto& x) { return x.size_bytes() == 4 && x.data() != nullptr; });
  ToItself("StagingCopier", StagingCopier(pool), [](auto&) { return true; });
  ToItself("StagingSink", std::move(StagingSink::Create(raw).first),
           [](auto& x) { return x.Poison(AbortedError("x")).ok(); });
  ToItself("AsyncHostToDeviceTransferManager",
           AsyncHostToDeviceTransferManager::Create(std::vector<TransferSpec>{TransferSpec{shape}}, space).value(),
           [](auto& x) { return x.buffer_count() == 1; });
  ToItself("ThreadPoolAsyncWorkRunner", client.runner(), [](auto& x) { return x.NumThreads() == 1; });
  ToItself("ElasticPool", ElasticPool::Create({}).value(), [](auto& x) { return x.NumIdle() == 0; });
  ToItself("SerialQueue", SerialQueue(client.runner()), [](auto& x) { return x.Drain().ok(); });
  ToItself("Semaphore", Semaphore("s", 3), [](auto& x) { return x.capacity() == 3; });
  const Semaphore semaphore("s", 3);
  ToItself("Permit", semaphore.TryAcquire(2).value(), [](auto& x) { return x.amount() == 2; });
  ToItself("Timer", Timer::After(std::chrono::hours(1)), [](auto& x) { return !x.event().IsReady(); });
  const CancelSource source;
  ToItself("CancelSource", source, [](auto& x) { return !x.token().IsRetired(); });
  ToItself("CancelToken", source.token(), [](auto& x) { return !x.IsRetired(); });
  ToItself("CancelRegistration", source.token().OnCancel([] {}), [](auto&) { return true; });
  ToItself("Task", Task([] {}), [](auto& x) { return static_cast<bool>(x); });
  const EventPromise owed("owed");
  ToItself("Event", owed.event(), [](auto& x) { return !x.IsReady(); });
  ToItself("EventPromise", EventPromise("p"), [](auto& x) { return !x.event().IsReady(); });
  ToItself("Status", AbortedError("x"), [](auto& x) { return IsAborted(x); });
  ToItself("StatusOr", StatusOr<int>(3), [](auto& x) { return *x == 3; });
  ToItself("UserContext", UserContext::Create("text"), [](auto& x) { return x.DebugString() == "text"; });
  ToItself("AsyncValueRef", MakeAvailableAsyncValueRef<int>(3), [](auto& x) { return *x == 3; });
  ToItself("CountDownAsyncValueRef", CountDownAsyncValueRef<Chain>(3), [](auto& x) { return x.left() == 3; });
  ToItself("Future", Future<int>(3), [](auto& x) { return x.Await().value() == 3; });
  ToItself("Future of what is moved", Future<std::unique_ptr<int>>(std::make_unique<int>(3)),
           [](auto& x) { return **x.AwaitPointer().value() == 3; });
  ToItself("Promise", Promise<int>("p"), [](auto& x) { return static_cast<bool>(x); });
  ToItself("SharedPromise", Promise<int>("p").ToShared(), [](auto& x) { return x.future().IsValid(); });
  ToItself("Shape", shape, [&](auto& x) { return x.rank() == 1; });
  WatchdogOptions quiet;
  quiet.sink = [](std::string_view) {};
  ToItself("Watchdog", Watchdog::Start(quiet).value(), [](auto&) { return true; });
}

}  // namespace
}  // namespace purlin

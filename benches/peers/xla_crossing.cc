// What it costs to cross between XLA and Purlin, beside the same without Purlin: a handler of XLA's FFI
// (include/purlin/adapters/xla_ffi.h), as a computation of one custom call that XLA's CPU client of the wheel executes;
// and arrays of that client (xla_raw_buffer.h), made around memory that is there and dropped. All are of 256 bytes. A
// library of its own, whose Purlin is that of the program.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "op.h"
#include "purlin/adapters/xla_ffi.h"
#include "purlin/adapters/xla_raw_buffer.h"
#include "purlin/purlin.h"
#include "xla.h"
#include "xla/hlo/builder/xla_builder.h"
#include "xla/pjrt/pjrt_client.h"
#include "xla/pjrt/plugin/xla_cpu/cpu_client_options.h"
#include "xla/pjrt/plugin/xla_cpu/xla_cpu_pjrt_client.h"

namespace xla::ffi {
const XLA_FFI_Api* GetXlaFfiApi();  // Of xla/ffi/ffi_api.h, which wants more of MLIR than there is.
}  // namespace xla::ffi

namespace {

namespace ffi = ::xla::ffi;
using Operand = ffi::Buffer<ffi::F32>;
using Result = ffi::ResultBuffer<ffi::F32>;

// Never destroyed: XLA's threads may call at any time.
const purlin::Client& Ours() {
  static const auto* const client = new purlin::Client(purlin::Client::Create().value());
  return *client;
}

const purlin::MemorySpace& Space() {
  static const auto* const space = new purlin::MemorySpace(Ours().devices()[0].default_memory_space());
  return *space;
}

ffi::Error Plain(Operand x, Result y) {
  std::memcpy(y->untyped_data(), x.untyped_data(), x.size_bytes());
  return ffi::Error::Success();
}
// As it is done without Purlin: on XLA's own threads.
ffi::Future PlainLater(ffi::ThreadPool pool, Operand x, Result y) {
  ffi::Promise promise;
  ffi::Future future(promise);
  pool.Schedule([x, y, promise = std::move(promise)]() mutable {
    std::memcpy(y->untyped_data(), x.untyped_data(), x.size_bytes());
    promise.SetAvailable();
  });
  return future;
}

struct Memory {
  purlin::Buffer from;
  purlin::RawBuffer to;
  void Copy() const { std::memcpy(to.host_pointer(), from.RawAlias()->host_pointer(), to.on_device_size_bytes()); }
};
Memory Wrap(purlin::adapters::FfiCall& call, Operand x, Result y) { return {*call.Argument(x), *call.Result(y)}; }

purlin::Status Adopted(Operand x, Result y) {
  purlin::adapters::FfiCall call(Space());
  Wrap(call, x, y).Copy();
  return purlin::OkStatus();
}
purlin::Event AdoptedLater(Operand x, Result y) {
  purlin::adapters::FfiCall call(Space());
  purlin::ThreadPoolAsyncWorkRunner runner = Ours().runner();
  auto copy = [memory = Wrap(call, x, y)] { memory.Copy(); };
  return std::move(call).Finish(purlin::MakeFutureOn(runner, std::move(copy)).AsEvent());
}

auto Over() { return ffi::Ffi::Bind().Arg<Operand>().Ret<ffi::Buffer<ffi::F32>>(); }
XLA_FFI_DEFINE_HANDLER(kPlain, Plain, Over());
XLA_FFI_DEFINE_HANDLER(kPlainLater, PlainLater,
                       ffi::Ffi::Bind().Ctx<ffi::ThreadPool>().Arg<Operand>().Ret<ffi::Buffer<ffi::F32>>());
XLA_FFI_DEFINE_HANDLER(kAdopted, Adopted, Over());
XLA_FFI_DEFINE_HANDLER(kAdoptedLater, AdoptedLater, Over());

constexpr std::int64_t kNumbers = 64;

xla::PjRtClient& Theirs() {
  static auto* const client = Need(xla::GetXlaPjrtCpuClient(xla::CpuClientOptions())).release();
  return *client;
}

/// A computation that calls `handler`, and its argument.
struct Call {
  std::unique_ptr<xla::PjRtLoadedExecutable> executable;
  std::unique_ptr<xla::PjRtBuffer> argument;

  Call(const char* name, XLA_FFI_Handler* handler) {
    if (ffi::Ffi::RegisterStaticHandler(ffi::GetXlaFfiApi(), name, "Host", handler) != nullptr) {
      std::fprintf(stderr, "purlin_bench: XLA does not take the handler %s\n", name);
      std::abort();
    }
    xla::XlaBuilder builder(name);
    const xla::Shape shape = xla::ShapeUtil::MakeShape(xla::F32, {kNumbers});
    const xla::XlaOp result = xla::CustomCall(
        &builder, name, {xla::Parameter(&builder, 0, shape, "x")}, shape, "", /*has_side_effect=*/false, {}, nullptr,
        xla::CustomCallSchedule::SCHEDULE_NONE, xla::CustomCallApiVersion::API_VERSION_TYPED_FFI);
    executable = Need(Theirs().CompileAndLoad(Need(builder.Build(result)), xla::CompileOptions()));
    static const float numbers[kNumbers] = {};
    argument = Need(Theirs().BufferFromHostBuffer(
        numbers, xla::F32, {kNumbers}, std::nullopt, xla::PjRtClient::HostBufferSemantics::kImmutableOnlyDuringCall,
        nullptr, Need(Theirs().addressable_devices()[0]->default_memory_space()), nullptr));
    Need(argument->GetReadyFuture().Await());
  }
};

/// Each operation is one execution. `name` is how XLA knows the handler.
template <XLA_FFI_Handler* handler, const char* name>
std::uint64_t Run(std::uint64_t count) {
  static const auto* const call = new Call(name, handler);
  for (std::uint64_t i = 0; i < count; ++i) {
    xla::PjRtBuffer* const arguments[] = {call->argument.get()};
    const auto results = Need(call->executable->ExecuteSharded(arguments, Theirs().addressable_devices()[0], {}));
    Need(results[0]->GetReadyFuture().Await());
  }
  return 0;
}

/// The same 64 numbers as an array of Purlin's and as one of XLA's.
struct Arrays {
  xla::PjRtMemorySpace* space = Need(Theirs().addressable_devices()[0]->default_memory_space());
  purlin::Buffer ours;
  void* address;
  std::shared_ptr<xla::PjRtBuffer> theirs;

  Arrays()
      : ours([] {
          static const float numbers[kNumbers] = {};
          return *purlin::Buffer::FromHost(numbers, sizeof(numbers), purlin::DType::kF32, {kNumbers},
                                           Ours().devices()[0].default_memory_space());
        }()) {
    if (!ours.ready_event().Wait().ok()) std::abort();
    address = ours.RawAlias()->host_pointer();
    theirs = Need(purlin::adapters::ToXla(ours, Theirs(), space));
    Need(theirs->GetReadyFuture().Await());
  }
  static const Arrays& Get() {
    static const auto* const made = new Arrays;
    return *made;
  }
};

std::uint64_t ToXla(std::uint64_t count) {
  const Arrays& arrays = Arrays::Get();
  for (std::uint64_t i = 0; i < count; ++i) Need(purlin::adapters::ToXla(arrays.ours, Theirs(), arrays.space));
  return 0;
}
std::uint64_t XlaView(std::uint64_t count) {
  const Arrays& arrays = Arrays::Get();
  const xla::Shape shape = xla::ShapeUtil::MakeShape(xla::F32, {kNumbers});
  for (std::uint64_t i = 0; i < count; ++i) {
    Need(Theirs().CreateViewOfDeviceBuffer(arrays.address, shape, arrays.space, [] {}));
  }
  return 0;
}
// With a shape that is made for it, as a crossing does.
std::uint64_t XlaViewAndShape(std::uint64_t count) {
  const Arrays& arrays = Arrays::Get();
  for (std::uint64_t i = 0; i < count; ++i) {
    const xla::Shape shape = xla::ShapeUtil::MakeShape(xla::F32, {kNumbers});
    Need(Theirs().CreateViewOfDeviceBuffer(arrays.address, shape, arrays.space, [] {}));
  }
  return 0;
}
std::uint64_t FromXla(std::uint64_t count) {
  const Arrays& arrays = Arrays::Get();
  for (std::uint64_t i = 0; i < count; ++i) {
    if (!purlin::adapters::FromXla(arrays.theirs, arrays.ours.memory_space()).ok()) std::abort();
  }
  return 0;
}
std::uint64_t XlaReference(std::uint64_t count) {
  const Arrays& arrays = Arrays::Get();
  for (std::uint64_t i = 0; i < count; ++i) Need(arrays.theirs->AcquireExternalReference());
  return 0;
}

// What an owner must ask XLA for: whether the array is ready, a reference, and what keeps the memory if it is deleted.
std::uint64_t XlaKeeps(std::uint64_t count) {
  const Arrays& arrays = Arrays::Get();
  for (std::uint64_t i = 0; i < count; ++i) {
    if (!arrays.theirs->GetReadyFuture().IsReady()) std::abort();
    const auto reference = Need(arrays.theirs->AcquireExternalReference());
    Need(xla::PjRtRawBuffer::CreateRawAliasOfBuffer(arrays.theirs.get()));
  }
  return 0;
}

constexpr char kPlainName[] = "bench_plain";
constexpr char kPlainLaterName[] = "bench_plain_later";
constexpr char kAdoptedName[] = "bench_adopted";
constexpr char kAdoptedLaterName[] = "bench_adopted_later";

constexpr Op kOps[] = {
    {"crossing: FFI handler, 256 B", "purlin", 200, &Run<kAdopted, kAdoptedName>, kThreads},
    {"crossing: FFI handler, 256 B", "XLA's FFI, no crossing", 200, &Run<kPlain, kPlainName>, kThreads},
    {"crossing: FFI handler, asynchronous, 256 B", "purlin", 100, &Run<kAdoptedLater, kAdoptedLaterName>, kThreads},
    {"crossing: FFI handler, asynchronous, 256 B", "XLA's FFI, no crossing", 100, &Run<kPlainLater, kPlainLaterName>,
     kThreads},
    {"crossing: array to XLA, 256 B", "purlin", 1000, &ToXla, kOneThread},
    {"crossing: array to XLA, 256 B", "XLA's view of memory, no crossing", 1000, &XlaView, kOneThread},
    {"crossing: array to XLA, 256 B", "XLA's view and its shape, no crossing", 1000, &XlaViewAndShape, kOneThread},
    {"crossing: array of XLA's to Purlin, 256 B", "purlin", 1000, &FromXla, kOneThread},
    {"crossing: array of XLA's to Purlin, 256 B", "XLA's external reference, no crossing", 5000, &XlaReference,
     kOneThread},
    {"crossing: array of XLA's to Purlin, 256 B", "what keeps it in XLA, no crossing", 1000, &XlaKeeps, kOneThread},
};

}  // namespace

extern "C" __attribute__((visibility("default"))) const Op* bench_ops(std::size_t* count) {
  *count = sizeof(kOps) / sizeof(kOps[0]);
  return kOps;
}

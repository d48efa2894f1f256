// Handlers that know XLA's own FFI header and nothing of Purlin, for python/xla_cpu_ffi_test.py: attributes of every
// kind, states of the stages, futures, threads, scratch memory. Stock XLA and Purlin's host of XLA's FFI call them.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

namespace {

using Sum = ffi::ResultBuffer<ffi::F64>;

template <typename T>
double SumOf(ffi::Span<const T> values) {
  double sum = 0;
  double place = 1;
  for (const T value : values) sum += place++ * static_cast<double>(value);
  return sum;
}

// One number of all attributes: a wrong one changes it. `text` has a NUL, a quotation mark and letters that are not
// ASCII.
ffi::Error Attributes(bool flag, std::int8_t i8, std::int16_t i16, std::int32_t i32, std::int64_t i64, std::uint8_t u8,
                      std::uint16_t u16, std::uint32_t u32, std::uint64_t u64, float f32, double f64,
                      std::string_view text, ffi::Span<const std::int8_t> i8s, ffi::Span<const std::int64_t> i64s,
                      ffi::Span<const std::uint32_t> u32s, ffi::Span<const float> f32s, ffi::Span<const double> f64s,
                      ffi::Span<const std::int32_t> none, ffi::Span<const std::int64_t> large, ffi::Dictionary more,
                      Sum y) {
  const ffi::ErrorOr<std::int32_t> inner = more.get<std::int32_t>("inner");
  const ffi::ErrorOr<std::string_view> name = more.get<std::string_view>("name");
  if (!inner.has_value() || !name.has_value() || more.size() != 2) return ffi::Error::InvalidArgument("more");
  double* const out = y->typed_data();
  out[0] = flag ? 1 : 0;
  out[1] = i8 + i16 + i32;
  out[2] = static_cast<double>(i64);
  out[3] = u8 + u16;
  out[4] = u32;
  out[5] = static_cast<double>(u64);
  out[6] = f32;
  out[7] = f64;
  out[8] = 0;
  for (const char letter : text) out[8] = out[8] * 3 + static_cast<unsigned char>(letter);
  out[9] = SumOf(i8s) + SumOf(i64s);
  out[10] = SumOf(u32s);
  out[11] = SumOf(f32s);
  out[12] = SumOf(f64s);
  out[13] = static_cast<double>(none.size());
  out[14] = SumOf(large);
  out[15] = *inner + static_cast<double>(name->size());
  return ffi::Error::Success();
}

// A state of the stage `instantiate`, made of an attribute, and used by `execute`.
struct Factor {
  static ffi::TypeId id;
  static ffi::TypeInfo info;
  double factor;
  static std::int64_t alive;
  explicit Factor(double of) : factor(of) { ++alive; }
  ~Factor() { --alive; }
};
ffi::TypeId Factor::id = {};
ffi::TypeInfo Factor::info = ffi::MakeTypeInfo<Factor>();
std::int64_t Factor::alive = 0;

ffi::ErrorOr<std::unique_ptr<Factor>> MakeFactor(double factor) { return std::make_unique<Factor>(factor); }

ffi::Error Scale(Factor* state, ffi::Buffer<ffi::F64> x, Sum y) {
  for (std::size_t i = 0; i < x.element_count(); ++i) y->typed_data()[i] = x.typed_data()[i] * state->factor;
  return ffi::Error::Success();
}

// Completed by a thread of its own, after the handler has returned.
ffi::Future Later(ffi::Buffer<ffi::F64> x, Sum y) {
  ffi::Promise promise;
  ffi::Future future(promise);
  std::thread([promise = std::move(promise), x, y]() mutable {
    for (std::size_t i = 0; i < x.element_count(); ++i) y->typed_data()[i] = x.typed_data()[i] + 1;
    promise.SetAvailable();
  }).detach();
  return future;
}

// How often there was scratch memory.
std::int64_t scratches = 0;

// Reverses its argument, by scratch memory if there is some: stock XLA has none on the CPU.
ffi::Error Reverse(ffi::ScratchAllocator scratch, ffi::Buffer<ffi::F64> x, Sum y) {
  const std::size_t count = x.element_count();
  const std::optional<void*> memory = scratch.Allocate(count * sizeof(double), 64);
  const double* from = x.typed_data();
  if (memory.has_value()) {
    if (reinterpret_cast<std::uintptr_t>(*memory) % 64 != 0) return ffi::Error::Internal("it is not aligned");
    std::memcpy(*memory, from, count * sizeof(double));
    from = static_cast<const double*>(*memory);
    ++scratches;
  }
  for (std::size_t i = 0; i < count; ++i) y->typed_data()[i] = from[count - 1 - i];
  return ffi::Error::Success();
}

// Completed by the last of its tasks on the pool of its host; each squares one element.
ffi::Future OnThreads(ffi::ThreadPool pool, ffi::Buffer<ffi::F64> x, Sum y) {
  const std::size_t count = x.element_count();
  ffi::CountDownPromise promise(static_cast<std::int64_t>(count + 1));
  ffi::Future future(promise);
  if (pool.num_threads() < 1) {
    promise.CountDown(count + 1, ffi::Error::Internal("no threads"));
    return future;
  }
  for (std::size_t i = 0; i < count; ++i) {
    pool.Schedule([promise, x, y, i]() mutable {
      y->typed_data()[i] = x.typed_data()[i] * x.typed_data()[i];
      promise.CountDown();
    });
  }
  promise.CountDown();
  return future;
}

// All arguments, of any type and rank, end to end.
ffi::Error Shapes(ffi::RemainingArgs arguments, ffi::Result<ffi::Buffer<ffi::S64>> y) {
  std::int64_t* out = y->typed_data();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const ffi::ErrorOr<ffi::AnyBuffer> argument = arguments.get<ffi::AnyBuffer>(i);
    if (!argument.has_value()) return argument.error();
    *out++ = static_cast<std::int64_t>(argument->element_type());
    *out++ = static_cast<std::int64_t>(argument->dimensions().size());
    *out++ = static_cast<std::int64_t>(argument->element_count());
  }
  return ffi::Error::Success();
}

}  // namespace

#define HOST_HANDLER(name, binding)                                                                       \
  extern "C" __attribute__((visibility("default"))) XLA_FFI_Error* Host##name(XLA_FFI_CallFrame* frame) { \
    static const auto* const handler = (binding).release();                                               \
    return handler->Call(frame);                                                                          \
  }
HOST_HANDLER(Attributes, ffi::Ffi::Bind()
                             .Attr<bool>("flag")
                             .Attr<std::int8_t>("i8")
                             .Attr<std::int16_t>("i16")
                             .Attr<std::int32_t>("i32")
                             .Attr<std::int64_t>("i64")
                             .Attr<std::uint8_t>("u8")
                             .Attr<std::uint16_t>("u16")
                             .Attr<std::uint32_t>("u32")
                             .Attr<std::uint64_t>("u64")
                             .Attr<float>("f32")
                             .Attr<double>("f64")
                             .Attr<std::string_view>("text")
                             .Attr<ffi::Span<const std::int8_t>>("i8s")
                             .Attr<ffi::Span<const std::int64_t>>("i64s")
                             .Attr<ffi::Span<const std::uint32_t>>("u32s")
                             .Attr<ffi::Span<const float>>("f32s")
                             .Attr<ffi::Span<const double>>("f64s")
                             .Attr<ffi::Span<const std::int32_t>>("none")
                             .Attr<ffi::Span<const std::int64_t>>("large")
                             .Attr<ffi::Dictionary>("more")
                             .Ret<ffi::Buffer<ffi::F64>>()
                             .To(Attributes))
HOST_HANDLER(MakeFactor, ffi::Ffi::BindInstantiate().Attr<double>("factor").To(MakeFactor))
HOST_HANDLER(
    Scale,
    ffi::Ffi::Bind().Ctx<ffi::State<Factor>>().Arg<ffi::Buffer<ffi::F64>>().Ret<ffi::Buffer<ffi::F64>>().To(Scale))
HOST_HANDLER(Later, ffi::Ffi::Bind().Arg<ffi::Buffer<ffi::F64>>().Ret<ffi::Buffer<ffi::F64>>().To(Later))
HOST_HANDLER(
    OnThreads,
    ffi::Ffi::Bind().Ctx<ffi::ThreadPool>().Arg<ffi::Buffer<ffi::F64>>().Ret<ffi::Buffer<ffi::F64>>().To(OnThreads))
HOST_HANDLER(
    Reverse,
    ffi::Ffi::Bind().Ctx<ffi::ScratchAllocator>().Arg<ffi::Buffer<ffi::F64>>().Ret<ffi::Buffer<ffi::F64>>().To(Reverse))
HOST_HANDLER(Shapes, ffi::Ffi::Bind().RemainingArgs().Ret<ffi::Buffer<ffi::S64>>().To(Shapes))

/// The places of the id and of the description of the state's type, for stock XLA.
extern "C" __attribute__((visibility("default"))) void* host_type_id() { return &Factor::id; }
extern "C" __attribute__((visibility("default"))) void* host_type_info() { return &Factor::info; }
/// Registers the type of the state with the table of the host that will call the handlers; 0 if that worked.
extern "C" __attribute__((visibility("default"))) int host_register(const XLA_FFI_Api* api) {
  XLA_FFI_Error* const error = ffi::Ffi::RegisterTypeId(api, "HostFactor", &Factor::id, &Factor::info);
  if (error == nullptr) return 0;
  ffi::internal::DestroyError(api, error);
  return 1;
}
/// How often a handler got scratch memory.
extern "C" __attribute__((visibility("default"))) std::int64_t host_scratches() { return scratches; }
/// How many states are alive.
extern "C" __attribute__((visibility("default"))) std::int64_t host_alive() { return Factor::alive; }

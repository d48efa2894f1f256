// An XLA FFI handler adopts Purlin: its signature stays, its body moves to a pool, and XLA does not wait for it.
//
// `before` is a usual handler: it computes on the thread that XLA calls it on. `after` hands the same operands to
// Purlin and returns an event. xla_ffi.py, beside this file, calls both from jax.jit and compares.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "purlin/adapters/xla_ffi.h"
#include "purlin/purlin.h"

namespace ffi = xla::ffi;

void Normalize(const float* x, float* y, std::size_t count, float epsilon) {
  float sum = epsilon;
  for (std::size_t i = 0; i < count; ++i) sum += x[i] * x[i];
  for (std::size_t i = 0; i < count; ++i) y[i] = x[i] / std::sqrt(sum);
}

namespace before {

ffi::Error Run(float epsilon, ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y) {
  if (!(epsilon > 0)) return ffi::Error::InvalidArgument("epsilon must be positive");
  Normalize(x.typed_data(), y->typed_data(), x.element_count(), epsilon);
  return ffi::Error::Success();
}

}  // namespace before

namespace after {

// Never destroyed: XLA's threads may call until the process ends.
const purlin::Client& Client() {
  static const purlin::Client& client = *new purlin::Client(purlin::Client::Create().value());
  return client;
}

purlin::Event Run(float epsilon, ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y) {
  if (!(epsilon > 0)) return purlin::Event::Error(purlin::InvalidArgumentError("epsilon must be positive"));
  purlin::adapters::FfiCall call(Client().devices()[0].default_memory_space());
  purlin::StatusOr<purlin::Buffer> from = call.Argument(x);
  if (!from.ok()) return purlin::Event::Error(from.status());
  purlin::StatusOr<purlin::RawBuffer> to = call.Result(y);
  if (!to.ok()) return purlin::Event::Error(to.status());
  // The task holds the memory, so the call is not over before the task has gone.
  auto task = [epsilon, from = *std::move(from), to = *std::move(to)]() -> purlin::Status {
    const purlin::StatusOr<purlin::RawBuffer> memory = from.RawAlias();
    if (!memory.ok()) return memory.status();
    Normalize(static_cast<const float*>(memory->host_pointer()), static_cast<float*>(to.host_pointer()),
              to.on_device_size_bytes() / sizeof(float), epsilon);
    return purlin::OkStatus();
  };
  purlin::ThreadPoolAsyncWorkRunner runner = Client().runner();
  return std::move(call).Finish(purlin::MakeFutureOn(runner, std::move(task)).AsEvent());
}

}  // namespace after

// Both are bound to the same target.
template <typename Handler>
auto Bind(Handler handler) {
  return ffi::Ffi::Bind()
      .Attr<float>("epsilon")
      .Arg<ffi::Buffer<ffi::F32>>()
      .Ret<ffi::Buffer<ffi::F32>>()
      .To(handler)
      .release();
}
extern "C" __attribute__((visibility("default"))) XLA_FFI_Error* NormalizeBefore(XLA_FFI_CallFrame* frame) {
  static const auto* const handler = Bind(before::Run);
  return handler->Call(frame);
}
extern "C" __attribute__((visibility("default"))) XLA_FFI_Error* NormalizeAfter(XLA_FFI_CallFrame* frame) {
  static const auto* const handler = Bind(after::Run);
  return handler->Call(frame);
}

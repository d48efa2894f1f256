// The library of the wheel: an XLA FFI handler whose body is a task of Purlin's.
#include <cmath>
#include <cstddef>
#include <utility>

#include "purlin/adapters/xla_ffi.h"
#include "purlin/purlin.h"

namespace ffi = xla::ffi;

// Never destroyed: XLA's threads may call until the process ends.
const purlin::Client& Client() {
  static const purlin::Client& client = *new purlin::Client(purlin::Client::Create().value());
  return client;
}

purlin::Event Normalize(float epsilon, ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y) {
  if (!(epsilon > 0)) return purlin::Event::Error(purlin::InvalidArgumentError("epsilon must be positive"));
  purlin::adapters::FfiCall call(Client().devices()[0].default_memory_space());
  purlin::StatusOr<purlin::Buffer> array = call.Argument(x);
  if (!array.ok()) return purlin::Event::Error(array.status());
  purlin::StatusOr<purlin::RawBuffer> from = array->RawAlias();
  if (!from.ok()) return purlin::Event::Error(from.status());
  purlin::StatusOr<purlin::RawBuffer> to = call.Result(y);
  if (!to.ok()) return purlin::Event::Error(to.status());
  auto task = [epsilon, from = *std::move(from), to = *std::move(to)] {
    const auto* in = static_cast<const float*>(from.host_pointer());
    auto* out = static_cast<float*>(to.host_pointer());
    const std::size_t count = to.on_device_size_bytes() / sizeof(float);
    float sum = epsilon;
    for (std::size_t i = 0; i < count; ++i) sum += in[i] * in[i];
    for (std::size_t i = 0; i < count; ++i) out[i] = in[i] / std::sqrt(sum);
    return purlin::OkStatus();
  };
  purlin::ThreadPoolAsyncWorkRunner runner = Client().runner();
  return std::move(call).Finish(purlin::MakeFutureOn(runner, std::move(task)).AsEvent());
}

extern "C" __attribute__((visibility("default"))) XLA_FFI_Error* NormalizeHandler(XLA_FFI_CallFrame* frame) {
  static const auto* const handler = ffi::Ffi::Bind()
                                         .Attr<float>("epsilon")
                                         .Arg<ffi::Buffer<ffi::F32>>()
                                         .Ret<ffi::Buffer<ffi::F32>>()
                                         .To(Normalize)
                                         .release();
  return handler->Call(frame);
}

// Handlers for XLA's FFI whose bodies are Purlin code, for python/xla_ffi_test.py; and what it asks about them.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "purlin/adapters/xla_ffi.h"
#include "purlin/purlin.h"

namespace ffi = xla::ffi;
using purlin::adapters::FfiCall;
using purlin::adapters::FfiThreadPool;
using purlin::adapters::FromFfi;
using purlin::adapters::ToFfi;

namespace {

// Never destroyed: XLA's threads may call at any time.
const purlin::Client& Client() {
  static const purlin::Client& client = *new purlin::Client(purlin::Client::Create().value());
  return client;
}
purlin::MemorySpace Space() { return Client().devices()[0].default_memory_space(); }

struct ScaleMemory {
  purlin::Buffer from;
  purlin::RawBuffer to;

  void Scale(float factor) const {
    const auto* const x = static_cast<const float*>(from.RawAlias().value().host_pointer());
    std::transform(x, x + from.shape().element_count().value(), static_cast<float*>(to.host_pointer()),
                   [factor](float value) { return value * factor; });
  }
};

purlin::Status CheckFactor(float factor) {
  if (std::isfinite(factor)) return purlin::OkStatus();
  return purlin::OutOfRangeError("the factor is " + std::to_string(factor));
}

purlin::StatusOr<ScaleMemory> Wrap(FfiCall& call, ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y) {
  purlin::StatusOr<purlin::Buffer> from = call.Argument(x);
  if (!from.ok()) return from.status();
  purlin::StatusOr<purlin::RawBuffer> to = call.Result(y);
  if (!to.ok()) return to.status();
  return ScaleMemory{*std::move(from), *std::move(to)};
}

purlin::Status Scale(float factor, ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y) {
  if (purlin::Status bad = CheckFactor(factor); !bad.ok()) return bad;
  FfiCall call(Space());
  const purlin::StatusOr<ScaleMemory> memory = Wrap(call, x, y);
  if (!memory.ok()) return memory.status();
  memory->Scale(factor);
  return purlin::OkStatus();
}

// The factor is looked at in the task, so that its error is one of the future.
purlin::Event ScaleLater(float factor, ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y) {
  FfiCall call(Space());
  purlin::StatusOr<ScaleMemory> memory = Wrap(call, x, y);
  if (!memory.ok()) return purlin::Event::Error(memory.status());
  purlin::ThreadPoolAsyncWorkRunner runner = Client().runner();
  return std::move(call).Finish(purlin::MakeFutureOn(runner, [factor, memory = *std::move(memory)] {
                                  purlin::Status bad = CheckFactor(factor);
                                  if (bad.ok()) memory.Scale(factor);
                                  return bad;
                                }).AsEvent());
}

// With its type written down, and a copy by Purlin that ends on its own.
ffi::Future CopyLater(ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> y) {
  FfiCall call(Space());
  const purlin::StatusOr<purlin::Buffer> from = call.Argument(x);
  if (!from.ok()) return ToFfi(purlin::Event::Error(from.status()));
  const purlin::StatusOr<purlin::RawBuffer> to = call.Result(y);
  if (!to.ok()) return ToFfi(purlin::Event::Error(to.status()));
  return ToFfi(std::move(call).Finish(from->RawAlias().value().CopyTo(*to)));
}

// What is narrower than a byte, unpacked.
purlin::Event Widen(ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> y) {
  FfiCall call(Space());
  const purlin::StatusOr<purlin::Buffer> from = call.Argument(x);
  if (!from.ok()) return purlin::Event::Error(from.status());
  const purlin::StatusOr<purlin::RawBuffer> to = call.Result(y);
  if (!to.ok()) return purlin::Event::Error(to.status());
  return std::move(call).Finish(from->CopyToHost(to->host_pointer(), to->on_device_size_bytes()));
}

// Attributes of every kind, all of which a task uses after the call has returned.
purlin::Future<> Attributes(std::int64_t number, bool flag, std::string_view text, ffi::Span<const double> list,
                            ffi::Dictionary more, ffi::ResultBuffer<ffi::F64> y) {
  const purlin::StatusOr<std::int32_t> inner = FromFfi(more.get<std::int32_t>("inner"));
  if (!inner.ok()) return inner.status();
  FfiCall call(Space());
  purlin::StatusOr<purlin::RawBuffer> to = call.Result(y);
  if (!to.ok()) return to.status();
  const purlin::Span<const double> values = FromFfi(list);
  auto write = [number, flag, inner = *inner, text = std::string(text), to = *std::move(to),
                values = std::vector<double>(values.begin(), values.end())] {
    double sum = static_cast<double>(number) + (flag ? 0.5 : 0.25) + inner + static_cast<double>(text.size());
    for (const double value : values) sum += value;
    std::memcpy(to.host_pointer(), &sum, sizeof(sum));
  };
  purlin::ThreadPoolAsyncWorkRunner runner = Client().runner();
  return purlin::MakeFutureWhenReady(std::move(call).Finish(purlin::MakeFutureOn(runner, std::move(write)).AsEvent()));
}

// A body whose tasks run on XLA's threads.
purlin::Event OnTheirThreads(ffi::ThreadPool theirs, ffi::ResultBuffer<ffi::S64> y) {
  FfiThreadPool pool(std::move(theirs));
  FfiCall call(Space());
  const purlin::StatusOr<purlin::RawBuffer> to = call.Result(y);
  if (!to.ok()) return purlin::Event::Error(to.status());
  std::vector<purlin::Event> written;
  for (std::size_t index = 0; index < y->element_count(); ++index) {
    written.push_back(purlin::MakeFutureOn(pool, [to = *to, index, threads = pool.NumThreads()] {
                        const auto value = static_cast<std::int64_t>(index + 1000 * threads);
                        std::memcpy(static_cast<char*>(to.host_pointer()) + index * sizeof(value), &value,
                                    sizeof(value));
                      }).AsEvent());
  }
  return std::move(call).Finish(purlin::WhenAll(written));
}

}  // namespace

#define PURLIN_TEST_HANDLER(name, ...)                                                                      \
  extern "C" __attribute__((visibility("default"))) XLA_FFI_Error* Purlin##name(XLA_FFI_CallFrame* frame) { \
    static const auto* const handler = ffi::Ffi::Bind() __VA_ARGS__.To(name).release();                     \
    return handler->Call(frame);                                                                            \
  }
PURLIN_TEST_HANDLER(Scale, .Attr<float>("factor").Arg<ffi::Buffer<ffi::F32>>().Ret<ffi::Buffer<ffi::F32>>())
PURLIN_TEST_HANDLER(ScaleLater, .Attr<float>("factor").Arg<ffi::Buffer<ffi::F32>>().Ret<ffi::Buffer<ffi::F32>>())
PURLIN_TEST_HANDLER(CopyLater, .Arg<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>())
PURLIN_TEST_HANDLER(Widen, .Arg<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>())
PURLIN_TEST_HANDLER(Attributes, .Attr<std::int64_t>("number")
                                    .Attr<bool>("flag")
                                    .Attr<std::string_view>("text")
                                    .Attr<ffi::Span<const double>>("list")
                                    .Attr<ffi::Dictionary>("more")
                                    .Ret<ffi::Buffer<ffi::F64>>())
PURLIN_TEST_HANDLER(OnTheirThreads, .Ctx<ffi::ThreadPool>().Ret<ffi::Buffer<ffi::S64>>())

/// What lives of Purlin's (DumpStalls), for as long as the next call has not come.
extern "C" __attribute__((visibility("default"))) const char* purlin_report() {
  static std::string& report = *new std::string;
  report = purlin::DumpStalls();
  return report.c_str();
}
/// Bytes that are in use.
extern "C" __attribute__((visibility("default"))) std::int64_t purlin_bytes() {
  return static_cast<std::int64_t>(Space().Stats().bytes_in_use);
}

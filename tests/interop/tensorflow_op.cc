// Custom ops of TensorFlow whose kernels are Purlin code, for python/tensorflow_op_test.py; and what it asks about
// them.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "purlin/adapters/tensorflow_op.h"
#include "purlin/purlin.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/framework/tensor_shape.h"

namespace {

using purlin::adapters::TensorFlowCall;
using purlin::adapters::TensorFlowOp;
using tensorflow::OpKernelConstruction;

// Never destroyed: TensorFlow's threads may call at any time.
const purlin::Client& Client() {
  static const purlin::Client& client = *new purlin::Client(purlin::Client::Create().value());
  return client;
}
purlin::MemorySpace Space() { return Client().devices()[0].default_memory_space(); }

// In a task of a pool; the factor is looked at there.
class Scale final : public TensorFlowOp {
 public:
  explicit Scale(OpKernelConstruction* c) : TensorFlowOp(c, Space()) { c->SetStatus(c->GetAttr("factor", &factor_)); }
  purlin::Event Start(TensorFlowCall& call) override {
    purlin::StatusOr<purlin::Buffer> from = call.Input(0);
    if (!from.ok()) return purlin::Event::Error(from.status());
    purlin::StatusOr<purlin::RawBuffer> to = call.Output(0, call.context()->input(0).shape());
    if (!to.ok()) return purlin::Event::Error(to.status());
    const purlin::Event ready = from->ready_event();
    auto task = [factor = factor_, from = *std::move(from), to = *std::move(to)]() -> purlin::Status {
      if (!std::isfinite(factor)) return purlin::OutOfRangeError("the factor is " + std::to_string(factor));
      const purlin::StatusOr<purlin::RawBuffer> memory = from.RawAlias();
      if (!memory.ok()) return memory.status();
      const auto* const x = static_cast<const float*>(memory->host_pointer());
      std::transform(x, x + to.on_device_size_bytes() / sizeof(float), static_cast<float*>(to.host_pointer()),
                     [factor](float value) { return value * factor; });
      return purlin::OkStatus();
    };
    static purlin::ThreadPoolAsyncWorkRunner& runner = *new purlin::ThreadPoolAsyncWorkRunner(Client().runner());
    return purlin::MakeFutureWhenReady(ready).MapAlways(runner, std::move(task)).AsEvent();
  }

 private:
  float factor_ = 0;
};

// A copy by Purlin, which ends on its own.
class Copy final : public TensorFlowOp {
 public:
  explicit Copy(OpKernelConstruction* c) : TensorFlowOp(c, Space()) {}
  purlin::Event Start(TensorFlowCall& call) override {
    const purlin::StatusOr<purlin::Buffer> from = call.Input(0);
    if (!from.ok()) return purlin::Event::Error(from.status());
    const purlin::StatusOr<purlin::RawBuffer> to = call.Output(0, call.context()->input(0).shape());
    if (!to.ok()) return purlin::Event::Error(to.status());
    return from->CopyToHost(to->host_pointer(), to->on_device_size_bytes());
  }
};

// Whether input and output are, for Purlin, where TensorFlow has them.
class Wrapped final : public TensorFlowOp {
 public:
  explicit Wrapped(OpKernelConstruction* c) : TensorFlowOp(c, Space()) {}
  purlin::Event Start(TensorFlowCall& call) override {
    const purlin::StatusOr<purlin::Buffer> from = call.Input(0);
    if (!from.ok()) return purlin::Event::Error(from.status());
    const purlin::StatusOr<purlin::RawBuffer> to = call.Output(0, {});
    if (!to.ok()) return purlin::Event::Error(to.status());
    const bool wrapped = from->RawAlias().value().host_pointer() == call.context()->input(0).data() &&
                         to->host_pointer() == call.context()->mutable_output(0)->data();
    std::memcpy(to->host_pointer(), &wrapped, sizeof(wrapped));
    return purlin::Event();
  }
};

class Fail final : public TensorFlowOp {
 public:
  explicit Fail(OpKernelConstruction* c) : TensorFlowOp(c, Space()) { c->SetStatus(c->GetAttr("code", &code_)); }
  purlin::Event Start(TensorFlowCall&) override {
    static const purlin::UserContext& context = *new purlin::UserContext(purlin::UserContext::Create("train.py:42"));
    const purlin::UserContextScope scope(context);
    const auto code = static_cast<purlin::StatusCode>(code_);
    purlin::ThreadPoolAsyncWorkRunner runner = Client().runner();
    return purlin::MakeFutureOn(runner, [code] { return purlin::Status(code, "asked to fail"); }).AsEvent();
  }

 private:
  int code_ = 0;
};

class OutOfBounds final : public TensorFlowOp {
 public:
  explicit OutOfBounds(OpKernelConstruction* c) : TensorFlowOp(c, Space()) {}
  purlin::Event Start(TensorFlowCall& call) override {
    const purlin::Status input = call.Input(1).status();
    const purlin::Status output = call.Output(-1, {}).status();
    return purlin::Event::Error(
        purlin::Status(input.code(), std::string(input.message()) + "; " + std::string(output.message())));
  }
};

// Ends only when it is cancelled.
class Wait final : public TensorFlowOp {
 public:
  explicit Wait(OpKernelConstruction* c) : TensorFlowOp(c, Space()) {}
  purlin::Event Start(TensorFlowCall& call) override {
    const purlin::CancelToken cancelled = call.Cancelled();
    return purlin::MakeFutureWhenReady(cancelled.event()).Map([cancelled] { return cancelled.status(); }).AsEvent();
  }
};

absl::Status Unchanged(tensorflow::shape_inference::InferenceContext* c) {
  c->set_output(0, c->input(0));
  return absl::OkStatus();
}
absl::Status Scalar(tensorflow::shape_inference::InferenceContext* c) {
  c->set_output(0, c->Scalar());
  return absl::OkStatus();
}

REGISTER_OP("PurlinScale").Attr("factor: float").Input("x: float").Output("y: float").SetShapeFn(Unchanged);
REGISTER_OP("PurlinCopy").Attr("T: type").Input("x: T").Output("y: T").SetShapeFn(Unchanged);
REGISTER_OP("PurlinWrapped").Attr("T: type").Input("x: T").Output("y: bool").SetShapeFn(Scalar);
REGISTER_OP("PurlinFail").Attr("code: int").Input("x: float").Output("y: float").SetShapeFn(Unchanged);
REGISTER_OP("PurlinOutOfBounds").Input("x: float").Output("y: float").SetShapeFn(Unchanged);
REGISTER_OP("PurlinWait").Input("x: float").Output("y: float").SetIsStateful().SetShapeFn(Unchanged);
REGISTER_KERNEL_BUILDER(Name("PurlinScale").Device(tensorflow::DEVICE_CPU), Scale);
REGISTER_KERNEL_BUILDER(Name("PurlinCopy").Device(tensorflow::DEVICE_CPU), Copy);
REGISTER_KERNEL_BUILDER(Name("PurlinWrapped").Device(tensorflow::DEVICE_CPU), Wrapped);
REGISTER_KERNEL_BUILDER(Name("PurlinFail").Device(tensorflow::DEVICE_CPU), Fail);
REGISTER_KERNEL_BUILDER(Name("PurlinOutOfBounds").Device(tensorflow::DEVICE_CPU), OutOfBounds);
REGISTER_KERNEL_BUILDER(Name("PurlinWait").Device(tensorflow::DEVICE_CPU), Wait);

}  // namespace

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

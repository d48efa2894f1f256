// A custom op of TensorFlow adopts Purlin: the op stays, its kernel becomes asynchronous over the same tensors.
//
// `before` is a usual kernel: it holds a thread of TensorFlow's while it computes. `after` hands the same tensors to
// Purlin and returns an event. tensorflow_op.py, beside this file, loads both into TensorFlow and compares.
#include <cmath>
#include <cstddef>
#include <utility>

#include "purlin/adapters/tensorflow_op.h"
#include "purlin/purlin.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"

void Normalize(const float* x, float* y, std::size_t count, float epsilon) {
  float sum = epsilon;
  for (std::size_t i = 0; i < count; ++i) sum += x[i] * x[i];
  for (std::size_t i = 0; i < count; ++i) y[i] = x[i] / std::sqrt(sum);
}

namespace before {

class Kernel final : public tensorflow::OpKernel {
 public:
  explicit Kernel(tensorflow::OpKernelConstruction* c) : OpKernel(c) { c->SetStatus(c->GetAttr("epsilon", &epsilon_)); }
  void Compute(tensorflow::OpKernelContext* context) override {
    if (!(epsilon_ > 0)) return context->SetStatus(absl::InvalidArgumentError("epsilon must be positive"));
    const tensorflow::Tensor& x = context->input(0);
    tensorflow::Tensor* y = nullptr;
    absl::Status allocated = context->allocate_output(0, x.shape(), &y);
    if (!allocated.ok()) return context->SetStatus(allocated);
    Normalize(x.flat<float>().data(), y->flat<float>().data(), static_cast<std::size_t>(x.NumElements()), epsilon_);
  }

 private:
  float epsilon_ = 0;
};

}  // namespace before

namespace after {

// Never destroyed: TensorFlow's threads may call until the process ends.
const purlin::Client& Client() {
  static const purlin::Client& client = *new purlin::Client(purlin::Client::Create().value());
  return client;
}

class Kernel final : public purlin::adapters::TensorFlowOp {
 public:
  explicit Kernel(tensorflow::OpKernelConstruction* c) : TensorFlowOp(c, Client().devices()[0].default_memory_space()) {
    c->SetStatus(c->GetAttr("epsilon", &epsilon_));
  }
  purlin::Event Start(purlin::adapters::TensorFlowCall& call) override {
    if (!(epsilon_ > 0)) return purlin::Event::Error(purlin::InvalidArgumentError("epsilon must be positive"));
    purlin::StatusOr<purlin::Buffer> from = call.Input(0);
    if (!from.ok()) return purlin::Event::Error(from.status());
    purlin::StatusOr<purlin::RawBuffer> to = call.Output(0, call.context()->input(0).shape());
    if (!to.ok()) return purlin::Event::Error(to.status());
    // The array may be there a little later: an input that cannot be wrapped is copied.
    const purlin::Event ready = from->ready_event();
    auto task = [epsilon = epsilon_, from = *std::move(from), to = *std::move(to)]() -> purlin::Status {
      const purlin::StatusOr<purlin::RawBuffer> memory = from.RawAlias();
      if (!memory.ok()) return memory.status();
      Normalize(static_cast<const float*>(memory->host_pointer()), static_cast<float*>(to.host_pointer()),
                to.on_device_size_bytes() / sizeof(float), epsilon);
      return purlin::OkStatus();
    };
    static purlin::ThreadPoolAsyncWorkRunner& runner = *new purlin::ThreadPoolAsyncWorkRunner(Client().runner());
    return purlin::MakeFutureWhenReady(ready).MapAlways(runner, std::move(task)).AsEvent();
  }

 private:
  float epsilon_ = 0;
};

}  // namespace after

REGISTER_OP("NormalizeBefore").Attr("epsilon: float").Input("x: float").Output("y: float");
REGISTER_OP("NormalizeAfter").Attr("epsilon: float").Input("x: float").Output("y: float");
REGISTER_KERNEL_BUILDER(Name("NormalizeBefore").Device(tensorflow::DEVICE_CPU), before::Kernel);
REGISTER_KERNEL_BUILDER(Name("NormalizeAfter").Device(tensorflow::DEVICE_CPU), after::Kernel);

// Purlin's adapter for TensorFlow's custom ops: a kernel whose body is Purlin code, over the tensors' own memory.
//
//   class Scale final : public purlin::adapters::TensorFlowOp {
//    public:
//     explicit Scale(tensorflow::OpKernelConstruction* c) : TensorFlowOp(c, memory_space) { ... }
//     purlin::Event Start(purlin::adapters::TensorFlowCall& call) override {
//       purlin::StatusOr<purlin::Buffer> x = call.Input(0);
//       purlin::StatusOr<purlin::RawBuffer> y = call.Output(0, call.context()->input(0).shape());
//       if (!x.ok() || !y.ok()) return ...;
//       return ScaleWithPurlin(*x, *y, factor_);
//     }
//   };
//   REGISTER_KERNEL_BUILDER(Name("Scale").Device(tensorflow::DEVICE_CPU), Scale);
//
// A tensor is wrapped, not copied, and the objects of Purlin that use it keep it alive, also after the op. A shared
// library with the op, made with the flags of tf.sysconfig and with Purlin's archive inside, is loaded by
// tf.load_op_library; it needs libtensorflow_framework.so.2 only, which is in the process. For kernels of DEVICE_CPU.
//
// For the wheel tensorflow-cpu 2.21, with NDEBUG defined, as tsl_async_value.h says.
#ifndef PURLIN_ADAPTERS_TENSORFLOW_OP_H_
#define PURLIN_ADAPTERS_TENSORFLOW_OP_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "purlin/adapters/absl.h"
#include "purlin/buffer.h"
#include "purlin/cancel.h"
#include "purlin/device.h"
#include "purlin/dtype.h"
#include "purlin/event.h"
#include "purlin/host_buffer.h"
#include "purlin/raw_buffer.h"
#include "purlin/source_location.h"
#include "purlin/status.h"
#include "purlin/status_or.h"
#include "purlin/user_context.h"
#include "purlin/version.h"
#include "tensorflow/core/framework/cancellation.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.pb.h"

namespace purlin {
inline namespace v0 {
namespace adapters {

/// The same element type; kInvalid for what is no plain number (strings, resources, variants, quantized types) and for
/// references.
constexpr DType FromTensorFlow(tensorflow::DataType type) noexcept {
  switch (type) {
    case tensorflow::DT_BOOL:
      return DType::kPred;
    case tensorflow::DT_INT2:
      return DType::kS2;
    case tensorflow::DT_INT4:
      return DType::kS4;
    case tensorflow::DT_INT8:
      return DType::kS8;
    case tensorflow::DT_INT16:
      return DType::kS16;
    case tensorflow::DT_INT32:
      return DType::kS32;
    case tensorflow::DT_INT64:
      return DType::kS64;
    case tensorflow::DT_UINT2:
      return DType::kU2;
    case tensorflow::DT_UINT4:
      return DType::kU4;
    case tensorflow::DT_UINT8:
      return DType::kU8;
    case tensorflow::DT_UINT16:
      return DType::kU16;
    case tensorflow::DT_UINT32:
      return DType::kU32;
    case tensorflow::DT_UINT64:
      return DType::kU64;
    case tensorflow::DT_HALF:
      return DType::kF16;
    case tensorflow::DT_BFLOAT16:
      return DType::kBF16;
    case tensorflow::DT_FLOAT:
      return DType::kF32;
    case tensorflow::DT_DOUBLE:
      return DType::kF64;
    case tensorflow::DT_COMPLEX64:
      return DType::kC64;
    case tensorflow::DT_COMPLEX128:
      return DType::kC128;
    case tensorflow::DT_FLOAT8_E5M2:
      return DType::kF8E5M2;
    case tensorflow::DT_FLOAT8_E4M3FN:
      return DType::kF8E4M3FN;
    case tensorflow::DT_FLOAT8_E4M3FNUZ:
      return DType::kF8E4M3FNUZ;
    case tensorflow::DT_FLOAT8_E4M3B11FNUZ:
      return DType::kF8E4M3B11FNUZ;
    case tensorflow::DT_FLOAT8_E5M2FNUZ:
      return DType::kF8E5M2FNUZ;
    case tensorflow::DT_FLOAT4_E2M1FN:
      return DType::kF4E2M1FN;
    default:
      return DType::kInvalid;
  }
}

/// As ToAbsl, with the texts of user contexts in the message, which is what Python shows.
template <typename AbslStatus = absl::Status>
AbslStatus ToTensorFlow(const Status& status) {
  return ToAbsl(ExpandUserContexts(status));
}

/// `tensor` as an array, which keeps it alive, and reads it in place: `memory_space` is of a client that can use memory
/// of the host. The tensor must not be written meanwhile. It is copied if it cannot be used in place: an address that
/// is no multiple of 16 (a slice of another tensor), elements narrower than a byte, which TensorFlow does not pack.
/// Then it is ready later. Never blocks. kUnimplemented: elements without a DType. Or the errors of Buffer::FromHost.
inline StatusOr<Buffer> FromTensorFlow(const tensorflow::Tensor& tensor, const MemorySpace& memory_space,
                                       SourceLocation location = SourceLocation::Current()) {
  const DType dtype = FromTensorFlow(tensor.dtype());
  if (dtype == DType::kInvalid) {
    return UnimplementedError("Purlin has no element type for " + tensorflow::DataType_Name(tensor.dtype()), location);
  }
  std::vector<std::int64_t> dims;
  for (int axis = 0; axis < tensor.dims(); ++axis) dims.push_back(tensor.dim_size(axis));
  FromHostOptions options;
  options.semantics = HostBufferSemantics::kImmutableZeroCopy;
  auto let_go = [kept = tensor](const Status&) mutable { kept = tensorflow::Tensor(); };
  StatusOr<FromHostResult> made =
      Buffer::FromHost(tensor.data(), dtype, dims, memory_space, options, std::move(let_go), location);
  if (!made.ok()) return std::move(made).status();
  return std::move(made->buffer);
}

/// The memory of a tensor that is to be written, the output of an op. It keeps the tensor alive. Elements narrower than
/// a byte have a byte each, as everywhere in TensorFlow. Never blocks. kInvalidArgument: null, or an address that is no
/// multiple of 16. kUnimplemented: elements without a DType.
inline StatusOr<RawBuffer> FromTensorFlow(tensorflow::Tensor* tensor, const MemorySpace& memory_space,
                                          SourceLocation location = SourceLocation::Current()) {
  if (tensor == nullptr) return InvalidArgumentError("FromTensorFlow of a null tensor", location);
  if (FromTensorFlow(tensor->dtype()) == DType::kInvalid) {
    return UnimplementedError("Purlin has no element type for " + tensorflow::DataType_Name(tensor->dtype()), location);
  }
  const std::size_t size_bytes = tensor->TotalBytes();
  if (size_bytes == 0) return RawBuffer::Allocate(memory_space, 0);
  return RawBuffer::Import(memory_space, tensor->data(), size_bytes, Mutability::kMutable,
                           [kept = *tensor]() mutable { kept = tensorflow::Tensor(); });
}

/// One call of a kernel: its inputs and outputs for Purlin. Lives while Start runs.
class TensorFlowCall final {
 public:
  TensorFlowCall(const TensorFlowCall&) = delete;
  TensorFlowCall& operator=(const TensorFlowCall&) = delete;

  /// TensorFlow's own. Alive until the event that Start returns.
  [[nodiscard]] tensorflow::OpKernelContext* context() const noexcept { return context_; }
  /// Input `index` as an array, see FromTensorFlow. kOutOfRange, naming both: there are not so many.
  StatusOr<Buffer> Input(int index, SourceLocation location = SourceLocation::Current()) const {
    if (index < 0 || index >= context_->num_inputs()) {
      return OutOfRangeError(
          "input " + std::to_string(index) + " of an op with " + std::to_string(context_->num_inputs()), location);
    }
    return FromTensorFlow(context_->input(index), memory_space_, location);
  }
  /// Allocates output `index`; its memory, to be written before the event that Start returns, and not after it. Errors
  /// of OpKernelContext::allocate_output, and as FromTensorFlow. kOutOfRange, naming both: there are not so many.
  StatusOr<RawBuffer> Output(int index, const tensorflow::TensorShape& shape,
                             SourceLocation location = SourceLocation::Current()) const {
    if (index < 0 || index >= context_->num_outputs()) {
      return OutOfRangeError(
          "output " + std::to_string(index) + " of an op with " + std::to_string(context_->num_outputs()), location);
    }
    tensorflow::Tensor* tensor = nullptr;
    if (absl::Status status = context_->allocate_output(index, shape, &tensor); !status.ok()) {
      return FromAbsl(status, location);
    }
    return FromTensorFlow(tensor, memory_space_, location);
  }
  /// Cancelled (kCancelled) when TensorFlow cancels the step: another op has failed, or a time limit has passed. An op
  /// that waits for others must check it, and must be registered as stateful (SetIsStateful): TensorFlow also runs
  /// stateless ops when it folds constants, where no step can be cancelled. The first call of it costs two allocations.
  CancelToken Cancelled() {
    tensorflow::CancellationManager* const manager = context_->cancellation_manager();
    if (manager == nullptr) return CancelToken();
    if (!stop_.has_value()) {
      stop_.emplace(CancelSource(Label("TensorFlow's step")));
      registration_ = manager->get_cancellation_token();
      const Status reason = CancelledError("TensorFlow cancelled the step");
      if (!manager->RegisterCallback(registration_, [stop = *stop_, reason] { stop.Cancel(reason); })) {
        stop_->Cancel(reason);
      }
    }
    return stop_->token();
  }

 private:
  friend class TensorFlowOp;
  TensorFlowCall(tensorflow::OpKernelContext* context, const MemorySpace& memory_space)
      : context_(context), memory_space_(memory_space) {}
  tensorflow::OpKernelContext* context_;
  const MemorySpace& memory_space_;
  std::optional<CancelSource> stop_;
  tensorflow::CancellationToken registration_ = 0;
};

/// A kernel whose body is Purlin code. Derive, and define Start.
class TensorFlowOp : public tensorflow::AsyncOpKernel {
 public:
  /// Wraps tensors as memory of `memory_space`, which is kept. TensorFlow decides how long a kernel lives, so its
  /// client should live as long as the process.
  TensorFlowOp(tensorflow::OpKernelConstruction* construction, MemorySpace memory_space)
      : AsyncOpKernel(construction), memory_space_(std::move(memory_space)) {}

  /// Begins the work of one call, on a thread of TensorFlow's, on several at once. Must not block on other ops. The op
  /// is done when the event happens, or fails with its error; TensorFlow goes on on the thread that completes it.
  virtual Event Start(TensorFlowCall& call) = 0;

  /// For TensorFlow.
  void ComputeAsync(tensorflow::OpKernelContext* context, DoneCallback done) final {
    TensorFlowCall call(context, memory_space_);
    const Event over = Start(call);
    over.OnReady([context, stop = std::move(call.stop_), registration = call.registration_,
                  done = std::move(done)](const Status& status) {
      // What has been called need not, and must not, be taken out: this may be inside it.
      if (stop.has_value() && !stop->token().IsCancelled()) {
        context->cancellation_manager()->TryDeregisterCallback(registration);
      }
      if (!status.ok()) context->SetStatus(ToTensorFlow(status));
      done();
    });
  }

 private:
  MemorySpace memory_space_;
};

}  // namespace adapters
}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_ADAPTERS_TENSORFLOW_OP_H_

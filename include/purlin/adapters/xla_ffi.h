// Purlin's adapter for XLA's FFI: a custom call whose body is Purlin code, for any XLA that runs on the CPU.
//
//   purlin::Event Scale(float factor, ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y) {
//     purlin::adapters::FfiCall call(memory_space);
//     purlin::StatusOr<purlin::Buffer> from = call.Argument(x);          // the operand's own memory, an array
//     purlin::StatusOr<purlin::RawBuffer> to = call.Result(y);           // the result's own memory
//     if (!from.ok() || !to.ok()) return ...;
//     return std::move(call).Finish(ScaleWithPurlin(*from, *to, factor));
//   }
//   ffi::Ffi::Bind().Attr<float>("factor").Arg<ffi::Buffer<ffi::F32>>().Ret<ffi::Buffer<ffi::F32>>().To(Scale)
//
// A handler may return a purlin::Status, which is a synchronous call, or a purlin::Event or a purlin::Future<>, which
// is an asynchronous one: XLA goes on without the result, on the thread that completes it. Where its type is written
// down, ToFfi(event) is the ffi::Future, and ToFfi(status) the ffi::Error.
//
// XLA's operands, results and attributes are there until the call is over: until the handler returns, or the future
// that it returned completes. An attribute (Span, std::string_view) that a task needs is copied. Memory that a task
// needs comes from an FfiCall, which ensures that the call does not end before the memory is released.
//
// An error of XLA's FFI is a code and a text. Texts of user contexts go into the text; other payloads do not cross.
//
// For the FFI of jaxlib 0.10 (version 0.3) and of the wheel tensorflow-cpu 2.21 (0.2), on the platform "cpu": an
// accelerator's memory is not the host's, and nothing here detects that. XLA's headers are enough, no library; with
// -Wpedantic g++ rejects them.
#ifndef PURLIN_ADAPTERS_XLA_FFI_H_
#define PURLIN_ADAPTERS_XLA_FFI_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "purlin/adapters/owed_count.h"
#include "purlin/buffer.h"
#include "purlin/device.h"
#include "purlin/dtype.h"
#include "purlin/event.h"
#include "purlin/executor.h"
#include "purlin/future.h"
#include "purlin/label.h"
#include "purlin/raw_buffer.h"
#include "purlin/shape.h"
#include "purlin/source_location.h"
#include "purlin/span.h"
#include "purlin/status.h"
#include "purlin/status_or.h"
#include "purlin/user_context.h"
#include "purlin/version.h"
#include "xla/ffi/api/ffi.h"

namespace purlin {
inline namespace v0 {
namespace adapters {

/// The same code and message, and the texts of its user contexts, which are rendered here. XLA reads a message up to
/// its first NUL.
inline xla::ffi::Error ToFfi(const Status& status) {
  if (status.ok()) return xla::ffi::Error::Success();
  const Status shown = ExpandUserContexts(status);
  return xla::ffi::Error(static_cast<xla::ffi::ErrorCode>(shown.raw_code()), std::string(shown.message()));
}

/// The same code and message; the place is that of the caller.
inline Status FromFfi(const xla::ffi::Error& error, SourceLocation location = SourceLocation::Current()) {
  if (error.success()) return Status();
  return Status(static_cast<StatusCode>(error.errc().value_or(xla::ffi::ErrorCode::kUnknown)), error.message(),
                location);
}

/// The value, moved or copied, or the error as above: what a handler that makes a state (std::unique_ptr) returns.
template <typename T>
xla::ffi::ErrorOr<T> ToFfi(StatusOr<T> result) {
  if (!result.ok()) return xla::ffi::Unexpected<xla::ffi::Error>(ToFfi(result.status()));
  return xla::ffi::ErrorOr<T>(*std::move(result));
}

/// The value, moved or copied, or the error as above: the results of remaining arguments and dictionaries.
template <typename T>
StatusOr<T> FromFfi(xla::ffi::ErrorOr<T> result, SourceLocation location = SourceLocation::Current()) {
  if (result.has_error()) return FromFfi(result.error(), location);
  return StatusOr<T>(std::move(result).value());
}

/// The same elements.
template <typename T>
Span<T> FromFfi(xla::ffi::Span<T> span) noexcept {
  return Span<T>(span.begin(), span.size());
}

/// The same element type. S1, U1, and numbers that XLA's FFI does not have give kInvalid.
constexpr DType FromFfi(xla::ffi::DataType type) noexcept {
  using xla::ffi::DataType;
  switch (type) {
    case DataType::INVALID:
    case DataType::S1:
    case DataType::U1:
      return DType::kInvalid;
    case DataType::PRED:
      return DType::kPred;
    case DataType::S2:
      return DType::kS2;
    case DataType::S4:
      return DType::kS4;
    case DataType::S8:
      return DType::kS8;
    case DataType::S16:
      return DType::kS16;
    case DataType::S32:
      return DType::kS32;
    case DataType::S64:
      return DType::kS64;
    case DataType::U2:
      return DType::kU2;
    case DataType::U4:
      return DType::kU4;
    case DataType::U8:
      return DType::kU8;
    case DataType::U16:
      return DType::kU16;
    case DataType::U32:
      return DType::kU32;
    case DataType::U64:
      return DType::kU64;
    case DataType::F16:
      return DType::kF16;
    case DataType::F32:
      return DType::kF32;
    case DataType::F64:
      return DType::kF64;
    case DataType::BF16:
      return DType::kBF16;
    case DataType::C64:
      return DType::kC64;
    case DataType::C128:
      return DType::kC128;
    case DataType::TOKEN:
      return DType::kToken;
    case DataType::F8E5M2:
      return DType::kF8E5M2;
    case DataType::F8E4M3:
      return DType::kF8E4M3;
    case DataType::F8E4M3FN:
      return DType::kF8E4M3FN;
    case DataType::F8E4M3B11FNUZ:
      return DType::kF8E4M3B11FNUZ;
    case DataType::F8E5M2FNUZ:
      return DType::kF8E5M2FNUZ;
    case DataType::F8E4M3FNUZ:
      return DType::kF8E4M3FNUZ;
    case DataType::F8E3M4:
      return DType::kF8E3M4;
    case DataType::F4E2M1FN:
      return DType::kF4E2M1FN;
    case DataType::F8E8M0FNU:
      return DType::kF8E8M0FNU;
  }
  return DType::kInvalid;
}

/// An ffi::Future that is available when `event` has happened, or has its error. XLA goes on on the thread that
/// completes `event`.
inline xla::ffi::Future ToFfi(const Event& event) {
  xla::ffi::Promise promise;
  xla::ffi::Future future(promise);
  event.OnReady([promise = std::move(promise)](const Status& status) mutable {
    status.ok() ? promise.SetAvailable() : promise.SetError(ToFfi(status));
  });
  return future;
}

/// An event that happens or fails as `future` does, on the thread that completes that. An ffi::Promise that is dropped
/// unset completes nothing: then the event stays pending (DumpStalls names it, "xla::ffi::Future"), and XLA's part
/// leaks.
inline Event FromFfi(xla::ffi::Future future, SourceLocation location = SourceLocation::Current()) {
  const auto promise = std::make_shared<EventPromise>(Label("xla::ffi::Future"), location);
  Event event = promise->event();
  future.OnReady([promise, location](const std::optional<xla::ffi::Error>& error) {
    promise->Set(error.has_value() ? FromFfi(*error, location) : OkStatus());
  });
  return event;
}

/// XLA's own threads as an executor: bind `Ctx<ffi::ThreadPool>()`. Tasks may run after the handler has returned, but
/// are given only until then, by the handler's thread: XLA's pool knows the call. So it serves MakeFutureOn and
/// Future::OnReady of what is ready, not what waits for an event. Where XLA has no threads, the task runs inside
/// Execute. It never refuses.
class FfiThreadPool final : public Executor {
 public:
  /// Borrows the threads of `pool`.
  explicit FfiThreadPool(xla::ffi::ThreadPool pool) : pool_(std::move(pool)) {}
  /// See the top of this class.
  Status Execute(Task task) override {
    pool_.Schedule([task = std::move(task)]() mutable { std::move(task).Run(); });
    return OkStatus();
  }
  /// As XLA says; 0 if it has none.
  [[nodiscard]] std::size_t NumThreads() const {
    const auto count = pool_.num_threads();
    return count < 0 ? 0 : static_cast<std::size_t>(count);
  }

 private:
  xla::ffi::ThreadPool pool_;
};

/// The memory of one call of a handler, for Purlin, without a copy. A local variable of the handler, used by its
/// thread. A call ends when its memory is no longer used: a handler that returns without Finish waits for that.
class [[nodiscard]] FfiCall final {
 public:
  /// Arrays of this call are in `memory_space`, of a client that can import memory of the host. `location` names the
  /// call in reports, if it does not end.
  explicit FfiCall(MemorySpace memory_space, SourceLocation location = SourceLocation::Current())
      : memory_space_(std::move(memory_space)), location_(location) {}
  FfiCall(const FfiCall&) = delete;
  FfiCall& operator=(const FfiCall&) = delete;
  /// Unless finished: blocks until the memory is no longer used, so buffers of it are declared below the call, and
  /// tasks that use it do not wait for this thread.
  ~FfiCall() {
    if (lent_ != nullptr) internal::AwaitAllGone(LetGo());
  }

  /// An operand (ffi::Buffer, ffi::AnyBuffer) as an array that is ready, read-only. XLA's FFI passes no layout: the
  /// custom call's layout counts, row-major unless it is declared otherwise. kUnimplemented: an element type that
  /// Purlin does not have (S1, U1). Or the errors of RawBuffer::Import and Buffer::FromRaw.
  template <typename FfiBuffer>
  StatusOr<Buffer> Argument(const FfiBuffer& argument) {
    const DType dtype = FromFfi(argument.element_type());
    const Shape shape(dtype, FromFfi(argument.dimensions()));
    StatusOr<RawBuffer> memory = Import(argument, dtype, shape, Mutability::kImmutable);
    if (!memory.ok()) return std::move(memory).status();
    return Buffer::FromRaw(*memory, shape);
  }
  /// A result's memory, to be written before the call is over; its elements are packed as in every array on a device.
  /// Errors as Argument.
  template <typename FfiBuffer>
  StatusOr<RawBuffer> Result(xla::ffi::Result<FfiBuffer> result) {
    const DType dtype = FromFfi(result->element_type());
    return Import(*result, dtype, Shape(dtype, FromFfi(result->dimensions())), Mutability::kMutable);
  }

  /// What the handler returns when its body goes on after it: happens when `done` has happened and the memory is no
  /// longer used; fails with the error of `done` at the same moment. Never blocks.
  Event Finish(const Event& done) && {
    if (lent_ == nullptr) return done;
    const Event let_go = LetGo();
    if (let_go.IsReady()) return done;
    const Event events[] = {done, let_go};
    return WhenAll(events, location_);
  }

 private:
  template <typename FfiBuffer>
  StatusOr<RawBuffer> Import(const FfiBuffer& theirs, DType dtype, const Shape& shape, Mutability mutability) {
    if (dtype == DType::kInvalid) {
      return UnimplementedError("Purlin has no element type for number " +
                                    std::to_string(static_cast<int>(theirs.element_type())) + " of XLA's FFI",
                                location_);
    }
    const StatusOr<std::size_t> size_bytes = shape.on_device_size_bytes();
    if (!size_bytes.ok()) return size_bytes.status();
    // XLA may have no address for what is empty.
    if (*size_bytes == 0) return RawBuffer::Allocate(memory_space_, 0);
    if (lent_ == nullptr) lent_ = new internal::OwedCount;
    return RawBuffer::Import(memory_space_, theirs.untyped_data(), *size_bytes, mutability,
                             [share = internal::OwedShare(lent_)]() mutable { share.Leave(); });
  }

  Event LetGo() { return std::exchange(lent_, nullptr)->Close(Label("memory of an XLA FFI call"), location_); }

  MemorySpace memory_space_;
  SourceLocation location_;
  internal::OwedCount* lent_ = nullptr;  // Once memory is in use.
};

}  // namespace adapters
}  // namespace v0
}  // namespace purlin

namespace xla::ffi {

/// A handler may return a purlin::Status: a synchronous call.
template <ExecutionStage stage>
struct ResultEncoding<stage, purlin::Status> {
  /// For XLA.
  static XLA_FFI_Error* Encode(const XLA_FFI_Api* api, XLA_FFI_ExecutionContext* ctx, const purlin::Status& status) {
    if (status.ok()) return nullptr;
    return ResultEncoding<stage, Error>::Encode(api, ctx, purlin::adapters::ToFfi(status));
  }
};

/// A handler may return a purlin::Event: an asynchronous call, unless it has happened or failed by then.
template <ExecutionStage stage>
struct ResultEncoding<stage, purlin::Event> {
  /// For XLA.
  static std::variant<XLA_FFI_Error*, XLA_FFI_Future*> Encode(const XLA_FFI_Api* api, XLA_FFI_ExecutionContext* ctx,
                                                              const purlin::Event& event) {
    if (event.IsReady()) return ResultEncoding<stage, purlin::Status>::Encode(api, ctx, event.error());
    return ResultEncoding<stage, Future>::Encode(api, ctx, purlin::adapters::ToFfi(event));
  }
};

/// A handler may return a purlin::Future<>: as a purlin::Event.
template <ExecutionStage stage>
struct ResultEncoding<stage, purlin::Future<>> {
  /// For XLA.
  static std::variant<XLA_FFI_Error*, XLA_FFI_Future*> Encode(const XLA_FFI_Api* api, XLA_FFI_ExecutionContext* ctx,
                                                              const purlin::Future<>& future) {
    return ResultEncoding<stage, purlin::Event>::Encode(api, ctx, future.AsEvent());
  }
};

}  // namespace xla::ffi

#endif  // PURLIN_ADAPTERS_XLA_FFI_H_

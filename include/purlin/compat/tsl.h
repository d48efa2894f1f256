// Purlin: tsl's names and shapes for what Purlin has with the same meaning, so that code over them compiles unchanged.
//
// ```cpp
// namespace tsl = purlin::compat::tsl;  // where the real ones are not included; compat/absl.h has absl's names
// namespace absl = purlin::compat::absl;
//
// tsl::Future<float> Norm(tsl::Executor& executor, const tsl::Future<float>& squares) {
//   return squares.Map(executor, [](float sum) -> absl::StatusOr<float> {
//     TF_RETURN_IF_ERROR(sum >= 0 ? absl::OkStatus() : absl::OutOfRangeError("negative"));
//     return sum / 2;
//   });
// }
// auto [promise, squares] = tsl::MakePromise<float>();
// const tsl::Future<float> norm = Norm(tsl::InlineExecutor::Instance(), squares);
// promise.Set(4);
// const float two = *norm.Await();
// ```
//
// Opt-in: no other header includes this one, and it includes nothing of tsl, XLA or abseil. The types are Purlin's own
// where their shape is the same, so both names may be mixed. docs/adopting.md has a table of all names, and one of what
// differs in behaviour. The macros are defined where no other header has defined them before.
#ifndef PURLIN_COMPAT_TSL_H_
#define PURLIN_COMPAT_TSL_H_

#include <utility>

#include "purlin/async_value.h"
#include "purlin/async_value_cast.h"
#include "purlin/async_value_storage.h"
#include "purlin/compat/absl.h"
#include "purlin/compat/tsl_async_value.h"
#include "purlin/compat/tsl_executor.h"
#include "purlin/compat/tsl_thread_pool.h"
#include "purlin/count_down.h"
#include "purlin/future.h"
#include "purlin/join_futures.h"
#include "purlin/label.h"
#include "purlin/promise.h"
#include "purlin/source_location.h"
#include "purlin/status_macros.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace compat {
namespace tsl {

using ::purlin::AsyncValueOwningRef;
using ::purlin::AsyncValuePtr;
using ::purlin::AsyncValueRef;
using ::purlin::Chain;
using ::purlin::CountDownAsyncValueRef;
using ::purlin::Future;
using ::purlin::Promise;
using ::purlin::ScopedAsyncValue;

using ::purlin::Cast;
using ::purlin::DynCast;
using ::purlin::DynCastOrNull;
using ::purlin::Isa;
using ::purlin::JoinFutures;
using ::purlin::MakeAsyncValueRef;
using ::purlin::MakeAvailableAsyncValueRef;
using ::purlin::MakeConstructedAsyncValueRef;
using ::purlin::MakeFutureOn;
using ::purlin::MakeFutureWhenReady;
using ::purlin::MakePromise;
using ::purlin::MakeUnconstructedAsyncValueRef;
using ::purlin::TryMakeAsyncValueRef;

namespace internal {
using ::purlin::AsyncValueStorage;
}  // namespace internal

/// A promise that can be copied; the first set of all copies wins.
template <typename T = void>
using PromiseOnce = SharedPromise<T>;

/// Such a promise and its future.
template <typename T = void>
std::pair<PromiseOnce<T>, Future<T>> MakePromiseOnce(Label label = Label("promise"),
                                                     SourceLocation location = SourceLocation::Current()) {
  return MakeSharedPromise<T>(label, location);
}

}  // namespace tsl
}  // namespace compat
}  // namespace v0
}  // namespace purlin

#if !defined(TF_RETURN_IF_ERROR)
#define TF_RETURN_IF_ERROR(...) PURLIN_RETURN_IF_ERROR(__VA_ARGS__)
#endif
#if !defined(TF_ASSIGN_OR_RETURN)
#define TF_ASSIGN_OR_RETURN(left, ...) PURLIN_ASSIGN_OR_RETURN(left, __VA_ARGS__)
#endif
#if !defined(RETURN_IF_ERROR)
#define RETURN_IF_ERROR(...) PURLIN_RETURN_IF_ERROR(__VA_ARGS__)
#endif
#if !defined(ASSIGN_OR_RETURN)
#define ASSIGN_OR_RETURN(left, ...) PURLIN_ASSIGN_OR_RETURN(left, __VA_ARGS__)
#endif

#endif  // PURLIN_COMPAT_TSL_H_

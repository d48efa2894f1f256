// Purlin: CUDA C++ compiled at run time, each source once.
//
// ```cpp
// purlin::Status WarmUp(const purlin::CompileCache& cache, purlin::Executor& pool, const purlin::KernelSource& source)
// {
//   const purlin::Future<purlin::Ptx> first = cache.GetOrCompile(source, pool);  // begins; no thread blocks
//   const purlin::Future<purlin::Ptx> again = cache.GetOrCompile(source, pool);  // the same compilation
//   first.OnReady([](const purlin::StatusOr<const purlin::Ptx*>& ptx) { /* LoadedKernel::Load, or the error */ });
//   return again.Await().status();
// }
// ```
//
// What decides a compilation is its key: all of the source, with name, target, options, headers and name expressions,
// and nvrtc's file and version. Errors are kept, too, because the same source fails again: ForgetErrors() has it tried
// again, such as after a file that it includes has changed. Nothing is forgotten unasked. It is left out where Purlin
// was built without PURLIN_CUDA.
//
// When memory is so short that small allocations fail, the process ends: SECURITY.md, "When memory is short".
#ifndef PURLIN_COMPILE_CACHE_H_
#define PURLIN_COMPILE_CACHE_H_

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "purlin/cuda.h"
#include "purlin/executor.h"
#include "purlin/export.h"
#include "purlin/future.h"
#include "purlin/internal/callback.h"
#include "purlin/internal/executor_ref.h"
#include "purlin/internal/guard.h"
#include "purlin/internal/handle.h"
#include "purlin/label.h"
#include "purlin/promise.h"
#include "purlin/status.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {

namespace internal {
struct CompileCacheRep;
}  // namespace internal

/// See the top of this file. A handle of one word; copies share the cache. Any thread.
class CompileCache final : public internal::Handle<CompileCache, const internal::CompileCacheRep> {
 public:
  /// An empty cache.
  PURLIN_API CompileCache() noexcept;
  /// Another handle to the same cache.
  PURLIN_API CompileCache(const CompileCache& other) noexcept;
  /// Leaves `other` empty, see purlin.h: its futures have failed, and it knows nothing.
  CompileCache(CompileCache&& other) noexcept = default;
  /// See the constructors.
  CompileCache& operator=(const CompileCache& other) noexcept = default;
  /// See the constructors.
  CompileCache& operator=(CompileCache&& other) noexcept = default;
  /// The last handle forgets everything. What is on its way goes on.
  PURLIN_API ~CompileCache();

  /// The PTX of `source`, which is compiled in a task of `executor` unless it is known or on its way, however many
  /// threads ask. `source` and `executor` are used during the call alone. Blocks only to look for nvrtc, once in a
  /// process, and where the executor runs tasks inside Execute. The compilation goes on when its future is dropped.
  /// Waiters of the future run on the thread that compiles, or on this one if the PTX is known.
  ///
  /// The future fails as CompileKernelSource does; with what the executor answers if it refuses the task, and with
  /// kCancelled if it drops it: nothing was compiled then, and the next call compiles.
  template <typename Mode = internal::WithExceptions>
  [[nodiscard]] Future<Ptx> GetOrCompile(const KernelSource& source, Executor& executor) const {
    Promise<Ptx> promise(Label("compile CUDA C"));
    Future<Ptx> future = promise.future();
    auto set = [promise = std::move(promise), expressions = source.name_expressions](const internal::StatusRep* error,
                                                                                     const void* compiled) mutable {
      if (error != nullptr) {
        promise.Set(Status::FromRep(error));
      } else {
        promise.Set(Take(compiled, expressions));
      }
    };
    // Nothing keeps the executor longer than the call.
    const std::shared_ptr<Executor> borrowed(std::shared_ptr<Executor>(), &executor);
    Get(source, internal::MakeExecutorRef<Mode>(borrowed), internal::MakeCallback(std::move(set)));
    return future;
  }

  /// The next call for that source compiles it anew; futures stay as they are. False if nothing was known of it, also
  /// if it is no source or there is no nvrtc. Never blocks but to look for nvrtc, once in a process.
  PURLIN_API bool Forget(const KernelSource& source) const;
  /// The next calls for what has failed compile it anew. Never blocks.
  PURLIN_API void ForgetErrors() const noexcept;
  /// Forgets everything. Never blocks.
  PURLIN_API void Clear() const noexcept;
  /// How many compilations are known or on their way.
  [[nodiscard]] PURLIN_API std::size_t size() const noexcept;

 private:
  using Handle::Handle;

  /// Takes executor and callback over.
  PURLIN_API void Get(const KernelSource& source, internal::ExecutorRef executor, internal::Callback done) const;
  /// A copy of what the callback is given, which this frees.
  PURLIN_API static Ptx Take(const void* compiled, const std::vector<std::string>& expressions);
};

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_COMPILE_CACHE_H_

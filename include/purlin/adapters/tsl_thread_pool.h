// Purlin's adapter for TSL's thread pools, and so TensorFlow's, both ways.
//
//   auto pool = purlin::adapters::ToTsl(runner);                      // a ThreadPoolAsyncWorkRunner as TSL's interface
//   tsl::thread::ThreadPool as_tsl(&pool);                            // with ParallelFor, AsExecutor(), ...
//   tsl::thread::ThreadPoolOptions options{/*inter_op_threadpool=*/&pool, /*intra_op_threadpool=*/&other};
//   session->Run(run_options, inputs, outputs, targets, &tensors, &metadata, options);   // TensorFlow runs on it
//   auto executor = purlin::adapters::FromTsl(as_tsl);                // TSL's pool as a purlin::Executor
//
// All that eigen_thread_pool.h says holds here, because TSL's interface is Eigen's. TensorFlow's kernels may block a
// thread for each other (queues, barriers, nested functions), in ways that Purlin's pool does not see. So does a kernel
// on an inter-op thread that waits for its closures in the intra-op pool: one pool of TSL's for both roles stops for
// ever once all its threads wait. Purlin's starts spares after a tenth of a second without progress, so one pool can
// serve both roles; two are faster, and needed where kernels index memory by the number of their thread
// (ParallelForWithWorkerId), because all spares have the number -1. DumpStalls names the pool, what runs on it, and
// that tasks are queued.
//
// NDEBUG must be defined as for the library that has tsl inside: see tsl_async_value.h.
#ifndef PURLIN_ADAPTERS_TSL_THREAD_POOL_H_
#define PURLIN_ADAPTERS_TSL_THREAD_POOL_H_

#include <type_traits>

#include "purlin/adapters/eigen_thread_pool.h"
#include "purlin/executor.h"
#include "purlin/version.h"
#include "xla/tsl/platform/threadpool.h"
#include "xla/tsl/platform/threadpool_interface.h"

namespace purlin {
inline namespace v0 {
namespace adapters {

/// A pool of Purlin where TSL or TensorFlow takes one: see EigenThreadPoolAs. It outlives every tsl::thread::ThreadPool
/// over it, whose destructor does not wait, and every Session::Run that uses it.
using TslThreadPool = EigenThreadPoolAs<tsl::thread::ThreadPoolInterface>;

/// See TslThreadPool: `auto pool = ToTsl(runner);`.
template <typename Interface = tsl::thread::ThreadPoolInterface>
EigenThreadPoolAs<Interface> ToTsl(const ThreadPoolAsyncWorkRunner& pool) {
  return EigenThreadPoolAs<Interface>(pool);
}

/// An existing pool of TSL's or TensorFlow's as an executor: see EigenExecutor. `pool` outlives it.
template <typename Pool, typename = std::enable_if_t<std::is_same_v<Pool, tsl::thread::ThreadPool>>>
EigenExecutor FromTsl(const Pool& pool) noexcept {
  return EigenExecutor(*pool.AsEigenThreadPool());
}

}  // namespace adapters
}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_ADAPTERS_TSL_THREAD_POOL_H_

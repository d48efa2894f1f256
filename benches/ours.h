// Purlin: the operations that are linked into the bench program: Purlin's own, and those of the standard library.
#ifndef PURLIN_BENCHES_OURS_H_
#define PURLIN_BENCHES_OURS_H_

#include <vector>

#include "op.h"

struct OpList {
  const Op* ops;
  std::size_t count;
};

OpList EventOps();
OpList ValueOps();
OpList FutureOps();
OpList PoolOps();
OpList StdEventOps();
OpList StdPoolOps();
OpList BufferOps();
OpList StdBufferOps();
OpList ProgramOps();
OpList CudaOps();

/// All of them, in the order in which they run: pools late, whose threads leave the heap in another state, then
/// buffers, which fill it, and programs, which have a pool of their own.
inline std::vector<OpList> OwnOps() {
  return {EventOps(),   ValueOps(),  FutureOps(),    StdEventOps(), PoolOps(),
          StdPoolOps(), BufferOps(), StdBufferOps(), ProgramOps(), CudaOps()};
}

#endif  // PURLIN_BENCHES_OURS_H_

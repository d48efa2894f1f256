// What xla/pjrt/pjrt_client.h asks of MLIR. The wheel of tensorflow-cpu has MLIR's headers but not LLVM's, which they
// include. Of mlir::ModuleOp, one pointer that the peers never make, only the name and the size matter.
#ifndef PURLIN_BENCHES_PEERS_MLIR_STUB_MLIR_IR_BUILTINOPS_H_
#define PURLIN_BENCHES_PEERS_MLIR_STUB_MLIR_IR_BUILTINOPS_H_

namespace mlir {

struct ModuleOp {
  void* operation;
};

}  // namespace mlir

#endif  // PURLIN_BENCHES_PEERS_MLIR_STUB_MLIR_IR_BUILTINOPS_H_

// Purlin: the name of DLPack's struct. Not for users.
#ifndef PURLIN_INTERNAL_DLPACK_H_
#define PURLIN_INTERNAL_DLPACK_H_

/// DLPack's, see <dlpack/dlpack.h>.
struct DLManagedTensorVersioned;

#endif  // PURLIN_INTERNAL_DLPACK_H_

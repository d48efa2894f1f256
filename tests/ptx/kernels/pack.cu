// Elements of 1 to 16 bytes from a strided array of up to 8 dimensions into a dense, row-major one, and back.
// Strides are in bytes and may be negative or 0.

struct Layout {
  unsigned long long dims[8];
  long long strides[8];
  unsigned int rank;
};

struct alignas(16) Sixteen {
  unsigned long long low, high;
};

__device__ long long OffsetOf(const Layout& layout, unsigned long long index) {
  long long offset = 0;
  for (int d = static_cast<int>(layout.rank) - 1; d >= 0; --d) {
    unsigned long long rest = index / layout.dims[d];
    offset += static_cast<long long>(index - rest * layout.dims[d]) * layout.strides[d];
    index = rest;
  }
  return offset;
}

template <typename T>
__device__ void Pack(T* dense, const char* strided, const Layout& layout, unsigned long long count) {
  unsigned long long i = static_cast<unsigned long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) dense[i] = *reinterpret_cast<const T*>(strided + OffsetOf(layout, i));
}

template <typename T>
__device__ void Unpack(char* strided, const T* dense, const Layout& layout, unsigned long long count) {
  unsigned long long i = static_cast<unsigned long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) *reinterpret_cast<T*>(strided + OffsetOf(layout, i)) = dense[i];
}

#define BOTH(bytes, T)                                                                                            \
  extern "C" __global__ void pack_##bytes(T* dense, const char* strided, Layout layout, unsigned long long count) { \
    Pack<T>(dense, strided, layout, count);                                                                       \
  }                                                                                                               \
  extern "C" __global__ void unpack_##bytes(char* strided, const T* dense, Layout layout,                          \
                                            unsigned long long count) {                                           \
    Unpack<T>(strided, dense, layout, count);                                                                     \
  }

BOTH(1, unsigned char)
BOTH(2, unsigned short)
BOTH(4, unsigned int)
BOTH(8, unsigned long long)
BOTH(16, Sixteen)

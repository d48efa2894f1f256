// A pattern of 8, 16, 32 or 64 bits, as often as there are elements; the grid may be smaller than they are many.

template <typename T>
__device__ void Fill(T* out, T value, unsigned long long count) {
  unsigned long long stride = static_cast<unsigned long long>(gridDim.x) * blockDim.x;
  for (unsigned long long i = static_cast<unsigned long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += stride) {
    out[i] = value;
  }
}

extern "C" __global__ void fill_8(unsigned char* out, unsigned char value, unsigned long long count) {
  Fill(out, value, count);
}

extern "C" __global__ void fill_16(unsigned short* out, unsigned short value, unsigned long long count) {
  Fill(out, value, count);
}

extern "C" __global__ void fill_32(unsigned int* out, unsigned int value, unsigned long long count) {
  Fill(out, value, count);
}

extern "C" __global__ void fill_64(unsigned long long* out, unsigned long long value, unsigned long long count) {
  Fill(out, value, count);
}

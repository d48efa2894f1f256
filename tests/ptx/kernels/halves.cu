// f16 and bf16 as bits, computed with in f32. Without the headers of CUDA: by the instructions themselves.

__device__ float FromHalf(unsigned short bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}

__device__ unsigned short ToHalf(float value) {
  unsigned short bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}

__device__ float FromBrain(unsigned short bits) { return __uint_as_float(static_cast<unsigned int>(bits) << 16); }

__device__ unsigned short ToBrain(float value) {
#if __CUDA_ARCH__ >= 800
  unsigned short bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
#else
  unsigned int bits = __float_as_uint(value);
  if ((bits & 0x7fffffff) > 0x7f800000) return 0x7fff;
  return static_cast<unsigned short>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
#endif
}

// out = a * b + c, rounded once to f32 and once to the small type.
extern "C" __global__ void fused_f16(unsigned short* out, const unsigned short* a, const unsigned short* b,
                                     const unsigned short* c, unsigned int count) {
  unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = ToHalf(fmaf(FromHalf(a[i]), FromHalf(b[i]), FromHalf(c[i])));
}

extern "C" __global__ void fused_bf16(unsigned short* out, const unsigned short* a, const unsigned short* b,
                                      const unsigned short* c, unsigned int count) {
  unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = ToBrain(fmaf(FromBrain(a[i]), FromBrain(b[i]), FromBrain(c[i])));
}

extern "C" __global__ void f16_to_bf16(unsigned short* out, const unsigned short* in, unsigned int count) {
  unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = ToBrain(FromHalf(in[i]));
}

// What the other kernels do not make the compiler write: calls, recursion, a jump table, tables in constant and global
// memory, local arrays, integers of all widths, and the functions of the mathematical library.

__constant__ int steps[8] = {3, -1, 4, 1, -5, 9, 2, -6};
__device__ unsigned int seen[4];

__device__ __noinline__ unsigned int Ackermann(unsigned int m, unsigned int n) {
  if (m == 0) return n + 1;
  return n == 0 ? Ackermann(m - 1, 1) : Ackermann(m - 1, Ackermann(m, n - 1));
}

__device__ __noinline__ long long Case(int kind, long long a, long long b) {
  switch (kind) {
    case 0: return a + b;
    case 1: return a - b;
    case 2: return a * b;
    case 3: return b == 0 ? 0 : static_cast<unsigned long long>(a) / static_cast<unsigned long long>(b);
    case 4: return b == 0 ? 0 : static_cast<int>(a) % (static_cast<int>(b) | 1);
    case 5: return __mul64hi(a, b);
    case 6: return __umul64hi(a, b);
    case 7: return __brevll(a) ^ __clzll(b);
    case 8: return __popcll(a) + __ffsll(b);
    case 9: return a >> (b & 63);
    case 10: return a << (b & 63);
    case 11: return __byte_perm(static_cast<unsigned int>(a), static_cast<unsigned int>(b), 0x6152);
    case 12: return __funnelshift_l(static_cast<unsigned int>(a), static_cast<unsigned int>(b), 11);
    case 13: return min(a, b) ^ max(static_cast<unsigned long long>(a), static_cast<unsigned long long>(b));
    case 14: return static_cast<signed char>(a) * static_cast<short>(b);
    case 15: return __sad(static_cast<int>(a), static_cast<int>(b), 7u);
    default: return ~(a & b) | (a ^ b);
  }
}

extern "C" __global__ void integers(long long* out, const long long* a, const long long* b, const int* kinds,
                                    unsigned int count) {
  unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  out[i] = Case(kinds[i], a[i], b[i]) + steps[kinds[i] & 7];
  atomicAdd(&seen[kinds[i] & 3], 1);
}

extern "C" __global__ void ackermann(unsigned int* out, const uint2* in, unsigned int count) {
  unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = Ackermann(in[i].x, in[i].y);
}

// Sorts up to 32 keys of a thread in its local memory.
extern "C" __global__ void sort_each(unsigned int* keys, unsigned int each, unsigned int count) {
  unsigned int thread = blockIdx.x * blockDim.x + threadIdx.x;
  if (thread >= count || each > 32) return;
  unsigned int mine[32];
  unsigned int* from = keys + static_cast<unsigned long long>(thread) * each;
  for (unsigned int i = 0; i < each; ++i) {
    unsigned int key = from[i], at = i;
    for (; at > 0 && mine[at - 1] > key; --at) mine[at] = mine[at - 1];
    mine[at] = key;
  }
  for (unsigned int i = 0; i < each; ++i) from[i] = mine[i];
}

extern "C" __global__ void functions(float* out, const float* in, const float* other, int kind, unsigned int count) {
  unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  float x = in[i], y = other[i], result;
  switch (kind) {
    case 0: result = sinf(x); break;
    case 1: result = cosf(x); break;
    case 2: result = expf(x); break;
    case 3: result = logf(fabsf(x)); break;
    case 4: result = sqrtf(fabsf(x)); break;
    case 5: result = rsqrtf(fabsf(x)); break;
    case 6: result = x / y; break;
    case 7: result = tanhf(x); break;
    case 8: result = powf(fabsf(x), y); break;
    case 9: result = erff(x); break;
    case 10: result = floorf(x) + ceilf(y) + truncf(x * y) + rintf(x - y); break;
    case 11: result = fminf(x, y) + fmaxf(x, y) * copysignf(x, y); break;
    case 12: result = fmodf(x, y); break;
    case 13: result = __saturatef(x) + static_cast<float>(static_cast<int>(y)); break;
    case 14: result = __fadd_rz(x, y) - __fmul_ru(x, y) + __fadd_rd(x, y); break;
    case 15: result = __sinf(x) * __cosf(y) + __logf(fabsf(x)); break;
    case 16: result = log1pf(fabsf(x)) + expm1f(y) + atanf(x); break;
    default: result = __frcp_rn(x) + __fsqrt_rn(fabsf(y)); break;
  }
  out[i] = result;
}

extern "C" __global__ void doubles(double* out, const double* in, int kind, unsigned int count) {
  unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  double x = in[i];
  switch (kind) {
    case 0: out[i] = exp(x); break;
    case 1: out[i] = log(fabs(x)); break;
    case 2: out[i] = sqrt(fabs(x)) / (1 + fabs(x)); break;
    case 3: out[i] = sin(x); break;
    case 4: out[i] = rsqrt(fabs(x)); break;
    default: out[i] = static_cast<double>(static_cast<float>(x)) + static_cast<double>(static_cast<long long>(x));
  }
}

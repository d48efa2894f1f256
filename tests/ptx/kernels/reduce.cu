// Reductions over a whole array, by shuffles within a warp, shared memory within a block, and atomics between blocks.

extern "C" __global__ void sum(float* out, const float* in, unsigned int count) {
  __shared__ float partial[32];
  float value = 0;
  for (unsigned int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) value += in[i];
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync(0xffffffff, value, offset);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
  __syncthreads();
  if (threadIdx.x < 32) {
    value = threadIdx.x < blockDim.x / 32 ? partial[threadIdx.x] : 0;
    for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync(0xffffffff, value, offset);
    if (threadIdx.x == 0) atomicAdd(out, value);
  }
}

struct Facts {
  unsigned long long sum;
  unsigned long long even;
  int smallest;
  int largest;
  unsigned int any_bits;
  unsigned int all_bits;
  double mean;
  unsigned int blocks_over;
};

// Whole numbers: exact, whatever the order. The last block to end writes the mean.
extern "C" __global__ void facts(Facts* out, const int* in, unsigned int count) {
  __shared__ int smallest, largest;
  if (threadIdx.x == 0) smallest = 0x7fffffff, largest = -0x7fffffff - 1;
  __syncthreads();
  long long sum = 0;
  unsigned int rounds = (count + gridDim.x * blockDim.x - 1) / (gridDim.x * blockDim.x);
  for (unsigned int round = 0; round < rounds; ++round) {
    unsigned int i = (round * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x;
    bool is_there = i < count;
    int value = is_there ? in[i] : 1;
    unsigned int even = __ballot_sync(0xffffffff, value % 2 == 0);
    if (threadIdx.x % 32 == 0 && even != 0) atomicAdd(&out->even, static_cast<unsigned long long>(__popc(even)));
    if (!is_there) continue;
    sum += value;
    atomicMin(&smallest, value);
    atomicMax(&largest, value);
    atomicOr(&out->any_bits, value);
    atomicAnd(&out->all_bits, value);
  }
  atomicAdd(&out->sum, static_cast<unsigned long long>(sum));
  __syncthreads();
  if (threadIdx.x != 0) return;
  atomicMin(&out->smallest, smallest);
  atomicMax(&out->largest, largest);
  __threadfence();
  if (atomicInc(&out->blocks_over, gridDim.x - 1) == gridDim.x - 1) {
    out->mean = static_cast<double>(static_cast<long long>(atomicAdd(&out->sum, 0ull))) / count;
  }
}

// A double by compare and swap, as before atomicAdd had one.
extern "C" __global__ void largest_double(double* out, const double* in, unsigned int count) {
  unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  unsigned long long* bits = reinterpret_cast<unsigned long long*>(out);
  unsigned long long seen = *bits;
  while (in[i] > __longlong_as_double(seen)) {
    unsigned long long found = atomicCAS(bits, seen, __double_as_longlong(in[i]));
    if (found == seen) break;
    seen = found;
  }
}

// Digits: a step of descent on a GPU, as model.h has it for the host. Each sum runs in the order of one loop, so equal
// input gives equal bits on one kind of GPU, whatever the order in which its blocks run.
//
// scripts/ptx makes kernels.ptx of this.

constexpr int kSide = 8;
constexpr int kPixels = kSide * kSide;
constexpr int kClasses = 10;
// Of the rows above the last: products with the pixel to the right, below, and along both diagonals.
constexpr int kProducts = (kSide - 1) + kSide + (kSide - 1) + (kSide - 1);
constexpr int kFeatures = kPixels + kProducts * (kSide - 1) + (kSide - 1) + 1;
constexpr int kWeights = kFeatures * kClasses;

struct Example {
  float pixels[kPixels];
  int label;
};

// What a device's clock said.
struct Times {
  unsigned long long begin_ns;  // Of the errors that were computed last.
  unsigned long long busy_ns;   // From there to the gradient, summed up.
  unsigned int ended;           // Blocks of the gradient that have ended.
};

__device__ unsigned long long Now() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

__device__ float Feature(const float* pixels, int i) {
  if (i < kPixels) return pixels[i];
  if (i == kFeatures - 1) return 1.0f;
  i -= kPixels;
  const float* row = pixels + i / kProducts * kSide;
  const float* below = row + kSide;
  int x = i % kProducts;
  if (x < kSide - 1) return row[x] * row[x + 1];
  x -= kSide - 1;
  if (x < kSide) return row[x] * below[x];
  x -= kSide;
  if (x < kSide - 1) return row[x] * below[x + 1];
  x -= kSide - 1;
  return row[x + 1] * below[x];
}

// errors[row, class] = probability of the class, less one at the label. A block for each example, of at least kClasses
// threads.
extern "C" __global__ void digits_errors(float* errors, const float* weights, const Example* examples, Times* times) {
  __shared__ float features[kFeatures];
  __shared__ float scores[kClasses];
  const int thread = static_cast<int>(threadIdx.x);
  if (blockIdx.x == 0 && thread == 0) times->begin_ns = Now();
  const Example& example = examples[blockIdx.x];
  for (int i = thread; i < kFeatures; i += static_cast<int>(blockDim.x)) features[i] = Feature(example.pixels, i);
  __syncthreads();
  if (thread < kClasses) {
    float score = 0;
    for (int i = 0; i < kFeatures; ++i) score += features[i] * weights[i * kClasses + thread];
    scores[thread] = score;
  }
  __syncthreads();
  if (thread >= kClasses) return;
  float highest = scores[0];
  for (int c = 1; c < kClasses; ++c) highest = fmaxf(highest, scores[c]);
  float sum = 0;
  for (int c = 0; c < kClasses; ++c) sum += expf(scores[c] - highest);
  const float probability = expf(scores[thread] - highest) / sum;
  errors[blockIdx.x * kClasses + thread] = probability - (thread == example.label ? 1.0f : 0.0f);
}

// gradient[feature, class], summed over the examples: a thread for each feature.
extern "C" __global__ void digits_gradient(float* gradient, const float* errors, const Example* examples, Times* times,
                                           unsigned int rows) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < kFeatures) {
    float sums[kClasses] = {};
    for (unsigned int row = 0; row < rows; ++row) {
      const float feature = Feature(examples[row].pixels, i);
#pragma unroll
      for (int c = 0; c < kClasses; ++c) sums[c] += feature * errors[row * kClasses + c];
    }
#pragma unroll
    for (int c = 0; c < kClasses; ++c) gradient[i * kClasses + c] = sums[c];
  }
  __syncthreads();
  if (threadIdx.x == 0 && atomicAdd(&times->ended, 1u) + 1 == gridDim.x) {
    times->ended = 0;
    times->busy_ns += Now() - times->begin_ns;
  }
}

// One step of descent with momentum: adds up the gradients of all devices, in their order. A thread for each weight.
extern "C" __global__ void digits_update(float* weights, float* velocity, const float* gradients, unsigned int devices,
                                         float scale, float momentum) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i >= kWeights) return;
  float sum = gradients[i];
  for (unsigned int device = 1; device < devices; ++device) sum += gradients[device * kWeights + i];
  velocity[i] = momentum * velocity[i] - scale * sum;
  weights[i] += velocity[i];
}

// The gradient of the mean cross-entropy of softmax by the logits: (softmax - one_hot(label)) / rows, a warp a row,
// reduced by shuffles. One of `rows` rows is left alone if its label is none of the columns.

__device__ float LargestOfWarp(float value) {
  for (int offset = 16; offset > 0; offset /= 2) value = fmaxf(value, __shfl_xor_sync(0xffffffff, value, offset));
  return value;
}

__device__ float SumOfWarp(float value) {
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffff, value, offset);
  return value;
}

extern "C" __global__ void cross_entropy_gradient(float* gradient, const float* logits, const int* labels,
                                                  unsigned int rows, unsigned int columns) {
  unsigned int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  unsigned int lane = threadIdx.x % 32;
  if (row >= rows) return;
  int label = labels[row];
  if (label < 0 || label >= static_cast<int>(columns)) return;
  const float* in = logits + static_cast<unsigned long long>(row) * columns;
  float* out = gradient + static_cast<unsigned long long>(row) * columns;

  float largest = -__int_as_float(0x7f800000);
  for (unsigned int i = lane; i < columns; i += 32) largest = fmaxf(largest, in[i]);
  largest = LargestOfWarp(largest);
  float sum = 0;
  for (unsigned int i = lane; i < columns; i += 32) sum += __expf(in[i] - largest);
  sum = SumOfWarp(sum);
  for (unsigned int i = lane; i < columns; i += 32) {
    float probability = __fdividef(__expf(in[i] - largest), sum);
    out[i] = (probability - (static_cast<int>(i) == label ? 1.0f : 0.0f)) / static_cast<float>(rows);
  }
}

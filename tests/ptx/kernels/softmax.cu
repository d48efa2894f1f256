// The softmax of each row, a block a row: the maximum and the sum are reduced in shared memory. blockDim.x is a power
// of two; its floats are the dynamic shared memory.

extern "C" __global__ void softmax_rows(float* out, const float* in, unsigned int columns) {
  extern __shared__ float partial[];
  const float* row = in + static_cast<unsigned long long>(blockIdx.x) * columns;
  float* result = out + static_cast<unsigned long long>(blockIdx.x) * columns;

  float largest = -__int_as_float(0x7f800000);
  for (unsigned int i = threadIdx.x; i < columns; i += blockDim.x) largest = fmaxf(largest, row[i]);
  partial[threadIdx.x] = largest;
  __syncthreads();
  for (unsigned int half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) partial[threadIdx.x] = fmaxf(partial[threadIdx.x], partial[threadIdx.x + half]);
    __syncthreads();
  }
  largest = partial[0];
  __syncthreads();

  float sum = 0;
  for (unsigned int i = threadIdx.x; i < columns; i += blockDim.x) {
    float value = expf(row[i] - largest);
    result[i] = value;
    sum += value;
  }
  partial[threadIdx.x] = sum;
  __syncthreads();
  for (unsigned int half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
    __syncthreads();
  }
  sum = partial[0];
  for (unsigned int i = threadIdx.x; i < columns; i += blockDim.x) result[i] /= sum;
}

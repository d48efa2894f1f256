// out[m, n] = a[m, k] * b[k, n], row-major, by tiles of 16 x 16 in shared memory; a block is 16 x 16 threads.

constexpr int kTile = 16;

extern "C" __global__ void matmul(float* out, const float* a, const float* b, int m, int n, int k) {
  __shared__ float tile_a[kTile][kTile];
  __shared__ float tile_b[kTile][kTile + 1];
  int row = blockIdx.y * kTile + threadIdx.y, column = blockIdx.x * kTile + threadIdx.x;
  float sum = 0;
  for (int start = 0; start < k; start += kTile) {
    int across = start + threadIdx.x, down = start + threadIdx.y;
    tile_a[threadIdx.y][threadIdx.x] = row < m && across < k ? a[static_cast<long long>(row) * k + across] : 0;
    tile_b[threadIdx.y][threadIdx.x] = down < k && column < n ? b[static_cast<long long>(down) * n + column] : 0;
    __syncthreads();
    for (int i = 0; i < kTile; ++i) sum += tile_a[threadIdx.y][i] * tile_b[i][threadIdx.x];
    __syncthreads();
  }
  if (row < m && column < n) out[static_cast<long long>(row) * n + column] = sum;
}

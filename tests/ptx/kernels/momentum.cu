// One step of gradient descent with momentum, four weights a thread where that is possible.

extern "C" __global__ void momentum(float* weights, float* velocity, const float* gradient, float rate, float decay,
                                    unsigned int count) {
  unsigned int i = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
  if (i + 4 <= count) {
    float4 v = *reinterpret_cast<float4*>(velocity + i);
    float4 g = *reinterpret_cast<const float4*>(gradient + i);
    float4 w = *reinterpret_cast<float4*>(weights + i);
    v = make_float4(decay * v.x + g.x, decay * v.y + g.y, decay * v.z + g.z, decay * v.w + g.w);
    w = make_float4(w.x - rate * v.x, w.y - rate * v.y, w.z - rate * v.z, w.w - rate * v.w);
    *reinterpret_cast<float4*>(velocity + i) = v;
    *reinterpret_cast<float4*>(weights + i) = w;
    return;
  }
  for (; i < count; ++i) {
    float v = decay * velocity[i] + gradient[i];
    velocity[i] = v;
    weights[i] -= rate * v;
  }
}

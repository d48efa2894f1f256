// Code over Eigen's thread pool adopts Purlin's: the pool is replaced, all code that takes one stays.
//
// `before` multiplies matrices on a pool of Eigen's. `after` does so on the pool that the rest of the program has for
// its asynchronous work, so that there are not two pools for the same cores. main runs both and compares.
#define EIGEN_USE_THREADS
#include <cstdio>
#include <string>

#include "purlin/adapters/eigen_thread_pool.h"
#include "purlin/purlin.h"
#include "unsupported/Eigen/CXX11/Tensor"
#include "unsupported/Eigen/CXX11/ThreadPool"

using Matrix = Eigen::Tensor<float, 2>;

// The part of the code that does not change.
Matrix Multiply(Eigen::ThreadPoolInterface& pool, const Matrix& a, const Matrix& b) {
  const Eigen::ThreadPoolDevice device(&pool, pool.NumThreads());
  Matrix product(a.dimension(0), b.dimension(1));
  const Eigen::array<Eigen::IndexPair<Eigen::Index>, 1> inner = {Eigen::IndexPair<Eigen::Index>(1, 0)};
  product.device(device) = a.contract(b, inner);
  return product;
}

namespace before {

Matrix Multiply(const Matrix& a, const Matrix& b) {
  Eigen::ThreadPool pool(4);
  return ::Multiply(pool, a, b);
}

}  // namespace before

namespace after {

purlin::ThreadPoolAsyncWorkRunner& Runner() {
  static purlin::ThreadPoolAsyncWorkRunner runner = purlin::ThreadPoolAsyncWorkRunner::Create({}).value();
  return runner;
}

Matrix Multiply(const Matrix& a, const Matrix& b) {
  auto pool = purlin::adapters::ToEigen(Runner());
  return ::Multiply(pool, a, b);
}

}  // namespace after

template <typename Multiply>
std::string Run(Multiply multiply) {
  Matrix a(200, 300);
  Matrix b(300, 100);
  for (int i = 0; i < 300; ++i) {
    for (int j = 0; j < 200; ++j) a(j, i) = static_cast<float>((i + j) % 5);
    for (int j = 0; j < 100; ++j) b(i, j) = static_cast<float>((i * j) % 7);
  }
  const Matrix product = multiply(a, b);
  const Eigen::Tensor<float, 0> sum = product.sum();
  return std::to_string(product(0, 0)) + " " + std::to_string(product(199, 99)) + " " + std::to_string(sum());
}

int main() {
  const std::string was = Run(before::Multiply);
  const std::string is = Run(after::Multiply);
  std::printf("before: %s\nafter:  %s\n", was.c_str(), is.c_str());
  return was == is ? 0 : 1;
}

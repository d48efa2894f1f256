// Digits: the arithmetic, on plain memory: softmax regression, that is one linear map from features to a score per
// class.
//
// The features of an image are its pixels and the products of neighbouring pixels, which show the direction of a
// stroke: with pixels alone, some seeds miss 95 %. All sums run in the order of the loops, so equal input gives equal
// bits.
#ifndef DIGITS_MODEL_H_
#define DIGITS_MODEL_H_

#include <cstddef>
#include <cstdint>

namespace digits {

constexpr std::size_t kSide = 8;
constexpr std::size_t kPixels = kSide * kSide;
constexpr std::size_t kClasses = 10;
/// Pixels; pairs side by side, one above the other, and along both diagonals; and a one, for the bias.
constexpr std::size_t kFeatures = kPixels + 2 * kSide * (kSide - 1) + 2 * (kSide - 1) * (kSide - 1) + 1;
/// [kFeatures, kClasses], row-major.
constexpr std::size_t kWeights = kFeatures * kClasses;
constexpr std::size_t kWeightBytes = kWeights * sizeof(float);

/// An image and its digit, as it is copied to the devices.
struct Example {
  float pixels[kPixels];  // [kSide, kSide], row-major; 0..1
  std::int32_t label;     // 0..9
};

/// Writes to gradient[0 .. kWeights) the sum over `rows` examples of the gradient of the cross-entropy.
void ComputeGradient(const float* weights, const Example* examples, std::size_t rows, float* gradient);

/// The same in two parts: errors[0 .. kClasses) = the probabilities of the example's classes, less one at the label,
void ComputeErrors(const float* weights, const Example& example, float* errors);
/// and the sums, over the features of `rows` examples times their errors.
void SumGradient(const float* errors, const Example* examples, std::size_t rows, float* gradient);

constexpr float kMomentum = 0.9F;
/// What a gradient that is a sum over `rows` examples is multiplied by.
constexpr float StepScale(std::size_t rows) { return 0.3F / static_cast<float>(rows); }

/// One weight's step of descent with momentum; `scale` as StepScale says.
inline void UpdateWeight(float gradient, float scale, float momentum, float& velocity, float& weight) {
  velocity = momentum * velocity - scale * gradient;
  weight += velocity;
}

/// The step of all weights. `gradient` is a sum over `rows` examples.
void UpdateWeights(const float* gradient, std::size_t rows, float* velocity, float* weights);

/// The class with the highest score; the lowest one of several.
std::int32_t Predict(const float* weights, const float* pixels);

/// FNV-1a, 64 bits.
std::uint64_t Checksum(const void* data, std::size_t size_bytes);

}  // namespace digits

#endif  // DIGITS_MODEL_H_

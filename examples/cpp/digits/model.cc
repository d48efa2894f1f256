#include "model.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace digits {
namespace {

using Features = std::array<float, kFeatures>;
using Scores = std::array<float, kClasses>;

Features ComputeFeatures(const float* pixels) {
  Features features;
  float* next = std::copy_n(pixels, kPixels, features.data());
  for (std::size_t y = 0; y < kSide; ++y) {
    const float* row = pixels + y * kSide;
    for (std::size_t x = 0; x + 1 < kSide; ++x) *next++ = row[x] * row[x + 1];
    if (y + 1 == kSide) break;
    const float* below = row + kSide;
    for (std::size_t x = 0; x < kSide; ++x) *next++ = row[x] * below[x];
    for (std::size_t x = 0; x + 1 < kSide; ++x) *next++ = row[x] * below[x + 1];
    for (std::size_t x = 0; x + 1 < kSide; ++x) *next++ = row[x + 1] * below[x];
  }
  *next = 1;
  return features;
}

Scores ComputeScores(const float* weights, const Features& features) {
  Scores scores{};
  for (std::size_t i = 0; i < kFeatures; ++i) {
    for (std::size_t c = 0; c < kClasses; ++c) scores[c] += features[i] * weights[i * kClasses + c];
  }
  return scores;
}

// In place, from scores to probabilities. The highest score is taken off first, so that nothing overflows.
void Softmax(Scores& scores) {
  const float highest = *std::max_element(scores.begin(), scores.end());
  float sum = 0;
  for (float& score : scores) {
    score = std::exp(score - highest);
    sum += score;
  }
  for (float& score : scores) score /= sum;
}

// The probabilities of the classes, less one at the label.
Scores ErrorsOf(const float* weights, const Features& features, std::int32_t label) {
  Scores scores = ComputeScores(weights, features);
  Softmax(scores);
  scores[static_cast<std::size_t>(label)] -= 1;
  return scores;
}

void AddProducts(const Features& features, const float* errors, float* gradient) {
  for (std::size_t i = 0; i < kFeatures; ++i) {
    for (std::size_t c = 0; c < kClasses; ++c) gradient[i * kClasses + c] += features[i] * errors[c];
  }
}

}  // namespace

void ComputeErrors(const float* weights, const Example& example, float* errors) {
  const Scores scores = ErrorsOf(weights, ComputeFeatures(example.pixels), example.label);
  std::copy(scores.begin(), scores.end(), errors);
}

void SumGradient(const float* errors, const Example* examples, std::size_t rows, float* gradient) {
  std::fill_n(gradient, kWeights, 0.0F);
  for (std::size_t row = 0; row < rows; ++row) {
    AddProducts(ComputeFeatures(examples[row].pixels), errors + row * kClasses, gradient);
  }
}

void ComputeGradient(const float* weights, const Example* examples, std::size_t rows, float* gradient) {
  std::fill_n(gradient, kWeights, 0.0F);
  for (const Example* example = examples; example != examples + rows; ++example) {
    const Features features = ComputeFeatures(example->pixels);
    AddProducts(features, ErrorsOf(weights, features, example->label).data(), gradient);
  }
}

void UpdateWeights(const float* gradient, std::size_t rows, float* velocity, float* weights) {
  const float scale = StepScale(rows);
  for (std::size_t i = 0; i < kWeights; ++i) UpdateWeight(gradient[i], scale, kMomentum, velocity[i], weights[i]);
}

std::int32_t Predict(const float* weights, const float* pixels) {
  const Scores scores = ComputeScores(weights, ComputeFeatures(pixels));
  return static_cast<std::int32_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
}

std::uint64_t Checksum(const void* data, std::size_t size_bytes) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  const auto* bytes = static_cast<const unsigned char*>(data);
  for (std::size_t i = 0; i < size_bytes; ++i) hash = (hash ^ bytes[i]) * 0x100000001b3U;
  return hash;
}

}  // namespace digits

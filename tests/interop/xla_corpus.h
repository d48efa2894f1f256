// Programs that stock XLA compiled, with arguments and results in .npy files, as examples/python/export_xla.py writes
// them: run from C++, and compared with the results of stock XLA.
#ifndef PURLIN_TESTS_INTEROP_XLA_CORPUS_H_
#define PURLIN_TESTS_INTEROP_XLA_CORPUS_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "purlin/purlin.h"

namespace purlin {
namespace xla_corpus {

namespace fs = std::filesystem;
using Bytes = std::vector<std::uint8_t>;

inline std::vector<Buffer> ReadArrays(const fs::path& folder, const std::vector<ArraySpec>& specs,
                                      const MemorySpace& memory) {
  std::vector<Buffer> arrays;
  for (const ArraySpec& spec : specs) {
    ReadNpyOptions options;
    options.dtype = spec.shape.dtype();
    const std::string path = (folder / (std::to_string(arrays.size()) + ".npy")).string();
    arrays.push_back(ReadNpy(path, memory, options).value().buffer);
  }
  return arrays;
}

inline Bytes BytesOf(const Buffer& buffer) {
  Bytes bytes(buffer.shape().host_size_bytes().value());
  if (!buffer.CopyToHost(bytes.data(), bytes.size()).Wait().ok()) bytes.clear();
  return bytes;
}

/// Number `index` of floating-point bytes.
inline double NumberAt(DType dtype, const Bytes& bytes, std::size_t index) {
  if (dtype == DType::kF64 || dtype == DType::kC128) {
    double number;
    std::memcpy(&number, bytes.data() + index * 8, 8);
    return number;
  }
  std::uint16_t half = 0;
  std::uint32_t bits = 0;
  if (dtype == DType::kF32 || dtype == DType::kC64) {
    std::memcpy(&bits, bytes.data() + index * 4, 4);
  } else {
    std::memcpy(&half, bytes.data() + index * 2, 2);
    bits = static_cast<std::uint32_t>(half) << 16;
  }
  if (dtype == DType::kF16) {
    const double sign = (half & 0x8000) != 0 ? -1 : 1;
    const int exponent = half >> 10 & 31;
    if (exponent == 31) return (half & 1023) != 0 ? NAN : sign * INFINITY;
    return sign * std::ldexp((half & 1023) + (exponent == 0 ? 0 : 1024), std::max(exponent, 1) - 25);
  }
  float number;
  std::memcpy(&number, &bits, 4);
  return number;
}

/// Whether two arrays are the same, up to the order of sums: 1e-5 of the largest element, 1e-2 of 16-bit elements.
inline bool IsClose(DType dtype, const Bytes& ours, const Bytes& theirs) {
  std::size_t width = 0;
  if (dtype == DType::kF64 || dtype == DType::kC128) width = 8;
  if (dtype == DType::kF32 || dtype == DType::kC64) width = 4;
  if (dtype == DType::kF16 || dtype == DType::kBF16) width = 2;
  if (width == 0) return false;
  double largest = 0;
  double apart = 0;
  for (std::size_t i = 0; i < ours.size() / width; ++i) {
    const double a = NumberAt(dtype, ours, i);
    const double b = NumberAt(dtype, theirs, i);
    if (std::isnan(a) != std::isnan(b)) return false;
    if (std::isfinite(b)) largest = std::max(largest, std::abs(b));
    if (!std::isnan(a) && a != b) apart = std::max(apart, std::abs(a - b));
  }
  return apart <= largest * (width == 2 ? 1e-2 : 1e-5);
}

/// The folder of arguments or results of a device.
inline fs::path Folder(const fs::path& path, const std::string& kind, std::size_t device) {
  return fs::path(path).replace_extension(kind + (device == 0 ? "" : std::to_string(device)));
}

/// Runs a program once, on as many devices as it has arguments for, and says what differs; "" if nothing does.
inline std::string Compare(const Executable& executable, const fs::path& path, const Client& client) {
  const Program program = executable.program();
  std::vector<Device> devices;
  std::vector<std::vector<Buffer>> arguments;
  std::vector<Buffer> results;
  for (const Device& device : client.devices()) {
    if (!fs::exists(Folder(path, "args", devices.size()))) break;
    const MemorySpace memory = device.default_memory_space();
    arguments.push_back(ReadArrays(Folder(path, "args", devices.size()), program.parameters(), memory));
    for (Buffer& result : ReadArrays(Folder(path, "results", devices.size()), program.results(), memory))
      results.push_back(std::move(result));
    devices.push_back(device);
  }
  const LoadedExecutable loaded = LoadedExecutable::Load(executable, devices, devices.size()).value();
  const std::vector<Span<const Buffer>> shards(arguments.begin(), arguments.end());
  const StatusOr<std::vector<Execution>> executions = loaded.ExecuteSharded(shards);
  if (!executions.ok()) return executions.status().ToString();
  bool calls_libraries = false;
  for (const auto& [kind, count] : executable.Summary().command_counts) calls_libraries |= kind == "library";
  std::size_t number = 0;
  for (const Execution& execution : *executions) {
    const Status status = execution.done.Wait();
    if (!status.ok()) return status.ToString();
    for (const Buffer& output : execution.outputs) {
      const Buffer& result = results[number++];
      const Bytes ours = BytesOf(output);
      const Bytes theirs = BytesOf(result);
      if (ours == theirs) continue;
      // Sums of library calls may be in another order.
      if (!calls_libraries || !IsClose(result.dtype(), ours, theirs))
        return "result " + std::to_string(number - 1) + " differs";
    }
  }
  return number == results.size() ? "" : "there are results that the program does not have";
}

/// The paths of the executables in the folder that `variable` names.
inline std::vector<fs::path> PathsOf(const char* variable) {
  const char* const folder = std::getenv(variable);
  std::vector<fs::path> paths;
  if (folder == nullptr) return paths;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".xla") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

/// The bytes of a file.
inline std::string ReadFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

/// Four devices for programs of up to four.
inline Client FourDevices() {
  ClientOptions options;
  options.device_count = 4;
  options.worker_count = 2;
  return Client::Create(options).value();
}

}  // namespace xla_corpus
}  // namespace purlin

#endif  // PURLIN_TESTS_INTEROP_XLA_CORPUS_H_

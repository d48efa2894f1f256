// What the tests of purlin/adapters/xla_raw_buffer.h share: XLA's own CPU client, and a computation that it compiles.
#ifndef PURLIN_TESTS_INTEROP_XLA_TESTING_H_
#define PURLIN_TESTS_INTEROP_XLA_TESTING_H_

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "purlin/adapters/xla_raw_buffer.h"
#include "purlin/client.h"
#include "xla/hlo/builder/xla_builder.h"
#include "xla/pjrt/plugin/xla_cpu/cpu_client_options.h"
#include "xla/pjrt/plugin/xla_cpu/xla_cpu_pjrt_client.h"

namespace purlin {

inline constexpr std::size_t kCount = 64;
inline constexpr std::size_t kBytes = kCount * sizeof(float);
using Executable = std::unique_ptr<xla::PjRtLoadedExecutable>;

template <typename T>
T Need(absl::StatusOr<T> value) {
  if (!value.ok()) {
    ADD_FAILURE() << value.status();
    std::abort();
  }
  return *std::move(value);
}

// What one of the two sides does soon, on a thread of its own. Only a test that fails waits for long.
template <typename F>
bool Eventually(F happened) {
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!happened()) {
    if (std::chrono::steady_clock::now() > patience) return false;
    std::this_thread::yield();
  }
  return true;
}

inline std::unique_ptr<xla::PjRtClient> MakeXlaClient(const std::optional<MemorySpace>& allocate_from = std::nullopt) {
  xla::CpuClientOptions options;
  options.cpu_device_count = 1;
  if (allocate_from.has_value()) options.allocator = adapters::ToXlaAllocator(*allocate_from);
  return Need(xla::GetXlaPjrtCpuClient(std::move(options)));
}

// x * 2 + 1 of so many f32, compiled by XLA. `in_place`: the result goes into the argument, if that is given away.
inline Executable Compile(xla::PjRtClient& client, std::size_t count = kCount, bool in_place = false) {
  xla::XlaBuilder builder("times_two_plus_one");
  const xla::Shape shape = xla::ShapeUtil::MakeShape(xla::F32, {static_cast<std::int64_t>(count)});
  const xla::XlaOp x = xla::Parameter(&builder, 0, shape, "x");
  const xla::XlaOp y = xla::Add(xla::Mul(x, xla::ConstantR0<float>(&builder, 2)), xla::ConstantR0<float>(&builder, 1));
  if (in_place) builder.SetUpAlias({}, 0, {});
  return Need(client.CompileAndLoad(Need(builder.Build(y)), xla::CompileOptions()));
}

inline std::unique_ptr<xla::PjRtBuffer> Execute(const Executable& executable, xla::PjRtBuffer& argument) {
  xla::PjRtBuffer* const arguments[] = {&argument};
  auto results = Need(executable->ExecuteSharded(arguments, executable->addressable_devices().front(), {}));
  EXPECT_EQ(results.size(), 1U);
  return std::move(results.front());
}

inline void* AddressOf(xla::PjRtBuffer& buffer) {
  return Need(buffer.AcquireExternalReference())->OpaqueDeviceMemoryDataPointer();
}

inline std::vector<float> Numbers(std::size_t count = kCount) {
  std::vector<float> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0.0F);
  return numbers;
}
inline std::vector<float> TimesTwoPlusOne(std::vector<float> numbers) {
  for (float& number : numbers) number = number * 2 + 1;
  return numbers;
}
inline std::vector<float> Read(const Buffer& buffer) {
  std::vector<float> numbers(buffer.on_device_size_bytes() / sizeof(float));
  EXPECT_EQ(buffer.CopyToHost(numbers.data(), buffer.on_device_size_bytes()).Wait(), OkStatus());
  return numbers;
}
inline std::vector<float> Read(xla::PjRtBuffer& buffer) {
  std::vector<float> numbers(Need(buffer.GetOnDeviceSizeInBytes()) / sizeof(float));
  EXPECT_EQ(buffer.CopyRawToHost(numbers.data(), 0, static_cast<std::int64_t>(numbers.size() * sizeof(float))).Await(),
            absl::OkStatus());
  return numbers;
}

}  // namespace purlin

#endif  // PURLIN_TESTS_INTEROP_XLA_TESTING_H_

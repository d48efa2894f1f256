// Exceptions of hooks, allocators and releases of memory stop at the boundary. Compiled with exceptions; the library is
// compiled without.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "purlin/client.h"
#include "purlin/raw_buffer.h"

#if !defined(__cpp_exceptions)
#error "this file tests exceptions"
#endif

namespace purlin {
namespace {

bool Contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

/// What `f` prints on stderr.
template <typename F>
std::string StderrOf(F f) {
  testing::internal::CaptureStderr();
  f();
  return testing::internal::GetCapturedStderr();
}

TEST(MemoryExceptionTest, FromAHookIsReportedAndMeansNo) {
  ClientOptions options;
  options.worker_count = 1;
  options.memory_limit_bytes = 1 << 20;
  options.on_out_of_memory = [](const MemoryReport&) -> bool { throw std::runtime_error("hook boom"); };
  const MemorySpace space = Client::Create(options)->devices()[0].default_memory_space();
  const RawBuffer held = RawBuffer::Allocate(space, 1 << 20).value();
  AllocOptions retry;
  retry.oom = OomPolicy::kRetry;
  Status status;
  const std::string text = StderrOf([&] { status = RawBuffer::Allocate(space, 1 << 20, retry).status(); });
  EXPECT_TRUE(IsResourceExhausted(status)) << status;
  EXPECT_TRUE(Contains(text, "purlin: exception in on_out_of_memory: hook boom\n")) << text;
}

TEST(MemoryExceptionTest, FromTheReleaseOfImportedMemoryIsReported) {
  ClientOptions options;
  options.worker_count = 1;
  const MemorySpace space = Client::Create(options)->devices()[0].default_memory_space();
  alignas(64) std::array<char, 64> memory{};
  std::optional<RawBuffer> buffer(RawBuffer::Import(space, memory.data(), memory.size(), Mutability::kMutable, [] {
                                    throw std::runtime_error("release boom");
                                  }).value());
  const std::string text = StderrOf([&] { buffer.reset(); });
  EXPECT_EQ(text, "purlin: exception in release of imported memory: release boom\n");
}

class Throwing final : public HostMemoryAllocator {
 public:
  void* Allocate(std::size_t, std::size_t) override {
    if (refuse) throw std::bad_alloc();
    return memory;
  }
  void Deallocate(void*, std::size_t, std::size_t) override { throw std::runtime_error("deallocate boom"); }

  bool refuse = true;
  alignas(64) char memory[64] = {};
};

TEST(MemoryExceptionTest, FromAnAllocatorIsReportedAndIsNull) {
  const auto allocator = std::make_shared<Throwing>();
  ClientOptions options;
  options.worker_count = 1;
  options.host_memory_allocator = allocator;
  const MemorySpace space = Client::Create(options)->devices()[0].default_memory_space();
  Status status;
  std::string text = StderrOf([&] { status = RawBuffer::Allocate(space, 64).status(); });
  EXPECT_TRUE(IsResourceExhausted(status)) << status;
  EXPECT_EQ(text.find("purlin: exception in HostMemoryAllocator::Allocate: std::bad_alloc\n"), 0U) << text;
  allocator->refuse = false;
  std::optional<RawBuffer> buffer(RawBuffer::Allocate(space, 64).value());
  text = StderrOf([&] { buffer.reset(); });
  EXPECT_EQ(text, "purlin: exception in HostMemoryAllocator::Deallocate: deallocate boom\n");
}

}  // namespace
}  // namespace purlin

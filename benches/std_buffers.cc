// The floors of the rows about buffers: an allocation with a copy into it, without anything that says what it is or
// when it is there; and the copy alone, between pages that are there already.
#include <cstdlib>
#include <cstring>
#include <memory>

#include "buffer_rows.h"
#include "ours.h"

namespace {

struct Allocation {
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  struct Buffer {
    std::unique_ptr<void, Free> memory;
    std::size_t bytes;
  };
  static constexpr bool kZeroCopy = false;
  static constexpr bool kUninitialised = true;
  static constexpr bool kReadyEvent = false;
  static constexpr bool kPayloadInHeap = true;
  static constexpr std::uint32_t kCopyKind = kOneThread;

  static Buffer Uninitialised(std::size_t bytes, int) {
    void* memory = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (memory == nullptr) std::abort();
    return {std::unique_ptr<void, Free>(memory), bytes};
  }
  static Buffer FromHost(const void* data, std::size_t bytes, int device) {
    Buffer buffer = Uninitialised(bytes, device);
    std::memcpy(buffer.memory.get(), data, bytes);
    return buffer;
  }
  static void Await(Buffer& buffer) { Touch(*static_cast<unsigned char*>(buffer.memory.get())); }
  static void ToHost(const Buffer& buffer, void* destination, std::size_t bytes) {
    std::memcpy(destination, buffer.memory.get(), bytes);
    Touch(*static_cast<unsigned char*>(destination));
  }
  static Buffer ToDevice(const Buffer& buffer, int device) {
    return FromHost(buffer.memory.get(), buffer.bytes, device);
  }
};

std::uint64_t Copy(std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) {
    std::memcpy(bench_destination(), bench_source(), kLarge);
    Touch(*bench_destination());
  }
  return 0;
}

// The scaling rows' copies, each thread between pages of its own.
template <int kCount>
std::uint64_t CopyOnThreads(std::uint64_t count) {
  return TimeThreads(kCount, [count](int t) {
    const std::size_t offset = static_cast<std::size_t>(t) * kShare;
    for (std::uint64_t i = 0; i < count; ++i) {
      std::memcpy(bench_destination() + offset, bench_source() + offset, kShare);
      Touch(*(bench_destination() + offset));
    }
  });
}

// As Copy, while other threads are busy.
template <bool kOfTheWork>
std::uint64_t CopyBesideWork(std::uint64_t count) {
  std::vector<std::thread> threads;
  const std::uint64_t measured = BesideWork::Measure(
      count, static_cast<int>(std::thread::hardware_concurrency()), kOfTheWork,
      [&threads](BesideWork& work) { threads.emplace_back([&work] { work.Work(); }); }, [] { Copy(1); });
  for (std::thread& thread : threads) thread.join();
  return measured;
}

}  // namespace

OpList StdBufferOps() {
  static const std::vector<Op> ops = [] {
    std::vector<Op> all = BufferRows<Allocation>::Table("malloc + memcpy");
    all.push_back({"host to device 64 MiB", "memcpy", 1, &Copy, kLong});
    all.push_back({"device to host 64 MiB", "memcpy", 1, &Copy, kLong});
    all.push_back({"device to device 64 MiB", "memcpy", 1, &Copy, kLong});
    all.push_back({"host to device 64 MiB, workers busy", "memcpy", 1, &CopyBesideWork<false>, kLong});
    all.push_back({"host to device 64 MiB, workers busy: their work", "memcpy", 1, &CopyBesideWork<true>, kLong});
    all.push_back({"host to device 40 MiB, 1 thread and device", "memcpy", 1, &CopyOnThreads<1>, kLong});
    all.push_back({"host to device 40 MiB, 2 threads and devices", "memcpy", 1, &CopyOnThreads<2>, kLong});
    all.push_back({"host to device 40 MiB, 4 threads and devices", "memcpy", 1, &CopyOnThreads<4>, kLong});
    return all;
  }();
  return {ops.data(), ops.size()};
}

// The work of every row about buffers, written once for all libraries, so that each column does the same.
//
// A backend B says how it does things, in static functions; it has kBufferDevices devices and is made on first use.
//   Buffer FromHost(data, bytes, device)   a fresh one, which ~Buffer destroys; `data` is free again on return
//   Await(buffer)                          until its bytes are there
//   ToHost(buffer, destination, bytes)     a copy, waited for
//   Buffer ToDevice(buffer, device)        a copy, not waited for
//   QueryReady(buffer)                     [kReadyEvent] takes its ready event, asks it, waits for it, drops it
//   Buffer ZeroCopy(data, bytes, device)   [kZeroCopy] one that uses `data` itself
//   Buffer Uninitialised(bytes, device)    [kUninitialised] one whose bytes are anything
// kPayloadInHeap: whether malloc gives the bytes of small buffers, so that they count as heap.
// kCopyKind is kThreads for those whose other threads copy even 4 bytes, else kOneThread. Arrays are f32[bytes / 4].
#ifndef PURLIN_BENCHES_BUFFER_ROWS_H_
#define PURLIN_BENCHES_BUFFER_ROWS_H_

#include <malloc.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>

#include "op.h"

constexpr int kBufferDevices = 4;
constexpr std::size_t kLarge = std::size_t{64} << 20;
// What each thread of a scaling row copies at a time: more than glibc ever keeps off mmap (32 MiB).
constexpr std::size_t kShare = std::size_t{40} << 20;
constexpr std::uint64_t kLive = 100000;
constexpr std::size_t kLiveBytes = 64;

// What malloc has given out in all its arenas, its own headers included.
inline std::size_t HeapBytes() {
  const struct mallinfo2 heap = mallinfo2();
  return heap.uordblks + heap.hblkhd;
}

// What of the process is in memory.
inline std::size_t ResidentBytes() {
  long pages = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "r"); file != nullptr) {
    if (std::fscanf(file, "%*s %ld", &pages) != 1) pages = 0;
    std::fclose(file);
  }
  return static_cast<std::size_t>(pages) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

// From when all threads have started until all have done `share(thread)`, in ns, by their number: a perfect machine
// halves it with each doubling.
template <typename F>
std::uint64_t TimeThreads(int count, const F& share) {
  using Clock = std::chrono::steady_clock;
  std::atomic<int> ready{0};
  std::atomic<bool> go{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < count; ++t) {
    threads.emplace_back([&, t] {
      ready.fetch_add(1);
      while (!go.load()) std::this_thread::yield();
      share(t);
    });
  }
  while (ready.load() != count) std::this_thread::yield();
  const Clock::time_point start = Clock::now();
  go.store(true);
  for (std::thread& thread : threads) thread.join();
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(Clock::now() - start).count() / count);
}

// Threads that work while another one copies.
struct BesideWork {
  std::atomic<bool> stop{false};
  std::atomic<int> begun{0};
  std::atomic<int> ended{0};
  std::atomic<std::uint64_t> units{0};

  // What each of the busy threads does: units of about a microsecond, in registers.
  void Work() {
    begun.fetch_add(1);
    std::uint64_t done = 0;
    for (std::uint32_t word = 1; !stop.load(std::memory_order_relaxed); ++done) {
      for (int step = 0; step < 1000; ++step) {
        word = word * 1664525 + 1013904223;
        Touch(word);
      }
    }
    units.fetch_add(done);
    ended.fetch_add(1);
  }

  // Calls `copy()` `count` times while `threads` threads work, which `start(work)` starts one by one. Answers the time
  // of all copies, or, for each copy, that of a unit of a thread's work.
  template <typename Start, typename Copy>
  static std::uint64_t Measure(std::uint64_t count, int threads, bool of_the_work, const Start& start,
                               const Copy& copy) {
    using Clock = std::chrono::steady_clock;
    BesideWork work;
    for (int thread = 0; thread < threads; ++thread) start(work);
    while (work.begun.load() != threads) std::this_thread::yield();
    const Clock::time_point begin = Clock::now();
    for (std::uint64_t i = 0; i < count; ++i) copy();
    const auto elapsed = static_cast<std::uint64_t>(std::chrono::nanoseconds(Clock::now() - begin).count());
    work.stop.store(true);
    while (work.ended.load() != threads) std::this_thread::yield();
    const std::uint64_t units = work.units.load();
    const std::uint64_t unit = elapsed * static_cast<std::uint64_t>(threads) / (units > 0 ? units : 1);
    return of_the_work ? unit * count : elapsed;
  }
};

template <typename B>
struct BufferRows {
  using Buffer = typename B::Buffer;
  static constexpr std::size_t kHeapPayload = B::kPayloadInHeap ? kLiveBytes : 0;

  template <std::size_t kBytes>
  static std::uint64_t HostToDevice(std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      Buffer buffer = B::FromHost(bench_source(), kBytes, 0);
      B::Await(buffer);
    }
    return 0;
  }
  template <std::size_t kBytes>
  static std::uint64_t DeviceToHost(std::uint64_t count) {
    Buffer& source = Source<kBytes>();
    for (std::uint64_t i = 0; i < count; ++i) B::ToHost(source, bench_destination(), kBytes);
    return 0;
  }
  template <std::size_t kBytes>
  static std::uint64_t DeviceToDevice(std::uint64_t count) {
    Buffer& source = Source<kBytes>();
    for (std::uint64_t i = 0; i < count; ++i) {
      Buffer copy = B::ToDevice(source, 1);
      B::Await(copy);
    }
    return 0;
  }

  static std::uint64_t ZeroCopy(std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      Buffer buffer = B::ZeroCopy(bench_source(), 4096, 0);
      Touch(buffer);
    }
    return 0;
  }
  static std::uint64_t Uninitialised(std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      Buffer buffer = B::Uninitialised(4096, 0);
      Touch(buffer);
    }
    return 0;
  }
  static std::uint64_t QueryReady(std::uint64_t count) {
    Buffer& buffer = Source<4>();
    for (std::uint64_t i = 0; i < count; ++i) B::QueryReady(buffer);
    return 0;
  }

  // Each thread feeds a device of its own. Answers its own time.
  template <int kCount>
  static std::uint64_t Scaling(std::uint64_t count) {
    return TimeThreads(kCount, [count](int t) {
      const unsigned char* data = bench_source() + static_cast<std::size_t>(t) * kShare;
      for (std::uint64_t i = 0; i < count; ++i) {
        Buffer buffer = B::FromHost(data, kShare, t);
        B::Await(buffer);
      }
    });
  }

  // How much more kMeasure() is with `count` live buffers, less kPayload each. Memory that earlier rows left behind
  // goes back to the kernel first.
  template <std::size_t (*kMeasure)(), std::size_t kPayload>
  static std::uint64_t Growth(std::uint64_t count) {
    HostToDevice<kLiveBytes>(1);
    std::vector<Buffer> buffers;
    buffers.reserve(count);
    malloc_trim(0);
    const std::size_t before = kMeasure() + count * kPayload;
    for (std::uint64_t i = 0; i < count; ++i) {
      buffers.push_back(B::FromHost(bench_source(), kLiveBytes, 0));
      B::Await(buffers.back());
    }
    const std::size_t after = kMeasure();
    return after > before ? after - before : 0;
  }

  // The table for `peer`. Lives until the end of the process.
  static std::vector<Op> Table(const char* peer) {
    std::vector<Op> ops = {
        {"host to device 4 B", peer, 1000, &HostToDevice<4>, kOneThread},
        {"host to device 4 KiB", peer, 1000, &HostToDevice<4096>, kOneThread},
        {"host to device 64 MiB", peer, 1, &HostToDevice<kLarge>, kLong},
        {"device to host 4 B", peer, 1000, &DeviceToHost<4>, B::kCopyKind},
        {"device to host 64 MiB", peer, 1, &DeviceToHost<kLarge>, kLong},
        {"device to device 4 B", peer, 1000, &DeviceToDevice<4>, B::kCopyKind},
        {"device to device 64 MiB", peer, 1, &DeviceToDevice<kLarge>, kLong},
        {"host to device 40 MiB, 1 thread and device", peer, 1, &Scaling<1>, kLong},
        {"host to device 40 MiB, 2 threads and devices", peer, 1, &Scaling<2>, kLong},
        {"host to device 40 MiB, 4 threads and devices", peer, 1, &Scaling<4>, kLong},
        {"100000 live buffers of 64 B: heap without payload, each", peer, kLive, &Growth<&HeapBytes, kHeapPayload>,
         kAtEnd},
        {"100000 live buffers of 64 B: growth of RSS, each", peer, kLive, &Growth<&ResidentBytes, 0>, kAtEnd},
    };
    if constexpr (B::kZeroCopy) {
      ops.push_back({"zero copy create and destroy 4 KiB", peer, 1000, &ZeroCopy, kOneThread});
    }
    if constexpr (B::kUninitialised) {
      ops.push_back({"create uninitialised and destroy 4 KiB", peer, 1000, &Uninitialised, kOneThread});
    }
    if constexpr (B::kReadyEvent) {
      ops.push_back({"ready event of a buffer: query, wait, drop", peer, 20000, &QueryReady, kOneThread});
    }
    return ops;
  }

 private:
  // A ready buffer to copy from; made in the round that warms up, and never destroyed.
  template <std::size_t kBytes>
  static Buffer& Source() {
    static Buffer* const source = [] {
      auto* made = new Buffer(B::FromHost(bench_source(), kBytes, 0));
      B::Await(*made);
      return made;
    }();
    return *source;
  }
};

#endif  // PURLIN_BENCHES_BUFFER_ROWS_H_

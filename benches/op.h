// Purlin: what the bench driver and the libraries of peers agree on. Plain C layout: Rust peers build the same struct.
//
// A library of peers exports `bench_ops`. The driver owns clock, rounds and allocation counts; an operation only runs.
#ifndef PURLIN_BENCHES_OP_H_
#define PURLIN_BENCHES_OP_H_

#include <cstddef>
#include <cstdint>

/// One column of one row: what `peer` does for the work that `row` names.
struct Op {
  const char* row;
  const char* peer;
  /// Operations in one call of `run`, so that a call takes about a millisecond.
  std::uint64_t batch;
  /// Does `count` operations. Answers 0, and the driver's clock counts; or its own sum, where only a part is measured.
  std::uint64_t (*run)(std::uint64_t count);
  /// One of the numbers below.
  std::uint32_t kind;
};

enum : std::uint32_t {
  kOneThread = 0,
  /// More than one thread takes part, so instructions are not counted.
  kThreads = 1,
  /// Also costs seconds, so runs once.
  kOnce = 2,
  /// Tens of milliseconds a call: half the rounds must do. Its instructions are not counted.
  kLong = 3,
  /// Measures no time and leaves a heap full of holes: runs once, after everything else.
  kAtEnd = 4,
};

extern "C" {
/// The operations of a library; `count` receives how many.
typedef const Op* (*BenchOps)(std::size_t* count);
/// Those of benches/rust, which is linked in.
const Op* bench_ops_from_rust(std::size_t* count);
/// The body of every parallel loop, compiled once, in the driver.
void bench_loop_body(std::uint32_t* data, std::size_t begin, std::size_t end);
/// The host's side of every copy of a buffer, 160 MiB each, in the driver, so that all columns meet the same pages.
const unsigned char* bench_source(void);
unsigned char* bench_destination(void);
/// The folder that benches/programs.py has written, or null.
const char* bench_programs(void);
}

/// Keeps a compiler from removing or hoisting work on `value`.
template <typename T>
inline void Touch(T& value) {
  asm volatile("" : : "r"(&value) : "memory");
}

#endif  // PURLIN_BENCHES_OP_H_

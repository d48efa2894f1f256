// Runs operations of ours and of peers side by side and prints one JSON object a line for each.
//
//   purlin_bench [--rounds N] [--only REGEX] [--programs FOLDER] [--instructions] LIBRARY...
//
// Every column of a row runs once in every round, so that a noisy machine disturbs all alike; the one that goes first
// changes from round to round. Minimum and median are over the rounds. Allocations come from a round of their own.
// --instructions is for callgrind: each single-threaded operation becomes two dumps, named "ROW|PEER|COUNT", for two
// counts; what one operation takes is the slope between them, free of what a call sets up. Without --programs there are
// no rows about executing programs.
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include "count_allocations.h"
#include "op.h"
#include "ours.h"

#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#define PURLIN_BENCH_CALLGRIND 1
#endif

extern "C" void bench_loop_body(std::uint32_t* data, std::size_t begin, std::size_t end) {
  for (std::size_t i = begin; i < end; ++i) data[i] = data[i] * 1664525U + 1013904223U;
}

namespace {

// Plain pages, as a program's own memory has, all of them there.
unsigned char* HostBytes(int fill) {
  constexpr std::size_t kBytes = std::size_t{160} << 20;
  void* bytes = std::aligned_alloc(4096, kBytes);
  if (bytes == nullptr) std::abort();
  return static_cast<unsigned char*>(std::memset(bytes, fill, kBytes));
}

}  // namespace

extern "C" const unsigned char* bench_source(void) {
  static const unsigned char* const bytes = HostBytes(1);
  return bytes;
}
extern "C" unsigned char* bench_destination(void) {
  static unsigned char* const bytes = HostBytes(2);
  return bytes;
}

namespace {

const char* programs = nullptr;

}  // namespace

extern "C" const char* bench_programs(void) { return programs; }

namespace {

constexpr std::size_t kPasses = 3;

struct Column {
  Op op;
  std::vector<double> ns;
  double allocations = 0;
};
struct Row {
  std::string name;
  std::vector<Column> columns;
};

void Add(std::vector<Row>& rows, const Op* ops, std::size_t count, const std::regex& only) {
  for (const Op* op = ops; op != ops + count; ++op) {
    if (!std::regex_search(op->row, only)) continue;
    auto row = std::find_if(rows.begin(), rows.end(), [op](const Row& r) { return r.name == op->row; });
    if (row == rows.end()) row = rows.insert(rows.end(), Row{op->row, {}});
    row->columns.push_back(Column{*op, {}, 0});
  }
}

// One call of an operation, in ns per operation.
double Time(const Op& op) {
  const auto start = std::chrono::steady_clock::now();
  const std::uint64_t own = op.run(op.batch);
  const std::chrono::duration<double, std::nano> elapsed = std::chrono::steady_clock::now() - start;
  const bool its_own = own != 0 || op.kind == kOnce || op.kind == kAtEnd;
  const double total = its_own ? static_cast<double>(own) : elapsed.count();
  return total / static_cast<double>(op.batch);
}

// Lets the workers of the pool that has just worked fall asleep, so that they do not spin into the next one's time.
void Settle(const Op& op) {
  if (op.kind != kOneThread) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

// Warms up, and counts allocations the first time.
void Prepare(Row& row) {
  for (Column& column : row.columns) {
    if (column.op.kind == kOnce || column.op.kind == kAtEnd) continue;
    column.op.run(column.op.batch);
    if (!column.ns.empty()) continue;
    StartCountingAllocations();
    column.op.run(column.op.batch);
    column.allocations = static_cast<double>(StopCountingAllocations()) / static_cast<double>(column.op.batch);
    Settle(column.op);
  }
}

void Measure(Row& row, std::size_t rounds) {
  const std::size_t width = row.columns.size();
  if (row.columns.front().op.kind == kAtEnd) return;
  if (row.columns.front().op.kind == kOnce) rounds = row.columns.front().ns.empty() ? 1 : 0;
  if (row.columns.front().op.kind == kThreads) rounds *= 3;  // The kernel's scheduler adds its own luck.
  if (row.columns.front().op.kind == kLong) rounds = (rounds + 1) / 2;
  for (std::size_t round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < width; ++i) {
      Column& column = row.columns[(round + i) % width];
      column.ns.push_back(Time(column.op));
      Settle(column.op);
    }
  }
}

void MeasureAtEnd(Row& row) {
  if (row.columns.front().op.kind != kAtEnd) return;
  for (Column& column : row.columns) column.ns.push_back(Time(column.op));
}

void Print(Row& row) {
  for (Column& column : row.columns) {
    std::sort(column.ns.begin(), column.ns.end());
    std::printf("{\"op\": \"%s\", \"peer\": \"%s\", \"min\": %.4g, \"median\": %.4g, \"allocs\": %.4g}\n",
                row.name.c_str(), column.op.peer, column.ns.front(), column.ns[column.ns.size() / 2],
                column.allocations);
  }
}

void CountInstructions(const Row& row) {
#ifdef PURLIN_BENCH_CALLGRIND
  for (const Column& column : row.columns) {
    if (column.op.kind != kOneThread) continue;
    const std::uint64_t least = column.op.batch >= 10000 ? 1000 : column.op.batch >= 1000 ? 100 : 10;
    column.op.run(3 * least);  // Fills the caches of allocators, which the first operations pay for.
    for (const std::uint64_t count : {least, 3 * least}) {
      const std::string name = row.name + "|" + column.op.peer + "|" + std::to_string(count);
      CALLGRIND_ZERO_STATS;
      CALLGRIND_TOGGLE_COLLECT;
      column.op.run(count);
      CALLGRIND_TOGGLE_COLLECT;
      CALLGRIND_DUMP_STATS_AT(name.c_str());
    }
  }
#else
  static_cast<void>(row);
#endif
}

int Usage() {
  std::fprintf(stderr,
               "usage: purlin_bench [--rounds N] [--only REGEX] [--programs FOLDER] [--instructions] LIBRARY...\n");
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  int rounds = 31;
  bool instructions = false;
  std::string only;
  std::vector<const char*> libraries;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--instructions") {
      instructions = true;
    } else if (argument == "--rounds" && i + 1 < argc) {
      rounds = std::max(1, std::atoi(argv[++i]));
    } else if (argument == "--only" && i + 1 < argc) {
      only = argv[++i];
    } else if (argument == "--programs" && i + 1 < argc) {
      programs = argv[++i];
    } else if (argument.rfind("--", 0) == 0) {
      return Usage();
    } else {
      libraries.push_back(argv[i]);
    }
  }

  // Events live in programs with threads. Until there is a second one, glibc's malloc and libstdc++'s shared_ptr leave
  // their locked instructions out, so that the order of rows would decide what they cost.
  std::thread([] {
    while (true) pause();
  }).detach();

  const std::regex filter(only);
  std::vector<Row> rows;
  for (const OpList& list : OwnOps()) Add(rows, list.ops, list.count, filter);
#ifdef PURLIN_BENCH_RUST
  std::size_t from_rust = 0;
  const Op* ops_from_rust = bench_ops_from_rust(&from_rust);
  Add(rows, ops_from_rust, from_rust, filter);
#endif
  for (const char* library : libraries) {
    void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    void* symbol = handle == nullptr ? nullptr : dlsym(handle, "bench_ops");
    if (symbol == nullptr) {
      std::fprintf(stderr, "purlin_bench: %s: %s\n", library, dlerror());
      continue;
    }
    BenchOps bench_ops = nullptr;
    std::memcpy(&bench_ops, &symbol, sizeof(bench_ops));
    std::size_t count = 0;
    const Op* ops = bench_ops(&count);
    Add(rows, ops, count, filter);
  }
  if (instructions) {
    for (const Row& row : rows) CountInstructions(row);
    return 0;
  }
  // In passes over all rows, so that a bad second of the machine does not have a row to itself.
  for (std::size_t pass = 0; pass < kPasses; ++pass) {
    for (Row& row : rows) {
      Prepare(row);
      Measure(row, (static_cast<std::size_t>(rounds) + kPasses - 1 - pass) / kPasses);
    }
  }
  for (Row& row : rows) MeasureAtEnd(row);
  for (Row& row : rows) Print(row);
  return 0;
}

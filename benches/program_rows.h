// The work of every row about executing programs, written once for all libraries, so that each column does the same.
// benches/programs.py compiles the programs with stock JAX; every column loads the same bytes.
//
// A backend B says how it does things, in static functions; it has one device and is made on first use.
//   Buffer FromHost(array)                 a ready buffer with these elements
//   Program Load(bytes)                    the executable, loaded; ~Program drops it
//   Outputs Run(program, arguments)        until it is complete; donates what the program takes
//   Outputs Start(program, arguments)      as Run, without waiting
//   Await(outputs)                         until they are there
//   Recycle(program, arguments, outputs)   [kGivenResults] as Run, into the memory of `outputs`, which it replaces
//   Buffer Take(outputs, index)            an output, which leaves the list
#ifndef PURLIN_BENCHES_PROGRAM_ROWS_H_
#define PURLIN_BENCHES_PROGRAM_ROWS_H_

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "op.h"

enum class Element { kF32, kBF16, kS32 };

struct HostArray {
  Element element;
  std::vector<std::int64_t> dims;
  const char* data;
  std::size_t bytes;
};

// A program as programs.py wrote it. `arrays` point into `elements`.
struct ProgramFiles {
  std::string executable, elements;
  std::vector<HostArray> arrays;
};

inline std::ifstream OpenProgramFile(const std::string& name) {
  std::ifstream file(bench_programs() + ("/" + name), std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "purlin_bench: there is no %s in %s\n", name.c_str(), bench_programs());
    std::abort();
  }
  return file;
}

inline ProgramFiles ReadProgram(const std::string& name) {
  const auto read = [](std::ifstream file) { return std::string(std::istreambuf_iterator<char>(file), {}); };
  ProgramFiles files{read(OpenProgramFile(name + ".xla")), read(OpenProgramFile(name + ".bytes")), {}};
  std::ifstream types = OpenProgramFile(name + ".types");
  std::size_t offset = 0;
  for (std::string line; std::getline(types, line);) {
    std::istringstream words(line);
    std::string element;
    words >> element;
    HostArray array{Element::kF32, {}, files.elements.data() + offset, 4};
    if (element == "bfloat16") array.element = Element::kBF16, array.bytes = 2;
    if (element == "int32") array.element = Element::kS32;
    for (std::int64_t dim = 0; words >> dim;) {
      array.dims.push_back(dim);
      array.bytes *= static_cast<std::size_t>(dim);
    }
    offset += array.bytes;
    files.arrays.push_back(std::move(array));
  }
  if (offset != files.elements.size()) std::abort();
  return files;
}

struct ProgramRow {
  const char* row;
  const char* file;
  std::uint64_t batch;
};

// Each runs with ready arguments, until it is complete; then its outputs are dropped.
constexpr ProgramRow kRuns[] = {
    {"program: x + 1", "add_one", 500},
    {"program: 8 in, 8 out", "eight", 100},
    {"program: 32 in, 32 out", "thirty_two", 30},
    {"program: hessian of 8", "hessian", 100},
    {"program: cumsum of 1000", "cumsum", 50},
    {"program: matmul 8", "matmul_8", 100},
    {"program: matmul 512, f32", "matmul_512", 1},
    {"program: matmul 512, bf16", "matmul_512_bf16", 1},
    {"program: conv2d 3x3, 64 channels", "conv2d", 3},
    {"program: softmax 64x1000", "softmax", 10},
    {"program: sum of 10^6", "sum", 5},
    {"program: transformer block, forward", "transformer", 1},
    {"program: transformer block, gradient", "transformer_gradient", 1},
};
constexpr ProgramRow kIntoGiven[] = {
    {"program: x + 1, into results given beforehand", "add_one", 500},
    {"program: 8 in, 8 out, into results given beforehand", "eight", 100},
    {"program: 32 in, 32 out, into results given beforehand", "thirty_two", 30},
};
constexpr std::size_t kDonatedWeights = 4;

template <typename B>
class ProgramRows {
 public:
  // The table for `peer`, empty without programs. Lives until the end of the process.
  static std::vector<Op> Table(const char* peer) {
    std::vector<Op> ops;
    if (bench_programs() == nullptr) return ops;
    AddRuns(ops, peer, std::make_index_sequence<std::size(kRuns)>());
    AddIntoGiven(ops, peer, std::make_index_sequence<std::size(kIntoGiven)>());
    ops.push_back({"program: MLP step, weights donated", peer, 1, &MlpStep, kThreads});
    ops.push_back({"program: x + 1, a chain of 1000", peer, 1000, &Chain, kThreads});
    ops.push_back({"program: load and drop, transformer block", peer, 10, &LoadAndDrop, kThreads});
    return ops;
  }

 private:
  using Buffer = typename B::Buffer;
  using Program = typename B::Program;
  using Outputs = typename B::Outputs;

  struct Loaded {
    Program program;
    std::vector<Buffer> arguments;
  };

  // Loaded in the round that warms up, and never dropped.
  static Loaded* Load(const char* name) {
    const ProgramFiles files = ReadProgram(name);
    auto* loaded = new Loaded{B::Load(files.executable), {}};
    for (const HostArray& array : files.arrays) loaded->arguments.push_back(B::FromHost(array));
    return loaded;
  }

  template <std::size_t kIndex>
  static std::uint64_t Run(std::uint64_t count) {
    static Loaded* const loaded = Load(kRuns[kIndex].file);
    for (std::uint64_t i = 0; i < count; ++i) B::Run(loaded->program, loaded->arguments);
    return 0;
  }
  // What cannot be given results makes new ones.
  template <std::size_t kIndex>
  static std::uint64_t RunIntoGiven(std::uint64_t count) {
    static Loaded* const loaded = Load(kIntoGiven[kIndex].file);
    if constexpr (B::kGivenResults) {
      static Outputs* const outputs = new Outputs(B::Run(loaded->program, loaded->arguments));
      for (std::uint64_t i = 0; i < count; ++i) B::Recycle(loaded->program, loaded->arguments, *outputs);
    } else {
      for (std::uint64_t i = 0; i < count; ++i) B::Run(loaded->program, loaded->arguments);
    }
    return 0;
  }
  // Each step takes the weights that the one before it gave.
  static std::uint64_t MlpStep(std::uint64_t count) {
    static Loaded* const loaded = Load("mlp_step");
    for (std::uint64_t i = 0; i < count; ++i) {
      Outputs outputs = B::Run(loaded->program, loaded->arguments);
      for (std::size_t w = 0; w < kDonatedWeights; ++w) loaded->arguments[w] = B::Take(outputs, w);
    }
    return 0;
  }
  // Each program takes the output of the one before it; the host waits for the last alone.
  static std::uint64_t Chain(std::uint64_t count) {
    static Loaded* const loaded = Load("add_one");
    std::vector<Buffer> arguments;
    Outputs outputs = B::Start(loaded->program, loaded->arguments);
    for (std::uint64_t i = 1; i < count; ++i) {
      arguments.clear();
      arguments.push_back(B::Take(outputs, 0));
      outputs = B::Start(loaded->program, arguments);
    }
    B::Await(outputs);
    return 0;
  }
  static std::uint64_t LoadAndDrop(std::uint64_t count) {
    static const ProgramFiles* const files = new ProgramFiles(ReadProgram("transformer_without_ynn"));
    for (std::uint64_t i = 0; i < count; ++i) {
      Program program = B::Load(files->executable);
      Touch(program);
    }
    return 0;
  }

  template <std::size_t... kIndex>
  static void AddRuns(std::vector<Op>& ops, const char* peer, std::index_sequence<kIndex...>) {
    (ops.push_back({kRuns[kIndex].row, peer, kRuns[kIndex].batch, &Run<kIndex>, kThreads}), ...);
  }
  template <std::size_t... kIndex>
  static void AddIntoGiven(std::vector<Op>& ops, const char* peer, std::index_sequence<kIndex...>) {
    (ops.push_back({kIntoGiven[kIndex].row, peer, kIntoGiven[kIndex].batch, &RunIntoGiven<kIndex>, kThreads}), ...);
  }
};

#endif  // PURLIN_BENCHES_PROGRAM_ROWS_H_

// Runs programs that stock JAX compiled, without XLA, and prints the times of loading and of a run.
//
//   python3 examples/python/export_xla.py FOLDER
//   run_xla FOLDER/add_one FOLDER/mlp_step ...
//
// For each NAME it reads NAME.xla and the arrays of NAME.args. The time is that of the shortest of many.
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "purlin/purlin.h"

namespace {

using Clock = std::chrono::steady_clock;

/// Microseconds of the shortest of `count` calls, or of as many as take two seconds.
template <typename F>
purlin::StatusOr<double> Shortest(int count, F call) {
  const Clock::time_point begin = Clock::now();
  double shortest = 1e9;
  for (int i = 0; i < count && Clock::now() - begin < std::chrono::seconds(2); ++i) {
    const Clock::time_point begun = Clock::now();
    const purlin::Status status = call();
    if (!status.ok()) return status;
    const double took = std::chrono::duration<double, std::micro>(Clock::now() - begun).count();
    if (took < shortest) shortest = took;
  }
  return shortest;
}

purlin::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return purlin::NotFoundError("there is no file " + path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

/// The arguments of a program, from NUMBER.npy in `folder`.
purlin::StatusOr<std::vector<purlin::Buffer>> ReadArguments(const purlin::Program& program, const std::string& folder,
                                                            const purlin::MemorySpace& memory) {
  std::vector<purlin::Buffer> arguments;
  for (const purlin::ArraySpec& spec : program.parameters()) {
    purlin::ReadNpyOptions options;
    options.dtype = spec.shape.dtype();
    auto array = purlin::ReadNpy(folder + "/" + std::to_string(arguments.size()) + ".npy", memory, options);
    if (!array.ok()) return array.status();
    arguments.push_back(std::move(array->buffer));
  }
  return arguments;
}

purlin::Status Run(const std::string& name, const purlin::Device& device) {
  purlin::StatusOr<std::string> bytes = ReadFile(name + ".xla");
  if (!bytes.ok()) return bytes.status();
  purlin::LoadXlaCpuOptions trusted;
  trusted.trust_code = true;  // The user of this program vouches for the files.
  purlin::StatusOr<purlin::Executable> executable = purlin::LoadXlaCpu(*bytes, trusted);
  if (!executable.ok()) return executable.status();
  const auto load = Shortest(50, [&] { return purlin::LoadXlaCpu(*bytes, trusted).status(); });
  if (!load.ok()) return load.status();

  auto loaded = purlin::LoadedExecutable::Load(*executable, {device});
  if (!loaded.ok()) return loaded.status();
  const auto arguments = ReadArguments(executable->program(), name + ".args", device.default_memory_space());
  if (!arguments.ok()) return arguments.status();
  // No argument is donated, because it would be deleted after the first run.
  std::vector<std::size_t> kept;
  for (std::size_t i = 0; i < arguments->size(); ++i) kept.push_back(i);
  purlin::ExecuteOptions options;
  options.non_donatable_input_indices = kept;
  options.caller_waits = true;
  const auto run = Shortest(2000, [&]() -> purlin::Status {
    purlin::StatusOr<purlin::Execution> execution = loaded->Execute(*arguments, options);
    return execution.ok() ? execution->done.Wait() : execution.status();
  });
  if (!run.ok()) return run.status();
  std::printf("%s: %zu bytes; load %.1f us, run %.1f us\n", name.c_str(), bytes->size(), *load, *run);
  return purlin::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  const purlin::StatusOr<purlin::Client> client = purlin::Client::Create();
  if (!client.ok()) {
    std::fprintf(stderr, "%s\n", client.status().ToString().c_str());
    return 1;
  }
  int failed = 0;
  for (int i = 1; i < argc; ++i) {
    const purlin::Status status = Run(argv[i], client->devices()[0]);
    if (status.ok()) continue;
    std::fprintf(stderr, "%s: %s\n", argv[i], status.ToString().c_str());
    failed = 1;
  }
  return failed;
}

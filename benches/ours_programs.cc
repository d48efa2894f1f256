// Purlin's column of the rows about executing programs.
#include <cstdlib>
#include <utility>
#include <vector>

#include "need.h"
#include "ours.h"
#include "program_rows.h"
#include "purlin/buffer.h"
#include "purlin/client.h"
#include "purlin/executable.h"
#include "purlin/xla_cpu.h"

namespace {

struct OurPrograms {
  using Buffer = purlin::Buffer;
  using Program = purlin::LoadedExecutable;
  using Outputs = purlin::Execution;
  static constexpr bool kGivenResults = true;

  struct OneDevice {
    purlin::Client client;
    purlin::Device device;
    purlin::MemorySpace memory;
  };
  // Never destroyed, as the peers' are not. As many workers as the plugin's client makes: one for each core.
  static const OneDevice& Get() {
    static const OneDevice* const made = [] {
      const purlin::Client client = Need(purlin::Client::Create(purlin::ClientOptions()));
      const purlin::Device device = client.devices().front();
      return new OneDevice{client, device, device.default_memory_space()};
    }();
    return *made;
  }

  static Buffer FromHost(const HostArray& array) {
    purlin::DType dtype = purlin::DType::kF32;
    if (array.element == Element::kBF16) dtype = purlin::DType::kBF16;
    if (array.element == Element::kS32) dtype = purlin::DType::kS32;
    return Need(purlin::Buffer::FromHost(array.data, array.bytes, dtype, array.dims, Get().memory));
  }
  static Program Load(const std::string& bytes) {
    purlin::LoadXlaCpuOptions trusted;
    trusted.trust_code = true;  // programs.py has just compiled it.
    return Need(purlin::LoadedExecutable::Load(Need(purlin::LoadXlaCpu(bytes, trusted)), {Get().device}));
  }
  static Outputs Start(const Program& program, const std::vector<Buffer>& arguments,
                       const purlin::ExecuteOptions& options = purlin::ExecuteOptions()) {
    return Need(program.Execute(arguments, options));
  }
  static void Await(const Outputs& outputs) { Need(outputs.done.Wait()); }
  static Outputs Run(const Program& program, const std::vector<Buffer>& arguments) {
    purlin::ExecuteOptions options;
    options.caller_waits = true;
    Outputs outputs = Start(program, arguments, options);
    Await(outputs);
    return outputs;
  }
  static void Recycle(const Program& program, const std::vector<Buffer>& arguments, Outputs& outputs) {
    purlin::ExecuteOptions options;
    options.caller_waits = true;
    options.results = {outputs.outputs.data(), outputs.outputs.size()};
    outputs = Start(program, arguments, options);
    Await(outputs);
  }
  static Buffer Take(Outputs& outputs, std::size_t index) { return std::move(outputs.outputs[index]); }
};

}  // namespace

OpList ProgramOps() {
  static const std::vector<Op> ops = ProgramRows<OurPrograms>::Table("purlin");
  return {ops.data(), ops.size()};
}

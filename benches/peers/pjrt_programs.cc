// XLA's CPU client as a plugin: its column of the rows about executing programs.
#include <utility>
#include <vector>

#include "pjrt.h"
#include "program_rows.h"

namespace {

// Of arguments, and of outputs, of a program.
constexpr std::size_t kMostBuffers = 32;

class PluginProgram {
 public:
  explicit PluginProgram(PJRT_LoadedExecutable* loaded) : loaded_(loaded) {}
  PluginProgram(PluginProgram&& other) noexcept : loaded_(std::exchange(other.loaded_, nullptr)) {}
  PluginProgram& operator=(PluginProgram&& other) = delete;
  ~PluginProgram() {
    if (loaded_ == nullptr) return;
    PURLIN_ARGUMENTS(PJRT_LoadedExecutable_Destroy_Args, destroy);
    destroy.executable = loaded_;
    Need(api->PJRT_LoadedExecutable_Destroy(&destroy));
  }
  PJRT_LoadedExecutable* get() const { return loaded_; }

 private:
  PJRT_LoadedExecutable* loaded_;
};

// Without an allocation of the bench's own.
class PluginOutputs {
 public:
  PluginOutputs() = default;
  PluginOutputs(PluginOutputs&& other) noexcept { *this = std::move(other); }
  PluginOutputs& operator=(PluginOutputs&& other) noexcept {
    std::swap(buffers, other.buffers);
    return *this;
  }
  ~PluginOutputs() {
    for (PJRT_Buffer* buffer : buffers) PluginBuffer{buffer};
  }
  PJRT_Buffer* buffers[kMostBuffers] = {};
};

struct Plugin {
  using Buffer = PluginBuffer;
  using Program = PluginProgram;
  using Outputs = PluginOutputs;
  static constexpr bool kGivenResults = false;

  static const PluginClient& Get() {
    static const PluginClient* const made = new PluginClient(1);
    return *made;
  }

  static Buffer FromHost(const HostArray& array) {
    static PJRT_Memory* const memory = Get().DefaultMemory(0);
    PURLIN_ARGUMENTS(PJRT_Client_BufferFromHostBuffer_Args, make);
    make.client = Get().client;
    make.data = array.data;
    make.type = PJRT_Buffer_Type_F32;
    if (array.element == Element::kBF16) make.type = PJRT_Buffer_Type_BF16;
    if (array.element == Element::kS32) make.type = PJRT_Buffer_Type_S32;
    make.dims = array.dims.data();
    make.num_dims = array.dims.size();
    make.host_buffer_semantics = PJRT_HostBufferSemantics_kImmutableOnlyDuringCall;
    make.memory = memory;
    Need(api->PJRT_Client_BufferFromHostBuffer(&make));
    AwaitAndDestroy(make.done_with_host_buffer);
    AwaitAndDestroy(Ready(make.buffer));
    return Buffer(make.buffer);
  }
  static Program Load(const std::string& bytes) {
    PURLIN_ARGUMENTS(PJRT_Executable_DeserializeAndLoad_Args, load);
    load.client = Get().client;
    load.serialized_executable = bytes.data();
    load.serialized_executable_size = bytes.size();
    Need(api->PJRT_Executable_DeserializeAndLoad(&load));
    return Program(load.loaded_executable);
  }

  static Outputs Execute(const Program& program, const std::vector<Buffer>& arguments, PJRT_Event** done) {
    PJRT_Buffer* inputs[kMostBuffers];
    for (std::size_t i = 0; i < arguments.size(); ++i) inputs[i] = arguments[i].get();
    PJRT_Buffer* const* const input_lists[] = {inputs};
    Outputs outputs;
    PJRT_Buffer** const output_lists[] = {outputs.buffers};
    PURLIN_ARGUMENTS(PJRT_ExecuteOptions, options);
    PURLIN_ARGUMENTS(PJRT_LoadedExecutable_Execute_Args, execute);
    execute.executable = program.get();
    execute.options = &options;
    execute.argument_lists = input_lists;
    execute.num_devices = 1;
    execute.num_args = arguments.size();
    execute.output_lists = output_lists;
    execute.device_complete_events = done;
    Need(api->PJRT_LoadedExecutable_Execute(&execute));
    return outputs;
  }
  static Outputs Start(const Program& program, const std::vector<Buffer>& arguments) {
    return Execute(program, arguments, nullptr);
  }
  static Outputs Run(const Program& program, const std::vector<Buffer>& arguments) {
    PJRT_Event* done = nullptr;
    Outputs outputs = Execute(program, arguments, &done);
    AwaitAndDestroy(done);
    return outputs;
  }
  static void Await(const Outputs& outputs) { AwaitAndDestroy(Ready(outputs.buffers[0])); }
  static Buffer Take(Outputs& outputs, std::size_t index) {
    return Buffer(std::exchange(outputs.buffers[index], nullptr));
  }

 private:
  static PJRT_Event* Ready(PJRT_Buffer* buffer) {
    PURLIN_ARGUMENTS(PJRT_Buffer_ReadyEvent_Args, ready);
    ready.buffer = buffer;
    Need(api->PJRT_Buffer_ReadyEvent(&ready));
    return ready.event;
  }
  static void AwaitAndDestroy(PJRT_Event* event) {
    ::Await(event);
    Destroy(event);
  }
};

}  // namespace

std::vector<Op> PluginProgramOps() { return ProgramRows<Plugin>::Table(PURLIN_BENCH_PJRT_TITLE); }

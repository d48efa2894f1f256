// Purlin: NVIDIA's GPUs: whether this process can use them, work of other libraries there in order with Purlin's, and
// CUDA C++ compiled at run time.
//
// ```cpp
// #include "purlin/executable.h"
// #include "purlin/program.h"
// #include "purlin/raw_buffer.h"
//
// // The copy is behind all that `theirs`, a CUstream, has; what is put there afterwards is behind the copy.
// purlin::Status CopyBetween(const purlin::Device& device, std::uintptr_t theirs, const std::vector<char>& bytes,
//                            const purlin::RawBuffer& to) {
//   const purlin::Event before = purlin::EventOfCudaStream(device, theirs);
//   const purlin::Event copied = to.CopyFromHost(bytes.data(), 0, bytes.size(), {before});
//   const purlin::Status ordered = purlin::HaveCudaStreamWait(device, theirs, copied);
//   if (!ordered.ok()) return ordered;
//   return copied.Wait();  // for `bytes`: the two orders take no thread
// }
//
// purlin::StatusOr<purlin::KernelLoaderSpec> Twice() {
//   purlin::KernelSource source;
//   source.name = "twice.cu";
//   source.text = "extern \"C\" __global__ void twice(float* x) { x[threadIdx.x] *= 2; }";
//   source.target = "7.5";
//   const purlin::StatusOr<purlin::Ptx> ptx = purlin::CompileKernelSource(source);
//   if (!ptx.ok()) return ptx.status();  // the source's error and the compiler's log, or: there is no nvrtc
//   return ptx->LoaderSpec("twice", 1);  // for LoadedKernel::Load
// }
//
// // `step` on 256 numbers in place, 20 times: a graph.
// purlin::StatusOr<purlin::LoadedExecutable> Steps(const purlin::Device& gpu, const purlin::KernelLoaderSpec& step) {
//   const purlin::StatusOr<purlin::Kernel> kernel = purlin::Kernel::OfDevice(step, {256, 1, 1});
//   if (!kernel.ok()) return kernel.status();
//   purlin::ProgramBuilder graph("steps");
//   const purlin::ArraySpec numbers(purlin::Shape(purlin::DType::kF32, {256}));
//   const purlin::Operand x = purlin::Operand::ReadWrite(graph.AddDonatedParameter(numbers));
//   for (int i = 0; i < 20; ++i) graph.AddKernel(*kernel, {x});
//   const purlin::StatusOr<purlin::Program> program = std::move(graph).Build();
//   if (!program.ok()) return program.status();
//   return purlin::LoadedExecutable::Load(purlin::Executable(*program), {gpu});  // what cannot be recorded is named
// }
// ```
//
// Clients on GPUs are those of the platform "cuda" (client.h), kernels are loaded_kernel.h's. Nothing of CUDA is needed
// to compile or link this header: driver and compiler are looked for at run time. Handles of the driver are numbers
// here; purlin/adapters/cuda.h has the same with the types of <cuda.h>. It is left out where Purlin was built without
// PURLIN_CUDA.
//
// Device::attributes() of a GPU has these, under XLA's names where XLA has one. What the driver does not say is left
// out.
//
// - `device_vendor` (text): "NVIDIA Corporation"; `uuid` (text): "GPU-" and 32 digits, as nvidia-smi has it;
//   `pci_bus_id` (text): such as "0000:01:00.0"; `compute_capability` (text): such as "9.0"; `driver_version` (text):
//   the newest CUDA that the driver is for, such as "13.0".
// - `fabric_uuid` (text), of GPUs since 9.0 that have joined an NVLink fabric: "CLUSTER/CLIQUE", which is equal on
//   GPUs, also of several machines, that reach each other's memory. NVML says it, which is looked for as the driver
//   is.
// - `device_memory_bytes`, `l2_cache_size` (integers): bytes; `memory_bus_width` (integer): bits; `memory_bandwidth`
//   (integer): bytes a second.
// - `core_count` (integer): multiprocessors, called cores below; `clock_rate_ghz` (float): the most they are clocked
//   with.
// - `threads_per_warp`, `threads_per_block_limit`, `threads_per_core_limit` (integers); `thread_dim_limit` and
//   `block_dim_limit` (three integers): the most threads of a block, and blocks of a launch, in x, y and z.
// - `registers_per_block_limit`, `registers_per_core_limit` (integers): registers of 4 bytes.
// - `shared_memory_per_block`, `shared_memory_per_block_optin`, `shared_memory_per_core` (integers): bytes of a block,
//   of one that asks for more, as LoadedKernel does where it is needed, and of a core.
//
// **Graphs.** A sequence of kernels, copies and fills that is recorded once is a program (program.h) of kernels of the
// GPU (Kernel::OfDevice). LoadedExecutable::Load names the command that cannot be recorded, such as a closure. A run is
// one operation, with holds and events as any other. From the second run on, five or more commands in a row are a graph
// of the driver's: while the addresses of arguments, results and temporaries stay, as with donated arguments and given
// results, a run is one launch of it. Where they change, the graph is recorded anew and the executable one updated;
// where that is so for more than half of the runs, or the driver refuses it, the commands are enqueued one by one.
// Loops and conditionals that bytes of the GPU decide are between graphs: docs/programs.md.
//
// Any thread may call every function. The CUDA context that is current on it before a call, to this header or any
// other of Purlin's, is current after it. When memory is so short that small allocations fail, the process ends:
// SECURITY.md, "When memory is short".
#ifndef PURLIN_CUDA_H_
#define PURLIN_CUDA_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "purlin/device.h"
#include "purlin/event.h"
#include "purlin/export.h"
#include "purlin/kernel_loader_spec.h"
#include "purlin/source_location.h"
#include "purlin/status.h"
#include "purlin/status_or.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {

/// OK if a client of the platform "cuda" can be made. kUnavailable, with what would help: there is no driver, or it is
/// older than 12.2 or has no device, with the loader's or the driver's words; the program is linked statically.
/// kFailedPrecondition: this is a child, made by fork, of a process that uses CUDA. The first call loads the driver,
/// which takes up to seconds; later ones answer the same.
[[nodiscard]] PURLIN_API Status CudaAvailability();

/// An event that happens when all is over that `stream`, a CUstream, has now. What is enqueued there afterwards changes
/// nothing, nor does the stream's end. Operations of the client that depend on the event are enqueued at once, and the
/// GPU waits: no thread does. Nothing orders the events of several calls among themselves.
///
/// 0 and 1 are the legacy default stream of the primary context of the device's GPU, 2 is the calling thread's default
/// stream there. The caller promises that every other number is a stream that is there. While the event is pending, a
/// stream of the client's waits for it, which later calls use again. Never blocks. `location` is the place of the
/// event.
///
/// The event fails with kInvalidArgument, naming the stream: the driver does not know it, or not in that context.
/// kFailedPrecondition: the stream is being captured; the client has shut down; this is a child made by fork; `device`
/// was moved from. kCancelled or kDeadlineExceeded: the client has ended before; what is enqueued behind the event
/// comes behind the stream's work all the same. kUnimplemented: the device is of another platform. Or with the driver's
/// error.
[[nodiscard]] PURLIN_API Event EventOfCudaStream(const Device& device, std::uintptr_t stream,
                                                 SourceLocation location = SourceLocation::Current());

/// As EventOfCudaStream, of what was recorded last in `event`, a CUevent of any GPU, which may be recorded anew or
/// destroyed afterwards. One that was never recorded has happened. kFailedPrecondition is also: it was recorded in a
/// capture, which the call spoils.
[[nodiscard]] PURLIN_API Event EventOfCudaEvent(const Device& device, std::uintptr_t event,
                                                SourceLocation location = SourceLocation::Current());

/// Has all that is enqueued on `stream`, a CUstream, from now on come behind `event`. The numbers of streams are those
/// of EventOfCudaStream; the stream may be of any context.
///
/// For an operation of the device's client that is enqueued on a GPU, and for a join of such, the stream waits, and no
/// thread does. For any other event, and until an operation is enqueued that waits for such, the calling thread waits,
/// as Event::Wait does. Of an operation that fails later the stream finds what is there.
///
/// The event's error, if it has failed: then nothing is enqueued. kInvalidArgument, naming the stream: the driver does
/// not know it. kFailedPrecondition: the stream is being captured; this is a child made by fork; `device` was moved
/// from. kUnimplemented: the device is of another platform. What Event::Wait fails with, or the driver's error.
[[nodiscard]] PURLIN_API Status HaveCudaStreamWait(const Device& device, std::uintptr_t stream, const Event& event);

/// The stream, a CUstream, on which the launches of that number (LaunchOptions::stream) are enqueued. Every number is
/// good; one that the device has no stream for means the first.
///
/// The client owns it. It is there as long as the device's handle: others may enqueue work and record events there, and
/// never destroy it. The client orders nothing behind such work by itself: EventOfCudaStream does. kUnimplemented: the
/// device is of another platform. kFailedPrecondition: this is a child made by fork; `device` was moved from.
[[nodiscard]] PURLIN_API StatusOr<std::uintptr_t> CudaComputeStream(const Device& device, std::uint8_t number = 0);

/// CUDA C++, and all that decides what it is compiled to. Files that the text includes, and that are not in `headers`,
/// are read by the compiler.
struct KernelSource {
  /// The file name in errors and in the PTX.
  std::string name;
  /// The source.
  std::string text;
  /// The compute capability that PTX is made for, such as "7.5" or "9.0a".
  std::string target;
  /// Options of nvrtc's, each one word that begins with '-', such as "--use_fast_math" or "--define-macro=N=4". None
  /// names a target, or asks for what is no PTX.
  std::vector<std::string> options;
  /// Name and text of headers that the text may include.
  std::vector<std::pair<std::string, std::string>> headers;
  /// Names of C++'s that are to be compiled and found: instances of templates, such as "twice<float>", and overloaded
  /// or namespaced functions.
  std::vector<std::string> name_expressions;
};

/// What a KernelSource was compiled to.
struct Ptx {
  /// The PTX, without a zero byte at its end.
  std::string text;
  /// What the compiler said, such as warnings; empty if nothing.
  std::string log;
  /// Each of KernelSource::name_expressions, and what it is called in the PTX.
  std::vector<std::pair<std::string, std::string>> lowered_names;

  /// A description by which a kernel is loaded. `kernel` is a name expression of the source or a name in the PTX, as
  /// `extern "C"` functions have it; it takes `arity` arguments.
  [[nodiscard]] KernelLoaderSpec LoaderSpec(std::string_view kernel, std::uint32_t arity) const {
    for (const auto& [expression, lowered] : lowered_names) {
      if (expression == kernel) return KernelLoaderSpec::Ptx(text, lowered, arity);
    }
    return KernelLoaderSpec::Ptx(text, std::string(kernel), arity);
  }
};

/// Compiles on this thread (compile_cache.h: on an executor, each source once), by the nvrtc of this machine, which
/// takes from tens of milliseconds to seconds. No GPU and no driver is needed for it. nvrtc is looked for once: the
/// library whose path the variable `PURLIN_NVRTC` has, or else the first that the loader finds by the names
/// `libnvrtc.so.13`, `.12`, `.11.2` and `libnvrtc.so`.
///
/// kInvalidArgument: name, text, option, header or name expression is wrong, or not UTF-8; the message has the file
/// name and the compiler's log. kUnimplemented: there is no nvrtc, and the message has every name that was looked for
/// with what the loader says; it is too old or too new for the target; the program is linked statically.
/// kResourceExhausted: the compiler is out of memory. kFailedPrecondition: this is a child, made by fork, of a process
/// that has loaded nvrtc. kInternal: nvrtc fails in another way, such as without its builtins.
PURLIN_API StatusOr<Ptx> CompileKernelSource(const KernelSource& source);

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_CUDA_H_

// Purlin: programs on devices, run by one call.
//
// ```cpp
// purlin::StatusOr<purlin::Buffer> RunOnce(const purlin::Program& program, const purlin::Device& device,
//                                          const purlin::Buffer& argument) {
//   const purlin::Executable executable(program);
//   purlin::StatusOr<purlin::LoadedExecutable> loaded = purlin::LoadedExecutable::Load(executable, {device});
//   if (!loaded.ok()) return loaded.status();
//   purlin::StatusOr<purlin::Execution> execution = loaded->Execute({argument});
//   if (!execution.ok()) return execution.status();  // every argument is as it was
//   return execution->outputs[0];                    // ready, or failed, with execution->done
// }
// ```
//
// A run checks its arguments, takes holds on them (all or none), has memory for its results, and starts the program's
// commands when everything that it depends on is ready. A donated argument, whose memory becomes a result's, is deleted
// by the call. If an argument fails, no command is executed, and the outputs fail with the argument's code and message;
// if a kernel fails or panics, they fail with its error. Donated arguments are deleted in these cases, too.
//
// A run that is small, and whose arguments are ready, is executed inside the call; others are tasks of the client's
// runner. Any thread may call every function. Runs in flight keep the code, so a LoadedExecutable may be dropped before
// they end.
//
// When memory is so short that small allocations fail, the process ends: SECURITY.md, "When memory is short".
#ifndef PURLIN_EXECUTABLE_H_
#define PURLIN_EXECUTABLE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "purlin/buffer.h"
#include "purlin/device.h"
#include "purlin/event.h"
#include "purlin/export.h"
#include "purlin/internal/handle.h"
#include "purlin/label.h"
#include "purlin/program.h"
#include "purlin/source_location.h"
#include "purlin/span.h"
#include "purlin/status.h"
#include "purlin/status_or.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace internal {
struct ExecutableRep;
struct LoadedExecutableRep;

/// The results of a run as Rust writes them: buffers, each one word. `many` is null if there are at most four.
struct OutputWords {
  const BufferRep* few[4];
  const BufferRep** many;
  std::size_t count;
};

/// A run as Rust writes it. `done` has one reference.
struct ExecutionWords {
  OutputWords outputs;
  EventHeader* done;
};

static_assert(sizeof(OutputWords) == 48 && offsetof(OutputWords, many) == 32 && offsetof(OutputWords, count) == 40 &&
                  sizeof(ExecutionWords) == 56 && offsetof(ExecutionWords, done) == 48,
              "ExecutionWords ABI");
static_assert(sizeof(Buffer) == sizeof(void*), "a Buffer is read as its pointer");
}  // namespace internal

/// Counts of a program's commands and bytes, and its estimated cost.
struct ProgramSummary {
  /// The number of commands of each kind ("kernel", "copy", ...), by name. A command inside another is counted once.
  std::vector<std::pair<std::string, std::size_t>> command_counts;
  /// Bytes of parameters.
  std::size_t parameter_bytes = 0;
  /// Bytes of results.
  std::size_t result_bytes = 0;
  /// Bytes that a parameter and a result share; both fields above count them, too.
  std::size_t alias_bytes = 0;
  /// Bytes of constants.
  std::size_t constant_bytes = 0;
  /// Bytes of the one block of temporaries that a run takes.
  std::size_t temporary_bytes = 0;
  /// The estimated cost of a run: as long as a copy of this many bytes takes. Nothing: a loop has no trip count.
  std::optional<std::size_t> cost_bytes;
  /// Floating-point operations of a run, as far as its commands report theirs.
  std::uint64_t flops = 0;
};

/// A program with its code, ready to be loaded any number of times. One word; copies share it. Any thread.
class Executable final : public internal::Handle<Executable, const internal::ExecutableRep> {
 public:
  /// The executable of `program`; empty if that is.
  PURLIN_API explicit Executable(const Program& program) noexcept;

  /// Shares the executable.
  PURLIN_API Executable(const Executable& other) noexcept;
  /// Leaves `other` empty, see purlin.h.
  Executable(Executable&& other) noexcept = default;
  /// See the constructors.
  Executable& operator=(const Executable& other) noexcept = default;
  /// See the constructors.
  Executable& operator=(Executable&& other) noexcept = default;
  PURLIN_API ~Executable();

  /// The program.
  [[nodiscard]] PURLIN_API Program program() const noexcept;
  /// Counts of commands and bytes.
  [[nodiscard]] PURLIN_API ProgramSummary Summary() const;
  /// A few lines of text: name and signature, commands by kind, bytes by kind of memory, estimated cost of a run.
  [[nodiscard]] PURLIN_API std::string Describe() const;

 private:
  using Handle::Handle;
};

/// The results of a run, in the order of the program's results. Move-only; holds up to four without an allocation. Many
/// readers or one writer. A moved-from list has none.
class Outputs final {
 public:
  /// Takes the buffers.
  Outputs(Outputs&& other) noexcept : words_(std::exchange(other.words_, {})) {}
  /// As if destroying what was here.
  Outputs& operator=(Outputs&& other) noexcept {
    Outputs taken(std::move(other));
    std::swap(words_, taken.words_);
    return *this;
  }
  PURLIN_API ~Outputs();

  /// The number of results.
  [[nodiscard]] std::size_t size() const noexcept { return words_.count; }
  /// Whether there are none.
  [[nodiscard]] bool empty() const noexcept { return words_.count == 0; }
  /// The first result; the others follow it.
  [[nodiscard]] Buffer* data() noexcept { return reinterpret_cast<Buffer*>(words()); }
  /// See above.
  [[nodiscard]] const Buffer* data() const noexcept { return const_cast<Outputs*>(this)->data(); }
  /// Result `index`, where index < size(); unchecked.
  Buffer& operator[](std::size_t index) noexcept { return data()[index]; }
  /// See above.
  const Buffer& operator[](std::size_t index) const noexcept { return data()[index]; }
  /// Iteration.
  Buffer* begin() noexcept { return data(); }
  /// Iteration.
  Buffer* end() noexcept { return data() + size(); }
  /// Iteration.
  [[nodiscard]] const Buffer* begin() const noexcept { return data(); }
  /// Iteration.
  [[nodiscard]] const Buffer* end() const noexcept { return data() + size(); }

  /// For Purlin itself: takes over what Rust wrote.
  static Outputs Adopt(const internal::OutputWords& words) noexcept { return Outputs(words); }

 private:
  explicit Outputs(const internal::OutputWords& words) noexcept : words_(words) {}
  const internal::BufferRep** words() noexcept { return words_.many == nullptr ? words_.few : words_.many; }

  internal::OutputWords words_;
};

/// A run that was started.
struct Execution {
  /// Ready when `done` is, and failed with its error.
  Outputs outputs;
  /// Happens when the run has completed; fails with the error of the run.
  Event done;
};

class ExecuteContext;

/// The options of a run. What it points to is read during the call.
struct ExecuteOptions {
  /// For versioning: leave it alone.
  std::size_t struct_size = sizeof(ExecuteOptions);
  /// The label of the run's event. Errors about donated arguments name it as the donee. "": "execute".
  Label label;
  /// Arguments that stay with the caller although the program would take their memory: they are copied instead.
  Span<const std::size_t> non_donatable_input_indices;
  /// Memory for results: none at all, or a buffer for each result, device by device, of the result's shape, layout and
  /// memory space. Each is donated to the run. An empty (moved-from) handle: new memory. A result that gets the memory
  /// of a donated argument must have an empty handle.
  Span<const Buffer> results;
  /// Further dependencies. The run begins after all of these events, and fails with the first of them that fails.
  Span<const Event> dependencies;
  /// The number of the execution stream. Runs of one client that have the same number are executed in the order in
  /// which they were started, on whatever devices, also if some of them fail. 0: the run is ordered by its arguments
  /// and `dependencies` alone. Every number is a stream, and nothing has to be created.
  std::int64_t execution_stream_id = 0;
  /// A number that the caller chooses. Traces and errors show it.
  std::int32_t launch_id = 0;
  /// Whether the caller only waits until the run completes, so that the run need not move to another thread.
  bool caller_waits = false;
  /// Values for handlers of custom calls (xla_ffi_host.h); null: none.
  const ExecuteContext* context = nullptr;
};

/// An executable on devices of one client. One word; copies share it. Any thread.
class LoadedExecutable final : public internal::Handle<LoadedExecutable, const internal::LoadedExecutableRep> {
 public:
  /// Loads `executable` for `devices`. Each replica runs on `partition_count` consecutive devices of the list. Copies
  /// and maps nothing; never blocks. kInvalidArgument: there is no device, devices are of different clients, a device
  /// is there twice, `partition_count` is 0, or the number of devices is no multiple of it. kNotFound: a device has no
  /// memory of a kind that the program names.
  PURLIN_API static StatusOr<LoadedExecutable> Load(const Executable& executable, Span<const Device> devices,
                                                    std::size_t partition_count = 1);

  /// Shares what is loaded.
  PURLIN_API LoadedExecutable(const LoadedExecutable& other) noexcept;
  /// Leaves `other` empty, see purlin.h.
  LoadedExecutable(LoadedExecutable&& other) noexcept = default;
  /// See the constructors.
  LoadedExecutable& operator=(const LoadedExecutable& other) noexcept = default;
  /// See the constructors.
  LoadedExecutable& operator=(LoadedExecutable&& other) noexcept = default;
  PURLIN_API ~LoadedExecutable();

  /// Starts a run on the one device. Blocks for holds on arguments that other calls have while they start work, which
  /// is short, and for the run itself if that is small and ready. A warm run with one output makes two heap
  /// allocations: the buffer's.
  ///
  /// After an error every argument is as it was. kInvalidArgument: another number of arguments; an argument of another
  /// type, shape, layout, memory space or client (the message names the argument and both sides); one that is gone; one
  /// that is donated and used by the same call; options that do not fit the program. kResourceExhausted: no memory for
  /// results or temporaries. kFailedPrecondition: the client has shut down, or the program is loaded for several
  /// devices. `location` is the place of what the run makes.
  StatusOr<Execution> Execute(Span<const Buffer> arguments, const ExecuteOptions& options = ExecuteOptions(),
                              SourceLocation location = SourceLocation::Current()) const {
    internal::ExecutionWords run;
    if (const internal::StatusRep* error = ExecuteRaw(arguments, options, location, &run))
      return Status::FromRep(error);
    return ToExecution(run);
  }
  /// Starts a run on each of devices(), with the arguments of each device in that order. Nothing is started before all
  /// devices have their holds and memory. As Execute; kInvalidArgument also: arguments for another number of devices.
  /// If a device cannot start after another one has, the call succeeds, and the run of that device has failed.
  StatusOr<std::vector<Execution>> ExecuteSharded(Span<const Span<const Buffer>> arguments,
                                                  const ExecuteOptions& options = ExecuteOptions(),
                                                  SourceLocation location = SourceLocation::Current()) const {
    std::vector<internal::ExecutionWords> runs(arguments.size());
    if (const internal::StatusRep* error = ExecuteShardedRaw(arguments, options, location, runs.data())) {
      return Status::FromRep(error);
    }
    std::vector<Execution> executions;
    executions.reserve(runs.size());
    for (const internal::ExecutionWords& run : runs) executions.push_back(ToExecution(run));
    return executions;
  }

  /// The executable.
  [[nodiscard]] PURLIN_API Executable executable() const noexcept;
  /// Replica by replica, in each replica partition by partition.
  [[nodiscard]] PURLIN_API std::vector<Device> devices() const;
  /// The number of runs in flight.
  [[nodiscard]] PURLIN_API std::size_t runs_in_flight() const noexcept;
  /// Happens when no run is in flight: at once if none is now.
  [[nodiscard]] PURLIN_API Event idle_event() const noexcept;
  /// Blocks until no run is in flight, whether the runs succeed or fail. It also waits for runs that are started before
  /// the last run in flight ends. kFailedPrecondition: the caller is a callback, and a run in flight cannot complete
  /// before this callback returns.
  PURLIN_API Status Quiesce() const;

 private:
  using Handle::Handle;

  static Execution ToExecution(const internal::ExecutionWords& run) noexcept {
    return {Outputs::Adopt(run.outputs), Event::Adopt(run.done)};
  }
  // Null, or an error, the caller's; then nothing is written.
  PURLIN_API const internal::StatusRep* ExecuteRaw(Span<const Buffer> arguments, const ExecuteOptions& options,
                                                   SourceLocation location, internal::ExecutionWords* run) const;
  PURLIN_API const internal::StatusRep* ExecuteShardedRaw(Span<const Span<const Buffer>> arguments,
                                                          const ExecuteOptions& options, SourceLocation location,
                                                          internal::ExecutionWords* runs) const;
};

static_assert(sizeof(Executable) == sizeof(void*) && sizeof(LoadedExecutable) == sizeof(void*), "handles are one word");

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_EXECUTABLE_H_

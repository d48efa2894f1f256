// Purlin: the code of a program's commands: native functions that take XLA:CPU's call frame, C++ closures, and kernels
// of GPUs.
//
// ```cpp
// const purlin::Kernel add_one = purlin::Kernel::FromClosure("add_one", [](const purlin::KernelCall& call) {
//   const purlin::Span<const float> from = call.Read<float>(0);
//   const purlin::Span<float> to = call.Write<float>(0);
//   if (from.size() != to.size()) return purlin::InvalidArgumentError("two operands of one size");
//   for (std::size_t i = 0; i < to.size(); ++i) to[i] = from[i] + 1;
//   return purlin::OkStatus();
// });
// ```
//
// A command of a program (program.h) calls a kernel of the host once for each workgroup of its grid, with the operands
// of the command in their order. Any thread may run it, and several runs call it on several threads at once. On x86-64,
// the thread treats denormal floating-point numbers as zero during the call.
//
// When memory is so short that small allocations fail, the process ends: SECURITY.md, "When memory is short".
#ifndef PURLIN_KERNEL_H_
#define PURLIN_KERNEL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "purlin/export.h"
#include "purlin/internal/abi.h"
#include "purlin/internal/callback.h"
#include "purlin/internal/empty_callable.h"
#include "purlin/internal/guard.h"
#include "purlin/internal/handle.h"
#include "purlin/internal/kernel_callback.h"
#include "purlin/span.h"
#include "purlin/status.h"
#include "purlin/status_or.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace internal {
struct KernelRep;
}  // namespace internal

struct KernelLoaderSpec;

/// A position in a grid of workgroups, or its size, in the layout of XLA:CPU.
struct KernelDim3 {
  /// The fastest dimension.
  std::uint64_t x = 1;
  /// The middle dimension.
  std::uint64_t y = 1;
  /// The slowest dimension.
  std::uint64_t z = 1;
};

/// An operand of a native kernel, in the layout of XLA:CPU.
struct KernelArgument {
  /// The first byte.
  void* data;
  /// The number of bytes.
  std::size_t size_bytes;
};

/// The argument of a native kernel: XLA:CPU's call frame, as of 2025 and 2026.
struct KernelFrame {
  /// The size of the grid.
  const KernelDim3* num_workgroups;
  /// The workgroup of this call.
  const KernelDim3* id;
  /// The number of operands.
  std::size_t num_args;
  /// The operands, in the order of the command.
  const KernelArgument* args;
};

/// A native kernel. It returns null if it succeeds, and any other pointer if it fails: the run then fails with
/// kInternal. It does not throw.
using KernelFunction = void* (*)(const KernelFrame* frame);

/// The argument of a closure: the bytes of the operands. It lives as long as the call.
struct KernelCall {
  /// The workgroup of this call.
  KernelDim3 workgroup;
  /// The size of the grid.
  KernelDim3 workgroups;
  /// The operands that are only read, in their order.
  Span<const Span<const std::byte>> reads;
  /// The operands that are written, in their order. An operand that is only written has unspecified bytes before the
  /// call. No byte of it belongs to another operand.
  Span<const Span<std::byte>> writes;

  /// Operand `index` of `reads` as elements; bytes behind the last whole element are left out. Allocations begin at
  /// multiples of 64 bytes; the operand's offset must be a multiple of alignof(T). No elements if there is no such
  /// operand.
  template <typename T>
  [[nodiscard]] Span<const T> Read(std::size_t index) const noexcept {
    static_assert(std::is_trivially_copyable_v<T>, "elements are bytes");
    if (index >= reads.size()) return {};
    return {reinterpret_cast<const T*>(reads[index].data()), reads[index].size() / sizeof(T)};
  }
  /// As Read, of `writes`.
  template <typename T>
  [[nodiscard]] Span<T> Write(std::size_t index) const noexcept {
    static_assert(std::is_trivially_copyable_v<T>, "elements are bytes");
    if (index >= writes.size()) return {};
    return {reinterpret_cast<T*>(writes[index].data()), writes[index].size() / sizeof(T)};
  }
};

static_assert(sizeof(KernelDim3) == 24 && sizeof(KernelArgument) == 16 && sizeof(KernelFrame) == 32 &&
                  offsetof(KernelFrame, args) == 24 && offsetof(KernelArgument, size_bytes) == 8,
              "XLA:CPU's call frame");
static_assert(sizeof(KernelCall) == 80 && offsetof(KernelCall, workgroups) == 24 && offsetof(KernelCall, reads) == 48 &&
                  offsetof(KernelCall, writes) == 64 && sizeof(Span<std::byte>) == 16,
              "KernelCall ABI");

/// Code and its name. One word; copies share the code, which lives until the last of them, and the last program and run
/// that use it, are gone. Any thread.
class Kernel final : public internal::Handle<Kernel, const internal::KernelRep> {
 public:
  /// A native function. `owner` (null: none is needed) is kept as long as the code may be called; it is dropped on any
  /// thread. Errors show `name`, in which bytes that are not UTF-8 are replaced. The result is empty if `function` is
  /// null; a program with such a command is refused.
  ///
  /// The caller promises, for each command that names this kernel: the function accesses the bytes of the command's
  /// operands alone; it reads no byte of a write-only operand before it has written it, and writes no operand that is
  /// only read; it returns, and does not throw; any thread may call it, several at once, also for the
  /// workgroups of one command, none of which accesses a byte that another one writes.
  PURLIN_API static Kernel Native(std::string_view name, KernelFunction function,
                                  std::shared_ptr<const void> owner = nullptr);

  /// A closure, called as `purlin::Status closure(const purlin::KernelCall&)`, or without a result. An error fails the
  /// run, with its code, and the command's place in front of its message. An exception is reported, and fails the run
  /// with kInternal. The closure is const while it is called, because several threads may call it at once; it is
  /// destroyed on any thread, and need not be copyable. Names: as Native. The result is empty if `closure` is an empty
  /// std::function or a null pointer. `Mode` keeps translation units with and without exceptions apart: leave it alone.
  template <typename F, typename Mode = internal::WithExceptions>
  static Kernel FromClosure(std::string_view name, F&& closure) {
    using Closure = std::decay_t<F>;
    static_assert(std::is_invocable_v<const Closure&, const KernelCall&>,
                  "called as closure(const purlin::KernelCall&), of a const closure");
    if (internal::IsEmptyCallable(closure)) return Kernel(nullptr);
    const auto call = [](void* data, const KernelCall* argument) noexcept -> const internal::StatusRep* {
      const auto& self = *static_cast<const Closure*>(data);
      Status status;
      const bool returned = internal::GuardedOk("kernel", [&] { status = Answer(self, *argument); }, Mode());
      if (!returned) status = InternalError("the kernel threw", SourceLocation());
      return std::move(status).ReleaseRep();
    };
    return FromClosureRaw(name, {new Closure(std::forward<F>(closure)), call,
                                 [](void* data) noexcept { delete static_cast<Closure*>(data); }});
  }

  /// A kernel of a GPU (kernel_loader_spec.h), which LoadedExecutable::Load loads for each device. The workgroups of
  /// its command are the blocks of its grid, `block` the threads of each block, and `shared_memory_bytes` their dynamic
  /// shared memory. The addresses that the description's packing names are those of the command's operands, in their
  /// order. All commands of a program with such a kernel are the device's; where kernels are functions of the host,
  /// LoadedExecutable::Load refuses it with kUnimplemented. Never blocks.
  ///
  /// kInvalidArgument: the name or the code is empty, has a zero byte before its end, or is not UTF-8; the address is
  /// null; a relocation outside of its argument; more than 2^32 - 1 threads in one dimension. What else is wrong with
  /// code and dimensions, LoadedExecutable::Load says.
  PURLIN_API static StatusOr<Kernel> OfDevice(const KernelLoaderSpec& spec, KernelDim3 block,
                                              std::uint32_t shared_memory_bytes = 0);

  /// Shares the code.
  PURLIN_API Kernel(const Kernel& other) noexcept;
  /// Leaves `other` empty, see purlin.h.
  Kernel(Kernel&& other) noexcept = default;
  /// See the constructors.
  Kernel& operator=(const Kernel& other) noexcept = default;
  /// See the constructors.
  Kernel& operator=(Kernel&& other) noexcept = default;
  PURLIN_API ~Kernel();

  /// As given.
  [[nodiscard]] PURLIN_API std::string name() const;

 private:
  using Handle::Handle;

  template <typename Closure>
  static Status Answer(const Closure& closure, const KernelCall& call) {
    if constexpr (std::is_void_v<std::invoke_result_t<const Closure&, const KernelCall&>>) {
      closure(call);
      return Status();
    } else {
      return closure(call);
    }
  }
  /// Takes over `closure`.
  PURLIN_API static Kernel FromClosureRaw(std::string_view name, internal::KernelCallback closure);
};

static_assert(sizeof(Kernel) == sizeof(void*), "a Kernel is one word");

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_KERNEL_H_

// Purlin: from what a device's kernel is loaded, and what is passed to it.
//
// ```cpp
// // __global__ void scale(float* to, const float* from, float factor)
// purlin::KernelLoaderSpec Scale(std::string ptx, float factor) {
//   purlin::KernelArgsPackingSpec packing;
//   packing.PushAddress(0).PushAddress(1).PushConstant(factor);
//   return purlin::KernelLoaderSpec::Ptx(std::move(ptx), "scale", 3).WithPacking(std::move(packing));
// }
// ```
//
// Plain values, which LoadedKernel::Load (loaded_kernel.h) checks.
#ifndef PURLIN_KERNEL_LOADER_SPEC_H_
#define PURLIN_KERNEL_LOADER_SPEC_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "purlin/kernel.h"
#include "purlin/span.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {

/// The address of an operand, inside an argument.
struct KernelArgPackingRelocation {
  /// Which operand of the launch, from 0.
  std::uint32_t argument_index = 0;
  /// Where in the argument's bytes its address begins, which has 8 bytes.
  std::size_t offset_bytes = 0;
};

static_assert(sizeof(KernelArgPackingRelocation) == 16 && offsetof(KernelArgPackingRelocation, offset_bytes) == 8,
              "KernelArgPackingRelocation ABI");

/// One argument of a kernel: constant bytes, some of which are overwritten by addresses in each launch.
struct KernelArgPackingSpec {
  /// As the kernel reads them, little-endian. Those of an address may have any value.
  std::vector<std::byte> bytes;
  /// Each lies within `bytes`. Where two overlap, the later one wins.
  std::vector<KernelArgPackingRelocation> relocations;
};

/// All arguments of a kernel.
struct KernelArgsPackingSpec {
  /// In their order.
  std::vector<KernelArgPackingSpec> arguments;

  /// Adds an argument that is the address of operand `argument_index`.
  KernelArgsPackingSpec& PushAddress(std::uint32_t argument_index) {
    arguments.push_back({std::vector<std::byte>(sizeof(std::uint64_t)), {{argument_index, 0}}});
    return *this;
  }
  /// Adds an argument that is the bytes of `value`.
  template <typename T>
  KernelArgsPackingSpec& PushConstant(const T& value) {
    static_assert(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>, "a constant is bytes");
    const auto* bytes = reinterpret_cast<const std::byte*>(&value);
    arguments.push_back({std::vector<std::byte>(bytes, bytes + sizeof(T)), {}});
    return *this;
  }
};

/// The form of a kernel's code.
enum class KernelPayload : std::int32_t {
  /// PTX, which a driver compiles.
  kPtx = 0,
  /// Machine code of one chip of NVIDIA's.
  kCubin = 1,
  /// A kernel that is in this process already.
  kInProcessSymbol = 2,
};

/// The code of a kernel, its name there, and its arguments.
struct KernelLoaderSpec {
  /// The form of the code.
  KernelPayload payload = KernelPayload::kPtx;
  /// The bytes of PTX or of machine code.
  std::string code;
  /// Of a kernel that is in this process: on platforms whose kernels are functions of the host (`host`, `sim`) a
  /// KernelFunction, on `cuda` a `CUfunction`.
  void* address = nullptr;
  /// Kept for as long as the kernel at `address` may be launched; null: nothing needs to be.
  std::shared_ptr<const void> owner;
  /// The name in the code, where compilers of C++ may have mangled it.
  std::string kernel_name;
  /// The number of arguments.
  std::uint32_t arity = 0;
  /// The arguments, `arity` of them. Nothing: the addresses of `arity` operands, in their order.
  std::optional<KernelArgsPackingSpec> packing;

  /// The kernel `kernel_name` of a text of PTX.
  static KernelLoaderSpec Ptx(std::string text, std::string kernel_name, std::uint32_t arity) {
    return {KernelPayload::kPtx, std::move(text), nullptr, nullptr, std::move(kernel_name), arity, std::nullopt};
  }
  /// The kernel `kernel_name` of machine code, whose bytes are copied.
  static KernelLoaderSpec Cubin(Span<const std::byte> bytes, std::string kernel_name, std::uint32_t arity) {
    std::string code(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return {KernelPayload::kCubin, std::move(code), nullptr, nullptr, std::move(kernel_name), arity, std::nullopt};
  }
  /// A function of the host. The caller promises what Kernel::Native (kernel.h) asks for.
  static KernelLoaderSpec Function(KernelFunction function, std::string kernel_name, std::uint32_t arity,
                                   std::shared_ptr<const void> owner = nullptr) {
    return Symbol(reinterpret_cast<void*>(function), std::move(kernel_name), arity, std::move(owner));
  }
  /// A kernel that is in this process, by `address`. The caller promises that it is a kernel of the platform for which
  /// it is loaded, and that any thread may launch it.
  static KernelLoaderSpec Symbol(void* address, std::string kernel_name, std::uint32_t arity,
                                 std::shared_ptr<const void> owner = nullptr) {
    return {KernelPayload::kInProcessSymbol, {},    address,     std::move(owner),
            std::move(kernel_name),          arity, std::nullopt};
  }

  /// With these arguments.
  KernelLoaderSpec WithPacking(KernelArgsPackingSpec arguments) && {
    packing = std::move(arguments);
    return std::move(*this);
  }
};

}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_KERNEL_LOADER_SPEC_H_

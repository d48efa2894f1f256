// XLA's own code for descriptions of kernels, as a program: it reads a question a line, and writes an answer a line.
// rust/xla-proto/src/kernels/tests/xla.rs asks, and compares the answers with Purlin's. Bytes are hexadecimal; "-" is
// no bytes.
//
//   text TEXT                    CudaComputeCapability::FromString, then ToProto: the bytes
//   capability BYTES             FromProto, then ToProto, and ToString: "BYTES TEXT"
//   runs BYTES BYTES             whether code for the first runs on the second: "0" or "1"
//   make ARGUMENT...             a KernelArgsPackingSpec made by calls, then ToProto: the bytes. An argument is "," and
//                                parts, each "@INDEX," for an address or "BYTES," for a constant of 1, 2, 4 or 8 bytes
//   packing BYTES                FromProto, then ToProto: the bytes
//   build SHARED BYTES ADDRESS...
//                                FromProto, then BuildArguments: number_of_arguments, number_of_shared_bytes, and the
//                                bytes of each argument
//   loader BYTES                 FromProto, with a resolver that knows the name "known", then ToProto: "KIND ARITY
//                                BYTES"
//   spec KIND NAME ARITY BYTES [packed ARGUMENT...]
//                                a KernelLoaderSpec of that KIND, made by calls, then ToProto: the bytes. NAME and
//                                BYTES, which are the code or the persistent name, are hexadecimal; arguments as in
//                                make
//
// What XLA refuses is answered by "error CODE MESSAGE".
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "xla/stream_executor/cuda/cuda_compute_capability.h"
#include "xla/stream_executor/device_address.h"
#include "xla/stream_executor/kernel_args_packing_spec.h"
#include "xla/stream_executor/kernel_spec.h"

namespace {

namespace se = stream_executor;
using se::CudaComputeCapability;
using se::KernelArgPackingSpec;
using se::KernelArgsPackingSpec;
using se::KernelLoaderSpec;

std::string Hex(const void* data, std::size_t size) {
  if (size == 0) return "-";
  std::string text;
  for (std::size_t i = 0; i < size; ++i) {
    const unsigned byte = static_cast<const unsigned char*>(data)[i];
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

std::string Bytes(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; hex != "-" && i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

absl::Status Unparsed() { return absl::DataLossError("protobuf refuses the bytes"); }

template <typename Proto>
std::string Serialized(const Proto& proto) {
  const std::string bytes = proto.SerializeAsString();
  return Hex(bytes.data(), bytes.size());
}

template <typename T, typename Proto, typename... Rest>
absl::StatusOr<T> Parsed(const std::string& hex, const Rest&... rest) {
  Proto proto;
  if (!proto.ParseFromString(Bytes(hex))) return Unparsed();
  return T::FromProto(proto, rest...);
}

absl::StatusOr<CudaComputeCapability> Capability(const std::string& hex) {
  return Parsed<CudaComputeCapability, se::CudaComputeCapabilityProto>(hex);
}

absl::StatusOr<KernelArgsPackingSpec> Packing(const std::string& hex) {
  return Parsed<KernelArgsPackingSpec, se::KernelArgsPackingSpecProto>(hex);
}

template <typename T>
void WriteConstant(KernelArgPackingSpec& argument, const std::string& bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  argument.WriteConstant(value);
}

absl::StatusOr<KernelArgsPackingSpec> Made(std::istream& words) {
  KernelArgsPackingSpec packing;
  for (std::string word; words >> word;) {
    KernelArgPackingSpec argument;
    std::istringstream parts(word.substr(1));
    for (std::string part; std::getline(parts, part, ',');) {
      if (part[0] == '@') {
        argument.WriteArgumentAddress(std::stoi(part.substr(1)));
        continue;
      }
      const std::string bytes = Bytes(part);
      switch (bytes.size()) {
        case 1:
          WriteConstant<std::uint8_t>(argument, bytes);
          break;
        case 2:
          WriteConstant<std::uint16_t>(argument, bytes);
          break;
        case 4:
          WriteConstant<std::uint32_t>(argument, bytes);
          break;
        case 8:
          WriteConstant<std::int64_t>(argument, bytes);
          break;
        default:
          return absl::InternalError("no constant of so many bytes: " + part);
      }
    }
    packing.AddArgument(std::move(argument));
  }
  return packing;
}

template <typename T>
absl::StatusOr<std::string> Written(const absl::StatusOr<T>& spec) {
  if (!spec.ok()) return spec.status();
  const auto proto = spec->ToProto();
  if (!proto.ok()) return proto.status();
  return Serialized(*proto);
}

absl::StatusOr<std::string> Spec(std::istream& words) {
  static int code = 0;
  std::string kind, name, data, packed;
  std::size_t arity = 0;
  words >> kind >> name >> arity >> data >> packed;
  KernelLoaderSpec::KernelArgsPacking packing = KernelLoaderSpec::KernelArgsPackingFunc{};
  if (packed == "packed") {
    absl::StatusOr<KernelArgsPackingSpec> made = Made(words);
    if (!made.ok()) return made.status();
    packing = *std::move(made);
  }
  name = Bytes(name);
  const std::string bytes = Bytes(data);
  const std::vector<std::uint8_t> cubin(bytes.begin(), bytes.end());
  // Written here: some of them do not own their code.
  const auto written = [](const absl::StatusOr<KernelLoaderSpec>& spec) { return Written(spec); };
  if (kind == "ptx") return written(KernelLoaderSpec::CreateCudaPtxInMemorySpec(bytes, name, arity, packing));
  if (kind == "owned_ptx") {
    return written(KernelLoaderSpec::CreateOwningCudaPtxInMemorySpec(bytes, name, arity, packing));
  }
  if (kind == "cubin") return written(KernelLoaderSpec::CreateCudaCubinInMemorySpec(cubin, name, arity, packing));
  if (kind == "owned_cubin") {
    return written(KernelLoaderSpec::CreateOwningCudaCubinInMemorySpec(cubin, name, arity, packing));
  }
  if (kind == "unnamed") return written(KernelLoaderSpec::CreateInProcessSymbolSpec(&code, name, arity, packing));
  if (kind != "symbol") return absl::InternalError("no such kind: " + kind);
  return written(KernelLoaderSpec::CreateSerializableInProcessSymbolSpec(bytes, &code, name, arity, packing));
}

absl::StatusOr<std::string> Build(std::istream& words) {
  std::size_t shared_bytes = 0;
  std::string hex;
  words >> shared_bytes >> hex;
  absl::StatusOr<KernelArgsPackingSpec> packing = Packing(hex);
  if (!packing.ok()) return packing.status();
  std::vector<se::DeviceAddressBase> addresses;
  for (std::uint64_t address; words >> address;) {
    addresses.emplace_back(reinterpret_cast<void*>(static_cast<std::uintptr_t>(address)), 1);
  }
  absl::StatusOr<std::unique_ptr<se::KernelArgsPackedVector>> args = packing->BuildArguments(addresses, shared_bytes);
  if (!args.ok()) return args.status();
  std::string answer =
      std::to_string((*args)->number_of_arguments()) + " " + std::to_string((*args)->number_of_shared_bytes());
  // The packed vector has addresses without sizes; those of the specs in the message are the same.
  se::KernelArgsPackingSpecProto proto;
  if (!proto.ParseFromString(Bytes(hex))) return Unparsed();
  for (std::size_t i = 0; i < (*args)->argument_addresses().size(); ++i) {
    const std::size_t size = proto.kernel_arguments(static_cast<int>(i)).data().size();
    answer += " " + Hex((*args)->argument_addresses()[i], size);
  }
  return answer;
}

absl::StatusOr<std::string> Loader(const std::string& hex) {
  static int code = 0;
  const auto resolve = [](absl::string_view name) -> absl::StatusOr<void*> {
    if (name != "known") return absl::NotFoundError("no symbol " + std::string(name));
    return &code;
  };
  absl::StatusOr<KernelLoaderSpec> spec =
      Parsed<KernelLoaderSpec, se::KernelLoaderSpecProto>(hex, KernelLoaderSpec::SymbolResolver(resolve));
  if (!spec.ok()) return spec.status();
  const char* kind = spec->has_cuda_ptx_in_memory() ? "ptx" : spec->has_cuda_cubin_in_memory() ? "cubin" : "symbol";
  const absl::StatusOr<std::string> written = Written(spec);
  if (!written.ok()) return written.status();
  return std::string(kind) + " " + std::to_string(spec->arity()) + " " + *written;
}

absl::StatusOr<std::string> Answer(std::istream& words) {
  std::string question, first, second;
  words >> question;
  if (question == "make") return Written(Made(words));
  if (question == "build") return Build(words);
  if (question == "spec") return Spec(words);
  words >> first >> second;
  if (question == "loader") return Loader(first);
  if (question == "packing") return Written(Packing(first));
  absl::StatusOr<CudaComputeCapability> capability =
      question == "text" ? CudaComputeCapability::FromString(first) : Capability(first);
  if (!capability.ok()) return capability.status();
  if (question == "text") return Serialized(capability->ToProto());
  if (question == "capability") return Serialized(capability->ToProto()) + " " + capability->ToString();
  if (question == "runs") {
    absl::StatusOr<CudaComputeCapability> gpu = Capability(second);
    if (!gpu.ok()) return gpu.status();
    return std::string(capability->CanRunOn(*gpu) ? "1" : "0");
  }
  return absl::UnimplementedError("no such question: " + question);
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    const absl::StatusOr<std::string> answer = Answer(words);
    if (answer.ok()) {
      std::cout << *answer << std::endl;
    } else {
      std::string message(answer.status().message());
      for (char& c : message) c = c == '\n' ? ' ' : c;
      std::cout << "error " << static_cast<int>(answer.status().code()) << " " << message << std::endl;
    }
  }
  return 0;
}

// The platform "cuda" seen from C++, on the fake driver (tests/fakecuda), which on_fake.sh brings, or on the driver of
// this machine, where a GPU is (scripts/gpu).

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "purlin/buffer.h"
#include "purlin/client.h"
#include "purlin/compile_cache.h"
#include "purlin/cuda.h"
#include "purlin/device.h"
#include "purlin/dlpack.h"
#include "purlin/dtype.h"
#include "purlin/event.h"
#include "purlin/executable.h"
#include "purlin/executor.h"
#include "purlin/future.h"
#include "purlin/host_buffer.h"
#include "purlin/inline_executor.h"
#include "purlin/kernel.h"
#include "purlin/kernel_loader_spec.h"
#include "purlin/loaded_kernel.h"
#include "purlin/program.h"
#include "purlin/raw_buffer.h"
#include "purlin/status.h"
#include "tests/cpp/ledger.h"

namespace purlin {
namespace {

using Bytes = std::vector<std::uint8_t>;

bool Contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

StatusOr<Client> Create(std::size_t device_count, bool virtual_devices = false) {
  ClientOptions options;
  options.device_count = device_count;
  options.worker_count = 2;
  options.platform = "cuda";
  options.virtual_devices = virtual_devices;
  return Client::Create(options);
}

/// How many devices the driver has.
std::size_t DriverDevices() {
  const char* count = std::getenv("PURLIN_GPU_DEVICES");
  if (count == nullptr) count = std::getenv("PURLIN_FAKECUDA_DEVICES");
  return count == nullptr ? 0 : static_cast<std::size_t>(std::atoi(count));
}

TEST(CudaTest, AllDevicesAreTakenIfNoneAreCounted) {
  ASSERT_GE(DriverDevices(), 1U) << "on_fake.sh and scripts/gpu say how many there are";
  StatusOr<Client> client = Create(0);
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_EQ(client->devices().size(), DriverDevices());
  EXPECT_EQ(client->platform_name(), "cuda");
  const Status refused = Create(DriverDevices() + 1).status();
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(Contains(refused.message(), std::to_string(DriverDevices() + 1))) << refused;
}

TEST(CudaTest, MoreDevicesThanThereAreAreVirtualIfAsked) {
  StatusOr<Client> client = Create(DriverDevices() + 3, /*virtual_devices=*/true);
  ASSERT_TRUE(client.ok()) << client.status();
  ASSERT_EQ(client->devices().size(), DriverDevices() + 3);
  for (std::size_t device = 0; device < client->devices().size(); ++device) {
    EXPECT_EQ(client->devices()[device].local_hardware_id(), static_cast<int>(device % DriverDevices()));
  }
}

/// The attribute of that name and type; an empty one if there is none.
template <typename T>
T Fact(const Device& device, std::string_view name) {
  for (const DeviceAttribute& attribute : device.attributes()) {
    const T* value = std::get_if<T>(&attribute.value);
    if (attribute.name == name && value != nullptr) return *value;
  }
  return T();
}

TEST(CudaTest, ADeviceSaysWhatItIsAndHowMuchItHas) {
  StatusOr<Client> client = Create(DriverDevices());
  ASSERT_TRUE(client.ok()) << client.status();
  std::set<std::string> uuids;
  for (const Device& device : client->devices()) {
    const auto uuid = Fact<std::string>(device, "uuid");
    EXPECT_EQ(uuid.substr(0, 4) + "/" + std::to_string(uuid.size()), "GPU-/40") << uuid;
    uuids.insert(uuid);
    EXPECT_EQ(Fact<std::string>(device, "device_vendor"), "NVIDIA Corporation");
    EXPECT_TRUE(Contains(Fact<std::string>(device, "pci_bus_id"), ":"));
    EXPECT_TRUE(Contains(Fact<std::string>(device, "compute_capability"), "."));
    EXPECT_GE(std::stof(Fact<std::string>(device, "driver_version")), 12.2F);
    EXPECT_EQ(Fact<std::int64_t>(device, "threads_per_warp"), 32);
    EXPECT_GE(Fact<std::int64_t>(device, "shared_memory_per_block_optin"),
              Fact<std::int64_t>(device, "shared_memory_per_block"));
    EXPECT_EQ(Fact<std::vector<std::int64_t>>(device, "block_dim_limit").size(), 3U);
    EXPECT_GT(Fact<float>(device, "clock_rate_ghz"), 0.1F);
    // Where NVML is the fake one.
    if (std::getenv("PURLIN_FAKECUDA_FABRIC") != nullptr) {
      EXPECT_EQ(Fact<std::string>(device, "fabric_uuid"), "7075726c-696e-2d66-616b-652d6e766c00/7");
    }
  }
  EXPECT_EQ(uuids.size(), client->devices().size());
}

TEST(CudaTest, BytesGoFromDeviceToDeviceAndBack) {
  // From one GPU to another, if there are several.
  StatusOr<Client> client = Create(std::max(DriverDevices(), std::size_t{2}), /*virtual_devices=*/true);
  ASSERT_TRUE(client.ok()) << client.status();
  const MemorySpace first_space = client->devices().front().default_memory_space();
  const MemorySpace last_space = client->devices().back().default_memory_space();
  for (const std::size_t size : {std::size_t{1}, std::size_t{100'000}, std::size_t{9} << 20}) {
    Bytes sent(size);
    std::iota(sent.begin(), sent.end(), std::uint8_t{1});
    const RawBuffer first = RawBuffer::Allocate(first_space, size).value();
    const RawBuffer second = RawBuffer::Allocate(last_space, size).value();
    Bytes received(size);
    const Event written = first.CopyFromHost(sent.data(), 0, size);
    const Event moved = first.CopyTo(second, {written});
    const Event read = second.CopyToHost(received.data(), 0, size, {moved});
    const Status status = read.Wait();
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(sent, received);
  }
}

/// to[i] = 2 * from[i] + value, for count words: the plainest kernel that has addresses and constants.
constexpr char kTwicePlus[] = R"(
.version 7.0
.target sm_50
.address_size 64
.visible .entry twice_plus(.param .u64 to, .param .u64 from, .param .u32 value, .param .u32 count) {
  .reg .pred %p<2>;
  .reg .b32 %r<9>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [to];
  ld.param.u64 %rd2, [from];
  ld.param.u32 %r1, [value];
  ld.param.u32 %r2, [count];
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %ntid.x;
  mov.u32 %r5, %tid.x;
  mad.lo.s32 %r6, %r3, %r4, %r5;
  setp.ge.u32 %p1, %r6, %r2;
  @%p1 bra done;
  cvta.to.global.u64 %rd3, %rd1;
  cvta.to.global.u64 %rd4, %rd2;
  mul.wide.u32 %rd5, %r6, 4;
  add.s64 %rd6, %rd4, %rd5;
  ld.global.u32 %r7, [%rd6];
  mad.lo.s32 %r8, %r7, 2, %r1;
  add.s64 %rd7, %rd3, %rd5;
  st.global.u32 [%rd7], %r8;
done:
  ret;
}
)";

TEST(CudaTest, AKernelRunsBetweenCopiesByEventsAlone) {
  StatusOr<Client> client = Create(1);
  ASSERT_TRUE(client.ok()) << client.status();
  const Device device = client->devices()[0];
  constexpr std::uint32_t kCount = 1000;
  constexpr std::size_t kBytes = kCount * sizeof(std::uint32_t);
  KernelArgsPackingSpec packing;
  packing.PushAddress(1).PushAddress(0).PushConstant(std::uint32_t{7}).PushConstant(kCount);
  const KernelLoaderSpec spec = KernelLoaderSpec::Ptx(kTwicePlus, "twice_plus", 4).WithPacking(packing);
  const StatusOr<LoadedKernel> kernel = LoadedKernel::Load(device, spec);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  const StatusOr<KernelLaunch> launch = kernel->Bind(LaunchDimensions::Linear(kCount, 256),
                                                     {{OperandAccess::kRead, kBytes}, {OperandAccess::kWrite, kBytes}});
  ASSERT_TRUE(launch.ok()) << launch.status();
  const RawBuffer from = RawBuffer::Allocate(device.default_memory_space(), kBytes).value();
  const RawBuffer to = RawBuffer::Allocate(device.default_memory_space(), kBytes).value();
  std::vector<std::uint32_t> sent(kCount);
  std::iota(sent.begin(), sent.end(), std::uint32_t{1});
  LaunchOptions options;
  const Event written = from.CopyFromHost(sent.data(), 0, kBytes);
  options.dependencies = {&written, 1};
  const StatusOr<Event> done = launch->Start({from, to}, options);
  ASSERT_TRUE(done.ok()) << done.status();
  std::vector<std::uint32_t> received(kCount);
  const Status status = to.CopyToHost(received.data(), 0, kBytes, {*done}).Wait();
  ASSERT_TRUE(status.ok()) << status;
  for (std::uint32_t i = 0; i < kCount; ++i) ASSERT_EQ(received[i], 2 * (i + 1) + 7) << i;
}

/// A function of the fake driver's, or null: NVIDIA's has none.
template <typename F>
F OfFakeDriver(const char* name) {
  return reinterpret_cast<F>(dlsym(dlopen("libcuda.so.1", RTLD_NOW), name));
}

/// How often that entry point was called since the last reset.
std::uint64_t Calls(const char* entry) {
  return OfFakeDriver<std::uint64_t (*)(const char*)>("purlin_fakecuda_calls")(entry);
}

TEST(CudaTest, TheLedgerOfATestNamesWhatTheFakeDriverHas) {
  if (OfFakeDriver<void*>("purlin_fakecuda_ledger") == nullptr) GTEST_SKIP() << "the driver keeps no books";
  const Ledger before = Ledger::Now();
  std::optional<RawBuffer> buffer;
  {
    const StatusOr<Client> client = Create(1);
    ASSERT_TRUE(client.ok()) << client.status();
    buffer = RawBuffer::Allocate(client->devices()[0].default_memory_space(), 1000).value();
  }
  const std::string left = before.LeftWithin(std::chrono::milliseconds(20));
  for (const char* what : {"1 contexts of the driver left behind", " streams of the driver", " device_bytes of the"}) {
    EXPECT_TRUE(Contains(left, what)) << what << " in: " << left;
  }
  buffer.reset();
  EXPECT_EQ(before.LeftWithin(std::chrono::seconds(20)), "");
}

/// words[i] = 2 * words[i] + 1, for count words in place.
StatusOr<Kernel> TwicePlusOne(std::uint32_t count) {
  KernelArgsPackingSpec packing;
  packing.PushAddress(0).PushAddress(0).PushConstant(std::uint32_t{1}).PushConstant(count);
  return Kernel::OfDevice(KernelLoaderSpec::Ptx(kTwicePlus, "twice_plus", 4).WithPacking(packing), {256, 1, 1});
}

TEST(CudaTest, AProgramThatRunsAgainIsOneLaunchOfAGraph) {
  StatusOr<Client> client = Create(1);
  ASSERT_TRUE(client.ok()) << client.status();
  const Device device = client->devices()[0];
  constexpr std::uint32_t kCount = 1000;
  const StatusOr<Kernel> kernel = TwicePlusOne(kCount);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  EXPECT_EQ(kernel->name(), "twice_plus");
  const ArraySpec spec(Shape(DType::kU32, {kCount}));
  std::vector<std::uint32_t> values(kCount);
  // In the memory of the argument, and in memory that is given for the result.
  for (const bool is_given : {false, true}) {
    SCOPED_TRACE(is_given);
    ProgramBuilder graph("graph");
    const Slice argument = is_given ? graph.AddParameter(spec) : graph.AddDonatedParameter(spec);
    const Slice words = is_given ? graph.AddResult(spec) : argument;
    if (is_given) graph.AddCopy(argument, words);
    for (int i = 0; i < 20; ++i) graph.AddKernel(*kernel, {Operand::ReadWrite(words)}, {4, 1, 1});
    const StatusOr<Program> program = std::move(graph).Build();
    ASSERT_TRUE(program.ok()) << program.status();
    const StatusOr<LoadedExecutable> loaded = LoadedExecutable::Load(Executable(*program), {device});
    ASSERT_TRUE(loaded.ok()) << loaded.status();

    std::iota(values.begin(), values.end(), std::uint32_t{0});
    const auto words_on_gpu = [&] {
      return Buffer::FromHost(values.data(), kCount * sizeof(std::uint32_t), DType::kU32, {kCount},
                              device.default_memory_space())
          .value();
    };
    Buffer array = words_on_gpu();
    Buffer result = is_given ? words_on_gpu() : array;
    const auto address = [&] { return result.RawAlias()->device_pointer().value(); };
    const std::uintptr_t before = address();
    const auto run = [&] {
      ExecuteOptions options;
      if (is_given) options.results = {&result, 1};
      StatusOr<Execution> execution = loaded->Execute({is_given ? array : result}, options);
      EXPECT_TRUE(execution.ok()) << execution.status();
      EXPECT_TRUE(execution->done.Wait().ok());
      result = execution->outputs[0];
    };
    // Command by command, and recorded.
    run();
    run();
    const auto reset = OfFakeDriver<void (*)()>("purlin_fakecuda_reset_calls");
    if (reset != nullptr) reset();
    run();
    if (reset != nullptr) {
      EXPECT_EQ(Calls("cuGraphLaunch"), 1U);
      EXPECT_EQ(Calls("cuEventRecord"), 1U);
      for (const char* other : {"cuLaunchKernel", "cuGraphInstantiateWithFlags", "cuGraphExecUpdate_v2"}) {
        EXPECT_EQ(Calls(other), 0U) << other;
      }
    }
    EXPECT_EQ(address(), before);
    ASSERT_TRUE(result.CopyToHost(values.data(), kCount * sizeof(std::uint32_t)).Wait().ok());
    for (std::uint32_t i = 0; i < kCount; ++i) {
      // Twenty times, or sixty, modulo 2^32: then the words were shifted out.
      ASSERT_EQ(values[i], is_given ? (i << 20) + 0xFFFFF : 0xFFFFFFFF) << i;
    }
  }
}

TEST(CudaTest, LoopsAndBranchesOfAProgramAreThoseThatTheGpusBytesChoose) {
  StatusOr<Client> client = Create(1);
  ASSERT_TRUE(client.ok()) << client.status();
  const Device device = client->devices()[0];
  // While the first flag is not 0, the flags move up and the word becomes 2 * word + 1. Then the word's last byte is
  // replaced as the number says.
  ProgramBuilder builder("loop");
  const Slice flags = builder.AddParameter(ArraySpec(Shape(DType::kU8, {8})));
  const Slice number = builder.AddParameter(ArraySpec(Shape(DType::kS32, {})));
  const Slice word = builder.AddResult(ArraySpec(Shape(DType::kU32, {1})));
  const Slice queue = builder.AddTemporary(8);
  const Slice predicate = builder.AddTemporary(1);
  const StatusOr<Kernel> kernel = TwicePlusOne(1);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  builder.AddFill(std::string_view("\0", 1), word).AddCopy(flags, queue);
  Sequence condition;
  condition.AddCopy(queue.Part(0, 1), predicate);
  Sequence body;
  body.AddCopy(queue.Part(1, 7), queue.Part(0, 7)).AddKernel(*kernel, {Operand::ReadWrite(word)});
  builder.AddWhile(std::move(condition), predicate, std::move(body));
  std::vector<Sequence> branches(3);
  branches[1].AddFill("\x11", word.Part(3, 1));
  branches[2].AddFill("\x22", word.Part(3, 1));
  builder.AddSwitch(number, std::move(branches));
  const StatusOr<Program> program = std::move(builder).Build();
  ASSERT_TRUE(program.ok()) << program.status();
  const StatusOr<LoadedExecutable> loaded = LoadedExecutable::Load(Executable(*program), {device});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  for (const auto& [rounds, choice, expected] : std::vector<std::tuple<int, std::int32_t, std::uint32_t>>{
           {0, 0, 0}, {3, 0, 7}, {7, 1, 0x1100007F}, {1, 2, 0x22000001}, {2, -5, 0x22000003}}) {
    Bytes given(8, 0);
    std::fill_n(given.begin(), rounds, std::uint8_t{1});
    const MemorySpace space = device.default_memory_space();
    const StatusOr<Buffer> first = Buffer::FromHost(given.data(), 8, DType::kU8, {8}, space);
    const StatusOr<Buffer> second = Buffer::FromHost(&choice, 4, DType::kS32, {}, space);
    ASSERT_TRUE(first.ok() && second.ok());
    StatusOr<Execution> execution = loaded->Execute({*first, *second});
    ASSERT_TRUE(execution.ok()) << execution.status();
    std::uint32_t value = 0;
    const Status status = execution->outputs[0].CopyToHost(&value, 4).Wait();
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(value, expected) << rounds << " rounds, number " << choice;
  }
}

TEST(CudaTest, WhatNoGpuCanRecordOfAProgramIsNamed) {
  StatusOr<Client> client = Create(1);
  ASSERT_TRUE(client.ok()) << client.status();
  ProgramBuilder builder("mixed");
  const Slice word = builder.AddDonatedParameter(ArraySpec(Shape(DType::kU32, {1})));
  const Kernel closure = Kernel::FromClosure("closure", [](const KernelCall&) {});
  builder.AddKernel(TwicePlusOne(1).value(), {Operand::ReadWrite(word)});
  builder.AddKernel(closure, {Operand::ReadWrite(word)});
  const Program program = std::move(builder).Build().value();
  const Status refused = LoadedExecutable::Load(Executable(program), {client->devices()[0]}).status();
  EXPECT_EQ(refused.code(), StatusCode::kUnimplemented) << refused;
  EXPECT_TRUE(Contains(refused.message(), "'mixed' cannot be loaded: kernel 'closure'")) << refused;
}

TEST(CudaTest, WhatADriverRefusesOfAKernelIsSaid) {
  StatusOr<Client> client = Create(1);
  ASSERT_TRUE(client.ok()) << client.status();
  const Device device = client->devices()[0];
  const Status unknown = LoadedKernel::Load(device, KernelLoaderSpec::Ptx(kTwicePlus, "thrice", 4)).status();
  EXPECT_EQ(unknown.code(), StatusCode::kNotFound) << unknown;
  EXPECT_TRUE(Contains(unknown.message(), "thrice")) << unknown;
  const Status wrong = LoadedKernel::Load(device, KernelLoaderSpec::Ptx("no PTX", "thrice", 4)).status();
  EXPECT_EQ(wrong.code(), StatusCode::kInvalidArgument) << wrong;
}

// Here the other library is this test, and has a stream of the client's for launches.
TEST(CudaTest, WorkOfOthersIsInOrderWithCopiesAndNoThreadWaits) {
  StatusOr<Client> client = Create(1);
  ASSERT_TRUE(client.ok()) << client.status();
  const Device device = client->devices()[0];
  const StatusOr<std::uintptr_t> theirs = CudaComputeStream(device, 3);
  ASSERT_TRUE(theirs.ok()) << theirs.status();
  EXPECT_NE(*theirs, CudaComputeStream(device).value());
  EXPECT_EQ(CudaComputeStream(device, 200).value(), CudaComputeStream(device, 0).value());
  const MemorySpace pinned = device.memory_space("pinned_host").value();
  const RawBuffer from = RawBuffer::Allocate(pinned, 1 << 20).value();
  const RawBuffer to = RawBuffer::Allocate(device.default_memory_space(), 1 << 20).value();
  const RawBuffer back = RawBuffer::Allocate(pinned, 1 << 20).value();
  std::memset(from.host_pointer(), 7, 1 << 20);
  for (const std::uintptr_t stream : {std::uintptr_t{0}, std::uintptr_t{1}, std::uintptr_t{2}, *theirs}) {
    const Event written = from.CopyTo(to);
    // The stream does nothing but wait, so the second copy is behind the first by it alone.
    ASSERT_TRUE(HaveCudaStreamWait(device, stream, written).ok());
    const Status status = to.CopyTo(back, {EventOfCudaStream(device, stream)}).Wait();
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_EQ(std::memcmp(from.host_pointer(), back.host_pointer(), 1 << 20), 0);
    std::memset(back.host_pointer(), 0, 1 << 20);
  }
  const Status aborted = HaveCudaStreamWait(device, *theirs, Event::Error(AbortedError("planned")));
  EXPECT_EQ(aborted.code(), StatusCode::kAborted) << aborted;
  if (std::getenv("PURLIN_GPU_DEVICES") != nullptr) return;  // What comes is undefined for NVIDIA's driver.
  for (const Event& event : {EventOfCudaStream(device, 0xbad0), EventOfCudaEvent(device, 0xbad0)}) {
    const Status status = event.Wait();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status;
    EXPECT_TRUE(Contains(status.message(), "0xbad0")) << status;
    EXPECT_TRUE(Contains(status.message(), "on_fake_test.cc")) << status;
  }
}

TEST(CudaTest, ArraysOfAGpuPassThroughDLPackByStreams) {
  StatusOr<Client> client = Create(1);
  ASSERT_TRUE(client.ok()) << client.status();
  const MemorySpace space = client->devices()[0].default_memory_space();
  std::vector<float> values(100'000);
  std::iota(values.begin(), values.end(), 0.0F);
  const std::int64_t count = static_cast<std::int64_t>(values.size());
  for (const std::int64_t stream : {1, 2}) {
    const std::size_t bytes = sizeof(float) * values.size();
    const Buffer made = Buffer::FromHost(values.data(), bytes, DType::kF32, {count}, space).value();
    const StatusOr<DLManagedTensorVersioned*> tensor = ToDLPack(made, stream);
    ASSERT_TRUE(tensor.ok()) << tensor.status();
    const StatusOr<FromHostResult> taken = FromDLPack(*tensor, space, stream);
    ASSERT_TRUE(taken.ok()) << taken.status();
    EXPECT_EQ(taken->aliasing, Aliasing::kAliased);
    std::vector<float> back(values.size());
    const Status status = taken->buffer.CopyToHost(back.data(), bytes).Wait();
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(back, values);
  }
}

// On the fake nvrtc, which knows the kernels of tests/ptx by heart; scripts/gpu leaves it out.
TEST(NvrtcTest, ASourceIsCompiledLoadedAndLaunched) {
  std::ifstream file("tests/ptx/kernels/fill.cu");
  ASSERT_TRUE(file) << "on_fake.sh runs this in the source tree";
  ASSERT_NE(std::getenv("PURLIN_NVRTC"), nullptr) << "on_fake.sh says where the fake is";
  KernelSource source;
  source.name = "fill.cu";
  source.text.assign(std::istreambuf_iterator<char>(file), {});
  source.target = "7.5";
  const StatusOr<Ptx> ptx = CompileKernelSource(source);
  ASSERT_TRUE(ptx.ok()) << ptx.status();
  ASSERT_TRUE(CudaAvailability().ok()) << CudaAvailability();
  StatusOr<Client> client = Create(1);
  ASSERT_TRUE(client.ok()) << client.status();
  const Device device = client->devices()[0];
  KernelArgsPackingSpec packing;
  packing.PushAddress(0).PushConstant(std::uint32_t{0xabcd1234}).PushConstant(std::uint64_t{5});
  const StatusOr<LoadedKernel> kernel = LoadedKernel::Load(device, ptx->LoaderSpec("fill_32", 3).WithPacking(packing));
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  const StatusOr<KernelLaunch> launch = kernel->Bind(LaunchDimensions::Linear(5, 4), {{OperandAccess::kWrite, 20}});
  ASSERT_TRUE(launch.ok()) << launch.status();
  const RawBuffer to = RawBuffer::Allocate(device.default_memory_space(), 20).value();
  std::vector<std::uint32_t> received(5);
  const Status status = to.CopyToHost(received.data(), 0, 20, {launch->Start({to}).value()}).Wait();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(received, std::vector<std::uint32_t>(5, 0xabcd1234));

  source.text = "#error nothing to see\n";
  const Status wrong = CompileKernelSource(source).status();
  EXPECT_EQ(wrong.code(), StatusCode::kInvalidArgument) << wrong;
  EXPECT_TRUE(Contains(wrong.message(), "nothing to see")) << wrong;
  source.text = "template <typename T> __global__ void f(T*) {}\n";
  source.name_expressions = {"f<int>"};
  source.headers = {{"h.h", "int h;"}};
  source.options = {"-w"};
  const StatusOr<Ptx> named = CompileKernelSource(source);
  ASSERT_TRUE(named.ok()) << named.status();
  ASSERT_EQ(named->lowered_names.size(), 1U);
  EXPECT_EQ(named->lowered_names[0].first, "f<int>");
  EXPECT_FALSE(named->lowered_names[0].second.empty());
}

/// What the fake nvrtc has besides, by the name of a source.
template <typename R>
R OfFakeNvrtc(const char* what, const char* source) {
  void* library = dlopen(std::getenv("PURLIN_NVRTC"), RTLD_NOW);
  return reinterpret_cast<R (*)(const char*)>(dlsym(library, what))(source);
}

std::uint64_t Compilations(const char* source) {
  return OfFakeNvrtc<std::uint64_t>("purlin_fakenvrtc_compilations", source);
}

/// Compilations of that source do not end while this lives.
class Held final {
 public:
  explicit Held(const char* source) : source_(source) { OfFakeNvrtc<void>("purlin_fakenvrtc_hold", source); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held() { OfFakeNvrtc<void>("purlin_fakenvrtc_release", source_); }

 private:
  const char* source_;
};

KernelSource Source(std::string name, const std::string& text) {
  return {std::move(name), "template <typename T> __global__ void f(T*) {}\n" + text, "7.5", {}, {}, {"f<int>"}};
}

ThreadPoolAsyncWorkRunner TwoThreads() {
  ThreadPoolOptions options;
  options.thread_count = 2;
  return ThreadPoolAsyncWorkRunner::Create(options).value();
}

TEST(NvrtcTest, ThreadsThatAskAtOnceShareOneCompilation) {
  ThreadPoolAsyncWorkRunner pool = TwoThreads();
  const CompileCache cache;
  const KernelSource source = Source("shared.cu", "// shared");
  std::vector<Future<Ptx>> asked(8);
  {
    const Held held("shared.cu");
    std::vector<std::thread> threads;
    for (Future<Ptx>& future : asked) threads.emplace_back([&] { future = cache.GetOrCompile(source, pool); });
    for (std::thread& thread : threads) thread.join();  // None waits for the compilation, which is held.
    for (const Future<Ptx>& future : asked) EXPECT_FALSE(future.IsReady());
    EXPECT_EQ(CompileCache(cache).size(), 1U) << "copies are one cache";
  }
  for (const Future<Ptx>& future : asked) {
    const StatusOr<Ptx> ptx = future.Await();
    ASSERT_TRUE(ptx.ok()) << ptx.status();
    EXPECT_TRUE(Contains(ptx->text, "// shared"));
    ASSERT_EQ(ptx->lowered_names.size(), 1U);
    EXPECT_EQ(ptx->lowered_names[0].first, "f<int>");
  }
  EXPECT_EQ(Compilations("shared.cu"), 1U);
  KernelSource other = source;
  other.options = {"--use_fast_math"};
  EXPECT_TRUE(cache.GetOrCompile(other, pool).Await().ok());
  EXPECT_EQ(Compilations("shared.cu"), 2U) << "an option is in the key";
  EXPECT_TRUE(cache.Forget(other));
  EXPECT_FALSE(cache.Forget(other));
  EXPECT_EQ(cache.size(), 1U);
}

TEST(NvrtcTest, ErrorsAreKeptUntilTheyAreForgotten) {
  ThreadPoolAsyncWorkRunner pool = TwoThreads();
  const CompileCache cache;
  const KernelSource right = Source("right.cu", "// right");
  const KernelSource wrong = Source("wrong.cu", "#error nothing to see\n");
  for (int round = 0; round < 2; ++round) {
    EXPECT_TRUE(cache.GetOrCompile(right, pool).Await().ok());
    const Status error = cache.GetOrCompile(wrong, pool).Await().status();
    EXPECT_EQ(error.code(), StatusCode::kInvalidArgument) << error;
    EXPECT_TRUE(Contains(error.message(), "nothing to see")) << error;
  }
  EXPECT_EQ(Compilations("wrong.cu"), 1U);
  cache.ForgetErrors();
  EXPECT_EQ(cache.size(), 1U);
  EXPECT_FALSE(cache.GetOrCompile(wrong, pool).Await().ok());
  EXPECT_EQ(Compilations("wrong.cu"), 2U);
  EXPECT_EQ(Compilations("right.cu"), 1U);
  cache.Clear();
  EXPECT_EQ(cache.size(), 0U);
  // What is no source is no entry either.
  const KernelSource none = Source("none.cu", std::string("\0", 1));
  EXPECT_EQ(cache.GetOrCompile(none, pool).Await().status().code(), StatusCode::kInvalidArgument);
  EXPECT_FALSE(cache.Forget(none));
  EXPECT_EQ(cache.size(), 0U);
}

/// Refuses every task.
class Refusing final : public Executor {
 public:
  Status Execute(Task) override { return UnavailableError("closed for today"); }
};

TEST(NvrtcTest, WhatAnExecutorRefusesOrAClosedPoolDropsWasNotCompiled) {
  const CompileCache cache;
  const KernelSource source = Source("refused.cu", "// refused");
  {
    Refusing refusing;
    const Status refused = cache.GetOrCompile(source, refusing).Await().status();
    EXPECT_EQ(refused.code(), StatusCode::kUnavailable) << refused;
    EXPECT_TRUE(Contains(refused.message(), "closed for today")) << refused;
  }
  ThreadPoolAsyncWorkRunner closed = TwoThreads();
  ASSERT_TRUE(closed.Shutdown().ok());
  EXPECT_EQ(cache.GetOrCompile(source, closed).Await().status().code(), StatusCode::kCancelled);
  EXPECT_EQ(cache.size(), 0U);
  EXPECT_EQ(Compilations("refused.cu"), 0U);
  // On this thread, before the call returns.
  InlineExecutor inline_executor;
  EXPECT_TRUE(cache.GetOrCompile(source, inline_executor).IsReady());
  EXPECT_EQ(Compilations("refused.cu"), 1U);
}

TEST(NvrtcTest, ACompilationGoesOnWithoutItsCacheAndItsFuture) {
  ThreadPoolAsyncWorkRunner pool = TwoThreads();
  Future<Ptx> kept;
  {
    const Held held("left.cu");
    const CompileCache cache;
    kept = cache.GetOrCompile(Source("left.cu", "// left"), pool);
    static_cast<void>(cache.GetOrCompile(Source("dropped.cu", "// dropped"), pool));
  }
  const StatusOr<Ptx> ptx = kept.Await();
  ASSERT_TRUE(ptx.ok()) << ptx.status();
  EXPECT_TRUE(Contains(ptx->text, "// left"));
  ASSERT_TRUE(pool.Shutdown().ok());
  EXPECT_EQ(Compilations("dropped.cu"), 1U);
}

}  // namespace
}  // namespace purlin

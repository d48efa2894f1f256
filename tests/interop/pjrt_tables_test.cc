// purlin/adapters/pjrt_tables.h beside a stock XLA CPU plugin, opened as JAX opens it. That both see the same layouts
// is pjrt_abi_test.cc's.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "purlin/adapters/pjrt_tables.h"
#include "purlin/client.h"
#include "purlin/raw_buffer.h"
#include "xla/pjrt/c/pjrt_c_api.h"

namespace purlin {
namespace {

using adapters::EventOf;
using adapters::FromPjrt;

const PJRT_Api* api = nullptr;
PJRT_Client* client = nullptr;

/// Arguments of a function of the plugin.
template <typename Args>
Args Make(std::size_t struct_size) {
  Args args{};
  args.struct_size = struct_size;
  return args;
}

/// What an error of the plugin says, or "".
std::string Text(PJRT_Error* error) {
  if (error == nullptr) return "";
  auto message = Make<PJRT_Error_Message_Args>(PJRT_Error_Message_Args_STRUCT_SIZE);
  message.error = error;
  api->PJRT_Error_Message(&message);
  std::string text(message.message, message.message_size);
  auto destroy = Make<PJRT_Error_Destroy_Args>(PJRT_Error_Destroy_Args_STRUCT_SIZE);
  destroy.error = error;
  api->PJRT_Error_Destroy(&destroy);
  return text;
}

struct Buffer {
  PJRT_Buffer* buffer = nullptr;
  Buffer() = default;
  Buffer(const Buffer&) = delete;
  ~Buffer() {
    auto destroy = Make<PJRT_Buffer_Destroy_Args>(PJRT_Buffer_Destroy_Args_STRUCT_SIZE);
    destroy.buffer = buffer;
    EXPECT_EQ(Text(api->PJRT_Buffer_Destroy(&destroy)), "");
  }
  PJRT_Event* Ready() const {
    auto ready = Make<PJRT_Buffer_ReadyEvent_Args>(PJRT_Buffer_ReadyEvent_Args_STRUCT_SIZE);
    ready.buffer = buffer;
    EXPECT_EQ(Text(api->PJRT_Buffer_ReadyEvent(&ready)), "");
    return ready.event;
  }
  PJRT_Event* ToHost(void* destination, std::size_t bytes) const {
    auto copy = Make<PJRT_Buffer_ToHostBuffer_Args>(PJRT_Buffer_ToHostBuffer_Args_STRUCT_SIZE);
    copy.src = buffer;
    copy.dst = destination;
    copy.dst_size = bytes;
    EXPECT_EQ(Text(api->PJRT_Buffer_ToHostBuffer(&copy)), "");
    return copy.event;
  }
};

/// Fills `buffer`; the event says that `numbers` is not needed any more.
PJRT_Event* FromHost(const std::vector<float>& numbers, Buffer& buffer) {
  auto devices = Make<PJRT_Client_AddressableDevices_Args>(PJRT_Client_AddressableDevices_Args_STRUCT_SIZE);
  devices.client = client;
  EXPECT_EQ(Text(api->PJRT_Client_AddressableDevices(&devices)), "");
  const auto count = static_cast<std::int64_t>(numbers.size());
  auto make = Make<PJRT_Client_BufferFromHostBuffer_Args>(PJRT_Client_BufferFromHostBuffer_Args_STRUCT_SIZE);
  make.client = client;
  make.data = numbers.data();
  make.type = PJRT_Buffer_Type_F32;
  make.dims = &count;
  make.num_dims = 1;
  make.host_buffer_semantics = PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes;
  make.device = devices.addressable_devices[0];
  EXPECT_EQ(Text(api->PJRT_Client_BufferFromHostBuffer(&make)), "");
  buffer.buffer = make.buffer;
  return make.done_with_host_buffer;
}

class PjrtTablesTest : public testing::Test {
 protected:
  // Its threads stay: they belong to no test.
  static void SetUpTestSuite() {
    void* const library = dlopen(PURLIN_INTEROP_PJRT_PLUGIN, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library, nullptr) << dlerror();
    const auto get = adapters::PjrtCast<const PJRT_Api* (*)()>(dlsym(library, "GetPjrtApi"));
    ASSERT_NE(get, nullptr);
    api = get();
    auto initialize = Make<PJRT_Plugin_Initialize_Args>(PJRT_Plugin_Initialize_Args_STRUCT_SIZE);
    ASSERT_EQ(Text(api->PJRT_Plugin_Initialize(&initialize)), "");
    auto create = Make<PJRT_Client_Create_Args>(PJRT_Client_Create_Args_STRUCT_SIZE);
    ASSERT_EQ(Text(api->PJRT_Client_Create(&create)), "");
    client = create.client;
    // And those that come with the first work.
    std::vector<float> numbers(1 << 20);
    Buffer buffer;
    ASSERT_TRUE(FromPjrt(api, FromHost(numbers, buffer)).Wait().ok());
    ASSERT_TRUE(FromPjrt(api, buffer.ToHost(numbers.data(), numbers.size() * sizeof(float))).Wait().ok());
  }
};

TEST_F(PjrtTablesTest, ThePluginIsAsLargeAsTheLayouts) {
  EXPECT_GE(api->struct_size, sizeof(PurlinPjrtApi));
  EXPECT_EQ(api->pjrt_api_version.major_version, 0);
}

TEST_F(PjrtTablesTest, EventsOfTransfersAreEventsOfOurs) {
  std::vector<float> numbers(1 << 20);
  std::iota(numbers.begin(), numbers.end(), 0.F);
  const std::size_t bytes = numbers.size() * sizeof(float);
  Buffer buffer;
  const Event done = FromPjrt(api, FromHost(numbers, buffer));
  const Event ready = FromPjrt(api, buffer.Ready());
  EXPECT_TRUE(WhenAll({done, ready}).Wait().ok());
  // XLA's copy, then ours, ordered by nothing but the event.
  std::vector<float> read(numbers.size());
  const Event read_by_xla = FromPjrt(api, buffer.ToHost(read.data(), bytes));
  const Client ours = Client::Create({}).value();
  const RawBuffer memory = RawBuffer::Allocate(ours.devices()[0].default_memory_space(), bytes).value();
  std::vector<float> back(numbers.size());
  const Event written = memory.CopyFromHost(read.data(), 0, bytes, {read_by_xla});
  EXPECT_TRUE(memory.CopyToHost(back.data(), 0, bytes, {written}).Wait().ok());
  EXPECT_EQ(back, numbers);
}

TEST_F(PjrtTablesTest, TheErrorOfAPoisonedBufferKeepsItsCodeAndText) {
  auto memory = Make<PJRT_Device_DefaultMemory_Args>(PJRT_Device_DefaultMemory_Args_STRUCT_SIZE);
  auto devices = Make<PJRT_Client_AddressableDevices_Args>(PJRT_Client_AddressableDevices_Args_STRUCT_SIZE);
  devices.client = client;
  ASSERT_EQ(Text(api->PJRT_Client_AddressableDevices(&devices)), "");
  memory.device = devices.addressable_devices[0];
  ASSERT_EQ(Text(api->PJRT_Device_DefaultMemory(&memory)), "");
  const std::string_view why = "no such shard";
  const std::int64_t dims[] = {4};
  // The plugin is newer than the header, and insists on two more words.
  struct {
    PJRT_Client_CreateErrorBuffer_Args args;
    void* newer[2];
  } make{};
  make.args.struct_size = sizeof(make);
  make.args.client = client;
  make.args.error_code = PJRT_Error_Code_NOT_FOUND;
  make.args.error_message = why.data();
  make.args.error_message_size = why.size();
  make.args.shape_dims = dims;
  make.args.shape_num_dims = 1;
  make.args.shape_element_type = PJRT_Buffer_Type_F32;
  make.args.memory = memory.memory;
  ASSERT_EQ(Text(api->PJRT_Client_CreateErrorBuffer(&make.args)), "");
  Buffer poisoned;
  poisoned.buffer = make.args.buffer;
  const Status status = FromPjrt(api, poisoned.Ready()).Wait();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_NE(status.message().find(why), std::string_view::npos) << status;
}

TEST_F(PjrtTablesTest, AnErrorOfThePluginIsReadByItsOwnTable) {
  auto ready = Make<PJRT_Buffer_ReadyEvent_Args>(3);
  PJRT_Error* const error = api->PJRT_Buffer_ReadyEvent(&ready);
  ASSERT_NE(error, nullptr);
  const Status status = FromPjrt(adapters::PjrtCast<PurlinPjrtError*>(error));
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("PJRT_Buffer_ReadyEvent_Args size"), std::string_view::npos) << status;
}

TEST_F(PjrtTablesTest, APendingEventCompletesWhereItIsSet) {
  for (const bool fails : {false, true}) {
    auto create = Make<PJRT_Event_Create_Args>(PJRT_Event_Create_Args_STRUCT_SIZE);
    ASSERT_EQ(Text(api->PJRT_Event_Create(&create)), "");
    const Event event = EventOf(api, create.event);
    EXPECT_FALSE(event.IsReady());
    std::thread::id ran_on;
    event.OnReady([&ran_on] { ran_on = std::this_thread::get_id(); });
    std::thread setter([&] {
      auto set = Make<PJRT_Event_Set_Args>(PJRT_Event_Set_Args_STRUCT_SIZE);
      set.event = create.event;
      set.error_code = fails ? PJRT_Error_Code_ABORTED : PJRT_Error_Code_OK;
      set.error_message = "lost a race";
      set.error_message_size = 11;
      EXPECT_EQ(Text(api->PJRT_Event_Set(&set)), "");
    });
    const std::thread::id expected = setter.get_id();
    setter.join();
    EXPECT_EQ(event.Wait(), fails ? AbortedError("lost a race") : OkStatus());
    EXPECT_EQ(ran_on, expected);
    auto destroy = Make<PJRT_Event_Destroy_Args>(PJRT_Event_Destroy_Args_STRUCT_SIZE);
    destroy.event = create.event;
    EXPECT_EQ(Text(api->PJRT_Event_Destroy(&destroy)), "");
  }
}

TEST_F(PjrtTablesTest, ManyEventsOfTransfersComplete) {
  std::vector<float> numbers(1 << 15);
  Buffer buffer;
  ASSERT_TRUE(FromPjrt(api, FromHost(numbers, buffer)).Wait().ok());
  std::vector<std::vector<float>> places(200, std::vector<float>(numbers.size()));
  std::vector<Event> events;
  for (std::vector<float>& place : places) {
    events.push_back(FromPjrt(api, buffer.ToHost(place.data(), place.size() * sizeof(float))));
  }
  EXPECT_TRUE(WhenAll(events).Wait().ok());
}

}  // namespace
}  // namespace purlin

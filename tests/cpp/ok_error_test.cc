// What fails with OK: one answer of everything that takes a Status as an error.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "buffer_fixture.h"
#include "purlin/async_value.h"
#include "purlin/async_value_storage.h"
#include "purlin/buffer.h"
#include "purlin/buffer_promise.h"
#include "purlin/event.h"
#include "purlin/future.h"
#include "purlin/promise.h"
#include "purlin/raw_buffer_promise.h"
#include "purlin/staging.h"
#include "purlin/status_or.h"
#include "purlin/transfer.h"

namespace purlin {
namespace {

class OkErrorTest : public BufferFixture {};

/// What takes the error, what its message names, and what becomes of whatever fails with OK, on the line of the row.
struct Row {
  std::string name;
  std::uint32_t line;
  std::string function;
  std::function<Status()> fail;
};

TEST_F(OkErrorTest, FailsWithInternalAtTheCallersPlace) {
  const Shape shape(DType::kU8, {4});
  // clang-format off
  const std::vector<Row> rows{
      {"Event", __LINE__, "Event::Error", [] { return Event::Error(OkStatus()).error(); }},
      {"EventPromise", __LINE__, "EventPromise::SetError", [] { EventPromise p("p"); EXPECT_TRUE(p.SetError(OkStatus())); return p.event().error(); }},
      {"AsyncValueRef", __LINE__, "SetError of an asynchronous value", [] { auto v = MakeUnconstructedAsyncValueRef<int>("v"); EXPECT_TRUE(v.SetError(OkStatus())); return v.GetError(); }},
      {"AsyncValuePtr", __LINE__, "SetError of an asynchronous value", [] { auto v = MakeConstructedAsyncValueRef<int>(1); EXPECT_TRUE(v.AsPtr().SetError(OkStatus())); return v.GetError(); }},
      {"MakeErrorAsyncValueRef", __LINE__, "an error value", [] { return AsyncValueRef<int>(MakeErrorAsyncValueRef(OkStatus())).GetError(); }},
      {"a Status that becomes a value", __LINE__, "an error value", [] { return AsyncValueRef<int>(OkStatus()).GetError(); }},
      {"ScopedAsyncValue", __LINE__, "SetError of an asynchronous value", [] { ScopedAsyncValue<int> v(ScopedAsyncValue<int>::Error{}, OkStatus()); return v.AsPtr().GetError(); }},
      {"StatusOr", __LINE__, "a StatusOr without a value", [] { return StatusOr<int>(OkStatus()).status(); }},
      {"a Status that becomes a future", __LINE__, "an error value", [] { return Future<int>(OkStatus()).Await().status(); }},
      {"Promise", __LINE__, "a StatusOr without a value", [] { auto [p, f] = MakePromise<int>("p"); EXPECT_TRUE(p.Set(OkStatus())); return f.Await().status(); }},
      {"Map", __LINE__, "a StatusOr without a value", [] { return Future<int>(1).Map([](int) -> StatusOr<int> { return OkStatus(); }).Await().status(); }},
      {"TryMap", __LINE__, "a StatusOr without a value", [] { return MakeAvailableAsyncValueRef<int>(1).TryMap([](int) -> StatusOr<int> { return OkStatus(); }).GetError(); }},
      {"BufferPromise", __LINE__, "BufferPromise::Fail", [&] { auto made = Buffer::CreateChannel(shape, space_); EXPECT_TRUE(made->second.Fail(OkStatus()).ok()); return made->first.ready_event().Wait(); }},
      {"RawBufferPromise", __LINE__, "RawBufferPromise::Fail", [&] { auto made = RawBuffer::CreateChannel(space_, 4); EXPECT_TRUE(made->second.Fail(OkStatus()).ok()); char to[4]; return made->first.CopyToHost(to, 0, 4).Wait(); }},
      {"StagingSink", __LINE__, "StagingSink::Poison", [&] { auto made = StagingSink::Create(RawBuffer::Allocate(space_, 4).value()); EXPECT_TRUE(made.first.Poison(OkStatus()).ok()); return made.second.Wait(); }},
      {"SetBufferError", __LINE__, "SetBufferError", [&] { auto made = AsyncHostToDeviceTransferManager::Create({{shape}}, space_).value(); EXPECT_TRUE(made.SetBufferError(0, OkStatus()).ok()); return made.ready_event().Wait(); }},
      {"CreateError", __LINE__, "Buffer::CreateError", [&] { return Buffer::CreateError(OkStatus(), shape, space_)->ready_event().Wait(); }},
  };
  // clang-format on
  for (const Row& row : rows) {
    const Status error = row.fail();
    EXPECT_TRUE(IsInternal(error)) << row.name << ": " << error;
    EXPECT_EQ(error.message(), row.function + " was given an OK status") << row.name;
    EXPECT_NE(std::string_view(error.location().file()).find("ok_error_test.cc"), std::string_view::npos)
        << row.name << ": " << error;
    EXPECT_EQ(error.location().line(), row.line) << row.name << ": " << error;
  }
}

}  // namespace
}  // namespace purlin

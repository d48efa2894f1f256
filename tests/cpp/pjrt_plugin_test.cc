// purlin/adapters/pjrt_tables.h: PJRT_Events of a plugin, here one whose behaviour the test sets; tests/interop has a
// real one.
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "purlin/adapters/pjrt_tables.h"
#include "tests/cpp/pjrt_fixture.h"

namespace purlin {
namespace {

using adapters::FromPjrt;

/// A PJRT_Event; its errors are ForeignErrors.
struct PluginEvent {
  bool is_ready = false;
  int code = 0;
  std::string message;
  bool refuses = false;
  PurlinPjrtEventOnReadyArgs waiter{};
  int destroyed = 0;
  int destroyed_when_called_back = -1;
  bool calls_back_inside = false;

  PurlinPjrtError* Error() const {
    return code == 0 ? nullptr : ForeignError::Make(code, message, {{"where", "plugin"}});
  }
  void Complete(int with, std::string text) {
    is_ready = true;
    code = with;
    message = std::move(text);
    if (waiter.callback != nullptr) waiter.callback(Error(), waiter.user_arg);
    destroyed_when_called_back = destroyed;
  }
};

PluginEvent* Of(PurlinPjrtEvent* event) { return reinterpret_cast<PluginEvent*>(event); }

template <typename Args>
bool Knows(const Args* args, std::size_t size) {
  EXPECT_GE(args->struct_size, size);
  EXPECT_EQ(args->extension_start, nullptr);
  return args->struct_size >= size;
}

PurlinPjrtApi MakeApi() {
  PurlinPjrtApi api{};
  api.struct_size = sizeof(api);
  api.error_destroy = [](PurlinPjrtErrorDestroyArgs* args) {
    if (Knows(args, 24)) ForeignError::Table()->destroy(args->error);
  };
  api.error_message = [](PurlinPjrtErrorMessageArgs* args) {
    if (Knows(args, 40)) {
      ForeignError::Table()->message(args->error, &args->message, &args->message_size);
    }
  };
  api.error_get_code = [](PurlinPjrtErrorGetCodeArgs* args) -> PurlinPjrtError* {
    if (Knows(args, 28)) args->code = ForeignError::Of(args->error)->code;
    return nullptr;
  };
  api.error_for_each_payload = [](PurlinPjrtErrorForEachPayloadArgs* args) -> PurlinPjrtError* {
    if (Knows(args, 40)) {
      ForeignError::Table()->for_each_payload(args->error, args->visitor, args->user_arg);
    }
    return nullptr;
  };
  api.event_destroy = [](PurlinPjrtEventDestroyArgs* args) -> PurlinPjrtError* {
    if (Knows(args, 24)) ++Of(args->event)->destroyed;
    return nullptr;
  };
  api.event_is_ready = [](PurlinPjrtEventIsReadyArgs* args) -> PurlinPjrtError* {
    if (Knows(args, 25)) args->is_ready = Of(args->event)->is_ready;
    return nullptr;
  };
  api.event_error = [](PurlinPjrtEventErrorArgs* args) -> PurlinPjrtError* {
    return Knows(args, 24) ? Of(args->event)->Error() : nullptr;
  };
  api.event_on_ready = [](PurlinPjrtEventOnReadyArgs* args) -> PurlinPjrtError* {
    if (!Knows(args, 40)) return nullptr;
    auto* const event = Of(args->event);
    if (event->refuses) return ForeignError::Make(14, "not today");
    event->waiter = *args;
    if (event->calls_back_inside) event->Complete(0, "");
    return nullptr;
  };
  return api;
}

/// What PluginEvent's errors become.
Status Reported(Status status) {
  status.SetPayload("where", std::string_view("plugin"));
  return status;
}

class PjrtPluginTest : public testing::Test {
 protected:
  ~PjrtPluginTest() override { EXPECT_EQ(ForeignError::alive, 0) << "errors of the plugin leaked"; }
  PurlinPjrtApi api_ = MakeApi();
  PluginEvent theirs_;
};

TEST_F(PjrtPluginTest, CompletesAsTheirsDoesOnTheirThread) {
  const Event event = FromPjrt(&api_, &theirs_);
  EXPECT_FALSE(event.IsReady());
  EXPECT_EQ(theirs_.destroyed, 0);
  int destroyed_before_waiters = -1;
  event.OnReady([this, &destroyed_before_waiters] { destroyed_before_waiters = theirs_.destroyed; });
  std::thread([this] { theirs_.Complete(15, "half a file"); }).join();
  EXPECT_EQ(event.Wait(), Reported(DataLossError("half a file")));
  EXPECT_EQ(destroyed_before_waiters, 1) << "waiters may end the plugin's client";
  EXPECT_EQ(theirs_.destroyed, 1);
}

TEST_F(PjrtPluginTest, OneThatIsTerminalIsTakenAtOnce) {
  theirs_.is_ready = true;
  EXPECT_EQ(FromPjrt(&api_, &theirs_), Event::Ready());
  EXPECT_EQ(theirs_.destroyed, 1);
  PluginEvent failed;
  failed.Complete(5, "gone");
  EXPECT_EQ(FromPjrt(&api_, &failed).error(), Reported(NotFoundError("gone")));
  EXPECT_EQ(failed.destroyed, 1);
}

TEST_F(PjrtPluginTest, IsNotDestroyedInsideTheCallThatCallsBack) {
  theirs_.calls_back_inside = true;
  EXPECT_TRUE(FromPjrt(&api_, &theirs_).Wait().ok());
  EXPECT_EQ(theirs_.destroyed_when_called_back, 0) << "the plugin is still using it";
  EXPECT_EQ(theirs_.destroyed, 1);
}

TEST_F(PjrtPluginTest, OneThatStaysTheirsIsNotDestroyed) {
  const Event event = adapters::EventOf(&api_, &theirs_);
  EXPECT_FALSE(event.IsReady());
  theirs_.Complete(10, "lost a race");
  EXPECT_EQ(event.Wait(), Reported(AbortedError("lost a race")));
  EXPECT_EQ(adapters::EventOf(&api_, &theirs_).error(), Reported(AbortedError("lost a race")));
  EXPECT_EQ(theirs_.destroyed, 0);
}

TEST_F(PjrtPluginTest, ARefusalIsTheError) {
  theirs_.refuses = true;
  EXPECT_EQ(FromPjrt(&api_, &theirs_).Wait(), UnavailableError("not today"));
  EXPECT_EQ(theirs_.destroyed, 1);
}

TEST_F(PjrtPluginTest, NullArgumentsAreErrors) {
  EXPECT_EQ(FromPjrt(&api_, nullptr).error().code(), StatusCode::kInvalidArgument);
  const PurlinPjrtApi* const none = nullptr;
  EXPECT_EQ(FromPjrt(none, &theirs_).error().code(), StatusCode::kInvalidArgument);
  PurlinPjrtApi holey = api_;
  holey.event_on_ready = nullptr;
  EXPECT_EQ(FromPjrt(&holey, &theirs_).error().code(), StatusCode::kInvalidArgument);
}

TEST_F(PjrtPluginTest, ATableIsReadAsFarAsItGoes) {
  PurlinPjrtApi api = api_;
  // Older: no payloads.
  api.struct_size = offsetof(PurlinPjrtApi, error_for_each_payload);
  theirs_.Complete(5, "gone");
  EXPECT_EQ(FromPjrt(&api, &theirs_).error(), NotFoundError("gone"));
  // Newer.
  api.struct_size = sizeof(api) + 800;
  EXPECT_EQ(FromPjrt(&api, &theirs_).error(), Reported(NotFoundError("gone")));
  EXPECT_EQ(theirs_.destroyed, 2);
  // None with events.
  api.struct_size = offsetof(PurlinPjrtApi, event_on_ready);
  const Status refused = FromPjrt(&api, &theirs_).error();
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(refused.message().find("struct_size 112"), std::string_view::npos) << refused;
  EXPECT_EQ(theirs_.destroyed, 2);
}

}  // namespace
}  // namespace purlin

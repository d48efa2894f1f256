// Purlin from another Bazel workspace: headers and archive agree, bytes survive a copy, work runs, errors are answers.
#include <cstdint>
#include <cstdio>
#include <string_view>
#include <utility>
#include <vector>

#include "purlin/purlin.h"

namespace {

purlin::Status VersionsAgree() {
  if (purlin::AbiVersion() != purlin::kAbiVersion) return purlin::InternalError("the ABI versions differ");
  if (std::string_view(purlin::VersionString()) != PURLIN_VERSION_STRING) {
    return purlin::InternalError(purlin::VersionString());
  }
  return purlin::OkStatus();
}

purlin::Status CopyThroughDevices(const purlin::Client& client) {
  const std::vector<std::int32_t> sent = {3, 1, 4, 1, 5, 9};
  const std::vector<purlin::Device> devices = client.devices();
  purlin::StatusOr<purlin::Buffer> first = purlin::Buffer::FromHost(
      sent.data(), sent.size() * sizeof(std::int32_t), purlin::DType::kS32, {2, 3}, devices[0].default_memory_space());
  if (!first.ok()) return first.status();
  purlin::StatusOr<purlin::Buffer> second = first->CopyToDevice(devices[1]);
  if (!second.ok()) return second.status();
  std::vector<std::int32_t> received(sent.size());
  purlin::Status copied = second->CopyToHost(received.data(), received.size() * sizeof(std::int32_t)).Wait();
  if (!copied.ok()) return copied;
  return received == sent ? purlin::OkStatus() : purlin::InternalError("the numbers changed on their way");
}

purlin::Status RunAfterAnEvent(const purlin::Client& client) {
  purlin::EventPromise go("go");
  purlin::EventPromise done("done");
  purlin::Event finished = done.event();
  int answer = 0;
  purlin::ThreadPoolAsyncWorkRunner runner = client.runner();
  purlin::Status scheduled = runner.ScheduleWhenReady({go.event()}, [&answer, done = std::move(done)]() mutable {
    answer = 42;
    done.SetReady();
  });
  if (!scheduled.ok()) return scheduled;
  if (finished.IsReady()) return purlin::InternalError("the task ran before its event");
  go.SetReady();
  purlin::Status ran = finished.Wait();
  if (!ran.ok()) return ran;
  return answer == 42 ? purlin::OkStatus() : purlin::InternalError("the task's write was lost");
}

purlin::Status WrongDeviceIsAnAnswer(const purlin::Client& client) {
  const purlin::Status refused = client.LookupDevice(7).status();
  return refused.code() == purlin::StatusCode::kNotFound ? purlin::OkStatus()
                                                         : purlin::InternalError("device 7 of 2 was found");
}

bool Passed(const char* name, const purlin::Status& status) {
  std::printf("%s: %s\n", name, status.ToString().c_str());
  return status.ok();
}

}  // namespace

int main() {
  purlin::ClientOptions options;
  options.device_count = 2;
  options.worker_count = 2;
  purlin::StatusOr<purlin::Client> client = purlin::Client::Create(options);
  bool passed = Passed("VersionsAgree", VersionsAgree());
  passed &= Passed("Create", client.status());
  if (!client.ok()) return 1;
  passed &= Passed("CopyThroughDevices", CopyThroughDevices(*client));
  passed &= Passed("RunAfterAnEvent", RunAfterAnEvent(*client));
  passed &= Passed("WrongDeviceIsAnAnswer", WrongDeviceIsAnAnswer(*client));
  return passed ? 0 : 1;
}

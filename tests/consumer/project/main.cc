// What a user of the installed library writes: a bit of every header, with the answers checked.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "purlin/purlin.h"

namespace {

int Fail(const char* what, const purlin::Status& status) {
  std::fprintf(stderr, "%s: %s\n", what, status.ToString().c_str());
  return 1;
}

purlin::Status RoundTrip(const purlin::Client& client) {
  const std::vector<float> sent = {1.0F, 2.0F, 3.0F, 4.0F};
  const std::vector<purlin::Device> devices = client.devices();
  purlin::StatusOr<purlin::Buffer> first = purlin::Buffer::FromHost(
      sent.data(), sent.size() * sizeof(float), purlin::DType::kF32, {2, 2}, devices[0].default_memory_space());
  if (!first.ok()) return first.status();
  purlin::StatusOr<purlin::Buffer> second = first->CopyToDevice(devices[1]);
  if (!second.ok()) return second.status();
  std::vector<float> received(sent.size());
  purlin::Status copied = second->CopyToHost(received.data(), received.size() * sizeof(float)).Wait();
  if (!copied.ok()) return copied;
  if (received != sent) return purlin::InternalError("the floats changed on their way");
  return purlin::OkStatus();
}

purlin::Status RunTask(const purlin::Client& client) {
  purlin::EventPromise go("go");
  purlin::EventPromise done("done");
  purlin::Event finished = done.event();
  purlin::ThreadPoolAsyncWorkRunner runner = client.runner();
  purlin::Status scheduled =
      runner.ScheduleWhenReady({go.event()}, [done = std::move(done)]() mutable { done.SetReady(); });
  if (!scheduled.ok()) return scheduled;
  go.SetReady();
  return finished.Wait();
}

}  // namespace

int main(int argc, char** argv) {
  // For programs that are to be told why they have no such platform.
  if (argc == 2) {
    purlin::ClientOptions options;
    options.platform = argv[1];
    std::printf("%s\n", purlin::Client::Create(options).status().ToString().c_str());
    return 0;
  }
  if (purlin::AbiVersion() != purlin::kAbiVersion ||
      std::string_view(purlin::VersionString()) != PURLIN_VERSION_STRING) {
    std::fprintf(stderr, "headers %s, library %s\n", PURLIN_VERSION_STRING, purlin::VersionString());
    return 1;
  }
  purlin::ClientOptions options;
  options.device_count = 2;
  purlin::StatusOr<purlin::Client> client = purlin::Client::Create(options);
  if (!client.ok()) return Fail("Client::Create", client.status());
  if (purlin::Status status = RoundTrip(*client); !status.ok()) return Fail("RoundTrip", status);
  if (purlin::Status status = RunTask(*client); !status.ok()) return Fail("RunTask", status);

  purlin::Status refused = client->LookupDevice(7).status();
  if (refused.ok()) return Fail("LookupDevice(7) of 2 devices", refused);
  std::printf("purlin %s: %s\n", purlin::VersionString(), refused.ToString().c_str());
  return 0;
}

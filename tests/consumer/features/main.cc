// A program that uses buffers and events, with a library from which all else was left out.
#include <cstdint>
#include <cstdio>
#include <string>

#include "purlin/purlin.h"

int main() {
  purlin::ClientOptions options;
  for (const char* platform : {"sim", "cuda"}) {
    options.platform = platform;
    const purlin::StatusOr<purlin::Client> none = purlin::Client::Create(options);
    if (none.ok() || none.status().code() != purlin::StatusCode::kNotFound) {
      std::puts("a platform that was left out is there");
      return 1;
    }
    std::printf("%s\n", std::string(none.status().message()).c_str());
  }
  options.platform = "host";
  purlin::StatusOr<purlin::Client> client = purlin::Client::Create(options);
  if (!client.ok()) {
    return 1;
  }
  const std::int32_t values[] = {1, 2, 3};
  purlin::StatusOr<purlin::Buffer> buffer = purlin::Buffer::FromHost(values, sizeof(values), purlin::DType::kS32, {3},
                                                                     client->devices()[0].default_memory_space());
  if (!buffer.ok()) {
    return 1;
  }
  std::int32_t back[3] = {};
  const purlin::Status copied = buffer->CopyToHost(back, sizeof(back)).Wait();
  return copied.ok() && back[2] == 3 ? 0 : 1;
}

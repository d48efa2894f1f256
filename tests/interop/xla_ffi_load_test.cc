// purlin/xla_ffi_host.h with the handlers of xla_ffi_host.cc, which are compiled against XLA's own header, in programs
// that stock JAX compiled. Their results are compared with those of stock XLA. The test `xla_cpu_ffi` has compiled them
// before, and runs them with handlers that are registered from Rust; programs that call others are refused here.
#include "purlin/xla_ffi_host.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "purlin/xla_cpu.h"
#include "xla_corpus.h"

extern "C" {
purlin::XlaFfiHandler HostAttributes, HostLater, HostMakeFactor, HostOnThreads, HostReverse, HostScale, HostShapes;
std::int64_t host_alive();
int host_register(const XLA_FFI_Api* api);
}

namespace purlin {
namespace {

using namespace xla_corpus;  // NOLINT(google-build-using-namespace)

XlaFfiHandlers Handlers() {
  XlaFfiHandlers handlers;
  XlaFfiBundle scale;
  scale.instantiate = HostMakeFactor;
  scale.execute = HostScale;
  EXPECT_EQ(handlers.Register("HostScale", scale), OkStatus());
  EXPECT_EQ(handlers.Register("HostAttributes", HostAttributes), OkStatus());
  EXPECT_EQ(handlers.Register("HostLater", HostLater), OkStatus());
  EXPECT_EQ(handlers.Register("HostOnThreads", HostOnThreads), OkStatus());
  EXPECT_EQ(handlers.Register("HostReverse", HostReverse), OkStatus());
  EXPECT_EQ(handlers.Register("HostShapes", HostShapes), OkStatus());
  return handlers;
}

TEST(XlaFfiLoadTest, HandlersThatKnowXlasHeaderRunInProgramsOfStockJax) {
  const std::vector<fs::path> paths = PathsOf("PURLIN_XLA_FFI_CORPUS");
  ASSERT_FALSE(paths.empty()) << "PURLIN_XLA_FFI_CORPUS names a folder that python/xla_cpu_ffi_test.py has written";
  XlaFfiHandlers untyped;
  XlaFfiBundle scale;
  scale.instantiate = HostMakeFactor;
  scale.execute = HostScale;
  const Status before = untyped.Register("HostScale", scale);
  EXPECT_TRUE(IsFailedPrecondition(before)) << before << ": the type of its state is not registered";
  ASSERT_EQ(host_register(XlaFfiHostApi()), 0);

  const Client client = FourDevices();
  std::size_t native = 0;
  {
    const XlaFfiHandlers handlers = Handlers();
    LoadXlaCpuOptions options;
    options.trust_code = true;
    options.handlers = &handlers;
    for (const fs::path& path : paths) {
      const StatusOr<Executable> executable = LoadXlaCpu(ReadFile(path), options);
      if (!executable.ok()) {
        EXPECT_NE(executable.status().message().find("'Purlin"), std::string::npos) << path << executable.status();
        continue;
      }
      native += 1;
      EXPECT_EQ(Compare(*executable, path, client), "") << path;
    }
  }
  EXPECT_EQ(native, 8U) << "of " << paths.size();
  EXPECT_EQ(host_alive(), 0) << "states outlive their executables";
}

}  // namespace
}  // namespace purlin

// purlin/xla_cpu.h with programs that stock JAX compiled. Each is loaded and run from C++, and its results are compared
// with those of stock XLA. The test `xla_cpu` has compiled them before, and compares the same in Rust, more strictly.
// Programs that call LAPACK are refused here.
#include "purlin/xla_cpu.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <iostream>
#include <string>
#include <vector>

#include "xla_corpus.h"

namespace purlin {
namespace {

using namespace xla_corpus;  // NOLINT(google-build-using-namespace)

TEST(XlaCpuLoadTest, ProgramsOfStockJaxRunFromCpp) {
  const std::vector<fs::path> paths = PathsOf("PURLIN_XLA_CORPUS");
  ASSERT_FALSE(paths.empty()) << "PURLIN_XLA_CORPUS names a folder that examples/python/export_xla.py has written";
  const Client client = FourDevices();
  LoadXlaCpuOptions trusted;
  trusted.trust_code = true;
  std::size_t native = 0;
  for (const fs::path& path : paths) {
    const StatusOr<Executable> executable = LoadXlaCpu(ReadFile(path), trusted);
    if (!executable.ok()) {
      EXPECT_TRUE(IsUnimplemented(executable.status())) << path << ": " << executable.status();
      EXPECT_NE(executable.status().message().find("'lapack_"), std::string::npos) << path << executable.status();
      continue;
    }
    native += 1;
    EXPECT_EQ(Compare(*executable, path, client), "") << path;
  }
  std::cout << native << " of " << paths.size() << " programs ran\n";
  EXPECT_GE(native * 100, paths.size() * 80);
}

}  // namespace
}  // namespace purlin

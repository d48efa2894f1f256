// See odr_a.cc; this one without exceptions and RTTI.
#include "purlin/purlin.h"
#include "purlin/purlin.h"  // NOLINT(readability-duplicate-include): the guards are what is tested.

namespace odr {

int CountFromB() {
  int calls = 0;
  purlin::EventPromise promise("odr b");
  promise.event().OnReady([&calls](const purlin::Status& status) { calls += status.ok() ? 1 : 0; });
  promise.SetReady();
  auto value = purlin::MakeUnconstructedAsyncValueRef<int>("odr value");
  auto mapped = value.Map([&calls](int i) { return calls + i; });
  value.emplace(1);
  calls = *mapped - 1;
  return calls;
}

}  // namespace odr

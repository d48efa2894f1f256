// One of two files of one program that both include everything, twice: this one with exceptions and RTTI.
#include "purlin/purlin.h"
#include "purlin/purlin.h"  // NOLINT(readability-duplicate-include): the guards are what is tested.

namespace odr {

int CountFromA() {
  int calls = 0;
  purlin::EventPromise promise("odr a");
  promise.event().OnReady([&calls] { ++calls; });
  promise.SetReady();
  auto value = purlin::MakeUnconstructedAsyncValueRef<int>("odr value");
  auto mapped = value.Map([&calls](int i) { return calls + i; });
  value.emplace(1);
  calls = *mapped - 1;
  return calls;
}

}  // namespace odr

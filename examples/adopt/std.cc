// Code over std::future adopts Purlin's: a producer that gives a std::future stays, and so does a consumer of one.
//
// `before` blocks a thread between the two; `after` maps. main runs both and compares.
#include <cstdio>
#include <future>
#include <string>
#include <utility>

#include "purlin/adapters/std.h"
#include "purlin/purlin.h"

std::future<int> Produce() {
  return std::async([] { return 7; });
}

namespace before {

std::future<std::string> Consume(std::future<int> number) {
  return std::async([number = std::move(number)]() mutable { return std::to_string(number.get()); });
}

}  // namespace before

namespace after {

std::future<purlin::StatusOr<std::string>> Consume(std::future<int> number) {
  static purlin::ElasticPool pool = purlin::ElasticPool::Create({}).value();
  const purlin::Future<int> ours = purlin::adapters::FromStd(std::move(number), pool);
  return purlin::adapters::ToStd(ours.Map([](int value) { return std::to_string(value); }));
}

}  // namespace after

int main() {
  const std::string was = before::Consume(Produce()).get();
  const std::string is = after::Consume(Produce()).get().value_or("an error");
  std::printf("before: %s\nafter:  %s\n", was.c_str(), is.c_str());
  return was == is ? 0 : 1;
}

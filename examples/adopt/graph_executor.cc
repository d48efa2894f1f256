// A file over tsl's API moves to Purlin without a change, and then, where it pays, to Purlin's own forms.
//
// `before` and `after` are the same lines, graph_executor.inc: on upstream's tsl, and on purlin/compat/tsl.h. `own` is
// what is left of them where steps end in events: a step is a task that waits for the events of the steps before. main
// runs all three, with steps that end well and with one that fails, and compares.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "purlin/compat/tsl.h"
#include "purlin/purlin.h"
#include "tsl/platform/env.h"
#include "tsl/platform/threadpool.h"
#include "xla/tsl/concurrency/async_value_ref.h"
#include "xla/tsl/concurrency/chain.h"
#include "xla/tsl/concurrency/executor.h"

namespace before {

#include "examples/adopt/graph_executor.inc"

}  // namespace before

namespace after {

namespace tsl = purlin::compat::tsl;
namespace absl = purlin::compat::absl;

#include "examples/adopt/graph_executor.inc"

}  // namespace after

namespace own {

struct Node {
  std::function<purlin::Status()> run;
  std::vector<std::size_t> after;  // Nodes with lower numbers.
};

// A step after a failed one fails with its error, and is not run.
purlin::Event Execute(purlin::AsyncWorkRunner& runner, const std::vector<Node>& nodes) {
  std::vector<purlin::Event> ends;
  for (const Node& node : nodes) {
    std::vector<purlin::Event> before;
    for (const std::size_t i : node.after) before.push_back(ends[i]);
    purlin::EventPromise promise("node");
    ends.push_back(promise.event());
    auto step = [&node, promise = std::move(promise)](const purlin::Status& status) mutable {
      promise.Set(status.ok() ? node.run() : status);
    };
    // A runner that refuses drops the promise, and the event fails.
    runner.ScheduleWhenReady(before, std::move(step), "node").IgnoreError();
  }
  return purlin::WhenAll(ends);
}

}  // namespace own

namespace {

// 0, then 1 and 2, then 3; the fails-th fails. What each of the three runs of them comes to.
constexpr std::size_t kNone = 4;
const std::vector<std::size_t> kAfter[] = {{}, {0}, {0}, {1, 2}};

template <typename Graph, typename Chain, typename Error, typename Wait>
std::string Run(std::size_t fails, Error error, Wait wait) {
  std::atomic<int> ran{0};
  std::vector<typename Graph::Node> nodes;
  for (std::size_t i = 0; i < kNone; ++i) {
    nodes.push_back({[&ran, i, fails, error]() -> Chain { return ++ran, error(i == fails); }, kAfter[i]});
  }
  auto graph = Graph::Create(std::move(nodes));
  if (!graph.ok()) return "no graph";
  const std::string end = wait(**graph);
  return std::to_string(ran) + " ran, " + end;
}

std::string Before(std::size_t fails) {
  tsl::thread::ThreadPool pool(tsl::Env::Default(), "graph", 2);
  const auto error = [](bool now) {
    return now ? tsl::AsyncValueRef<tsl::Chain>(tsl::MakeErrorAsyncValueRef(absl::AbortedError("step")))
               : tsl::MakeAvailableAsyncValueRef<tsl::Chain>();
  };
  return Run<before::GraphExecutor, tsl::AsyncValueRef<tsl::Chain>>(fails, error, [&](const auto& graph) {
    const tsl::AsyncValueRef<tsl::Chain> done = graph.Execute(*pool.AsExecutor());
    tsl::BlockUntilReady(done);
    return std::string(done.IsError() ? done.GetError().message() : "ok");
  });
}

std::string After(std::size_t fails) {
  namespace tsl = purlin::compat::tsl;
  tsl::thread::ThreadPool pool(tsl::Env::Default(), "graph", 2);
  const auto error = [](bool now) {
    return now ? tsl::AsyncValueRef<tsl::Chain>(tsl::MakeErrorAsyncValueRef(purlin::AbortedError("step")))
               : tsl::MakeAvailableAsyncValueRef<tsl::Chain>();
  };
  return Run<after::GraphExecutor, tsl::AsyncValueRef<tsl::Chain>>(fails, error, [&](const auto& graph) {
    const tsl::AsyncValueRef<tsl::Chain> done = graph.Execute(*pool.AsExecutor());
    tsl::BlockUntilReady(done);
    return std::string(done.IsError() ? done.GetError().message() : "ok");
  });
}

std::string Own(std::size_t fails) {
  purlin::ThreadPoolAsyncWorkRunner pool = purlin::ThreadPoolAsyncWorkRunner::Create({}).value();
  std::atomic<int> ran{0};
  std::vector<own::Node> nodes;
  for (std::size_t i = 0; i < kNone; ++i) {
    const auto run = [&ran, i, fails] { return ++ran, i == fails ? purlin::AbortedError("step") : purlin::OkStatus(); };
    nodes.push_back({run, kAfter[i]});
  }
  const purlin::Status status = own::Execute(pool, nodes).Wait();
  return std::to_string(ran) + " ran, " + std::string(status.ok() ? "ok" : status.message());
}

}  // namespace

int main() {
  for (const std::size_t fails : {kNone, std::size_t{0}, std::size_t{3}}) {
    const std::string answers[] = {Before(fails), After(fails), Own(fails)};
    for (const std::string& answer : answers) std::printf("%zu: %s\n", fails, answer.c_str());
    if (answers[1] != answers[0] || answers[2] != answers[0]) return 1;
  }
  return 0;
}

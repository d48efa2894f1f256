// oneTBB, of libtbb-dev: an arena of two workers. From outside a task is enqueued, which is how TBB takes work that no
// thread waits for. From inside it is spawned in a task group. Steps are its flow graph, where the caller is one of the
// threads.
#include <tbb/blocked_range.h>
#include <tbb/flow_graph.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/parallel_invoke.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include <memory>

#include "pool_rows.h"
#include "step_rows.h"

namespace {

// Of all arenas together: oneTBB has no more threads than cores unless it is told so, and takes the least that it is
// told.
constexpr std::size_t kMostThreads = 17;

thread_local bool inside = false;

class Pool {
 public:
  static constexpr bool kParallelFor = true;
  static constexpr bool kJoin = true;
  template <typename F>
  void Schedule(F&& f) {
    if (inside) return group_.run(std::forward<F>(f));
    arena_.enqueue([f = std::forward<F>(f)] {
      inside = true;
      f();
    });
  }
  void ParallelFor(std::uint32_t* data, std::size_t count) {
    loops_.execute([=] {
      tbb::parallel_for(
          tbb::blocked_range<std::size_t>(0, count),
          [data](const tbb::blocked_range<std::size_t>& range) { bench_loop_body(data, range.begin(), range.end()); });
    });
  }
  std::uint64_t Fib(int n) {
    if (n < 2) return static_cast<std::uint64_t>(n);
    std::uint64_t a = 0;
    std::uint64_t b = 0;
    tbb::parallel_invoke([&] { a = Fib(n - 1); }, [&] { b = Fib(n - 2); });
    return a + b;
  }

 private:
  tbb::global_control threads_{tbb::global_control::max_allowed_parallelism, kMostThreads};
  tbb::task_arena arena_{2, 0};
  tbb::task_arena loops_{3, 1};  // Two workers and the caller, as for the others.
  tbb::task_group group_;
};

class Flow {
 public:
  Flow(int threads, StepRun& run) : arena_(threads, 1), run_(run) {
    arena_.execute([&] {
      graph_ = std::make_unique<tbb::flow::graph>();
      for (std::uint32_t i = 0; i < run.tasks().size(); ++i) {
        nodes_.push_back(std::make_unique<Node>(*graph_, [&run, i](const tbb::flow::continue_msg&) {
          run.Begin(i);
          run.Do(i, [](std::uint32_t) {}, [](std::uint32_t) {});
        }));
      }
      for (std::uint32_t i = 0; i < run.tasks().size(); ++i) {
        for (const std::uint32_t next : run.tasks()[i].next) tbb::flow::make_edge(*nodes_[i], *nodes_[next]);
      }
    });
  }
  void Start() {
    arena_.execute([&] {
      for (std::uint32_t i = 0; i < nodes_.size() && run_.tasks()[i].parents == 0; ++i) {
        run_.Handed(i);
        nodes_[i]->try_put(tbb::flow::continue_msg());
      }
      graph_->wait_for_all();
    });
  }

 private:
  using Node = tbb::flow::continue_node<tbb::flow::continue_msg>;
  tbb::global_control threads_{tbb::global_control::max_allowed_parallelism, kMostThreads};
  tbb::task_arena arena_;
  StepRun& run_;
  std::unique_ptr<tbb::flow::graph> graph_;
  std::vector<std::unique_ptr<Node>> nodes_;
};

}  // namespace

extern "C" __attribute__((visibility("default"))) const Op* bench_ops(std::size_t* count) {
  static const std::vector<Op> ops = [] {
    std::vector<Op> all = PoolRows<Pool>::Table("oneTBB");
    for (const Op& op : StepRows<Flow>::Table("oneTBB")) all.push_back(op);
    return all;
  }();
  *count = ops.size();
  return ops.data();
}

// purlin/adapters/eigen_thread_pool.h, with whichever Eigen this is compiled against.
#define EIGEN_USE_THREADS
#include "purlin/adapters/eigen_thread_pool.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "purlin/event.h"
#include "purlin/executor.h"
#include "purlin/future.h"
#include "purlin/promise.h"
#include "purlin/stall.h"
#include "purlin/status.h"
#include "tests/cpp/testing.h"
#include "tests/interop/counting_pool.h"
#include "unsupported/Eigen/CXX11/Tensor"

namespace purlin {
namespace {

using adapters::EigenThreadPool;
using adapters::FromEigen;
using adapters::ToEigen;

ThreadPoolAsyncWorkRunner MakePool(std::size_t threads) {
  ThreadPoolOptions options;
  options.thread_count = threads;
  return ThreadPoolAsyncWorkRunner::Create(options).value();
}

/// Keeps a thread of `pool` until Open(), or until this goes.
class Held {
 public:
  explicit Held(ThreadPoolAsyncWorkRunner& pool) {
    std::promise<void> begun;
    std::future<void> began = begun.get_future();
    EXPECT_TRUE(pool.Schedule([begun = std::move(begun), until = gate_.get_future().share()]() mutable {
                      begun.set_value();
                      until.wait();
                    })
                    .ok());
    began.wait();
  }
  ~Held() { Open(); }
  void Open() {
    if (!std::exchange(open_, true)) gate_.set_value();
  }

 private:
  std::promise<void> gate_;
  bool open_ = false;
};

using Matrix = Eigen::Tensor<float, 2>;
using Contracted = Eigen::array<Eigen::IndexPair<Eigen::Index>, 1>;

Matrix Numbers(int rows, int columns) {
  Matrix matrix(rows, columns);
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) matrix(i, j) = static_cast<float>((i * 31 + j * 17) % 8);
  }
  return matrix;
}

/// The product of two matrices of small whole numbers, which floats hold exactly in any order, by Eigen's contraction.
template <typename Device>
Matrix Product(const Device& device, const Matrix& a, const Matrix& b) {
  Matrix product(a.dimension(0), b.dimension(1));
  const Contracted inner = {Eigen::IndexPair<Eigen::Index>(1, 0)};
  product.device(device) = a.contract(b, inner);
  return product;
}

bool Equal(const Matrix& a, const Matrix& b) {
  const Eigen::Tensor<bool, 0> equal = (a == b).all();
  return a.dimensions() == b.dimensions() && equal();
}

Matrix ExpectedProduct(const Matrix& a, const Matrix& b) { return Product(Eigen::DefaultDevice(), a, b); }

// Purlin's pool for Eigen ---------------------------------------------------------------------------------------------

TEST(ToEigenTest, EveryClosureRunsOnceOnAThreadOfThePool) {
  std::vector<std::atomic<int>> runs(1000);
  std::atomic<int> elsewhere{0};
  {
    auto pool = ToEigen(MakePool(3));
    EXPECT_EQ(pool.NumThreads(), 3);
    EXPECT_EQ(pool.CurrentThreadId(), -1);
    for (std::atomic<int>& run : runs) {
      pool.Schedule([&] {
        ++run;
        const int id = pool.CurrentThreadId();
        if (id < 0 || id >= 3) ++elsewhere;
      });
    }
  }
  for (const std::atomic<int>& run : runs) EXPECT_EQ(run.load(), 1);
  EXPECT_EQ(elsewhere.load(), 0);
}

/// While a thread of the pool waits for an event of Purlin's, a spare runs what is queued. Eigen has no memory for its
/// number, so it is none of the pool's threads; those that wait keep theirs.
TEST(ToEigenTest, ASpareThreadIsNoneOfThePoolsForEigen) {
  constexpr std::size_t kThreads = 2;
  std::vector<int> ids(kThreads + 2, -2);
  std::vector<std::optional<std::size_t>> runners(ids.size());
  const ThreadPoolAsyncWorkRunner runner = MakePool(kThreads);
  {
    auto pool = ToEigen(runner);
    AllAtOnce(
        ids.size(), [&](auto task) { pool.Schedule(std::move(task)); },
        [&](std::size_t i) {
          ids[i] = pool.CurrentThreadId();
          runners[i] = runner.CurrentThreadId();
        });
  }
  std::set<int> of_the_pool;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    ASSERT_TRUE(runners[i].has_value());
    EXPECT_EQ(ids[i], *runners[i] < kThreads ? static_cast<int>(*runners[i]) : -1);
    if (ids[i] == -1) continue;
    EXPECT_TRUE(of_the_pool.insert(ids[i]).second) << ids[i] << " twice at once";
  }
  EXPECT_LE(of_the_pool.size(), kThreads) << "at least two of the four are spares";
}

TEST(ToEigenTest, EigensContractionRunsOnIt) {
  const Matrix a = Numbers(257, 300);
  const Matrix b = Numbers(300, 191);
  const Matrix expected = ExpectedProduct(a, b);
  auto pool = ToEigen(MakePool(4));
  CountingPool<Eigen::ThreadPoolInterface> counting(pool);
  const Eigen::ThreadPoolDevice device(&counting, counting.NumThreads());
  for (int round = 0; round < 10; ++round) EXPECT_TRUE(Equal(Product(device, a, b), expected)) << round;
  EXPECT_GT(counting.closures.load(), 0);
}

TEST(ToEigenTest, ThreadsThatAreNotThePoolsContractAtTheSameTime) {
  const Matrix a = Numbers(120, 200);
  const Matrix b = Numbers(200, 130);
  const Matrix expected = ExpectedProduct(a, b);
  auto pool = ToEigen(MakePool(2));
  const Eigen::ThreadPoolDevice device(&pool, pool.NumThreads());
  Together(4, [&](int) {
    for (int round = 0; round < 5; ++round) EXPECT_TRUE(Equal(Product(device, a, b), expected));
  });
}

TEST(ToEigenTest, EigensParallelForCoversEachIndexOnce) {
  auto pool = ToEigen(MakePool(3));
  const Eigen::ThreadPoolDevice device(&pool, pool.NumThreads());
  std::vector<std::atomic<int>> seen(100000);
  device.parallelFor(static_cast<Eigen::Index>(seen.size()), Eigen::TensorOpCost(8, 8, 100),
                     [&seen](Eigen::Index begin, Eigen::Index end) {
                       for (Eigen::Index i = begin; i < end; ++i) ++seen[static_cast<std::size_t>(i)];
                     });
  for (const std::atomic<int>& times : seen) ASSERT_EQ(times.load(), 1);
}

TEST(ToEigenTest, ItsEndWaitsForItsClosuresAndForTheirsButNotForThePool) {
  ThreadPoolAsyncWorkRunner shared = MakePool(2);
  Held held(shared);
  std::atomic<int> runs{0};
  {
    EigenThreadPool pool(shared);
    for (int i = 0; i < 100; ++i) {
      pool.Schedule([&] {
        pool.ScheduleWithHint([&runs] { ++runs; }, 0, 1);
        ++runs;
      });
    }
  }
  EXPECT_EQ(runs.load(), 200);
}

TEST(ToEigenTest, ItsEndOnAThreadOfThePoolDoesNotWait) {
  std::promise<void> ended;
  ThreadPoolAsyncWorkRunner shared = MakePool(1);
  auto pool = std::make_unique<EigenThreadPool>(shared);
  EigenThreadPool& address = *pool;
  auto destroyer = std::make_shared<std::unique_ptr<EigenThreadPool>>(std::move(pool));
  address.Schedule([&ended, destroyer] {
    destroyer->reset();
    ended.set_value();
  });
  ended.get_future().wait();
}

TEST(ToEigenTest, AClosureGoesBeforeItsPoolsEndReturns) {
  const NoLeak no_leak;
  ThreadPoolAsyncWorkRunner shared = MakePool(1);
  auto alive = std::make_shared<Counted>(1);
  const std::weak_ptr<Counted> watch = alive;
  {
    auto pool = ToEigen(shared);
    pool.Schedule([alive = std::move(alive)] { EXPECT_EQ(alive->value, 1); });
  }
  EXPECT_TRUE(watch.expired());
}

TEST(ToEigenTest, AfterAShutdownClosuresRunOnTheThreadThatGivesThem) {
  ThreadPoolAsyncWorkRunner shared = MakePool(2);
  auto pool = ToEigen(shared);
  ASSERT_TRUE(shared.Shutdown().ok());
  std::thread::id ran;
  pool.Schedule([&ran] { ran = std::this_thread::get_id(); });
  EXPECT_EQ(ran, std::this_thread::get_id());
  const Matrix a = Numbers(120, 200);
  const Matrix b = Numbers(200, 130);
  const Eigen::ThreadPoolDevice device(&pool, pool.NumThreads());
  EXPECT_TRUE(Equal(Product(device, a, b), ExpectedProduct(a, b)));
}

TEST(ToEigenTest, WhatAShutdownDropsRunsAllTheSame) {
  ThreadPoolAsyncWorkRunner shared = MakePool(1);
  std::atomic<int> runs{0};
  {
    auto pool = ToEigen(shared);
    {
      Held held(shared);
      for (int i = 0; i < 50; ++i) pool.Schedule([&runs] { ++runs; });
      ShutdownOptions options;
      options.mode = ShutdownMode::kCancelPending;
      options.timeout_ns = 0;
      EXPECT_EQ(shared.Shutdown(options).code(), StatusCode::kDeadlineExceeded);
    }
  }
  EXPECT_EQ(runs.load(), 50);
}

TEST(ToEigenTest, AChainAfterAShutdownNeedsNoStack) {
  ThreadPoolAsyncWorkRunner shared = MakePool(1);
  auto pool = ToEigen(shared);
  ASSERT_TRUE(shared.Shutdown().ok());
  int links = 0;
  OnSmallStack([&] {
    std::function<void()> link = [&] {
      if (++links < 100000) pool.Schedule(link);
    };
    pool.Schedule(link);
  });
  EXPECT_EQ(links, 100000);
}

// As a contraction does on the only thread of the pool that it splits its work over.
TEST(ToEigenTest, AThreadThatWaitsForItsOwnPoolUnseenIsNamed) {
  ThreadPoolOptions options;
  options.thread_count = 1;
  options.name = "blocked";
  const ThreadPoolAsyncWorkRunner runner = ThreadPoolAsyncWorkRunner::Create(options).value();
  std::promise<void> release;
  std::promise<void> ran;
  {
    auto pool = ToEigen(runner);
    pool.Schedule([&] {
      const std::shared_future<void> released = release.get_future().share();
      // More than the pool gets spares for, one by one, before any thread has seen that tasks are queued.
      for (int i = 0; i < 1000; ++i) pool.Schedule([released] { released.wait(); });
      pool.Schedule([&ran] { ran.set_value(); });
      released.wait();
    });
    std::string report;
    while (report.find("'Eigen'; tasks are queued") == std::string::npos) report = DumpStalls();
    EXPECT_NE(report.find("pool 'blocked': 1 threads"), std::string::npos) << report;
    release.set_value();
  }
  ran.get_future().wait();
}

// One that waits for what is queued behind it gets a spare after a while.
TEST(ToEigenTest, AThreadThatWaitsForItsOwnPoolUnseenGoesOn) {
  const ThreadPoolAsyncWorkRunner runner = MakePool(1);
  auto pool = ToEigen(runner);
  std::promise<void> done;
  pool.Schedule([&] {
    std::promise<void> ran;
    pool.Schedule([&ran] { ran.set_value(); });
    ran.get_future().wait();
    done.set_value();
  });
  if (done.get_future().wait_for(std::chrono::minutes(1)) != std::future_status::ready) {
    std::fprintf(stderr, "hangs: a pool of one thread, which waits for what is queued behind it\n");
    std::_Exit(3);
  }
}

// As a session with one pool for both roles does.
TEST(ToEigenTest, ContractionsOnThreadsOfThePoolThatTheySplitTheirWorkOverEnd) {
  const ThreadPoolAsyncWorkRunner runner = MakePool(2);
  auto pool = ToEigen(runner);
  std::promise<void> done;
  std::atomic<int> left{4};
  for (int i = 0; i < 4; ++i) {
    pool.Schedule([&] {
      const Eigen::ThreadPoolDevice device(&pool, 2);
      Eigen::Tensor<double, 2> a(300, 300);
      Eigen::Tensor<double, 2> b(300, 300);
      Eigen::Tensor<double, 2> product(300, 300);
      a.setConstant(2);
      b.setConstant(3);
      const Eigen::array<Eigen::IndexPair<int>, 1> inner = {Eigen::IndexPair<int>(1, 0)};
      product.device(device) = a.contract(b, inner);
      EXPECT_EQ(product(7, 11), 1800.0);
      if (left.fetch_sub(1) == 1) done.set_value();
    });
  }
  if (done.get_future().wait_for(std::chrono::minutes(2)) != std::future_status::ready) {
    std::fprintf(stderr, "hangs: contractions on all threads of their own pool\n");
    std::_Exit(3);
  }
}

TEST(ToEigenTest, AnEmptyClosureAndCancelDoNothing) {
  std::promise<void> ran;
  auto pool = ToEigen(MakePool(1));
  pool.Schedule(nullptr);
  pool.ScheduleWithHint(std::function<void()>(), 0, 1);
  pool.Cancel();
  pool.Schedule([&ran] { ran.set_value(); });
  ran.get_future().wait();
}

TEST(ToEigenTest, AForkedChildRunsClosuresItselfAndEnds) {
  ThreadPoolAsyncWorkRunner shared = MakePool(1);
  Held held(shared);
  auto pool = std::make_unique<EigenThreadPool>(shared);
  pool->Schedule([] {});  // Pending when the child is made, so never run there.
  const pid_t child = fork();
  ASSERT_NE(child, -1);
  if (child == 0) {
    alarm(240);
    int runs = 0;
    pool->Schedule([&runs] { ++runs; });
    pool.reset();
    _exit(runs == 1 ? 0 : 1);
  }
  int state = -1;
  ASSERT_EQ(waitpid(child, &state, 0), child);
  EXPECT_EQ(state, 0);
  held.Open();
}

// Eigen's pool for Purlin ---------------------------------------------------------------------------------------------

TEST(FromEigenTest, FuturesAreMadeOnIt) {
  Eigen::ThreadPool theirs(2);
  auto executor = FromEigen(theirs);
  std::vector<Future<int>> futures;
  for (int i = 0; i < 100; ++i) {
    futures.push_back(MakeFutureOn<int>(executor, [&theirs, i] { return theirs.CurrentThreadId() >= 0 ? i : -1; }));
  }
  for (int i = 0; i < 100; ++i) EXPECT_EQ(futures[static_cast<std::size_t>(i)].Await().value(), i);
}

TEST(FromEigenTest, AnEmptyTaskIsRefused) {
  Eigen::ThreadPool theirs(1);
  Task gone([] {});
  std::move(gone).Run();
  EXPECT_EQ(FromEigen(theirs).Execute(std::move(gone)).code(), StatusCode::kInvalidArgument);
}

TEST(FromEigenTest, WhatItDropsIsTold) {
  const NoLeak no_leak;
  Future<int> dropped;
  std::promise<void> begun;
  std::promise<void> gate;
  {
    Eigen::ThreadPool theirs(1);
    auto executor = FromEigen(theirs);
    theirs.Schedule([&] {
      begun.set_value();
      gate.get_future().wait();
    });
    begun.get_future().wait();
    dropped = MakeFutureOn<int>(executor, [counted = Counted(1)] { return counted.value; });
    theirs.Cancel();  // While its only thread is held: what is queued does not run.
    gate.set_value();
  }
  EXPECT_EQ(dropped.Await().status().code(), StatusCode::kCancelled);
}

TEST(FromEigenTest, ThereAndBackIsAPoolLikeAnyOther) {
  auto pool = ToEigen(MakePool(2));
  auto executor = FromEigen(pool);
  EXPECT_GE(MakeFutureOn<int>(executor, [&pool] { return pool.CurrentThreadId(); }).Await().value(), 0);
}

}  // namespace
}  // namespace purlin

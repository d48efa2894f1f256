// purlin/adapters/tsl_thread_pool.h, with TSL's pool and with TensorFlow's sessions.
#include "purlin/adapters/tsl_thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "purlin/executor.h"
#include "purlin/future.h"
#include "purlin/promise.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/public/session.h"
#include "tests/cpp/testing.h"
#include "tests/interop/counting_pool.h"
#include "xla/tsl/platform/env.h"

namespace purlin {
namespace {

using adapters::FromTsl;
using adapters::ToTsl;
using adapters::TslThreadPool;

ThreadPoolAsyncWorkRunner MakePool(std::size_t threads) {
  ThreadPoolOptions options;
  options.thread_count = threads;
  return ThreadPoolAsyncWorkRunner::Create(options).value();
}

// TensorFlow on Purlin's pool ---------------------------------------------------------------------------------------

/// The pool that the operation below is about.
std::atomic<const ThreadPoolAsyncWorkRunner*> watched{nullptr};

/// An operation that reports which thread of `watched` TensorFlow runs it on; -1: none of them.
REGISTER_OP("PurlinThread").Input("after: double").Output("thread: int32").SetIsStateful();
class PurlinThread final : public tensorflow::OpKernel {
 public:
  explicit PurlinThread(tensorflow::OpKernelConstruction* construction) : OpKernel(construction) {}
  void Compute(tensorflow::OpKernelContext* context) override {
    tensorflow::Tensor* thread = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, {}, &thread));
    const auto id = watched.load()->CurrentThreadId();
    thread->scalar<int32_t>()() = id.has_value() ? static_cast<int32_t>(*id) : -1;
  }
};
REGISTER_KERNEL_BUILDER(Name("PurlinThread").Device(tensorflow::DEVICE_CPU), PurlinThread);

constexpr int kProducts = 8;

/// `kProducts` matrix products of what is fed, each followed by an operation that reports its thread. Of doubles: those
/// are Eigen's on every CPU, and Eigen splits them. Products of floats are oneDNN's where the CPU has AVX-512 VNNI, and
/// whether that splits them depends on their size and the CPU.
tensorflow::GraphDef Graph() {
  using tensorflow::NodeDefBuilder;
  tensorflow::GraphDef graph;
  const auto add = [&graph](NodeDefBuilder& node) { EXPECT_TRUE(node.Finalize(graph.add_node()).ok()); };
  for (const char* name : {"a", "b"}) add(NodeDefBuilder(name, "Placeholder").Attr("dtype", tensorflow::DT_DOUBLE));
  for (int i = 0; i < kProducts; ++i) {
    const std::string product = "product" + std::to_string(i);
    add(NodeDefBuilder(product, "MatMul").Input("a", 0, tensorflow::DT_DOUBLE).Input("b", 0, tensorflow::DT_DOUBLE));
    add(NodeDefBuilder("thread" + std::to_string(i), "PurlinThread").Input(product, 0, tensorflow::DT_DOUBLE));
  }
  return graph;
}

tensorflow::Tensor Numbers(int64_t rows, int64_t columns, double number) {
  tensorflow::Tensor tensor(tensorflow::DT_DOUBLE, {rows, columns});
  tensor.flat<double>().setConstant(number);
  return tensor;
}

class SessionTest : public testing::Test {
 protected:
  /// TensorFlow keeps what its first session starts.
  static void SetUpTestSuite() {
    ThreadPoolAsyncWorkRunner pool = MakePool(1);
    TslThreadPool operations(pool);
    TslThreadPool loops(MakePool(2));
    std::vector<int> threads;
    EXPECT_TRUE(Run(*NewSession(), pool, {&operations, &loops}, &threads).ok());
    EXPECT_TRUE(Run(*NewSession(), pool, {}, &threads).ok());
  }

  static std::unique_ptr<tensorflow::Session> NewSession() {
    std::unique_ptr<tensorflow::Session> session(tensorflow::NewSession({}));
    EXPECT_NE(session, nullptr);
    const absl::Status created = session->Create(Graph());
    EXPECT_TRUE(created.ok()) << created;
    return session;
  }

  /// Runs the graph over 1000 x `inner` and 300 x 100 numbers, checks the products, and says which threads of `pool`
  /// the operations ran on.
  static absl::Status Run(tensorflow::Session& session, const ThreadPoolAsyncWorkRunner& pool,
                          const tsl::thread::ThreadPoolOptions& options, std::vector<int>* threads,
                          int64_t inner = 300) {
    watched = &pool;
    std::vector<std::string> names;
    for (const char* kind : {"product", "thread"}) {
      for (int i = 0; i < kProducts; ++i) names.push_back(kind + std::to_string(i));
    }
    std::vector<tensorflow::Tensor> results;
    const absl::Status status =
        session.Run(tensorflow::RunOptions(), {{"a", Numbers(1000, inner, 2)}, {"b", Numbers(300, 100, 3)}}, names, {},
                    &results, nullptr, options);
    if (!status.ok()) return status;
    for (std::size_t i = 0; i < kProducts; ++i) {
      const auto product = results[i].flat<double>();
      for (Eigen::Index element = 0; element < product.size(); ++element) EXPECT_EQ(product(element), 1800.0);
      threads->push_back(results[kProducts + i].scalar<int32_t>()());
    }
    return status;
  }
};

TEST_F(SessionTest, ItsOperationsRunOnPurlinsThreads) {
  ThreadPoolAsyncWorkRunner pool = MakePool(3);
  TslThreadPool operations(pool);
  TslThreadPool loops(MakePool(2));
  CountingPool<tsl::thread::ThreadPoolInterface> inter_op(operations);
  CountingPool<tsl::thread::ThreadPoolInterface> intra_op(loops);
  const std::unique_ptr<tensorflow::Session> session = NewSession();
  std::vector<int> threads;
  ASSERT_TRUE(Run(*session, pool, {&inter_op, &intra_op}, &threads).ok());
  EXPECT_EQ(threads.size(), kProducts);
  for (const int thread : threads) EXPECT_TRUE(thread >= 0 && thread < 3) << thread;
  EXPECT_GT(inter_op.closures.load(), 0);
  EXPECT_GT(intra_op.closures.load(), 0);
}

TEST_F(SessionTest, WithoutPurlinTheyDoNot) {
  ThreadPoolAsyncWorkRunner pool = MakePool(3);
  std::vector<int> threads;
  ASSERT_TRUE(Run(*NewSession(), pool, {}, &threads).ok());
  EXPECT_EQ(threads, std::vector<int>(kProducts, -1));
}

TEST_F(SessionTest, AnErrorComesBackAndTheNextRunIsWell) {
  ThreadPoolAsyncWorkRunner pool = MakePool(2);
  TslThreadPool operations(pool);
  TslThreadPool loops(MakePool(2));
  const std::unique_ptr<tensorflow::Session> session = NewSession();
  std::vector<int> threads;
  EXPECT_EQ(Run(*session, pool, {&operations, &loops}, &threads, 7).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(Run(*session, pool, {&operations, &loops}, &threads).ok());
}

TEST_F(SessionTest, ThreadsShareASessionAndItsPools) {
  ThreadPoolAsyncWorkRunner pool = MakePool(2);
  TslThreadPool operations(pool);
  TslThreadPool loops(MakePool(2));
  const std::unique_ptr<tensorflow::Session> session = NewSession();
  Together(4, [&](int) {
    for (int round = 0; round < 5; ++round) {
      std::vector<int> threads;
      EXPECT_TRUE(Run(*session, pool, {&operations, &loops}, &threads).ok());
    }
  });
}

// An operation blocks its thread, unseen, until the loops inside it have run; they run on spares.
TEST_F(SessionTest, OnePoolMayServeBothRoles) {
  ThreadPoolAsyncWorkRunner pool = MakePool(2);
  TslThreadPool both(pool);
  const std::unique_ptr<tensorflow::Session> session = NewSession();
  for (int round = 0; round < 3; ++round) {
    std::vector<int> threads;
    EXPECT_TRUE(Run(*session, pool, {&both, &both}, &threads).ok());
  }
}

TEST_F(SessionTest, AfterAShutdownItRunsOnTheThreadThatAsks) {
  ThreadPoolAsyncWorkRunner pool = MakePool(2);
  TslThreadPool ours(pool);
  ASSERT_TRUE(pool.Shutdown().ok());
  std::vector<int> threads;
  ASSERT_TRUE(Run(*NewSession(), pool, {&ours, &ours}, &threads).ok());
  EXPECT_EQ(threads, std::vector<int>(kProducts, -1));
}

// TSL's pool over Purlin's ------------------------------------------------------------------------------------------

TEST(TslThreadPoolTest, ParallelForCoversEachIndexOnce) {
  ThreadPoolAsyncWorkRunner pool = MakePool(3);
  TslThreadPool ours(pool);
  tsl::thread::ThreadPool theirs(&ours);
  EXPECT_EQ(theirs.NumThreads(), 3);
  EXPECT_EQ(theirs.CurrentThreadId(), -1);
  std::vector<std::atomic<int>> seen(10000);
  std::atomic<int> odd_ids{0};
  theirs.ParallelForWithWorkerId(static_cast<int64_t>(seen.size()),
                                 tsl::thread::ThreadPool::SchedulingParams::Fixed(100),
                                 [&](int64_t begin, int64_t end, int id) {
                                   if (id < 0 || id > 3) ++odd_ids;
                                   for (int64_t i = begin; i < end; ++i) ++seen[static_cast<std::size_t>(i)];
                                 });
  for (const std::atomic<int>& times : seen) ASSERT_EQ(times.load(), 1);
  EXPECT_EQ(odd_ids.load(), 0);
}

TEST(TslThreadPoolTest, WhatItIsGivenRunsBeforeTheEndOfOurs) {
  std::atomic<int> runs{0};
  ThreadPoolAsyncWorkRunner pool = MakePool(2);
  {
    TslThreadPool ours(pool);
    tsl::thread::ThreadPool theirs(&ours);
    for (int i = 0; i < 100; ++i) {
      theirs.Schedule([&runs] { ++runs; });
      theirs.AsExecutor()->Execute([&runs] { ++runs; });
    }
  }
  EXPECT_EQ(runs.load(), 200);
}

// TSL's pool for Purlin ---------------------------------------------------------------------------------------------

TEST(FromTslThreadPoolTest, FuturesAreMadeOnIt) {
  tsl::thread::ThreadPool theirs(tsl::Env::Default(), "theirs", 2);
  auto executor = FromTsl(theirs);
  std::vector<Future<int>> futures;
  for (int i = 0; i < 100; ++i) {
    futures.push_back(MakeFutureOn<int>(executor, [&theirs, i] { return theirs.CurrentThreadId() >= 0 ? i : -1; }));
  }
  for (int i = 0; i < 100; ++i) EXPECT_EQ(futures[static_cast<std::size_t>(i)].Await().value(), i);
}

}  // namespace
}  // namespace purlin

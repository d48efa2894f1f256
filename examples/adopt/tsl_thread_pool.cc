// Code that runs TensorFlow sessions adopts Purlin: TensorFlow's work runs on Purlin's threads, the session stays.
//
// `before` runs a graph on TensorFlow's own pools. `after` hands two of Purlin's pools to the same call: one for the
// operations, one for the loops inside them, since an operation blocks its thread until its loops are done. main runs
// both and compares.
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "purlin/adapters/tsl_thread_pool.h"
#include "purlin/purlin.h"
#include "tensorflow/core/framework/node_def_builder.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/public/session.h"

using Tensors = std::vector<tensorflow::Tensor>;

tensorflow::GraphDef Product() {
  tensorflow::GraphDef graph;
  const auto add = [&graph](tensorflow::NodeDefBuilder& node) { node.Finalize(graph.add_node()).IgnoreError(); };
  for (const char* name : {"a", "b"})
    add(tensorflow::NodeDefBuilder(name, "Placeholder").Attr("dtype", tensorflow::DT_FLOAT));
  add(tensorflow::NodeDefBuilder("product", "MatMul")
          .Input("a", 0, tensorflow::DT_FLOAT)
          .Input("b", 0, tensorflow::DT_FLOAT));
  return graph;
}

namespace before {

absl::Status Multiply(tensorflow::Session& session, const tensorflow::Tensor& a, const tensorflow::Tensor& b,
                      Tensors* product) {
  return session.Run({{"a", a}, {"b", b}}, {"product"}, {}, product);
}

}  // namespace before

namespace after {

absl::Status Multiply(tensorflow::Session& session, const tensorflow::Tensor& a, const tensorflow::Tensor& b,
                      Tensors* product) {
  static auto operations = purlin::adapters::ToTsl(purlin::ThreadPoolAsyncWorkRunner::Create({}).value());
  static auto loops = purlin::adapters::ToTsl(purlin::ThreadPoolAsyncWorkRunner::Create({}).value());
  return session.Run({}, {{"a", a}, {"b", b}}, {"product"}, {}, product, nullptr, {&operations, &loops});
}

}  // namespace after

template <typename Multiply>
std::string Run(Multiply multiply) {
  const std::unique_ptr<tensorflow::Session> session(tensorflow::NewSession({}));
  if (session == nullptr) return "there is no session";
  if (const absl::Status created = session->Create(Product()); !created.ok()) return created.ToString();
  std::string text;
  for (const int columns : {200, 3}) {  // The second does not fit.
    tensorflow::Tensor a(tensorflow::DT_FLOAT, {100, columns});
    tensorflow::Tensor b(tensorflow::DT_FLOAT, {200, 300});
    a.flat<float>().setConstant(2);
    b.flat<float>().setConstant(3);
    Tensors product;
    const absl::Status status = multiply(*session, a, b, &product);
    text += status.ok() ? std::to_string(product[0].flat<float>()(0)) : absl::StatusCodeToString(status.code());
    text += "; ";
  }
  return text;
}

int main() {
  const std::string was = Run(before::Multiply);
  const std::string is = Run(after::Multiply);
  std::printf("before: %s\nafter:  %s\n", was.c_str(), is.c_str());
  return was == is ? 0 : 1;
}

// Digits: trains a softmax classifier on handwritten digits, data-parallel over the virtual devices of one client.
// See trainer.h for how a step is made of copies, tasks and events.
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "dataset.h"
#include "evaluation.h"
#include "model.h"
#include "options.h"
#include "progress.h"
#include "purlin/client.h"
#include "purlin/status.h"
#include "purlin/status_or.h"
#include "purlin/trace.h"
#include "report.h"
#include "text.h"
#include "trainer.h"

namespace digits {
namespace {

purlin::StatusOr<Result> TrainAndEvaluate(const purlin::Client& client, const Dataset& dataset,
                                          const Options& options) {
  const purlin::StatusOr<std::unique_ptr<Trainer>> made = Trainer::Create(client, dataset, options);
  if (!made.ok()) return made.status();
  Trainer& trainer = **made;

  Result result;
  const auto start = std::chrono::steady_clock::now();
  {
    Progress progress(options.steps);
    const purlin::Status status = trainer.Train(options.steps, [&progress](int finished) { progress.Show(finished); });
    if (!status.ok()) return status;
    result.wall = std::chrono::steady_clock::now() - start;
  }
  const purlin::StatusOr<std::size_t> correct = CountCorrect(client, trainer.weights(), dataset.held_out);
  if (!correct.ok()) return correct.status();

  result.training_images = dataset.training.size();
  result.held_out_images = dataset.held_out.size();
  result.correct = *correct;
  result.images_per_step = trainer.images_per_step();
  result.steps = options.steps;
  result.seed = options.seed;
  std::vector<float> weights(kWeights);
  const purlin::Status copied = trainer.weights().CopyToHost(weights.data(), 0, kWeightBytes).Wait();
  if (!copied.ok()) return copied;
  result.checksum = Checksum(weights.data(), kWeightBytes);
  for (std::size_t i = 0; i < client.devices().size(); ++i) {
    const purlin::StatusOr<std::chrono::nanoseconds> busy = trainer.Busy(i);
    if (!busy.ok()) return busy.status();
    result.busy.push_back(*busy);
  }
  return result;
}

// Everything after the command line; what it returns goes to standard output.
purlin::StatusOr<std::string> Run(const Options& options) {
  const purlin::StatusOr<Dataset> dataset = ReadDataset(options.data, options.seed);
  if (!dataset.ok()) return dataset.status();

  std::error_code none_there;  // A trace that does not exist yet is no data to lose.
  if (!options.trace.empty() && std::filesystem::equivalent(options.trace, options.data, none_there)) {
    return purlin::InvalidArgumentError(
        Format("--trace %s would overwrite the images of --data", Quoted(options.trace).c_str()));
  }

  purlin::ClientOptions client_options;
  client_options.device_count = static_cast<std::size_t>(options.devices);
  client_options.worker_count = static_cast<std::size_t>(options.workers);
  client_options.platform = options.platform;
  client_options.virtual_devices = true;  // A machine with one GPU trains on four devices, too.
  const purlin::StatusOr<purlin::Client> client = purlin::Client::Create(client_options);
  if (!client.ok()) return client.status();

  if (!options.trace.empty()) {
    const purlin::Status status = purlin::StartTrace(options.trace);
    if (!status.ok()) return status;
  }
  // Without StopTrace() no file is written, which is right where training failed.
  const purlin::StatusOr<Result> result = TrainAndEvaluate(*client, *dataset, options);
  if (!result.ok()) return result.status();
  if (!options.trace.empty()) {
    const purlin::Status status = purlin::StopTrace();
    if (!status.ok()) return status;
  }
  return Report(*client, *result);
}

purlin::StatusOr<std::string> Main(int argc, char** argv) {
  const purlin::StatusOr<Options> options = ParseOptions({argv + 1, static_cast<std::size_t>(argc > 0 ? argc - 1 : 0)});
  if (!options.ok()) return options.status();
  if (options->help) return Usage();
  return Run(*options);
}

}  // namespace
}  // namespace digits

int main(int argc, char** argv) {
  const purlin::StatusOr<std::string> text = digits::Main(argc, argv);
  if (!text.ok()) {
    std::fprintf(stderr, "digits: %s\n", std::string(text.status().message()).c_str());
    return 2;
  }
  if (std::fputs(text->c_str(), stdout) < 0 || std::fflush(stdout) != 0) {
    std::fprintf(stderr, "digits: cannot write to standard output\n");
    return 2;
  }
  return 0;
}

#include "options.h"

#include <cstddef>
#include <optional>
#include <string_view>

#include "purlin/status.h"
#include "text.h"

// Where the build says that the images are; from the repository's root otherwise.
#ifndef DIGITS_DEFAULT_DATA
#define DIGITS_DEFAULT_DATA "examples/data/digits.csv"
#endif

namespace digits {
namespace {

constexpr int kMostSteps = 1'000'000'000;
constexpr int kMostDevices = 1024;
constexpr int kMostWorkers = 4096;

purlin::Status SetNumber(std::string_view flag, std::string_view value, std::uint64_t least, std::uint64_t most,
                         std::uint64_t& number) {
  const std::optional<std::uint64_t> parsed = ParseNumber(value);
  if (parsed && *parsed >= least && *parsed <= most) {
    number = *parsed;
    return purlin::OkStatus();
  }
  return purlin::InvalidArgumentError(Format("%s must be a whole number in %llu..%llu, not %s",
                                             std::string(flag).c_str(), static_cast<unsigned long long>(least),
                                             static_cast<unsigned long long>(most), Quoted(value).c_str()));
}

purlin::Status SetNumber(std::string_view flag, std::string_view value, int least, int most, int& number) {
  std::uint64_t wide = 0;
  const purlin::Status status =
      SetNumber(flag, value, static_cast<std::uint64_t>(least), static_cast<std::uint64_t>(most), wide);
  if (status.ok()) number = static_cast<int>(wide);
  return status;
}

purlin::Status SetPath(std::string_view flag, std::string_view value, std::string& path) {
  if (value.empty()) {
    return purlin::InvalidArgumentError(Format("%s must name a file, not ''", std::string(flag).c_str()));
  }
  path = std::string(value);
  return purlin::OkStatus();
}

purlin::Status SetFlag(std::string_view flag, std::string_view value, Options& options) {
  if (flag == "--devices") return SetNumber(flag, value, 1, kMostDevices, options.devices);
  if (flag == "--steps") return SetNumber(flag, value, 1, kMostSteps, options.steps);
  if (flag == "--seed") return SetNumber(flag, value, std::uint64_t{0}, UINT64_MAX, options.seed);
  if (flag == "--workers") return SetNumber(flag, value, 1, kMostWorkers, options.workers);
  if (flag == "--trace") return SetPath(flag, value, options.trace);
  if (flag == "--platform") {
    options.platform = std::string(value);
    return purlin::OkStatus();
  }
  return SetPath(flag, value, options.data);
}

bool TakesValue(std::string_view flag) {
  constexpr std::string_view kFlags[] = {"--devices",  "--steps", "--seed", "--workers",
                                         "--platform", "--trace", "--data"};
  for (const std::string_view known : kFlags) {
    if (flag == known) return true;
  }
  return false;
}

}  // namespace

purlin::StatusOr<Options> ParseOptions(purlin::Span<const char* const> arguments) {
  Options options;
  options.data = DIGITS_DEFAULT_DATA;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    if (argument == "--help" || argument == "-h") {
      options.help = true;
      return options;
    }
    if (argument == "--program" || argument == "--kernels") {
      (argument == "--program" ? options.program : options.kernels) = true;
      continue;
    }
    const std::size_t equals = argument.find('=');  // "--flag value" and "--flag=value" mean the same.
    const std::string_view flag = argument.substr(0, equals);
    if (!TakesValue(flag)) {
      return purlin::InvalidArgumentError(
          Format("unknown argument %s; --help lists the flags", Quoted(argument).c_str()));
    }
    if (equals == std::string_view::npos && i + 1 == arguments.size()) {
      return purlin::InvalidArgumentError(Format("%s needs a value", std::string(flag).c_str()));
    }
    const std::string_view value = equals == std::string_view::npos ? arguments[++i] : argument.substr(equals + 1);
    const purlin::Status status = SetFlag(flag, value, options);
    if (!status.ok()) return status;
  }
  return options;
}

std::string Usage() {
  const Options defaults;
  return Format(
      "Usage: digits [flags]\n"
      "Trains a softmax classifier on handwritten digits, data-parallel over virtual devices.\n"
      "The result is the same, to the bit, for the same data, devices, steps and seed.\n"
      "\n"
      "  --devices N   devices that share the work, 1..%d (default %d)\n"
      "  --steps N     steps of descent (default %d)\n"
      "  --seed N      shuffles the images (default %llu)\n"
      "  --workers N   threads, 1..%d (default: what the machine allows)\n"
      "  --platform P  whose devices: host, sim, cuda; there gradients and updates are kernels (default %s)\n"
      "  --kernels     kernels also on the host; the result is the same\n"
      "  --program     the kernels of the gradient as a program of Purlin's, run by one call; the result is the same\n"
      "  --trace FILE  write what ran when, for ui.perfetto.dev or chrome://tracing\n"
      "  --data FILE   lines of 64 pixels 0..16 and a label 0..9, separated by commas\n"
      "                (default %s)\n"
      "  --help        print this\n"
      "\n"
      "Exit codes: 0 trained and reported; 2 not, and standard error says why.\n",
      kMostDevices, defaults.devices, defaults.steps, static_cast<unsigned long long>(defaults.seed), kMostWorkers,
      defaults.platform.c_str(), DIGITS_DEFAULT_DATA);
}

}  // namespace digits

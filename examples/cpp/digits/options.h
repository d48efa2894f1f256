// Digits: the command line.
#ifndef DIGITS_OPTIONS_H_
#define DIGITS_OPTIONS_H_

#include <cstdint>
#include <string>

#include "purlin/span.h"
#include "purlin/status_or.h"

namespace digits {

struct Options {
  int devices = 4;
  int steps = 300;
  std::uint64_t seed = 1;
  /// Threads of the runner; 0 takes what the machine allows.
  int workers = 0;
  /// Where the trace goes; empty: no trace.
  std::string trace;
  std::string data;
  /// Whose devices: a platform of Purlin's.
  std::string platform = "host";
  /// Whether gradients and updates are kernels of the devices also on the host, where they are tasks.
  bool kernels = false;
  /// Whether those kernels of gradients are programs.
  bool program = false;
  bool help = false;
};

/// The arguments after the program's name. kInvalidArgument, naming flag and value.
purlin::StatusOr<Options> ParseOptions(purlin::Span<const char* const> arguments);

/// What --help prints.
std::string Usage();

}  // namespace digits

#endif  // DIGITS_OPTIONS_H_

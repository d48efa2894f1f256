#include "progress.h"

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <string>

namespace digits {
namespace {

constexpr int kWidth = 40;
constexpr std::chrono::milliseconds kBetweenDrawings(50);

}  // namespace

Progress::Progress(int total) : total_(total), on_terminal_(isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  if (drawn_) std::fprintf(stderr, "\r%*s\r", kWidth + 40, "");
}

void Progress::Show(int finished) {
  if (!on_terminal_) return;
  const auto now = std::chrono::steady_clock::now();
  if (drawn_ && now - last_drawn_ < kBetweenDrawings) return;
  drawn_ = true;
  last_drawn_ = now;
  const auto filled = static_cast<std::size_t>(std::int64_t{finished} * kWidth / total_);
  const std::string bar = std::string(filled, '=') + std::string(kWidth - filled, ' ');
  std::fprintf(stderr, "\rtraining [%s] %d/%d", bar.c_str(), finished, total_);
}

}  // namespace digits

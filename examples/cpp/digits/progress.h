// Digits: a bar on standard error, where that is a terminal; nothing elsewhere.
#ifndef DIGITS_PROGRESS_H_
#define DIGITS_PROGRESS_H_

#include <chrono>

namespace digits {

class Progress {
 public:
  explicit Progress(int total);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  /// Erases the bar, so that the next output begins on an empty line.
  ~Progress();

  /// `finished` of `total` are done. Draws at most twenty times a second.
  void Show(int finished);

 private:
  const int total_;
  const bool on_terminal_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point last_drawn_;
};

}  // namespace digits

#endif  // DIGITS_PROGRESS_H_

#include "dataset.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string_view>

#include "purlin/status.h"
#include "random.h"
#include "text.h"

namespace digits {
namespace {

constexpr std::size_t kFields = kPixels + 1;
constexpr std::uint64_t kBrightest = 16;
// A file is read whole, and some, such as /dev/zero, have no end.
constexpr std::size_t kMostBytes = std::size_t{256} << 20U;

purlin::StatusOr<std::string> ReadFile(const std::string& path) {
  std::string content;
  std::FILE* file = std::fopen(path.c_str(), "rb");
  int error = errno;
  if (file != nullptr) {
    char block[1 << 16];
    std::size_t size = 0;
    while (content.size() <= kMostBytes && (size = std::fread(block, 1, sizeof(block), file)) > 0) {
      content.append(block, size);
    }
    error = std::ferror(file) != 0 ? errno : 0;
    std::fclose(file);
    if (content.size() > kMostBytes) {
      return purlin::InvalidArgumentError(
          Format("%s is larger than %zu MiB: too much to be read whole", Quoted(path).c_str(), kMostBytes >> 20U));
    }
    if (error == 0) return content;
  }
  return purlin::NotFoundError(Format("cannot read %s: %s", Quoted(path).c_str(), std::strerror(error)));
}

// Removes the text before the next `separator`, and the separator, from the front of `text`.
std::string_view TakeUntil(char separator, std::string_view& text) {
  const std::size_t size = std::min(text.find(separator), text.size());
  const std::string_view taken = text.substr(0, size);
  text.remove_prefix(std::min(size + 1, text.size()));
  return taken;
}

// Parses one line into `example`; returns what is wrong with it, if anything is.
std::optional<std::string> ParseLine(std::string_view line, Example& example) {
  const auto fields = static_cast<std::size_t>(std::count(line.begin(), line.end(), ',')) + (line.empty() ? 0U : 1U);
  if (fields != kFields) return Format("%zu field%s instead of %zu", fields, fields == 1 ? "" : "s", kFields);
  for (std::size_t i = 0; i < kFields; ++i) {
    const std::string_view field = TakeUntil(',', line);
    const bool is_label = i == kPixels;
    const std::uint64_t limit = is_label ? kClasses - 1 : kBrightest;
    // A minus is passed on to the check of the range, whose message is better.
    const bool negative = field.size() > 1 && field[0] == '-';
    const std::optional<std::uint64_t> number = ParseNumber(negative ? field.substr(1) : field);
    if (!number) {
      return Format("field %zu, %s, is not a whole number in 0..%d", i + 1, Quoted(field).c_str(),
                    static_cast<int>(limit));
    }
    if (*number > limit || (negative && *number != 0)) {
      return Format("the %s in field %zu is %s%llu, outside 0..%d", is_label ? "label" : "pixel", i + 1,
                    negative ? "-" : "", static_cast<unsigned long long>(*number), static_cast<int>(limit));
    }
    if (is_label) {
      example.label = static_cast<std::int32_t>(*number);
    } else {
      example.pixels[i] = static_cast<float>(*number) / static_cast<float>(kBrightest);
    }
  }
  return std::nullopt;
}

}  // namespace

purlin::StatusOr<Dataset> ReadDataset(const std::string& path, std::uint64_t seed) {
  const purlin::StatusOr<std::string> content = ReadFile(path);
  if (!content.ok()) return content.status();
  if (content->empty()) return purlin::InvalidArgumentError(Format("%s is empty", Quoted(path).c_str()));

  Dataset dataset;
  std::string_view rest = *content;
  while (!rest.empty()) {
    std::string_view line = TakeUntil('\n', rest);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    Example example;
    if (const std::optional<std::string> wrong = ParseLine(line, example)) {
      return purlin::InvalidArgumentError(
          Format("%s, line %zu: %s", Quoted(path).c_str(), dataset.training.size() + 1, wrong->c_str()));
    }
    dataset.training.push_back(example);
  }
  const std::size_t rows = dataset.training.size();
  if (rows < 2) {
    return purlin::InvalidArgumentError(
        Format("%s has %zu line, and at least 2 are needed: one to learn from and one to hold out",
               Quoted(path).c_str(), rows));
  }
  Random(seed).Shuffle(dataset.training);
  const std::size_t held_out = std::max<std::size_t>(1, rows / 5);
  const auto cut = dataset.training.end() - static_cast<std::ptrdiff_t>(held_out);
  dataset.held_out.assign(cut, dataset.training.end());
  dataset.training.erase(cut, dataset.training.end());
  return dataset;
}

}  // namespace digits

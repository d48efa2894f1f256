// What the tests of tables share: tests/behaviours/*.tsv, whose rows both languages run.
#ifndef PURLIN_TESTS_CPP_TABLE_H_
#define PURLIN_TESTS_CPP_TABLE_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "purlin/status.h"

namespace purlin {

inline std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

/// The rows of the table at `path`, without comments and the heading; each has `columns` cells.
inline std::vector<std::vector<std::string>> ReadTable(const char* path, std::size_t columns) {
  std::vector<std::vector<std::string>> rows;
  std::ifstream table(path);
  bool is_heading = true;
  for (std::string line; std::getline(table, line);) {
    if (line.empty() || line[0] == '#' || std::exchange(is_heading, false)) continue;
    rows.push_back(Split(line, '\t'));
    EXPECT_EQ(rows.back().size(), columns) << line;
  }
  return rows;
}

/// The code whose name a cell has.
inline StatusCode CodeOf(const std::string& name) {
  for (int number = 0; number <= 16; ++number) {
    if (StatusCodeToString(static_cast<StatusCode>(number)) == name) return static_cast<StatusCode>(number);
  }
  ADD_FAILURE() << "no code '" << name << "'";
  return StatusCode::kUnknown;
}

/// A cell has the message itself, or '~' and a part of it.
inline void CheckMessage(const Status& status, const std::string& cell) {
  if (cell.substr(0, 1) == "~") {
    EXPECT_NE(status.message().find(cell.substr(1)), std::string_view::npos) << status;
  } else {
    EXPECT_EQ(status.message(), cell);
  }
}

}  // namespace purlin

#endif  // PURLIN_TESTS_CPP_TABLE_H_

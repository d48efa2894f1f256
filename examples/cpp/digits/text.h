// Digits: numbers out of text, and text into messages.
#ifndef DIGITS_TEXT_H_
#define DIGITS_TEXT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace digits {

/// The whole of `text` as a decimal number without sign, or nothing.
std::optional<std::uint64_t> ParseNumber(std::string_view text);

/// `text` in quotes, fit for one line of a message: a byte that cannot be printed becomes '?', a long text is cut.
std::string Quoted(std::string_view text);

/// As printf, into a string.
[[gnu::format(printf, 1, 2)]] std::string Format(const char* format, ...);

}  // namespace digits

#endif  // DIGITS_TEXT_H_

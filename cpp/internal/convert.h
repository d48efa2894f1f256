// Purlin: between the types of std and those of cxx.
#ifndef PURLIN_CPP_INTERNAL_CONVERT_H_
#define PURLIN_CPP_INTERNAL_CONVERT_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "purlin/event.h"
#include "purlin/span.h"
#include "purlin/status.h"
#include "purlin/status_or.h"
#include "rust/cxx.h"

namespace purlin {
inline namespace v0 {
namespace internal {

/// Text for Rust, as bytes: rust::Str throws on what is not UTF-8.
inline rust::Slice<const std::uint8_t> ToRust(std::string_view text) noexcept {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

template <typename T>
rust::Slice<const T> ToRust(Span<const T> values) noexcept {
  return {values.data(), values.size()};
}

template <typename T>
rust::Slice<const T> ToRust(const std::vector<T>& values) noexcept {
  return {values.data(), values.size()};
}

/// See above, for Rust to write.
template <typename T>
rust::Slice<T> Writable(std::vector<T>& values) noexcept {
  return {values.data(), values.size()};
}

/// An Event is read as its pointer; event.h asserts that it is nothing else.
inline EventHeader* const* ToRust(Span<const Event> events) noexcept {
  return reinterpret_cast<EventHeader* const*>(events.data());
}

/// Static text from Rust.
inline std::string_view FromRust(rust::Str text) noexcept { return {text.data(), text.size()}; }

/// The answer of a call that makes a handle: `rep`, adopted, or the error. Both belong to the caller.
template <typename T, typename Rep, typename Adopt>
StatusOr<T> ToStatusOr(const Rep* rep, const StatusRep* error, Adopt adopt) {
  if (error != nullptr) return Status::FromRep(error);
  return adopt(rep);
}

/// See above, for types whose Adopt is public.
template <typename T, typename Rep>
StatusOr<T> ToStatusOr(const Rep* rep, const StatusRep* error) {
  return ToStatusOr<T>(rep, error, &T::Adopt);
}

}  // namespace internal
}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_CPP_INTERNAL_CONVERT_H_

// Purlin's adapter for abseil: errors and spans both ways, closures in.
//
//   absl::Status Load(const Path& path) { return purlin::adapters::ToAbsl(LoadWithPurlin(path)); }
//   runner.Schedule(purlin::adapters::FromAbsl(std::move(any_invocable)));
//
// An error crosses with its code, its message and every payload, so also with the numbers of its user contexts, which
// are a payload (user_context.h): an error that crosses and returns is equal to the original. The place where it was
// made does not cross; ToString() shows it before. Nothing here blocks or keeps a reference to what it was given.
//
// For abseil from 20220623 on, C++17 as its own. What has no type of abseil in its parameters is a template over one,
// so that two abseils in one program, each with its version in its names, do not meet in one function of this file.
#ifndef PURLIN_ADAPTERS_ABSL_H_
#define PURLIN_ADAPTERS_ABSL_H_

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/cord.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "purlin/source_location.h"
#include "purlin/span.h"
#include "purlin/status.h"
#include "purlin/status_or.h"
#include "purlin/version.h"

namespace purlin {
inline namespace v0 {
namespace adapters {

/// The same code, message and payloads. OK allocates nothing.
template <typename AbslStatus = absl::Status>
AbslStatus ToAbsl(const Status& status) {
  if (status.ok()) return AbslStatus();
  const auto view = [](std::string_view text) { return absl::string_view(text.data(), text.size()); };
  AbslStatus made(static_cast<absl::StatusCode>(status.raw_code()), view(status.message()));
  status.ForEachPayload([&](std::string_view type_url, std::string_view payload) {
    made.SetPayload(view(type_url), absl::Cord(view(payload)));
  });
  return made;
}

/// The same code, message and payloads; the place is that of the caller. A code outside 0..16 becomes kUnknown, as
/// abseil's code() has it; bytes of the message that are not UTF-8 are replaced.
inline Status FromAbsl(const absl::Status& status, SourceLocation location = SourceLocation::Current()) {
  if (status.ok()) return Status();
  const auto view = [](absl::string_view text) { return std::string_view(text.data(), text.size()); };
  Status made(static_cast<StatusCode>(status.code()), view(status.message()), location);
  status.ForEachPayload([&](absl::string_view type_url, const absl::Cord& payload) {
    made.SetPayload(view(type_url), std::string(payload));
  });
  return made;
}

/// The value, moved or copied, or the error as above.
template <typename T, template <typename> class AbslStatusOr = absl::StatusOr>
AbslStatusOr<T> ToAbsl(StatusOr<T> result) {
  if (!result.ok()) return ToAbsl(result.status());
  return AbslStatusOr<T>(*std::move(result));
}

/// The value, moved or copied, or the error as above.
template <typename T>
StatusOr<T> FromAbsl(absl::StatusOr<T> result, SourceLocation location = SourceLocation::Current()) {
  if (!result.ok()) return FromAbsl(result.status(), location);
  return StatusOr<T>(*std::move(result));
}

/// The same elements.
template <typename T>
constexpr Span<T> FromAbsl(absl::Span<T> span) noexcept {
  return Span<T>(span.data(), span.size());
}

/// The same elements.
template <typename T, template <typename> class AbslSpan = absl::Span>
constexpr AbslSpan<T> ToAbsl(Span<T> span) noexcept {
  return AbslSpan<T>(span.data(), span.size());
}

namespace internal {

/// How an argument that abseil's closure takes is called here, and how it is made of that.
template <typename A>
struct Argument {
  using Ours = A;
  static A&& Convert(Ours& ours) { return std::forward<A>(ours); }
};
template <>
struct Argument<absl::Status> {
  using Ours = const Status&;
  static absl::Status Convert(Ours ours) { return ToAbsl(ours); }
};
template <>
struct Argument<const absl::Status&> : Argument<absl::Status> {};
template <typename T>
struct Argument<absl::StatusOr<T>> {
  using Ours = StatusOr<T>;
  static absl::StatusOr<T> Convert(Ours& ours) { return ToAbsl(std::move(ours)); }
};
template <typename T>
struct Argument<const absl::StatusOr<T>&> : Argument<absl::StatusOr<T>> {};

/// The plain form of a signature that AnyInvocable may have.
template <typename Signature>
struct Plain;
template <typename... A>
struct Plain<void(A...)> {
  using Type = void(A...);
};
template <typename... A>
struct Plain<void(A...) &> : Plain<void(A...)> {};
template <typename... A>
struct Plain<void(A...) &&> : Plain<void(A...)> {};
template <typename... A>
struct Plain<void(A...) const> : Plain<void(A...)> {};
template <typename... A>
struct Plain<void(A...) const&> : Plain<void(A...)> {};
template <typename... A>
struct Plain<void(A...) noexcept> : Plain<void(A...)> {};
template <typename... A>
struct Plain<void(A...) && noexcept> : Plain<void(A...)> {};

template <typename Invocable, typename Signature>
class Closure;
/// Called once, as an lvalue, which a signature with && does not allow.
template <typename Invocable, typename... A>
class Closure<Invocable, void(A...)> {
 public:
  explicit Closure(Invocable invocable) noexcept : invocable_(std::move(invocable)) {}
  void operator()(typename Argument<A>::Ours... arguments) {
    if (invocable_ != nullptr) std::move(invocable_)(Argument<A>::Convert(arguments)...);
  }

 private:
  Invocable invocable_;
};

}  // namespace internal

/// A task, a waiter of an event or a callback of a future, out of abseil's closure: `void()`, `void(absl::Status)`, or
/// `void(absl::StatusOr<T>)`, whatever its qualifiers. What Purlin hands to it is converted as above. An empty one does
/// nothing when it is called. It is called once or destroyed uncalled. AnyInvocable is aligned to 16 bytes, so a task
/// or a waiter of it costs one heap allocation.
template <typename Signature>
auto FromAbsl(absl::AnyInvocable<Signature> invocable) {
  using Invocable = absl::AnyInvocable<Signature>;
  return internal::Closure<Invocable, typename internal::Plain<Signature>::Type>(std::move(invocable));
}

}  // namespace adapters
}  // namespace v0
}  // namespace purlin

#endif  // PURLIN_ADAPTERS_ABSL_H_

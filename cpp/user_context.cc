#include "purlin/user_context.h"

#include <cstddef>
#include <utility>

#include "cpp/internal/convert.h"
#include "cpp/internal/functions.h"
#include "purlin-bridge/src/user_context.rs.h"

namespace purlin {
inline namespace v0 {
namespace {

using internal::UserContextRef;

UserContext Adopted(const std::uint64_t* owned) noexcept { return UserContext::Adopt(UserContextRef(owned)); }

/// A reference that is Rust's from now on; null for none.
const std::uint64_t* Given(UserContext context) noexcept { return std::move(context).ReleaseRef().Release(); }

using Renderer = std::function<std::string()>;

/// Renders into a text of Rust's.
void Render(void* renderer, void* text) noexcept {
  const std::string rendered = (*static_cast<Renderer*>(renderer))();
  internal::purlin_user_context_rendered(text, rendered.data(), rendered.size());
}

void DeleteRenderer(void* renderer) noexcept { delete static_cast<Renderer*>(renderer); }

}  // namespace

namespace internal {

void UserContextRetain(const std::uint64_t* context) noexcept { purlin_user_context_retain(context); }

void UserContextRelease(const std::uint64_t* context) noexcept { purlin_user_context_release(context); }

const StatusRep* AnnotateError(const StatusRep* error, std::uint64_t context_id) noexcept {
  return ffi::user_context_annotate_with_id(error, context_id);
}

}  // namespace internal

UserContext UserContext::NewText(const UserContext& parent, std::string_view text) {
  return Adopted(ffi::user_context_new(Given(parent), internal::ToRust(text)));
}

UserContext UserContext::NewLazy(const UserContext& parent, std::function<std::string()> render) {
  return Adopted(
      internal::purlin_user_context_new_lazy(Given(parent), new Renderer(std::move(render)), &Render, &DeleteRenderer));
}

UserContext UserContext::Chained(const UserContext& outer, const UserContext& inner) {
  return Adopted(ffi::user_context_chained(Given(outer), Given(inner)));
}

UserContext UserContext::Fused(Span<const UserContext> contexts) {
  return Adopted(
      ffi::user_context_fused(reinterpret_cast<const std::uint64_t* const*>(contexts.data()), contexts.size()));
}

StatusOr<UserContext> UserContext::WithId(std::uint64_t id, std::string_view origin) {
  const internal::StatusRep* error = nullptr;
  const std::uint64_t* context = ffi::user_context_with_id(id, internal::ToRust(origin), error);
  if (error != nullptr) return Status::FromRep(error);
  return Adopted(context);
}

UserContext UserContext::Lookup(std::uint64_t id) { return Adopted(ffi::user_context_lookup(id)); }

std::vector<UserContext> UserContext::LookupAll() {
  std::vector<UserContext> all;
  internal::purlin_user_context_lookup_all(
      [](void* into, const std::uint64_t* owned) noexcept {
        static_cast<std::vector<UserContext>*>(into)->push_back(Adopted(owned));
      },
      &all);
  return all;
}

std::string UserContext::DebugString() const {
  std::string text;
  if (*this) ffi::user_context_debug_string(ref_.get(), text);
  return text;
}

Status AnnotateWithUserContext(Status error, const UserContext& context) {
  return Status::FromRep(ffi::user_context_annotate(std::move(error).ReleaseRep(), Given(context)));
}

Status ExpandUserContexts(const Status& error) {
  return Status::FromRep(ffi::user_context_expand(Status(error).ReleaseRep()));
}

}  // namespace v0
}  // namespace purlin

#include "purlin/xla_ffi_host.h"

#include <utility>

#include "cpp/internal/bytes.h"
#include "cpp/internal/convert.h"
#include "cpp/internal/functions.h"
#include "cpp/internal/gone.h"
#include "cpp/internal/handle.h"
#include "cpp/internal/keep.h"
#include "purlin-bridge/src/xla_ffi_host.rs.h"
#include "purlin/internal/callback.h"

namespace purlin {
inline namespace v0 {

XlaFfiHandlers::XlaFfiHandlers() : Handle(ffi::xla_ffi_handlers_new()) {}

XlaFfiHandlers::~XlaFfiHandlers() { internal::GiveUp<ffi::xla_ffi_handlers_release>(rep_); }

Status XlaFfiHandlers::Register(std::string_view name, const XlaFfiBundle& bundle, std::shared_ptr<const void> owner) {
  if (rep_ == nullptr) return internal::Gone("XlaFfiHandlers");

  const internal::Callback keeps = internal::Keep(std::move(owner));
  return Status::FromRep(internal::purlin_xla_ffi_handlers_register(rep_, internal::ToBytes(name), &bundle, &keeps));
}

Status XlaFfiHandlers::Register(std::string_view name, XlaFfiHandler* execute, std::shared_ptr<const void> owner) {
  XlaFfiBundle bundle;
  bundle.execute = execute;
  return Register(name, bundle, std::move(owner));
}

std::vector<std::string> XlaFfiHandlers::names() const {
  std::vector<std::string> names;
  if (rep_ == nullptr) return names;
  for (const rust::String& name : ffi::xla_ffi_handlers_names(*rep_)) names.emplace_back(name);
  return names;
}

const XLA_FFI_Api* XlaFfiHostApi() noexcept {
  return static_cast<const XLA_FFI_Api*>(internal::purlin_xla_ffi_host_api());
}

ExecuteContext::ExecuteContext() : Handle(ffi::execute_context_new()) {}

ExecuteContext::~ExecuteContext() { internal::GiveUp<ffi::execute_context_release>(rep_); }

Status ExecuteContext::Insert(std::int64_t type_id, std::shared_ptr<void> value) {
  if (rep_ == nullptr) return internal::Gone("ExecuteContext");

  void* const data = value.get();
  const internal::Callback keeps = internal::Keep(std::move(value));
  return Status::FromRep(internal::purlin_execute_context_insert(rep_, type_id, data, &keeps));
}

}  // namespace v0
}  // namespace purlin

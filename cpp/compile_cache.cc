#include "purlin/compile_cache.h"

#include <string>
#include <vector>

#include "cpp/internal/gone.h"
#include "cpp/internal/handle.h"
#include "cpp/internal/kernel_source.h"
#include "purlin-bridge/src/compile_cache.rs.h"
#include "purlin/internal/callback.h"

namespace purlin {
inline namespace v0 {

CompileCache::CompileCache() noexcept : Handle(ffi::compile_cache_new()) {}

CompileCache::CompileCache(const CompileCache& other) noexcept
    : Handle(internal::Shared<ffi::compile_cache_retain>(other.rep_)) {}

CompileCache::~CompileCache() { internal::GiveUp<ffi::compile_cache_release>(rep_); }

void CompileCache::Get(const KernelSource& source, internal::ExecutorRef executor, internal::Callback done) const {
  if (rep_ == nullptr) {
    executor.release(executor.data);
    return internal::GoneAndTold("CompileCache", &done).IgnoreError();
  }
  const internal::SourceWords words(source);
  internal::purlin_compile_cache_get(rep_, &words.raw(), executor, done);
}

Ptx CompileCache::Take(const void* compiled, const std::vector<std::string>& expressions) {
  // Given up as the box that it is.
  return internal::TakePtx(static_cast<internal::PtxRep*>(const_cast<void*>(compiled)), expressions);
}

bool CompileCache::Forget(const KernelSource& source) const {
  if (rep_ == nullptr) return false;
  return internal::purlin_compile_cache_forget(rep_, &internal::SourceWords(source).raw());
}

void CompileCache::ForgetErrors() const noexcept {
  if (rep_ != nullptr) ffi::compile_cache_forget_errors(*rep_);
}

void CompileCache::Clear() const noexcept {
  if (rep_ != nullptr) ffi::compile_cache_clear(*rep_);
}

std::size_t CompileCache::size() const noexcept { return rep_ == nullptr ? 0 : ffi::compile_cache_size(*rep_); }

}  // namespace v0
}  // namespace purlin

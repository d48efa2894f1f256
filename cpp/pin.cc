#include "cpp/internal/pin.h"

#if defined(_WIN32)
#ifndef NOMINMAX
#define NOMINMAX
#endif
#include <windows.h>
#else
#include <dlfcn.h>
#if defined(__ELF__)
#include <link.h>
#endif
#endif

#include <cstddef>
#include <cstdint>

namespace purlin {
inline namespace v0 {
namespace internal {

#if defined(_WIN32)

void Pin(const void* code) noexcept {
  HMODULE module = nullptr;
  GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_PIN,
                     static_cast<const wchar_t*>(code), &module);
}

#else

namespace {

#if defined(__ELF__)

struct Search {
  std::uintptr_t code;
  const char* name;
};

/// Notes the name of the library that has the address, and ends the search.
int Look(dl_phdr_info* library, std::size_t, void* data) {
  auto* search = static_cast<Search*>(data);
  for (std::size_t i = 0; i < library->dlpi_phnum; ++i) {
    const auto& part = library->dlpi_phdr[i];
    const std::uintptr_t begin = library->dlpi_addr + part.p_vaddr;
    if (part.p_type != PT_LOAD || search->code < begin || search->code - begin >= part.p_memsz) continue;
    search->name = library->dlpi_name;
    return 1;
  }
  return 0;
}

/// The name of the library that has the address: the loader's own, which lives as long as the library, whose code waits
/// for our return. Null or empty for the program itself, and a static one is all there is.
const char* LibraryOf(const void* code) noexcept {
  Search search = {reinterpret_cast<std::uintptr_t>(code), nullptr};
  dl_iterate_phdr(&Look, &search);
  return search.name;
}

#else

/// As above. The program has a name, too, and is pinned in vain.
const char* LibraryOf(const void* code) noexcept {
  Dl_info found = {};
  return ::dladdr(code, &found) != 0 ? found.dli_fname : nullptr;
}

#endif

}  // namespace

void Pin(const void* code) noexcept {
  const char* name = LibraryOf(code);
  if (name == nullptr || *name == '\0') return;
  void* pinned = ::dlopen(name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
  if (pinned != nullptr) ::dlclose(pinned);  // It stays, by RTLD_NODELETE.
}

#endif

}  // namespace internal
}  // namespace v0
}  // namespace purlin

#include "cpp/internal/pin.h"

#include <dlfcn.h>
#include <link.h>

#include <cstddef>
#include <cstdint>

namespace purlin {
inline namespace v0 {
namespace internal {
namespace {

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

}  // namespace

void Pin(const void* code) noexcept {
  // The name is the loader's, and lives as long as the library, which is there while its code waits for our return.
  Search search = {reinterpret_cast<std::uintptr_t>(code), nullptr};
  dl_iterate_phdr(&Look, &search);
  // The program itself has no name, and a static one is all there is.
  if (search.name == nullptr || *search.name == '\0') return;
  void* pinned = ::dlopen(search.name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
  if (pinned != nullptr) ::dlclose(pinned);  // It stays, by RTLD_NODELETE.
}

}  // namespace internal
}  // namespace v0
}  // namespace purlin

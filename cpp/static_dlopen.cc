// dlopen, for all of Purlin, as libpurlin.a has it. GNU ld warns of every static program that names dlopen, which
// cannot work there. So libpurlin.a is prelinked with --wrap=dlopen (cmake/PurlinLibraries.cmake), and asks for the
// function at run time: a dynamic program has it, a static one answers null. Nothing where there is no ELF, and so no
// prelinking.

#if defined(__ELF__)

#include <dlfcn.h>

extern "C" {

// The name is the one that --wrap gives. In libpurlin.so nothing calls it.
// NOLINTNEXTLINE(bugprone-reserved-identifier)
__attribute__((visibility("hidden"))) void* __wrap_dlopen(const char* name, int flags) {
  using Dlopen = void* (*)(const char*, int);
  const auto open = reinterpret_cast<Dlopen>(dlsym(RTLD_DEFAULT, "dlopen"));
  return open == nullptr ? nullptr : open(name, flags);
}

}  // extern "C"

#endif

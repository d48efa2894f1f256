# Sanitizers over C++ and Rust together. Sets, for the whole build: compile and link options, and for cargo
# purlin_sanitize_rustflags, purlin_sanitize_environment and purlin_sanitize_cargo_flags.
#
# rustc 1.95 has the -Z flags behind RUSTC_BOOTSTRAP; its std stays uninstrumented. That is enough for ASan. For TSan
# the locks must be instrumented too: --cfg purlin_tsan makes rust/base take parking_lot, compiled with us, for std's.
# For ASan --cfg purlin_asan makes it take each block of memory from the system, so that ASan sees where it ends and
# when it is freed.
set(purlin_sanitize_rustflags "")
set(purlin_sanitize_environment "")
set(purlin_sanitize_cargo_flags "")
if(NOT PURLIN_SANITIZE)
  return()
endif()

# C++ at -O1, Rust by the profile `sanitize` and -g1 halve the time to compile; reports still have every line.
if(PURLIN_SANITIZE STREQUAL "address")
  set(purlin_sanitize_flags -O1 -fsanitize=address,undefined -fno-sanitize-recover=undefined
      -fno-omit-frame-pointer -g1)
  list(APPEND purlin_sanitize_rustflags --cfg purlin_asan)
elseif(PURLIN_SANITIZE STREQUAL "thread")
  set(purlin_sanitize_flags -O1 -fsanitize=thread -fno-omit-frame-pointer -g1)
  list(APPEND purlin_sanitize_rustflags --cfg purlin_tsan)
else()
  message(FATAL_ERROR "PURLIN_SANITIZE is '${PURLIN_SANITIZE}'; it may be address, thread or empty")
endif()
if(PURLIN_BUILD_STATIC)
  message(FATAL_ERROR "PURLIN_SANITIZE=${PURLIN_SANITIZE} needs PURLIN_BUILD_STATIC=OFF: prelinked objects give false "
                      "odr-violation reports, and each program would hold seventy megabytes of instrumented code")
endif()

list(APPEND purlin_sanitize_rustflags -Zsanitizer=${PURLIN_SANITIZE} -Cunsafe-allow-abi-mismatch=sanitizer
            -Cforce-frame-pointers=yes -Cdebuginfo=1)
set(purlin_sanitize_environment RUSTC_BOOTSTRAP=1)
# The library, the plugin and the reference model are built one after the other: with the features of the whole
# workspace, so that what they share is compiled once.
list(APPEND purlin_sanitize_cargo_flags -Zfeature-unification --config "resolver.feature-unification=\"workspace\"")
add_compile_options(${purlin_sanitize_flags})
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Its manual: "-fsanitize=... may cause false positives" of these warnings. Builds without sanitizers have them.
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized> $<$<COMPILE_LANGUAGE:CXX>:-Wno-uninitialized>)
endif()
add_link_options(${purlin_sanitize_flags})
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  # Its static runtime defines operator new, as some of the tests do. GCC's is shared by default.
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-runtime-dir OUTPUT_VARIABLE purlin_sanitize_runtime
                  OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  add_link_options(-shared-libsan LINKER:-rpath,${purlin_sanitize_runtime})
endif()
if(PURLIN_SANITIZE STREQUAL "thread")
  # In whatever has Rust's code, by cargo's links and by CMake's.
  enable_language(C)
  add_library(purlin_tsan_shim OBJECT ${PROJECT_SOURCE_DIR}/cmake/tsan_shim.c)
  target_compile_options(purlin_tsan_shim PRIVATE -fno-builtin -fno-sanitize=thread)
  set_target_properties(purlin_tsan_shim PROPERTIES POSITION_INDEPENDENT_CODE ON)
  list(APPEND purlin_sanitize_rustflags -Clink-arg=$<TARGET_OBJECTS:purlin_tsan_shim>
              -Clink-arg=-Wl,--wrap=__tsan_atomic64_fetch_sub)
endif()

# The Rust half: one static archive, libpurlin_rust.a, made by cargo in the build tree, and the headers of the bridge.
#
# Gives: target purlin_rust (imported archive; what links it waits for cargo), purlin_rust_archive (its path), target
# purlin_cargo (what includes the headers waits for it) and purlin_generated_headers (their folder).
# Cargo is asked on every build and decides itself what is out of date; an unchanged archive rebuilds nothing further.

find_program(PURLIN_CARGO cargo HINTS $ENV{CARGO_HOME}/bin $ENV{HOME}/.cargo/bin DOC "Rust's cargo")
find_program(PURLIN_RUSTC rustc HINTS $ENV{CARGO_HOME}/bin $ENV{HOME}/.cargo/bin DOC "Rust's compiler")
if(NOT PURLIN_CARGO OR NOT PURLIN_RUSTC)
  message(FATAL_ERROR "Purlin is written in Rust: cargo and rustc are needed to build it (not to use it). "
                      "Put them on PATH, or set PURLIN_CARGO and PURLIN_RUSTC.")
endif()

execute_process(COMMAND ${PURLIN_RUSTC} -vV OUTPUT_VARIABLE rustc_version COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCH "host: ([^\n]+)" host_line "${rustc_version}")
set(rust_host ${CMAKE_MATCH_1})
if(NOT PURLIN_RUST_TARGET)
  if(CMAKE_CROSSCOMPILING)
    message(FATAL_ERROR "A build for ${CMAKE_SYSTEM_NAME} on ${CMAKE_SYSTEM_PROCESSOR} needs PURLIN_RUST_TARGET, such as "
                        "aarch64-unknown-linux-gnu, and rustc's standard library for it.")
  endif()
  set(PURLIN_RUST_TARGET ${rust_host} CACHE STRING "Rust target triple")
endif()
set(PURLIN_RUSTFLAGS "$ENV{RUSTFLAGS}" CACHE STRING "Flags for rustc, added to Purlin's own")
set(PURLIN_CARGO_FLAGS "" CACHE STRING "Flags for cargo build, such as --offline")
set(PURLIN_CARGO_TARGET_DIR ${PROJECT_BINARY_DIR}/cargo CACHE PATH "Where cargo builds; build trees with equal flags may share one")

if(PURLIN_SANITIZE)
  set(cargo_profile sanitize)
  set(cargo_folder sanitize)
elseif(CMAKE_BUILD_TYPE STREQUAL "Debug")
  set(cargo_profile dev)
  set(cargo_folder debug)
else()
  set(cargo_profile release)
  set(cargo_folder release)
endif()
set(purlin_rust_archive ${PURLIN_CARGO_TARGET_DIR}/${PURLIN_RUST_TARGET}/${cargo_folder}/libpurlin_rust.a)

# Named one by one, so that what includes a header is compiled again in the same run in which cargo writes it anew.
set(purlin_generated_headers ${PURLIN_CARGO_TARGET_DIR}/headers)
set(bridge_script ${PROJECT_SOURCE_DIR}/rust/bridge/build.rs)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${bridge_script})
file(STRINGS ${bridge_script} bridges REGEX "^    \"src/[a-z_]+\\.rs\",$")
set(bridge_headers ${purlin_generated_headers}/rust/cxx.h ${purlin_generated_headers}/purlin-bridge/functions.h)
foreach(bridge ${bridges})
  string(REGEX REPLACE "^ *\"(.*)\",$" "${purlin_generated_headers}/purlin-bridge/\\1.h" header "${bridge}")
  list(APPEND bridge_headers ${header})
endforeach()

separate_arguments(rustflags UNIX_COMMAND "${PURLIN_RUSTFLAGS}")
list(APPEND rustflags ${purlin_sanitize_rustflags})
# For cxx.cc and the C++ half of the bridge, which cargo compiles: the same compiler and flags as for our own C++, but
# its warnings are not ours.
list(JOIN purlin_sanitize_flags " " sanitize_flags)
set(cargo_cxxflags "${CMAKE_CXX_FLAGS} ${sanitize_flags} -fvisibility=hidden -fno-exceptions -w")
if(CMAKE_SYSROOT)
  string(APPEND cargo_cxxflags " --sysroot=${CMAKE_SYSROOT}")
endif()
if(CMAKE_CXX_COMPILER_TARGET AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  string(APPEND cargo_cxxflags " --target=${CMAKE_CXX_COMPILER_TARGET}")
endif()
# In a cross build they are for the target alone: build scripts are of the host.
set(for_target "")
if(NOT PURLIN_RUST_TARGET STREQUAL rust_host)
  string(REPLACE "-" "_" for_target "_${PURLIN_RUST_TARGET}")
endif()
if(NOT cargo_profile STREQUAL "dev")
  # Panic messages name source files. The folders of the machine that builds are kept out of them.
  if(DEFINED ENV{CARGO_HOME})
    set(cargo_home $ENV{CARGO_HOME})
  else()
    set(cargo_home $ENV{HOME}/.cargo)
  endif()
  list(APPEND rustflags "--remap-path-prefix=${cargo_home}=cargo" "--remap-path-prefix=${PROJECT_SOURCE_DIR}=purlin")
  if(NOT cargo_home MATCHES " ")  # CXXFLAGS are split at spaces.
    string(APPEND cargo_cxxflags " -ffile-prefix-map=${cargo_home}=cargo")
  endif()
endif()
string(ASCII 31 separator)  # What CARGO_ENCODED_RUSTFLAGS wants between flags, so that paths may hold spaces.
list(JOIN rustflags "${separator}" encoded_rustflags)

list(TRANSFORM purlin_features PREPEND "purlin-lib/" OUTPUT_VARIABLE cargo_features)
list(JOIN cargo_features "," cargo_features)
separate_arguments(cargo_flags UNIX_COMMAND "${PURLIN_CARGO_FLAGS}")
list(APPEND cargo_flags ${purlin_sanitize_cargo_flags})

set(purlin_cargo_environment ${purlin_sanitize_environment}
  "CARGO_TARGET_DIR=${PURLIN_CARGO_TARGET_DIR}" "CARGO_ENCODED_RUSTFLAGS=${encoded_rustflags}"
  "PURLIN_GENERATED_HEADERS=${purlin_generated_headers}"
  "RUSTC=${PURLIN_RUSTC}" "AR${for_target}=${CMAKE_AR}" "CXX${for_target}=${CMAKE_CXX_COMPILER}"
  "CXXFLAGS${for_target}=${cargo_cxxflags}")
add_custom_target(purlin_cargo
  COMMAND ${CMAKE_COMMAND} -E env ${purlin_cargo_environment}
          ${PURLIN_CARGO} build --locked --package purlin-lib --profile ${cargo_profile} --target ${PURLIN_RUST_TARGET}
          --no-default-features --features=${cargo_features} ${cargo_flags}
  WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
  BYPRODUCTS ${purlin_rust_archive} ${bridge_headers}
  COMMENT "cargo build --package purlin-lib --profile ${cargo_profile}"
  USES_TERMINAL VERBATIM)

if(TARGET purlin_tsan_shim)
  add_dependencies(purlin_cargo purlin_tsan_shim)
endif()

# libpjrt_purlin.a with the sanitizer, for tests/plugin_calls: the plugin as an archive, linked into the test.
if(PURLIN_SANITIZE)
  set(purlin_plugin_archive ${PURLIN_CARGO_TARGET_DIR}/${PURLIN_RUST_TARGET}/${cargo_folder}/libpjrt_purlin.a)
  add_custom_target(purlin_plugin_cargo
    COMMAND ${CMAKE_COMMAND} -E env ${purlin_cargo_environment}
            ${PURLIN_CARGO} rustc --locked --package purlin-plugin --lib --crate-type staticlib --profile ${cargo_profile}
            --target ${PURLIN_RUST_TARGET} ${cargo_flags}
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
    BYPRODUCTS ${purlin_plugin_archive}
    COMMENT "cargo rustc --package purlin-plugin --crate-type staticlib --profile ${cargo_profile}"
    USES_TERMINAL VERBATIM)
  add_dependencies(purlin_plugin_cargo purlin_cargo)  # One after the other, in one folder.
  # The fake CUDA driver and the reference model's program, for the tests `cuda.*`. The driver finds the sanitizer's
  # functions in the program that opens it.
  set(purlin_fakecuda_folder ${PURLIN_CARGO_TARGET_DIR}/${PURLIN_RUST_TARGET}/${cargo_folder}/deps)
  set(purlin_reference_program ${PURLIN_CARGO_TARGET_DIR}/${PURLIN_RUST_TARGET}/${cargo_folder}/purlin-reference)
  add_custom_target(purlin_reference_cargo ALL
    COMMAND ${CMAKE_COMMAND} -E env ${purlin_cargo_environment}
            ${PURLIN_CARGO} rustc --locked --package purlin-reference --bin purlin-reference --profile ${cargo_profile}
            --target ${PURLIN_RUST_TARGET} ${cargo_flags} -- -Clink-arg=-rdynamic
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
    BYPRODUCTS ${purlin_reference_program} ${purlin_fakecuda_folder}/libcuda.so
    COMMENT "cargo rustc --package purlin-reference --profile ${cargo_profile}"
    USES_TERMINAL VERBATIM)
  add_dependencies(purlin_reference_cargo purlin_plugin_cargo)
  # The Rust tests of the CUDA backend, for `scripts/sanitize address --cuda`.
  add_custom_target(purlin_cuda_cargo)
  foreach(suite conformance fake)
    add_custom_target(purlin_cuda_${suite}_cargo
      COMMAND ${CMAKE_COMMAND} -E env ${purlin_cargo_environment}
              ${PURLIN_CARGO} rustc --locked --package purlin-cuda --test ${suite} --profile ${cargo_profile}
              --target ${PURLIN_RUST_TARGET} ${cargo_flags} -- -Clink-arg=-rdynamic
      WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
      COMMENT "cargo rustc --package purlin-cuda --test ${suite} --profile ${cargo_profile}"
      USES_TERMINAL VERBATIM)
    add_dependencies(purlin_cuda_${suite}_cargo purlin_cargo)
    add_dependencies(purlin_cuda_cargo purlin_cuda_${suite}_cargo)
  endforeach()
  add_dependencies(purlin_cuda_fake_cargo purlin_cuda_conformance_cargo)
endif()

add_library(purlin_rust STATIC IMPORTED GLOBAL)
set_target_properties(purlin_rust PROPERTIES IMPORTED_LOCATION ${purlin_rust_archive})
add_dependencies(purlin_rust purlin_cargo)

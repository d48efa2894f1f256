# libpurlin.a and libpurlin.so, out of the objects of cpp/ (purlin_objects) and the Rust archive (purlin_rust).

include(CheckLinkerFlag)

# What Rust's std asks of the system. libgcc_s, libstdc++ and libc come with the C++ compiler driver; naming libgcc_s
# here would break -static. With glibc >= 2.34 all of these are empty. As flags, so that a target called "util" is not
# meant.
if(WIN32)
  set(PURLIN_SYSTEM_LIBRARIES -lkernel32 -lntdll -luserenv -lws2_32 -ldbghelp)
elseif(APPLE)
  set(PURLIN_SYSTEM_LIBRARIES -lSystem -lm)
else()
  set(PURLIN_SYSTEM_LIBRARIES -lutil -lrt -lpthread -lm -ldl)
endif()
set(exported_symbols ${PROJECT_SOURCE_DIR}/cmake/exported_symbols.txt)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${exported_symbols})
if(PURLIN_SANITIZE OR CMAKE_BUILD_TYPE STREQUAL "Debug" OR CMAKE_BUILD_TYPE STREQUAL "RelWithDebInfo")
  set(keep_debug ON)
else()
  set(keep_debug OFF)
endif()

# Never unloaded: its threads run its code, and its users' labels and places are read as long as there is a process
# (include/purlin/label.h). A shared library that links either of the two is not unloaded either.
# Where the linker has no word for that, the library pins what calls it (cpp/pin.cc).
check_linker_flag(CXX LINKER:-z,nodelete PURLIN_LINKER_HAS_NODELETE)
set(never_unloaded "")
if(PURLIN_LINKER_HAS_NODELETE)
  set(never_unloaded $<$<IN_LIST:$<TARGET_PROPERTY:TYPE>,MODULE_LIBRARY$<SEMICOLON>SHARED_LIBRARY>:LINKER:-z,nodelete>)
endif()

function(purlin_describe target kind)
  target_include_directories(${target} ${kind} $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                             $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(${target} ${kind} cxx_std_17)
  target_link_options(${target} INTERFACE ${never_unloaded})
  add_library(purlin::${target} ALIAS ${target})
endfunction()

# Prelinked: one object of everything, in which only purlin:: stays global, so that a program may hold another Rust
# library or another user of cxx beside it. --force-group-allocation makes the hidden parts of COMDAT groups our own
# (lld refuses them otherwise); .llvmbc/.llvmcmd are Rust's bitcode, which makes some ranlibs abort. CUDA's driver is
# loaded by dlopen, which is wrapped for the sake of static programs (cpp/static_dlopen.cc).
# Where the linker or objcopy cannot do that, there is no archive, and CMake says so.
if(PURLIN_BUILD_STATIC)
  # In a cross build they are the target's, whose triple the compiler's name begins with, or clang is given.
  set(triple "")
  cmake_path(GET CMAKE_CXX_COMPILER FILENAME compiler_name)
  if(CMAKE_CROSSCOMPILING AND compiler_name MATCHES "^(.+-)[gc]\\+\\+")
    set(triple ${CMAKE_MATCH_1})
  elseif(CMAKE_CROSSCOMPILING AND CMAKE_CXX_COMPILER_TARGET)
    set(triple ${CMAKE_CXX_COMPILER_TARGET}-)
  endif()
  find_program(PURLIN_LD NAMES ${triple}ld.bfd ${triple}ld DOC "A linker with -r and --force-group-allocation, for the prelink step")
  find_program(PURLIN_OBJCOPY NAMES ${triple}objcopy DOC "objcopy with --keep-global-symbols, for the prelink step")
  set(not_prelinked "")
  set(help_of_ld "")
  set(help_of_objcopy "")
  if(PURLIN_LD)
    execute_process(COMMAND ${PURLIN_LD} --help OUTPUT_VARIABLE help_of_ld ERROR_QUIET)
  endif()
  if(PURLIN_OBJCOPY)
    execute_process(COMMAND ${PURLIN_OBJCOPY} --help OUTPUT_VARIABLE help_of_objcopy ERROR_QUIET)
  endif()
  if(NOT help_of_ld MATCHES "--force-group-allocation")
    set(not_prelinked "there is no linker with --force-group-allocation (PURLIN_LD is '${PURLIN_LD}')")
  elseif(NOT help_of_objcopy MATCHES "--keep-global-symbols")
    set(not_prelinked "there is no objcopy with --keep-global-symbols (PURLIN_OBJCOPY is '${PURLIN_OBJCOPY}')")
  endif()
  if(not_prelinked)
    message(FATAL_ERROR "Purlin: libpurlin.a is made by a prelink step, and ${not_prelinked}. Name one, or build the shared "
                        "library alone: -DPURLIN_BUILD_STATIC=OFF -DPURLIN_BUILD_SHARED=ON")
  endif()
  set(prelinked ${PROJECT_BINARY_DIR}/purlin_prelinked.o)
  set(localised ${PROJECT_BINARY_DIR}/purlin_localised.o)
  add_custom_command(OUTPUT ${localised}
    COMMAND ${PURLIN_LD} -r --force-group-allocation --wrap=dlopen -o ${prelinked} $<TARGET_OBJECTS:purlin_objects> ${purlin_rust_archive}
    COMMAND ${PURLIN_OBJCOPY} --wildcard --keep-global-symbols=${exported_symbols} --localize-hidden
            --remove-section=.llvmbc --remove-section=.llvmcmd $<$<NOT:$<BOOL:${keep_debug}>>:--strip-debug>
            ${prelinked} ${localised}
    COMMAND ${CMAKE_COMMAND} -E rm -f ${prelinked}
    DEPENDS purlin_objects purlin_cargo $<TARGET_OBJECTS:purlin_objects> ${purlin_rust_archive} ${exported_symbols}
    COMMENT "Prelinking libpurlin.a" COMMAND_EXPAND_LISTS VERBATIM)
  add_library(purlin_static STATIC ${localised})
  set_source_files_properties(${localised} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
  set_target_properties(purlin_static PROPERTIES OUTPUT_NAME purlin DEBUG_POSTFIX d LINKER_LANGUAGE CXX)
  target_link_libraries(purlin_static INTERFACE ${PURLIN_SYSTEM_LIBRARIES})
  purlin_describe(purlin_static INTERFACE)
endif()

if(PURLIN_BUILD_SHARED)
  file(STRINGS ${exported_symbols} patterns REGEX "^[^#]")
  list(JOIN patterns "; " patterns)
  set(version_script ${PROJECT_BINARY_DIR}/purlin.map)
  file(CONFIGURE OUTPUT ${version_script} CONTENT "PURLIN_0 { global: ${patterns}; local: *; };\n")
  check_linker_flag(CXX LINKER:--version-script=${version_script} PURLIN_LINKER_HAS_VERSION_SCRIPTS)
  if(PURLIN_LINKER_HAS_VERSION_SCRIPTS)
    set(shared_options LINKER:--version-script=${version_script} LINKER:--no-undefined LINKER:-z,nodelete LINKER:--gc-sections
                       LINKER:--as-needed $<$<NOT:$<BOOL:${keep_debug}>>:LINKER:--strip-debug>)
  else()
    set(shared_options "")
    message(WARNING "Purlin: libpurlin shows the names of Rust and of cxx, too, because the linker takes no version script.")
  endif()
  add_library(purlin_shared SHARED $<TARGET_OBJECTS:purlin_objects>)
  set_target_properties(purlin_shared PROPERTIES OUTPUT_NAME purlin DEBUG_POSTFIX d LINKER_LANGUAGE CXX
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR} LINK_DEPENDS ${version_script})
  target_link_libraries(purlin_shared PRIVATE $<BUILD_INTERFACE:purlin_rust> ${PURLIN_SYSTEM_LIBRARIES})
  target_link_options(purlin_shared PRIVATE ${shared_options})
  if(PURLIN_SANITIZE STREQUAL "thread")
    target_sources(purlin_shared PRIVATE $<TARGET_OBJECTS:purlin_tsan_shim>)
    target_link_options(purlin_shared PRIVATE LINKER:--wrap=__tsan_atomic64_fetch_sub)
  endif()
  purlin_describe(purlin_shared INTERFACE)
endif()

# purlin::purlin, by the rule at the top of CMakeLists.txt.
if(DEFINED PURLIN_USE_STATIC_LIBS)
  set(use_static ${PURLIN_USE_STATIC_LIBS})
elseif(BUILD_SHARED_LIBS OR NOT PURLIN_BUILD_STATIC)
  set(use_static OFF)
else()
  set(use_static ON)
endif()
if(use_static AND TARGET purlin_static)
  add_library(purlin::purlin ALIAS purlin_static)
elseif(NOT use_static AND TARGET purlin_shared)
  add_library(purlin::purlin ALIAS purlin_shared)
else()
  message(FATAL_ERROR "purlin::purlin is to be static: ${use_static}, but PURLIN_BUILD_STATIC is ${PURLIN_BUILD_STATIC} "
                      "and PURLIN_BUILD_SHARED is ${PURLIN_BUILD_SHARED}")
endif()

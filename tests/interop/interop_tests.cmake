# How tests of adapters are compiled and run. All are compiled without exceptions and RTTI, unless EXCEPTIONS or RTTI is
# said, with every warning an error.
get_filename_component(purlin_source ${CMAKE_CURRENT_SOURCE_DIR}/../.. ABSOLUTE)
find_program(PURLIN_CLANGXX NAMES clang++-22 clang++ DOC "The second compiler, which only looks")
set(CMAKE_NO_SYSTEM_FROM_IMPORTED ON)  # Warnings in Purlin's headers count.
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
# What clang would say of system headers all the same: Eigen's std::result_of, which g++ looks out for in ours, and the
# __COUNTER__ in TensorFlow's macros.
set(clang_flags -Wno-deprecated-declarations -Wno-c2y-extensions -Wno-unknown-warning-option)
# The limit of a test in seconds: TensorFlow's headers take clang a minute, TensorFlow and JAX a quarter of one to load,
# where cores are busy.
set(purlin_interop_seconds 300)
# Without what a change seldom touches: a second compiler's look at each source, and tests compiled twice.
option(PURLIN_INTEROP_QUICK "One compiler, and of a test that is compiled with and without AddressSanitizer only one" OFF)
# GNU's other linker takes a third of the time that libtensorflow_cc.so takes the default one. Modules do without: it
# exports names of its own from them, such as `_end`.
find_program(PURLIN_GOLD NAMES ld.gold DOC "The linker of quick tests")
if(PURLIN_INTEROP_QUICK AND PURLIN_GOLD)
  string(APPEND CMAKE_EXE_LINKER_FLAGS " -fuse-ld=gold")
endif()
# The headers of TensorFlow are most of the time; those of Eigen take twice as long with -O1.
set(optimised -O1)
if(PURLIN_INTEROP_QUICK)
  set(optimised -O0)
endif()
set(purlin_flags ${optimised} -Wall -Wextra -Wpedantic -Wconversion -Werror)
# Debian's abseil is compiled by g++ 12; since 18, clang has other names for some of its templates.
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  list(APPEND purlin_flags ${clang_flags} -fclang-abi-compat=17)
endif()

# A test that says why it does not run.
function(purlin_interop_skip name why)
  add_test(NAME ${name} COMMAND sh -c "echo \"skipped: $0\" && exit 77" "${why}")
  set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77)
endfunction()

# Sets `missing` to the reason why not all of the other sides are here, or to nothing.
function(purlin_interop_missing out)
  set(${out} "" PARENT_SCOPE)
  foreach(side ${ARGN})
    if(NOT TARGET other_${side})
      set(${out} "${why_not_${side}}" PARENT_SCOPE)
    endif()
  endforeach()
endfunction()

# Ends the function that says it, and skips the test `name`, where not all of the other sides are here.
macro(purlin_interop_needs name)
  purlin_interop_missing(missing ${ARGN})
  if(missing)
    purlin_interop_skip(${name} "${missing}")
    return()
  endif()
endmacro()

# Flags and other sides for a target, and a test `clang.NAME` in which clang looks at its source.
function(purlin_interop_compile target name source)
  cmake_parse_arguments(PARSE_ARGV 3 arg "EXCEPTIONS;RTTI" "" "OTHER_SIDES")
  set(flags ${purlin_flags})
  if(NOT arg_EXCEPTIONS)
    list(APPEND flags -fno-exceptions)
  endif()
  if(NOT arg_RTTI AND NOT arg_EXCEPTIONS)
    list(APPEND flags -fno-rtti)
  endif()
  set(include ${purlin_source})
  set(system "")
  set(define "")
  foreach(side ${arg_OTHER_SIDES})
    target_link_libraries(${target} PRIVATE other_${side})
    # Not /usr/include: said again, it comes before where libstdc++ looks next.
    list(APPEND system $<FILTER:$<TARGET_PROPERTY:other_${side},INTERFACE_INCLUDE_DIRECTORIES>,EXCLUDE,^/usr/include$>)
    list(APPEND define $<TARGET_PROPERTY:other_${side},INTERFACE_COMPILE_DEFINITIONS>)
  endforeach()
  target_include_directories(${target} PRIVATE ${include})
  target_compile_features(${target} PRIVATE cxx_std_17)
  target_compile_options(${target} PRIVATE ${flags})
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF CXX_VISIBILITY_PRESET hidden
                        VISIBILITY_INLINES_HIDDEN ON)
  if(PURLIN_INTEROP_QUICK)
    return()
  endif()
  if(PURLIN_CLANGXX)
    set(purlin_include $<TARGET_PROPERTY:purlin::purlin,INTERFACE_INCLUDE_DIRECTORIES>)
    add_test(NAME clang.${name} COMMAND_EXPAND_LISTS COMMAND ${PURLIN_CLANGXX} -std=c++17 -fsyntax-only ${flags} ${clang_flags}
      "-I$<JOIN:${include},;-I>" "-I$<JOIN:${purlin_include},;-I>"
      "$<$<BOOL:${system}>:-isystem$<JOIN:${system},;-isystem>>" "$<$<BOOL:${define}>:-D$<JOIN:${define},;-D>>"
      ${CMAKE_CURRENT_SOURCE_DIR}/${source})
    set_tests_properties(clang.${name} PROPERTIES TIMEOUT ${purlin_interop_seconds} LABELS clang)
  else()
    purlin_interop_skip(clang.${name} "there is no clang++-22")
  endif()
endfunction()

# The main function of the test programs is that of tests/cpp: what a test leaves behind is a failure.
add_library(purlin_interop_main OBJECT ${purlin_source}/tests/cpp/main.cc)
target_include_directories(purlin_interop_main PRIVATE ${purlin_source})
target_compile_features(purlin_interop_main PRIVATE cxx_std_17)
target_link_libraries(purlin_interop_main PRIVATE purlin::purlin GTest::gtest)

# purlin_interop_test(NAME SOURCE [EXCEPTIONS] [RTTI] [ASAN] [RUN command...] OTHER_SIDES side...): a GoogleTest
# program, run as the test NAME, by the command if there is one. With ASAN, it is compiled a second time with
# AddressSanitizer and run as asan.NAME, which looks for leaks, too. Purlin's archive and the other side are as they
# are: their own accesses are not seen.
function(purlin_interop_test name source)
  cmake_parse_arguments(PARSE_ARGV 2 arg "EXCEPTIONS;RTTI;ASAN" "" "RUN;OTHER_SIDES")
  purlin_interop_needs(${name} ${arg_OTHER_SIDES})
  list(REMOVE_ITEM ARGN ASAN RUN ${arg_RUN})
  string(REPLACE . _ target test_${name})
  add_executable(${target} ${source} $<TARGET_OBJECTS:purlin_interop_main>)
  purlin_interop_compile(${target} ${name} ${source} ${ARGN})
  target_link_libraries(${target} PRIVATE purlin::purlin GTest::gtest Threads::Threads)
  # Tests with RTTI include XLA's clients, whose headers are precompiled, but not for AddressSanitizer.
  if(arg_ASAN AND PURLIN_INTEROP_QUICK AND NOT arg_RTTI)
    purlin_interop_sanitize(${target} asan.${name})
    return()
  endif()
  add_test(NAME ${name} COMMAND ${arg_RUN} $<TARGET_FILE:${target}>)
  set_tests_properties(${name} PROPERTIES TIMEOUT ${purlin_interop_seconds})
  if(arg_ASAN AND NOT PURLIN_INTEROP_QUICK)
    add_executable(asan_${target} ${source} $<TARGET_OBJECTS:purlin_interop_main>)
    foreach(property COMPILE_OPTIONS INCLUDE_DIRECTORIES LINK_LIBRARIES)
      get_target_property(value ${target} ${property})
      set_property(TARGET asan_${target} PROPERTY ${property} ${value})
    endforeach()
    purlin_interop_sanitize(asan_${target} asan.${name})
  endif()
endfunction()

# Compiles a target with AddressSanitizer, and runs it as the test `name`.
function(purlin_interop_sanitize target name)
  # g++ 12 takes std::optionals for uninitialised when it also sanitizes.
  target_compile_options(${target} PRIVATE -g1 -fsanitize=address $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  target_link_options(${target} PRIVATE -fsanitize=address)
  add_test(NAME ${name} COMMAND ${target})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${purlin_interop_seconds})
endfunction()

# purlin_interop_example(NAME [EXCEPTIONS] [RTTI] [RUN command...] OTHER_SIDES side...): examples/adopt/NAME.cc, which
# does the same before and after, and answers 0 if both came to the same. Run as the test adopt.NAME, by the command if
# there is one.
function(purlin_interop_example name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "EXCEPTIONS;RTTI" "" "RUN;OTHER_SIDES")
  purlin_interop_needs(adopt.${name} ${arg_OTHER_SIDES})
  list(REMOVE_ITEM ARGN RUN ${arg_RUN})
  set(source ../../examples/adopt/${name}.cc)
  add_executable(adopt_${name} ${source})
  purlin_interop_compile(adopt_${name} adopt.${name} ${source} ${ARGN})
  target_link_libraries(adopt_${name} PRIVATE purlin::purlin Threads::Threads)
  add_test(NAME adopt.${name} COMMAND ${arg_RUN} $<TARGET_FILE:adopt_${name}>)
  set_tests_properties(adopt.${name} PROPERTIES TIMEOUT ${purlin_interop_seconds})
endfunction()

# purlin_interop_module(NAME SOURCE [EXCEPTIONS] [RTTI] [ONLY] EXPORTS name... OTHER_SIDES side...): a shared library
# NAME.so for Python to load, with the archive of Purlin inside and none of its names outside; the test exports.NAME
# looks. With ONLY, a version script leaves nothing but the EXPORTS, also not what headers made.
function(purlin_interop_module name source)
  cmake_parse_arguments(PARSE_ARGV 2 arg "EXCEPTIONS;RTTI;ONLY" "" "EXPORTS;OTHER_SIDES")
  purlin_interop_missing(missing ${arg_OTHER_SIDES})
  if(missing)
    purlin_interop_skip(exports.${name} "${missing}")
    return()
  endif()
  add_library(${name} MODULE ${source})
  set(kinds "")
  foreach(kind EXCEPTIONS RTTI)
    if(arg_${kind})
      list(APPEND kinds ${kind})
    endif()
  endforeach()
  purlin_interop_compile(${name} ${name} ${source} ${kinds} OTHER_SIDES ${arg_OTHER_SIDES})
  target_link_libraries(${name} PRIVATE purlin::purlin Threads::Threads)
  target_link_options(${name} PRIVATE LINKER:--exclude-libs,ALL LINKER:--no-undefined)
  set_target_properties(${name} PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/modules)
  set(only "")
  if(arg_ONLY)
    set(only --only)
    list(JOIN arg_EXPORTS "; " exports)
    file(WRITE ${CMAKE_CURRENT_BINARY_DIR}/${name}.map "{ global: ${exports}; local: *; };\n")
    target_link_options(${name} PRIVATE LINKER:--version-script,${CMAKE_CURRENT_BINARY_DIR}/${name}.map)
  endif()
  add_test(NAME exports.${name}
    COMMAND ${purlin_source}/tests/symbols/module.sh ${only} $<TARGET_FILE:${name}> ${arg_EXPORTS})
endfunction()

# purlin_interop_python(NAME SCRIPT [ARGUMENTS argument...] OTHER_SIDES side...): python/SCRIPT, run as the test NAME by
# the Python of the virtual environment. PURLIN_INTEROP_MODULES is the folder of the modules. Exit code 77 skips, with
# the reason on its last line.
function(purlin_interop_python name script)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "ARGUMENTS;OTHER_SIDES")
  purlin_interop_needs(${name} ${arg_OTHER_SIDES})
  add_test(NAME ${name}
    COMMAND ${PURLIN_INTEROP_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/python/${script} ${arg_ARGUMENTS})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${purlin_interop_seconds} SKIP_RETURN_CODE 77 ENVIRONMENT
    "PURLIN_INTEROP_MODULES=${CMAKE_CURRENT_BINARY_DIR}/modules;TF_CPP_MIN_LOG_LEVEL=2;JAX_PLATFORMS=cpu")
endfunction()

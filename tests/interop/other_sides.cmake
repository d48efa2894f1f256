# The other sides of the adapters: a library `other_NAME` for each that is on this machine, with what compiling and
# linking against it takes. Their headers are system headers, so that warnings are about ours. `why_not_NAME` is for the
# others.
set(PURLIN_INTEROP_SITE "" CACHE PATH "The site-packages with what scripts/interop has installed")
set(PURLIN_INTEROP_PYTHON "" CACHE FILEPATH "The Python of that")

# Abseil, as Debian 12 has it: 20220623.
set(why_not_absl "Debian's abseil is not on this machine (libabsl-dev)")
find_package(absl QUIET)
if(absl_FOUND)
  add_library(other_absl INTERFACE)
  target_link_libraries(other_absl INTERFACE absl::status absl::statusor absl::any_invocable absl::cord absl::span)
endif()

# The wheel of tensorflow-cpu: TensorFlow, XLA, TSL, Eigen and an abseil of its own. NDEBUG is part of tsl's ABI.
set(why_not_tensorflow "the wheel of tensorflow-cpu is not installed")
set(tensorflow ${PURLIN_INTEROP_SITE}/tensorflow)
if(EXISTS ${tensorflow}/libtensorflow_cc.so.2)
  add_library(other_tensorflow INTERFACE)
  target_link_options(other_tensorflow INTERFACE LINKER:--no-as-needed)  # Sessions register themselves.
  target_include_directories(other_tensorflow SYSTEM INTERFACE
    ${tensorflow}/include ${tensorflow}/include/external/highwayhash
    ${tensorflow}/include/external/farmhash_archive/src)
  target_compile_definitions(other_tensorflow INTERFACE NDEBUG _GLIBCXX_USE_CXX11_ABI=1 EIGEN_MAX_ALIGN_BYTES=64)
  target_link_libraries(other_tensorflow INTERFACE
    ${tensorflow}/libtensorflow_cc.so.2 ${tensorflow}/libtensorflow_framework.so.2)

  # XLA's C++ clients. Their headers want MLIR, of which the wheel has half: a name stands in for it.
  add_library(other_xla INTERFACE)
  target_include_directories(other_xla SYSTEM INTERFACE ${PROJECT_SOURCE_DIR}/../../benches/peers/mlir_stub)
  target_link_libraries(other_xla INTERFACE other_tensorflow)
  # g++ 12 takes what XlaBuilder moves for uninitialised.
  target_compile_options(other_xla INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  # Where AddressSanitizer is on, abseil's hash tables have members which they have not in the wheel.
  target_compile_options(other_xla INTERFACE -U__SANITIZE_ADDRESS__)

  # What Python loads as an op finds TensorFlow in the process.
  add_library(other_tensorflow_framework INTERFACE)
  target_include_directories(other_tensorflow_framework SYSTEM INTERFACE ${tensorflow}/include)
  target_compile_definitions(other_tensorflow_framework INTERFACE
    NDEBUG _GLIBCXX_USE_CXX11_ABI=1 EIGEN_MAX_ALIGN_BYTES=64)
  target_link_libraries(other_tensorflow_framework INTERFACE ${tensorflow}/libtensorflow_framework.so.2)
endif()
set(why_not_tensorflow_framework ${why_not_tensorflow})
set(why_not_xla ${why_not_tensorflow})

# jax and jaxlib: XLA's FFI, headers only.
set(why_not_jax "jax is not installed")
if(EXISTS ${PURLIN_INTEROP_SITE}/jaxlib/include/xla/ffi/api/ffi.h)
  add_library(other_jax INTERFACE)
  target_include_directories(other_jax SYSTEM INTERFACE ${PURLIN_INTEROP_SITE}/jaxlib/include)
  # With it, g++ rejects declarations in XLA's C header, also in a system header. Clang does not, and looks at ours with
  # it.
  target_compile_options(other_jax INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-pedantic>)
endif()

# A stock XLA CPU plugin, to be opened by dlopen.
set(why_not_pjrt_plugin "lammps-jax-pjrt-cpu is not installed")
set(pjrt_plugin ${PURLIN_INTEROP_SITE}/lammps_jax_pjrt_cpu/pjrt_c_api_cpu_plugin.so)
if(EXISTS ${pjrt_plugin})
  add_library(other_pjrt_plugin INTERFACE)
  target_compile_definitions(other_pjrt_plugin INTERFACE PURLIN_INTEROP_PJRT_PLUGIN="${pjrt_plugin}")
  target_link_libraries(other_pjrt_plugin INTERFACE ${CMAKE_DL_LIBS})
endif()

# The header of that, from tensorflow-cpu, which is older; nothing to link.
set(why_not_pjrt_header ${why_not_tensorflow})
if(EXISTS ${tensorflow}/include/xla/pjrt/c/pjrt_c_api.h)
  add_library(other_pjrt_header INTERFACE)
  target_include_directories(other_pjrt_header SYSTEM INTERFACE ${tensorflow}/include)
  # The fields of PJRT_Api have the names of their types, which g++ takes for an error.
  target_compile_options(other_pjrt_header INTERFACE $<$<CXX_COMPILER_ID:GNU>:-fpermissive>)
endif()

# Eigen, as Debian has it.
set(why_not_eigen "Eigen is not on this machine (libeigen3-dev)")
find_package(Eigen3 QUIET NO_MODULE)
if(Eigen3_FOUND)
  add_library(other_eigen INTERFACE)
  get_target_property(eigen Eigen3::Eigen INTERFACE_INCLUDE_DIRECTORIES)
  target_include_directories(other_eigen SYSTEM INTERFACE ${eigen})
endif()

# The driver API, by NVIDIA's header, and the fake driver, which programs are linked with as with any other.
set(PURLIN_INTEROP_DRIVER "" CACHE FILEPATH "The fake driver, which scripts/interop has built")
set(why_not_cuda "the wheel of nvidia-cuda-runtime-cu12 is not installed, or the fake driver was not built")
set(cuda ${PURLIN_INTEROP_SITE}/nvidia/cuda_runtime/include)
if(EXISTS ${cuda}/cuda.h AND EXISTS "${PURLIN_INTEROP_DRIVER}")
  add_library(other_cuda INTERFACE)
  target_include_directories(other_cuda SYSTEM INTERFACE ${cuda})
  target_link_libraries(other_cuda INTERFACE ${PURLIN_INTEROP_DRIVER})
endif()

# Another Rust static library, that of tests/consumer.
set(PURLIN_INTEROP_SECOND_RUST "" CACHE FILEPATH "libsecond_rust.a, which scripts/interop has built")
set(why_not_second_rust "the second Rust library was not built")
if(EXISTS "${PURLIN_INTEROP_SECOND_RUST}")
  add_library(other_second_rust INTERFACE)
  target_link_libraries(other_second_rust INTERFACE ${PURLIN_INTEROP_SECOND_RUST})
endif()

foreach(side absl tensorflow tensorflow_framework xla jax pjrt_plugin pjrt_header eigen cuda second_rust)
  if(TARGET other_${side})
    message(STATUS "other side: ${side}")
  else()
    message(STATUS "no other side ${side}: ${why_not_${side}}")
  endif()
endforeach()

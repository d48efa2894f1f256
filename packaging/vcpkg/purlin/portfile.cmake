# An overlay port: it builds the tree that it stands in (docs/packages.md). cargo and rustc are found on PATH, and cargo
# fetches the crates that Cargo.lock names.
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

string(COMPARE EQUAL "${VCPKG_LIBRARY_LINKAGE}" "static" build_static)
string(COMPARE EQUAL "${VCPKG_LIBRARY_LINKAGE}" "dynamic" build_shared)
vcpkg_check_features(OUT_FEATURE_OPTIONS feature_options
  FEATURES
    cuda PURLIN_CUDA
    interchange PURLIN_INTERCHANGE
    pjrt PURLIN_PJRT
    sim PURLIN_SIM
    xla-cpu PURLIN_XLA_CPU)

vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS
    ${feature_options}
    -DPURLIN_BUILD_STATIC=${build_static}
    -DPURLIN_BUILD_SHARED=${build_shared}
    -DPURLIN_BUILD_TESTS=OFF
    -DPURLIN_BUILD_EXAMPLES=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/purlin)
vcpkg_fixup_pkgconfig()

file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
file(GLOB licenses "${CURRENT_PACKAGES_DIR}/share/doc/purlin/*")
vcpkg_install_copyright(FILE_LIST ${licenses})

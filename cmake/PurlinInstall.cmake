# The installed prefix: headers, libraries, CMake package, pkg-config file. No path in it is absolute, so it may be
# moved. Nothing of Rust or cxx goes there, and nothing generated.
include(CMakePackageConfigHelpers)

if(PURLIN_SANITIZE)
  message(STATUS "Purlin: no install rules, because PURLIN_SANITIZE is ${PURLIN_SANITIZE}")
  return()
endif()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/purlin)
set(left_out "")
foreach(header ${purlin_left_out_headers})
  list(APPEND left_out PATTERN ${header} EXCLUDE)
endforeach()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/purlin DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT purlin_devel
        FILES_MATCHING PATTERN "*.h" ${left_out})
# The licences of all that is in the libraries: ours, those of the crates of others (scripts/licences), and the list of
# the parts of Rust's standard library, as far as the toolchain has it.
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/THIRD_PARTY_LICENSES.txt
        DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT purlin_devel)
execute_process(COMMAND ${PURLIN_RUSTC} --print sysroot OUTPUT_VARIABLE rust_sysroot OUTPUT_STRIP_TRAILING_WHITESPACE
                COMMAND_ERROR_IS_FATAL ANY)
install(FILES ${rust_sysroot}/share/doc/rust/COPYRIGHT-library.html RENAME rust-std-COPYRIGHT.html
        DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT purlin_devel OPTIONAL)

# One export per kind, so that a prefix may hold either or both.
foreach(kind static shared)
  if(TARGET purlin_${kind})
    install(TARGETS purlin_${kind} EXPORT purlin-${kind}
            ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT purlin_${kind}
            LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT purlin_${kind})
    install(EXPORT purlin-${kind} NAMESPACE purlin:: FILE purlin-${kind}.cmake DESTINATION ${package_dir}
            COMPONENT purlin_${kind})
  endif()
endforeach()

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/purlinConfig.cmake.in ${PROJECT_BINARY_DIR}/purlinConfig.cmake
  INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO)
# Before 1.0 a minor version may break its users.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/purlinConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/purlinConfig.cmake ${PROJECT_BINARY_DIR}/purlinConfigVersion.cmake
        DESTINATION ${package_dir} COMPONENT purlin_devel)

# pkg-config knows no configurations: Debug is a package of its own, purlind.
set(pc_name purlin$<$<CONFIG:Debug>:d>)
list(JOIN PURLIN_SYSTEM_LIBRARIES " " pc_private)
set(pc_private "-lstdc++ ${pc_private}")
set(pc_public "-l${pc_name}")
set(pc_never_unloaded "")
if(PURLIN_LINKER_HAS_NODELETE)
  set(pc_never_unloaded " -Wl,-z,nodelete")
endif()
if(NOT TARGET purlin_shared)
  set(pc_public "${pc_public} ${pc_private}")
  set(pc_private "")
endif()
file(RELATIVE_PATH pc_up "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/prefix")
string(REGEX REPLACE "/$" "" pc_up "${pc_up}")
configure_file(${PROJECT_SOURCE_DIR}/cmake/purlin.pc.in ${PROJECT_BINARY_DIR}/purlin.pc.configured @ONLY)
file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/${pc_name}.pc INPUT ${PROJECT_BINARY_DIR}/purlin.pc.configured)
install(FILES ${PROJECT_BINARY_DIR}/${pc_name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT purlin_devel)

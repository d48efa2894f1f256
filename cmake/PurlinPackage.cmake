# Packages of the installed prefix, by `cpack` in the build tree: purlin_VERSION_ARCHITECTURE.deb, and
# purlin-VERSION-SYSTEM-PROCESSOR.tar.gz, which may be unpacked anywhere. Both hold all components. They need a C++
# compiler to be used, and no Rust.
set(CPACK_GENERATOR DEB TGZ)
set(CPACK_PACKAGE_NAME purlin)
set(CPACK_PACKAGE_VENDOR "the authors of Purlin")
set(CPACK_PACKAGE_CONTACT "the authors of Purlin <purlin@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY ${PROJECT_DESCRIPTION})
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGE_FILE_NAME purlin-${PROJECT_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_PACKAGE_CHECKSUM SHA256)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_HOMEPAGE "")
# Which versions of libc6, libstdc++6 and libgcc-s1 the shared library needs, as Debian's own tool finds it.
find_program(PURLIN_DPKG_SHLIBDEPS dpkg-shlibdeps DOC "Debian's dpkg-shlibdeps, for the dependencies of the package")
if(PURLIN_DPKG_SHLIBDEPS AND PURLIN_BUILD_SHARED)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
else()
  set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6, libgcc-s1, libstdc++6")
endif()
# ldconfig, after the shared library has come or gone.
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ${PURLIN_BUILD_SHARED})
include(CPack)

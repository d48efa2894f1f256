"""Conan 2's recipe. docs/packages.md says how to use it; scripts/conan_consumer runs it.

`conan create` builds from the sources beside this folder, and needs cargo and rustc on PATH, which reach crates.io or a
mirror of it. `conan export-pkg` packages what is built in build/release already.
"""
import os
import re

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.cmake import CMake, CMakeToolchain
from conan.tools.files import copy, load, rmdir

FEATURES = ("cuda", "interchange", "pjrt", "sim", "xla_cpu")


class PurlinConan(ConanFile):
    name = "purlin"
    description = "Runtime core for ML stacks: events, work runners, device memory and buffers"
    license = "Apache-2.0"
    topics = ("machine-learning", "runtime", "asynchronous")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], **{feature: [True, False] for feature in FEATURES}}
    default_options = {"shared": False, **{feature: True for feature in FEATURES}}
    _root = os.path.join("..", "..")

    def set_version(self):
        header = load(self, os.path.join(self.recipe_folder, self._root, "include", "purlin", "version.h"))
        self.version = re.search(r'PURLIN_VERSION_STRING "([0-9.]+)"', header).group(1)

    def export_sources(self):
        for pattern in ("CMakeLists.txt", "Cargo.*", "*LICENSE*", "cmake/*", "cpp/*", "include/*", "rust/*", "tests/*"):
            copy(self, pattern, src=os.path.join(self.recipe_folder, self._root), dst=self.export_sources_folder,
                 excludes=("*/target/*", "*/__pycache__/*"))

    def layout(self):
        # Where this recipe stands in Purlin's tree, or in Conan's cache beside the sources it exported.
        in_tree = os.path.exists(os.path.join(self.recipe_folder, self._root, "include", "purlin", "version.h"))
        self.folders.root = self._root if in_tree else None
        self.folders.build = os.path.join("build", "release")
        self.folders.generators = os.path.join("build", "conan")

    def validate(self):
        if self.settings.os != "Linux":
            raise ConanInvalidConfiguration("Purlin's libraries were built for Linux alone")
        if self.settings.compiler not in ("gcc", "clang"):
            raise ConanInvalidConfiguration("Purlin is compiled by gcc or clang")

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.user_presets_path = False
        toolchain.cache_variables["PURLIN_BUILD_STATIC"] = not self.options.shared
        toolchain.cache_variables["PURLIN_BUILD_SHARED"] = bool(self.options.shared)
        for unwanted in ("TESTS", "EXAMPLES"):
            toolchain.cache_variables[f"PURLIN_BUILD_{unwanted}"] = False
        for feature in FEATURES:
            toolchain.cache_variables[f"PURLIN_{feature.upper()}"] = bool(self.options.get_safe(feature))
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        cmake = self.conf.get("tools.cmake:cmake_program", default="cmake")
        kind = "shared" if self.options.shared else "static"
        for component in ("purlin_devel", f"purlin_{kind}"):
            self.run(f'"{cmake}" --install "{self.build_folder}" --prefix "{self.package_folder}" --component {component}')
        copy(self, "*", src=os.path.join(self.package_folder, "share", "doc", "purlin"),
             dst=os.path.join(self.package_folder, "licenses"))

    def package_info(self):
        # Purlin's own CMake package is found, as without Conan.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = [os.path.join("lib", "cmake", "purlin")]
        self.cpp_info.libs = ["purlind" if self.settings.build_type == "Debug" else "purlin"]
        self.cpp_info.set_property("pkg_config_name", "purlin")
        if not self.options.shared:
            self.cpp_info.system_libs = ["util", "rt", "pthread", "m", "dl"]

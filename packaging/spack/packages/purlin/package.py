"""Spack's recipe, which builds a checkout of Purlin: `spack dev-build purlin@VERSION` (docs/packages.md)."""
from spack_repo.builtin.build_systems.cmake import CMakePackage

from spack.package import *


class Purlin(CMakePackage):
    """Runtime core for ML stacks: events, work runners, device memory and buffers."""

    license("Apache-2.0")

    # Neither an archive nor a repository: its sources are those that dev-build is called in.
    version("0.1.0")

    variant("shared", default=True, description="Build libpurlin.so beside the archive")
    variant("cuda", default=True, description="NVIDIA's GPUs, whose driver is found when a program runs")
    variant("interchange", default=True, description="Files and DLPack: dlpack.h, npy.h, safetensors.h")
    variant("pjrt", default=True, description="PJRT's tables: adapters/pjrt_tables.h")
    variant("sim", default=True, description="The platform sim, which finds missing waits")
    variant("xla_cpu", default=False, description="Executables that XLA compiled for CPUs: xla_cpu.h")

    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("binutils", type="build")
    # cargo comes with it.
    depends_on("rust@1.92:", type="build")

    # Those of the libraries that were run; of clang no lower limit is known.
    conflicts("%gcc@:11", msg="Purlin was built by gcc 12 and newer")
    conflicts("platform=darwin", msg="Purlin's libraries were built for Linux alone")
    conflicts("platform=windows", msg="Purlin's libraries were built for Linux alone")

    def cmake_args(self):
        define = self.define_from_variant
        return [
            define("PURLIN_BUILD_SHARED", "shared"),
            define("PURLIN_CUDA", "cuda"),
            define("PURLIN_INTERCHANGE", "interchange"),
            define("PURLIN_PJRT", "pjrt"),
            define("PURLIN_SIM", "sim"),
            define("PURLIN_XLA_CPU", "xla_cpu"),
            self.define("PURLIN_BUILD_TESTS", False),
            self.define("PURLIN_BUILD_EXAMPLES", False),
            self.define("PURLIN_CARGO", self.spec["rust"].prefix.bin.cargo),
            self.define("PURLIN_RUSTC", self.spec["rust"].prefix.bin.rustc),
        ]

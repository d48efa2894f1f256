"""Runs exported programs with Purlin, in this process: rust/xla-cpu/examples/corpus.rs is the other side.

scripts/interop has built that library before, if it found cargo in the same way as this module does.
"""
import ctypes
import json
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
STAGES = ("instantiate", "prepare", "initialize", "execute")


def load():
    """The library. Exits with 77, which skips the test, if there is no cargo."""
    cargo = shutil.which("cargo") or shutil.which("cargo", path=os.path.expanduser("~/.cargo/bin"))
    if not cargo:
        print("skipped: there is no cargo")
        sys.exit(77)
    # As scripts/interop builds it: with `-p` crates would have other features, and be compiled once more.
    command = [cargo, "build", "--locked", "--offline", "--workspace", "--lib", "--example", "corpus", "--message-format", "json"]
    built = subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.PIPE, text=True).stdout
    artifacts = [json.loads(line) for line in built.splitlines()]
    files = [file for artifact in artifacts for file in artifact.get("filenames", []) if file.endswith("libcorpus.so")]
    library = ctypes.CDLL(files[0])
    library.purlin_ffi_api.restype = ctypes.c_void_p
    return library


def address(capsule):
    """The address in a capsule."""
    api = ctypes.pythonapi
    api.PyCapsule_GetName.argtypes, api.PyCapsule_GetName.restype = [ctypes.py_object], ctypes.c_char_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    return api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule))


def run(library, folder, handlers, percent):
    """Runs the programs in `folder`; fails if a result is wrong. `handlers` has addresses by stage, by target."""
    names = (ctypes.c_char_p * len(handlers))(*[name.encode() for name in handlers])
    functions = (ctypes.c_void_p * (4 * len(handlers)))(*[stages.get(stage) for stages in handlers.values() for stage in STAGES])
    sys.stdout.flush()
    assert library.purlin_run_corpus(str(folder).encode(), ctypes.c_size_t(len(handlers)), names, functions, ctypes.c_size_t(percent)) == 0


def lapack():
    """jaxlib's handlers of LAPACK, whose functions are those of SciPy."""
    from jaxlib import lapack

    lapack._lapack.initialize()
    return {name: {"execute": address(capsule)} for name, capsule, api_version in lapack.registrations()["cpu"] if api_version == 1}

"""Compares Purlin's descriptions of kernels with XLA's own code: rust/xla-proto/src/kernels/tests/xla.rs.

PURLIN_XLA_KERNELS is the path of the program that has XLA's code. scripts/interop has built the Rust test before, if it
found cargo in the same way as this script does.
"""
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]

cargo = shutil.which("cargo") or shutil.which("cargo", path=os.path.expanduser("~/.cargo/bin"))
if not cargo:
    print("skipped: there is no cargo")
    sys.exit(77)
command = [cargo, "test", "--locked", "--offline", "--workspace", "--lib", "kernels::tests::xla", "--",
           "--ignored", "--nocapture"]
answer = subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.PIPE, text=True).stdout
print(answer)
# Three tests: a name that no test has would pass as well.
assert " 3 passed; 0 failed" in answer, answer

"""Compiles the programs of examples/python/export_xla.py with stock JAX, and runs them with Purlin.

rust/xla-cpu/tests/corpus.rs runs them and compares the results. scripts/interop has built that test before, if it found
cargo in the same way as this script does.
"""
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
CORPUS = pathlib.Path.cwd() / "xla_corpus"

cargo = shutil.which("cargo") or shutil.which("cargo", path=os.path.expanduser("~/.cargo/bin"))
if not cargo:
    print("skipped: there is no cargo")
    sys.exit(77)
shutil.rmtree(CORPUS, ignore_errors=True)
subprocess.run([sys.executable, ROOT / "examples/python/export_xla.py", CORPUS], check=True)
command = [cargo, "test", "--locked", "--offline", "-p", "purlin-xla-cpu", "--test", "corpus", "--", "--ignored", "--nocapture"]
subprocess.run(command, check=True, cwd=ROOT, env={**os.environ, "PURLIN_XLA_CORPUS": str(CORPUS)})

"""Compiles the programs of examples/python/export_xla.py with stock JAX, and runs them with Purlin.

The custom calls among them are those of LAPACK: Purlin calls jaxlib's handlers. The results are compared with stock
XLA's (rust/xla-cpu/tests/fixture/programs.rs). PURLIN_XLA_NATIVE_PERCENT: how many must run (95).
"""
import os
import pathlib
import shutil
import subprocess
import sys

import purlin_corpus

CORPUS = pathlib.Path.cwd() / "xla_corpus"

library = purlin_corpus.load()
shutil.rmtree(CORPUS, ignore_errors=True)
subprocess.run([sys.executable, purlin_corpus.ROOT / "examples/python/export_xla.py", CORPUS], check=True)
purlin_corpus.run(library, CORPUS, purlin_corpus.lapack(), int(os.environ.get("PURLIN_XLA_NATIVE_PERCENT", "95")))

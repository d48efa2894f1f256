"""examples/adopt/ffi_wheel becomes a wheel as pip makes one, is installed into a folder of its own, and stock JAX calls it.

PURLIN_INTEROP_PREFIX is an installed Purlin, PURLIN_INTEROP_TOOLS the folders of CMake and Ninja. pip runs without a network.
"""
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

SOURCE = pathlib.Path(__file__).resolve().parents[3] / "examples/adopt/ffi_wheel"
WORK = pathlib.Path.cwd() / "ffi_wheel"


def pip(*arguments):
    subprocess.run([sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-cache-dir", *arguments], check=True)


if importlib.util.find_spec("scikit_build_core") is None:
    print("skipped: scikit-build-core is not installed")
    sys.exit(77)
shutil.rmtree(WORK, ignore_errors=True)
os.environ["CMAKE_PREFIX_PATH"] = os.environ["PURLIN_INTEROP_PREFIX"]
os.environ["PATH"] = os.environ["PURLIN_INTEROP_TOOLS"] + os.pathsep + os.environ["PATH"]
# What pyproject.toml requires is in this virtual environment, pinned.
pip("wheel", "--no-index", "--no-deps", "--no-build-isolation", "--check-build-dependencies", "--wheel-dir", WORK / "wheels", SOURCE)
(wheel,) = (WORK / "wheels").iterdir()
assert wheel.name.startswith("normalize-1.0.0-py3-none-linux_"), wheel.name
files = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
assert files == {"normalize/__init__.py", "normalize/normalize.so"}, files
pip("install", "--no-index", "--no-deps", "--target", WORK / "site", wheel)

# Weak ones are std's, which -fvisibility=hidden leaves as they are.
nm = ["nm", "--dynamic", "--defined-only", "--format=posix", WORK / "site/normalize/normalize.so"]
names = [line.split()[:2] for line in subprocess.run(nm, check=True, capture_output=True, text=True).stdout.splitlines()]
assert [name for name, kind in names if kind not in "uVvWw"] == ["NormalizeHandler"], names
assert not any("purlin" in name for name, _ in names), names

sys.path.insert(0, str(WORK / "site"))
import jax
import jax.numpy as jnp
import normalize
import numpy as np

assert pathlib.Path(normalize.__file__).is_relative_to(WORK), normalize.__file__
np.testing.assert_allclose(jax.jit(normalize.normalize)(jnp.asarray([[3.0, 0.0], [4.0, 0.0]])), [[0.6, 0.0], [0.8, 0.0]], rtol=1e-5)
try:
    jax.jit(lambda x: normalize.normalize(x, -1.0))(jnp.ones(3)).block_until_ready()
    sys.exit("no error")
except jax.errors.JaxRuntimeError as error:
    assert str(error).startswith("INVALID_ARGUMENT: epsilon must be positive"), error
print(f"{wheel.name}: {wheel.stat().st_size} bytes")

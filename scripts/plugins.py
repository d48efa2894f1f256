"""The plugins that scripts/bench_jax, policy and soak_jax have JAX load, and the Python that has JAX."""
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
VENV = ROOT / "build/interop/venv"
PYTHON = VENV / "bin/python"


def stock():
    """XLA's plugin, which scripts/interop has brought with JAX; ends the script if it has not."""
    found = next(iter(VENV.glob("lib/python3*/site-packages/lammps_jax_pjrt_cpu/pjrt_c_api_cpu_plugin.so")), None)
    if found is None:
        name = pathlib.Path(sys.argv[0]).name
        sys.exit(f"{name}: build/interop/venv has no JAX with XLA's plugin: scripts/interop --only '^plugin$' brings them")
    return found


def release():
    """Purlin's plugin, built as it is shipped."""
    subprocess.run(["cargo", "build", "--locked", "--release", "--package", "purlin-plugin"], cwd=ROOT, check=True)
    return pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target") / "release/libpjrt_purlin.so"


def environment(name, library, mode=""):
    """In which JAX runs on the plugin at `library`, as the platform `name`."""
    settings = {key: value for key, value in os.environ.items() if not key.startswith(("JAX_", "PURLIN_", "PJRT_", "XLA_"))}
    return settings | {
        "JAX_PLATFORMS": f"{name},cpu", "PJRT_NAMES_AND_LIBRARY_PATHS": f"{name}:{library}", "PURLIN_PJRT_MODE": mode,
        "PURLIN_PJRT_COMPILER": str(stock()), "TF_CPP_MIN_LOG_LEVEL": "2"}

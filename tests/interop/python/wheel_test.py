"""The wheel purlin_jax in a virtual environment that has nothing else: pip installs it with what it depends on, JAX finds
the plugin, checks itself, and runs the example of the front page and the one that trains.

PURLIN_INTEROP_WHEELS is the folder that scripts/wheel has filled. The packages are PyPI's, pinned as in constraints.txt.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
WORK = pathlib.Path.cwd() / "wheel"
PYTHON = WORK / "bin/python"
STEPS = 300


def told(*command, **environment):
    """What a command prints. It sees nothing of this process's settings for JAX and for Purlin."""
    settings = {name: value for name, value in os.environ.items() if not re.match("JAX|PURLIN|PJRT|PYTHONPATH|XLA", name)}
    ran = subprocess.run(command, env=settings | environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True, timeout=600)
    assert ran.returncode == 0, f"{command} ended with {ran.returncode}:\n{ran.stdout}"
    return ran.stdout


if os.environ.get("PURLIN_INTEROP_OFFLINE"):
    print("skipped: pip may not ask PyPI")
    sys.exit(77)
wheels = list(pathlib.Path(os.environ["PURLIN_INTEROP_WHEELS"]).glob("*.whl"))
assert len(wheels) == 1, f"scripts/wheel has made {wheels}: its log is build/interop/log/wheel.log"
assert re.fullmatch(r"purlin_jax-[0-9.]+-py3-none-manylinux_2_[0-9]+_x86_64\.whl", wheels[0].name), wheels[0].name

shutil.rmtree(WORK, ignore_errors=True)
told(sys.executable, "-m", "venv", WORK)
told(PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary=:all:",
     "-c", ROOT / "tests/interop/constraints.txt", wheels[0])
print(told(PYTHON, "-m", "purlin_jax", "doctor"))
first = told(PYTHON, ROOT / "examples/jax/first.py")
print(first)
slopes = re.search(r"Purlin [\d.]+ \[([^]]*)\]", first)  # Of tanh(x)^2 at 0, 1 and 2.
assert slopes, first
assert all(abs(float(slope) - wanted) < 1e-4 for slope, wanted in zip(slopes[1].split(), (0, 0.63970, 0.13622), strict=True)), first
trained = told(PYTHON, ROOT / "examples/jax/train_mnist_like.py", "--steps", str(STEPS))
print(trained)
accuracies = dict(re.findall(r"^(\w+): [^\n]*\n(?:[^\n]*\n)*?  accuracy ([0-9.]+) %", trained, re.MULTILINE))
assert accuracies.keys() == {"native", "delegate", "jaxlib"}, accuracies
assert min(map(float, accuracies.values())) > 90, accuracies
assert len(set(re.findall(r"^(?:native|delegate): .*Purlin.*", trained, re.MULTILINE))) == 2, trained
shutil.rmtree(WORK)

"""Programs of stock JAX on Purlin's plugin, in each of its modes; the results are compared with those on jaxlib's CPU.

  plugin_test.py [--mode MODE]... [--quick] [PROGRAM]...

PURLIN_PJRT_PLUGIN is the plugin's path, PURLIN_PJRT_COMPILER that of the plugin that compiles. The programs are those
of plugin_programs.py, plugin_memory_programs.py and plugin_sharded_programs.py; a PROGRAM is a name, or the beginning
of one. Processes of their own run them: for each mode one with a device, one with 8, and one with handlers of LAPACK and of Python callbacks.
One that crashes or hangs is a failure of the program that it was at, and another process goes on behind it. What a
mode must refuse stands in REFUSED.

--quick: of the modes other than `check`, which runs a program both ways, each program has one in turn, and those that
must refuse it.
"""
import argparse
import faulthandler
import itertools
import json
import os
import pathlib
import pickle
import queue
import re
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from concurrent import futures

MODES = ("native", "delegate", "auto", "check")
NEEDS = ("one", "handlers", "eight")  # The kinds of processes.
DEVICES = 8
AT_ONCE = 2  # Processes.
LIMIT = 60  # Seconds for a program: many times what one takes.
NO_HANDLER = "No FFI handler registered for "
# By the kind of process and the beginning of a program's name: the modes that refuse it, and what they say. What has a
# custom call is not even compiled where nobody has registered its handler.
REFUSED = {
    ("one", "lapack."): (MODES, NO_HANDLER + "lapack_"),
    ("one", "python."): (MODES, NO_HANDLER + "xla_ffi_python_cpu_callback"),
    # Programs of Purlin have all arrays in the default memory, and XLA's plugin has the others.
    ("one", "transfers.arguments_on_the_host"): (("native",), "in memory space 5"),
    ("one", "transfers.results_on_the_host"): (("native",), "in memory space 5")
}


def all_programs():
    """The programs by their names. Only importing them takes JAX along."""
    import plugin_memory_programs  # noqa: F401, for what it adds, as the next one.
    import plugin_sharded_programs  # noqa: F401
    import plugin_programs

    return plugin_programs.PROGRAMS


# -- in a process that runs programs -----------------------------------------------------------------------------------


def wanted_refusal(mode, need, name):
    """What must be said of the program, or None if it runs."""
    for (kind, start), (modes, words) in REFUSED.items():
        if kind == need and mode in modes and name.startswith(start):
            return words
    return None


def leaves_of(result, devices):
    """The result's leaves, arrays as NumPy's. An array of JAX's must be on one of the devices."""
    import jax
    import numpy as np

    def leaf(x):
        if not isinstance(x, jax.Array):
            return x
        assert x.devices() <= set(devices), f"a result is on {x.devices()}"
        return np.asarray(x)

    return [(jax.tree_util.keystr(path), leaf(x)) for path, x in jax.tree_util.tree_leaves_with_path(result)]


def compare(ours, theirs, exact, rtol):
    """Raises if a result of Purlin's is not jaxlib's: bits and texts as they are, floats about so."""
    import numpy as np

    near = {
        "float64": 1e-11, "complex128": 1e-11, "float32": 1e-5, "complex64": 1e-5, "float16": 4e-3, "bfloat16": 2e-2
    }
    assert [path for path, _ in ours] == [path for path, _ in theirs], f"the tree is {[path for path, _ in ours]}"
    for (path, x), (_, y) in zip(ours, theirs):
        if not isinstance(y, (np.ndarray, np.generic)):
            assert x == y, f"{path}: {x!r}, not {y!r}"
            continue
        if y.dtype.name in ("int2", "int4"):
            # Above their bits, jaxlib's have zeros, and Purlin's copies of the sign.
            x, y = x.astype(np.int8), y.astype(np.int8)
        assert (x.dtype, x.shape) == (y.dtype, y.shape), f"{path}: {x.dtype}{x.shape}, not {y.dtype}{y.shape}"
        tolerance = rtol or near.get(y.dtype.name)
        if exact or tolerance is None:
            assert x.tobytes() == y.tobytes(), f"{path}: {x.ravel()[:8]}..., not {y.ravel()[:8]}..."
        else:
            wide = np.complex128 if np.iscomplexobj(y) else np.float64
            x, y = np.asarray(x).astype(wide), np.asarray(y).astype(wide)
            # Sums of numbers about 1 may end near 0.
            np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance / 10, err_msg=path)


def reason(error):
    """What went wrong, in a line, and the last line of the programs' that was at it."""
    files = [(pathlib.Path(frame.filename), frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    file, line = [at for at in files if at[0].parent == pathlib.Path(__file__).parent][-1]
    text = " ".join(str(error).split())
    return f"{type(error).__name__} at {file.name}:{line}: {text[:600]}"


def run_programs(mode, need, expected, names):
    """Runs the programs, and says of each when it begins and how it ended. The mode `reference` is jaxlib's CPU."""
    import jax

    programs = all_programs()
    if mode == "reference":
        jax.config.update("jax_num_cpu_devices", DEVICES)
    devices = jax.devices()
    assert mode == "reference" or "Purlin" in devices[0].client.platform_version, devices
    tell = lambda **said: print(json.dumps(said), flush=True)
    results = {}
    for name in names:
        tell(begun=name)
        program = programs[name]
        words = None if mode == "reference" else wanted_refusal(mode, need, name)
        refused = None
        try:
            with jax.default_device(devices[0]):
                given = devices if program.needs == "eight" else devices[0]
                leaves = leaves_of(program.function(given), devices if program.needs == "eight" else devices[:1])
            if mode == "reference":
                results[name] = leaves
            elif words:
                refused = f"it was not refused with '{words}'"
            elif not program.own:
                compare(leaves, expected[name], program.exact, program.rtol)
        except Exception as error:
            if not words or words not in str(error):
                refused = reason(error)
        tell(failed=name, why=refused) if refused else tell(passed=name)
    return results


def child(mode, need, folder, names):
    """What a process of its own does. The files of `folder` have the results of the reference."""
    faulthandler.enable()
    expected = {}
    if mode != "reference":
        for file in pathlib.Path(folder).glob("*.pickle"):
            expected |= pickle.loads(file.read_bytes())
    results = run_programs(mode, need, expected, names)
    if mode == "reference":
        (pathlib.Path(folder) / f"{names[0]}.pickle").write_bytes(pickle.dumps(results))


# -- in the process that starts them -----------------------------------------------------------------------------------


def environment_of(mode, need, folder):
    """The environment of a process."""
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"}
    for name in ("PJRT_NAMES_AND_LIBRARY_PATHS", "PURLIN_PJRT_OPTIONS", "XLA_FLAGS"):
        environment.pop(name, None)
    if mode == "reference":
        return {**environment, "JAX_PLATFORMS": "cpu"}
    library = os.environ["PURLIN_PJRT_PLUGIN"]
    if need == "eight":
        settings = folder / "eight.json"
        options = {"device_count": DEVICES, "memory_limit_bytes": 1 << 32}
        settings.write_text(json.dumps({"library_path": library, "create_options": options}))
        library = settings
    if need == "handlers":
        # As the wheel does it: JAX finds the module, which registers the plugin and the handlers.
        found = folder / "site/jax_plugins/purlin"
        if not found.is_symlink():
            found.parent.mkdir(parents=True, exist_ok=True)
            found.symlink_to(pathlib.Path(__file__).resolve().parents[3] / "python/purlin_jax")
        return {
            **environment, "JAX_PLATFORMS": "purlin,cpu", "PYTHONPATH": str(folder / "site"), "PURLIN_PJRT_MODE": mode,
            "PURLIN_PJRT_OPTIONS": "device_count=1,worker_count=2"
        }
    return {
        **environment, "JAX_PLATFORMS": "purlin,cpu", "PJRT_NAMES_AND_LIBRARY_PATHS": f"purlin:{library}",
        "PURLIN_PJRT_MODE": mode
    }


def watched(command, environment):
    """Runs a process. Gives what it says, each line as an object, what it wrote to stderr, and None or how it failed.

    A process that says nothing for LIMIT seconds is aborted, so that it writes where it was.
    """
    with tempfile.TemporaryFile("w+", errors="replace") as errors:
        process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True
        )
        lines, said, end = queue.SimpleQueue(), [], None
        reader = threading.Thread(target=lambda: [lines.put(line) for line in itertools.chain(process.stdout, [None])])
        reader.start()
        try:
            while (line := lines.get(timeout=LIMIT)) is not None:
                if line.startswith("{"):
                    said.append(json.loads(line))
            code = process.wait(LIMIT)
        except (queue.Empty, subprocess.TimeoutExpired):
            end, code = f"it hangs: nothing was said for {LIMIT} s", None
            process.send_signal(signal.SIGABRT)
        try:
            process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        reader.join()
        process.stdout.close()
        errors.seek(0)
        if code is not None and code < 0:
            end = f"the process was killed by {signal.Signals(-code).name}"
        elif code:
            end = f"the process ended with {code}"
        return said, errors.read(), end


def place_of(errors):
    """The first line of the programs' in what faulthandler wrote; or what a process wrote last."""
    at = [line.strip() for line in errors.splitlines() if "/plugin_" in line and "programs.py" in line]
    return at[0] if at else f"it last wrote: {' '.join(errors.split())[-500:]}"


def in_processes(mode, need, names, folder):
    """Runs the programs in a process, and in further ones behind each that it does not survive.

    Gives how many passed, and the failures with their reasons.
    """
    passed, failures, left = 0, [], list(names)
    while left:
        command = [sys.executable, __file__, "--child", mode, need, folder, *left]
        said, errors, end = watched(command, environment_of(mode, need, folder))
        at = "the start"
        for line in said:
            at = line.get("begun", at)
            if "passed" in line or "failed" in line:
                left.remove(at)
            passed += "passed" in line
            if "failed" in line:
                failures.append((at, line["why"]))
        if end:
            failures.append((at if at in left else f"after {at}", f"{end}; {place_of(errors)}"))
            if at not in left:
                break
            left.remove(at)
    return passed, failures


def run_all(jobs, folder):
    """Runs jobs of a mode, a kind of process and names, some at once. Gives how many passed and failed, by mode."""

    def run(job):
        passed, failures = in_processes(*job, folder)
        for name, why in failures:
            print(f"FAILED in mode {job[0]}, {job[1]}: {name}: {why}", flush=True)
        return job[0], passed, len(failures)

    counts = {}
    with futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for mode, passed, failed in pool.map(run, [job for job in jobs if job[2]]):
            before = counts.get(mode, (0, 0))
            counts[mode] = before[0] + passed, before[1] + failed
    return counts


def self_check(folder):
    """What `python -m purlin_jax doctor` finds: how many checks are right, and how many are not."""
    ran = subprocess.run(
        [sys.executable, "-m", "jax_plugins.purlin", "doctor"], env=environment_of("auto", "handlers", folder),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=4 * LIMIT
    )
    right, wrong = (len(re.findall(rf" {word}$", ran.stdout, re.MULTILINE)) for word in ("right", "WRONG"))
    if ran.returncode or wrong or not right:
        print(f"FAILED: doctor ended with {ran.returncode}:\n{ran.stdout}", flush=True)
        wrong = max(wrong, 1)
    return right, wrong


def quickly(names):
    """What --quick leaves: whether a program runs in a mode."""
    others = [mode for mode in MODES if mode != "check"]
    turn = {name: others[at % len(others)] for at, name in enumerate(names)}
    return lambda mode, need, name: mode in ("check", turn[name]) or bool(wanted_refusal(mode, need, name))


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--mode", action="append", choices=MODES)
    arguments.add_argument("--quick", action="store_true")
    arguments.add_argument("programs", nargs="*", metavar="PROGRAM")
    arguments = arguments.parse_args()
    chosen = tuple(arguments.programs) or ("",)
    programs = {name: program for name, program in all_programs().items() if name.startswith(chosen)}
    assert programs, "there are no such programs"
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        compared = [name for name, program in programs.items() if not program.own]
        counts = run_all([("reference", "eight", compared[part::AT_ONCE]) for part in range(AT_ONCE)], folder)
        if not any(failed for _, failed in counts.values()):
            jobs, runs = [], quickly(programs) if arguments.quick else lambda *_: True
            for mode, need in itertools.product(arguments.mode or MODES, NEEDS):
                suits = lambda name: programs[name].needs == need or wanted_refusal(mode, need, name)
                jobs.append((mode, need, [name for name in programs if suits(name) and runs(mode, need, name)]))
            counts |= run_all(jobs, folder)
            counts["doctor"] = self_check(folder)
    told = "; ".join(f"{mode}: {passed} passed, {failed} failed" for mode, (passed, failed) in counts.items())
    print(f"{len(programs)} programs; {told}")
    sys.exit(any(failed for _, failed in counts.values()))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:5], sys.argv[5:])
    else:
        main()

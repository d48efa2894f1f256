"""What JAX's user is told by Purlin's plugin: errors that name program and argument, holders of memory, a trace, what is
pending on SIGQUIT, and refusals, not hangs, in a child made by fork().

PURLIN_PJRT_PLUGIN is the plugin's path, PURLIN_PJRT_COMPILER that of the plugin that compiles. Each part runs in a process
of its own, in the modes `native` and `delegate`.
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import warnings

MODES = ("native", "delegate")
LIMIT = 120  # Seconds for a process: many times what one takes.
MEBI = 1 << 20


def said_by(call):
    """The text of the exception that `call` raises."""
    try:
        call()
    except Exception as error:
        return str(error)
    raise AssertionError("it was not refused")


def expect(text, *parts):
    for part in parts:
        assert part in text, f"{part!r} is not in {text!r}"


def errors(mode):
    """A donated array that is given again, one that is given twice, and an allocation that fails."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    def update(weights, slope):
        return weights - slope

    update = jax.jit(update, donate_argnums=0)
    weights = jnp.ones((256, 256))
    slope = weights * 2
    updated = update(weights, slope)
    expect(said_by(lambda: np.asarray(weights)), "deleted")  # JAX's own.
    expect(said_by(lambda: update(weights, slope)), "'jit_update' was not run: argument 0", "donated by 'jit_update'", "ms ago")
    expect(said_by(lambda: update(updated, updated)), "'jit_update' was not run", "arguments 0 and 1 are the same buffer")
    expect(said_by(lambda: jax.device_put(np.ones((128, MEBI), np.float32)).block_until_ready()), "cannot allocate 536870912 bytes",
           "limit 268435456 bytes", "live allocations", *(["'jit_multiply'"] if mode == "native" else []))
    assert float(updated[0, 0]) == -1


def trace(mode):
    """Spans of what the plugin has run, in a file that is written at the process's exit."""
    import jax
    import jax.numpy as jnp

    jax.block_until_ready(jax.jit(lambda x: jnp.sin(x) + 1)(jnp.arange(8.0)))


def see_trace(mode, path):
    events = json.loads(path.read_text())["traceEvents"]
    spans = {(event["name"], event.get("args", {}).get("program")) for event in events if event["ph"] == "X"}
    assert ("compile", None) in spans, spans
    assert ("launch" if mode == "native" else "delegated", "jit__lambda") in spans, spans


def stalls(mode):
    """SIGQUIT, which would end the process otherwise."""
    import jax
    import numpy as np

    jax.block_until_ready(jax.device_put(np.ones(4)))
    os.kill(os.getpid(), signal.SIGQUIT)
    # The process goes on, and its parent ends it when it has read the report.
    while True:
        signal.pause()


def child(mode):
    """What is ready can be read in a child; what would need threads that are not there is refused."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    warnings.filterwarnings("ignore", "os.fork", RuntimeWarning)
    double, many = jax.jit(lambda x: x * 2), jax.jit(lambda x: jax.lax.fori_loop(0, 4, lambda _, y: y @ x, x))
    x, big = double(jnp.arange(8.0)), jnp.eye(512)
    jax.block_until_ready(many(big))
    pid = os.fork()
    if pid == 0:
        assert np.asarray(x)[3] == 6
        refusal = "made by fork(), which copies no threads"
        unaligned = np.ones(32, np.float32)[1:]  # It must be copied.
        for call in (lambda: jax.device_put(unaligned).block_until_ready(), lambda: double(x), lambda: many(big)):
            expect(said_by(call), refusal)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert np.asarray(double(x))[3] == 12


def run(part, mode, folder):
    """A part in a process of its own."""
    options = folder / "options.json"
    library = os.environ["PURLIN_PJRT_PLUGIN"]
    settings = {"memory_limit_bytes": 256 * MEBI, "stalls_on_sigquit": True}
    options.write_text(json.dumps({"library_path": library, "create_options": settings}))
    path = folder / f"{part}.{mode}.json"
    environment = os.environ | {"JAX_PLATFORMS": "purlin,cpu", "PJRT_NAMES_AND_LIBRARY_PATHS": f"purlin:{options}",
                                "PURLIN_PJRT_MODE": mode, "TF_CPP_MIN_LOG_LEVEL": "2"}
    if part == "trace":
        environment["PURLIN_PJRT_TRACE"] = str(path)
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen([sys.executable, __file__, part, mode], env=environment, stdin=subprocess.DEVNULL,
                                   stdout=output, stderr=subprocess.STDOUT)
        read = lambda: (output.seek(0), output.read())[1]
        if part == "stalls":
            deadline = time.monotonic() + LIMIT
            while "purlin: 1 pending event" not in read() and process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.01)
            ended = process.poll()
            process.kill()
            process.wait()
            assert ended is None, f"SIGQUIT ended the process ({ended}): {read()}"
            expect(read(), "purlin: 1 pending event", "pool 'purlin'", "client of 'host' with 1 devices")
            return
        try:
            code = process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            code = "hung"
        assert code == 0, f"{part} in mode {mode} ended with {code}:\n{read()}"
    if part == "trace":
        see_trace(mode, path)


PARTS = {"errors": errors, "trace": trace, "stalls": stalls, "child": child}

if __name__ == "__main__":
    if len(sys.argv) > 1:
        PARTS[sys.argv[1]](sys.argv[2])
    else:
        with tempfile.TemporaryDirectory() as folder:
            for mode in MODES:
                for part in PARTS:
                    run(part, mode, pathlib.Path(folder))
                    print(f"{part} in mode {mode}: passed", flush=True)

"""Processes with TensorFlow, JAX on its own CPU backend and on Purlin's plugin, Purlin several times, another Rust library
and Debian's abseil, to their very end.

For each order of loading, one Python imports everything and, while it has one thread, forks processes which each do the
whole of `life`: work on all sides, a child by fork(), and an ordinary end, through Python's and libc's exit handlers and
static destructors, while Purlin's pools and programs of JAX work. At last it does the same itself. PURLIN_INTEROP_EXITS is how many processes
end so, of all orders together.

A process must end with 0 and must have written, from a static destructor, that all was right then. One that does not end
in LIMIT seconds is looked at (Purlin's own report, gdb's if it is there) and killed.
"""
import ctypes
import faulthandler
import importlib
import multiprocessing
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

MODULES = os.environ["PURLIN_INTEROP_MODULES"]
PLUGIN_MODULE = pathlib.Path(__file__).resolve().parents[3] / "python/purlin_jax"
ORDERS = (("purlin", "tensorflow", "jax"), ("tensorflow", "jax", "purlin"), ("jax", "purlin", "tensorflow"))
EXITS = int(os.environ.get("PURLIN_INTEROP_EXITS") or 21)
AT_ONCE = 2
LIMIT = 150
loaded = {}


class Event(ctypes.Structure):
    """PurlinPjrtDeviceEvent."""
    _fields_ = [("event", ctypes.c_void_p), ("table", ctypes.c_void_p)]


def module(name, mode=ctypes.RTLD_LOCAL):
    return ctypes.CDLL(os.path.join(MODULES, name), mode=mode)


def load(side):
    if side == "purlin":
        # As if asked to clash: all that the first has goes before what is loaded later.
        loaded["one"], loaded["two"] = module("together.so", ctypes.RTLD_GLOBAL), module("together_again.so")
        loaded["ffi"] = module("xla_ffi.so")
    else:
        loaded[side] = importlib.import_module(side)
    if side == "jax":
        importlib.import_module("jax.numpy")


def expect(answer, wanted=0):
    assert answer == wanted, f"{answer}, not {wanted}"


def devices_of_jax():
    """Of the plugin and of jaxlib's own backend."""
    jax = loaded["jax"]
    plugins, own = jax.devices(), jax.devices("cpu")
    assert "Purlin" in plugins[0].client.platform_version and plugins[0].client != own[0].client, plugins + own
    return plugins[0], own[0]


def work_of_jax():
    jax, numpy = loaded["jax"], importlib.import_module("numpy")
    for device in devices_of_jax():
        with jax.default_device(device):
            x = jax.numpy.arange(100, dtype="float32")
            scale = jax.ffi.ffi_call("PurlinScaleLater", jax.ShapeDtypeStruct(x.shape, x.dtype))
            expect(float(jax.jit(lambda x: scale(x + 1, factor=numpy.float32(2)).sum())(x)), 10100)
            called = jax.pure_callback(lambda x: x * 2, jax.ShapeDtypeStruct(x.shape, x.dtype), x)
            expect(float(jax.numpy.linalg.cholesky(called[1:2, None] + 2)[0, 0]), 2)


def begin_work_of_jax():
    """Programs and transfers that nobody waits for."""
    jax, numpy = loaded["jax"], importlib.import_module("numpy")
    many = jax.jit(lambda x: jax.lax.fori_loop(0, 10, lambda _, y: y @ x, x))
    loaded["begun"] = []
    for device in devices_of_jax():
        given = jax.device_put(numpy.eye(200, dtype="float32"), device)
        loaded["begun"] += [given, many(given), jax.device_put(numpy.ones(1 << 20), device)]


def work_of_tensorflow():
    tf = loaded["tensorflow"]
    ops = tf.load_op_library(os.path.join(MODULES, "tensorflow_op.so"))

    @tf.function
    def graph(x):
        return tf.reduce_sum(ops.purlin_scale(x + 1, factor=2.0))

    expect(float(graph(tf.range(100, dtype=tf.float32))), 10100)
    # TensorFlow 1's way, through a session.
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        expect(session.run(tf.reduce_sum(tf.range(100))), 4950)


def work_of_two_purlins():
    one, two = loaded["one"], loaded["two"]
    event = Event()
    one.together_give(ctypes.byref(event))
    two.together_take(ctypes.byref(event))
    expect((one.together_knows(), two.together_knows()), (1, 0))
    expect(one.together_settle())
    expect(two.together_told(), 1)
    for ours, theirs in ((one, two), (two, one)):
        assert ours.together_in_task(ours.together_thread) in (0, 1)
        expect(ours.together_in_task(theirs.together_thread), -1)


def in_child(index):
    """What a worker of multiprocessing calls: on one Purlin or the other."""
    return loaded["two" if index % 2 else "one"].together_in_child()


def work_of_multiprocessing():
    """Python's own way to fork, while Purlin's pools work and JAX and TensorFlow have threads."""
    fork = multiprocessing.get_context("fork")
    with fork.Pool(4) as pool:
        expect(pool.map_async(in_child, range(40), chunksize=1).get(LIMIT / 4), [0] * 40)
    process = fork.Process(target=in_child, args=(0,))
    process.start()
    process.join(LIMIT / 4)
    expect(process.exitcode)


def ending(pid, deadline):
    """How a child ended (its exit code, the name of its signal, or "hung", at the deadline) and its CPU time; or None."""
    ended, status, usage = os.wait4(pid, os.WNOHANG)
    if ended == 0:
        if time.monotonic() < deadline:
            return None
        look_at(pid)
        os.kill(pid, signal.SIGKILL)
        _, _, usage = os.wait4(pid, 0)
        return "hung", usage.ru_utime + usage.ru_stime
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else signal.Signals(-code).name, usage.ru_utime + usage.ru_stime


def wait(pid, limit):
    deadline = time.monotonic() + limit
    while (end := ending(pid, deadline)) is None:
        time.sleep(0.005)
    return end[0]


def look_at(pid):
    """Says what a process is doing."""
    try:
        subprocess.run(["gdb", "-p", str(pid), "-batch", "-nx", "-ex", "thread apply all backtrace 30"],
                       stdin=subprocess.DEVNULL, check=False, timeout=120)
    except (OSError, subprocess.TimeoutExpired) as error:
        print(f"no backtrace: {error}")
    for task in sorted(os.listdir(f"/proc/{pid}/task")):
        try:
            with open(f"/proc/{pid}/task/{task}/comm") as comm, open(f"/proc/{pid}/task/{task}/wchan") as wchan:
                print(f"thread {task} {comm.read().strip()}: {wchan.read()}", flush=True)
        except OSError:
            pass  # It has ended.


def life(index, tell):
    """Everything that a process does before it ends. `tell` is what its static destructors write to."""
    one, two = loaded["one"], loaded["two"]
    faulthandler.enable()
    one.together_watch(LIMIT - 20)
    for purlin in (one, two):
        expect(purlin.together_round())
    work_of_two_purlins()
    # Beside each other from here on.
    expect(one.together_go_on())
    jax = loaded["jax"]
    jax.ffi.register_ffi_target("PurlinScaleLater", jax.ffi.pycapsule(loaded["ffi"].PurlinScaleLater), platform="cpu")
    sides = [work_of_jax, work_of_tensorflow]
    if index % 2:
        sides.reverse()
    for side in sides:
        side()
    expect(two.together_round())
    for purlin in (one, two):
        for whole in (0, 1):
            expect(wait(purlin.together_fork(whole), LIMIT / 4))
    work_of_multiprocessing()
    expect(one.together_round())
    work_of_jax()
    work_of_tensorflow()
    begin_work_of_jax()
    # The process ends while one pool works, and another has tasks in its queue or not.
    expect(one.together_at_exit(tell, index % 2))


class Process:
    """A fork of this process that lives and ends."""

    def __init__(self, index):
        self.index, self.began = index, time.monotonic()
        self.output = tempfile.TemporaryFile()
        self.told, tell = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.dup2(self.output.fileno(), 1)
            os.dup2(self.output.fileno(), 2)
            life(index, tell)
            sys.exit(0)
        os.close(tell)

    def wrong(self, code):
        """Whether it ended as it should not, and then what it said."""
        with os.fdopen(self.told, "rb") as told:
            said = told.read().decode()
        if code == 0 and said == "right":
            return False
        self.output.seek(0)
        text = self.output.read().decode(errors="replace")[-8000:]
        print(f"process {self.index} ended with {code}, its static destructors said {said!r}\n{text}", flush=True)
        return True


def ends(count):
    """Lets processes live and end, until something is wrong; the seconds that each took, and the CPU time of each."""
    running, taken, cpu, begun, wrong = [], [], [], 0, False
    while running or (begun < count and not wrong):
        while len(running) < AT_ONCE and begun < count and not wrong:
            running.append(Process(begun))
            begun += 1
        for process in list(running):
            if (end := ending(process.pid, process.began + LIMIT)) is not None:
                running.remove(process)
                taken.append(time.monotonic() - process.began)
                cpu.append(end[1])
                wrong |= process.wrong(end[0])
        time.sleep(0.01)
    return taken, cpu, wrong


def forks_and_ends(tell, count, order):
    for side in order:
        load(side)
    threads = os.listdir("/proc/self/task")
    assert len(threads) == 1, f"{len(threads)} threads: forks of this would be no whole processes"
    warnings.filterwarnings("ignore", "os.fork", RuntimeWarning)  # JAX's; it has no threads yet.
    taken, cpu, wrong = ends(count)
    if taken:
        print(f"{' '.join(order)}: {len(taken)} forked processes, {statistics.median(taken):.1f} s each (at most "
              f"{max(taken):.1f}), {statistics.median(cpu):.1f} s of CPU", flush=True)
    if wrong:
        os._exit(1)
    life(count, tell)


def main():
    if len(sys.argv) > 1:
        forks_and_ends(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
        return 0
    with tempfile.TemporaryDirectory() as site:
        # As the wheel does it: JAX finds the module, which registers the plugin and jaxlib's handlers.
        os.mkdir(f"{site}/jax_plugins")
        os.symlink(PLUGIN_MODULE, f"{site}/jax_plugins/purlin")
        # OpenBLAS, inside NumPy, would start threads when it is imported.
        return ends_in_orders(dict(os.environ, OPENBLAS_NUM_THREADS="1", JAX_PLATFORMS="purlin,cpu", PYTHONPATH=site))


def ends_in_orders(environment):
    ended = 0
    for i, order in enumerate(ORDERS):
        count = (EXITS + i) // len(ORDERS)
        told, tell = os.pipe()
        with subprocess.Popen([sys.executable, __file__, str(tell), str(count - 1), *order], pass_fds=[tell],
                              env=environment) as process:
            os.close(tell)
            with os.fdopen(told, "rb") as told:
                said = told.read().decode()
        if process.returncode != 0 or said != "right":
            print(f"{' '.join(order)}: ended with {process.returncode}, its static destructors said {said!r}")
            return 1
        ended += count
    print(f"{ended} processes ended as they should")
    return 0


if __name__ == "__main__":
    sys.exit(main())

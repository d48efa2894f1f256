"""Programs that call users' handlers are compiled by stock JAX, and run by stock XLA and by Purlin: the results agree.

The handlers are those of ../xla_ffi_host.cc, which is compiled against XLA's header and knows no Purlin, and those of
../xla_ffi.cc, whose bodies are Purlin code (purlin/adapters/xla_ffi.h) with a Purlin of their own.
"""
import ctypes
import os
import pathlib
import shutil
import sys

import jax
import jax.numpy as jnp
import numpy as np
import purlin_corpus

sys.path.insert(0, str(purlin_corpus.ROOT / "examples/python"))
import export_xla  # noqa: E402

CORPUS = pathlib.Path.cwd() / "xla_ffi_corpus"
MODULES = pathlib.Path(os.environ["PURLIN_INTEROP_MODULES"])
X = np.arange(12, dtype=np.float64).reshape(3, 4)
ATTRIBUTES = dict(
    flag=True, i8=np.int8(-3), i16=np.int16(-300), i32=np.int32(-70000), i64=np.int64(-(2**62)), u8=np.uint8(200),
    u16=np.uint16(65535), u32=np.uint32(4000000000), u64=np.uint64(2**63 - 1), f32=np.float32(0.1), f64=np.float64(np.inf),
    text='a"b\\c\n\u00e9\x00z', i8s=np.int8([-1, 2, 100]), i64s=np.int64([2**40, -5]), u32s=np.full(7, 3, np.uint32),
    f32s=np.float32([1, 0.1, np.inf]), f64s=np.float64([1e300, -0.1]), none=np.int32([]), large=np.arange(1000, dtype=np.int64),
    more=dict(inner=np.int32(1000), name="four"))


def call(name, shape, dtype, *operands, **attributes):
    return jax.ffi.ffi_call(name, jax.ShapeDtypeStruct(shape, dtype))(*operands, **attributes)


def like(name, x, **attributes):
    return call(name, x.shape, x.dtype, x, **attributes)


def programs():
    """Functions and arguments by name."""
    yield "attributes", lambda: call("HostAttributes", (16,), jnp.float64, **ATTRIBUTES)
    yield "state", lambda x: like("HostScale", x, factor=2.5), X
    yield "two_states", lambda x: like("HostScale", like("HostScale", x, factor=2.0) + 1, factor=-1.0), X
    yield "future", lambda x: like("HostLater", x) * 2, X
    yield "scratch", lambda x: like("HostReverse", x), X
    yield "threads", lambda x: like("HostOnThreads", x), X
    yield "in_a_loop", lambda x: jax.lax.fori_loop(0, 20, lambda i, x: like("HostLater", x), x), X
    shapes = (np.float32(1), np.zeros((0, 3), np.int8), jnp.zeros((2, 3), jnp.bfloat16), np.zeros(5, np.complex128), np.bool_(True))
    yield "shapes", lambda *operands: call("HostShapes", (15,), jnp.int64, *operands), *shapes
    single = X.astype(np.float32)
    yield "purlin_scale", lambda x: like("PurlinScale", x, factor=np.float32(2.5)), single
    yield "purlin_scale_later", lambda x: like("PurlinScaleLater", x + 1, factor=np.float32(0.5)) - 1, single
    yield "purlin_copy_later", lambda x: like("PurlinCopyLater", x), np.arange(1 << 16, dtype=np.int32)
    purlin = dict(number=np.int64(40), flag=True, text="four", list=np.array([0.125, 100]), more=dict(inner=np.int32(1000)))
    yield "purlin_attributes", lambda: call("PurlinAttributes", (), jnp.float64, **purlin)
    yield "purlin_on_their_threads", lambda: call("PurlinOnTheirThreads", (100,), jnp.int64) % 1000


def main():
    library = purlin_corpus.load()
    host, ours = (ctypes.CDLL(str(MODULES / f"{name}.so")) for name in ("xla_ffi_host", "xla_ffi"))
    handlers = {f"Host{name}": {"execute": getattr(host, f"Host{name}")} for name in ("Attributes", "Later", "OnThreads", "Reverse", "Shapes")}
    handlers["HostScale"] = {"instantiate": host.HostMakeFactor, "execute": host.HostScale}
    for name in ("Scale", "ScaleLater", "CopyLater", "Attributes", "OnTheirThreads"):
        handlers[f"Purlin{name}"] = {"execute": getattr(ours, f"Purlin{name}")}

    host.host_type_id.restype = host.host_type_info.restype = ctypes.c_void_p
    host.host_alive.restype = host.host_scratches.restype = ctypes.c_int64
    new_capsule = ctypes.pythonapi.PyCapsule_New
    new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    capsules = dict(type_id=new_capsule(host.host_type_id(), b"xla.ffi.type_id", None),
                    type_info=new_capsule(host.host_type_info(), b"xla.ffi.type_info", None))
    jax.devices()  # Before it has devices, JAX keeps registrations, and hands in handlers before types.
    jax.ffi.register_ffi_type("HostFactor", capsules, platform="cpu")
    for name, stages in handlers.items():
        capsule = {stage: jax.ffi.pycapsule(function) for stage, function in stages.items()}
        jax.ffi.register_ffi_target(name, capsule, platform="cpu")

    shutil.rmtree(CORPUS, ignore_errors=True)
    CORPUS.mkdir()
    for name, function, *arguments in programs():
        export_xla.PROGRAMS[name] = (function, tuple(arguments), (), export_xla.WITHOUT_YNN)
        export_xla.export(CORPUS, name)

    jax.clear_caches()
    before, scratches = host.host_alive(), host.host_scratches()
    assert host.host_register(ctypes.c_void_p(library.purlin_ffi_api())) == 0
    addresses = {name: {stage: ctypes.cast(function, ctypes.c_void_p).value for stage, function in stages.items()}
                 for name, stages in handlers.items()}
    purlin_corpus.run(library, CORPUS, addresses, 100)
    assert host.host_alive() == before, "states of Purlin's programs are alive"
    assert host.host_scratches() > scratches, "there was no scratch memory"
    return 0


if __name__ == "__main__":
    sys.exit(main())

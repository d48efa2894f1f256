"""Calls both handlers of xla_ffi.cc from stock JAX, with values and with an error, and compares. With --time it says what a
call takes, from Python to the result: PURLIN_INTEROP_MODULES=build/interop/tree/modules build/interop/venv/bin/python
examples/adopt/xla_ffi.py --time"""
import ctypes
import os
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np

library = ctypes.CDLL(os.path.join(os.environ["PURLIN_INTEROP_MODULES"], "adopt_xla_ffi.so"))
for name in ("NormalizeBefore", "NormalizeAfter"):
    jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(getattr(library, name)), platform="cpu")


def run(name):
    @jax.jit
    def normalize(x, epsilon=1e-3):
        call = jax.ffi.ffi_call(name, jax.ShapeDtypeStruct(x.shape, x.dtype))
        return call(x, epsilon=np.float32(epsilon))

    x = jnp.arange(6, dtype=jnp.float32).reshape(2, 3)
    text = str(np.asarray(normalize(x)))
    try:
        jax.jit(lambda x: normalize.__wrapped__(x, -1.0))(x).block_until_ready()
    except jax.errors.JaxRuntimeError as error:
        text += f" {str(error).splitlines()[0]}"
    return text


def print_times(count):
    x = jnp.arange(count, dtype=jnp.float32)
    handlers = [jax.jit(lambda x, name=name: jax.ffi.ffi_call(name, jax.ShapeDtypeStruct(x.shape, x.dtype))(x, epsilon=np.float32(1e-3)))
                for name in ("NormalizeBefore", "NormalizeAfter")]
    times = [[], []]
    for _ in range(300):
        for normalize, mine in zip(handlers, times):
            begin = time.perf_counter()
            for _ in range(10):
                normalize(x).block_until_ready()
            mine.append((time.perf_counter() - begin) / 10)
    before, after = (min(mine) * 1e6 for mine in times)
    print(f"{count} numbers: before {before:.0f} us, after {after:.0f} us")


if "--time" in sys.argv:
    print_times(4)
    print_times(1 << 20)
    sys.exit(0)
was, now = run("NormalizeBefore"), run("NormalizeAfter")
print(f"before: {was}\nafter:  {now}")
sys.exit(0 if was == now and "epsilon must be positive" in now else 1)

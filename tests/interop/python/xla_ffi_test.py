"""Stock JAX calls handlers whose bodies are Purlin code (xla_ffi.cc): values, errors, and what 10^5 calls leave behind."""
import ctypes
import os
import sys
import threading

import jax
import jax.numpy as jnp
import numpy as np
from memory import leaves_nothing

MODULE = ctypes.CDLL(os.path.join(os.environ["PURLIN_INTEROP_MODULES"], "xla_ffi.so"))
HANDLERS = ("Scale", "ScaleLater", "CopyLater", "Widen", "Attributes", "OnTheirThreads")
CALLS = 100_000


def call(name, shape, dtype, *operands, **attributes):
    return jax.ffi.ffi_call(name, jax.ShapeDtypeStruct(shape, dtype))(*operands, **attributes)


def scale(name, x, factor):
    return call(name, x.shape, x.dtype, x, factor=np.float32(factor))


def expect_error(function, code, *texts):
    try:
        jax.block_until_ready(function())
    except jax.errors.JaxRuntimeError as error:
        for text in (code, *texts):
            assert text in str(error), f"{text!r} is not in {error}"
        return
    raise AssertionError(f"no error {code}")


def test_values():
    x = jnp.arange(12, dtype=jnp.float32).reshape(3, 4)
    for name in ("PurlinScale", "PurlinScaleLater"):
        np.testing.assert_array_equal(jax.jit(lambda x: scale(name, x, 2.5))(x), x * 2.5)
        # Beside other computations, and after one another.
        np.testing.assert_array_equal(jax.jit(lambda x: scale(name, scale(name, x + 1, 2) - 1, 3) * 2)(x), ((x + 1) * 2 - 1) * 6)
        np.testing.assert_array_equal(jax.jit(lambda: scale(name, jnp.float32(3), 2))(), 6)
        assert jax.jit(lambda: scale(name, jnp.zeros((0, 3), jnp.float32), 2))().shape == (0, 3)
    large = jnp.arange(1 << 20, dtype=jnp.float32)
    np.testing.assert_array_equal(jax.jit(lambda x: scale("PurlinScaleLater", x, 2))(large), large * 2)


def test_element_types():
    copy = jax.jit(lambda x: call("PurlinCopyLater", x.shape, x.dtype, x))
    for dtype in ("bool", "int8", "int16", "int32", "uint8", "uint16", "uint32", "float16", "bfloat16", "float32", "complex64",
                  "float8_e5m2", "float8_e4m3fn", "float8_e4m3b11fnuz", "float8_e5m2fnuz", "float8_e4m3fnuz"):
        x = jnp.asarray(np.arange(7) % 2, dtype=dtype)
        np.testing.assert_array_equal(copy(x), x, err_msg=dtype)
    # More bytes than are copied inside the call.
    large = jnp.arange(1 << 20, dtype=jnp.int32)
    np.testing.assert_array_equal(copy(large), large)
    # Packed, two to a byte.
    for dtype in ("int4", "uint4"):
        x = jnp.asarray([1, 2, 3, 4, 7], dtype=dtype)
        wide = jax.jit(lambda x: call("PurlinWiden", x.shape, jnp.int8, x))(x)
        np.testing.assert_array_equal(wide, [1, 2, 3, 4, 7], err_msg=dtype)


def test_attributes():
    attributes = dict(number=np.int64(40), flag=True, text="four", list=np.array([0.125, 100]), more=dict(inner=np.int32(1000)))
    with jax.enable_x64(True):
        total = jax.jit(lambda: call("PurlinAttributes", (), jnp.float64, **attributes))
        assert total() == 40 + 0.5 + 1000 + 4 + 100.125
        attributes["more"] = dict(other=np.int32(1))
        expect_error(jax.jit(lambda: call("PurlinAttributes", (), jnp.float64, **attributes)), "INTERNAL", "inner")
        attributes["more"] = dict(inner=np.int32(1))
        attributes["number"] = "text"
        expect_error(jax.jit(lambda: call("PurlinAttributes", (), jnp.float64, **attributes)), "INVALID_ARGUMENT")


def test_their_threads():
    with jax.enable_x64(True):
        written = np.asarray(jax.jit(lambda: call("PurlinOnTheirThreads", (100,), jnp.int64))())
    assert (written % 1000 == np.arange(100)).all() and len(set(written // 1000)) == 1, written


def test_errors():
    x = jnp.ones(4, jnp.float32)
    for name in ("PurlinScale", "PurlinScaleLater"):
        failing = jax.jit(lambda x: scale(name, x, float("inf")))
        for _ in range(3):
            expect_error(lambda: failing(x), "OUT_OF_RANGE", "the factor is inf")
        # What depends on it fails like it, and the next call does not.
        expect_error(lambda: jax.jit(lambda x: scale(name, x, float("nan")) + 1)(x), "OUT_OF_RANGE", "the factor is")
        np.testing.assert_array_equal(jax.jit(lambda x: scale(name, x, 2))(x), 2 * x)
    half = jnp.ones(4, jnp.float16)
    expect_error(lambda: jax.jit(lambda x: call("PurlinScale", x.shape, x.dtype, x, factor=np.float32(1)))(half), "INVALID_ARGUMENT")


def test_many_threads():
    x = jnp.arange(1000, dtype=jnp.float32)
    later = jax.jit(lambda x: scale("PurlinScaleLater", scale("PurlinScaleLater", x, 2), 3))
    wrong = []

    def work():
        for _ in range(200):
            if not np.array_equal(later(x), x * 6):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_many_calls_leave_nothing():
    x = jnp.arange(16, dtype=jnp.float32)
    failing = jax.jit(lambda x: scale("PurlinScaleLater", x, float("inf")))

    def fail(x):
        try:
            return jax.block_until_ready(failing(x))
        except jax.errors.JaxRuntimeError:
            return x

    leaves_nothing("PurlinScale", MODULE, jax.jit(lambda x: scale("PurlinScale", x, 1)), x, CALLS)
    leaves_nothing("PurlinScaleLater", MODULE, jax.jit(lambda x: scale("PurlinScaleLater", x, 1)), x, CALLS)
    leaves_nothing("PurlinScaleLater, failing", MODULE, fail, x, CALLS // 100)


def main():
    for name in HANDLERS:
        jax.ffi.register_ffi_target(f"Purlin{name}", jax.ffi.pycapsule(getattr(MODULE, f"Purlin{name}")), platform="cpu")
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            print(name, flush=True)
            test()
    return 0


if __name__ == "__main__":
    sys.exit(main())

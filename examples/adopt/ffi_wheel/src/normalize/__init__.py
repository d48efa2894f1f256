"""Divides an array by its length, in C++, below jax.jit on the CPU."""
import ctypes
import pathlib

import jax
import numpy as np

_library = ctypes.CDLL(pathlib.Path(__file__).with_name("normalize.so"))
jax.ffi.register_ffi_target("normalize", jax.ffi.pycapsule(_library.NormalizeHandler), platform="cpu")


def normalize(x, epsilon=1e-6):
    call = jax.ffi.ffi_call("normalize", jax.ShapeDtypeStruct(x.shape, x.dtype))
    return call(x, epsilon=np.float32(epsilon))

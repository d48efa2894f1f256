"""The handler of Python callbacks (`jax.pure_callback`, `io_callback`, `jax.debug.print`): a custom call whose
attribute `index` says which callable of the run it calls. It runs on the thread that runs the program.
"""
import ctypes

import ml_dtypes
import numpy as np

from .abi import CallFrame, Callbacks, ContextGet, ErrorCreate, MetadataExtension, Scalar

# jaxlib's number for the callables of a run, and XLA's for the stage, the extension, the token, the error.
CALLBACKS = ctypes.c_int64(7357244197867843242)
EXECUTE, METADATA, TOKEN, INTERNAL = 3, 1, 17, 13
# By XLA's number of the element type.
DTYPES = {
    1: np.bool_, 2: np.int8, 3: np.int16, 4: np.int32, 5: np.int64, 6: np.uint8, 7: np.uint16, 8: np.uint32,
    9: np.uint64, 10: np.float16, 11: np.float32, 12: np.float64, 15: np.complex64, 18: np.complex128,
    16: ml_dtypes.bfloat16, 19: ml_dtypes.float8_e5m2, 20: ml_dtypes.float8_e4m3fn, 21: ml_dtypes.int4,
    22: ml_dtypes.uint4, 23: ml_dtypes.float8_e4m3b11fnuz, 24: ml_dtypes.float8_e5m2fnuz,
    25: ml_dtypes.float8_e4m3fnuz, 26: ml_dtypes.int2, 27: ml_dtypes.uint2, 28: ml_dtypes.float8_e4m3,
    29: ml_dtypes.float8_e3m4, 32: ml_dtypes.float4_e2m1fn, 33: ml_dtypes.float8_e8m0fnu,
}
# Of types narrower than a byte, several elements share one.
BITS = {21: 4, 22: 4, 26: 2, 27: 2, 32: 4}
FLOAT4 = 32


def array_of(buffer):
    """A copy of an argument: the memory is the program's."""
    if buffer.dtype == TOKEN:
        return None
    if buffer.dtype not in DTYPES:
        raise TypeError(f"a callback's argument has the element type {buffer.dtype} of XLA's FFI, which NumPy has not")
    shape = tuple(buffer.dims[at] for at in range(buffer.rank))
    dtype, count = np.dtype(DTYPES[buffer.dtype]), int(np.prod(shape, dtype=np.int64))
    if buffer.dtype in BITS:
        bits = BITS[buffer.dtype]
        packed = np.frombuffer(ctypes.string_at(buffer.data, -(-count * bits // 8)), np.uint8)
        each = (packed[:, None] >> np.arange(0, 8, bits, dtype=np.uint8)) & (2**bits - 1)
        each = each.reshape(-1)[:count].astype(np.uint8)
        return (each.view(dtype) if buffer.dtype == FLOAT4 else each.view(np.int8).astype(dtype)).reshape(shape)
    return np.frombuffer(ctypes.string_at(buffer.data, count * dtype.itemsize), dtype).reshape(shape).copy()


def write(buffer, value):
    """Writes a result."""
    if buffer.dtype == TOKEN:
        return
    if buffer.dtype not in DTYPES:
        raise TypeError(f"a callback's result has the element type {buffer.dtype} of XLA's FFI, which NumPy has not")
    dtype = np.dtype(DTYPES[buffer.dtype])
    shape = tuple(buffer.dims[at] for at in range(buffer.rank))
    value = np.asarray(value, dtype, order="C")
    if value.shape != shape:
        raise ValueError(f"a callback's result has the shape {value.shape}; the program expects {shape}")
    if buffer.dtype in BITS:
        bits = BITS[buffer.dtype]
        each = value.view(np.uint8) if buffer.dtype == FLOAT4 else value.astype(np.int8).view(np.uint8)
        each = each.reshape(-1) & (2**bits - 1)
        each = np.append(each, np.zeros(-len(each) % (8 // bits), np.uint8)).reshape(-1, 8 // bits)
        value = np.bitwise_or.reduce(each << np.arange(0, 8, bits, dtype=np.uint8), axis=1).astype(np.uint8)
    ctypes.memmove(buffer.data, value.ctypes.data, value.nbytes)


def callable_of(frame):
    """The callable that the call's attribute names, of those that the run was given."""
    wanted = {}
    for at in range(frame.attributes.count):
        span = frame.attributes.names[at].contents
        wanted[ctypes.string_at(span.begin, span.size)] = frame.attributes.values[at]
    scalar = Scalar.from_address(wanted[b"index"])
    index = ctypes.c_uint64.from_address(scalar.value).value
    args = ContextGet(ctypes.sizeof(ContextGet), None, frame.context, ctypes.pointer(CALLBACKS), None)
    error = frame.api.contents.context_get(ctypes.byref(args))
    if error:
        return None, error
    callbacks = Callbacks.from_address(args.data)
    if index >= callbacks.count:
        raise IndexError(f"a program calls callback {index}, and the run has {callbacks.count}")
    return ctypes.cast(callbacks.callables[index], ctypes.py_object).value, None


def run(frame):
    """Calls back; returns XLA's error, or None."""
    function, error = callable_of(frame)
    if error:
        return error
    arguments = [array_of(frame.arguments.buffers[at].contents) for at in range(frame.arguments.count)]
    results = function(*arguments)
    for at in range(frame.results.count):
        write(frame.results.buffers[at].contents, results[at])
    return None


def describe(extension):
    """Says which version of XLA's FFI this is written for."""
    metadata = extension.metadata.contents
    metadata.major, metadata.minor, metadata.traits = 0, 3, 0


@ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(CallFrame))
def handler(frame):
    """An XLA_FFI_Handler."""
    frame = frame.contents
    if frame.extension_start:
        extension = MetadataExtension.from_address(frame.extension_start)
        if extension.base.kind == METADATA:
            describe(extension)
            return None
    if frame.stage != EXECUTE:
        return None
    try:
        return run(frame)
    except BaseException as error:  # Nothing may leave a function that C calls.
        message = f"CpuCallback error calling callback: {type(error).__name__}: {error}".encode(errors="replace")
        args = ErrorCreate(ctypes.sizeof(ErrorCreate), None, message, INTERNAL)
        return frame.api.contents.error_create(ctypes.byref(args))

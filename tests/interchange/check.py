"""Purlin's files and DLPack structs against NumPy's, safetensors' and ml_dtypes' own, in both directions.

  check.py PATH_OF_libpurlin_interchange.so

One line for what failed; then "N passed, N failed", and exit code 1 if any failed.
"""

import ctypes
import gc
import io
import json
import os
import sys
import tempfile

import ml_dtypes
import numpy as np
import safetensors
import safetensors.numpy

lib = ctypes.CDLL(sys.argv[1])
Pointer, Flag, Size = ctypes.c_void_p, ctypes.c_bool, ctypes.c_size_t
for name, result, *arguments in [
    ("failure", ctypes.c_char_p),
    ("read_npy", Pointer, ctypes.c_char_p, ctypes.c_uint8, ctypes.c_uint8, ctypes.POINTER(Flag)),
    ("write_npy", Flag, ctypes.c_char_p, Pointer),
    ("open", Pointer, ctypes.c_char_p, ctypes.c_uint8),
    ("close", None, Pointer),
    ("entry_count", Size, Pointer),
    ("read", Pointer, Pointer, ctypes.c_char_p, ctypes.POINTER(Flag)),
    ("write_safetensors", Flag, ctypes.c_char_p, ctypes.POINTER(ctypes.c_char_p), ctypes.POINTER(Pointer), Size,
     ctypes.c_char_p, ctypes.c_char_p),
    ("to_dlpack", Pointer, Pointer),
    ("from_dlpack", Pointer, Pointer, ctypes.POINTER(Flag)),
    ("dtype", ctypes.c_uint8, Pointer),
    ("dims", Size, Pointer, ctypes.POINTER(ctypes.c_int64)),
    ("copy_to_host", Flag, Pointer, Pointer, Size),
    ("free", None, Pointer),
]:
    function = getattr(lib, "interchange_" + name)
    function.restype, function.argtypes = result, arguments

capsules = ctypes.pythonapi
capsules.PyCapsule_New.restype = ctypes.py_object
capsules.PyCapsule_New.argtypes = [Pointer, ctypes.c_char_p, Pointer]
capsules.PyCapsule_GetPointer.restype = Pointer
capsules.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
capsules.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
FRESH, USED = b"dltensor_versioned", b"used_dltensor_versioned"

# Purlin's numbers (purlin/dtype.h) of NumPy's types.
PLAIN = {"?": 1, "i1": 2, "i2": 3, "i4": 4, "i8": 5, "u1": 6, "u2": 7, "u4": 8, "u8": 9, "f2": 10, "f4": 11, "f8": 12,
         "c8": 14, "c16": 15}
OPAQUE = {"bfloat16": 13, "float8_e5m2": 16, "float8_e4m3fn": 17, "float8_e4m3b11fnuz": 18, "float8_e5m2fnuz": 19,
          "float8_e4m3fnuz": 20, "int4": 21, "uint4": 22, "int2": 24, "uint2": 25, "float8_e4m3": 26,
          "float8_e3m4": 27, "float8_e8m0fnu": 28, "float4_e2m1fn": 29}
SHAPES = [(), (0,), (3,), (4, 0, 2), (2, 3, 5), (1, 64, 33)]
passed = failed = 0


def check(what, holds):
    global passed, failed
    passed, failed = passed + bool(holds), failed + (not holds)
    if not holds:
        print("FAILED ", what)


class Failure(Exception):
    pass


def must(answer):
    if not answer:
        raise Failure(lib.interchange_failure().decode())
    return answer


class Buffer:
    """A buffer of ours; as NumPy wants a producer of DLPack to be."""

    def __init__(self, pointer, is_aliased):
        self.pointer, self.is_aliased = must(pointer), is_aliased.value

    @classmethod
    def read_npy(cls, path, dtype=0, access=0):
        flag = Flag()
        return cls(lib.interchange_read_npy(path.encode(), dtype, access, flag), flag)

    @classmethod
    def of(cls, array):
        """By DLPack."""
        capsule, flag = array.__dlpack__(max_version=(1, 1)), Flag()
        made = cls(lib.interchange_from_dlpack(capsules.PyCapsule_GetPointer(capsule, FRESH), flag), flag)
        # Ours now: the capsule's own destructor leaves it alone.
        capsules.PyCapsule_SetName(capsule, USED)
        return made

    def __dlpack__(self, **_):
        return capsules.PyCapsule_New(must(lib.interchange_to_dlpack(self.pointer)), FRESH, None)

    def __dlpack_device__(self):
        return (1, 0)

    def __del__(self):
        lib.interchange_free(getattr(self, "pointer", None))

    def array(self, dtype):
        """A copy, not by DLPack."""
        dims = (ctypes.c_int64 * 64)()
        shape = tuple(dims[: lib.interchange_dims(self.pointer, dims)])
        array = np.empty(shape, dtype)
        must(lib.interchange_copy_to_host(self.pointer, array.ctypes.data, array.nbytes))
        return array

    def number(self):
        return lib.interchange_dtype(self.pointer)


def sample(shape, dtype):
    """Every element another, where the type has so many."""
    count = int(np.prod(shape))
    if dtype.kind in "biufc" and dtype != np.dtype("?"):
        return (np.arange(count) - (count // 2 if dtype.kind != "u" else 0)).astype(dtype).reshape(shape)
    if dtype == np.dtype("?"):
        return (np.arange(count) % 3 == 0).reshape(shape)
    return (np.arange(count) % 2).astype(dtype).reshape(shape)


def same(a, b):
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


def refusal(call):
    try:
        call()
    except Failure as why:
        return str(why)
    return "nothing was refused"


def npy(folder):
    path, again = os.path.join(folder, "a.npy"), os.path.join(folder, "b.npy")
    for name, number in PLAIN.items():
        for shape in SHAPES:
            for order in "CF":
                array = np.asarray(sample(shape, np.dtype(name)), order=order)
                for version in [(1, 0), (2, 0), (3, 0)]:
                    with open(path, "wb") as file:
                        np.lib.format.write_array(file, array, version)
                    for access in (0, 1):
                        what = f"npy {name}{shape} {order} {version} access {access}"
                        read = Buffer.read_npy(path, 0, access)
                        check(what, read.number() == number and same(read.array(array.dtype), np.ascontiguousarray(array).reshape(shape)))
                        # NumPy's own fortran_order is False where both orders are one.
                        is_rows = not (array.flags.f_contiguous and not array.flags.c_contiguous)
                        check(what + " aliased", read.is_aliased == (access == 1 and is_rows and array.size > 0))
                    must(lib.interchange_write_npy(again.encode(), read.pointer))
                    check(what + " written", same(np.load(again, allow_pickle=False), np.ascontiguousarray(array).reshape(shape)))
                    check(what + " memory-mapped", array.size == 0 or np.load(again, mmap_mode="r").tobytes() == array.tobytes())
            plain = io.BytesIO()
            np.save(plain, sample(shape, np.dtype(name)))
            with open(again, "rb") as file:
                check(f"npy {name}{shape} to the byte", file.read() == plain.getvalue())
    for name, number in OPAQUE.items():
        array = sample((5, 7), np.dtype(getattr(ml_dtypes, name)))
        np.save(path, array)
        check(f"npy {name} unnamed", "must be named" in refusal(lambda: Buffer.read_npy(path)))
        for access in (0, 1):
            read = Buffer.read_npy(path, number, access)
            check(f"npy {name} access {access}", read.number() == number and same(read.array(array.dtype), array))
        must(lib.interchange_write_npy(again.encode(), read.pointer))
        check(f"npy {name} written", same(np.load(again).view(array.dtype), array))
    for array, says in [(np.array([{}]), "pickled objects"), (np.zeros(2, ">f4"), "big-endian"), (np.zeros(2, "U3"), "text"),
                        (np.zeros(2, [("a", "<f4")]), "structured"), (np.zeros(2, "M8[s]"), "dates"),
                        (np.zeros(2, "g"), "wider than 64 bits"), (np.zeros(2, "V7"), "opaque elements")]:
        np.save(path, array)
        why = refusal(lambda: Buffer.read_npy(path))
        check(f"npy refuses {array.dtype}: {why}", says in why and "UNIMPLEMENTED" in why.upper() and ", byte " in why)


def tensors(folder):
    path, again = os.path.join(folder, "a.safetensors"), os.path.join(folder, "b.safetensors")
    arrays = {f"{name}{shape}": sample(shape, np.dtype(name)) for name in PLAIN if name != "c16" for shape in SHAPES}
    safetensors.numpy.save_file(arrays, path, metadata={"format": "np", "who": "\u00e9"})
    for access in (0, 1):
        file = must(lib.interchange_open(path.encode(), access))
        check("safetensors entries", lib.interchange_entry_count(file) == len(arrays))
        buffers = {}
        for name, array in arrays.items():
            flag = Flag()
            buffers[name] = Buffer(lib.interchange_read(file, name.encode(), flag), flag)
            check(f"safetensors {name} access {access}", same(buffers[name].array(array.dtype), array))
        lib.interchange_close(file)
    names = (ctypes.c_char_p * len(arrays))(*[name.encode() for name in arrays])
    pointers = (Pointer * len(arrays))(*[buffers[name].pointer for name in arrays])
    must(lib.interchange_write_safetensors(again.encode(), names, pointers, len(arrays), b"who", "\u00e9".encode()))
    back = safetensors.numpy.load_file(again)
    check("safetensors names", back.keys() == arrays.keys())
    for name, array in arrays.items():
        check(f"safetensors {name} written", same(back[name], array))
    with safetensors.safe_open(again, framework="np") as opened:
        check("safetensors metadata", opened.metadata() == {"who": "\u00e9"})

    # What NumPy has no types for, by the format's own names; and packed elements.
    raw = {"BF16": (13, 2), "F8_E5M2": (16, 1), "F8_E4M3": (17, 1), "F8_E8M0": (28, 1), "F8_E4M3FNUZ": (20, 1),
           "F8_E5M2FNUZ": (19, 1)}
    header, data = {}, b""
    for name, (number, width) in raw.items():
        header[name] = {"dtype": name, "shape": [2, 8], "data_offsets": [len(data), len(data) + 16 * width]}
        data += bytes(range(16 * width))
    header["F4"] = {"dtype": "F4", "shape": [3, 2], "data_offsets": [len(data), len(data) + 3]}
    data += b"\x21\x43\x65"
    text = json.dumps(header).encode()
    with open(path, "wb") as out:
        out.write(len(text).to_bytes(8, "little") + text + data)
    file = must(lib.interchange_open(path.encode(), 1))
    kept, keys = [], list(header)
    for name in keys:
        flag = Flag()
        kept.append(Buffer(lib.interchange_read(file, name.encode(), flag), flag))
        if name == "F4":
            check("safetensors F4", kept[-1].array(np.uint8).tobytes() == b"\1\2\3\4\5\6")
        else:
            number, width = raw[name]
            check(f"safetensors {name}", kept[-1].number() == number and kept[-1].array(f"V{width}").tobytes() == bytes(range(16 * width)))
    lib.interchange_close(file)
    names = (ctypes.c_char_p * len(keys))(*[name.encode() for name in keys])
    pointers = (Pointer * len(keys))(*[buffer.pointer for buffer in kept])
    must(lib.interchange_write_safetensors(again.encode(), names, pointers, len(keys), b"k", b"v"))
    with open(again, "rb") as written:
        back = dict(safetensors.deserialize(written.read()))
    for name in keys:
        begin, end = header[name]["data_offsets"]
        check(f"safetensors {name} written", back[name]["dtype"].upper() == name and back[name]["shape"] == header[name]["shape"]
              and bytes(back[name]["data"]) == data[begin:end])


def dlpack():
    for name, number in PLAIN.items():
        for shape in SHAPES:
            array = sample(shape, np.dtype(name))
            buffer = Buffer.of(array)
            check(f"dlpack {name}{shape} in", buffer.number() == number and same(buffer.array(array.dtype), array))
            back = np.from_dlpack(buffer)
            check(f"dlpack {name}{shape} out", same(back, array) and not back.flags.writeable)
            if array.size and array.ctypes.data % 16 == 0:
                check(f"dlpack {name}{shape} is the same memory", buffer.is_aliased and back.ctypes.data == array.ctypes.data)
    base = np.arange(2 * 3 * 5, dtype=np.int16).reshape(2, 3, 5)
    for what, view in [("transposed", base.T), ("backwards", base[::-1, :, ::-1]), ("every other", base[:, ::2, 1::3]),
                       ("broadcast", np.broadcast_to(base[:1], (4, 3, 5))), ("odd address", base.ravel()[1:])]:
        buffer = Buffer.of(view)
        check(f"dlpack {what}", same(buffer.array(view.dtype), np.ascontiguousarray(view)) and not buffer.is_aliased)
    # Lifetimes: an array of NumPy's lives as long as our buffer, our memory as long as NumPy's array.
    array = np.arange(1024, dtype=np.float32)
    before = sys.getrefcount(array)
    buffer = Buffer.of(array)
    check("dlpack holds NumPy's array", sys.getrefcount(array) > before)
    view = np.from_dlpack(buffer)
    del buffer
    gc.collect()
    check("dlpack is held by NumPy's view", sys.getrefcount(array) > before and same(view, array))
    del view
    gc.collect()
    check("dlpack lets go of NumPy's array", sys.getrefcount(array) == before)
    for dtype in (">f4", "U3", "g"):
        try:
            Buffer.of(np.zeros(3, dtype))
            check(f"dlpack {dtype} is refused by NumPy", False)
        except BufferError:
            check(f"dlpack {dtype} is refused by NumPy", True)


with tempfile.TemporaryDirectory() as folder:
    npy(folder)
    tensors(folder)
    dlpack()
print(f"NumPy {np.__version__}, safetensors {safetensors.__version__}, ml_dtypes {ml_dtypes.__version__}")
print(f"{passed} passed, {failed} failed")
sys.exit(failed > 0)

"""Compiles programs for the CPU with stock JAX, and writes the executables, their arguments and stock XLA's results.

  export_xla.py FOLDER [--only REGEX] [--list] [--time]

For each program it writes NAME.xla, the serialized executable; NAME.args/0.npy, 1.npy, ..., its arguments; and
NAME.results/0.npy, ..., the results of stock XLA. A program for several devices has NAME.args1, NAME.args2, ... and
NAME.results1, ... for the further devices, which are its partitions. A name that ends in `.ynn` means that the program is
compiled with XLA's defaults, which hand reductions, products and convolutions to YNNPACK: the executable then has no code
for them, but their computation. The others are compiled without YNNPACK. tests/interop runs all of them. A program that
stock JAX refuses is reported, and the others are still written.
"""
import argparse
import pathlib
import re
import shutil
import time

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

DEVICES = 4
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_num_cpu_devices", DEVICES)

WITHOUT_YNN = {"xla_cpu_experimental_ynn_fusion_type": ""}
PROGRAMS = {}


def program(*arguments, donate=(), ynn=False, name=None):
    """Adds a function to the list; with `ynn`, also a second version that XLA compiles with its defaults ("only": just
    that one)."""

    def add(function):
        title = name or function.__name__.rstrip("_")
        if ynn != "only":
            PROGRAMS[title] = (function, arguments, donate, WITHOUT_YNN)
        if ynn:
            PROGRAMS[f"{title}.ynn"] = (function, arguments, donate, {})
        return function

    return add


def sharded(*arguments, name, devices=DEVICES, axes=None):
    """Adds a function that runs on several devices, each with a part of the arguments along their first axes."""

    def add(function):
        names, sizes = zip(*(axes or {"i": devices}).items())
        mesh = Mesh(np.array(jax.devices()[:devices]).reshape(sizes), names)
        spec = PartitionSpec(names if len(names) > 1 else names[0])
        mapped = jax.shard_map(function, mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)
        placed = tuple(jax.device_put(argument, NamedSharding(mesh, spec)) for argument in arguments)
        PROGRAMS[name] = (mapped, placed, (), WITHOUT_YNN)
        return function

    return add


def f32(*dims, seed=0):
    return np.random.default_rng(seed).standard_normal(dims).astype(np.float32)


def ints(*dims, low=-9, high=9, dtype=np.int32):
    return np.random.default_rng(1).integers(low, high, dims).astype(dtype)


def complexes(*dims, dtype=np.complex64):
    return (f32(*dims) + 1j * f32(*dims, seed=1)).astype(dtype)


X, Y, M = f32(8), f32(8, seed=1), f32(8, 8)

# Elementwise functions, in every type.
program(X, name="add_one")(lambda x: x + 1)
program(X, donate=(0,), name="add_one_donated")(lambda x: x + 1)
program(np.float32(3), name="scalar")(lambda x: x * 2)
program(f32(0, 4), name="empty")(lambda x: x + 1)
program(f32(3, 0), ynn=True, name="sum_of_empty")(lambda x: x.sum(axis=1))
program(f32(1000, 1000), name="add_one_large")(lambda x: x + 1)
program(X, name="pass_through")(lambda x: x)
program(X, Y, name="swap")(lambda x, y: (y, x))
program(X, Y, donate=(0, 1), name="swap_donated")(lambda x, y: (y, x))
program(X, Y, name="tuples")(lambda x, y: {"sum": x + y, "both": (x, [y * 2])})
program(X, name="same_twice")(lambda x: (x + 1, x + 1))
program(*[f32(4, seed=n) for n in range(8)], name="eight_in_eight_out")(lambda *xs: tuple(x + n for n, x in enumerate(xs)))
program(*[f32(4, seed=n) for n in range(32)], name="thirty_two_in_thirty_two_out")(lambda *xs: tuple(x * n for n, x in enumerate(xs)))
program(name="no_arguments")(lambda: jnp.arange(10) * 3)
program(X, name="no_results")(lambda x: ())
program(X, name="unused")(lambda x: jnp.float32(2))
program(X, name="constants")(lambda x: x + np.arange(8, dtype=np.float32) * np.float32(0.5))
program(f32(64, 64), name="large_constant")(lambda x: x[3] + jnp.asarray(np.linspace(0, 1, 4096, dtype=np.float32).reshape(64, 64))[x.argmax() % 64])
for dtype in (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64):
    program(ints(9, low=0, dtype=dtype), name=f"integers_{np.dtype(dtype).name}")(lambda x: (x * 3 + 1, x // 2, x << 1))
for dtype in (np.float16, np.float32, np.float64, jnp.bfloat16):
    program(f32(9).astype(dtype), name=f"floats_{np.dtype(dtype).name}")(lambda x: (x * 3 + 1, jnp.sqrt(abs(x)), x > 0))
for dtype in ("float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e3m4", "float8_e4m3", "float8_e8m0fnu"):
    program(abs(f32(9)).astype(getattr(ml_dtypes, dtype)), name=dtype)(lambda x: (x.astype(jnp.float32) * 2).astype(x.dtype))
for dtype in ("int4", "uint4", "int2", "uint2"):
    program(ints(8, low=0, high=2).astype(getattr(ml_dtypes, dtype)), name=dtype)(lambda x: x + x.dtype.type(1))
    program(ints(7, low=0, high=2).astype(getattr(ml_dtypes, dtype)), name=f"{dtype}_widened")(lambda x: x.astype(jnp.int32) * 3)
program(f32(8).astype(ml_dtypes.float4_e2m1fn), name="float4_e2m1fn")(lambda x: x.astype(jnp.float32) + 1)
for dtype in (np.complex64, np.complex128):
    program(complexes(7, dtype=dtype), name=f"complex_{np.dtype(dtype).name}")(lambda x: (x * x, jnp.abs(x), jnp.exp(x), x.conj()))
program(np.array([True, False, True]), name="bool")(lambda x: (~x, x.any(), x.all()))
program(X, name="bitcasts")(lambda x: (lax.bitcast_convert_type(x, jnp.int32), lax.bitcast_convert_type(x, jnp.uint8)))
program(abs(f32(100)) + 0.1, name="special")(lambda x: (jnp.sin(x), jnp.cos(x), jnp.tan(x), jnp.log(x), jnp.exp2(x), jnp.tanh(x), lax.lgamma(x), lax.erf(x), x**2.5))
program(abs(np.float64(f32(100))) + 0.1, name="special_f64")(lambda x: (jnp.sin(x), jnp.tan(x), jnp.arctan2(x, x + 1), jnp.log1p(x), x**2.5, lax.digamma(x)))
program(f32(50), f32(50, seed=2), name="remainders")(lambda x, y: (jnp.fmod(x, y), jnp.remainder(x, y), jnp.arctan2(x, y), jnp.hypot(x, y), jnp.nextafter(x, y)))
program(np.float32([np.nan, np.inf, -np.inf, -0.0, 1e-40]), name="not_numbers")(lambda x: (jnp.isnan(x), x + 0, jnp.sign(x), jnp.maximum(x, 0), x * 2))
program(ints(20, low=1, dtype=np.uint32), name="bits")(lambda x: (lax.population_count(x), lax.clz(x), x ^ 5, x >> 1))
program(f32(9), name="rounding")(lambda x: (jnp.round(x), jnp.floor(x), jnp.ceil(x), jnp.trunc(x), lax.reduce_precision(x, 5, 3)))

# Moving elements.
program(f32(3, 5), name="transpose")(lambda x: x.T)
program(f32(2, 3, 4), name="transpose_3d")(lambda x: jnp.transpose(x, (2, 0, 1)) + 1)
program(f32(3, 5), f32(2, 5), name="pad_and_concatenate")(lambda x, y: jnp.concatenate([jnp.pad(x, 1)[:, 1:-1], y]))
program(f32(10, 4), ints(6, low=0), name="gather")(lambda x, i: x[i])
program(f32(10, 4), ints(6, low=0), f32(6, 4), name="scatter")(lambda x, i, y: x.at[i].add(y))
program(f32(10, 4), np.int32(3), name="dynamic_slice")(lambda x, i: lax.dynamic_slice(x, (i, np.int32(1)), (2, 2)))
program(f32(10, 4), np.int32(3), donate=(0,), name="dynamic_update_slice_donated")(lambda x, i: lax.dynamic_update_slice(x, x[:2] * 2, (i, np.int32(0))))
program(f32(4, 6), name="reverse_and_slice")(lambda x: x[::-1, ::2])
program(f32(4, 6), name="reshape")(lambda x: x.reshape(3, 8)[1:])
program(f32(4, 1), name="broadcast")(lambda x: jnp.broadcast_to(x, (2, 4, 3)) * 2)
program(f32(5), name="outer")(lambda x: jnp.outer(x, x) + jnp.eye(5, dtype=x.dtype))
program(f32(6, 6), name="triangles")(lambda x: (jnp.tril(x), jnp.triu(x, 1), jnp.diag(x)))
program(f32(6), name="roll_and_repeat")(lambda x: (jnp.roll(x, 2), jnp.repeat(x, 3), jnp.tile(x, 2)))
program(f32(6), name="where_and_clip")(lambda x: (jnp.where(x > 0, x, -x * 2), jnp.clip(x, -0.5, 0.5)))
program(f32(12), ints(12, low=0, high=4), name="segment_sum")(lambda x, i: jax.ops.segment_sum(x, i, num_segments=4))

# Reductions.
program(f32(64, 100), ynn=True, name="sum")(lambda x: x.sum())
program(f32(64, 100), ynn=True, name="sum_of_rows")(lambda x: x.sum(axis=1))
program(f32(64, 100), ynn=True, name="maximum")(lambda x: (x.max(axis=0), x.argmax(axis=1), x.min()))
program(abs(f32(1000000)), ynn=True, name="sum_of_a_million")(lambda x: x.sum())
program(f32(20), ynn=True, name="elementwise_and_reduce")(lambda x: (jnp.exp(x) * 2).sum() + x)
program(f32(64, 1000), ynn=True, name="softmax")(lambda x: jax.nn.softmax(x))
program(f32(16, 64), ynn=True, name="layernorm")(lambda x: (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5))
program(f32(50), ynn=True, name="logsumexp")(lambda x: jax.nn.logsumexp(x))
program(f32(1000), name="cumulative_sum")(lambda x: jnp.cumsum(x))
program(f32(40), name="associative_scan")(lambda x: lax.associative_scan(jnp.multiply, x))
program(f32(40), name="cumulative_maximum")(lambda x: (lax.cummax(x), lax.cumprod(x), lax.cumlogsumexp(x)))
program(f32(1, 8, 8, 3), ynn=True, name="max_pool")(lambda x: lax.reduce_window(x, -np.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"))
program(f32(1, 8, 8, 3), ynn=True, name="max_pool_gradient")(jax.grad(lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID").sum()))

# Products.
program(M, M, ynn=True, name="matmul_8")(lambda x, y: x @ y)
program(f32(512, 512), f32(512, 512, seed=1), ynn=True, name="matmul_512")(lambda x, y: x @ y)
program(f32(512, 512).astype(jnp.bfloat16), f32(512, 512, seed=1).astype(jnp.bfloat16), ynn=True, name="matmul_512_bf16")(lambda x, y: x @ y)
program(f32(5, 7).astype(np.float16), f32(7, 3).astype(np.float16), ynn=True, name="matmul_f16")(lambda x, y: x @ y)
program(np.float64(f32(5, 7)), np.float64(f32(7, 3)), ynn=True, name="matmul_f64")(lambda x, y: x @ y)
program(complexes(5, 7), complexes(7, 3), ynn=True, name="matmul_c64")(lambda x, y: x @ y)
program(complexes(5, 7, dtype=np.complex128), complexes(7, 3, dtype=np.complex128), name="matmul_c128")(lambda x, y: x @ y)
program(ints(5, 7), ints(7, 3), ynn=True, name="matmul_s32")(lambda x, y: x @ y)
program(ints(5, 7, dtype=np.int64), ints(7, 3, dtype=np.int64), name="matmul_s64")(lambda x, y: x @ y)
program(ints(5, 7, dtype=np.int8), ints(7, 3, dtype=np.int8), ynn=True, name="matmul_s8")(lambda x, y: lax.dot(x, y, preferred_element_type=jnp.int32))
program(f32(30, 40), f32(40), ynn=True, name="matrix_vector")(lambda x, y: x @ y)
program(f32(40), f32(40, seed=3), name="inner_product")(lambda x, y: x @ y)
program(f32(6, 30, 40), f32(6, 40, 20), ynn=True, name="batch_matmul")(lambda x, y: x @ y)
program(f32(30, 40), f32(20, 40), ynn=True, name="matmul_transposed")(lambda x, y: (x @ y.T, y @ x.T))
program(f32(2, 3, 4, 5), f32(2, 4, 5, 6), ynn=True, name="einsum")(lambda x, y: jnp.einsum("bijk,bjkl->bil", x, y))
program(f32(0, 4), f32(4, 3), ynn=True, name="matmul_empty")(lambda x, y: x @ y)
program(f32(3, 0), f32(0, 4), ynn=True, name="matmul_of_nothing")(lambda x, y: x @ y)
program(f32(8, 16, 32), f32(8, 16, 32, seed=1), f32(8, 16, 32, seed=2), ynn=True, name="attention")(
    lambda q, k, v: jax.nn.softmax(q @ jnp.swapaxes(k, 1, 2) / np.float32(np.sqrt(32))) @ v)
CONVOLUTION = ("NHWC", "HWIO", "NHWC")
program(f32(1, 16, 16, 64), f32(3, 3, 64, 64, seed=1), ynn=True, name="conv2d")(
    lambda x, k: lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=CONVOLUTION))
program(f32(2, 9, 9, 4), f32(3, 3, 4, 6), ynn=True, name="conv2d_gradient")(
    jax.grad(lambda x, k: lax.conv_general_dilated(x, k, (2, 2), "SAME", dimension_numbers=CONVOLUTION).sum(), (0, 1)))
program(f32(2, 4, 12), f32(6, 2, 3), ynn=True, name="conv1d_grouped")(lambda x, k: lax.conv_general_dilated(x, k, (1,), "SAME", feature_group_count=2))
program(f32(1, 7, 7, 2), f32(3, 3, 2, 4), ynn=True, name="conv2d_dilated")(
    lambda x, k: lax.conv_general_dilated(x, k, (1, 1), ((0, 1), (1, 0)), lhs_dilation=(2, 2), rhs_dilation=(2, 1), dimension_numbers=CONVOLUTION))
program(f32(1, 5, 5, 5, 2), f32(2, 2, 2, 2, 3), ynn=True, name="conv3d")(
    lambda x, k: lax.conv_general_dilated(x, k, (1, 1, 1), "VALID", dimension_numbers=("NDHWC", "DHWIO", "NDHWC")))
for dtype in (np.complex64, np.complex128):
    program(complexes(3, 16, dtype=dtype), name=f"fft_{np.dtype(dtype).name}")(lambda x: (jnp.fft.fft(x), jnp.fft.ifft(x)))
program(complexes(2, 6, 10), name="fft_2d")(lambda x: (jnp.fft.fft2(x), jnp.fft.ifft2(x)))
program(f32(3, 15), name="rfft_odd")(lambda x: jnp.fft.rfft(x))
program(f32(2, 6, 8), name="rfft_2d")(lambda x: jnp.fft.rfft2(x))
program(complexes(3, 9), name="irfft")(lambda x: (jnp.fft.irfft(x), jnp.fft.irfft(x, n=15)))
program(complexes(2, 4, 4, 5), name="irfft_3d")(lambda x: jnp.fft.irfftn(x, axes=(1, 2, 3)))


# What XLA hands to YNNPACK by default: reductions with the operations before them, products, convolutions, pools.
ROWS = abs(f32(64, 100)) + np.float32(0.1)
for name, function in {
    "columns": lambda x: x.sum(0),
    "mean": lambda x: x.mean(),
    "variance": lambda x: x.var(1),
    "least": lambda x: x.min(0),
    "product": lambda x: x[:, :6].prod(1),
    "squares": lambda x: (x * x).sum(),
    "size": lambda x: jnp.abs(-x).sum(1),
    "exponentials": lambda x: jnp.exp(x).sum(1),
    "logarithms": lambda x: jnp.log(x).sum(1),
    "functions": lambda x: (jax.nn.sigmoid(x) + jnp.sqrt(x) + lax.rsqrt(x) + jnp.tanh(x) + jnp.power(x, 1.5) + lax.erf(x)).sum(1),
    "more_functions": lambda x: (jnp.expm1(x) + jnp.log1p(x) + jnp.sin(x) * jnp.cos(x) + jnp.cbrt(x) + jnp.floor(x) * jnp.ceil(x) + jnp.round(x) + jnp.sign(x)).sum(0),
    "largest_and_sum": lambda x: (x.sum(1), x.max(1)),
    "transposed": lambda x: (x.T * 2).sum(1),
    "padded": lambda x: jnp.pad(x, 1).sum(1),
    "masked": lambda x: jnp.where(x > 1, x, 0).sum(1),
    "logsumexp": lambda x: jax.nn.logsumexp(x, 1),
    "norm": lambda x: x / jnp.linalg.norm(x, axis=1, keepdims=True),
}.items():
    program(ROWS, ynn="only", name=f"reduce_{name}")(function)
for dtype in (jnp.bfloat16, np.float16, np.float64):
    program(ROWS.astype(dtype), ynn="only", name=f"reduce_{np.dtype(dtype).name}")(lambda x: (x.sum(1), x.max(1)))
program(ints(64, 100, dtype=np.int8), ynn="only", name="reduce_int8")(lambda x: (x.max(1), x.min(0)))
program(abs(f32(8, 64, 100)), ynn="only", name="reduce_middle")(lambda x: (x.sum(1), x.sum((0, 2)), x.sum((0, 1))))
program(f32(64, 1000).astype(jnp.bfloat16), ynn="only", name="softmax_bf16")(lambda x: jax.nn.softmax(x))
program(f32(128, 512), ynn="only", name="layernorm_large")(lambda x: (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5))
program(f32(64, 96), f32(96, 32, seed=1), f32(32, seed=2), ynn="only", name="matmul_bias_relu")(lambda x, y, b: jax.nn.relu(x @ y + b))
program(f32(64, 64), f32(64, 64, seed=1), f32(64, 64, seed=2), ynn="only", name="matmul_residual")(lambda x, y, z: x @ y + z)
program(f32(64, 64).astype(jnp.bfloat16), f32(64, 64, seed=1).astype(jnp.bfloat16), ynn="only", name="matmul_bf16_to_f32")(
    lambda x, y: lax.dot(x, y, preferred_element_type=jnp.float32))
program(ints(64, 96, dtype=np.int8), ints(96, 64, dtype=np.int8), ints(64), ynn="only", name="matmul_int8_bias")(
    lambda x, y, b: lax.dot(x, y, preferred_element_type=jnp.int32) + b)
program(f32(2, 8, 4, 16), f32(2, 8, 4, 16, seed=1), ynn="only", name="einsum_heads")(lambda x, y: jnp.einsum("bihd,bjhd->bhij", x, y))
program(f32(2, 64, 8, 32), f32(2, 64, 8, 32, seed=1), f32(2, 64, 8, 32, seed=2), ynn="only", name="attention_of_heads")(
    lambda q, k, v: jnp.einsum("bhij,bjhd->bihd", jax.nn.softmax(jnp.einsum("bihd,bjhd->bhij", q, k) * np.float32(0.2)), v))
program(f32(1, 16, 16, 64), f32(3, 3, 64, 64, seed=1), f32(64, seed=2), ynn="only", name="conv2d_bias_relu")(
    lambda x, k, b: jax.nn.relu(lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=CONVOLUTION) + b))
program(f32(2, 32, 32, 32), f32(3, 3, 32, 64, seed=1), ynn="only", name="conv2d_strided")(
    lambda x, k: lax.conv_general_dilated(x, k, (2, 2), "VALID", dimension_numbers=CONVOLUTION))
program(f32(2, 16, 16, 32), f32(3, 3, 8, 64, seed=1), ynn="only", name="conv2d_grouped")(
    lambda x, k: lax.conv_general_dilated(x, k, (1, 1), "SAME", feature_group_count=4, dimension_numbers=CONVOLUTION))
program(f32(1, 16, 16, 64).astype(jnp.bfloat16), f32(3, 3, 64, 64, seed=1).astype(jnp.bfloat16), ynn="only", name="conv2d_bf16")(
    lambda x, k: lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=CONVOLUTION))
program(f32(2, 16, 16, 64), f32(3, 3, 64, 64, seed=1), ynn="only", name="conv2d_gradient_large")(
    jax.grad(lambda x, k: (lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=CONVOLUTION) ** 2).sum(), (0, 1)))
program(f32(4, 32, 32, 16), ynn="only", name="max_pool_large")(lambda x: lax.reduce_window(x, -np.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"))
program(f32(16, 16), f32(16, 16, seed=1), ynn="only", name="scan_of_products")(
    lambda c, w: lax.scan(lambda c, _: (jnp.tanh(c @ w), jnp.abs(c).sum()), c, None, length=5))


# Control flow.
@program(f32(10, 8), np.float32(1), ynn=True)
def scan(xs, start):
    return lax.scan(lambda carry, x: (carry * np.float32(0.9) + x.sum(), carry), start, xs)


@program(np.float32(100))
def while_loop(x):
    return lax.while_loop(lambda x: x > 1, lambda x: x / 2, x)


@program(f32(8) * 100)
def while_over_a_vector(x):
    return lax.while_loop(lambda x: jnp.abs(x).max() > 1, lambda x: x / 2, x)


@program(f32(4, 4))
def loops_in_loops(x):
    return lax.fori_loop(0, 5, lambda i, x: lax.fori_loop(0, i, lambda j, y: y + i * j, x) * np.float32(0.5), x)


@program(np.int32(7), f32(4))
def fori_of_a_variable_count(n, x):
    return lax.fori_loop(0, n, lambda i, x: x * np.float32(1.1) + i, x)


for which in (True, False):
    program(np.bool_(which), X, name=f"cond_{which}".lower())(lambda which, x: lax.cond(which, lambda x: x.sum() + x, lambda x: x * 2, x))
for which in (-1, 0, 1, 2, 9):
    program(np.int32(which), X, name=f"switch_{which}".replace("-", "minus_"))(
        lambda which, x: lax.switch(which, [lambda x: x + 1, lambda x: x * 2, lambda x: x.sum() * x], x))
program(np.int32(3), X, name="cond_in_while")(
    lambda n, x: lax.fori_loop(0, n, lambda i, x: lax.cond(x.sum() > 0, lambda x: x - 1, lambda x: x + i, x), x))
program(f32(6, 3), name="map")(lambda x: lax.map(lambda row: jnp.where(row.sum() > 0, row, -row), x))

# Sorts and random numbers.
program(f32(100), name="sort")(lambda x: jnp.sort(x))
program(f32(5, 40), name="sort_rows_descending")(lambda x: jnp.sort(x, axis=1, descending=True))
program(f32(40, 5), name="sort_columns")(lambda x: jnp.sort(x, axis=0))
program(ints(1000), name="argsort_with_ties")(lambda x: jnp.argsort(x))
program(np.float32([3, np.nan, -0.0, 0.0, -np.inf, 1, np.nan, -2]), name="sort_not_numbers")(lambda x: (jnp.sort(x), jnp.argsort(x)))
program(ints(50), f32(50), name="sort_by_two_keys")(lambda x, y: lax.sort((x, y, jnp.arange(50)), num_keys=2))
program(ints(30), name="unique")(lambda x: jnp.unique(x, size=10, return_counts=True))
program(f32(50), f32(9), name="searchsorted_and_median")(lambda x, y: (jnp.searchsorted(jnp.sort(x), y), jnp.median(x), jnp.percentile(x, 30)))
program(f32(64), name="top_k")(lambda x: lax.top_k(x, 5))
program(f32(4, 64), name="top_k_rows")(lambda x: lax.top_k(x, 7))
program(ints(64), name="top_k_integers")(lambda x: lax.top_k(x, 5))
KEY = np.array([0, 42], dtype=np.uint32)
program(KEY, name="random_normal")(lambda key: jax.random.normal(key, (100,), dtype=jnp.float32))
program(KEY, name="random_uniform")(lambda key: jax.random.uniform(key, (100,), dtype=jnp.float32))
program(KEY, name="random_permutation")(lambda key: jax.random.permutation(key, 50))
program(KEY, name="random_categorical")(lambda key: jax.random.categorical(key, jnp.zeros((4, 9), jnp.float32)))
program(KEY, name="random_split")(lambda key: jax.random.split(key, 5))
program(KEY, name="random_gamma")(lambda key: jax.random.gamma(key, 2.0, (20,), dtype=jnp.float32))
program(np.arange(4, dtype=np.uint32), name="random_bits_philox")(lambda key: lax.rng_bit_generator(key, (16,)))
program(np.float32(0), np.float32(1), name="random_uniform_with_a_state")(lambda low, high: lax.rng_uniform(low, high, (16,)))

# Models.
program(f32(8), ynn=True, name="hessian")(lambda x: jax.hessian(lambda x: (jnp.sin(x) * x).sum() ** 2)(x))
program(f32(8), name="gradient")(jax.grad(lambda x: jnp.tanh(x @ np.ones((8, 4), np.float32)).sum()))
program(f32(8), f32(8, seed=4), name="jvp")(lambda x, t: jax.jvp(lambda x: jnp.sin(x) / (1 + x**2), (x,), (t,)))
MLP = [f32(64, 128) * np.float32(0.1), f32(128, seed=1), f32(128, 10, seed=2) * np.float32(0.1), f32(10, seed=3)]
BATCH = [f32(32, 64, seed=5), ints(32, low=0, high=10)]


@program(*MLP, *BATCH, donate=(0, 1, 2, 3), ynn=True)
def mlp_step(w1, b1, w2, b2, x, labels):
    def loss(weights):
        w1, b1, w2, b2 = weights
        logits = jax.nn.relu(x @ w1 + b1) @ w2 + b2
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1).mean()

    value, gradient = jax.value_and_grad(loss)((w1, b1, w2, b2))
    return [w - np.float32(0.1) * g for w, g in zip((w1, b1, w2, b2), gradient)], value


def transformer_block(x, weights):
    def normed(x):
        return (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + np.float32(1e-5))

    qkv, out, up, down = weights
    q, k, v = (part.reshape(16, 4, 8).transpose(1, 0, 2) for part in jnp.split(normed(x) @ qkv, 3, axis=-1))
    mixed = jax.nn.softmax(q @ jnp.swapaxes(k, 1, 2) * np.float32(0.35)) @ v
    x = x + mixed.transpose(1, 0, 2).reshape(16, 32) @ out
    return x + jax.nn.gelu(normed(x) @ up) @ down


BLOCK = [f32(32, 96) * np.float32(0.1), f32(32, 32) * np.float32(0.1), f32(32, 64) * np.float32(0.1), f32(64, 32) * np.float32(0.1)]
program(f32(16, 32), BLOCK, ynn=True, name="transformer")(transformer_block)
program(f32(16, 32), BLOCK, ynn=True, name="transformer_gradient")(jax.grad(lambda x, w: (transformer_block(x, w) ** 2).sum(), (0, 1)))

# Programs for several devices.
sharded(f32(8, 4), name="psum")(lambda x: lax.psum(x, "i"))
sharded(f32(8, 4), devices=2, name="psum_of_two")(lambda x: lax.psum(x, "i"))
sharded(f32(8, 4), name="psum_in_groups")(lambda x: lax.psum(x, "i", axis_index_groups=[[0, 2], [3, 1]]))
sharded(f32(8, 4), axes={"i": 2, "j": 2}, name="psum_of_one_axis")(lambda x: (lax.psum(x, "i"), lax.psum(x * 2, "j")))
sharded(f32(8, 4), ints(8, 3), name="pmax_and_pmin")(lambda x, y: (lax.pmax(x, "i"), lax.pmin(x, "i"), lax.pmax(y, "i"), lax.pmean(x, "i")))
for dtype in (np.int8, np.uint16, np.int64, np.float16, np.float64, jnp.bfloat16, np.complex64):
    sharded(f32(8, 4).astype(dtype), name=f"psum_{np.dtype(dtype).name}")(lambda x: lax.psum(x, "i"))
sharded(f32(8, 4), name="all_gather")(lambda x: lax.all_gather(x, "i"))
sharded(f32(8, 4), name="all_gather_of_columns")(lambda x: lax.all_gather(x, "i", axis=1, tiled=True))
sharded(f32(16, 4), name="psum_scatter")(lambda x: lax.psum_scatter(x, "i", tiled=True))
sharded(f32(8, 4), name="psum_scatter_of_columns")(lambda x: lax.psum_scatter(x, "i", scatter_dimension=1, tiled=True))
sharded(f32(8, 4), name="all_to_all")(lambda x: lax.all_to_all(x, "i", split_axis=1, concat_axis=0, tiled=True))
sharded(f32(8, 4), name="ppermute")(lambda x: lax.ppermute(x, "i", [(0, 1), (1, 2), (2, 0)]))
sharded(f32(8, 4), name="axis_index")(lambda x: x + lax.axis_index("i"))
sharded(f32(8, 4), name="ring")(lambda x: lax.fori_loop(0, 3, lambda n, x: x + lax.ppermute(x, "i", [(n, (n + 1) % 4) for n in range(4)]), x))
sharded(f32(8, 4), name="while_with_psum")(lambda x: lax.while_loop(lambda x: lax.psum(x.sum() ** 2, "i") > 1, lambda x: x / 2, x))
sharded(f32(16, 8), f32(32, 8, seed=1), name="data_parallel_gradient")(
    lambda x, w: lax.pmean(jax.grad(lambda w: (jnp.tanh(x @ w.T) ** 2).mean())(lax.all_gather(w, "i", tiled=True)), "i")[:8])

# Programs that call code outside the executable: LAPACK.
SQUARE = (f32(6, 6) @ f32(6, 6).T + 6 * np.eye(6)).astype(np.float32)
program(SQUARE, name="cholesky")(lambda x: jnp.linalg.cholesky(x))
program(SQUARE, f32(6), name="solve")(lambda x, y: jnp.linalg.solve(x, y))
program(SQUARE, name="eigh")(lambda x: jnp.linalg.eigvalsh(x))
for dtype in (np.float32, np.float64, np.complex64, np.complex128):
    name, square, wide = np.dtype(dtype).name, SQUARE.astype(dtype), f32(5, 8).astype(dtype)
    if dtype in (np.complex64, np.complex128):
        square, wide = square + 1j * np.triu(square, 1) - 1j * np.triu(square, 1).T, wide * (1 + 1j)
    square, wide = square.astype(dtype), wide.astype(dtype)
    program(np.stack([square, 2 * square]), name=f"cholesky_batch_{name}")(lambda x: jnp.linalg.cholesky(x))
    program(square, square[:, :3], name=f"solve_{name}")(lambda x, y: jnp.linalg.solve(x, y))
    program(square, square[:, :3], name=f"triangular_solve_{name}")(lambda x, y: lax.linalg.triangular_solve(jnp.tril(x), y, left_side=True, lower=True))
    program(square, name=f"inverse_{name}")(lambda x: jnp.linalg.inv(x))
    program(square, name=f"lu_{name}")(lambda x: lax.linalg.lu(x))
    program(square, name=f"eigh_{name}")(lambda x: jnp.linalg.eigh(x))
    program(square, name=f"eig_{name}")(lambda x: jnp.linalg.eig(x))
    program(wide, name=f"qr_{name}")(lambda x: jnp.linalg.qr(x.T))
    program(wide, name=f"svd_{name}")(lambda x: jnp.linalg.svd(x, full_matrices=False))
    program(square, name=f"schur_{name}")(lambda x: lax.linalg.schur(x))
    program(square, name=f"hessenberg_{name}")(lambda x: lax.linalg.hessenberg(x))
    program(square, name=f"tridiagonal_{name}")(lambda x: lax.linalg.tridiagonal(x))
program(np.zeros((0, 0), np.float32), name="cholesky_of_nothing")(lambda x: jnp.linalg.cholesky(x))
program(-SQUARE, name="cholesky_that_fails")(lambda x: jnp.linalg.cholesky(x))
program(np.stack([SQUARE] * 4), name="solve_in_a_scan")(lambda xs: lax.scan(lambda carry, x: (jnp.linalg.solve(x, carry), carry.sum()), jnp.ones(6, jnp.float32), xs))


def export(folder, name):
    function, arguments, donate, options = PROGRAMS[name]
    compiled = jax.jit(function, donate_argnums=donate, keep_unused=True).lower(*arguments).compile(compiler_options=options)
    for old in [folder / f"{name}.{kind}{device or ''}" for kind in ("args", "results") for device in range(DEVICES)]:
        shutil.rmtree(old, ignore_errors=True)
    for kind in ("args", "results"):
        (folder / f"{name}.{kind}").mkdir()
    (folder / f"{name}.xla").write_bytes(compiled.runtime_executable().serialize())
    results = compiled(*jax.tree.map(lambda array: array if isinstance(array, jax.Array) else jnp.array(array), arguments))
    for kind, arrays in (("args", arguments), ("results", results)):
        for number, array in enumerate(jax.tree.leaves(arrays)):
            shards = getattr(array, "addressable_shards", None)
            parts = [shard.data for shard in sorted(shards, key=lambda shard: shard.device.id)] if shards else [array]
            for device, part in enumerate(parts):
                inside = folder / f"{name}.{kind}{device or ''}"
                inside.mkdir(exist_ok=True)
                np.save(inside / f"{number}.npy", np.asarray(part))
    return compiled, arguments


def shortest(compiled, arguments):
    """The microseconds of stock XLA's shortest run of 2000, or of as many as take two seconds."""
    begin, best = time.perf_counter(), float("inf")
    for _ in range(2000):
        fresh = jax.block_until_ready(jax.tree.map(jnp.array, arguments))  # A run deletes those that it donates.
        begun = time.perf_counter()
        jax.block_until_ready(compiled(*fresh))
        best = min(best, time.perf_counter() - begun)
        if time.perf_counter() - begin > 2:
            break
    return best * 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", default="", metavar="REGEX", help="only programs whose name it finds")
    parser.add_argument("--list", action="store_true", help="print the names alone")
    parser.add_argument("--time", action="store_true", help="print the time of stock XLA's shortest run of each program")
    arguments = parser.parse_args()
    names = [name for name in PROGRAMS if re.search(arguments.only, name)]
    if arguments.list:
        print("\n".join(names))
        return
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        try:
            exported = export(arguments.folder, name)
            if arguments.time:
                print(f"{name}: stock XLA, run {shortest(*exported):.1f} us", flush=True)
        except Exception as error:
            print(f"{name}: stock JAX refuses it: {str(error).splitlines()[0]}", flush=True)
    print(f"{len(names)} programs in {arguments.folder}")


if __name__ == "__main__":
    main()

"""Programs of the kinds that Purlin and XLA's plugin run differently, at many sizes (scripts/policy runs this, once for
each mode of Purlin's plugin).

  policy.py SECONDS [KIND...]

Prints a line of JSON: for each program its kind, its size and the shortest time of a run in microseconds.
"""
import json
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

PROGRAMS = []


def add(kind, size, function, *shapes):
    PROGRAMS.append((kind, size, function, shapes))


for n in (8, 32, 64, 128, 256, 512, 1024):
    add("dot", n, jnp.matmul, (n, n), (n, n))
for n in (16, 64, 256, 1024):
    add("dot+bias+relu", n, lambda x, w, b: jax.nn.relu(x @ w + b), (n, 256), (256, 256), (256,))
for channels, side in ((1, 8), (8, 8), (16, 16), (32, 16), (64, 16), (64, 32), (128, 32)):
    add("conv", channels * side * side, lambda x, k: lax.conv_general_dilated(
        x, k, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")), (4, side, side, channels), (3, 3, channels, channels))
for channels, side in ((4, 8), (16, 16), (32, 16), (64, 16)):
    def conv_gradient(x, k):
        return jax.grad(lambda x, k: (lax.conv_general_dilated(
            x, k, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")) ** 2).sum(), (0, 1))(x, k)
    add("conv-gradient", channels * side * side, conv_gradient, (4, side, side, channels), (3, 3, channels, channels))
for n in (1_000, 10_000, 100_000, 1_000_000, 10_000_000):
    add("sum", n, jnp.sum, (n,))
    add("elementwise", n, lambda x: jnp.tanh(x) * 2 + 1, (n,))
for rows in (8, 64, 512, 4096):
    add("softmax", rows * 1000, jax.nn.softmax, (rows, 1000))
    add("row-sum", rows * 1000, lambda x: x.sum(1), (rows, 1000))
    add("column-sum", rows * 1000, lambda x: x.sum(0), (rows, 1000))
for n in (1_000, 100_000, 1_000_000):
    add("sort", n, jnp.sort, (n,))
    add("cumsum", n, jnp.cumsum, (n,))
    add("fft", n, lambda x: jnp.abs(jnp.fft.rfft(x)), (n,))


def main(seconds, kinds):
    draw = np.random.default_rng(0)
    result = []
    for kind, size, function, shapes in PROGRAMS:
        if kinds and kind not in kinds:
            continue
        arguments = [jax.device_put(draw.standard_normal(shape, np.float32)) for shape in shapes]
        run = jax.jit(function)
        jax.block_until_ready(run(*arguments))
        least, until = float("inf"), time.perf_counter() + seconds
        while time.perf_counter() < until:
            began = time.perf_counter()
            jax.block_until_ready(run(*arguments))
            least = min(least, time.perf_counter() - began)
        result.append((kind, size, least * 1e6))
    print(json.dumps(result))


if __name__ == "__main__":
    main(float(sys.argv[1]), sys.argv[2:])

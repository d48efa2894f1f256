"""Loops of Python over stock JAX, timed in a process of its own for each backend (scripts/bench_jax runs this).

  jax_loops.py SECONDS ROW...

Prints a line of JSON: for each row the time of one turn of its loop, in microseconds, once for each repetition that fits
into SECONDS. The last turn of a repetition is waited for; the ones before it are only begun, as a training loop does it.
"""
import json
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

ROWS = {}


def row(turns):
    """Adds a row. What it decorates gives a function that does `turns` turns and waits for the last."""
    def add(make):
        ROWS[make.__name__] = (make, turns)
        return make

    return add


def random(*dims, scale=1.0):
    return np.asarray(np.random.default_rng(sum(dims)).standard_normal(dims) * scale, np.float32)


@row(200)
def jit_add_one(turns):
    f, x = jax.jit(lambda x: x + 1), jnp.zeros(8)

    def loop():
        for _ in range(turns):
            f(x).block_until_ready()

    return loop


def device_put_of(bytes_):
    given = np.ones(bytes_ // 4, np.float32)

    def make(turns):
        def loop():
            for _ in range(turns):
                jax.device_put(given).block_until_ready()

        return loop

    return make


@row(500)
def device_put_4_b(turns):
    return device_put_of(4)(turns)


@row(500)
def device_put_4_kib(turns):
    return device_put_of(4096)(turns)


@row(1)
def device_put_64_mib(turns):
    return device_put_of(64 << 20)(turns)


@row(200)
def jit_and_asarray_4_kib(turns):
    f, x = jax.jit(lambda x: x * 2), jnp.ones(1024)

    def loop():
        for _ in range(turns):
            np.asarray(f(x))

    return loop


def training(loss, weights, *batch):
    """A step of gradient descent with donated weights."""
    def step(weights, *batch):
        value, slope = jax.value_and_grad(loss)(weights, *batch)
        return jax.tree.map(lambda w, g: w - 1e-3 * g, weights, slope), value

    step = jax.jit(step, donate_argnums=0)
    state = [jax.device_put(weights)]
    batch = jax.device_put(batch)

    def make(turns):
        def loop():
            for _ in range(turns):
                state[0], value = step(state[0], *batch)
            value.block_until_ready()

        return loop

    return make


def cross_entropy(logits, labels):
    return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1).mean()


@row(50)
def train_mlp(turns):
    """784, 256, 10 units; batch 128."""
    def loss(weights, x, labels):
        w1, b1, w2, b2 = weights
        return cross_entropy(jax.nn.relu(x @ w1 + b1) @ w2 + b2, labels)

    weights = [random(784, 256, scale=0.05), np.zeros(256, np.float32), random(256, 10, scale=0.1), np.zeros(10, np.float32)]
    return training(loss, weights, random(128, 784), np.arange(128, dtype=np.int32) % 10)(turns)


@row(20)
def train_mlp_small(turns):
    """64, 64, 10 units; batch 32: what a call costs decides."""
    def loss(weights, x, labels):
        w1, w2 = weights
        return cross_entropy(jax.nn.relu(x @ w1) @ w2, labels)

    weights = [random(64, 64, scale=0.1), random(64, 10, scale=0.1)]
    return training(loss, weights, random(32, 64), np.arange(32, dtype=np.int32) % 10)(turns)


@row(5)
def train_cnn(turns):
    """Two convolutions of 3x3 over 16x16 with 16 and 32 channels; batch 32."""
    def loss(weights, x, labels):
        k1, k2, dense = weights
        for kernel in (k1, k2):
            x = jax.nn.relu(lax.conv_general_dilated(x, kernel, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))
        return cross_entropy(x.reshape(x.shape[0], -1) @ dense, labels)

    weights = [random(3, 3, 1, 16, scale=0.3), random(3, 3, 16, 32, scale=0.1), random(512, 10, scale=0.05)]
    return training(loss, weights, random(32, 16, 16, 1), np.arange(32, dtype=np.int32) % 10)(turns)


@row(5)
def train_transformer(turns):
    """A block of 4 heads over 64 tokens of 128 elements."""
    def normed(x):
        return (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)

    def loss(weights, x):
        qkv, out, up, down = weights
        q, k, v = (part.reshape(64, 4, 32).transpose(1, 0, 2) for part in jnp.split(normed(x) @ qkv, 3, axis=-1))
        mixed = jax.nn.softmax(q @ jnp.swapaxes(k, 1, 2) * 32 ** -0.5) @ v
        x = x + mixed.transpose(1, 0, 2).reshape(64, 128) @ out
        return ((x + jax.nn.gelu(normed(x) @ up) @ down) ** 2).mean()

    weights = [random(*dims, scale=0.05) for dims in ((128, 384), (128, 128), (128, 512), (512, 128))]
    return training(loss, weights, random(64, 128))(turns)


def main(seconds, names):
    result = {}
    for name in names or ROWS:
        make, turns = ROWS[name]
        loop = make(turns)
        loop()
        loop()
        times, until = [], time.perf_counter() + seconds
        while not times or time.perf_counter() < until:
            began = time.perf_counter()
            loop()
            times.append((time.perf_counter() - began) * 1e6 / turns)
        result[name] = times
    print(json.dumps(result))


if __name__ == "__main__":
    main(float(sys.argv[1]), sys.argv[2:])

"""Compiles the programs of the bench's rows with stock JAX, for the CPU of this machine (scripts/bench runs this).

  programs.py FOLDER

For each program it writes NAME.xla, the executable as the PJRT C API serializes it; NAME.types, a line for each argument:
element type and dimensions; and NAME.bytes, the elements of all arguments. Everything is compiled with XLA's defaults, but
for names that end in `_without_ynn`.
"""
import pathlib
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

PROGRAMS = {}


def program(name, *arguments, donate=(), options=None):
    def add(function):
        PROGRAMS[name] = (function, arguments, donate, options)
        return function

    return add


def f32(*dims, scale=1.0):
    return (np.random.default_rng(sum(dims)).standard_normal(dims) * scale).astype(np.float32)


program("add_one", f32(8))(lambda x: x + 1)
program("eight", *[f32(4)] * 8)(lambda *xs: tuple(x + n for n, x in enumerate(xs)))
program("thirty_two", *[f32(4)] * 32)(lambda *xs: tuple(x * n for n, x in enumerate(xs)))
program("hessian", f32(8))(lambda x: jax.hessian(lambda x: (jnp.sin(x) * x).sum() ** 2)(x))
program("cumsum", f32(1000))(jnp.cumsum)
program("matmul_8", f32(8, 8), f32(8, 8))(jnp.matmul)
program("matmul_512", f32(512, 512), f32(512, 512))(jnp.matmul)
program("matmul_512_bf16", f32(512, 512).astype(jnp.bfloat16), f32(512, 512).astype(jnp.bfloat16))(jnp.matmul)
program("conv2d", f32(1, 16, 16, 64), f32(3, 3, 64, 64))(
    lambda x, k: lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")))
program("softmax", f32(64, 1000))(jax.nn.softmax)
program("sum", f32(1000000))(jnp.sum)


@program("mlp_step", f32(784, 256, scale=0.05), f32(256), f32(256, 10, scale=0.1), f32(10), f32(128, 784),
         np.arange(128, dtype=np.int32) % 10, donate=(0, 1, 2, 3))
def mlp_step(w1, b1, w2, b2, x, labels):
    def loss(weights):
        w1, b1, w2, b2 = weights
        logits = jax.nn.relu(x @ w1 + b1) @ w2 + b2
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1).mean()

    value, gradient = jax.value_and_grad(loss)((w1, b1, w2, b2))
    return [w - 0.001 * g for w, g in zip((w1, b1, w2, b2), gradient)], value


def transformer(x, qkv, out, up, down):
    """A block of 4 heads over 128 tokens of 256 elements."""
    def normed(x):
        return (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)

    q, k, v = (part.reshape(128, 4, 64).transpose(1, 0, 2) for part in jnp.split(normed(x) @ qkv, 3, axis=-1))
    mixed = jax.nn.softmax(q @ jnp.swapaxes(k, 1, 2) * 0.125) @ v
    x = x + mixed.transpose(1, 0, 2).reshape(128, 256) @ out
    return x + jax.nn.gelu(normed(x) @ up) @ down


BLOCK = [f32(128, 256)] + [f32(*dims, scale=0.05) for dims in ((256, 768), (256, 256), (256, 1024), (1024, 256))]
program("transformer", *BLOCK)(transformer)
program("transformer_without_ynn", *BLOCK, options={"xla_cpu_experimental_ynn_fusion_type": ""})(transformer)
program("transformer_gradient", *BLOCK)(jax.grad(lambda *xs: (transformer(*xs) ** 2).sum(), (0, 1, 2, 3, 4)))


def without_metadata(serialized):
    """What the C API serializes: jaxlib puts a message of its own in front, after its length as a varint."""
    length = shift = position = 0
    while True:
        byte = serialized[position]
        length |= (byte & 127) << shift
        position, shift = position + 1, shift + 7
        if byte < 128:
            return serialized[position + length:]


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for name, (function, arguments, donate, options) in PROGRAMS.items():
        compiled = jax.jit(function, donate_argnums=donate).lower(*arguments).compile(compiler_options=options)
        serialized = compiled.runtime_executable().serialize()
        (folder / f"{name}.xla").write_bytes(without_metadata(serialized))
        types = [" ".join([array.dtype.name, *map(str, array.shape)]) for array in arguments]
        (folder / f"{name}.types").write_text("".join(f"{line}\n" for line in types))
        (folder / f"{name}.bytes").write_bytes(b"".join(array.tobytes() for array in arguments))


main(pathlib.Path(sys.argv[1]))

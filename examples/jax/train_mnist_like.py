"""Trains a classifier of handwritten digits with JAX on Purlin, once for each mode of the plugin.

  JAX_PLATFORMS=purlin,cpu python train_mnist_like.py [--steps N] [MODE]...

A MODE is `native` (Purlin runs what XLA has compiled), `delegate` (XLA's plugin runs it over Purlin's arrays), `auto`,
`check`, or `jaxlib` (JAX's own CPU backend, without Purlin). Without one: native, delegate and jaxlib. A mode is chosen
when JAX starts, so each trains in a process of its own.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import time

MODES = ("native", "delegate", "auto", "check", "jaxlib")
DIGITS = pathlib.Path(__file__).resolve().parent.parent / "data/digits.csv"
BATCH = 128
WIDTHS = (64, 128, 64, 10)
LEARNING_RATE, MOMENTUM = 0.1, 0.9


def environment_of(mode):
    """A process's environment in which JAX runs in that mode."""
    if mode == "jaxlib":
        return {**os.environ, "JAX_PLATFORMS": "cpu"}
    return {"JAX_PLATFORMS": "purlin,cpu", **os.environ, "PURLIN_PJRT_MODE": mode}


def progress(done, steps, loss):
    """A bar, redrawn in place; in a file, only its last state."""
    if sys.stderr.isatty() or done == steps:
        filled = 30 * done // steps
        begin, end = "\r" if sys.stderr.isatty() else "", "\n" if done == steps else ""
        sys.stderr.write(f"{begin}  [{'#' * filled}{'.' * (30 - filled)}] step {done}/{steps}, loss {loss:.4f}{end}")
        sys.stderr.flush()


def train(mode, steps):
    import jax
    import jax.numpy as jnp
    import numpy as np

    table = np.loadtxt(DIGITS, delimiter=",", dtype=np.float32)
    images, labels = table[:, :-1] / 16, table[:, -1].astype(np.int32)
    held_out = np.arange(len(images)) % 5 == 4
    test_images, test_labels = images[held_out], labels[held_out]
    images, labels = images[~held_out], labels[~held_out]

    def logits_of(weights, x):
        *hidden, (last, bias) = weights
        for matrix, offset in hidden:
            x = jax.nn.relu(x @ matrix + offset)
        return x @ last + bias

    def loss_of(weights, x, y):
        log_probabilities = jax.nn.log_softmax(logits_of(weights, x))
        return -jnp.take_along_axis(log_probabilities, y[:, None], axis=1).mean()

    def step(weights, velocity, x, y):
        loss, slope = jax.value_and_grad(loss_of)(weights, x, y)
        velocity = jax.tree.map(lambda v, g: MOMENTUM * v - LEARNING_RATE * g, velocity, slope)
        return jax.tree.map(jnp.add, weights, velocity), velocity, loss

    # Weights and velocity are updated in place: they are donated.
    step = jax.jit(step, donate_argnums=(0, 1))
    accuracy_of = jax.jit(lambda weights, x, y: (logits_of(weights, x).argmax(axis=1) == y).mean())

    keys = jax.random.split(jax.random.key(0), len(WIDTHS) - 1)
    weights = [(jax.random.normal(key, (rows, columns)) * (2 / rows) ** 0.5, jnp.zeros(columns))
               for key, rows, columns in zip(keys, WIDTHS, WIDTHS[1:])]
    velocity = jax.tree.map(jnp.zeros_like, weights)
    order = np.random.default_rng(0)
    batches = [order.choice(len(images), BATCH, replace=False) for _ in range(steps)]

    device = jax.devices()[0]
    print(f"{mode}: {device.device_kind}, {' '.join(device.client.platform_version.split())}", flush=True)
    weights, velocity, loss = step(weights, velocity, images[batches[0]], labels[batches[0]])
    loss.block_until_ready()
    began = time.perf_counter()
    for done, batch in enumerate(batches[1:], 2):
        weights, velocity, loss = step(weights, velocity, images[batch], labels[batch])
        if done % (steps // 10 or 1) == 0 or done == steps:
            progress(done, steps, float(loss))
    loss.block_until_ready()
    seconds = time.perf_counter() - began
    accuracy = float(accuracy_of(weights, test_images, test_labels))
    print(f"  accuracy {100 * accuracy:.2f} % of {len(test_labels)} held-out images, {(steps - 1) / seconds:.0f} steps/s",
          flush=True)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--steps", type=int, default=1000)
    arguments.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    arguments.add_argument("modes", nargs="*", metavar="MODE", help=", ".join(MODES))
    arguments = arguments.parse_args()
    modes = arguments.modes or ["native", "delegate", "jaxlib"]
    if unknown := set(modes) - set(MODES):
        sys.exit(f"there is no mode {unknown.pop()!r}: there are {', '.join(MODES)}")
    if arguments.steps < 2:
        sys.exit(f"--steps is {arguments.steps}; it must be 2 or more")
    if arguments.here:
        return train(modes[0], arguments.steps)
    for mode in modes:
        command = [sys.executable, __file__, "--here", "--steps", str(arguments.steps), mode]
        if code := subprocess.run(command, env=environment_of(mode)).returncode:
            return code


if __name__ == "__main__":
    sys.exit(main())

"""One process with TensorFlow, JAX and Purlin: each computes, each is loaded first once."""
import ctypes
import importlib
import os
import subprocess
import sys

MODULE = os.path.join(os.environ["PURLIN_INTEROP_MODULES"], "together.so")


def purlin():
    total = ctypes.CDLL(MODULE).purlin_together_sum
    total.restype, total.argtypes = ctypes.c_int64, [ctypes.c_int64]
    return total(1000)


def tensorflow():
    tf = importlib.import_module("tensorflow")
    return int(tf.reduce_sum(tf.range(1000)))


def jax():
    numpy = importlib.import_module("jax.numpy")
    return int(numpy.arange(1000).sum())


def main():
    if len(sys.argv) > 1:
        for name in sys.argv[1:]:
            total = globals()[name]()
            assert total == 499500, f"{name} says {total}"
        return 0
    for order in (("purlin", "tensorflow", "jax"), ("tensorflow", "jax", "purlin"), ("jax", "purlin", "tensorflow")):
        result = subprocess.run([sys.executable, __file__, *order], capture_output=True, text=True)
        if result.returncode != 0:
            print(f"{' '.join(order)}: exit code {result.returncode}\n{result.stdout}{result.stderr}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Runs both ops of tensorflow_op.cc in stock TensorFlow, with values and with an error, and compares."""
import os
import sys

import numpy as np
import tensorflow as tf

ops = tf.load_op_library(os.path.join(os.environ["PURLIN_INTEROP_MODULES"], "adopt_tensorflow_op.so"))


def run(op):
    normalize = tf.function(lambda x: op(x, epsilon=1e-3))
    x = tf.reshape(tf.range(6, dtype=tf.float32), (2, 3))
    text = str(np.asarray(normalize(x)))
    try:
        op(x, epsilon=-1.0)
    except tf.errors.InvalidArgumentError as error:
        text += " epsilon must be positive" if "epsilon must be positive" in error.message else f" {error.message}"
    return text


was, now = run(ops.normalize_before), run(ops.normalize_after)
print(f"before: {was}\nafter:  {now}")
sys.exit(0 if was == now and "epsilon must be positive" in now else 1)

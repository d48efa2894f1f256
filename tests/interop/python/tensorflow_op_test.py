"""Stock TensorFlow loads ops whose kernels are Purlin code (tensorflow_op.cc): values, errors, cancelling, many calls."""
import ctypes
import os
import sys
import threading

import numpy as np
import tensorflow as tf
from memory import leaves_nothing

PATH = os.path.join(os.environ["PURLIN_INTEROP_MODULES"], "tensorflow_op.so")
OPS = tf.load_op_library(PATH)
MODULE = ctypes.CDLL(PATH)  # The same library again.
TYPES = (tf.bool, tf.int8, tf.int16, tf.int32, tf.int64, tf.uint8, tf.uint16, tf.uint32, tf.uint64, tf.float16, tf.bfloat16,
         tf.float32, tf.float64, tf.complex64, tf.complex128)


def expect_error(kind, function, *texts):
    try:
        function()
    except kind as error:
        for text in texts:
            assert text in str(error), f"{text!r} is not in {error}"
        return
    raise AssertionError(f"no {kind.__name__}")


def test_values():
    x = tf.reshape(tf.range(12, dtype=tf.float32), (3, 4))
    np.testing.assert_array_equal(OPS.purlin_scale(x, factor=2.5), x * 2.5)
    np.testing.assert_array_equal(OPS.purlin_scale(3.0, factor=2), 6)
    assert OPS.purlin_scale(tf.zeros((0, 3)), factor=2).shape == (0, 3)
    large = tf.range(1 << 20, dtype=tf.float32)
    np.testing.assert_array_equal(OPS.purlin_scale(large, factor=2), large * 2)


def test_a_graph():
    @tf.function
    def graph(x):
        parts = [OPS.purlin_scale(x + i, factor=float(i)) for i in range(16)]
        return OPS.purlin_scale(tf.add_n(parts), factor=2)

    x = tf.range(1000, dtype=tf.float32) / 1000
    expected = 2 * sum((x + i) * i for i in range(16))
    for _ in range(50):
        np.testing.assert_allclose(graph(x), expected, rtol=1e-5)
    wrong = []

    def work():
        for _ in range(50):
            if not np.allclose(graph(x), expected):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_tensors_are_wrapped_and_not_copied():
    for dtype in TYPES:
        x = tf.cast(tf.constant([[0, 1, 1], [1, 0, 1]]), dtype)
        assert OPS.purlin_wrapped(x), dtype
        np.testing.assert_array_equal(OPS.purlin_copy(x), x, err_msg=str(dtype))
    large = tf.range(1 << 20)
    np.testing.assert_array_equal(OPS.purlin_copy(large), large)
    # A byte each in TensorFlow, packed in Purlin: copied there and back.
    for dtype in (tf.dtypes.experimental.int4, tf.dtypes.experimental.uint4):
        x = tf.cast(tf.constant([1, 2, 3, 7, 5], tf.int8), dtype)
        np.testing.assert_array_equal(tf.cast(OPS.purlin_copy(x), tf.int8), [1, 2, 3, 7, 5])
    expect_error(tf.errors.UnimplementedError, lambda: OPS.purlin_copy(tf.constant("text")), "DT_STRING")


def test_errors():
    x = tf.constant([1.0])
    expect_error(tf.errors.OutOfRangeError, lambda: OPS.purlin_scale(x, factor=float("inf")), "the factor is inf")
    for code in range(1, 17):
        kind = tf.compat.v1.errors.exception_type_from_error_code(code)
        expect_error(kind, lambda: OPS.purlin_fail(x, code=code), "asked to fail", "train.py:42")
    expect_error(tf.errors.OutOfRangeError, lambda: OPS.purlin_out_of_bounds(x), "input 1 of an op with 1", "output -1 of an op")
    failing = tf.function(lambda x: OPS.purlin_fail(OPS.purlin_scale(x, factor=2), code=15) + 1)
    for _ in range(3):
        expect_error(tf.errors.DataLossError, lambda: failing(x), "asked to fail")
    np.testing.assert_array_equal(OPS.purlin_scale(x, factor=2), [2.0])


def test_an_op_that_waits_is_cancelled():
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        x = tf.constant([1.0])
        waits = OPS.purlin_wait(x)
        expect_error(tf.errors.DeadlineExceededError,
                     lambda: session.run(waits, options=tf.compat.v1.RunOptions(timeout_in_ms=100)))
        # Another op of the step fails, so this one is cancelled; without that, this would not return.
        fails = OPS.purlin_fail(x, code=15)
        expect_error(tf.errors.DataLossError, lambda: session.run((waits, fails)), "asked to fail")


def test_many_calls_leave_nothing():
    x = tf.range(16, dtype=tf.float32)
    graph = tf.function(lambda x: OPS.purlin_scale(OPS.purlin_copy(x), factor=1))

    leaves_nothing("purlin_scale", MODULE, lambda x: OPS.purlin_scale(x, factor=1), x, 20000)
    leaves_nothing("a graph", MODULE, graph, x, 5000)

    # In a session, because outside of one this TensorFlow keeps about 650 bytes for each error of each op, also its
    # own.
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        placeholder = tf.compat.v1.placeholder(tf.float32, [16])
        failing = session.make_callable(OPS.purlin_fail(placeholder, code=15), [placeholder])

        def fail(x):
            try:
                return failing(x)
            except tf.errors.DataLossError:
                return x

        leaves_nothing("purlin_fail", MODULE, fail, x.numpy(), 1000)


def main():
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            print(name, flush=True)
            test()
    return 0


if __name__ == "__main__":
    sys.exit(main())

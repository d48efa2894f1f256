"""Programs of plugin_test.py for one device: each gives a tree of arrays, numbers and texts that a device must make.

The current device is the given one, so arrays are made there unless a program says otherwise.
"""

import threading

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax
from jax.experimental import io_callback

PROGRAMS = {}  # By "group.name".


class Program:
    """A function of a device, or of 8; how near its floats must be to jaxlib's; whether only Purlin runs it."""

    def __init__(self, function, needs, exact, rtol, own):
        self.function, self.needs, self.exact, self.rtol, self.own = function, needs, exact, rtol, own


def program(group, needs="one", exact=False, rtol=None, own=False):
    """Adds a program. `needs`: the kind of process that it runs in. `exact`: it only moves data, so bits are compared.
    `own`: it asserts by itself what only Purlin has."""

    def add(function):
        PROGRAMS[f"{group}.{function.__name__}"] = Program(function, needs, exact, rtol, own)
        return function

    return add


def values(*shape, dtype=np.float32, seed=0):
    """Numbers from -1 to 1, or whole ones from 0 to 99."""
    random = np.random.default_rng(seed)
    if np.issubdtype(dtype, np.integer):
        return random.integers(0, 100, shape).astype(dtype)
    if np.issubdtype(dtype, np.complexfloating):
        return (random.uniform(-1, 1, shape) + 1j * random.uniform(-1, 1, shape)).astype(dtype)
    return random.uniform(-1, 1, shape).astype(dtype)


def refusal(function, *words):
    """The type of what `function` raises. Its message must have one of the words."""
    try:
        function()
    except Exception as error:
        assert not words or any(word in str(error) for word in words), f"the message is: {error}"
        return type(error).__name__
    raise AssertionError("it was not refused")


def aligned(count, dtype=np.float32):
    """Numbers from 0 at an address that is a multiple of 64."""
    size = np.dtype(dtype).itemsize * count
    memory = np.zeros(size + 64, np.uint8)
    start = -memory.ctypes.data % 64
    x = memory[start : start + size].view(dtype)
    x[:] = np.arange(count)
    return x


def in_threads(count, work):
    """What `work` gives for each number, each on a thread of its own that began together with the others."""
    results, failures, barrier = [None] * count, [], threading.Barrier(count)

    def run(i):
        try:
            barrier.wait(60)
            results[i] = work(i)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return results


# -- arrays ------------------------------------------------------------------------------------------------------------


@program("arrays", exact=True)
def creation(d):
    return (
        jnp.zeros((2, 3)), jnp.ones(4, jnp.int8), jnp.full((2, 2), 7, jnp.uint16), jnp.eye(3), jnp.arange(10, 0, -3),
        jnp.tri(4, dtype=jnp.int32), jnp.array([[1, 2], [3, 4]]), jnp.empty((3, 0))
    )


@program("arrays")
def linspace(d):
    return jnp.linspace(0, 1, 17), jnp.logspace(0, 3, 5), jnp.geomspace(1, 256, 9)


@program("arrays", exact=True)
def integer_types(d):
    with jax.enable_x64(True):
        types = (np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64)
        arrays = [jax.device_put(values(3, 5, dtype=dtype), d) for dtype in types]
        return arrays, [x * x + 1 for x in arrays]


@program("arrays", exact=True)
def boolean(d):
    x = jax.device_put(values(4, 5) > 0, d)
    return x, ~x, x & x[::-1], x.any(0), x.all(1), jnp.where(x, 1, 2), jnp.count_nonzero(x)


@program("arrays", exact=True)
def int4(d):
    x = jax.device_put(np.arange(-8, 7).astype(ml_dtypes.int4), d)
    y = jax.device_put(np.arange(15).astype(ml_dtypes.uint4), d)
    return x, y, x.astype(jnp.int32) + 1, y.astype(jnp.float32), jnp.arange(8).astype(jnp.int4), x[3:9], x[::-1]


@program("arrays", exact=True)
def int4_matrix(d):
    x = jax.device_put((np.arange(21).reshape(3, 7) % 16 - 8).astype(ml_dtypes.int4), d)
    return x, x.T, x.reshape(7, 3), x.astype(jnp.int8).sum(0)


@program("arrays", exact=True)
def bfloat16(d):
    x = jax.device_put(values(6, 7).astype(ml_dtypes.bfloat16), d)
    return x, x.T, x * 2, -x, x.astype(jnp.float32), jnp.abs(x)


@program("arrays", exact=True)
def float16(d):
    x = jax.device_put(values(6, 7).astype(np.float16), d)
    return x, x * 2, x.astype(jnp.float32), x.astype(jnp.float32).astype(jnp.float16)


@program("arrays", exact=True)
def float8(d):
    types = (jnp.float8_e4m3fn, jnp.float8_e5m2, jnp.float8_e4m3b11fnuz, jnp.float8_e4m3fnuz, jnp.float8_e5m2fnuz)
    arrays = [jax.device_put(values(9).astype(dtype), d) for dtype in types]
    return arrays, [x.astype(jnp.float32) for x in arrays], [jnp.arange(4.0).astype(dtype) for dtype in types]


@program("arrays", exact=True)
def other_floats(d):
    types = (jnp.float8_e3m4, jnp.float8_e4m3, jnp.float8_e8m0fnu, jnp.float4_e2m1fn)
    return [jax.device_put(np.array([1, 2, 4, 0.5, 1]).astype(dtype), d) for dtype in types]


@program("arrays", exact=True)
def int2(d):
    return jax.device_put(np.array([-2, -1, 0, 1, 1]).astype(ml_dtypes.int2), d), jax.device_put(
        np.array([0, 1, 2, 3, 3]).astype(ml_dtypes.uint2), d
    )


@program("arrays")
def complex_numbers(d):
    x = jax.device_put(values(5, dtype=np.complex64), d)
    return jax.jit(
        lambda x: (
            x, x.real, x.imag, jnp.conj(x), jnp.abs(x), jnp.angle(x), x * x, x / (x + 2), jnp.exp(x),
            lax.complex(x.real, x.imag)
        )
    )(x)


@program("arrays")
def double(d):
    with jax.enable_x64(True):
        x = jax.device_put(values(5, dtype=np.float64), d)
        return x, jnp.sin(x), x @ x, jax.device_put(values(3, dtype=np.complex128), d) * 2j


@program("arrays", exact=True)
def no_dimensions(d):
    x = jax.device_put(np.float32(3), d)
    return x, x + 1, x.reshape(1, 1), jnp.int32(5) * 2, jnp.array(True), x.item(), float(x * 2), int(jnp.array(7))


@program("arrays", exact=True)
def no_elements(d):
    x = jax.device_put(np.zeros((0, 3), np.float32), d)
    return (
        x, x + 1, x.sum(0), x.T, jnp.concatenate([x, x]), jnp.concatenate([x, jnp.ones((2, 3))]),
        jax.jit(lambda x: x * 2)(x)
    )


@program("arrays", exact=True)
def special_values(d):
    x = jax.device_put(np.array([np.nan, np.inf, -np.inf, -0.0, 1e-45, 3.4e38], np.float32), d)
    return x, x[::-1], jnp.isnan(x), jnp.isinf(x), jnp.signbit(x), jnp.nan_to_num(x[:3])


@program("arrays", exact=True)
def basic_indexing(d):
    x = jax.device_put(values(6, 7, 4), d)
    return x[2], x[-1, 1:5], x[:, None, ::2], x[..., 3], x[::-1, ::-2], x[1:1], x[4, 5, 3], x[5:2:-1]


@program("arrays", exact=True)
def advanced_indexing(d):
    x = jax.device_put(values(6, 7), d)
    i = jnp.array([5, 0, 3, 3])
    return (
        x[i], x[i, jnp.array([1, 2, 3, 4])], x[:, i], x[x > 0], jnp.take(x, i, axis=1),
        jnp.take_along_axis(x, jnp.argsort(x, 1), 1)
    )


@program("arrays", exact=True)
def updates(d):
    x = jax.device_put(values(6, 7), d)
    i = jnp.array([1, 1, 4])
    return jax.jit(
        lambda x, i: (
            x.at[2].set(9), x.at[1:3, ::2].set(0), x.at[i].max(0.5), x.at[i, i].min(-2), x.at[5].multiply(2),
            x.at[9].set(1, mode="drop")
        )
    )(x, i)


@program("arrays", exact=True)
def dynamic_slices(d):
    x = jax.device_put(values(8, 9), d)
    cut = jax.jit(lambda x, i: lax.dynamic_slice(x, (i, 2), (3, 4)))
    put = jax.jit(lambda x, i: lax.dynamic_update_slice(x, jnp.ones((2, 2)), (i, i)))
    return [cut(x, i) for i in (0, 4, 100)], [put(x, i) for i in (0, 3, 100)]


@program("arrays", exact=True)
def gather_scatter(d):
    x = jax.device_put(values(10, 4, dtype=np.int32), d)
    segments = jnp.array([0, 2, 2, 1, 0, 1, 2, 2, 0, 1])
    return jax.jit(
        lambda x, segments: (
            jax.ops.segment_sum(x, segments, 3), jax.ops.segment_max(x, segments, 3), jnp.bincount(segments, length=4),
            jnp.zeros((3, 4), jnp.int32).at[segments].add(x), jax.vmap(lambda row, i: row[i])(x, segments)
        )
    )(x, segments)


@program("arrays", exact=True)
def transposes(d):
    x = jax.device_put(values(2, 3, 4, 5), d)
    return jax.jit(
        lambda x: (
            x.T, x.transpose(2, 0, 3, 1), jnp.swapaxes(x, 1, 2), jnp.moveaxis(x, 0, -1),
            x.transpose(3, 1, 0, 2).reshape(6, 20)
        )
    )(x)


@program("arrays", exact=True)
def shapes(d):
    x = jax.device_put(values(4, 6), d)
    return jax.jit(
        lambda x: (
            x.reshape(3, 8), x.ravel(), x[None, :, None], jnp.squeeze(x[:1]), jnp.broadcast_to(x[0], (3, 6)),
            jnp.tile(x, (2, 2)), jnp.repeat(x, 3, 1), jnp.flip(x, 1), jnp.rot90(x), jnp.roll(x, (2, -1), (0, 1))
        )
    )(x)


@program("arrays", exact=True)
def joining(d):
    x, y = jax.device_put(values(3, 4), d), jax.device_put(values(3, 4, seed=1), d)
    return jax.jit(
        lambda x, y: (
            jnp.concatenate([x, y]), jnp.concatenate([x, y], 1), jnp.stack([x, y], 1), jnp.vstack([x, y]),
            jnp.split(x, 3), jnp.pad(x, ((1, 2), (0, 3))), jnp.pad(x, 2, mode="reflect"),
            lax.pad(x, 9.0, ((1, 0, 2), (-1, 1, 0)))
        )
    )(x, y)


@program("arrays", exact=True)
def bits(d):
    x = jax.device_put(values(8, dtype=np.uint32), d)
    f = jax.device_put(values(8), d)
    return jax.jit(
        lambda x, f: (
            x ^ 5, x << 3, x >> 1, ~x, lax.population_count(x), lax.clz(x), lax.bitcast_convert_type(f, jnp.int32),
            lax.bitcast_convert_type(x, jnp.uint8), jnp.packbits(f > 0)
        )
    )(x, f)


@program("arrays")
def reductions(d):
    x = jax.device_put(values(17, 33), d)
    f = lambda x: (
        x.mean(1), x.min(0), x.prod(1), x.std(), x.var(0), jnp.cumsum(x, 1), jnp.cumprod(x, 0), jnp.argmax(x, 1),
        jnp.argmin(x), jnp.median(x, 0), jax.nn.logsumexp(x, 1)
    )
    return x.sum(), x.sum(0), x.max(), jax.jit(f)(x)


# -- transformations ---------------------------------------------------------------------------------------------------


@program("jit")
def elementwise(d):
    # More elements are compiled wrongly by XLA of plugin 0.115 for arctan, whoever runs that.
    x = jax.device_put(values(40) * 3, d)
    names = (
        "sin", "cos", "tan", "exp", "log1p", "sqrt", "tanh", "arctan", "sinh", "expm1", "cbrt", "floor", "round",
        "sign", "square"
    )
    return jax.jit(
        lambda x: {name: getattr(jnp, name)(jnp.abs(x) if name in ("log1p", "sqrt") else x) for name in names}
    )(x)


@program("jit")
def special_functions(d):
    x = jax.device_put(np.abs(values(30)) + 0.1, d)
    names = ("erf", "erfc", "gammaln", "i0", "ndtri", "expit")
    return jax.jit(lambda x: {name: getattr(jax.scipy.special, name)(x) for name in names})(x * 0.9), jnp.power(x, 2.5)


@program("jit")
def static_arguments(d):
    f = jax.jit(lambda x, n, flip=False: (x[::-1] if flip else x) ** n, static_argnums=1, static_argnames="flip")
    return [f(jnp.arange(5.0), n, flip=flip) for n in (1, 2, 3) for flip in (False, True)]


@program("jit")
def trees(d):
    f = jax.jit(
        lambda tree: {
            "sum": tree["a"] + tree["b"][0], "rest": [tree["b"][1], None], "twice": jax.tree.map(lambda x: x * 2, tree)
        }
    )
    return f({"a": jnp.arange(3.0), "b": (jnp.ones(3), jnp.zeros((2, 2), jnp.int32))})


@program("jit", exact=True)
def arguments_as_results(d):
    x, y = jnp.arange(5.0), jnp.arange(3)
    return (
        jax.jit(lambda x, y: (y, x, x, jnp.zeros(2), 5))(x, y), jax.jit(lambda: (jnp.arange(4), 1.5))(),
        jax.jit(lambda x: ())(x)
    )


@program("jit", exact=True)
def many_arguments(d):
    arguments = [jnp.full((3,), i) for i in range(120)]
    return jax.jit(lambda *args: (sum(args), args[::-1]))(*arguments)


@program("jit")
def nested(d):
    inner = jax.jit(lambda x: jnp.sin(x) * 2)
    return jax.jit(lambda x: inner(inner(x)) + inner(x + 1))(jnp.arange(6.0))


@program("jit")
def constants(d):
    table = values(300, 200)
    return jax.jit(lambda i: jnp.asarray(table)[i] * 2)(jnp.array([3, 299, 0]))


@program("jit")
def large(d):
    x = jax.device_put(np.abs(values(1000, 1001)), d)
    return jax.jit(lambda x: (jnp.tanh(x) + x[::-1]).sum(1))(x), jax.jit(lambda x: x.T + 1)(x)[::100, ::100]


@program("jit", rtol=1e-2)
def low_precision(d):
    x = jax.device_put(values(16, 16).astype(ml_dtypes.bfloat16), d)
    return jax.jit(
        lambda x: (x @ x, jnp.exp(x), jax.nn.softmax(x), x.sum(0), (x.astype(jnp.float8_e4m3fn)).astype(jnp.bfloat16))
    )(x)


@program("grad")
def gradients(d):
    f = lambda x: jnp.sum(jnp.sin(x) * jnp.exp(-(x**2)))
    x = jax.device_put(values(7), d)
    return jax.grad(f)(x), jax.jit(
        lambda x: (jax.value_and_grad(f)(x), jax.jacfwd(jnp.cumsum)(x), jax.jacrev(jnp.cumprod)(x))
    )(x)


@program("grad")
def hessian(d):
    f = lambda x: jnp.sum(x**3) + jnp.prod(x)
    x = jax.device_put(values(5), d)
    return jax.jit(lambda x: (jax.hessian(f)(x), jax.jvp(jax.grad(f), (x,), (jnp.ones(5),))))(x)


@program("grad")
def network(d):
    """Some steps of training."""
    x, y = jax.device_put(values(32, 8), d), jax.device_put(values(32, 2, seed=1), d)
    weights = [jax.device_put(values(*shape, seed=i), d) for i, shape in enumerate(((8, 16), (16,), (16, 2)))]

    @jax.jit
    def step(weights):
        loss = lambda w: jnp.mean((jax.nn.relu(x @ w[0] + w[1]) @ w[2] - y) ** 2)
        value, slopes = jax.value_and_grad(loss)(weights)
        return value, [w - 0.1 * slope for w, slope in zip(weights, slopes)]

    losses = []
    for _ in range(5):
        loss, weights = step(weights)
        losses.append(loss)
    return losses, weights


@program("grad")
def checkpoint(d):
    layer = jax.checkpoint(lambda x: jnp.sin(jnp.cos(x) * x))
    x = jax.device_put(values(9), d)
    return jax.jit(jax.grad(lambda x: layer(layer(x)).sum()))(x), jax.grad(lambda x: layer(x).sum())(x)


@program("grad")
def custom_vjp(d):
    @jax.custom_vjp
    def clipped(x):
        return x * 3

    clipped.defvjp(lambda x: (clipped(x), x), lambda x, slope: (jnp.clip(slope * x, -0.5, 0.5),))
    return jax.jit(jax.grad(lambda x: clipped(x).sum()))(jax.device_put(values(9), d)), clipped(jnp.arange(3.0))


@program("grad")
def custom_jvp(d):
    @jax.custom_jvp
    def safe(x):
        return jnp.where(x > 0, jnp.sqrt(jnp.abs(x)), 0)

    safe.defjvp(lambda primals, tangents: (safe(*primals), jnp.where(primals[0] > 0, 1, 0) * tangents[0]))
    return jax.vmap(jax.grad(safe))(jax.device_put(values(9), d))


@program("vmap")
def mapped(d):
    x, y = jax.device_put(values(5, 3), d), jax.device_put(values(4, 3, seed=1), d)
    return (
        jax.vmap(jnp.dot)(x, x), jax.vmap(jax.vmap(jnp.dot, (None, 0)), (0, None))(x, y),
        jax.vmap(lambda x: x[::-1], 1, 1)(x), jax.jit(jax.vmap(jax.grad(lambda x: jnp.sum(x**3))))(x),
        jax.vmap(lambda x: lax.cond(x[0] > 0, jnp.sin, jnp.cos, x))(x)
    )


@program("control")
def scan(d):
    def step(carry, x):
        carry = carry * 0.9 + x
        return carry, (jnp.sin(carry), carry > 0)

    x = jax.device_put(values(20, 3), d)
    total = lambda x: lax.scan(step, jnp.zeros(3), x, reverse=True, unroll=4)[0].sum()
    return (
        lax.scan(step, jnp.zeros(3), x), jax.jit(jax.value_and_grad(total))(x),
        jax.jit(lambda x: lax.associative_scan(jnp.maximum, x))(x)
    )


@program("control", exact=True)
def while_loops(d):
    collatz = jax.jit(
        lambda n: lax.while_loop(
            lambda s: s[0] != 1, lambda s: (jnp.where(s[0] % 2 == 0, s[0] // 2, 3 * s[0] + 1), s[1] + 1), (n, 0)
        )[1]
    )
    return (
        [collatz(n) for n in (1, 6, 27, 97)], lax.fori_loop(0, 10, lambda i, x: x * 2 + i, 1),
        jax.jit(lambda n: lax.fori_loop(0, n, lambda i, x: x.at[i].set(i * i), jnp.zeros(9, jnp.int32)))(7)
    )


@program("control")
def nested_loops(d):
    inner = lambda x: lax.fori_loop(0, 3, lambda j, y: y + jnp.sin(y), x)
    outer = lambda x: lax.while_loop(
        lambda s: s[1] < 4, lambda s: (lax.cond(s[1] % 2 == 0, inner, jnp.cos, s[0]), s[1] + 1), (x, 0)
    )
    return jax.jit(outer)(jax.device_put(values(6), d))


@program("control")
def conditions(d):
    f = jax.jit(lambda i, x: lax.switch(i, [jnp.sin, lambda x: x * 2, lambda x: -x], x))
    g = jax.jit(lambda p, x: lax.cond(p, lambda x: x.sum(), lambda x: x.max(), x))
    x = jax.device_put(values(6), d)
    return (
        [f(i, x) for i in (-1, 0, 1, 2, 9)], g(True, x), g(False, x), lax.select(x > 0, x, -x),
        lax.map(lambda x: x + 1, x)
    )


# -- sorting, random numbers, linear algebra ---------------------------------------------------------------------------


@program("sort", exact=True)
def sorting(d):
    x = jax.device_put(values(40, 3), d)
    i = jax.device_put(values(40, dtype=np.int32), d)
    return (
        jnp.sort(x, 0), jnp.sort(x, 1), jnp.argsort(x, 0), jnp.argsort(-x[:, 0]), jnp.argsort(i),
        jnp.sort(i, descending=True), jax.jit(jnp.lexsort)((x[:, 0], i)), lax.sort((i, jnp.arange(40)), num_keys=1),
        jnp.unique(i)
    )


@program("sort", exact=True)
def top_k(d):
    x = jax.device_put(values(4, 60), d)
    return lax.top_k(x, 5), lax.top_k(x[0], 60), lax.approx_max_k(x, 3), jax.jit(lambda x: lax.top_k(x * 2, 1))(x)


@program("sort", exact=True)
def sort_large(d):
    x = jax.device_put(values(100_000), d)
    return jnp.sort(x)[::997], jnp.argsort(x)[::997], jnp.partition(x, 100)[100]


@program("random", exact=True)
def random_bits(d):
    key = jax.random.key(7)
    more = lambda key: (
        jax.random.randint(key, (20,), 0, 1000), jax.random.fold_in(key, 3), jax.random.bernoulli(key, 0.3, (30,)),
        jax.random.permutation(key, jnp.arange(12).reshape(4, 3), axis=1)
    )
    data = lambda x: jax.random.key_data(x) if jnp.issubdtype(x.dtype, jax.dtypes.prng_key) else x
    return (
        data(jax.random.split(key, 5)), jax.random.permutation(key, 50), jax.tree.map(data, jax.jit(more)(key)),
        jax.random.PRNGKey(5)
    )


@program("random")
def random_floats(d):
    key = jax.random.key(1)
    more = lambda key: (
        jax.random.uniform(key, (50,), minval=-2), jax.random.exponential(key, (9,)), jax.random.laplace(key, (9,))
    )
    return jax.random.normal(key, (50,)), jax.jit(more)(key)


@program("random", exact=True)
def random_choices(d):
    key = jax.random.key(2)
    x = jax.random.normal(key, (4, 6))
    more = lambda key: (jax.random.choice(key, 20, (5,), replace=False), jax.random.choice(key, jnp.arange(9), (3,)))
    return (
        jax.random.categorical(key, x, axis=-1), jax.jit(more)(key), jax.random.key_data(jax.random.key(1, impl="rbg"))
    )


@program("linear", rtol=1e-4)
def products(d):
    x, y = jax.device_put(values(33, 65), d), jax.device_put(values(65, 17, seed=1), d)
    return jax.jit(
        lambda x, y: (
            x @ y, jnp.dot(x[0], y[:, 0]), jnp.outer(x[0], y[0]), jnp.vdot(x[:, 0], x[:, 1]), jnp.tensordot(x, y, 1),
            jnp.kron(x[:2, :2], y[:2, :2]), jnp.matmul(jnp.stack([x, x + 1]), y),
            (x[:2].astype(jnp.complex64) * 1j) @ y, jnp.cross(x[0, :3], y[0, :3])
        )
    )(x, y)


@program("linear", exact=True)
def integer_products(d):
    x, y = jax.device_put(values(9, 8, dtype=np.int32), d), jax.device_put(values(8, 5, dtype=np.int32, seed=1), d)
    narrow = lambda x: x.astype(jnp.int8)
    return (
        x @ y, lax.dot(narrow(x), narrow(y), preferred_element_type=jnp.int32),
        jnp.linalg.matrix_power(x[:5, :5] % 3, 3)
    )


@program("linear", rtol=1e-4)
def einsums(d):
    x, y = jax.device_put(values(3, 4, 5), d), jax.device_put(values(3, 5, 6, seed=1), d)
    return jax.jit(
        lambda x, y: (
            jnp.einsum("bij,bjk->bik", x, y), jnp.einsum("bij,bjk->ki", x, y), jnp.einsum("bii->b", x[:, :, :4]),
            jnp.einsum("bij->jb", x), lax.dot_general(x, y, (((2,), (1,)), ((0,), (0,)))),
            jnp.einsum("bij,bkj->bik", x, x, precision="highest")
        )
    )(x, y)


@program("linear", rtol=1e-4)
def large_product(d):
    x, y = jax.device_put(values(300, 257), d), jax.device_put(values(257, 301, seed=1), d)
    return (x @ y)[::7, ::7], jnp.abs(x @ y).sum()


@program("linear")
def norms(d):
    x = jax.device_put(values(7, 9), d)
    return (
        jnp.linalg.norm(x), jnp.linalg.norm(x, 1), jnp.linalg.norm(x, axis=0, ord=jnp.inf), jnp.trace(x), jnp.diag(x),
        jnp.triu(x, 1)
    )


@program("linear")
def convolutions(d):
    x, w = jax.device_put(values(2, 8, 9, 3), d), jax.device_put(values(3, 3, 3, 4, seed=1), d)
    conv = lambda **more: lax.conv_general_dilated(x, w, dimension_numbers=("NHWC", "HWIO", "NHWC"), **more)
    return (
        conv(window_strides=(1, 1), padding="SAME"), conv(window_strides=(2, 1), padding="VALID", rhs_dilation=(1, 2)),
        jnp.convolve(x[0, 0, :, 0], w[0, 0, :, 0]),
        jax.grad(lambda w: jnp.sum(jnp.convolve(x[0, 0, :, 0], w) ** 2))(w[0, 0, :, 0]),
        lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"),
        lax.conv_transpose(x, w, (2, 2), "SAME")
    )


@program("linear")
def depthwise_convolution(d):
    x, w = jax.device_put(values(1, 4, 8, 8), d), jax.device_put(values(8, 1, 3, 3, seed=1), d)
    return lax.conv_general_dilated(x, w, (1, 1), "SAME", feature_group_count=4), lax.conv_general_dilated(
        x[:, :, 0], w[:4, :, 0], (1,), ((2, 0),), feature_group_count=4
    )


@program("fft", rtol=1e-4)
def transforms(d):
    x = jax.device_put(values(4, 16), d)
    z = jax.device_put(values(3, 12, dtype=np.complex64), d)
    return jax.jit(
        lambda x, z: (
            jnp.fft.fft(z), jnp.fft.ifft(z), jnp.fft.fft2(z), jnp.fft.rfft(x), jnp.fft.irfft(jnp.fft.rfft(x)),
            jnp.fft.fftn(x), jnp.fft.fft(x, 7), jnp.fft.fftshift(x), jax.jit(jnp.fft.fft)(z), jnp.fft.hfft(z)
        )
    )(x, z)


# -- custom calls: LAPACK, Python --------------------------------------------------------------------------------------


def positive(n, dtype=np.float32):
    x = values(n, n, dtype=dtype)
    return x @ x.conj().T + n * np.eye(n, dtype=dtype)


@program("lapack", needs="handlers", rtol=1e-4)
def cholesky(d):
    return jnp.linalg.cholesky(jax.device_put(positive(6), d))


@program("lapack", needs="handlers", rtol=1e-4)
def cholesky_complex_batch(d):
    x = jax.device_put(np.stack([positive(4, np.complex64), 2 * positive(4, np.complex64)]), d)
    return jax.jit(jnp.linalg.cholesky)(x)


@program("lapack", needs="handlers", rtol=1e-4)
def qr(d):
    q, r = jnp.linalg.qr(jax.device_put(values(6, 4), d))
    return jnp.abs(r), q @ r, jnp.linalg.qr(jax.device_put(values(2, 3, 5), d), mode="r")


@program("lapack", needs="handlers", rtol=1e-4)
def svd(d):
    x = jax.device_put(values(5, 3), d)
    u, s, v = jnp.linalg.svd(x, full_matrices=False)
    return (
        s, (u * s) @ v, jnp.linalg.svd(x, compute_uv=False), jnp.linalg.pinv(x), jnp.linalg.matrix_rank(x),
        jnp.linalg.norm(x, 2)
    )


@program("lapack", needs="handlers", rtol=1e-4)
def eigh(d):
    x = jax.device_put(positive(5), d)
    w, v = jnp.linalg.eigh(x)
    return w, (v * w) @ v.T, jnp.linalg.eigvalsh(x)


@program("lapack", needs="handlers", rtol=1e-4)
def eig(d):
    w = jnp.linalg.eigvals(jax.device_put(positive(4) + values(4, 4), d))
    return jnp.sort(w.real), w.sum()


@program("lapack", needs="handlers", rtol=1e-4)
def solve(d):
    x, b = jax.device_put(values(5, 5) + 3 * np.eye(5, dtype=np.float32), d), jax.device_put(values(5, 2), d)
    return jnp.linalg.solve(x, b), jnp.linalg.inv(x), jnp.linalg.det(x), jnp.linalg.slogdet(x), jax.scipy.linalg.lu(x)


@program("lapack", needs="handlers", rtol=1e-4)
def triangular(d):
    x, b = jax.device_put(np.tril(values(5, 5)) + 2 * np.eye(5, dtype=np.float32), d), jax.device_put(values(5, 2), d)
    return jax.scipy.linalg.solve_triangular(x, b, lower=True), jax.scipy.linalg.cho_solve((x, True), b)


@program("lapack", needs="handlers", rtol=1e-3)
def gradient_of_solve(d):
    x = jax.device_put(positive(4), d)
    return jax.jit(jax.grad(lambda x: jnp.linalg.slogdet(x)[1] + jnp.sum(jnp.linalg.solve(x, jnp.ones(4)))))(x)


@program("lapack", needs="handlers")
def double_precision(d):
    with jax.enable_x64(True):
        x = jax.device_put(positive(5, np.float64), d)
        return jnp.linalg.cholesky(x), jnp.linalg.eigvalsh(x), jnp.linalg.solve(x, jnp.ones(5))


@program("lapack", needs="handlers", rtol=1e-4)
def in_a_loop(d):
    x = jax.device_put(positive(4), d)
    return jax.jit(lambda x: lax.fori_loop(0, 5, lambda i, y: jnp.linalg.cholesky(y @ y.T + jnp.eye(4)), x))(x)


@program("python", needs="handlers")
def callback(d):
    shape = jax.ShapeDtypeStruct((3,), np.float32)
    return jax.jit(lambda x: jax.pure_callback(lambda x: np.asarray(x) * 2, shape, x) + 1)(jnp.arange(3.0))


@program("python", needs="handlers")
def debug_callback(d):
    seen = []
    y = jax.jit(lambda x: (jax.debug.callback(lambda x: seen.append(float(x)), x.sum()), x * 2)[1])(jnp.arange(3.0))
    jax.effects_barrier()
    return y, seen


@program("python", needs="handlers")
def callbacks_with_effects(d):
    """Each happens once, also where two runs are compared."""
    calls = []

    def count(x):
        calls.append(float(x))
        return np.int32(len(calls))

    counted = jax.jit(lambda x: io_callback(count, jax.ShapeDtypeStruct((), np.int32), x))
    return [int(counted(jnp.float32(x))) for x in range(3)], calls


@program("python", needs="handlers")
def callbacks_of_every_kind(d):
    """Scalars, several results, a loop, packed integers, and an error with its text."""
    shapes = (jax.ShapeDtypeStruct((), np.int32), jax.ShapeDtypeStruct((2, 3), np.float32))
    both = jax.jit(lambda x: jax.pure_callback(lambda x: (x.astype(np.int32).sum(), x - 1), shapes, x))
    count = lambda i, x: jax.pure_callback(lambda i, x: x + i, jax.ShapeDtypeStruct((), np.int32), i, x)
    narrow = jax.ShapeDtypeStruct((5,), ml_dtypes.int4)
    packed = jax.jit(lambda x: jax.pure_callback(lambda x: np.asarray(x)[::-1], narrow, x))

    def fails(x):
        raise ValueError("seven is not allowed")

    failed = jax.jit(lambda x: jax.pure_callback(fails, x, x))
    refusal(lambda: np.asarray(failed(jnp.arange(3.0))), "seven is not allowed")
    small = jnp.array([-8, -1, 0, 3, 7], dtype=jnp.int4)
    looped = jax.jit(lambda x: jax.lax.fori_loop(0, 5, count, x))(jnp.int32(1))
    return both(jnp.arange(6.0).reshape(2, 3)), looped, packed(small).astype(jnp.int32)


def convolution(x, kernel, stride=1):
    return lax.conv_general_dilated(
        x, kernel, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


@program("convolutions", rtol=1e-4)
def small_and_large(d):
    """XLA leaves small ones to a thunk, and hands large ones to YNNPACK."""
    images, kernels = (1, 8, 32), (4, 8, 32)
    results = []
    for channels in kernels:
        x, kernel = values(4, 16, 16, channels), values(3, 3, channels, channels, seed=1)
        results += [jax.jit(convolution)(x, kernel), jax.jit(convolution, static_argnums=2)(x, kernel, 2)]
    return results, [jax.jit(convolution)(values(n, 8, 8, 16), values(3, 3, 16, 16)) for n in images]


@program("convolutions", rtol=1e-4)
def gradients(d):
    def loss(x, kernel, bias):
        return (jax.nn.relu(convolution(x, kernel, 2) + bias) ** 2).mean()

    gradient = jax.jit(jax.grad(loss, (0, 1, 2)))
    return [gradient(values(n, 16, 16, 16), values(3, 3, 16, 32), values(32)) for n in (2, 32)]

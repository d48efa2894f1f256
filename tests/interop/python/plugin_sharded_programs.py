"""Programs of plugin_test.py for 8 devices."""

import functools
import gc

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P, SingleDeviceSharding

from plugin_programs import in_threads, program, refusal, values

on_devices = functools.partial(program, needs="eight")


def mesh_of(ds, *shape, names=("x", "y")):
    """The first devices, in that shape."""
    return Mesh(np.array(ds[: int(np.prod(shape))]).reshape(shape), names[: len(shape)])


def put(x, mesh, *spec):
    return jax.device_put(x, NamedSharding(mesh, P(*spec)))


def mapped(mesh, body, inside, outside):
    return jax.jit(jax.shard_map(body, mesh=mesh, in_specs=inside, out_specs=outside, check_vma=False))


# -- one device of several ---------------------------------------------------------------------------------------------


@on_devices("devices", exact=True)
def between_devices(ds):
    x = jax.device_put(values(100), ds[0])
    there = [jax.device_put(x, d) for d in ds]
    assert [next(iter(y.devices())) for y in there] == list(ds), "an array is on another device"
    around = x
    for d in (*ds[1:], ds[0]):
        around = jax.device_put(around, d) + 1
    return there, around


@on_devices("devices")
def runs_where_arguments_are(ds):
    f = jax.jit(lambda x: jnp.sin(x) * 2)
    results = [f(jax.device_put(values(9, seed=i), d)) for i, d in enumerate(ds)]
    assert [next(iter(y.devices())) for y in results] == list(ds), "a result is on another device"
    return results, refusal(lambda: jax.device_put(values(3), ds[0]) + jax.device_put(values(3), ds[1]), "devices")


@on_devices("devices", exact=True)
def kinds_between_devices(ds):
    x = jax.device_put(values(10), SingleDeviceSharding(ds[1], memory_kind="pinned_host"))
    y = jax.device_put(x, SingleDeviceSharding(ds[5], memory_kind="unpinned_host"))
    return y, jax.device_put(y, ds[2]), y.sharding.memory_kind


@on_devices("devices", exact=True)
def donated_on_each(ds):
    f = jax.jit(lambda x, i: x.at[0].set(i), donate_argnums=0)
    xs = [jax.device_put(values(20), d) for d in ds]
    return [f(x, i) for i, x in enumerate(xs)], [x.is_deleted() for x in xs]


@on_devices("devices")
def threads_on_devices(ds):
    f = jax.jit(lambda x: jnp.cos(x) + x[::-1])

    def work(i):
        x = jax.device_put(values(100, seed=i), ds[i])
        for _ in range(20):
            x = f(x)
        return np.asarray(x)

    return in_threads(8, work)


# -- shardings ---------------------------------------------------------------------------------------------------------


@on_devices("sharding", exact=True)
def placed(ds):
    mesh = mesh_of(ds, 4, 2)
    x = values(8, 6)
    arrays = [put(x, mesh, *spec) for spec in ((), ("x",), ("y",), ("x", "y"), (None, "y"), (("x", "y"),))]
    shards = [[(s.device.id - ds[0].id, s.index, np.asarray(s.data)) for s in y.addressable_shards] for y in arrays]
    return (
        arrays, [[(i, np.asarray(data)) for i, _, data in each] for each in shards], arrays[1].is_fully_replicated,
        arrays[0].is_fully_replicated
    )


@on_devices("sharding", exact=True)
def reshards(ds):
    mesh = mesh_of(ds, 4, 2)
    x = put(values(8, 8), mesh, "x", "y")
    there = [put(x, mesh, *spec) for spec in (("y", "x"), (None, "x"), (), (("y", "x"),))]
    inside = jax.jit(lambda x: x + 0, out_shardings=NamedSharding(mesh, P(None, ("x", "y"))))(x)
    return there, inside, jax.device_put(x, ds[3]), put(x, mesh_of(ds[4:], 4), "x")


@on_devices("sharding")
def elementwise(ds):
    mesh = mesh_of(ds, 8)
    x = put(values(16, 3), mesh, "x")
    y = jax.jit(lambda x: jnp.sin(x) * 2 + 1)(x)
    assert y.sharding.is_equivalent_to(x.sharding, 2), y.sharding
    return y, x + y, -x


@on_devices("sharding")
def reductions(ds):
    mesh = mesh_of(ds, 8)
    x = put(values(16, 5), mesh, "x")
    return (
        x.sum(), x.max(0), x.mean(1), jnp.argmax(x, 0), jax.jit(lambda x: (x - x.mean(0)) / x.std(0))(x),
        jnp.cumsum(x, 0)
    )


@on_devices("sharding", rtol=1e-4)
def products(ds):
    mesh = mesh_of(ds, 4, 2)
    x, y = values(16, 32), values(32, 8, seed=1)
    results = [
        jax.jit(jnp.matmul)(put(x, mesh, *a), put(y, mesh, *b))
        for a, b in (
            (("x", None), (None, "y")), ((None, "x"), ("x", None)), (("x", "y"), ("y", None)), ((), (None, "x"))
        )
    ]
    return results, jax.jit(jnp.matmul, out_shardings=NamedSharding(mesh, P()))(put(x, mesh, "x"), put(y, mesh))


@on_devices("sharding")
def constraints(ds):
    mesh = mesh_of(ds, 4, 2)

    @jax.jit
    def f(x):
        y = lax.with_sharding_constraint(jnp.sin(x), NamedSharding(mesh, P("y", "x")))
        return lax.with_sharding_constraint(y.T, NamedSharding(mesh, P())), y * 2

    return f(put(values(8, 8), mesh, "x", "y"))


@on_devices("sharding", rtol=1e-4)
def training(ds):
    """Data-parallel steps with donated weights."""
    mesh = mesh_of(ds, 8)
    x, y = put(values(64, 6), mesh, "x"), put(values(64, 2, seed=1), mesh, "x")
    weights = put(values(6, 2, seed=2), mesh)
    loss = lambda w, x, y: jnp.mean((jnp.tanh(x @ w) - y) ** 2)
    step = jax.jit(lambda w, x, y: w - 0.2 * jax.grad(loss)(w, x, y), donate_argnums=0)
    for _ in range(6):
        old, weights = weights, step(weights, x, y)
        assert old.is_deleted(), "the weights are not donated"
    return weights, loss(weights, x, y)


@on_devices("sharding", exact=True)
def sorted_and_indexed(ds):
    mesh = mesh_of(ds, 8)
    x = put(values(32, 4), mesh, "x")
    return (
        jnp.sort(x, 0), jnp.sort(x, 1), x[5], x[::-1], x[jnp.array([31, 0, 7])], x.at[9].set(0),
        jnp.concatenate([x, x]), x.T, x.reshape(16, 8)
    )


@on_devices("sharding")
def random(ds):
    place = NamedSharding(mesh_of(ds, 8), P("x"))
    return jax.jit(lambda key: jax.random.normal(key, (32, 2)), out_shardings=place)(jax.random.key(4))


@on_devices("sharding")
def loops(ds):
    x = put(values(16, 4), mesh_of(ds, 8), "x")
    return (
        jax.jit(lambda x: lax.fori_loop(0, 5, lambda i, x: x - x.mean(0), x))(x),
        jax.jit(lambda x: lax.scan(lambda c, row: (c + row.sum(), c), 0.0, x.T))(x),
        jax.jit(lambda x: lax.while_loop(lambda x: jnp.max(x) < 10, lambda x: x * 2, x))(x)
    )


@on_devices("sharding", exact=True)
def made_from_parts(ds):
    mesh = mesh_of(ds, 4)
    place, x = NamedSharding(mesh, P("x")), values(8, 3)
    parts = [jax.device_put(x[2 * i : 2 * i + 2], d) for i, d in enumerate(ds[:4])]
    return (
        jax.make_array_from_callback((8, 3), place, lambda index: x[index]),
        jax.make_array_from_single_device_arrays((8, 3), place, parts),
        jax.make_array_from_process_local_data(place, x), jnp.zeros((8, 2), device=place),
        jax.device_put_sharded(parts, ds[:4]) if hasattr(jax, "device_put_sharded") else 0
    )


@on_devices("sharding")
def subsets(ds):
    """The same program on different devices, in different orders."""
    f = jax.jit(lambda x: (jnp.sin(x).sum(0), x * 2))
    return [
        f(put(values(8, 3), Mesh(np.array(part), "x"), "x"))
        for part in (ds[:4], ds[4:], ds[::2], ds[::-1], [ds[6], ds[1]])
    ]


@on_devices("sharding")
def lowered(ds):
    x = put(values(16, 4), mesh_of(ds, 8), "x")
    compiled = jax.jit(lambda x: x @ x.T).lower(x).compile()
    return (
        compiled(x), str(compiled.input_shardings[0][0].spec), compiled.memory_analysis().argument_size_in_bytes,
        "all-gather" in compiled.as_text()
    )


@on_devices("sharding", exact=True)
def memory_kinds(ds):
    place = NamedSharding(mesh_of(ds, 8), P("x"), memory_kind="pinned_host")
    x = jax.device_put(values(16), place)
    return x, x.sharding.memory_kind, jax.device_put(x, place.with_memory_kind("device")) + 1


# -- shard_map and pmap ------------------------------------------------------------------------------------------------


def collectives(ds, count):
    """Each collective on the first `count` devices."""
    mesh = mesh_of(ds, count)
    x = put(values(count * 2, count, 3), mesh, "x")
    ring = [(i, (i + 1) % count) for i in range(count)]
    one = lambda body, outside=P("x"): mapped(mesh, body, P("x"), outside)(x)
    return {
        "psum": one(lambda x: lax.psum(x, "x"), P()), "pmean": one(lambda x: lax.pmean(x, "x"), P()),
        "pmax": one(lambda x: lax.pmax(x, "x"), P()), "pmin": one(lambda x: lax.pmin(x, "x"), P()),
        "all_gather": one(lambda x: lax.all_gather(x, "x"), P()),
        "tiled": one(lambda x: lax.all_gather(x, "x", axis=1, tiled=True), P()),
        "ppermute": one(lambda x: lax.ppermute(x, "x", ring)), "some": one(lambda x: lax.ppermute(x, "x", ring[1:])),
        "all_to_all": one(lambda x: lax.all_to_all(x, "x", 1, 0, tiled=True)),
        "psum_scatter": one(lambda x: lax.psum_scatter(x, "x", scatter_dimension=1, tiled=True)),
        "axis_index": one(lambda x: x * lax.axis_index("x")),
        "integers": one(lambda x: lax.psum(jnp.sign(x).astype(jnp.int32), "x"), P()),
        "groups": one(
            lambda x: lax.psum(x, "x", axis_index_groups=[list(range(count // 2)), list(range(count // 2, count))])
        ),
        "gradient": jax.grad(
            lambda x: (mapped(mesh, lambda x: lax.ppermute(jnp.sin(x), "x", ring), P("x"), P("x"))(x) ** 2).sum()
        )(x)
    }


@on_devices("shard_map")
def collectives_on_4(ds):
    return collectives(ds, 4)


@on_devices("shard_map")
def collectives_on_8(ds):
    return collectives(ds, 8)


@on_devices("shard_map")
def collectives_on_the_last_4(ds):
    return collectives(ds[::-1], 4)


@on_devices("shard_map")
def two_axes(ds):
    mesh = mesh_of(ds, 4, 2)
    x = put(values(8, 4), mesh, "x", "y")
    f = lambda body, outside: mapped(mesh, body, P("x", "y"), outside)(x)
    return (
        f(lambda x: lax.psum(x, "x"), P(None, "y")), f(lambda x: lax.psum(x, ("x", "y")), P()),
        f(lambda x: lax.all_gather(x, "y", axis=1, tiled=True), P("x")),
        f(lambda x: lax.ppermute(x, "y", [(0, 1), (1, 0)]), P("x", "y")),
        f(lambda x: x + lax.axis_index(("x", "y")), P("x", "y"))
    )


@on_devices("shard_map")
def ring_in_a_loop(ds):
    """Each device sees what all others have, one after the other."""
    ring = [(i, (i + 1) % 8) for i in range(8)]

    def body(x):
        step = lambda i, s: (lax.ppermute(s[0], "x", ring), s[1] + s[0] * (i + 1))
        return lax.fori_loop(0, 8, step, (x, jnp.zeros_like(x)))[1]

    mesh = mesh_of(ds, 8)
    return mapped(mesh, body, P("x"), P("x"))(put(values(16, 3), mesh, "x"))


@on_devices("shard_map")
def collectives_in_branches(ds):
    mesh = mesh_of(ds, 4)
    body = lambda x, i: lax.switch(i, [lambda x: lax.psum(x, "x"), lambda x: lax.pmax(x, "x"), jnp.sin], x)
    f = mapped(mesh, body, (P("x"), P()), P("x"))
    return [f(put(values(8), mesh, "x"), jnp.int32(i)) for i in range(3)]


@on_devices("shard_map", own=True)
def many_runs(ds):
    """Runs of several devices that are not waited for. jaxlib's own hang where there are fewer cores than devices."""
    mesh = mesh_of(ds, 8)
    f = mapped(mesh, lambda x: lax.pmean(x, "x") + 0.5 * x, P("x"), P("x"))
    start = values(16, 2)
    x, y = put(start, mesh, "x"), start.reshape(8, 2, 2)
    for _ in range(60):
        x, y = f(x), y.mean(0) + 0.5 * y
    np.testing.assert_allclose(np.asarray(x), y.reshape(16, 2), rtol=1e-4, atol=1e-6)


@on_devices("shard_map", exact=True)
def donated(ds):
    mesh = mesh_of(ds, 8)
    f = jax.jit(
        jax.shard_map(lambda x: x.at[0].set(lax.axis_index("x")), mesh=mesh, in_specs=P("x"), out_specs=P("x")),
        donate_argnums=0
    )
    x = put(np.arange(32, dtype=np.int32), mesh, "x")
    return f(x), x.is_deleted()


@on_devices("shard_map", own=True)
def donated_again(ds):
    """A shard that was donated is refused. jaxlib 0.10.2 crashes there."""
    f = jax.jit(lambda x: x + 1, donate_argnums=0)
    x = put(values(16), mesh_of(ds, 8), "x")
    f(x).block_until_ready()
    refusal(lambda: f(x), "deleted", "donated")


@on_devices("pmap")
def pmapped(ds):
    x = values(8, 5)
    return (
        jax.pmap(lambda x: jnp.sin(x) + lax.psum(x, "i"), "i", devices=ds)(x),
        jax.pmap(lambda x: x / lax.psum(x, "i"), "i", devices=ds[:4])(x[:4]),
        jax.pmap(lambda x, y: x + y, in_axes=(0, None), devices=ds)(x, 2.0),
        jax.pmap(lambda x: lax.all_gather(x, "i"), "i", devices=ds[:2])(x[:2])
    )


@on_devices("pmap")
def pmapped_training(ds):
    x, y = values(8, 4, 3), values(8, 4, seed=1)
    step = jax.pmap(
        lambda w, x, y: w - 0.1 * lax.pmean(jax.grad(lambda w: jnp.mean((x @ w - y) ** 2))(w), "i"), "i", devices=ds,
        donate_argnums=0
    )
    w = jnp.zeros((8, 3))
    for _ in range(5):
        w = step(w, x, y)
    return w


# -- memory ------------------------------------------------------------------------------------------------------------


@on_devices("memory", own=True)
def comes_back(ds):
    """Arrays that nobody has any more leave nothing, neither results nor what came from the host."""
    d, size = ds[3], 64 * 64 * 4
    step = jax.jit(lambda x: x * 2)
    moved = lambda: [jax.device_put(np.ones((64, 64), np.float32)[::-1], d) for _ in range(100)]
    ran = lambda: jax.block_until_ready([step(x) for x in moved()])
    ran()
    gc.collect()
    before = d.memory_stats()
    arrays = jax.block_until_ready(moved() + ran())
    during = d.memory_stats()
    assert during["bytes_in_use"] >= before["bytes_in_use"] + 100 * size, (before, during)
    assert during["peak_bytes_in_use"] >= during["bytes_in_use"] and during["num_allocs"] > before["num_allocs"], during
    assert during["bytes_limit"] == 1 << 32 and during["largest_alloc_size"] >= size, during
    del arrays
    gc.collect()
    assert d.memory_stats()["bytes_in_use"] == before["bytes_in_use"], (before, d.memory_stats())


@on_devices("memory", own=True)
def of_all_comes_back(ds):
    mesh = mesh_of(ds, 8)
    f = jax.jit(lambda x: x + 1)
    in_use = lambda: [d.memory_stats()["bytes_in_use"] for d in ds]
    f(put(values(64, 64)[::-1], mesh, "x")).block_until_ready()
    gc.collect()
    before = in_use()
    x = put(values(64, 64)[::-1], mesh, "x")
    y = f(x).block_until_ready()
    assert all(now >= old + 64 * 64 * 4 / 8 for now, old in zip(in_use(), before)), (before, in_use())
    del x, y
    gc.collect()
    assert in_use() == before, (before, in_use())


@on_devices("memory", own=True)
def limited(ds):
    """What is beyond the limit is refused, by the device that it is of, and work goes on."""
    refusal(
        lambda: jax.block_until_ready(jax.device_put(np.broadcast_to(np.float32(0), (1 << 31,)), ds[2])),
        "RESOURCE_EXHAUSTED"
    )
    np.testing.assert_array_equal(np.asarray(jax.device_put(np.arange(4), ds[2]) + 1), [1, 2, 3, 4])

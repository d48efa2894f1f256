"""Programs of plugin_test.py for one device: donation, errors, transfers, compiled programs, threads."""

import gc
import os
import tempfile

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import serialize_executable

from plugin_programs import aligned, in_threads, program, refusal, values

# -- donation and errors -----------------------------------------------------------------------------------------------


@program("donation")
def donated(d):
    f = jax.jit(lambda p, x: p - 0.1 * x, donate_argnums=0)
    p, x = jax.device_put(values(64), d), jnp.ones(64)
    for _ in range(5):
        old, p = p, f(p, x)
        assert old.is_deleted() and not x.is_deleted(), "the argument is not deleted"
    return p, refusal(lambda: np.asarray(old), "deleted"), refusal(lambda: f(old, x), "deleted", "donated")


@program("donation", exact=True)
def donated_in_place(d):
    """The result has the memory of the argument."""
    f = jax.jit(lambda x: x.at[3].set(7), donate_argnums=0)
    x = jax.device_put(np.arange(100)[::-1].astype(np.float32), d) + 0
    address = x.unsafe_buffer_pointer()
    y = f(x)
    # Two runs that are compared need the argument twice.
    is_in_place = y.unsafe_buffer_pointer() == address or os.environ.get("PURLIN_PJRT_MODE") == "check"
    return y, x.is_deleted(), is_in_place


@program("donation")
def donated_twice(d):
    f = jax.jit(lambda a, b: (a + 1, b + 2), donate_argnums=(0, 1))
    x = jax.device_put(values(16), d)
    return refusal(lambda: f(x, x), "donate"), f(jnp.ones(16), jnp.zeros(16))


@program("donation")
def donated_and_used(d):
    f = jax.jit(lambda a, b: a + b, donate_argnums=0)
    x = jax.device_put(values(16), d)
    return refusal(lambda: f(x, x), "donate")


@program("donation")
def donated_trees(d):
    f = jax.jit(lambda state, x: ({"w": state["w"] + x, "n": state["n"] + 1}, state["w"].sum()), donate_argnums=0)
    state, sums = {"w": jax.device_put(values(8, 8), d), "n": jnp.int32(0)}, []
    for _ in range(4):
        state, total = f(state, 0.5)
        sums.append(total)
    return state, sums


@program("donation", exact=True)
def donated_while_read(d):
    """A view of an array keeps its values when the array is donated."""
    x = jax.device_put(values(1000), d) + 0
    seen = np.asarray(x)
    y = jax.jit(lambda x: x * 0, donate_argnums=0)(x)
    return seen, y


@program("donation", exact=True)
def donated_from_host(d):
    """Memory of NumPy's is not written."""
    mine = aligned(256)
    x = jax.device_put(mine, d)
    return jax.jit(lambda x: x.at[:].set(-1), donate_argnums=0)(x), mine, x.is_deleted()


@program("errors")
def deleted(d):
    x = jax.device_put(values(9), d)
    x.delete()
    return (
        x.is_deleted(), refusal(lambda: np.asarray(x), "deleted"), refusal(lambda: x + 1, "deleted"),
        refusal(lambda: x.block_until_ready(), "deleted"),
        refusal(lambda: jax.device_put(x, d).block_until_ready(), "deleted"),
        refusal(lambda: jax.jit(jnp.sin)(x), "deleted")
    )


@program("errors")
def wrong_shapes(d):
    compiled = jax.jit(jnp.sin).lower(jnp.ones(3)).compile()
    return (
        refusal(lambda: jnp.ones((2, 3)) @ jnp.ones((2, 3)), "contracting"),
        refusal(lambda: compiled(jnp.ones(4)), "shape", "type"),
        refusal(lambda: compiled(jnp.ones(3, jnp.int32)), "type"), refusal(lambda: jnp.ones(3) + jnp.ones(4), "shape"),
        compiled(jnp.arange(3.0))
    )


@program("errors")
def debug_nans(d):
    with jax.debug_nans(True):
        f = jax.jit(lambda x: jnp.log(x) * 2)
        return refusal(lambda: f(jnp.float32(-1)), "nan"), f(jnp.float32(1)), refusal(lambda: jnp.zeros(3) / 0, "nan")


@program("errors")
def debug_infs(d):
    with jax.debug_infs(True):
        return refusal(lambda: jax.jit(lambda x: 1 / x)(jnp.zeros(2)), "inf"), jax.jit(lambda x: 1 / x)(jnp.ones(2))


@program("errors")
def out_of_memory(d):
    """More bytes than a machine has are refused, and work goes on."""
    return refusal(lambda: jax.jit(lambda: jnp.zeros((1 << 45,), jnp.int8))().block_until_ready()), jnp.arange(3) + 1


# -- transfers ---------------------------------------------------------------------------------------------------------


@program("transfers", exact=True)
def there_and_back(d):
    x = values(7, 11)
    return (
        jax.device_get(jax.device_put(x, d)), jax.device_get({"a": jax.device_put(x[0], d), "b": [jnp.ones(2)]}),
        jax.device_put(x, d).tolist()
    )


@program("transfers", exact=True)
def strided(d):
    x = values(8, 10, 6)
    return [
        jax.device_put(part, d)
        for part in (x[::2], x[:, ::3], x[..., ::-1], x[::-1, 1:9:2, 5:0:-2], x[:, 4], x[:0], x[3, 4, 5:6])
    ]


@program("transfers", exact=True)
def reversed_inputs(d):
    x = np.arange(1000, dtype=np.int16)
    return jax.device_put(x[::-1], d), jax.device_put(x[::-7], d), jnp.asarray(x[::-1]) + 1


@program("transfers", exact=True)
def column_major(d):
    x = np.asfortranarray(values(5, 7, 3))
    return (
        jax.device_put(x, d), jax.device_put(x[1:, ::2], d), jax.jit(lambda x: x * 2)(x),
        np.asarray(jax.device_put(x.T, d)).flags.c_contiguous
    )


@program("transfers", exact=True)
def broadcast_input(d):
    x = np.broadcast_to(values(5), (4, 5))
    return jax.device_put(x, d), jax.device_put(np.broadcast_to(np.float32(3), (2, 2)), d)


@program("transfers", exact=True)
def misaligned(d):
    memory = np.zeros(404, np.uint8)
    x = memory[1:401].view(np.float32)
    x[:] = np.arange(100)
    y = aligned(100)[1:]
    return jax.device_put(x, d) * 2, jax.device_put(y, d) + y


@program("transfers", exact=True)
def zero_copy(d):
    x = aligned(1 << 12)
    y = jax.device_put(x, d)
    total = jax.jit(jnp.sum)(y)
    address = x.ctypes.data
    del x
    gc.collect()
    return y, total, jax.device_put(aligned(1 << 12), d, may_alias=False), y.unsafe_buffer_pointer() == address


@program("transfers", exact=True)
def input_that_changes(d):
    """A copy that was asked for has the values of then."""
    copies = []
    for size in 1 << 14, 1 << 16, 1 << 18:
        x = aligned(size)
        copies += [jnp.array(x), jnp.array(x, copy=True), jax.device_put(x, d, may_alias=False)]
        x[:] = -1
    return copies


@program("transfers", exact=True)
def big(d):
    x = values(4 << 20)  # 16 MiB.
    y = jax.device_put(x, d)
    back = np.asarray(y + 0)
    assert np.array_equal(back, x), "16 MiB changed on the way"
    z = jax.device_put(x.reshape(2048, 2048).T, d)
    assert np.array_equal(np.asarray(z), x.reshape(2048, 2048).T), "16 MiB changed in a transpose"
    return back[::10007], z[::511, ::511]


@program("transfers", exact=True)
def many(d):
    arrays = jax.device_put([np.full((i % 7,), i, np.int32) for i in range(300)], d)
    return jnp.concatenate(arrays), jax.device_get(arrays)[-5:]


@program("transfers", exact=True)
def dlpack(d):
    x = jax.device_put(values(3, 4), d)
    view = np.from_dlpack(x)
    total = x.sum()
    y = jax.dlpack.from_dlpack(np.arange(12, dtype=np.int32).reshape(3, 4), device=d)
    kept = np.from_dlpack(jnp.arange(1000) * 2)
    gc.collect()
    return (
        view, y, y + 1, kept, total, jax.dlpack.from_dlpack(x, device=d, copy=True),
        [np.from_dlpack(jnp.arange(4).astype(t)) for t in ("int8", "uint32", "float16")]
    )


@program("transfers", exact=True)
def dlpack_keeps(d):
    """A view through DLPack outlives its array, and forbids to donate it."""
    x = jax.device_put(values(64), d) + 0
    view = np.from_dlpack(x)
    y = jax.jit(lambda x: x * 0, donate_argnums=0)(x)
    y.block_until_ready()
    del x
    gc.collect()
    return view.copy(), y


@program("transfers", exact=True)
def numpy_protocols(d):
    x = jax.device_put(values(5, 3), d)
    return (
        np.asarray(x), np.array(x, dtype=np.float64), x.tobytes(), np.sin(np.asarray(x)) * 0, len(x), bool(x[0, 0] > 5),
        np.asarray(x).flags.writeable
    )


@program("transfers", exact=True)
def memory_kinds(d):
    x = jax.device_put(values(6, 5), d)
    kinds = {memory.kind for memory in d.addressable_memories()}
    there = [
        jax.device_put(x, jax.sharding.SingleDeviceSharding(d, memory_kind=kind))
        for kind in ("pinned_host", "unpinned_host", "device")
    ]
    back = [jax.device_put(y, jax.sharding.SingleDeviceSharding(d, memory_kind="device")) for y in there]
    direct = jax.device_put(values(9)[::-1], jax.sharding.SingleDeviceSharding(d, memory_kind="pinned_host"))
    return there, back, direct, sorted(kinds), [y.sharding.memory_kind for y in there], d.default_memory().kind


@program("transfers", exact=True)
def arguments_on_the_host(d):
    place = lambda kind: jax.sharding.SingleDeviceSharding(d, memory_kind=kind)
    f = jax.jit(lambda x: jax.device_put(x, place("device")) * 2, out_shardings=place("device"))
    return f(jax.device_put(values(6), place("pinned_host"))), jax.jit(lambda x: x)(
        jax.device_put(values(6), place("device"))
    )


@program("transfers", exact=True)
def results_on_the_host(d):
    y = jax.jit(lambda x: x + 1, out_shardings=jax.sharding.SingleDeviceSharding(d, memory_kind="pinned_host"))(
        jnp.arange(4.0)
    )
    return y, y.sharding.memory_kind


# -- compiled programs -------------------------------------------------------------------------------------------------


@program("compiled")
def ahead_of_time(d):
    lowered = jax.jit(lambda x, y: (x @ y, x.sum())).lower(
        jax.ShapeDtypeStruct((4, 5), np.float32), jax.ShapeDtypeStruct((5, 3), np.float32)
    )
    compiled = lowered.compile()
    text = compiled.as_text()
    assert "HloModule" in text and "dot" in text, text
    assert [x.shape for x in compiled.out_info] == [(4, 3), ()], compiled.out_info
    return (
        compiled(jax.device_put(values(4, 5), d), jax.device_put(values(5, 3), d)),
        compiled.input_shardings[0][0].is_fully_replicated
    )


@program("compiled", own=True)
def analyses(d):
    compiled = jax.jit(lambda x, y: x @ y + 1).lower(jnp.ones((16, 8)), jnp.ones((8, 4))).compile()
    costs, memory = compiled.cost_analysis(), compiled.memory_analysis()
    # XLA's own plugin for CPUs has no costs.
    assert costs is None or costs["flops"] >= 2 * 16 * 8 * 4, costs
    assert memory.argument_size_in_bytes == 4 * (16 * 8 + 8 * 4) and memory.output_size_in_bytes == 4 * 16 * 4, memory
    assert compiled.runtime_executable().fingerprint, "the fingerprint is empty"


@program("compiled")
def serialized(d):
    f = jax.jit(lambda tree, x: {"y": tree["w"] @ x, "z": jnp.sort(x)})
    arguments = {"w": jax.device_put(values(4, 5), d)}, jax.device_put(values(5), d)
    parts = serialize_executable.serialize(f.lower(*arguments).compile())
    loaded = serialize_executable.deserialize_and_load(*parts, backend=d.client, execution_devices=[d])
    return loaded(*arguments), f(*arguments)


@program("compiled", exact=True)
def serialized_with_donation(d):
    f = jax.jit(lambda x: x.at[0].set(5), donate_argnums=0)
    x = jax.device_put(values(50), d) + 0
    loaded = serialize_executable.deserialize_and_load(
        *serialize_executable.serialize(f.lower(x).compile()), backend=d.client, execution_devices=[d]
    )
    return loaded(x), x.is_deleted()


@program("compiled")
def exported(d):
    made = jax.export.export(jax.jit(lambda x: jnp.cos(x) @ x.T), platforms=["cpu"])(
        jax.ShapeDtypeStruct((4, 3), np.float32)
    )
    return made.call(jax.device_put(values(4, 3), d))


@program("compiled", exact=True)
def layouts(d):
    from jax.experimental.layout import Format, Layout

    place = jax.sharding.SingleDeviceSharding(d)
    x = jax.device_put(values(4, 6), Format(Layout((1, 0)), place))
    y = jax.jit(lambda x: x * 2, out_shardings=Format(Layout((1, 0)), place))(jax.device_put(values(4, 6), d))
    z = jax.jit(lambda x: x + 1)(x)
    return x, y, z, y.T, y + x, x.format.layout.major_to_minor, y.format.layout.major_to_minor, np.asarray(y)[1:3]


@program("compiled")
def cached_on_disk(d):
    """The persistent cache serializes what is compiled, and loads it."""
    with tempfile.TemporaryDirectory() as folder:
        names = (
            "jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs",
            "jax_persistent_cache_min_entry_size_bytes"
        )
        old = [getattr(jax.config, name) for name in names]
        for name, value in zip(names, (folder, 0, -1)):
            jax.config.update(name, value)
        jax.experimental.compilation_cache.compilation_cache.reset_cache()
        try:
            results = []
            for _ in range(2):
                jax.clear_caches()
                results.append(jax.jit(lambda x: jnp.sin(x) @ x)(jnp.arange(6.0)))
                assert os.listdir(folder), "nothing is in the cache"
            return results
        finally:
            for name, value in zip(names, old):
                jax.config.update(name, value)
            jax.experimental.compilation_cache.compilation_cache.reset_cache()


# -- time, threads, memory ---------------------------------------------------------------------------------------------


@program("work")
def chain(d):
    step = jax.jit(lambda x: jnp.sin(x) + 0.5 * x[::-1])
    x = jax.device_put(values(500), d)
    for _ in range(100):
        x = step(x)
    assert x.block_until_ready() is x
    return x


@program("work", exact=True)
def chain_of_donations(d):
    step = jax.jit(lambda x, i: x.at[i].add(i), donate_argnums=0)
    x = jnp.zeros(100, jnp.int32)
    for i in range(100):
        x = step(x, i)
    return x


@program("work", exact=True)
def futures_in_between(d):
    """Transfers, runs and reads in turn."""
    f, total, seen = jax.jit(lambda x, y: x + y), jnp.zeros(1000, jnp.int32), []
    for i in range(50):
        total = f(total, jax.device_put(np.full(1000, i, np.int32), d))
        if i % 10 == 0:
            seen.append(int(total[i]))
    return total, seen, all(x.is_ready() for x in jax.block_until_ready([total]))


@program("work")
def threads(d):
    shared = jax.jit(lambda x, i: jnp.sin(x) * i)
    x = jax.device_put(values(200), d)

    def work(i):
        with jax.default_device(d):
            own = jax.jit(lambda x: x * i + 1)
            return [own(shared(x, float(i + step))) for step in range(20)][-1]

    return in_threads(8, work)


@program("work", exact=True)
def threads_that_move(d):
    def work(i):
        with jax.default_device(d):
            arrays = [jax.device_put(np.arange(i * 100 + step)[::-1], d) for step in range(1, 51)]
            return [np.asarray(x)[:3] for x in arrays][-1], sum(int(np.asarray(x)[-1]) for x in arrays)

    return in_threads(8, work)


@program("work", own=True)
def live_arrays(d):
    keep = [jnp.ones(3) + i for i in range(20)]
    count = len(d.client.live_buffers())
    assert count >= 20, count
    del keep
    gc.collect()
    assert len(d.client.live_buffers()) == count - 20, (count, len(d.client.live_buffers()))


@program("work", own=True)
def of_purlin(d):
    """The devices say whose they are."""
    assert d.platform == "cpu" and "Purlin " in d.client.platform_version, (d.platform, d.client.platform_version)
    assert d.process_index == 0 and d.client.process_index() == 0 and d.local_hardware_id == d.id, d
    assert str(d) and repr(d) and d.device_kind, d
    assert d.memory_stats() is None, "without a limit there are no statistics, as on jaxlib's devices"
    assert d.client.device_count() == d.client.local_device_count() == len(d.client.devices()) == len(jax.devices())

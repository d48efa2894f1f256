"""`python -m purlin_jax doctor`: versions, what was found, and a self-check on Purlin."""
import importlib.metadata
import os
import sys

USAGE = "usage: python -m purlin_jax doctor"


def version_of(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def check(jax, jnp, numpy):
    """A program of each kind on Purlin; what is wrong with each."""
    x = jnp.arange(64.0).reshape(8, 8)
    matrix = x @ x.T + 100 * jnp.eye(8)
    expected = numpy.asarray(x) @ numpy.asarray(x).T + 100 * numpy.eye(8)
    yield "matrix product", numpy.allclose(matrix, expected)
    yield "gradient", numpy.allclose(jax.grad(lambda x: (x * x).sum())(x), 2 * x)
    yield "loop", int(jax.lax.fori_loop(0, 10, lambda _, n: n * 2, 1)) == 1024
    yield "sort", numpy.array_equal(jnp.sort(-x.ravel()), numpy.sort(-numpy.asarray(x).ravel()))
    yield "LAPACK", numpy.allclose(jnp.linalg.cholesky(matrix), numpy.linalg.cholesky(expected), rtol=1e-4)
    called = jax.pure_callback(lambda x: numpy.asarray(x) + 1, jax.ShapeDtypeStruct((8, 8), numpy.float32), x)
    yield "Python callback", numpy.array_equal(called, x + 1)
    step = jax.jit(lambda p: p * 0.5, donate_argnums=0)
    given = x + 0
    yield "donation", bool(jnp.isfinite(step(given)).all()) and given.is_deleted()


def doctor():
    from . import library, options

    os.environ["JAX_PLATFORMS"] = "purlin,cpu"
    for package in ("purlin-jax", "jax", "jaxlib", "lammps-jax-pjrt-cpu", "numpy"):
        print(f"{package:<22} {version_of(package)}")
    print(f"{'plugin':<22} {library()}")
    print(f"{'compiler':<22} {os.environ.get('PURLIN_PJRT_COMPILER') or 'the one beside the plugin'}")
    print(f"{'mode':<22} {os.environ.get('PURLIN_PJRT_MODE') or 'auto'}")
    print(f"{'options':<22} {options() or 'none'}")
    import jax
    import jax.numpy as jnp
    import numpy

    devices = jax.devices()
    print(f"{'devices':<22} {devices}")
    if "Purlin" not in devices[0].client.platform_version:
        print("FAILED: JAX has not loaded the plugin; its warnings above say why", file=sys.stderr)
        return 1
    failed = 0
    for name, is_right in check(jax, jnp, numpy):
        print(f"{name:<22} {'right' if is_right else 'WRONG'}")
        failed += not is_right
    return 1 if failed else 0


if __name__ == "__main__":
    if sys.argv[1:] != ["doctor"]:
        sys.exit(USAGE)
    sys.exit(doctor())

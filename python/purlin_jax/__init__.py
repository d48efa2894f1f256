"""JAX on Purlin: JAX finds this module by the entry point `jax_plugins` and calls `initialize()` before it looks for
devices. `JAX_PLATFORMS=purlin,cpu` turns it on; docs/jax.md of Purlin says which options there are.
"""
import os
import pathlib


def library():
    """The path of `libpjrt_purlin.so`: that of `PURLIN_PJRT_PLUGIN`, else the one of this package."""
    return os.environ.get("PURLIN_PJRT_PLUGIN") or str(pathlib.Path(__file__).with_name("libpjrt_purlin.so"))


def options():
    """The options of the client: `PURLIN_PJRT_OPTIONS`, as `name=value,name=value`."""
    given = {}
    for pair in filter(None, os.environ.get("PURLIN_PJRT_OPTIONS", "").split(",")):
        name, equals, value = pair.partition("=")
        if not equals:
            raise ValueError(f"PURLIN_PJRT_OPTIONS has {pair!r}; an option is name=value")
        if value in ("true", "false"):
            given[name.strip()] = value == "true"
        else:
            given[name.strip()] = int(value) if value.lstrip("-").isdigit() else value
    return given


def initialize():
    """Registers the plugin with JAX, and jaxlib's custom calls (LAPACK, Python callbacks) with the plugin."""
    from jax._src import xla_bridge

    from . import handlers

    path = library()
    if not os.path.exists(path):
        raise FileNotFoundError(f"there is no Purlin plugin at {path}")
    # Above jaxlib's own CPU backend (0), below that of accelerators.
    xla_bridge.register_plugin("purlin", priority=100, library_path=path, options=options)
    handlers.register(path)

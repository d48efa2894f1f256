"""Handlers of custom calls for the plugin: what jaxlib has registered for its own CPU backend, and what users register
later. PJRT's extension FFI takes them.
"""
import ctypes

from . import callbacks
from .abi import Extension, ForeignFunction, PjrtApi, RegisterHandler

# jaxlib's own handlers of Python callbacks need a state that only jaxlib's client sets.
OURS = {
    "xla_ffi_python_cpu_callback": callbacks.handler,
    "xla_ffi_partitioned_python_cpu_callback": callbacks.handler,
}
FFI = 5


class Plugin:
    """The plugin's functions that this module calls."""

    def __init__(self, path):
        library = ctypes.CDLL(path)
        library.GetPjrtApi.restype = ctypes.POINTER(PjrtApi)
        self.api = library.GetPjrtApi().contents
        address = self.api.extension_start
        while address:
            extension = Extension.from_address(address)
            if extension.kind == FFI:
                self.ffi = ForeignFunction.from_address(address)
                return
            address = extension.next
        raise RuntimeError(f"the plugin at {path} has no extension FFI")

    def register(self, name, address):
        """Registers a handler for the life of the process. A second one of the same name is an error."""
        name = name.encode()
        args = RegisterHandler(ctypes.sizeof(RegisterHandler), name, len(name), address, b"Host", len(b"Host"), 0)
        error = self.ffi.register_handler(ctypes.byref(args))
        if error:
            raise RuntimeError(f"{name.decode()}: {self.api.text_of(error)}")


def address_of(target):
    """The address of a handler's function: JAX has it in a capsule, or in one for each stage."""
    if isinstance(target, dict):
        # PJRT's extension takes the stage `execute` alone, so a handler with others is jaxlib's own.
        if any(target.get(stage) is not None for stage in ("instantiate", "prepare", "initialize")):
            return None
        target = target.get("execute")
    if target is None:
        return None
    name_of, pointer_of = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return pointer_of(target, name_of(target))


def register(path):
    """Registers what there is, and has JAX tell of what comes later."""
    from jaxlib import lapack, xla_client

    plugin, known = Plugin(path), set()

    def add(name, target, api_version):
        address = address_of(target) if api_version == 1 else None
        if address is not None and name not in known:
            known.add(name)
            plugin.register(name, address)

    for name, handler in OURS.items():
        known.add(name)
        plugin.register(name, ctypes.cast(handler, ctypes.c_void_p).value)
    for name, target, api_version in lapack.registrations()["cpu"]:
        add(name, target, api_version)
    for name, target in xla_client.custom_call_targets("Host").items():
        add(name, target, 1)

    # What a user registers for "cpu" goes to one function, which is jaxlib's from when its client is made.
    platform = xla_client.xla_platform_names.get("cpu", "cpu")
    known_handlers = xla_client._custom_callback_handler
    jaxlibs = known_handlers.get(platform, xla_client._xla.register_custom_call_target)

    def both(name, target, platform, api_version, traits):
        jaxlibs(name, target, platform, api_version, traits)
        add(name, target, api_version)

    if platform in known_handlers:
        known_handlers[platform] = both
    else:
        xla_client.register_custom_call_handler("cpu", both)

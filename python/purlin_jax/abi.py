"""The structs of C that are passed: PJRT's table and its extension FFI, and a call frame of XLA's FFI 0.3."""
import ctypes
from ctypes import POINTER, Structure, c_char_p, c_int, c_int64, c_size_t, c_uint, c_void_p


class ErrorMessage(Structure):
    """PJRT_Error_Message_Args."""

    _fields_ = [("struct_size", c_size_t), ("extension_start", c_void_p), ("error", c_void_p),
                ("message", c_void_p), ("message_size", c_size_t)]


class ErrorDestroy(Structure):
    """PJRT_Error_Destroy_Args."""

    _fields_ = [("struct_size", c_size_t), ("extension_start", c_void_p), ("error", c_void_p)]


class PjrtApi(Structure):
    """The beginning of PJRT_Api."""

    _fields_ = [("struct_size", c_size_t), ("extension_start", c_void_p), ("version", c_size_t * 3),
                ("error_destroy", ctypes.CFUNCTYPE(None, POINTER(ErrorDestroy))),
                ("error_message", ctypes.CFUNCTYPE(None, POINTER(ErrorMessage)))]

    def text_of(self, error):
        """What an error says; it is destroyed."""
        said = ErrorMessage(ctypes.sizeof(ErrorMessage), None, error, None, 0)
        self.error_message(ctypes.byref(said))
        text = ctypes.string_at(said.message, said.message_size).decode(errors="replace")
        self.error_destroy(ctypes.byref(ErrorDestroy(ctypes.sizeof(ErrorDestroy), None, error)))
        return text


class Extension(Structure):
    """PJRT_Extension_Base."""

    _fields_ = [("struct_size", c_size_t), ("kind", c_int), ("next", c_void_p)]


class RegisterHandler(Structure):
    """PJRT_FFI_Register_Handler_Args."""

    _fields_ = [("struct_size", c_size_t), ("target_name", c_char_p), ("target_name_size", c_size_t),
                ("handler", c_void_p), ("platform_name", c_char_p), ("platform_name_size", c_size_t),
                ("traits", c_uint)]


class ForeignFunction(Structure):
    """PJRT_FFI_Extension, version 3."""

    _fields_ = [("base", Extension), ("type_register", c_void_p), ("user_data_add", c_void_p),
                ("register_handler", ctypes.CFUNCTYPE(c_void_p, POINTER(RegisterHandler)))]


class Buffer(Structure):
    """XLA_FFI_Buffer."""

    _fields_ = [("struct_size", c_size_t), ("extension_start", c_void_p), ("dtype", c_int), ("data", c_void_p),
                ("rank", c_int64), ("dims", POINTER(c_int64))]


class Operands(Structure):
    """XLA_FFI_Args and XLA_FFI_Rets."""

    _fields_ = [("struct_size", c_size_t), ("extension_start", c_void_p), ("count", c_int64),
                ("kinds", POINTER(c_int)), ("buffers", POINTER(POINTER(Buffer)))]


class ByteSpan(Structure):
    """XLA_FFI_ByteSpan."""

    _fields_ = [("begin", c_void_p), ("size", c_size_t)]


class Scalar(Structure):
    """XLA_FFI_Scalar."""

    _fields_ = [("dtype", c_int), ("value", c_void_p)]


class Attributes(Structure):
    """XLA_FFI_Attrs."""

    _fields_ = [("struct_size", c_size_t), ("extension_start", c_void_p), ("count", c_int64),
                ("kinds", POINTER(c_int)), ("names", POINTER(POINTER(ByteSpan))), ("values", POINTER(c_void_p))]


class ErrorCreate(Structure):
    """XLA_FFI_Error_Create_Args."""

    _fields_ = [("struct_size", c_size_t), ("extension_start", c_void_p), ("message", c_char_p), ("code", c_int)]


class ContextGet(Structure):
    """XLA_FFI_ExecutionContext_Get_Args."""

    _fields_ = [("struct_size", c_size_t), ("extension_start", c_void_p), ("context", c_void_p),
                ("id", POINTER(c_int64)), ("data", c_void_p)]


class FfiApi(Structure):
    """The beginning of XLA_FFI_Api."""

    _fields_ = [("struct_size", c_size_t), ("extension_start", c_void_p), ("version", c_size_t * 3),
                ("internal", c_void_p), ("error_create", ctypes.CFUNCTYPE(c_void_p, POINTER(ErrorCreate))),
                ("others", c_void_p * 5), ("context_get", ctypes.CFUNCTYPE(c_void_p, POINTER(ContextGet)))]


class CallFrame(Structure):
    """XLA_FFI_CallFrame."""

    _fields_ = [("struct_size", c_size_t), ("extension_start", c_void_p), ("api", POINTER(FfiApi)),
                ("context", c_void_p), ("stage", c_int), ("arguments", Operands), ("results", Operands),
                ("attributes", Attributes), ("future", c_void_p)]


class Metadata(Structure):
    """XLA_FFI_Metadata."""

    _fields_ = [("struct_size", c_size_t), ("version_size", c_size_t), ("version_extensions", c_void_p),
                ("major", c_int), ("minor", c_int), ("traits", c_uint), ("state_type", c_int64)]


class MetadataExtension(Structure):
    """XLA_FFI_Metadata_Extension."""

    _fields_ = [("base", Extension), ("metadata", POINTER(Metadata))]


class Callbacks(Structure):
    """jaxlib's user data of a run: the callables of its program."""

    _fields_ = [("callables", POINTER(c_void_p)), ("count", c_size_t)]


for _struct, _size in ((Buffer, 48), (Operands, 40), (Attributes, 48), (CallFrame, 176), (Metadata, 48),
                       (MetadataExtension, 32), (ContextGet, 40), (ErrorCreate, 32), (RegisterHandler, 56)):
    assert ctypes.sizeof(_struct) == _size, f"{_struct.__name__} has {ctypes.sizeof(_struct)} bytes, not {_size}"

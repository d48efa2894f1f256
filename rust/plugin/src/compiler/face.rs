//! An array as the plugin that compiles knows it: a view of ours, or one of its own results.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

use purlin_array::DType;
use purlin_base::{Error, StatusOr};
use purlin_device::{Buffer, RawBuffer};
use purlin_ffi::panic::contain;
use purlin_pjrt::abi::arguments;
use purlin_pjrt_abi::{
    self as abi, BufferDestroyArgs, BufferMemoryLayout, BufferMemoryLayoutTiled, BufferMemoryLayoutValue,
    ClientCreateErrorBufferArgs, ClientCreateViewOfDeviceBufferArgs, buffer_memory_layout_type,
};

use super::Compiler;
use crate::layouts::order_of;

/// See the module. Clones refer to the same object.
#[derive(Clone)]
pub(crate) struct Face(Arc<Stock>);

/// A buffer of that plugin's, which is destroyed with the last reference.
pub(crate) struct Stock {
    compiler: Arc<Compiler>,
    buffer: *mut abi::Buffer,
}

// SAFETY: a plugin's objects may be used from every thread.
unsafe impl Send for Stock {}
// SAFETY: as above.
unsafe impl Sync for Stock {}

impl Drop for Stock {
    fn drop(&mut self) {
        // SAFETY: ours, and ends here.
        unsafe { self.compiler.plugin.end(BufferDestroyArgs { buffer: self.buffer, ..arguments() }) };
    }
}

/// What no array of no bytes reads: an address that suits every reader.
#[repr(align(64))]
struct Nowhere([u8; 64]);
static NOWHERE: Nowhere = Nowhere([0; 64]);

impl Face {
    /// Of a result, which is given up.
    ///
    /// # Safety
    /// `buffer` is a buffer of the compiler's that the caller owns.
    pub(crate) unsafe fn of_result(compiler: &Arc<Compiler>, buffer: *mut abi::Buffer) -> Self {
        Self(Arc::new(Stock { compiler: Arc::clone(compiler), buffer }))
    }

    /// Of one of our arrays, which has become ready or failed. `memory` is its memory, which its caller holds.
    ///
    /// # Errors
    /// What the plugin says.
    pub(crate) fn of_array(compiler: &Arc<Compiler>, array: &Buffer, memory: Option<&RawBuffer>) -> StatusOr<Self> {
        let space = array.memory_space();
        let place = compiler.memory(&space)?;
        if array.dtype() == DType::Token {
            return Err(Error::unimplemented(format!("{array:?} as an argument of the plugin that compiles")));
        }
        let shape = array.shape();
        let (minor_to_major, minor_to_major_size) = order_of(array.special_layout(), shape.rank())?;
        let tiled = BufferMemoryLayoutTiled { minor_to_major, minor_to_major_size, ..arguments() };
        let mut layout = BufferMemoryLayout {
            value: BufferMemoryLayoutValue { tiled },
            r#type: buffer_memory_layout_type::TILED,
            ..arguments()
        };
        // Without one, the plugin takes row-major for what it is, packed types included.
        let shape_layout = if array.special_layout().is_some() { &raw mut layout } else { ptr::null_mut() };
        let (dims, num_dims) = (shape.dims().as_ptr(), shape.rank());
        let element_type = shape.dtype() as i32;
        let buffer = if let Some(error) = array.ready_event().error() {
            let mut made = ClientCreateErrorBufferArgs {
                client: compiler.client,
                error_code: error.code() as i32,
                error_message: error.message().as_ptr().cast(),
                error_message_size: error.message().len(),
                shape_dims: dims,
                shape_num_dims: num_dims,
                shape_element_type: element_type,
                shape_layout,
                memory: place,
                ..arguments()
            };
            // SAFETY: all that is pointed to lives until the call returns.
            unsafe { compiler.plugin.call(&mut made) }?;
            made.buffer
        } else {
            let kept = memory.cloned().ok_or_else(|| Error::internal(format!("{array:?} has no memory")))?;
            let address =
                if shape.on_device_size_bytes() == 0 { NOWHERE.0.as_ptr().addr() } else { kept.device_pointer()? };
            let kept = Box::into_raw(Box::new(kept));
            let mut made = ClientCreateViewOfDeviceBufferArgs {
                client: compiler.client,
                device_buffer_ptr: ptr::with_exposed_provenance_mut(address),
                dims,
                num_dims,
                element_type,
                layout: shape_layout,
                on_delete_callback: Some(forget),
                on_delete_callback_arg: kept.cast(),
                memory: place,
                ..arguments()
            };
            // SAFETY: all that is pointed to lives until the call returns; the memory is kept until the callback.
            if let Err(error) = unsafe { compiler.plugin.call(&mut made) } {
                // SAFETY: no view was made, so nothing calls back.
                drop(unsafe { Box::from_raw(kept) });
                return Err(error);
            }
            made.buffer
        };
        Ok(Self(Arc::new(Stock { compiler: Arc::clone(compiler), buffer })))
    }

    /// The plugin's object.
    pub(crate) fn buffer(&self) -> *mut abi::Buffer {
        self.0.buffer
    }

    /// What keeps the memory.
    pub(crate) fn stock(&self) -> Arc<Stock> {
        Arc::clone(&self.0)
    }
}

/// A view is not needed any more.
unsafe extern "C" fn forget(_address: *mut c_void, kept: *mut c_void) {
    contain("PJRT on_delete_callback", (), || {
        // SAFETY: from of_array(), called once.
        drop(unsafe { Box::from_raw(kept.cast::<RawBuffer>()) });
    });
}

//! Arrays to the host, to other memories, and into others.

use std::ffi::c_int;

use purlin_array::strided::HostArray;
use purlin_async::{EventPromise, Promise};
use purlin_base::{Error, StatusOr};
use purlin_device::HostAddress;
use purlin_ffi::panic::contain;
use purlin_pjrt_abi::{
    BufferBitcastArgs, BufferCopyRawToHostArgs, BufferCopyRawToHostFutureArgs, BufferCopyRawToHostFutureCallbackArgs,
    BufferCopyToDeviceArgs, BufferCopyToMemoryArgs, BufferDonateWithControlDependencyArgs,
    BufferDonateWithControlDependencyCallbackArgs, BufferToHostBufferArgs,
};

use crate::answer::Answer;
use crate::handle::lent;
use crate::{buffer, event, read};

impl Answer for BufferCopyToDeviceArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe {
            let source = lent::<Self, _>(self.buffer)?;
            let device = lent::<Self, _>(self.dst_device)?;
            self.dst_buffer = buffer::give(source.array.copy_to_device(&device.device)?, &source.platform);
            Ok(())
        }
    }
}

impl Answer for BufferCopyToMemoryArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe {
            let source = lent::<Self, _>(self.buffer)?;
            let memory = lent::<Self, _>(self.dst_memory)?;
            self.dst_buffer = buffer::give(source.array.copy_to_memory_space(&memory.space)?, &source.platform);
            Ok(())
        }
    }
}

impl Answer for BufferToHostBufferArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise: the memory is the copy's until the event.
        unsafe {
            let source = lent::<Self, _>(self.src)?;
            let shape = source.array.shape();
            let needed = shape.host_size_bytes();
            if self.dst.is_null() {
                self.dst_size = needed;
                return Ok(());
            }
            if self.dst_size < needed {
                return Err(Error::invalid_argument(format!(
                    "PJRT_Buffer_ToHostBuffer: {shape} needs {needed} bytes, and there is room for {}",
                    self.dst_size
                )));
            }
            let layout = match read::layout(self.host_layout, shape)? {
                Some(layout) => Some(layout),
                None => source.array.special_layout().cloned(),
            };
            let copied = match layout.filter(|layout| !layout.is_row_major()) {
                None => source.array.copy_to_host(self.dst.cast(), needed),
                Some(layout) => {
                    let array = HostArray::new(shape, Some(&layout.byte_strides(shape)?))?;
                    source.array.copy_to_host_array(self.dst.cast(), &array)
                }
            };
            self.event = event::give(copied);
            Ok(())
        }
    }
}

/// # Errors
/// `InvalidArgument`: it is negative.
fn bytes(what: &str, number: i64) -> StatusOr<usize> {
    usize::try_from(number).map_err(|_| Error::invalid_argument(format!("{what} is {number}")))
}

impl Answer for BufferCopyRawToHostArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise: the memory is the copy's until the event.
        unsafe {
            let source = lent::<Self, _>(self.buffer)?;
            let (offset, size) = (bytes("the offset", self.offset)?, bytes("the transfer's size", self.transfer_size)?);
            self.event = event::give(source.array.copy_raw_to_host(self.dst.cast(), offset, size));
            Ok(())
        }
    }
}

impl Answer for BufferCopyRawToHostFutureArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise: the memory is the copy's from when it is known until the event.
        unsafe {
            let source = lent::<Self, _>(self.buffer)?;
            let (offset, size) = (bytes("the offset", self.offset)?, bytes("the transfer's size", self.transfer_size)?);
            let address = Promise::<HostAddress>::new(c"destination");
            self.event = event::give(source.array.copy_raw_to_host_when(&address.future(), offset, size));
            self.callback_data = Box::into_raw(Box::new(address)).cast();
            self.future_ready_callback = Some(destination_known);
            Ok(())
        }
    }
}

unsafe extern "C" fn destination_known(args: *mut BufferCopyRawToHostFutureCallbackArgs) {
    contain("PJRT future_ready_callback", (), || {
        // SAFETY: the caller's arguments, and what answer() made, given up once.
        unsafe {
            let Some(args) = args.as_ref().filter(|args| !args.callback_data.is_null()) else { return };
            let address = Box::from_raw(args.callback_data.cast::<Promise<HostAddress>>());
            let outcome = read::outcome(args.error_code, args.error_message, args.error_message_size);
            // A copy whose client has ended wants no address any more.
            let _ = address.set(outcome.map(|()| HostAddress(args.dst.cast())));
        }
    });
}

impl Answer for BufferDonateWithControlDependencyArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        let source = unsafe { lent::<Self, _>(self.buffer) }?;
        let promise = EventPromise::new(c"control dependency");
        let array = source.array.donate_after(&promise.event())?;
        self.out_buffer = buffer::give(array, &source.platform);
        self.callback_data = Box::into_raw(Box::new(promise)).cast();
        self.dependency_ready_callback = Some(dependency_ready);
        Ok(())
    }
}

unsafe extern "C" fn dependency_ready(args: *mut BufferDonateWithControlDependencyCallbackArgs) {
    contain("PJRT dependency_ready_callback", (), || {
        // SAFETY: the caller's arguments, and what answer() made, given up once.
        unsafe {
            let Some(args) = args.as_ref().filter(|args| !args.callback_data.is_null()) else { return };
            let promise = Box::from_raw(args.callback_data.cast::<EventPromise>());
            promise.set(read::outcome(args.error_code, args.error_message, args.error_message_size));
        }
    });
}

impl Answer for BufferBitcastArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe {
            let source = lent::<Self, _>(self.buffer)?;
            let shape = read::shape(self.element_type as c_int, self.dims, self.num_dims)?;
            let layout = read::layout(self.device_layout, &shape)?;
            self.out_buffer = buffer::give(source.array.bitcast(&shape, layout.as_ref())?, &source.platform);
            Ok(())
        }
    }
}

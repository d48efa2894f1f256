//! `PJRT_AsyncHostToDeviceTransferManager`: arrays that the caller fills piece by piece.

use std::ffi::c_int;
use std::sync::Arc;

use purlin_array::strided::HostArray;
use purlin_async::{Event, EventPromise};
use purlin_base::{Error, Label, StatusOr};
use purlin_device::{AllocOptions, AsyncHostToDeviceTransferManager as Manager, OnDone, TransferSpec};
use purlin_pjrt_abi::{
    self as abi, AsyncHostToDeviceTransferManagerAddMetadataArgs, AsyncHostToDeviceTransferManagerBufferCountArgs,
    AsyncHostToDeviceTransferManagerBufferSizeArgs, AsyncHostToDeviceTransferManagerDestroyArgs,
    AsyncHostToDeviceTransferManagerDeviceArgs, AsyncHostToDeviceTransferManagerRetrieveBufferArgs,
    AsyncHostToDeviceTransferManagerSetBufferErrorArgs, AsyncHostToDeviceTransferManagerTransferDataArgs,
    AsyncHostToDeviceTransferManagerTransferLiteralArgs, ClientCreateBuffersForAsyncHostToDeviceArgs, named_value_type,
};

use crate::answer::Answer;
use crate::handle::{self, Handle, lent, take};
use crate::platform::Platform;
use crate::{buffer, event, read};

/// What is behind the handle.
pub(crate) struct ManagerObject {
    manager: Manager,
    platform: Arc<Platform>,
}

impl Handle for abi::AsyncHostToDeviceTransferManager {
    type Object = ManagerObject;
    const NAME: &'static str = "PJRT_AsyncHostToDeviceTransferManager";
}

/// # Errors
/// `InvalidArgument`: it is negative.
fn index(number: c_int) -> StatusOr<usize> {
    usize::try_from(number).map_err(|_| Error::invalid_argument(format!("there is no buffer {number}")))
}

/// An event that says when the caller's memory is not read any more, and what completes it.
fn done() -> (Event, OnDone) {
    let promise = EventPromise::guarding(c"host to device transfer");
    let done = promise.event();
    let on_done: OnDone = Box::new(move |outcome| {
        promise.set(outcome);
    });
    (done, on_done)
}

impl Answer for ClientCreateBuffersForAsyncHostToDeviceArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe {
            let client = lent::<Self, _>(self.client)?;
            let memory = lent::<Self, _>(self.memory)?;
            let given = read::each(self.shape_specs, self.num_shape_specs)?;
            let layouts = read::list("device_layouts", self.device_layouts.cast_const(), self.num_device_layouts)?;
            if !layouts.is_empty() && layouts.len() != given.len() {
                return Err(Error::invalid_argument(format!(
                    "{} layouts are given for {} arrays",
                    layouts.len(),
                    given.len()
                )));
            }
            let mut specs = Vec::new();
            for (at, spec) in given.iter().enumerate() {
                let shape = read::shape(spec.element_type, spec.dims, spec.num_dims)?;
                let layout = match layouts.get(at) {
                    Some(&layout) => read::layout(layout, &shape)?,
                    None => None,
                };
                specs.push(TransferSpec { shape, layout });
            }
            let options = AllocOptions { label: Label::new(c"async transfer"), ..Default::default() };
            let manager = Manager::new(&specs, &memory.space, &options)?;
            let platform = Arc::clone(&client.platform);
            self.transfer_manager = handle::give(ManagerObject { manager, platform });
            Ok(())
        }
    }
}

impl Answer for AsyncHostToDeviceTransferManagerDestroyArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe { take::<Self, _>(self.transfer_manager) }.map(drop)
    }
}

impl Answer for AsyncHostToDeviceTransferManagerTransferDataArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise: the bytes stay until the event.
        unsafe {
            let manager = &lent::<Self, _>(self.transfer_manager)?.manager;
            let number = |what: &str, number: i64| -> StatusOr<usize> {
                usize::try_from(number).map_err(|_| Error::invalid_argument(format!("{what} is {number}")))
            };
            let (offset, size) =
                (number("the offset", self.offset)?, number("the transfer's size", self.transfer_size)?);
            let (done, on_done) = done();
            manager.transfer_raw_data_to_sub_buffer(
                index(self.buffer_index)?,
                self.data.cast(),
                offset,
                size,
                self.is_last_transfer != 0,
                Some(on_done),
            )?;
            self.done_with_h2d_transfer = event::give(done);
            Ok(())
        }
    }
}

impl Answer for AsyncHostToDeviceTransferManagerTransferLiteralArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise: the bytes stay until the event.
        unsafe {
            let manager = &lent::<Self, _>(self.transfer_manager)?.manager;
            let shape = read::shape(self.shape_element_type, self.shape_dims, self.shape_num_dims)?;
            let strides = match read::layout(self.shape_layout, &shape)? {
                Some(layout) => Some(layout.byte_strides(&shape)?),
                None => None,
            };
            let array = HostArray::new(&shape, strides.as_deref())?;
            let (done, on_done) = done();
            manager.transfer_array(index(self.buffer_index)?, self.data.cast(), &array, Some(on_done))?;
            self.done_with_h2d_transfer = event::give(done);
            Ok(())
        }
    }
}

impl Answer for AsyncHostToDeviceTransferManagerRetrieveBufferArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        let ManagerObject { manager, platform } = unsafe { lent::<Self, _>(self.transfer_manager) }?;
        self.buffer_out = buffer::give(manager.retrieve_buffer(index(self.buffer_index)?)?, platform);
        Ok(())
    }
}

impl Answer for AsyncHostToDeviceTransferManagerDeviceArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        let ManagerObject { manager, platform } = unsafe { lent::<Self, _>(self.transfer_manager) }?;
        self.device_out = platform.device_of(manager.device().id())?;
        Ok(())
    }
}

impl Answer for AsyncHostToDeviceTransferManagerBufferCountArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        self.buffer_count = unsafe { lent::<Self, _>(self.transfer_manager) }?.manager.buffer_count();
        Ok(())
    }
}

impl Answer for AsyncHostToDeviceTransferManagerBufferSizeArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        let manager = &unsafe { lent::<Self, _>(self.transfer_manager) }?.manager;
        self.buffer_size = manager.buffer_size(index(self.buffer_index)?)?;
        Ok(())
    }
}

impl Answer for AsyncHostToDeviceTransferManagerSetBufferErrorArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe {
            let manager = &lent::<Self, _>(self.transfer_manager)?.manager;
            let Err(error) = read::outcome(self.error_code, self.error_message, self.error_message_size) else {
                return Err(Error::invalid_argument("PJRT_AsyncHostToDeviceTransferManager_SetBufferError: OK"));
            };
            manager.set_buffer_error(index(self.buffer_index)?, error)
        }
    }
}

impl Answer for AsyncHostToDeviceTransferManagerAddMetadataArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe {
            let manager = &lent::<Self, _>(self.transfer_manager)?.manager;
            for note in read::each(self.transfer_metadata, self.num_metadata)? {
                let name = read::text("the name of a note", note.name, note.name_size)?;
                let value = match note.r#type {
                    named_value_type::STRING => {
                        read::text("a note", note.value.string_value, note.value_size)?.to_owned()
                    }
                    named_value_type::INT64 => note.value.int64_value.to_string(),
                    named_value_type::INT64_LIST => {
                        format!("{:?}", read::list("a note", note.value.int64_array_value, note.value_size)?)
                    }
                    named_value_type::FLOAT => note.value.float_value.to_string(),
                    named_value_type::BOOL => (note.value.bool_value != 0).to_string(),
                    other => {
                        return Err(Error::invalid_argument(format!("there is no PJRT_NamedValue_Type {other}")));
                    }
                };
                manager.add_transfer_metadata(name, value);
            }
            Ok(())
        }
    }
}

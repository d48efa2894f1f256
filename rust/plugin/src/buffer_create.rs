//! Arrays that the caller makes: of its bytes, of its memory, of nothing.

use std::ffi::c_void;

use purlin_array::strided::HostArray;
use purlin_async::{Event, EventPromise};
use purlin_base::sync::Mutex;
use purlin_base::{Error, Label, StatusOr};
use purlin_device::{
    Aliasing, AllocOptions, Buffer, BufferPromise, FromHostOptions, HostBufferSemantics, MemorySpace, Mutability,
    OnDone, RawBuffer,
};
use purlin_pjrt_abi::{
    self as abi, ClientBufferFromHostBufferArgs, ClientCreateAliasBufferArgs, ClientCreateErrorBufferArgs,
    ClientCreateUninitializedBufferArgs, ClientCreateViewOfDeviceBufferArgs, ClientFulfillAliasBufferArgs, Function,
};

use purlin_host::ALIGNMENT_BYTES;

use crate::answer::Answer;
use crate::handle::{self, Handle, lent, lent_if, take};
use crate::platform::Platform;
use crate::{buffer, event, read};

/// Where an array goes: to a memory, or to the default one of a device.
///
/// # Errors
/// `InvalidArgument`: neither is given, or it is of another client.
///
/// # Safety
/// Both are null or alive.
unsafe fn place<A: Function>(
    platform: &Platform,
    memory: *mut abi::Memory,
    device: *mut abi::Device,
) -> StatusOr<MemorySpace> {
    // SAFETY: the caller's promise.
    let space = unsafe {
        match (lent_if::<A, _>(memory)?, lent_if::<A, _>(device)?) {
            (Some(memory), _) => memory.space.clone(),
            (None, Some(device)) => device.device.default_memory_space(),
            (None, None) => {
                return Err(Error::invalid_argument(format!(
                    "{}: neither a memory nor a device is given",
                    A::FUNCTION
                )));
            }
        }
    };
    if !space.same_client(&platform.client.devices()[0].default_memory_space()) {
        return Err(Error::invalid_argument(format!("{}: {space} is of another client", A::FUNCTION)));
    }
    Ok(space)
}

/// # Errors
/// `InvalidArgument`: there are none of that number.
fn semantics(number: i32) -> StatusOr<HostBufferSemantics> {
    Ok(match number {
        0 => HostBufferSemantics::ImmutableOnlyDuringCall,
        1 => HostBufferSemantics::ImmutableUntilTransferCompletes,
        2 => HostBufferSemantics::ImmutableZeroCopy,
        3 => HostBufferSemantics::MutableZeroCopy,
        _ => return Err(Error::invalid_argument(format!("there are no PJRT_HostBufferSemantics {number}"))),
    })
}

impl Answer for ClientBufferFromHostBufferArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise, here and below: the bytes stay as long as the semantics say.
        unsafe {
            let client = lent::<Self, _>(self.client)?;
            let space = place::<Self>(&client.platform, self.memory, self.device)?;
            let shape = read::shape(self.r#type, self.dims, self.num_dims)?;
            let layout = read::layout(self.device_layout, &shape)?;
            let mut semantics = semantics(self.host_buffer_semantics)?;
            if !self.data.addr().is_multiple_of(ALIGNMENT_BYTES) && semantics != HostBufferSemantics::default() {
                // Code that XLA compiled reads whole vectors, so an array elsewhere is copied.
                semantics = HostBufferSemantics::ImmutableUntilTransferCompletes;
            }
            let (on_done, done) = match semantics {
                HostBufferSemantics::ImmutableOnlyDuringCall => (None, Event::ready()),
                _ => {
                    let promise = EventPromise::guarding(c"done with host buffer");
                    let done = promise.event();
                    let on_done: OnDone = Box::new(move |outcome| {
                        promise.set(outcome);
                    });
                    (Some(on_done), done)
                }
            };
            let alloc = AllocOptions { label: Label::new(c"device_put"), ..Default::default() };
            let data = self.data.cast::<u8>();
            let strides = read::list("byte_strides", self.byte_strides, self.num_byte_strides)?;
            let (array, aliasing) = if strides.is_empty() && layout.is_none() {
                Buffer::from_host_dense(data, &shape, &space, semantics, &alloc, on_done)?
            } else {
                let array = HostArray::new(&shape, (!strides.is_empty()).then_some(strides))?;
                Buffer::from_host_array(data, &array, &space, FromHostOptions { semantics, layout, alloc, on_done })?
            };
            self.done_with_host_buffer = event::give(done);
            self.buffer = match aliasing {
                Aliasing::Aliased => buffer::give_alias(array, &client.platform),
                Aliasing::Copied => buffer::give(array, &client.platform),
            };
            Ok(())
        }
    }
}

impl Answer for ClientCreateUninitializedBufferArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe {
            let client = lent::<Self, _>(self.client)?;
            let space = place::<Self>(&client.platform, self.memory, self.device)?;
            let shape = read::shape(self.shape_element_type, self.shape_dims, self.shape_num_dims)?;
            let layout = read::layout(self.shape_layout, &shape)?;
            let options = AllocOptions { label: Label::new(c"uninitialized"), ..Default::default() };
            let array = Buffer::uninitialized(&shape, layout.as_ref(), &space, &options)?;
            self.buffer = buffer::give(array, &client.platform);
            Ok(())
        }
    }
}

impl Answer for ClientCreateErrorBufferArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe {
            let client = lent::<Self, _>(self.client)?;
            let space = place::<Self>(&client.platform, self.memory, std::ptr::null_mut())?;
            let shape = read::shape(self.shape_element_type, self.shape_dims, self.shape_num_dims)?;
            let Err(mut error) = read::outcome(self.error_code, self.error_message, self.error_message_size) else {
                return Err(Error::invalid_argument("PJRT_Client_CreateErrorBuffer: the error's code is OK"));
            };
            for payload in read::each(self.payload, self.num_payload)? {
                let name = read::text("the name of a payload", payload.name, payload.name_size)?;
                if payload.r#type != abi::named_value_type::STRING {
                    return Err(Error::invalid_argument(format!("the payload '{name}' is no text")));
                }
                let bytes = payload.value.string_value.cast::<u8>();
                error.set_payload(name, read::list("a payload", bytes, payload.value_size)?);
            }
            self.buffer = buffer::give(Buffer::error(error, &shape, &space), &client.platform);
            Ok(())
        }
    }
}

/// What a view calls when its memory is not needed any more.
struct Owner {
    callback: unsafe extern "C" fn(data: *mut c_void, user_arg: *mut c_void),
    data: *mut c_void,
    user_arg: *mut c_void,
}

// SAFETY: PJRT's contract: the callback runs on any thread.
unsafe impl Send for Owner {}
// SAFETY: as above.
unsafe impl Sync for Owner {}

impl Owner {
    fn call(self) {
        // SAFETY: the caller's function and arguments, called once.
        unsafe { (self.callback)(self.data, self.user_arg) };
    }
}

impl Answer for ClientCreateViewOfDeviceBufferArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise: the memory stays until the callback.
        unsafe {
            let client = lent::<Self, _>(self.client)?;
            let space = place::<Self>(&client.platform, self.memory, self.device)?;
            let shape = read::shape(self.element_type, self.dims, self.num_dims)?;
            let layout = read::layout(self.layout, &shape)?;
            if self.stream != 0 {
                return Err(Error::unimplemented(format!(
                    "PJRT_Client_CreateViewOfDeviceBuffer: stream {:#x}: a CPU has no streams",
                    self.stream
                )));
            }
            if !self.device_buffer_ptr.addr().is_multiple_of(ALIGNMENT_BYTES) {
                return Err(Error::invalid_argument(format!(
                    "PJRT_Client_CreateViewOfDeviceBuffer: {:p} is no multiple of {ALIGNMENT_BYTES}, which compiled code \
                     needs",
                    self.device_buffer_ptr
                )));
            }
            let (data, user_arg) = (self.device_buffer_ptr, self.on_delete_callback_arg);
            let owner = self.on_delete_callback.map(|callback| Owner { callback, data, user_arg });
            let release = owner.map(|owner| Box::new(move || owner.call()) as Box<dyn FnOnce() + Send + Sync>);
            let size = shape.on_device_size_bytes();
            let memory = RawBuffer::import(&space, data.cast(), size, Mutability::Mutable, release)?;
            let array = Buffer::from_raw(memory, &shape, layout.as_ref(), &Event::ready())?;
            self.buffer = buffer::give(array, &client.platform);
            Ok(())
        }
    }
}

/// What is behind a `PJRT_FulfillAliasBufferCallback`.
pub(crate) struct AliasObject(Mutex<Option<BufferPromise>>);

impl Handle for abi::FulfillAliasBufferCallback {
    type Object = AliasObject;
    const NAME: &'static str = "PJRT_FulfillAliasBufferCallback";
}

impl Answer for ClientCreateAliasBufferArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe {
            let client = lent::<Self, _>(self.client)?;
            let space = place::<Self>(&client.platform, self.memory, std::ptr::null_mut())?;
            let shape = read::shape(self.shape_element_type, self.shape_dims, self.shape_num_dims)?;
            let layout = read::layout(self.shape_layout, &shape)?;
            let (array, promise) = Buffer::channel(&shape, layout.as_ref(), &space)?;
            self.alias_buffer = buffer::give(array, &client.platform);
            self.fulfill_alias_buffer_cb = handle::give(AliasObject(Mutex::new(Some(promise))));
            Ok(())
        }
    }
}

impl Answer for ClientFulfillAliasBufferArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe {
            lent::<Self, _>(self.client)?;
            let outcome = read::outcome(self.status_code, self.error_message, self.error_message_size);
            let source = match &outcome {
                Ok(()) => Some(lent::<Self, _>(self.buffer)?),
                Err(_) => None,
            };
            let alias = lent::<Self, _>(self.fulfill_alias_buffer_cb)?;
            let promise = alias.0.lock().take();
            let Some(promise) = promise else {
                return Err(Error::failed_precondition("PJRT_Client_FulfillAliasBuffer: it is fulfilled already"));
            };
            match (source, outcome) {
                (Some(source), _) => promise.fulfil(&source.array).map_err(|(error, promise)| {
                    // Still the caller's, to be fulfilled in another way.
                    *alias.0.lock() = Some(promise);
                    error
                })?,
                (None, outcome) => promise.fail(outcome.err().unwrap_or_else(|| Error::internal("no error"))),
            }
            take::<Self, _>(self.fulfill_alias_buffer_cb).map(drop)
        }
    }
}

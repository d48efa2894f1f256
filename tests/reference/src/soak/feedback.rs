//! Feedback: each output is the next input, for ever, through everything that makes an array of an array without a
//! copy: donation, bitcasts, channels, DLPack within a client and through another one, parts of the same memory. What a
//! step leaves behind adds up.

use std::sync::Arc;

use purlin_array::{DType, Shape};
use purlin_async::{Event, EventPromise};
use purlin_base::Error;
use purlin_device::{AllocOptions, Buffer, Client, ClientOptions, MemorySpace, OomPolicy, RawBuffer};
use purlin_host::HostBackend;
use purlin_interchange::dlpack::{DlpackTensor, import_dlpack};
use purlin_reference::Random;

const COUNT: usize = 64;

/// The last array, and the last raw memory.
pub(crate) struct Feedback {
    clients: [Arc<Client>; 2],
    spaces: [MemorySpace; 2],
    last: Buffer,
    raw: RawBuffer,
    random: Random,
    steps: u64,
}

fn values() -> Vec<u8> {
    (0..COUNT as u8).collect()
}

impl Feedback {
    pub(crate) fn new() -> Result<Self, Error> {
        let client = || {
            let options = ClientOptions { worker_count: 1, ..ClientOptions::default() };
            Client::new(&options, Arc::new(HostBackend::new()))
        };
        let clients = [client()?, client()?];
        let spaces = [0, 1].map(|index| clients[index].devices()[0].default_memory_space());
        let last = Buffer::from_slice(&values(), &[COUNT as i64], &spaces[0])?;
        let raw = RawBuffer::allocate(&spaces[0], COUNT)?;
        Ok(Self { clients, spaces, last, raw, random: Random::new(11), steps: 0 })
    }

    /// One thing. The array stays what it was.
    pub(crate) fn step(&mut self) -> Result<(), Error> {
        let shape = Shape::new(DType::U8, &[COUNT as i64])?;
        self.last = match self.random.below(8) {
            0 => {
                let promise = EventPromise::new(c"feedback");
                let next = self.last.donate_after(&promise.event())?;
                promise.set_ready();
                next
            }
            1 => self.last.bitcast(&Shape::new(DType::U8, &[8, 8])?, None)?.bitcast(&shape, None)?,
            2 => {
                let (next, promise) = Buffer::channel(&shape, None, &self.spaces[0])?;
                promise.fulfil(&self.last).map_err(|(error, _)| error)?;
                next
            }
            3 => self.round_trip(0)?,
            4 => {
                self.last = self.round_trip(1)?;
                self.round_trip(0)?
            }
            5 => {
                let part = self.last.usage_hold()?.memory().slice(0, COUNT)?;
                Buffer::from_raw(part, &shape, None, &Event::ready())?
            }
            6 => {
                self.channels()?;
                self.last.clone()
            }
            // Memory of its own again, once in a while.
            _ if self.steps.is_multiple_of(1000) => Buffer::from_slice(&values(), &[COUNT as i64], &self.spaces[0])?,
            _ => self.last.clone(),
        };
        self.steps += 1;
        if self.steps.is_multiple_of(100) && self.last.to_vec::<u8>()? != values() {
            return Err(Error::data_loss("feedback has changed the bytes of an array"));
        }
        Ok(())
    }

    /// The last array, through DLPack, in the memory of that client.
    fn round_trip(&self, client: usize) -> Result<Buffer, Error> {
        self.last.ready_event().wait()?;
        let tensor = DlpackTensor::new(&self.last)?.into_raw();
        // SAFETY: the struct was made for this, and nothing writes the array.
        Ok(unsafe { import_dlpack(tensor, &self.spaces[client]) }?.0)
    }

    /// Channels of the last raw memory: fulfilled one by one, or from the end on before there is any.
    fn channels(&mut self) -> Result<(), Error> {
        let channel = || RawBuffer::channel(&self.spaces[0], COUNT, &AllocOptions::default());
        let fulfil = |promise: purlin_device::RawBufferPromise, memory: &RawBuffer| {
            promise.fulfil(memory).map_err(|(error, _)| error)
        };
        if self.random.below(100) == 0 {
            let (first, promise) = channel();
            promise.allocate(OomPolicy::Fail)?;
            self.raw = first;
        }
        let [(a, a_promise), (b, b_promise), (c, c_promise)] = [channel(), channel(), channel()];
        fulfil(c_promise, &b)?;
        fulfil(b_promise, &a)?;
        fulfil(a_promise, &self.raw)?;
        c.allocation_event().wait()?;
        self.raw = c;
        Ok(())
    }

    /// Bytes of devices in use after everything has gone.
    pub(crate) fn end(self) -> u64 {
        let Self { clients, spaces, last, raw, .. } = self;
        drop((last, raw));
        clients.iter().for_each(|client| _ = client.runner().shutdown());
        spaces.iter().map(|space| space.stats().bytes_in_use).sum()
    }
}

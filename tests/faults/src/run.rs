//! One run of a scenario: what it meets, what it owes, and what its end is checked for.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use purlin_async::{Event, EventPromise, dump_stalls};
use purlin_base::fault::{self, Site};
use purlin_base::{Error, StatusCode, StatusOr};
use purlin_device::backend::Backend;
use purlin_device::{Buffer, Client, ClientOptions, MemorySpace, NullBackend, RawBuffer};
use purlin_host::HostBackend;
use purlin_sim::{SimBackend, SimOptions};

/// No machine is so slow.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// What a scenario runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    /// Real memory.
    Host,
    /// Simulated streams.
    Sim,
    /// A record without bytes.
    Null,
}

impl On {
    /// A new backend.
    #[must_use]
    pub fn backend(self) -> Arc<dyn Backend> {
        match self {
            Self::Host => Arc::new(HostBackend::new()),
            Self::Sim => Arc::new(SimBackend::new(SimOptions { space_bytes: 64 << 20, ..SimOptions::default() })),
            Self::Null => Arc::new(NullBackend::new()),
        }
    }

    /// Whether bytes are copied back.
    #[must_use]
    pub fn has_bytes(self) -> bool {
        self != Self::Null
    }
}

/// See the module.
#[derive(Debug)]
pub struct Run {
    /// The backend.
    pub on: On,
    met: Mutex<Vec<(String, Error)>>,
    events: Mutex<Vec<(String, Event)>>,
    calls: Mutex<Vec<Arc<Call>>>,
    memory: Mutex<Vec<Vec<u64>>>,
    clients: Mutex<Vec<Arc<Client>>>,
    hung: Mutex<Option<String>>,
}

/// The record of a callback.
#[derive(Debug)]
struct Call {
    name: String,
    called: AtomicUsize,
    destroyed: AtomicUsize,
}

/// What a callback captures: its end is the callback's.
#[derive(Debug)]
pub struct Token(Arc<Call>);

impl Token {
    /// The callback is called.
    pub fn called(&self) {
        self.0.called.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Token {
    fn drop(&mut self) {
        self.0.destroyed.fetch_add(1, Ordering::Relaxed);
    }
}

impl Run {
    /// A run that has not begun.
    #[must_use]
    pub fn new(on: On) -> Arc<Self> {
        Arc::new(Self {
            on,
            met: Mutex::default(),
            events: Mutex::default(),
            calls: Mutex::default(),
            memory: Mutex::default(),
            clients: Mutex::default(),
            hung: Mutex::default(),
        })
    }

    /// A client with two devices and two workers.
    ///
    /// # Errors
    /// Why there is none.
    pub fn client(&self) -> StatusOr<Arc<Client>> {
        self.client_with(ClientOptions::default(), self.on.backend())
    }

    /// The first device's default space, of a new client.
    ///
    /// # Errors
    /// Why there is none.
    pub fn space(&self) -> StatusOr<MemorySpace> {
        Ok(self.client()?.devices()[0].default_memory_space())
    }

    /// A client as `options` say, but for two devices and two workers.
    ///
    /// # Errors
    /// Why there is none.
    pub fn client_with(&self, options: ClientOptions, backend: Arc<dyn Backend>) -> StatusOr<Arc<Client>> {
        let client = Client::new(&ClientOptions { device_count: 2, worker_count: 2, ..options }, backend)?;
        self.clients.lock().unwrap().push(Arc::clone(&client));
        Ok(client)
    }

    /// Notes an error that the scenario met.
    pub fn meet(&self, what: &str, error: Error) {
        self.met.lock().unwrap().push((what.to_owned(), error));
    }

    /// Notes how `result` failed, if it did.
    pub fn see<T>(&self, what: &str, result: StatusOr<T>) -> Option<T> {
        result.map_err(|error| self.meet(what, error)).ok()
    }

    /// Waits for `event` at the end, which must complete.
    pub fn watch(&self, what: &str, event: &Event) {
        self.events.lock().unwrap().push((what.to_owned(), event.clone()));
    }

    /// Waits for `event` now, which must complete; true if it happened.
    pub fn wait(&self, what: &str, event: &Event) -> bool {
        match event.wait_for(LONGEST_WAIT) {
            Ok(()) => true,
            Err(error) => {
                if !event.is_ready() {
                    self.hung.lock().unwrap().get_or_insert_with(|| {
                        format!("'{what}' is still pending after {LONGEST_WAIT:?}\n{}", dump_stalls(Duration::ZERO))
                    });
                }
                self.meet(what, error);
                false
            }
        }
    }

    /// For a callback to capture: it is to be called once.
    pub fn token(&self, name: &str) -> Token {
        let call =
            Arc::new(Call { name: name.to_owned(), called: AtomicUsize::new(0), destroyed: AtomicUsize::new(0) });
        self.calls.lock().unwrap().push(Arc::clone(&call));
        Token(call)
    }

    /// An `on_done` that notes what it is called with.
    pub fn on_done(self: &Arc<Self>, name: &'static str) -> purlin_device::OnDone {
        let (run, token) = (Arc::clone(self), self.token(name));
        Box::new(move |outcome| {
            token.called();
            if let Err(error) = outcome {
                run.meet(name, error);
            }
        })
    }

    /// A waiter of a user's: it may panic.
    pub fn waiter(self: &Arc<Self>, event: &Event) {
        let token = self.token("waiter");
        event.on_ready(move |_status| {
            token.called();
            fault::callback(Site::Waiter.name());
        });
    }

    /// `size_bytes` bytes of host memory, aligned to 64, that stay until the end of the run.
    pub fn bytes(&self, size_bytes: usize) -> *mut u8 {
        let mut block = vec![0x0101_0101_0101_0101_u64; size_bytes / 8 + 9];
        let first: *mut u8 = block.as_mut_ptr().cast();
        let aligned = first.wrapping_add(first.align_offset(64));
        self.memory.lock().unwrap().push(block);
        aligned
    }

    /// The end of the scenario: waits for all that it watched.
    pub(crate) fn finish(&self) {
        let events = std::mem::take(&mut *self.events.lock().unwrap());
        for (what, event) in events {
            self.wait(&what, &event);
        }
    }

    /// Whether the clients of this run still work.
    pub(crate) fn check_clients(&self) -> Result<(), String> {
        let clients: Vec<_> = self.clients.lock().unwrap().clone();
        clients.iter().try_for_each(works)
    }

    /// Drops the clients.
    pub(crate) fn drop_clients(&self) {
        let clients = std::mem::take(&mut *self.clients.lock().unwrap());
        drop(clients);
    }

    /// The errors that were met.
    pub(crate) fn errors(&self) -> Vec<(String, Error)> {
        self.met.lock().unwrap().clone()
    }

    /// What is wrong whatever was to fail: a wait without an end, callbacks that were called twice or never dropped.
    pub(crate) fn complaints(&self, may_be_uncalled: bool) -> String {
        let mut text = self.hung.lock().unwrap().clone().unwrap_or_default();
        for call in self.calls.lock().unwrap().iter() {
            let (called, destroyed) = (call.called.load(Ordering::Relaxed), call.destroyed.load(Ordering::Relaxed));
            if destroyed != 1 || called > 1 || (called == 0 && !may_be_uncalled) {
                // Writing to a string does not fail.
                let _ = writeln!(text, "'{}' was called {called} times and destroyed {destroyed} times", call.name);
            }
        }
        text
    }
}

/// Whether a client does what it is for.
pub(crate) fn works(client: &Arc<Client>) -> Result<(), String> {
    let tell = |error: Error| format!("the client does not work any more: {error}");
    let promise = Arc::new(EventPromise::new(c"does it work"));
    let event = promise.event();
    match client.runner().schedule(c"does it work", move || _ = promise.set_ready()) {
        // The scenario has shut it down.
        Err(error) if error.code() == StatusCode::Cancelled => return Ok(()),
        other => other.map_err(tell)?,
    }
    event.wait_for(LONGEST_WAIT).map_err(tell)?;
    let space = client.devices()[0].default_memory_space();
    if client.platform_name() == "null" {
        return RawBuffer::allocate(&space, 1000).map(drop).map_err(tell);
    }
    let values: Vec<i32> = (0..100).collect();
    let buffer = Buffer::from_slice(&values, &[100], &space).map_err(tell)?;
    let back = buffer.to_vec::<i32>().map_err(tell)?;
    if back == values { Ok(()) } else { Err(format!("the client gave other bytes back: {back:?}")) }
}

//! What a case works on: two clients of the backend under test, and a look at their accounting at the end.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::thread;
use std::time::{Duration, Instant};

use purlin_base::{Error, StatusCode};
use purlin_device::backend::Backend;
use purlin_device::{Client, ClientOptions, Device, MemorySpace, Mutability, RawBuffer};

use crate::Given;
use crate::host_copy::HostCopy;
use crate::kernel::Momentum;
use crate::lent::Lent;

/// More than any backend copies inside the call (the host: 64 KiB).
pub(crate) const LARGE_BYTES: usize = (1 << 20) + 3;

/// Two clients of one backend, with three devices and two workers each.
pub(crate) struct Fixture {
    make: fn() -> Arc<dyn Backend>,
    given: Given,
    pub(crate) client: Arc<Client>,
    /// For what must not mix.
    pub(crate) other_client: Arc<Client>,
}

impl Fixture {
    pub(crate) fn new(make: fn() -> Arc<dyn Backend>, given: Given) -> Self {
        let backend = make();
        let client = new_client(&backend);
        Self { make, given, client, other_client: new_client(&backend) }
    }

    /// A client that belongs to the case alone.
    pub(crate) fn own_client(&self) -> Arc<Client> {
        new_client(&(self.make)())
    }

    /// A client that belongs to the case alone, made as `options` say.
    pub(crate) fn client_with(&self, options: &ClientOptions) -> Arc<Client> {
        Client::new(options, (self.make)()).expect("the backend opens its devices")
    }

    pub(crate) fn device(&self, id: i32) -> Device {
        self.client.lookup_device(id).expect("a fixture's client has three devices")
    }

    /// The default memory space of device 0.
    pub(crate) fn space(&self) -> MemorySpace {
        self.device(0).default_memory_space()
    }

    /// The first memory space of device 0 that takes memory of the host, and that functions of the host reach.
    pub(crate) fn host_space(&self) -> MemorySpace {
        host_space(&self.device(0))
    }

    /// Memory of the device of that number that somebody else has allocated: its default space takes it.
    pub(crate) fn lent(&self, device: usize, size_bytes: usize) -> Lent {
        (self.given.lend)(device, size_bytes)
    }

    /// The code of the kernel that cases launch.
    pub(crate) fn momentum(&self) -> Momentum {
        self.given.momentum
    }

    /// Every memory space of every device.
    pub(crate) fn spaces(&self) -> Vec<MemorySpace> {
        self.client.devices().iter().flat_map(Device::memory_spaces).collect()
    }

    /// `size_bytes` bytes in [`space`](Self::space), unspecified.
    pub(crate) fn allocate(&self, size_bytes: usize) -> RawBuffer {
        RawBuffer::allocate(&self.space(), size_bytes).expect("a few megabytes are there")
    }

    /// A buffer in [`space`](Self::space) that holds `bytes`.
    pub(crate) fn filled(&self, bytes: &[u8]) -> RawBuffer {
        filled(&self.space(), bytes)
    }

    /// Blocks every worker of the client until the guard is dropped. A pool whose threads all sleep for a while gets
    /// one more, on a busy machine also when the case is quick.
    pub(crate) fn occupy_runner(&self) -> Occupied {
        // Ends with an error, because the guard never sends and is only dropped.
        self.occupy_runner_by(|left| _ = left.recv())
    }

    /// As [`occupy_runner`](Self::occupy_runner), with workers that are awake: the pool gets none more.
    pub(crate) fn keep_runner_busy(&self) -> Occupied {
        self.occupy_runner_by(|left| {
            while left.try_recv() == Err(TryRecvError::Empty) {
                thread::yield_now();
            }
        })
    }

    fn occupy_runner_by(&self, wait: fn(Receiver<()>)) -> Occupied {
        let (arrived, arrivals) = mpsc::channel();
        let workers = self.client.runner().num_threads();
        let leave = (0..workers)
            .map(|_| {
                let arrived = arrived.clone();
                let (leave, left) = mpsc::channel::<()>();
                let occupy = move || {
                    arrived.send(()).expect("the case waits for it");
                    wait(left);
                };
                self.client.runner().schedule(c"occupied", occupy).expect("the runner runs");
                leave
            })
            .collect();
        for _ in 0..workers {
            arrivals.recv().expect("each worker takes a task");
        }
        Occupied { _leave: leave }
    }

    /// The end of a case: no memory is in use any more, once what the case has left in flight is over.
    pub(crate) fn finish(self) {
        for client in [&self.client, &self.other_client] {
            client.runner().shutdown().expect("a case does not run on its own runner");
            for space in client.devices().iter().flat_map(Device::memory_spaces) {
                assert!(becomes_free(&space), "the case left memory behind: {}", space.report());
            }
        }
    }
}

/// Whether `space` has no memory in use, now or soon: a backend's own threads release it after they have notified
/// waiters.
pub(crate) fn becomes_free(space: &MemorySpace) -> bool {
    let long_enough = Instant::now() + Duration::from_secs(10);
    while space.stats().bytes_in_use > 0 && Instant::now() < long_enough {
        thread::yield_now();
    }
    space.stats().bytes_in_use == 0
}

/// Workers that are busy until this is dropped.
pub(crate) struct Occupied {
    _leave: Vec<Sender<()>>,
}

/// The first memory space of `device` that takes memory of the host, and that functions of the host reach.
pub(crate) fn host_space(device: &Device) -> MemorySpace {
    let mut spaces = device.memory_spaces().into_iter();
    // Without one, a case fails with what its backend says of its default space.
    spaces.find(takes_host_memory).unwrap_or_else(|| device.default_memory_space())
}

/// Whether memory of the host can be imported into `space`.
pub(crate) fn takes_host_memory(space: &MemorySpace) -> bool {
    #[repr(align(4096))]
    struct Page([u8; 4096]);
    static PAGE: Page = Page([0; 4096]);
    let address = PAGE.0.as_ptr().cast_mut();
    // SAFETY: the page stays for ever, and nothing writes it.
    unsafe { RawBuffer::import(space, address, PAGE.0.len(), Mutability::Immutable, None) }.is_ok()
}

fn new_client(backend: &Arc<dyn Backend>) -> Arc<Client> {
    let options = ClientOptions { device_count: 3, worker_count: 2, ..Default::default() };
    Client::new(&options, Arc::clone(backend)).expect("the backend opens three devices")
}

/// A buffer in `space` that holds `bytes`.
pub(crate) fn filled(space: &MemorySpace, bytes: &[u8]) -> RawBuffer {
    let buffer = RawBuffer::allocate(space, bytes.len()).expect("a few megabytes are there");
    HostCopy::to_device(&buffer, 0, bytes.to_vec(), &[]).wait().expect("copies from the host work");
    buffer
}

/// All bytes of `buffer`.
pub(crate) fn read(buffer: &RawBuffer) -> Vec<u8> {
    HostCopy::from_device(buffer, 0, buffer.size_bytes(), &[]).wait().expect("copies to the host work")
}

/// `size_bytes` bytes that tell their position, and differ by `seed`.
pub(crate) fn pattern(size_bytes: usize, seed: u8) -> Vec<u8> {
    (0..size_bytes).map(|index| (index.wrapping_mul(31) >> 3) as u8 ^ (index as u8) ^ seed.wrapping_mul(59)).collect()
}

/// Checks the code of an error and that its message has all of `parts`.
#[track_caller]
pub(crate) fn assert_error(error: &Error, code: StatusCode, parts: &[&str]) {
    assert_eq!(error.code(), code, "{error}");
    for part in parts {
        assert!(error.message().contains(part), "'{part}' is missing in: {error}");
    }
}

/// Checks that it names a cycle of events.
#[track_caller]
pub(crate) fn assert_cycle(error: &Error) {
    assert_error(error, StatusCode::Internal, &["would wait for itself: event '"]);
}

/// Calls `work(0)`, `work(1)`, ... on `threads` threads at once, and returns when all have.
///
/// Each thread is joined by name, because ThreadSanitizer sees that and not the end of a scope.
pub(crate) fn on_threads(threads: usize, work: impl Fn(usize) + Sync) {
    thread::scope(|scope| {
        let work = &work;
        let running: Vec<_> = (0..threads).map(|index| scope.spawn(move || work(index))).collect();
        for thread in running {
            thread.join().unwrap_or_else(|panic| resume_unwind(panic));
        }
    });
}

//! The library by its Rust API.
//!
//! Slots are behind locks, so that two threads can use the same tables: a handle is cloned under its lock and used
//! under none. Memory that copies read or write stays until the events that say when they are over; if one is still
//! pending when everything begins anew, the memory is leaked rather than taken away.

#![allow(unsafe_code, reason = "copies from and to the host go by address")]

use std::alloc::{Layout as Block, alloc_zeroed, dealloc, handle_alloc_error};
use std::fmt;
use std::fmt::Write;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Once};
use std::time::{Duration, Instant};

use purlin_array::{DType, HostArray, Layout, Shape};
use purlin_async::{Event, EventPromise, EventState};
use purlin_base::sync::Mutex;
use purlin_base::{Error, StatusCode};
use purlin_cuda::CudaBackend;
use purlin_device::{
    AllocOptions, Buffer, BufferPromise, Client, ClientOptions, DonationHold, ExternalReference, FromHostOptions,
    HostBufferSemantics, MemorySpace, RawBuffer, UsageHold,
};
use purlin_fakecuda::{Driver, Options, on_a_gpu};
use purlin_host::HostBackend;
use purlin_program::{ExecuteOptions, LoadedExecutable};
use purlin_sim::{SimBackend, SimDriver, SimOptions};

use crate::model::{CODES, RunOptions, SHAPES, TOKEN, hash, pattern, shape_of, turned};
use crate::op::{Arg, Op, Verb, slots, table};
use crate::rust_programs::load;
use crate::subject::{Backend, Subject, may_wait};

type Slots<T> = Vec<Mutex<Option<T>>>;

/// Of a client.
const DEVICES: usize = 2;
/// How much later an operation of the fake driver begins, in microseconds, at most: long enough that what depends on it
/// is mostly enqueued before.
const MOST_DELAY_US: u64 = 400;

/// See the module.
pub struct RustSubject {
    world: Real,
    backend: Backend,
}

impl fmt::Debug for RustSubject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RustSubject").finish_non_exhaustive()
    }
}

struct Real {
    client: Arc<Client>,
    driver: Option<SimDriver>,
    cuda: Option<Driver>,
    spaces: Vec<MemorySpace>,
    buffers: Slots<Buffer>,
    promises: Slots<Arc<EventPromise>>,
    channels: Slots<BufferPromise>,
    usages: Slots<UsageHold>,
    externals: Slots<ExternalReference>,
    donations: Slots<DonationHold>,
    given: Slots<(RawBuffer, Event)>,
    reads: Slots<(Event, Arc<HostMemory>)>,
    programs: Slots<LoadedExecutable>,
    /// Written by `on_done`: 0 not yet, 1 OK, 2 an error; in the order of the calls.
    hosts: Mutex<Vec<Arc<AtomicU8>>>,
    /// What copies use, until which event.
    in_use: Mutex<Vec<(Event, Arc<HostMemory>)>>,
    /// What buffers alias, until `on_done` is called.
    aliased: Mutex<Vec<(Arc<AtomicU8>, Arc<HostMemory>)>>,
}

/// Memory aligned to 64 bytes.
struct HostMemory {
    address: *mut u8,
    block: Block,
    size: usize,
}

// SAFETY: all code that writes or reads it does so by the address, ordered by events.
unsafe impl Send for HostMemory {}
// SAFETY: as above.
unsafe impl Sync for HostMemory {}

impl HostMemory {
    fn new(size: usize) -> Arc<Self> {
        let block = Block::from_size_align(size + 64, 64).expect("small sizes");
        // SAFETY: not empty.
        let address = unsafe { alloc_zeroed(block) };
        if address.is_null() {
            handle_alloc_error(block);
        }
        Arc::new(Self { address, block, size })
    }

    fn of(bytes: &[u8], offset: usize) -> Arc<Self> {
        let memory = Self::new(bytes.len());
        // SAFETY: new memory of that size and 64 bytes more; the offset is 0 or 1.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), memory.address.add(offset), bytes.len()) };
        memory
    }

    /// # Safety
    /// It is no longer written.
    unsafe fn hash(&self) -> u32 {
        // SAFETY: initialised, and the caller's promise.
        hash(unsafe { std::slice::from_raw_parts(self.address, self.size) })
    }
}

impl Drop for HostMemory {
    fn drop(&mut self) {
        // SAFETY: allocated so; the last reference is dropped when it is no longer used (`Real::drop` leaks it
        // otherwise).
        unsafe { dealloc(self.address, self.block) };
    }
}

fn empty<T>(arg: Arg) -> Slots<T> {
    (0..table(arg)).map(|_| Mutex::new(None)).collect()
}

fn shape(index: usize) -> Shape {
    if index == TOKEN {
        return Shape::token();
    }
    let dtype = match SHAPES[index].dtype {
        "f32" => DType::F32,
        "s16" => DType::S16,
        _ => DType::U8,
    };
    let dims: Vec<i64> = SHAPES[index].dims.iter().map(|&dim| dim as i64).collect();
    Shape::new(dtype, &dims).expect("sound shapes")
}

fn layout(index: usize, turned: bool) -> Option<Layout> {
    (turned && SHAPES[index].can_turn()).then(|| Layout::new(&[0, 1]).expect("a sound layout"))
}

fn error_of(code: u8, seed: u8) -> Error {
    Error::new(StatusCode::from_raw(i32::from(CODES[usize::from(code)])), format!("user error #{seed}#"))
}

/// `code:what`.
fn text(error: &Error) -> String {
    let message = error.message();
    let known = [
        ("Buffer has been deleted or donated.", "gone"),
        ("Donation requested for invalid buffer.", "donate-gone"),
        ("Donation requested for buffer with external reference", "external"),
        ("The buffer is being donated", "donating"),
        ("cannot be donated now", "busy"),
        ("into itself", "itself"),
        ("its own memory", "circle"),
        ("shapes and layouts must be equal", "unequal"),
        ("cannot bitcast", "bitcast"),
        ("only arrays of static shape", "no-array"),
        ("may not be written", "readonly"),
        ("was abandoned", "abandoned"),
        ("arguments are given", "count"),
        ("and the program takes", "signature"),
        ("Attempt to donate the same buffer twice", "donated-twice"),
        ("Attempt to use a buffer that was previously donated", "used-and-donated"),
        ("it has that of a donated argument", "given-donated"),
        ("panicked: as a test wants it", "panicked"),
        ("cannot be", "misfit"),
    ];
    let code = error.code() as i32;
    if let Some((_, rest)) = message.split_once('#')
        && let Some((seed, _)) = rest.split_once('#')
    {
        return format!("{code}:#{seed}#");
    }
    match known.iter().find(|(part, _)| message.contains(part)) {
        Some((_, what)) => format!("{code}:{what}"),
        None if code == StatusCode::OutOfRange as i32 => format!("{code}:range"),
        None => format!("{code}:{message}"),
    }
}

fn state(event: &Event) -> String {
    match event.state() {
        EventState::Unavailable => "p".into(),
        EventState::Ready => "r".into(),
        EventState::Error => event.error().map_or_else(String::new, |error| text(&error)),
    }
}

fn answer(outcome: Result<(), Error>) -> String {
    outcome.map_or_else(|error| text(&error), |()| "ok".into())
}

fn get<T: Clone>(slot: &Mutex<Option<T>>) -> Option<T> {
    slot.lock().clone()
}

fn put<T>(slot: &Mutex<Option<T>>, value: Option<T>) -> Option<T> {
    // What was there is dropped outside the lock.
    std::mem::replace(&mut slot.lock(), value)
}

/// `none` or `ok`.
fn emptied<T>(slot: &Mutex<Option<T>>) -> String {
    match put(slot, None) {
        Some(_) => "ok".into(),
        None => "none".into(),
    }
}

/// The driver; if it is the fake one, with the devices of a client.
fn driver_of_cuda() -> Driver {
    static IS_TOLD: Once = Once::new();
    let driver = Driver::open();
    IS_TOLD.call_once(|| {
        // What it has is then as the machine says.
        if on_a_gpu() {
            return;
        }
        let options = Options { devices: DEVICES, ..Options::default() };
        assert!(driver.control.configure(&options), "something has called the driver before");
    });
    driver
}

impl Real {
    fn new(backend: Backend) -> Self {
        let options = ClientOptions { device_count: DEVICES, worker_count: 2, ..ClientOptions::default() };
        let (client, driver, cuda) = match backend {
            Backend::Host => (Client::new(&options, Arc::new(HostBackend::new())), None, None),
            Backend::Sim(seed) => {
                let simulated = SimOptions { seed, fail_on_report: true, ..SimOptions::default() };
                let (backend, driver) = SimBackend::by_hand(simulated);
                (Client::new(&options, Arc::new(backend)), Some(driver), None)
            }
            Backend::Cuda(_) => {
                let cuda = driver_of_cuda();
                let backend = CudaBackend::new().expect("the driver is there").with_virtual_devices(on_a_gpu());
                (Client::new(&options, Arc::new(backend)), None, Some(cuda))
            }
        };
        let client = client.expect("a client");
        let spaces = client.devices().iter().flat_map(purlin_device::Device::memory_spaces).collect();
        Self {
            client,
            driver,
            cuda,
            spaces,
            buffers: empty(Arg::Buffer),
            promises: empty(Arg::Promise),
            channels: empty(Arg::Channel),
            usages: empty(Arg::Usage),
            externals: empty(Arg::External),
            donations: empty(Arg::Donation),
            given: empty(Arg::Memory),
            reads: empty(Arg::Read),
            programs: empty(Arg::Program),
            hosts: Mutex::default(),
            in_use: Mutex::default(),
            aliased: Mutex::default(),
        }
    }

    fn empty_slots(&self) {
        self.programs.iter().for_each(|slot| drop(put(slot, None)));
        self.buffers.iter().for_each(|slot| drop(put(slot, None)));
        self.usages.iter().for_each(|slot| drop(put(slot, None)));
        self.externals.iter().for_each(|slot| drop(put(slot, None)));
        self.donations.iter().for_each(|slot| drop(put(slot, None)));
        self.given.iter().for_each(|slot| drop(put(slot, None)));
        self.channels.iter().for_each(|slot| drop(put(slot, None)));
        self.promises.iter().for_each(|slot| drop(put(slot, None)));
    }

    fn bytes_in_use(&self) -> usize {
        self.spaces.iter().map(|space| space.stats().bytes_in_use as usize).sum()
    }

    /// True if it is as good as new.
    fn clear(&mut self) -> bool {
        self.empty_slots();
        let until = Instant::now() + Duration::from_secs(1);
        let in_use = std::mem::take(&mut *self.in_use.lock());
        let mut clean = true;
        for (event, memory) in in_use {
            if let Some(driver) = &self.driver {
                driver.run_until_idle();
            }
            let over = event.is_ready() || event.wait_for(until.saturating_duration_since(Instant::now())).is_ok();
            if !over && !event.is_ready() {
                std::mem::forget(memory);
                clean = false;
            }
        }
        self.reads.iter().for_each(|slot| drop(put(slot, None)));
        for (told, memory) in std::mem::take(&mut *self.aliased.lock()) {
            while told.load(Ordering::Acquire) == 0 && Instant::now() < until {
                std::thread::yield_now();
            }
            if told.load(Ordering::Acquire) == 0 {
                std::mem::forget(memory);
                clean = false;
            }
        }
        self.hosts.lock().clear();
        clean && self.bytes_in_use() == 0
    }

    fn keep(&self, event: &Event, memory: &Arc<HostMemory>) {
        self.in_use.lock().push((event.clone(), Arc::clone(memory)));
    }

    fn event(&self, slot: u8) -> Event {
        get(&self.promises[usize::from(slot)]).map_or_else(Event::ready, |promise| promise.event())
    }

    fn made(&self, slot: u8, made: Result<Buffer, Error>) -> String {
        match made {
            Ok(buffer) => {
                put(&self.buffers[usize::from(slot)], Some(buffer));
                "ok".into()
            }
            Err(error) => text(&error),
        }
    }

    fn hold<T>(slot: &Mutex<Option<T>>, take: impl FnOnce() -> Result<T, Error>) -> String {
        put(slot, None);
        answer(take().map(|held| drop(put(slot, Some(held)))))
    }

    #[allow(clippy::too_many_lines, reason = "a table of operations")]
    fn apply(&self, op: Op) -> String {
        let [a, b, c, d, ..] = op.args;
        let (at_a, at_b) = (usize::from(a), usize::from(b));
        let none = || "none".to_owned();
        macro_rules! buffer {
            ($slot:expr) => {
                match get(&self.buffers[$slot]) {
                    Some(buffer) => buffer,
                    None => return none(),
                }
            };
        }
        match op.verb {
            Verb::NewEvent => {
                put(&self.promises[at_a], Some(Arc::new(EventPromise::new(c"reference"))));
                "ok".into()
            }
            Verb::SetReady => get(&self.promises[at_a]).map_or_else(none, |promise| promise.set_ready().to_string()),
            Verb::SetError => {
                get(&self.promises[at_a]).map_or_else(none, |promise| promise.set_error(error_of(b, c)).to_string())
            }
            Verb::DropPromise => emptied(&self.promises[at_a]),
            Verb::FromHost => self.array_from_host(op),
            Verb::FromRawAfter => {
                let shape = shape(shape_of(b));
                let memory = match RawBuffer::allocate(&self.spaces[0], shape.size_bytes()) {
                    Ok(memory) => memory,
                    Err(error) => return text(&error),
                };
                let copied = self.fill(&memory, d, &self.event(c));
                self.made(a, Buffer::from_raw(memory, &shape, None, &copied))
            }
            Verb::Uninitialized => {
                let (shape, layout) = (shape(shape_of(b)), layout(shape_of(b), c == 1));
                let options = AllocOptions::default();
                self.made(a, Buffer::uninitialized(&shape, layout.as_ref(), &self.spaces[0], &options))
            }
            Verb::CreateError => self.made(a, Ok(Buffer::error(error_of(c, d), &shape(shape_of(b)), &self.spaces[0]))),
            Verb::Token => self.made(a, Buffer::token(&self.spaces[0], &self.event(b))),
            Verb::Channel => {
                let (shape, layout) = (shape(shape_of(c)), layout(shape_of(c), d == 1));
                match Buffer::channel(&shape, layout.as_ref(), &self.spaces[0]) {
                    Ok((buffer, promise)) => {
                        put(&self.channels[at_b], Some(promise));
                        self.made(a, Ok(buffer))
                    }
                    Err(error) => text(&error),
                }
            }
            Verb::Fulfil => {
                let Some(promise) = put(&self.channels[at_a], None) else { return none() };
                let Some(source) = get(&self.buffers[at_b]) else {
                    put(&self.channels[at_a], Some(promise));
                    return none();
                };
                match promise.fulfil(&source) {
                    Ok(()) => "ok".into(),
                    Err((error, promise)) => {
                        put(&self.channels[at_a], Some(promise));
                        text(&error)
                    }
                }
            }
            Verb::Fail => match put(&self.channels[at_a], None) {
                Some(promise) => {
                    promise.fail(error_of(b, c));
                    "ok".into()
                }
                None => none(),
            },
            Verb::DropChannel => emptied(&self.channels[at_a]),
            Verb::TryUsage => {
                let buffer = buffer!(at_b);
                Self::hold(&self.usages[at_a], || buffer.try_usage_hold())
            }
            Verb::TakeUsage => {
                let buffer = buffer!(at_b);
                Self::hold(&self.usages[at_a], || buffer.usage_hold())
            }
            Verb::ReleaseUsage => emptied(&self.usages[at_a]),
            Verb::ReleaseUsageAfter => match put(&self.usages[at_a], None) {
                Some(hold) => {
                    hold.release_after(self.event(b));
                    "ok".into()
                }
                None => none(),
            },
            Verb::ReadHold => {
                let Some(hold) = put(&self.usages[at_a], None) else { return none() };
                let memory = HostMemory::new(hold.memory().size_bytes());
                let ready = [hold.ready_event()];
                // SAFETY: the destination stays until the event (`keep`), untouched; the array does not change.
                let copied = unsafe { hold.memory().copy_to_host(memory.address, 0, memory.size, &ready) };
                self.keep(&copied, &memory);
                hold.release_after(copied.clone());
                put(&self.reads[at_b], Some((copied, memory)));
                "ok".into()
            }
            Verb::External => {
                let buffer = buffer!(at_b);
                Self::hold(&self.externals[at_a], || buffer.external_reference())
            }
            Verb::DropExternal => emptied(&self.externals[at_a]),
            Verb::TryDonate => {
                let buffer = buffer!(at_b);
                Self::hold(&self.donations[at_a], || buffer.try_donate(c"reference"))
            }
            Verb::Donate => {
                let buffer = buffer!(at_b);
                Self::hold(&self.donations[at_a], || buffer.donate(c"reference"))
            }
            Verb::Confirm => {
                let Some(donation) = put(&self.donations[at_a], None) else { return none() };
                let free = donation.free_event();
                put(&self.given[at_b], Some((donation.confirm(), free)));
                "ok".into()
            }
            Verb::GiveBack => emptied(&self.donations[at_a]),
            Verb::DonateAfter => {
                let buffer = buffer!(at_a);
                self.made(b, buffer.donate_after(&self.event(c)))
            }
            Verb::Bitcast => {
                let (shape, layout) = (shape(shape_of(c)), layout(shape_of(c), d == 1));
                let buffer = buffer!(at_a);
                self.made(b, buffer.bitcast(&shape, layout.as_ref()))
            }
            Verb::CopyTo => {
                let buffer = buffer!(at_a);
                self.made(
                    b,
                    match self.client.devices().get(1).filter(|_| c == 3) {
                        Some(device) => buffer.copy_to_device(device),
                        None => buffer.copy_to_memory_space(&self.spaces[usize::from(c)]),
                    },
                )
            }
            Verb::CopyInto => {
                let (from, to) = (buffer!(at_a), buffer!(at_b));
                self.made(c, from.copy_into(&to))
            }
            Verb::Read | Verb::ReadRaw => {
                let buffer = buffer!(at_a);
                let size = if op.verb == Verb::Read { buffer.shape().host_size_bytes() } else { usize::from(d) };
                let memory = HostMemory::new(size);
                // SAFETY: the destination stays until the event (`keep`), untouched.
                let copied = unsafe {
                    match op.verb {
                        Verb::Read => buffer.copy_to_host(memory.address, size),
                        _ => buffer.copy_raw_to_host(memory.address, usize::from(c), size),
                    }
                };
                self.keep(&copied, &memory);
                put(&self.reads[at_b], Some((copied, memory)));
                "ok".into()
            }
            Verb::Delete => {
                buffer!(at_a).delete();
                "ok".into()
            }
            Verb::Release => match buffer!(at_a).release() {
                Some(given) => {
                    put(&self.given[at_b], Some(given));
                    "ok".into()
                }
                None => "nothing".into(),
            },
            Verb::MakeOf => {
                let Some((memory, free)) = get(&self.given[at_a]) else { return none() };
                let shape = shape(shape_of(c));
                if memory.size_bytes() != shape.size_bytes() {
                    return answer(Buffer::from_raw(memory, &shape, None, &free).map(drop));
                }
                put(&self.given[at_a], None);
                let copied = self.fill(&memory, d, &free);
                self.made(b, Buffer::from_raw(memory, &shape, None, &copied))
            }
            Verb::DropMemory => emptied(&self.given[at_a]),
            Verb::DropBuffer => emptied(&self.buffers[at_a]),
            Verb::CloneBuffer => {
                let buffer = buffer!(at_a);
                self.made(b, Ok(buffer))
            }
            Verb::IsDeleted => buffer!(at_a).is_deleted().to_string(),
            Verb::Counts => {
                let (usage, external) = buffer!(at_a).hold_counts();
                format!("{usage},{external}")
            }
            Verb::Load => {
                let like = get(&self.buffers[at_b]);
                let loaded = load(c, like.as_ref(), &self.client.devices()[0]);
                answer(loaded.map(|loaded| drop(put(&self.programs[at_a], Some(loaded)))))
            }
            Verb::Run | Verb::Execute => self.run(op),
            Verb::Quiesce => match get(&self.programs[at_a]) {
                Some(program) => self.quiesce(&program),
                None => none(),
            },
            Verb::DropProgram => emptied(&self.programs[at_a]),
            Verb::Look | Verb::End => unreachable!("these are settled"),
        }
    }

    fn run(&self, op: Op) -> String {
        let Some(program) = get(&self.programs[usize::from(op.args[0])]) else { return "none".into() };
        let signature = program.executable().program().signature();
        let (slots, first_output) = match op.verb {
            Verb::Run => (&op.args[1..2], 2),
            _ => (&op.args[1..=signature.parameters.len()], 3),
        };
        let arguments: Option<Vec<Buffer>> = slots.iter().map(|&slot| get(&self.buffers[usize::from(slot)])).collect();
        let Some(arguments) = arguments else { return "none".into() };
        let RunOptions { stream, keeps, caller_waits, gives } = RunOptions::of(op);
        let mut results = vec![None; signature.results.len()];
        results[0] = get(&self.buffers[usize::from(op.args[first_output])]).filter(|_| gives);
        let options = ExecuteOptions {
            non_donatable_input_indices: if keeps { &[0] } else { &[] },
            results: if gives { &results } else { &[] },
            execution_stream_id: i64::from(stream),
            caller_waits,
            ..ExecuteOptions::default()
        };
        match program.execute(&arguments, &options) {
            Ok(execution) => {
                for (output, &slot) in execution.outputs.into_iter().zip(&op.args[first_output..]) {
                    put(&self.buffers[usize::from(slot)], Some(output));
                }
                "ok".into()
            }
            Err(error) => text(&error),
        }
    }

    /// The model says that it is over in the end.
    fn quiesce(&self, program: &LoadedExecutable) -> String {
        let (idle, until) = (program.idle_event(), Instant::now() + Duration::from_secs(30));
        while !idle.is_ready() {
            if Instant::now() > until {
                return format!("{} runs do not end", program.runs_in_flight());
            }
            if let Some(driver) = &self.driver {
                driver.run_until_idle();
            }
            std::thread::yield_now();
        }
        answer(program.quiesce())
    }

    /// Writes a pattern after `event`.
    fn fill(&self, memory: &RawBuffer, seed: u8, event: &Event) -> Event {
        let source = HostMemory::of(&pattern(seed, memory.size_bytes()), 0);
        let after = std::slice::from_ref(event);
        // SAFETY: the source stays until the event (`keep`), unchanged; the memory is new, or free after `event`.
        let copied = unsafe { memory.copy_from_host(source.address, 0, memory.size_bytes(), after) };
        self.keep(&copied, &source);
        copied
    }

    fn array_from_host(&self, op: Op) -> String {
        let [slot, index, mode, seed, ..] = op.args;
        let index = shape_of(index);
        let of = SHAPES[index];
        let elements = pattern(seed, of.size_bytes());
        let is_turned = mode & 8 != 0 && of.can_turn();
        let (bytes, strides) = match is_turned {
            true => {
                let (rows, width) = (of.dims[0] as i64, of.width as i64);
                (turned(&elements, of.dims[0], of.dims[1], of.width), Some(vec![width, rows * width]))
            }
            false => (elements, None),
        };
        let offset = usize::from(mode & 16 != 0);
        let memory = HostMemory::of(&bytes, offset);
        let array = HostArray::new(&shape(index), strides.as_deref()).expect("sound strides");
        let semantics = match mode & 3 {
            0 => HostBufferSemantics::ImmutableOnlyDuringCall,
            1 => HostBufferSemantics::ImmutableUntilTransferCompletes,
            2 => HostBufferSemantics::ImmutableZeroCopy,
            _ => HostBufferSemantics::MutableZeroCopy,
        };
        let told = Arc::new(AtomicU8::new(0));
        let tell = Arc::clone(&told);
        let on_done: purlin_device::OnDone = Box::new(move |outcome: Result<(), Error>| {
            let word = if outcome.is_ok() { 1 } else { 2 };
            // A second call is an error too.
            let first = tell.swap(word, Ordering::AcqRel) == 0;
            if !first {
                tell.store(3, Ordering::Release);
            }
        });
        let layout = layout(index, mode & 4 != 0);
        let options = FromHostOptions { semantics, layout, alloc: AllocOptions::default(), on_done: Some(on_done) };
        self.aliased.lock().push((Arc::clone(&told), Arc::clone(&memory)));
        self.hosts.lock().push(told);
        let space = &self.spaces[usize::from(seed % 3)];
        // SAFETY: the memory stays until `on_done` is called (`aliased`); nothing writes it except users of a mutable
        // alias.
        let made = unsafe { Buffer::from_host_array(memory.address.add(offset), &array, space, options) };
        match made {
            Ok((buffer, aliasing)) => {
                self.made(slot, Ok(buffer));
                if aliasing == purlin_device::Aliasing::Aliased { "aliased" } else { "copied" }.into()
            }
            Err(error) => text(&error),
        }
    }

    fn look(&self) -> String {
        let mut line = String::new();
        let mut put = |name: &str, index: usize, text: String| _ = write!(line, "{name}{index}={text} ");
        for (index, slot) in self.buffers.iter().enumerate() {
            if let Some(buffer) = get(slot) {
                let gone = if buffer.is_deleted() { "gone" } else { "live" };
                let (usage, external) = buffer.hold_counts();
                put("b", index, format!("{gone},{},{usage},{external}", state(&buffer.ready_event())));
            }
        }
        for (index, slot) in self.promises.iter().enumerate() {
            if let Some(promise) = get(slot) {
                put("p", index, state(&promise.event()));
            }
        }
        for (index, slot) in self.usages.iter().enumerate() {
            if let Some(hold) = &*slot.lock() {
                put("u", index, state(&hold.ready_event()));
            }
        }
        for (index, slot) in self.externals.iter().enumerate() {
            if let Some(hold) = &*slot.lock() {
                put("x", index, state(&hold.ready_event()));
            }
        }
        for (index, slot) in self.donations.iter().enumerate() {
            if let Some(hold) = &*slot.lock() {
                put("d", index, format!("{},{}", state(&hold.ready_event()), state(&hold.free_event())));
            }
        }
        for (index, slot) in self.given.iter().enumerate() {
            if let Some((_, free)) = get(slot) {
                put("m", index, state(&free));
            }
        }
        for (index, slot) in self.reads.iter().enumerate() {
            if let Some((copied, memory)) = get(slot) {
                let seen = match copied.state() {
                    // SAFETY: the copy is over.
                    EventState::Ready => format!("h{:08x}", unsafe { memory.hash() }),
                    _ => state(&copied),
                };
                put("r", index, seen);
            }
        }
        for (index, slot) in self.programs.iter().enumerate() {
            if let Some(program) = get(slot) {
                put("e", index, program.runs_in_flight().to_string());
            }
        }
        line.push_str("h=");
        let hosts = self.hosts.lock();
        line.extend(hosts.iter().map(|told| ['p', 'r', 'e', 't'][usize::from(told.load(Ordering::Acquire))]));
        let _ = write!(line, " mem={}", self.bytes_in_use());
        line
    }

    fn holds_something(&self, thread: u8) -> bool {
        fn any<T>(slots_of: &Slots<T>, arg: Arg, thread: u8) -> bool {
            let (shared, own) = slots(arg);
            (shared + thread * own..shared + (thread + 1) * own)
                .any(|slot| slots_of[usize::from(slot)].lock().is_some())
        }
        any(&self.usages, Arg::Usage, thread) || any(&self.donations, Arg::Donation, thread)
    }
}

impl Drop for Real {
    fn drop(&mut self) {
        // What copies still use is leaked.
        self.clear();
    }
}

impl RustSubject {
    /// Without a world; `begin` makes one.
    #[must_use]
    pub fn new() -> Self {
        Self { world: Real::new(Backend::Host), backend: Backend::Host }
    }
}

impl Default for RustSubject {
    fn default() -> Self {
        Self::new()
    }
}

impl Subject for RustSubject {
    fn begin(&mut self, backend: Backend) {
        let clean = self.world.clear();
        let can_stay = match (self.backend, backend) {
            (Backend::Host, Backend::Host) | (Backend::Cuda(_), Backend::Cuda(_)) => clean,
            _ => false,
        };
        if !can_stay {
            self.world = Real::new(backend);
        }
        if let (Backend::Cuda(seed), Some(cuda)) = (backend, &self.world.cuda) {
            cuda.control.set_delays(seed, MOST_DELAY_US);
            _ = cuda.control.take_reports();
        }
        self.backend = backend;
    }

    fn apply(&mut self, op: Op) -> String {
        self.world.apply(op)
    }

    fn settle(&mut self, end: bool, wanted: &[String], patience: Duration) -> Result<usize, String> {
        if end {
            self.world.empty_slots();
        }
        let until = Instant::now() + patience;
        loop {
            if let Some(driver) = &self.world.driver {
                driver.run_until_idle();
            }
            let seen = self.world.look();
            if let Some(cuda) = self.world.cuda.as_ref().filter(|cuda| cuda.control.report_count() > 0) {
                return Err(format!("{seen}, and the detector says: {}", cuda.control.reports().join("; ")));
            }
            if let Some(index) = wanted.iter().position(|wanted| *wanted == seen) {
                return Ok(index);
            }
            if Instant::now() > until {
                return Err(seen);
            }
            std::thread::yield_now();
        }
    }

    fn side_by_side(&mut self, ops: [&[Op]; 2]) -> [Vec<String>; 2] {
        let (world, arrived) = (&self.world, &AtomicUsize::new(0));
        let run = |thread: u8, ops: &[Op]| -> Vec<String> {
            arrived.fetch_add(1, Ordering::AcqRel);
            let mut looks = 0;
            while arrived.load(Ordering::Acquire) < 2 {
                looks += 1;
                // On a machine that is busy otherwise, the other one needs this core.
                if looks > 1000 { std::thread::yield_now() } else { std::hint::spin_loop() }
            }
            let answer = |&op: &Op| match may_wait(op) && world.holds_something(thread) {
                true => "held".into(),
                false => world.apply(op),
            };
            ops.iter().map(answer).collect()
        };
        std::thread::scope(|scope| {
            let other = scope.spawn(|| run(1, ops[1]));
            [run(0, ops[0]), other.join().expect("operations do not panic")]
        })
    }
}

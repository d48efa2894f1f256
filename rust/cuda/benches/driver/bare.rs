//! The driver without Purlin: a stream and events of its own in the GPU's primary context.

use std::ffi::{CString, c_void};
use std::ptr;

use cudarc::driver::sys::{CUevent, CUfunction, CUgraphExec, CUmodule, CUstream, culib};

use crate::column::Column;

/// The entry points, as the crate looks them up.
#[allow(dead_code, reason = "the crate's table, of which a part is used here")]
#[path = "../../src/api.rs"]
mod api;

use api::{Api, Graphs, Pools, ResultCode};

/// `CU_STREAM_NON_BLOCKING`, `CU_EVENT_DISABLE_TIMING` and `CU_STREAM_CAPTURE_MODE_THREAD_LOCAL`.
const NON_BLOCKING: u32 = 1;
const WITHOUT_TIME: u32 = 2;
const THREAD_LOCAL: u32 = 1;
const NOT_READY: ResultCode = 600;

api::group! {
    /// What Purlin does not use.
    Others {
        synchronize_event = "cuEventSynchronize"(CUevent);
        call_host = "cuLaunchHostFunc"(CUstream, HostFunction, *mut c_void);
    }
}

/// What the driver calls when a stream has come so far.
pub(crate) type HostFunction = unsafe extern "C" fn(*mut c_void);

/// See the module. Its context is current on the thread that has made it.
pub(crate) struct Bare {
    api: Api,
    others: Others,
    streams: [CUstream; 2],
    events: Vec<CUevent>,
    module: CUmodule,
    pub(crate) kernel: CUfunction,
}

/// Adds 1 to a word.
pub(crate) const ADD_ONE: &str = "
.version 7.0
.target sm_75
.address_size 64

.visible .entry add_one(
	.param .u64 add_one_param_0
)
{
	.reg .b32 %r<3>;
	.reg .b64 %rd<3>;

	ld.param.u64 %rd1, [add_one_param_0];
	cvta.to.global.u64 %rd2, %rd1;
	ld.global.u32 %r1, [%rd2];
	add.s32 %r2, %r1, 1;
	st.global.u32 [%rd2], %r2;
	ret;
}
";

#[track_caller]
fn check(code: ResultCode) {
    assert_eq!(code, 0, "CUDA's driver answers {code}");
}

impl Bare {
    /// How many events it has.
    pub(crate) const EVENTS: usize = 16;

    pub(crate) fn new() -> Self {
        // SAFETY: a backend was made, so there is a driver.
        let api = unsafe { Api::of_library() }.expect("the driver that the backend has");
        // SAFETY: as above; the types are those of the manual, and the library is never unloaded.
        let others = unsafe { Others::of(culib()) }.expect("what every driver has");
        let (base, mut device, mut context) = (&api.base, 0, ptr::null_mut());
        // SAFETY: each writes a handle to a place of this frame; the context is released by end().
        unsafe {
            check((base.device)(&mut device, 0));
            check((base.retain_context)(&mut context, device));
            check((base.set_current_context)(context));
        }
        let streams = [(); 2].map(|()| {
            let mut stream = ptr::null_mut();
            // SAFETY: as above; destroyed by end().
            check(unsafe { (base.create_stream)(&mut stream, NON_BLOCKING) });
            stream
        });
        let event = |_| {
            let mut event = ptr::null_mut();
            // SAFETY: as above.
            check(unsafe { (base.create_event)(&mut event, WITHOUT_TIME) });
            event
        };
        let events = (0..Self::EVENTS).map(event).collect();
        let (mut module, mut kernel) = (ptr::null_mut(), ptr::null_mut());
        let code = CString::new(ADD_ONE).expect("text without a zero");
        // SAFETY: the text ends with a zero; the handles are written to places of this frame, and end() unloads.
        unsafe {
            check((base.load_module)(&mut module, code.as_ptr().cast(), 0, ptr::null_mut(), ptr::null_mut()));
            check((base.function)(&mut kernel, module, c"add_one".as_ptr()));
        }
        Self { api, others, streams, events, module, kernel }
    }

    /// Nothing of it is in flight.
    pub(crate) fn end(self) {
        let base = &self.api.base;
        // SAFETY: the handles are this one's, and nobody has them any more.
        unsafe {
            self.events.iter().for_each(|&event| check((base.destroy_event)(event)));
            self.streams.iter().for_each(|&stream| check((base.destroy_stream)(stream)));
            check((base.unload_module)(self.module));
            check((base.set_current_context)(ptr::null_mut()));
            check((base.release_context)(0));
        }
    }

    pub(crate) fn pools(&self) -> Option<Pools> {
        self.api.pools
    }

    pub(crate) fn stream(&self) -> CUstream {
        self.streams[0]
    }

    /// A column for each way to wait for what `work` enqueues on the stream.
    pub(crate) fn waited<'a>(&'a self, work: impl Fn() + Copy + 'a) -> [Column<'a>; 3] {
        let record = move || {
            work();
            self.record(0);
        };
        [
            Column::new("driver, event asked", move || {
                record();
                self.spin(0);
            }),
            Column::new("driver, event waited", move || {
                record();
                self.wait(0);
            }),
            Column::new("driver, stream waited", move || {
                work();
                // SAFETY: the handle is this one's.
                check(unsafe { (self.api.base.synchronize_stream)(self.stream()) });
            }),
        ]
    }

    pub(crate) fn record(&self, event: usize) {
        // SAFETY: both handles are this one's.
        check(unsafe { (self.api.base.record_event)(self.events[event], self.stream()) });
    }

    /// Whether it has happened.
    pub(crate) fn query(&self, event: usize) -> bool {
        // SAFETY: the handle is this one's.
        match unsafe { (self.api.base.query_event)(self.events[event]) } {
            NOT_READY => false,
            code => {
                check(code);
                true
            }
        }
    }

    /// Asks until it has happened.
    pub(crate) fn spin(&self, event: usize) {
        while !self.query(event) {
            std::hint::spin_loop();
        }
    }

    pub(crate) fn wait(&self, event: usize) {
        // SAFETY: the handle is this one's.
        check(unsafe { (self.others.synchronize_event)(self.events[event]) });
    }

    pub(crate) fn synchronize(&self) {
        for stream in self.streams {
            // SAFETY: the handle is this one's.
            check(unsafe { (self.api.base.synchronize_stream)(stream) });
        }
    }

    /// # Safety
    /// Both ends have so many bytes and stay, and nothing else uses them, until the stream is waited for.
    pub(crate) unsafe fn to_device(&self, to: u64, from: *const u8, bytes: usize) {
        // SAFETY: the caller's promise.
        check(unsafe { (self.api.base.copy_to_device)(to, from.cast(), bytes, self.streams[0]) });
    }

    /// On the second stream, if `beside`.
    ///
    /// # Safety
    /// As [`to_device`](Self::to_device).
    pub(crate) unsafe fn to_host(&self, to: *mut u8, from: u64, bytes: usize, beside: bool) {
        // SAFETY: the caller's promise.
        check(unsafe { (self.api.base.copy_to_host)(to.cast(), from, bytes, self.streams[usize::from(beside)]) });
    }

    /// # Safety
    /// As [`to_device`](Self::to_device).
    pub(crate) unsafe fn within(&self, to: u64, from: u64, bytes: usize) {
        // SAFETY: the caller's promise.
        check(unsafe { (self.api.base.copy_within)(to, from, bytes, self.streams[0]) });
    }

    /// Zeros, when it returns.
    ///
    /// # Safety
    /// There are so many bytes, and nothing else uses them.
    pub(crate) unsafe fn clear(&self, at: u64, bytes: usize) {
        // SAFETY: the caller's promise.
        check(unsafe { (self.api.base.fill_bytes)(at, 0, bytes, self.streams[0]) });
        self.synchronize();
    }

    /// The bytes that are there.
    ///
    /// # Safety
    /// There are so many, and nothing writes them.
    pub(crate) unsafe fn read(&self, at: u64, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        // SAFETY: the caller's promise; the bytes are waited for here.
        unsafe { self.to_host(bytes.as_mut_ptr(), at, count, false) };
        self.synchronize();
        bytes
    }

    /// [`ADD_ONE`], once.
    ///
    /// # Safety
    /// A word of the GPU is there and stays, and nothing else uses it, until the stream is waited for.
    pub(crate) unsafe fn add_one(&self, word: u64) {
        let mut word = word;
        let mut arguments = [ptr::from_mut(&mut word).cast::<c_void>()];
        // SAFETY: the kernel has one parameter of eight bytes, which the driver copies inside the call; the rest is the
        // caller's promise.
        check(unsafe {
            let (stream, none) = (self.streams[0], ptr::null_mut());
            (self.api.base.launch)(self.kernel, 1, 1, 1, 1, 1, 1, 0, stream, arguments.as_mut_ptr(), none)
        });
    }

    /// Has the driver call `function` when the stream has come so far.
    ///
    /// # Safety
    /// It may be called with `data`, until the stream is waited for.
    pub(crate) unsafe fn call_host(&self, function: HostFunction, data: *const c_void) {
        // SAFETY: the caller's promise.
        check(unsafe { (self.others.call_host)(self.stream(), function, data.cast_mut()) });
    }

    /// What `work` enqueues, as a graph. `None`: the driver has none.
    pub(crate) fn graph(&self, work: impl FnOnce()) -> Option<Graph<'_>> {
        let api = self.api.graphs?;
        let (mut graph, mut executable) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: the stream is this one's, and the handles are written to places of this frame.
        unsafe {
            check((api.begin_capture)(self.stream(), THREAD_LOCAL));
            work();
            check((api.end_capture)(self.stream(), &mut graph));
            check((api.instantiate)(&mut executable, graph, 0));
            check((api.destroy)(graph));
        }
        Some(Graph { api, bare: self, executable })
    }
}

/// A graph that can be launched.
pub(crate) struct Graph<'a> {
    api: Graphs,
    bare: &'a Bare,
    executable: CUgraphExec,
}

impl Graph<'_> {
    /// # Safety
    /// As for what was recorded.
    pub(crate) unsafe fn launch(&self) {
        // SAFETY: the handle is this one's; the rest is the caller's promise.
        check(unsafe { (self.api.launch)(self.executable, self.bare.stream()) });
    }
}

impl Drop for Graph<'_> {
    fn drop(&mut self) {
        // SAFETY: the handle is this one's, and its launches were waited for.
        check(unsafe { (self.api.destroy_executable)(self.executable) });
    }
}

//! Workgroups and commands on several threads: results, errors and the floating-point mode are those of one thread.

#![allow(unsafe_code, reason = "kernels are functions that take addresses")]

mod fixture;

use std::collections::HashSet;
use std::ffi::c_void;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, ThreadId};
use std::time::Duration;

use fixture::*;
use purlin_base::{Error, StatusCode};
use purlin_device::Buffer;
use purlin_program::{
    Command, ExecuteOptions, Kernel, KernelFrame, KernelFunction, LibraryCall, LibraryContext, Operand, OperandBytes,
    Program, ProgramBuilder, Sequence,
};

/// Writes the number of the workgroup to that byte.
unsafe extern "C" fn number(frame: *const KernelFrame) -> *mut c_void {
    // SAFETY: the frame has one operand, with a byte for each workgroup of a grid of 2 x 3 x n.
    unsafe {
        let id = *(*frame).id;
        let at = id.x + 2 * (id.y + 3 * id.z);
        *(*(*frame).args).data.cast::<u8>().add(at as usize) = at as u8;
    }
    std::ptr::null_mut()
}

/// Writes 1 to the byte of the workgroup if denormal numbers are zero.
unsafe extern "C" fn flushes(frame: *const KernelFrame) -> *mut c_void {
    let is_zero = black_box(f32::MIN_POSITIVE) * black_box(0.5) == 0.0;
    // SAFETY: the frame has one operand, with a byte for each workgroup.
    unsafe { *(*(*frame).args).data.cast::<u8>().add((*(*frame).id).x as usize) = u8::from(is_zero) };
    std::ptr::null_mut()
}

/// Fails in each odd workgroup.
unsafe extern "C" fn odd(frame: *const KernelFrame) -> *mut c_void {
    // SAFETY: the frame has a workgroup.
    std::ptr::without_provenance_mut(unsafe { (*(*frame).id).x as usize } % 2)
}

fn native(function: KernelFunction) -> Kernel {
    // SAFETY: the functions of this file access their operands alone, each workgroup its own byte, and are never
    // unmapped.
    unsafe { Kernel::native("native", function, Arc::new(())) }
}

fn grid(function: KernelFunction, workgroups: [u64; 3]) -> Program {
    let mut builder = ProgramBuilder::new("grid");
    let y = builder.result(bytes(workgroups.iter().product::<u64>() as usize));
    builder.push(Command::Kernel { kernel: native(function), workgroups, operands: vec![Operand::write(y)] });
    builder.parallel_from_bytes(0);
    builder.build().unwrap()
}

fn run(program: Program) -> Result<Vec<u8>, Error> {
    let client = host();
    let execution = load(&client, program).execute::<Buffer>(&[], &ExecuteOptions::default()).unwrap();
    execution.done.wait()?;
    execution.outputs[0].to_vec()
}

#[test]
fn each_workgroup_is_called_once() {
    let expected: Vec<u8> = (0..2 * 3 * 40).collect();
    for _ in 0..50 {
        assert_eq!(run(grid(number, [2, 3, 40])).unwrap(), expected);
    }
}

#[test]
fn denormals_are_zero_on_each_thread_that_helps_and_numbers_after_it() {
    let client = host();
    let loaded = load(&client, grid(flushes, [200, 1, 1]));
    for _ in 0..50 {
        let execution = loaded.execute::<Buffer>(&[], &ExecuteOptions::default()).unwrap();
        assert_eq!(execution.outputs[0].to_vec::<u8>().unwrap(), [1; 200]);
    }
    let is_zero = || black_box(f32::MIN_POSITIVE) * black_box(0.5) == 0.0;
    let threads = AtomicUsize::new(0);
    let count = |range: std::ops::Range<usize>| {
        threads.fetch_add(usize::from(is_zero()) * range.len(), Ordering::Relaxed);
        Ok(())
    };
    use purlin_async::AsyncWorkRunner;
    client.devices()[0].runner().parallel_for(200, 1, &count).unwrap();
    assert_eq!((threads.into_inner(), is_zero()), (0, false));
}

#[test]
fn a_failing_workgroup_fails_the_run() {
    let error = run(grid(odd, [100, 1, 1])).unwrap_err();
    let message = "command 0 (kernel 'native') of 'grid': the kernel answered an error";
    assert_eq!((error.code(), error.message()), (StatusCode::Internal, message));
}

/// Kernels that return once `count` of them have begun, and record their threads.
#[derive(Default)]
struct Meeting {
    begun: Mutex<HashSet<ThreadId>>,
    all: Condvar,
}

impl Meeting {
    fn kernel(self: &Arc<Self>, count: usize) -> Kernel {
        let meeting = Arc::clone(self);
        Kernel::from_fn("meets", move |call| {
            let mut begun = meeting.begun.lock().unwrap();
            begun.insert(thread::current().id());
            meeting.all.notify_all();
            let patience = Duration::from_secs(60);
            let met = meeting.all.wait_timeout_while(begun, patience, |begun| begun.len() < count).unwrap();
            if met.1.timed_out() {
                return Err(Error::deadline_exceeded("the other kernel has not begun"));
            }
            drop(met);
            call.writes[0].fill(1);
            Ok(())
        })
    }
}

/// The two kernels wait for each other.
#[test]
fn independent_commands_run_side_by_side() {
    let meeting = Arc::new(Meeting::default());
    let mut builder = ProgramBuilder::new("meets");
    let (x, y) = (builder.temporary(8), builder.result(bytes(8)));
    for to in [x, y] {
        builder.push(kernel(meeting.kernel(2), vec![Operand::write(to)]));
    }
    builder.parallel_from_bytes(0);
    assert_eq!(run(builder.build().unwrap()).unwrap(), [1; 8]);
    assert_eq!(meeting.begun.lock().unwrap().len(), 2);
}

/// A command that depends on an earlier one runs after it, in whatever sequence the dependency is.
#[test]
fn dependent_commands_run_in_their_order() {
    let mut builder = ProgramBuilder::new("chain");
    let (x, y) = (builder.temporary(64), builder.result(bytes(64)));
    builder.push(Command::Fill { pattern: vec![1], to: x });
    builder.push(Command::Call(Sequence::new(vec![add_to(x, y, 1)])));
    builder.push(Command::Repeat { trip_count: 3, body: vec![add_to(y, x, 1), add_to(x, y, 1)].into() });
    builder.push(Command::Fill { pattern: vec![7], to: x });
    builder.parallel_from_bytes(0);
    let program = builder.build().unwrap();
    for _ in 0..50 {
        assert_eq!(run(program.clone()).unwrap(), [8; 64]);
    }
}

fn failing(name: &str, panics: bool) -> Kernel {
    let name_of = name.to_owned();
    Kernel::from_fn(name, move |_| {
        assert!(!panics, "{name_of} on purpose");
        Err(Error::aborted(format!("{name_of} fails")))
    })
}

/// Command 3 fails in the first wave, and command 1 in the second one.
#[test]
fn the_first_failing_command_counts() {
    for panics in [false, true] {
        let program = |from_bytes: usize| {
            let mut builder = ProgramBuilder::new("fails");
            let (x, y) = (builder.temporary(8), builder.result(bytes(8)));
            builder.push(Command::Fill { pattern: vec![0], to: x });
            builder.push(kernel(failing("second", panics), vec![Operand::read_write(x)]));
            builder.push(Command::Fill { pattern: vec![0], to: y });
            builder.push(kernel(failing("first", false), vec![]));
            builder.parallel_from_bytes(from_bytes);
            builder.build().unwrap()
        };
        let expected = run(program(usize::MAX)).unwrap_err();
        let parts: &[&str] = if panics { &["'fails'", "second on purpose"] } else { &["command 1 (", "second fails"] };
        assert_error(&expected, expected.code(), parts);
        for _ in 0..50 {
            assert_eq!(run(program(0)).unwrap_err(), expected);
        }
    }
}

/// A call with a state, which must not run twice at once.
#[derive(Debug)]
struct Counter {
    is_running: Arc<AtomicBool>,
    is_pure: bool,
}

impl LibraryCall for Counter {
    fn name(&self) -> &str {
        "counter"
    }

    fn run(&self, operands: &[OperandBytes], _context: &LibraryContext<'_>) -> Result<(), Error> {
        if !self.is_pure && self.is_running.swap(true, Ordering::SeqCst) {
            return Err(Error::internal("two calls at once"));
        }
        thread::yield_now();
        // SAFETY: the operand of the one command that names this is written.
        unsafe { operands[0].address.write_bytes(1, operands[0].size_bytes) };
        self.is_running.store(false, Ordering::SeqCst);
        Ok(())
    }

    fn is_pure(&self) -> bool {
        self.is_pure
    }
}

#[test]
fn library_calls_keep_their_order_unless_they_are_pure() {
    for is_pure in [false, true] {
        let mut builder = ProgramBuilder::new("counts");
        let is_running = Arc::new(AtomicBool::new(false));
        let y = builder.result(bytes(8));
        for offset_bytes in 0..8 {
            let to = purlin_program::Slice { offset_bytes, size_bytes: 1, ..y };
            let call = Arc::new(Counter { is_running: Arc::clone(&is_running), is_pure });
            builder.push(Command::Library { call, operands: vec![Operand::write(to)] });
        }
        builder.parallel_from_bytes(0);
        let program = builder.build().unwrap();
        for _ in 0..50 {
            assert_eq!(run(program.clone()).unwrap(), [1; 8]);
        }
    }
}

/// Runs whose commands are spread, started by tasks that keep all threads of the client busy.
#[test]
fn runs_on_busy_threads_do_not_block_each_other() {
    let client = host();
    let loaded = load(&client, grid(number, [2, 3, 40]));
    let dones: Vec<_> = (0..50)
        .map(|_| {
            let loaded = loaded.clone();
            purlin_async::future_on(client.devices()[0].runner(), c"run", move || {
                let options = ExecuteOptions { caller_waits: true, ..Default::default() };
                loaded.execute::<Buffer>(&[], &options).unwrap().done.wait()
            })
        })
        .collect();
    dones.iter().for_each(|done| _ = done.wait().unwrap());
}

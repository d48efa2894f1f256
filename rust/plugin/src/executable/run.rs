//! `PJRT_LoadedExecutable_Execute`: which arguments a run has, and where it runs.

use std::ffi::CStr;
use std::sync::Arc;

use purlin_async::{Event, UserContext, UserContextScope};
use purlin_base::{Error, StatusOr};
use purlin_device::Buffer;
use purlin_pjrt_abi::{self as abi, BufferDestroyArgs, ExecuteOptions, LoadedExecutableExecuteArgs};
use purlin_program as program;
use purlin_program::Execution;
use smallvec::SmallVec;
use tracing::trace_span;

use super::{Compiled, check, delegated};
use crate::answer::Answer;
use crate::buffer::{self, BufferObject};
use crate::handle::{lent, take};
use crate::options::Mode;
use crate::{event, ffi, read};

/// The cost of a small run: what takes as long as to copy as many bytes.
const SMALL_BYTES: usize = 16 << 20;

/// The arguments of one device.
pub(super) type Arguments<'a> = SmallVec<[&'a BufferObject; 8]>;

/// A run that was asked for.
pub(super) struct Run<'a> {
    pub(super) options: ExecuteOptions,
    pub(super) arguments: SmallVec<[Arguments<'a>; 1]>,
    /// Our device, if the caller names one.
    pub(super) device: Option<&'a crate::device::DeviceObject>,
    pub(super) keeps: SmallVec<[usize; 4]>,
    pub(super) context: Option<&'a ffi::ContextObject>,
}

impl Answer for LoadedExecutableExecuteArgs {
    unsafe fn answer(&mut self) -> Result<(), Error> {
        // SAFETY: the caller's promise, here and below.
        unsafe {
            let compiled = lent::<Self, _>(self.executable)?;
            compiled.check_alive()?;
            let location = read::nested(self.options.cast_const())?.call_location;
            let location = if location.is_null() { c"" } else { CStr::from_ptr(location) }.to_string_lossy();
            if location.is_empty() {
                return self.run(compiled);
            }
            let _scope = UserContextScope::new(UserContext::new(location.clone().into_owned()));
            self.run(compiled).map_err(|error| error.prefixed(location))
        }
    }
}

/// # Errors
/// `InvalidArgument`, naming both: an argument that is donated is given twice.
fn check_given_once(compiled: &Compiled, list: &[&BufferObject], gives: impl Fn(usize) -> bool) -> Result<(), Error> {
    if !compiled.donated.iter().any(|&index| gives(index)) {
        return Ok(());
    }
    // Sorted, because a model may donate a thousand arguments.
    let mut known: SmallVec<[(usize, usize); 16]> =
        list.iter().enumerate().map(|(index, argument)| (argument.array.identity(), index)).collect();
    known.sort_unstable();
    for same in known.chunk_by(|one, next| one.0 == next.0).filter(|same| same.len() > 1) {
        let Some(&(_, donated)) = same.iter().find(|(_, index)| gives(*index)) else { continue };
        let Some(&(_, other)) = same.iter().find(|(_, index)| *index != donated) else { continue };
        return Err(Error::invalid_argument(format!(
            "'{}' was not run: arguments {donated} and {other} are the same buffer, {:?}, and argument {donated} is donated: it cannot \
             be used twice in one call",
            compiled.label, list[donated].array
        )));
    }
    Ok(())
}

impl Run<'_> {
    /// Whether an argument is the program's from now on.
    pub(super) fn gives(&self, compiled: &Compiled, index: usize) -> bool {
        compiled.donated.binary_search(&index).is_ok() && !self.keeps.contains(&index)
    }
}

/// The steps of the function.
trait Steps {
    unsafe fn run(&self, compiled: &Arc<Compiled>) -> Result<(), Error>;
    unsafe fn read<'a>(&self, compiled: &'a Compiled) -> StatusOr<Run<'a>>;
}

impl Steps for LoadedExecutableExecuteArgs {
    /// # Errors
    /// As [`read`](Self::read), and as the run.
    unsafe fn run(&self, compiled: &Arc<Compiled>) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe {
            let run = self.read(compiled)?;
            if self.num_devices == 0 {
                return Ok(());
            }
            let lists = read::list("output_lists", self.output_lists, self.num_devices)?;
            if lists.iter().any(|list| list.is_null()) && compiled.output_count() > 0 {
                return Err(Error::invalid_argument("PJRT_LoadedExecutable_Execute: a list for results is null"));
            }
            match (&compiled.native, compiled.platform.mode) {
                (Ok(native), mode) if mode != Mode::Check || native.calls_python() => {
                    compiled.hand_over_native(compiled.run_native(&run)?, lists, self.device_complete_events);
                    Ok(())
                }
                (Ok(_), _) => compiled.run_both(&run, lists, self.device_complete_events),
                (_, _) => compiled.run_delegated(&run, lists, self.device_complete_events),
            }
        }
    }

    /// # Errors
    /// `InvalidArgument`: null, or a number of devices that the program does not have. `Unimplemented`: sends and
    /// receives.
    unsafe fn read<'a>(&self, compiled: &'a Compiled) -> StatusOr<Run<'a>> {
        // SAFETY: the caller's promise.
        unsafe {
            let options = read::nested(self.options.cast_const())?;
            if options.num_send_ops + options.num_recv_ops + options.num_hlo_output_callbacks > 0 {
                return Err(Error::unimplemented(format!(
                    "PJRT_LoadedExecutable_Execute: {} sends, {} receives, {} callbacks for values inside the program: a \
                     CPU has none",
                    options.num_send_ops, options.num_recv_ops, options.num_hlo_output_callbacks
                )));
            }
            let device = crate::handle::lent_if::<Self, _>(self.execute_device)?;
            let wanted = if device.is_some() { 1 } else { compiled.devices.len() };
            if self.num_devices != wanted {
                return Err(Error::invalid_argument(format!(
                    "PJRT_LoadedExecutable_Execute: arguments for {} devices; the program runs on {wanted}",
                    self.num_devices
                )));
            }
            let mut arguments = SmallVec::new();
            for &list in read::list("argument_lists", self.argument_lists, self.num_devices)? {
                let mut of_device = Arguments::new();
                for &argument in read::list("arguments", list, self.num_args)? {
                    of_device.push(lent::<Self, abi::Buffer>(argument)?);
                }
                arguments.push(of_device);
            }
            let mut keeps = SmallVec::new();
            let (first, count) = (options.non_donatable_input_indices, options.num_non_donatable_input_indices);
            for &index in read::list("non_donatable_input_indices", first, count)? {
                // A number that names no argument keeps none.
                keeps.extend(usize::try_from(index).ok().filter(|&index| index < self.num_args));
            }
            let context = crate::handle::lent_if::<Self, _>(options.context)?;
            let run = Run { options, arguments, device, keeps, context };
            for list in &run.arguments {
                check_given_once(compiled, list, |index| run.gives(compiled, index))?;
            }
            Ok(run)
        }
    }
}

/// Gives C the results of each device and, where it wants them, the events of their completion.
///
/// # Safety
/// As [`delegated::run`].
pub(super) unsafe fn hand_over<Results: IntoIterator<Item = *mut abi::Buffer>>(
    finished: impl IntoIterator<Item = (Results, Event)>,
    lists: &[*mut *mut abi::Buffer],
    events: *mut *mut abi::Event,
) {
    for (at, (results, done)) in finished.into_iter().enumerate() {
        for (index, result) in results.into_iter().enumerate() {
            // SAFETY: the caller's promise.
            unsafe { lists[at].add(index).write(result) };
        }
        if !events.is_null() {
            // SAFETY: the caller's promise.
            unsafe { events.add(at).write(event::give(done)) };
        }
    }
}

impl Compiled {
    /// # Safety
    /// As [`delegated::run`].
    unsafe fn hand_over_native(
        &self,
        executions: SmallVec<[Execution; 1]>,
        lists: &[*mut *mut abi::Buffer],
        events: *mut *mut abi::Event,
    ) {
        let given = executions.into_iter().map(|Execution { outputs, done, .. }| {
            (outputs.into_iter().map(|output| buffer::give(output, &self.platform)), done)
        });
        // SAFETY: the caller's promise.
        unsafe { hand_over(given, lists, events) };
    }

    /// Runs it by the plugin that compiles.
    ///
    /// # Errors
    /// As [`delegated::run`], naming the program.
    ///
    /// # Safety
    /// As [`delegated::run`].
    unsafe fn run_delegated(
        self: &Arc<Self>,
        run: &Run<'_>,
        lists: &[*mut *mut abi::Buffer],
        events: *mut *mut abi::Event,
    ) -> Result<(), Error> {
        let _span = trace_span!(target: "purlin", "delegated", program = %self.label).entered();
        // SAFETY: the caller's promise.
        unsafe { delegated::run(self, run, lists, events) }
            .map_err(|error| error.prefixed(format_args!("'{}' was not run", self.label)))
    }

    /// Runs it by both, one after the other; the results are Purlin's. Blocks until they are compared.
    ///
    /// # Errors
    /// `Internal`, naming program, device and result: they differ. Otherwise as either.
    ///
    /// # Safety
    /// As [`delegated::run`].
    unsafe fn run_both(
        self: &Arc<Self>,
        run: &Run<'_>,
        lists: &[*mut *mut abi::Buffer],
        events: *mut *mut abi::Event,
    ) -> Result<(), Error> {
        let keeps = (0..run.arguments.first().map_or(0, SmallVec::len)).collect();
        let keeping = Run { keeps, arguments: run.arguments.clone(), ..*run };
        let executions = self.run_native(&keeping)?;
        let mut theirs = vec![std::ptr::null_mut(); self.output_count() * executions.len()];
        let places = theirs.chunks_mut(self.output_count().max(1)).map(<[_]>::as_mut_ptr);
        let places: SmallVec<[*mut *mut abi::Buffer; 1]> = match self.output_count() {
            0 => smallvec::smallvec![std::ptr::null_mut(); executions.len()],
            _ => places.collect(),
        };
        // SAFETY: there is room for as many results.
        let delegated = unsafe { self.run_delegated(run, &places, std::ptr::null_mut()) };
        // What the caller has lent to the run, it takes back with an error.
        for execution in &executions {
            let _ = execution.done.wait();
        }
        delegated?;
        let mut outcome = Ok(());
        for (number, buffer) in theirs.into_iter().enumerate() {
            let (at, index) = (number / self.output_count(), number % self.output_count());
            // SAFETY: just made, and given up.
            let Some(theirs) = (unsafe { take::<BufferDestroyArgs, abi::Buffer>(buffer) })? else { continue };
            let what = format!("mode 'check', program '{}', device {at}, result {index}", self.name());
            outcome = outcome.and(check::same(&what, &executions[at].outputs[index], &theirs.array));
        }
        outcome?;
        // SAFETY: the caller's promise.
        unsafe { self.hand_over_native(executions, lists, events) };
        Ok(())
    }

    /// Runs it by Purlin.
    ///
    /// # Errors
    /// As [`program::LoadedExecutable::execute`].
    fn run_native(&self, run: &Run<'_>) -> StatusOr<SmallVec<[Execution; 1]>> {
        let native = self.native.as_ref().map_err(Clone::clone)?;
        let caller_waits = self.reads_before_it_returns(run);
        let options = program::ExecuteOptions {
            caller_waits,
            launch_id: run.options.launch_id,
            label: self.label,
            non_donatable_input_indices: &run.keeps,
            context: run.context.and_then(ffi::ContextObject::user_data),
            ..Default::default()
        };
        if let [arguments] = &run.arguments[..] {
            let arguments: SmallVec<[&Buffer; 8]> = arguments.iter().map(|argument| &argument.array).collect();
            let chosen = match run.device {
                Some(device) => Some(native.on(&device.device)?),
                None => None,
            };
            let loaded = chosen.as_ref().unwrap_or(&native.loaded);
            let execution = loaded.execute(&arguments, &options)?;
            if caller_waits && !execution.is_behind_others {
                // How it has ended, the results say.
                let _ = execution.done.wait();
            }
            self.end_donated(run);
            return Ok(smallvec::smallvec![execution]);
        }
        let shards: Vec<Vec<Buffer>> =
            run.arguments.iter().map(|shard| shard.iter().map(|argument| argument.array.clone()).collect()).collect();
        let executions = native.loaded.execute_sharded(&shards, &options)?;
        self.end_donated(run);
        Ok(executions.into())
    }

    /// Whether a run completes before its caller goes on: a small one, or one that only copies, of memory that is the
    /// caller's own. Callers such as `jax.numpy.array` rely on that, because XLA's CPU client does so. A run that has
    /// to wait for other work is not waited for.
    fn reads_before_it_returns(&self, run: &Run<'_>) -> bool {
        if !run.arguments.iter().flatten().any(|argument| argument.is_alias) {
            return false;
        }
        let Ok(native) = &self.native else { return false };
        let summary = native.loaded.executable().program().summary();
        let only_copies = summary.command_counts.keys().all(|&kind| kind == "copy");
        only_copies || summary.cost_bytes <= SMALL_BYTES
    }

    /// Deletes the donated arguments whose memory the program did not need: for their owner, they are gone all the
    /// same.
    pub(super) fn end_donated(&self, run: &Run<'_>) {
        for &index in self.donated.iter().filter(|&&index| run.gives(self, index)) {
            for argument in run.arguments.iter().filter_map(|arguments| arguments.get(index)) {
                argument.delete();
            }
        }
    }
}

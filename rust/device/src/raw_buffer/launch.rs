//! Starting launches: work that a crate above this one brings, on ranges of device memory, ordered as copies are.
//!
//! A launch is pending until its dependencies and the memory of its ranges are ready. Then the backend runs it, on a
//! thread of its choice or inside the call. Its event is terminal when it has completed or failed.

#![allow(unsafe_code, reason = "the caller of a launch promises which memory it accesses")]

use std::panic::Location;
use std::sync::Arc;

use smallvec::SmallVec;

use super::RawBuffer;
use crate::backend::{Access, INLINE_LIMIT_BYTES, Launch, LaunchInfo, Operation};
use crate::device::Device;
use purlin_async::event::{Event, EventState};
use purlin_base::fault::{self, Site};
use purlin_base::label::Label;
use purlin_base::status::{Error, StatusOr};

/// The order and the names of a launch.
///
/// ```
/// use purlin::LaunchOptions;
///
/// let options = LaunchOptions { label: c"step".into(), launch_id: 7, ..Default::default() };
/// assert!(options.dependencies.is_empty() && !options.caller_waits);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct LaunchOptions<'a> {
    /// The label of its event and its task.
    pub label: Label,
    /// A number that the caller chooses. Reports show it.
    pub launch_id: i32,
    /// Which of the device's streams for launches is to do it, where the device has several: what is on different ones
    /// may go on at once. Every number is good; one that the device has no stream for means the first.
    pub stream: u8,
    /// The estimated cost: as long as a copy of this many bytes takes. A launch that is small and ready runs inside the
    /// call.
    pub size_bytes: usize,
    /// The launch begins after all of these events, and when all memory is allocated. If one fails, the launch does not
    /// run, and its event fails with that error. If several fail, it is the error of the first.
    pub dependencies: &'a [Event],
    /// Whether the caller only waits until the event is terminal, so that the launch need not move to another thread.
    pub caller_waits: bool,
}

impl Device {
    /// Starts `launch` once for this device, on `ranges`, in this order. A range may be empty. The event is ready when
    /// the launch has completed. It fails with a dependency's error, with the error of the launch, or with
    /// `Unimplemented` if the backend cannot run launches. The memory of the ranges is kept alive until the event is
    /// terminal.
    ///
    /// # Errors
    /// After an error the launch never runs. `InvalidArgument`: a range belongs to another client, is to be written and
    /// was imported read-only, or is not what the [commands](Launch::commands) or the [flow](Launch::flow) of the
    /// launch need. `FailedPrecondition`: the client has shut down.
    ///
    /// # Safety
    /// From the moment when all dependencies are ready until the event is terminal, nothing else writes the ranges that
    /// the launch reads, and nothing else accesses the ranges that it writes. `launch` accesses no other device memory,
    /// and these ranges only as listed.
    #[track_caller]
    pub unsafe fn launch(
        &self,
        launch: Arc<dyn Launch>,
        ranges: &[(Access, &RawBuffer)],
        options: &LaunchOptions<'_>,
    ) -> StatusOr<Event> {
        let mut there: SmallVec<[Event; 4]> = SmallVec::new();
        let mut addresses = SmallVec::<[*mut u8; 64]>::new();
        let mut runs_here = self.runs_inside_call(options);
        for &(access, range) in ranges {
            self.check_range(access, range)?;
            let allocated = range.block.allocated();
            if allocated.state() != EventState::Ready {
                there.push(if access == Access::Write { range.writable() } else { allocated.clone() });
                runs_here = false;
            } else if runs_here {
                match range.host_pointer() {
                    Some(address) => addresses.push(address.as_ptr()),
                    None => runs_here = false,
                }
            }
        }
        fault::point(Site::StartCopy)?;
        if let Some(refusal) = self.instance().runner().in_flight().refusal() {
            return Err(refusal);
        }
        let device = u16::try_from(self.id()).expect("a client has at most 1024 devices");
        let info = LaunchInfo { label: options.label, launch_id: options.launch_id, device, stream: options.stream };
        if runs_here {
            // The memory needs no other reference than the caller's: nothing is left to do when this returns.
            // SAFETY: the caller's promise, which begins now: the dependencies are ready. The memory is there, at these
            // addresses of the host's.
            let outcome = fault::point(Site::RunWork).and_then(|()| unsafe { launch.launch(info, &addresses) });
            return Ok(outcome.map_or_else(Event::from_error, |()| Event::ready()));
        }
        let sizes = || ranges.iter().map(|&(access, range)| (access, range.size_bytes()));
        if let Some(commands) = launch.commands(device) {
            commands.check(sizes())?;
        } else if let Some(flow) = launch.flow(device) {
            flow.check(sizes())?;
        }
        let touched = ranges.iter().map(|&(access, range)| (access, range.whole_range()));
        let operation = Operation::launch(launch, info, touched, options.size_bytes);
        let place = Location::caller();
        let run =
            |dependencies: &[Event]| self.instance().run(place, operation, dependencies, options.caller_waits, None);
        if there.is_empty() {
            return Ok(run(options.dependencies));
        }
        Ok(run(&[options.dependencies, &there].concat()))
    }

    /// Whether a launch with these options runs inside the call, if its memory is there.
    #[inline]
    fn runs_inside_call(&self, options: &LaunchOptions<'_>) -> bool {
        (options.caller_waits || options.size_bytes <= INLINE_LIMIT_BYTES)
            && self.instance().backend().launches_inside_calls()
            && options.dependencies.iter().all(|dependency| dependency.state() == EventState::Ready)
    }

    fn check_range(&self, access: Access, range: &RawBuffer) -> Result<(), Error> {
        if !std::ptr::eq(range.space().instance(), self.instance()) {
            return Err(Error::invalid_argument(format!("{range:?} is of another client than {self}")));
        }
        if access == Access::Write { range.check_mutable() } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Client, ClientOptions, NullBackend};
    use purlin_base::status::StatusCode;

    struct Unreached;

    impl Launch for Unreached {
        fn name(&self) -> &str {
            "unreached"
        }

        unsafe fn launch(&self, _info: LaunchInfo, _addresses: &[*mut u8]) -> Result<(), Error> {
            unreachable!("the null backend launches nothing")
        }
    }

    fn device() -> Device {
        Client::new(&ClientOptions::default(), Arc::new(NullBackend::new())).unwrap().devices()[0].clone()
    }

    fn launch(on: &Device, ranges: &[(Access, &RawBuffer)]) -> Error {
        // SAFETY: nothing is launched.
        let launched = unsafe { on.launch(Arc::new(Unreached), ranges, &LaunchOptions::default()) };
        launched.map_or_else(|refusal| refusal, |event| event.error().unwrap())
    }

    #[test]
    fn the_null_backend_launches_nothing() {
        let error = launch(&device(), &[]);
        assert_eq!(error.code(), StatusCode::Unimplemented);
        assert!(error.message().contains("launch 0 of 'unreached'"), "{error}");
    }

    #[test]
    fn ranges_are_of_one_client_and_writable() {
        let (device, other) = (device(), device());
        let memory = RawBuffer::allocate(&other.default_memory_space(), 8).unwrap();
        let error = launch(&device, &[(Access::Read, &memory)]);
        assert_eq!(error.message(), "RawBuffer([0, 8) in null:0/device) is of another client than null:0");
        let bytes: &'static mut [u64] = Box::leak(vec![0; 8].into_boxed_slice());
        let (space, address) = (device.default_memory_space(), bytes.as_mut_ptr().cast());
        // SAFETY: the memory is never freed, and no other code uses it.
        let read_only = unsafe { RawBuffer::import(&space, address, 64, crate::Mutability::Immutable, None) }.unwrap();
        let error = launch(&device, &[(Access::Read, &read_only), (Access::Write, &read_only)]);
        assert!(error.message().ends_with("may not be written: it was imported read-only"), "{error}");
    }
}

//! Launches: work that a room above does on ranges of device memory, ordered as copies are.

#![allow(unsafe_code, reason = "who asks for a launch promises what it touches")]

use std::sync::Arc;

use smallvec::SmallVec;

use super::RawBuffer;
use crate::backend::{Access, Launch, LaunchInfo, Operation};
use crate::device::Device;
use purlin_async::event::{Event, EventState};
use purlin_base::fault::{self, Site};
use purlin_base::label::Label;
use purlin_base::status::{Error, StatusOr};

/// How a launch is ordered, and what it is called.
///
/// ```
/// use purlin::LaunchOptions;
///
/// let options = LaunchOptions { label: c"step".into(), launch_id: 7, ..Default::default() };
/// assert!(options.dependencies.is_empty() && !options.caller_waits);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct LaunchOptions<'a> {
    /// Of its event and its task.
    pub label: Label,
    /// A number of the caller's, for reports.
    pub launch_id: i32,
    /// It takes as long as a copy of so many bytes: what is small and ready happens inside the call.
    pub size_bytes: usize,
    /// It begins after all of them, and when all memory is there; if one fails, it does not happen, and its event has
    /// that error: of several, the first.
    pub dependencies: &'a [Event],
    /// The caller does nothing else before the event is terminal: a hop to another thread gains nothing.
    pub caller_waits: bool,
}

impl Device {
    /// Has `launch` done, once, for this device on `ranges`, which the launch gets in this order; any of them may be
    /// empty. The event says when it is over, or why it will not be: it fails with a dependency's error, with that of
    /// the launch, and with `Unimplemented` where the backend cannot do it. The memory of the ranges is kept until
    /// then.
    ///
    /// # Errors
    /// Nothing is done then, now or later. `InvalidArgument`: a range of another client, or one that is to be written
    /// and was imported read-only. `FailedPrecondition`: the client has shut down.
    ///
    /// # Safety
    /// From the moment when the dependencies have happened until the event is terminal, nothing else writes the ranges
    /// that are read, and nothing else touches those that are written. Of device memory `launch` touches these only,
    /// and so.
    pub unsafe fn launch(
        &self,
        launch: Arc<dyn Launch>,
        ranges: &[(Access, &RawBuffer)],
        options: &LaunchOptions<'_>,
    ) -> StatusOr<Event> {
        let mut there: SmallVec<[Event; 4]> = SmallVec::new();
        for &(access, range) in ranges {
            self.check_range(access, range)?;
            let allocated = range.block.allocated();
            if allocated.state() != EventState::Ready {
                there.push(if access == Access::Write { range.writable() } else { allocated.clone() });
            }
        }
        fault::point(Site::StartCopy)?;
        if let Some(refusal) = self.instance().runner().in_flight().refusal() {
            return Err(refusal);
        }
        let device = u16::try_from(self.id()).expect("a client has at most 1024 devices");
        let info = LaunchInfo { label: options.label, launch_id: options.launch_id, device };
        let touched = ranges.iter().map(|&(access, range)| (access, range.whole_range()));
        let operation = Operation::launch(launch, info, touched, options.size_bytes);
        let run = |dependencies: &[Event]| self.instance().run(operation, dependencies, options.caller_waits);
        if there.is_empty() {
            return Ok(run(options.dependencies));
        }
        Ok(run(&[options.dependencies, &there].concat()))
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

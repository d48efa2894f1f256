//! What a backend is asked to do: some work, and the ranges of device memory that it touches.
//!
//! An operation owns what it touches: as long as it lives, so does the memory of its ranges. It is made by core only,
//! so its sizes can be trusted.

use std::fmt;
use std::mem;
use std::sync::Arc;

use smallvec::SmallVec;

use super::move_bytes::move_bytes;
use super::{Access, DeviceRange, Gated, HostDestination, HostSource, IdleWorkers, Launch, LaunchInfo};
use purlin_array::strided::StridedPlan;
use purlin_base::fault::Site;
use purlin_base::label::Label;
use purlin_base::status::Error;
use purlin_base::sync::PinnedArc;

/// The ranges of an operation. Most have one or two, and those are in place: they are moved as often as the operation.
enum Ranges {
    None,
    One(Access, DeviceRange),
    /// The first is read, the second written.
    Two([DeviceRange; 2]),
    Many(Vec<(Access, DeviceRange)>),
    /// What is left of two, of which one was released.
    Rest(Access, DeviceRange),
}

impl Ranges {
    /// As many as there are, in place if that is possible.
    fn of(mut ranges: impl ExactSizeIterator<Item = (Access, DeviceRange)>) -> Self {
        match ranges.len() {
            0 => Self::None,
            1 => ranges.next().map_or(Self::None, |(access, range)| Self::One(access, range)),
            2 => match (ranges.next(), ranges.next()) {
                (Some((Access::Read, from)), Some((Access::Write, to))) => Self::Two([from, to]),
                (first, second) => Self::Many(first.into_iter().chain(second).collect()),
            },
            _ => Self::Many(ranges.collect()),
        }
    }

    #[inline]
    fn get(&self, at: usize) -> Option<(Access, &DeviceRange)> {
        match (self, at) {
            (Self::One(access, range) | Self::Rest(access, range), 0) => Some((*access, range)),
            (Self::Two([from, _]), 0) => Some((Access::Read, from)),
            (Self::Two([_, to]), 1) => Some((Access::Write, to)),
            (Self::Many(ranges), _) => ranges.get(at).map(|(access, range)| (*access, range)),
            _ => None,
        }
    }
}

/// What is to be done with the ranges of an [`Operation`].
///
/// See the example of [`Backend`](super::Backend).
#[non_exhaustive]
pub enum Work {
    /// Bytes of the host to range 0, which is written.
    CopyFromHost(HostSource),
    /// The bytes of range 0, which is read, to the host.
    CopyToHost(HostDestination),
    /// The bytes of range 0, which is read, to range 1, which is written and as long. Both are of one client, and may
    /// overlap as for memmove.
    Copy,
    /// The elements of a strided array of the host to range 0, which is written: the bytes of all elements of the plan.
    /// Asked for only where the host [reaches](super::MemoryProperties::is_host_visible) the range, or its memory
    /// [takes strided arrays](super::MemoryProperties::takes_strided_arrays).
    Gather(HostSource, Box<StridedPlan>),
    /// The elements of range 0, which is read, to a strided array of the host. Asked for where `Gather` is.
    Scatter(Box<StridedPlan>, HostDestination),
    /// A function of the host's, of that name. What it touches beside the ranges is its own concern.
    Call(Label, HostCall),
    /// A call that has begun.
    Called(Label),
    /// What a room above does with the ranges, by their addresses. Where the host does not reach them all, its
    /// [commands](Launch::commands) are what the device can do.
    // Its info is in place, field by field, so that an operation is no larger than without it.
    Launch {
        /// What is to be done.
        launch: Arc<dyn Launch>,
        /// Of its event and its task.
        label: Label,
        /// The number that its caller gave it.
        launch_id: i32,
        /// The number of the device that it is for.
        device: u16,
        /// Which of the device's streams is meant to do it.
        stream: u8,
    },
}

/// A function that work on the host calls once.
pub type HostCall = Box<dyn FnOnce() -> Result<(), Error> + Send>;

impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CopyFromHost(..) => "CopyFromHost",
            Self::CopyToHost(..) => "CopyToHost",
            Self::Copy => "Copy",
            Self::Gather(..) => "Gather",
            Self::Scatter(..) => "Scatter",
            Self::Call(..) => "Call",
            Self::Called(..) => "Called",
            Self::Launch { .. } => "Launch",
        })
    }
}

/// What a backend is asked to do: some work, and the ranges of device memory that it touches.
///
/// See the example of [`Backend`](super::Backend).
pub struct Operation {
    ranges: Ranges,
    work: Work,
    size_bytes: usize,
}

impl Operation {
    /// A copy from the host to `to`, which is as long. Neither is empty.
    #[inline(always)]
    pub(crate) fn copy_from_host(from: HostSource, to: DeviceRange) -> Self {
        Self::of_one(Work::CopyFromHost(from), Access::Write, to)
    }

    /// A copy of `from` to the host. Neither is empty.
    #[inline(always)]
    pub(crate) fn copy_to_host(from: DeviceRange, to: HostDestination) -> Self {
        Self::of_one(Work::CopyToHost(to), Access::Read, from)
    }

    /// A copy of `from` to `to`. Both are equally long and not empty.
    #[inline(always)]
    pub(crate) fn copy(from: DeviceRange, to: DeviceRange) -> Self {
        let size_bytes = from.size_bytes();
        assert_eq!(size_bytes, to.size_bytes(), "RawBuffer::copy_to makes both ends equal");
        Self { ranges: Ranges::Two([from, to]), work: Work::Copy, size_bytes }
    }

    /// The elements of `plan` from the host to `to`, which has as many bytes as they are.
    pub(crate) fn gather(from: HostSource, plan: StridedPlan, to: DeviceRange) -> Self {
        Self::of_one(Work::Gather(from, Box::new(plan)), Access::Write, to)
    }

    /// The elements of `plan` in `from`, which has as many bytes as they are, to the host.
    pub(crate) fn scatter(from: DeviceRange, plan: StridedPlan, to: HostDestination) -> Self {
        Self::of_one(Work::Scatter(Box::new(plan), to), Access::Read, from)
    }

    /// A function of the host's that touches `ranges` and takes as long as a copy of `size_bytes`.
    pub(crate) fn call(
        label: impl Into<Label>,
        ranges: impl IntoIterator<Item = (Access, DeviceRange)>,
        size_bytes: usize,
        call: impl FnOnce() -> Result<(), Error> + Send + 'static,
    ) -> Self {
        let work = Work::Call(label.into(), Box::new(call));
        Self { ranges: Ranges::Many(ranges.into_iter().collect()), work, size_bytes }
    }

    /// A launch that touches `ranges` and takes as long as a copy of `size_bytes`.
    pub(crate) fn launch(
        launch: Arc<dyn Launch>,
        info: LaunchInfo,
        ranges: impl ExactSizeIterator<Item = (Access, DeviceRange)>,
        size_bytes: usize,
    ) -> Self {
        let LaunchInfo { label, launch_id, device, stream } = info;
        let work = Work::Launch { launch, label, launch_id, device, stream };
        Self { ranges: Ranges::of(ranges), work, size_bytes }
    }

    #[inline(always)]
    fn of_one(work: Work, access: Access, range: DeviceRange) -> Self {
        let size_bytes = range.size_bytes();
        Self { ranges: Ranges::One(access, range), work, size_bytes }
    }

    /// What is to be done.
    #[must_use]
    pub fn work(&self) -> &Work {
        &self.work
    }

    /// The device memory that it touches, any number of ranges, and how; none once it has released them. A range that
    /// is both read and written is there twice.
    pub fn ranges(&self) -> impl Iterator<Item = (Access, &DeviceRange)> {
        (0..).map_while(|at| self.ranges.get(at))
    }

    /// How many bytes are moved; of a call, what it takes as long as.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.size_bytes
    }

    /// Of its event and its task.
    #[must_use]
    pub fn label(&self) -> Label {
        match &self.work {
            Work::Call(label, _) | Work::Called(label) | Work::Launch { label, .. } => *label,
            _ => COPY,
        }
    }

    /// Does the work, with bytes that the host reaches: the first byte of a range is at `address` of it. A call is
    /// [`Work::Called`] from then on.
    ///
    /// # Errors
    /// That of a call or a launch; nothing else fails.
    ///
    /// # Safety
    /// The dependencies have happened and the event has not. `address` of a range is valid for as many bytes as that
    /// has, and for writes if it is written.
    #[inline]
    #[allow(unsafe_code, reason = "bytes are moved by address")]
    pub unsafe fn perform(&mut self, address: impl Fn(&DeviceRange) -> *mut u8) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe { self.perform_in_pieces(IdleWorkers::none(), address) }
    }

    /// As [`perform`](Self::perform); of a large copy, `idle` workers do pieces.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Safety
    /// As there.
    #[inline]
    #[allow(unsafe_code, reason = "bytes are moved by address")]
    pub unsafe fn perform_in_pieces(
        &mut self,
        idle: IdleWorkers<'_>,
        address: impl Fn(&DeviceRange) -> *mut u8,
    ) -> Result<(), Error> {
        let size_bytes = self.size_bytes;
        // SAFETY: ranges are as the caller promises. Host memory is kept by the caller that asked for the operation
        // until its event. Nothing else writes what is read or touches what is written meanwhile: that is the contract
        // of RawBuffer's copies. Both ends of a copy have `size_bytes` bytes, and may overlap, as `move_bytes` allows;
        // the plan's elements are as many bytes as the range.
        unsafe {
            match (&self.work, &self.ranges) {
                (Work::CopyFromHost(from), Ranges::One(_, to)) => {
                    return move_bytes(from.address(), address(to), size_bytes, idle);
                }
                (Work::CopyToHost(to), Ranges::One(_, from)) => {
                    return move_bytes(address(from).cast_const(), to.address(), size_bytes, idle);
                }
                (Work::Copy, Ranges::Two([from, to])) => {
                    return move_bytes(address(from).cast_const(), address(to), size_bytes, idle);
                }
                (Work::Gather(from, plan), Ranges::One(_, to)) => {
                    plan.gather(from.address(), address(to), plan.elements());
                }
                (Work::Scatter(plan, to), Ranges::One(_, from)) => {
                    plan.scatter(address(from).cast_const(), to.address(), plan.elements());
                }
                (Work::Call(..) | Work::Called(_), _) => return self.call_once(),
                (Work::Launch { .. }, _) => return self.launch_with(address),
                _ => unreachable!("each kind of work has its ranges, and is performed before they are released"),
            }
        }
        Ok(())
    }

    /// Calls the function, once.
    fn call_once(&mut self) -> Result<(), Error> {
        let called = Work::Called(self.label());
        match mem::replace(&mut self.work, called) {
            Work::Call(_, call) => call(),
            _ => Ok(()),
        }
    }

    /// Launches.
    ///
    /// # Safety
    /// As [`perform`](Self::perform).
    #[allow(unsafe_code, reason = "a launch gets addresses")]
    unsafe fn launch_with(&self, address: impl Fn(&DeviceRange) -> *mut u8) -> Result<(), Error> {
        let &Work::Launch { ref launch, label, launch_id, device, stream } = &self.work else {
            unreachable!("perform() has looked")
        };
        let mut addresses = SmallVec::<[*mut u8; 64]>::new();
        match &self.ranges {
            Ranges::Many(ranges) => addresses.extend(ranges.iter().map(|(_, range)| address(range))),
            _ => addresses.extend(self.ranges().map(|(_, range)| address(range))),
        }
        // SAFETY: the caller's promise; core has made the operation of ranges that its caller listed for this launch.
        unsafe { launch.launch(LaunchInfo { label, launch_id, device, stream }, &addresses) }
    }

    /// Where its execution can be made to fail.
    pub(super) fn fault_site(&self) -> Site {
        match &self.work {
            Work::CopyFromHost(..) | Work::CopyToHost(..) | Work::Copy => Site::RunCopy,
            Work::Gather(..) | Work::Scatter(..) | Work::Call(..) | Work::Called(_) | Work::Launch { .. } => {
                Site::RunWork
            }
        }
    }

    /// As errors name it while it waits, also when the memory is gone.
    pub(super) fn gated(&self) -> Gated {
        let end = |at| Some(PinnedArc::downgrade(self.ranges.get(at)?.1.block()));
        let size_bytes = self.size_bytes;
        match &self.work {
            Work::CopyFromHost(..) | Work::Gather(..) => Gated::Copy { size_bytes, from: None, to: end(0) },
            Work::CopyToHost(..) | Work::Scatter(..) => Gated::Copy { size_bytes, from: end(0), to: None },
            Work::Copy => Gated::Copy { size_bytes, from: end(0), to: end(1) },
            Work::Call(label, _) | Work::Called(label) | Work::Launch { label, .. } => Gated::Named(*label),
        }
    }

    /// Drops the ranges that `which` says, unless somebody else owns their memory.
    pub(super) fn release_ranges(&mut self, which: impl Fn(&DeviceRange) -> bool) {
        let which = |range: &DeviceRange| which(range) && !range.is_foreign();
        self.ranges = match mem::replace(&mut self.ranges, Ranges::None) {
            Ranges::Two([from, to]) => match (which(&from), which(&to)) {
                (false, false) => Ranges::Two([from, to]),
                (false, true) => Ranges::Rest(Access::Read, from),
                (true, false) => Ranges::Rest(Access::Write, to),
                (true, true) => Ranges::None,
            },
            Ranges::One(_, range) | Ranges::Rest(_, range) if which(&range) => Ranges::None,
            Ranges::Many(mut ranges) => {
                ranges.retain(|(_, range)| !which(range));
                Ranges::Many(ranges)
            }
            left => left,
        };
    }

    /// Where the bytes come from: `"host"` or the name of a memory space.
    pub(super) fn source(&self) -> &dyn fmt::Display {
        self.end(Access::Read)
    }

    /// Where the bytes go: `"host"` or the name of a memory space.
    pub(super) fn destination(&self) -> &dyn fmt::Display {
        self.end(Access::Write)
    }

    fn end(&self, access: Access) -> &dyn fmt::Display {
        match self.ranges().find(|(does, _)| *does == access) {
            Some((_, range)) => range,
            None => &"host",
        }
    }
}

/// The label of whatever moves bytes as they are.
const COPY: Label = Label::new(c"copy");

/// `copy of 4096 bytes from host to host:0/device`
impl fmt::Debug for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.work {
            Work::Call(label, _) | Work::Called(label) => write!(f, "'{label}'"),
            Work::Launch { launch, launch_id, .. } => write!(f, "launch {launch_id} of '{}'", launch.name()),
            _ if matches!(self.ranges, Ranges::None | Ranges::Rest(..)) => {
                write!(f, "copy of {} bytes", self.size_bytes)
            }
            _ => write!(f, "copy of {} bytes from {} to {}", self.size_bytes, self.source(), self.destination()),
        }
    }
}

const _: () = assert!(size_of::<Work>() <= 32, "operations are moved as often as they wait");

#[cfg(test)]
mod tests {
    use super::super::OperationPromise;
    use super::super::test_operation::range;
    use super::*;
    use purlin_async::event::Event;
    use purlin_base::status::SourceLocation;

    #[test]
    fn a_call_touches_any_number_of_ranges_and_keeps_them_until_it_is_over() {
        let alive = Arc::new(());
        let accesses = [Access::Read, Access::Read, Access::Write, Access::Write, Access::Read];
        let ranges = accesses.iter().zip(1..).map(|(&access, bytes)| (access, range(bytes, &alive)));
        let mut operation = Operation::call(c"launch", ranges, 64, || Err(Error::aborted("by the kernel")));
        let seen: Vec<_> = operation.ranges().map(|(access, range)| (access, range.size_bytes())).collect();
        assert_eq!(seen, accesses.into_iter().zip(1..).collect::<Vec<_>>());
        assert_eq!((format!("{operation:?}").as_str(), operation.size_bytes()), ("'launch'", 64));

        // SAFETY: a call asks for no address.
        #[allow(unsafe_code, reason = "perform is unsafe for copies")]
        let outcome = unsafe { operation.perform(|_| unreachable!("a call asks for no address")) };
        assert_eq!(outcome.as_ref().map_err(Error::message), Err("by the kernel"));
        assert_eq!(Arc::strong_count(&alive), 1 + accesses.len(), "its memory is kept while it is performed");
        let (event, promise) = OperationPromise::new(operation, SourceLocation::UNKNOWN, Event::ready(), &[], None);
        promise.complete(outcome);
        assert_eq!((event.error().unwrap().message(), Arc::strong_count(&alive)), ("by the kernel", 1));
    }

    #[test]
    fn a_call_without_ranges_touches_nothing() {
        let operation = Operation::call(c"launch", [], 0, || Ok(()));
        assert!(operation.ranges().next().is_none());
        assert_eq!(
            (operation.source().to_string(), operation.destination().to_string()),
            ("host".into(), "host".into())
        );
    }
}

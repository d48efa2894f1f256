//! Acquires the holds on the buffers of a run, all or none.
//!
//! First the run tries each hold in the order of the arguments, without waiting (`prepare.rs`). If a hold of another
//! call is in conflict with one of them, the run releases all of its holds. It then acquires them in the order of the
//! buffers' identities, and waits for each. All runs use this order, so two runs with the same buffers do not deadlock.
//! This second pass also finds a buffer that is donated and used by the same call.

use smallvec::SmallVec;

use purlin_async::event::Event;
use purlin_base::{Error, Label, StatusOr};
use purlin_device::{BorrowedDonationHold, BorrowedUsageHold, Buffer, RawBuffer};

/// A buffer that a run needs a hold on.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) buffer: &'a Buffer,
    /// The role in the run, which errors name.
    pub(super) role: Role,
    /// Whether its memory becomes a result's.
    pub(super) donates: bool,
}

/// The role of a buffer in a run: the number of the device, and of the argument or the result there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Argument(usize, usize),
    Result(usize, usize),
}

impl Role {
    /// The number of the device.
    pub(super) fn device(self) -> usize {
        match self {
            Self::Argument(device, _) | Self::Result(device, _) => device,
        }
    }

    /// `argument 2`; `argument 2 of device 1`
    pub(super) fn name(self) -> String {
        let (what, device, number) = match self {
            Self::Argument(device, number) => ("argument", device, number),
            Self::Result(device, number) => ("memory for result", device, number),
        };
        if device == 0 { format!("{what} {number}") } else { format!("{what} {number} of device {device}") }
    }
}

/// A hold on a buffer, which the caller of the run keeps meanwhile.
pub(super) enum Held<'a> {
    /// The run reads the buffer.
    Usage(BorrowedUsageHold<'a>),
    /// The memory belongs to the run.
    Donation(BorrowedDonationHold<'a>),
    /// The buffer failed before it had memory. The event has its error, with which the run will fail, too. The buffer
    /// is here if it is donated, so that it is deleted.
    Failed(Event, Option<Buffer>),
    /// A donation that is confirmed: the result has the memory.
    Over,
}

impl Held<'_> {
    /// The memory; `None` if the buffer failed before it had some.
    pub(super) fn memory(&self) -> Option<&RawBuffer> {
        match self {
            Self::Usage(hold) => Some(hold.memory()),
            Self::Donation(hold) => Some(hold.memory()),
            Self::Failed(..) | Self::Over => None,
        }
    }

    /// The event of the buffer, if the run must wait for it or fails with it.
    #[inline]
    pub(super) fn dependency(&self) -> Option<Event> {
        match self {
            Self::Usage(hold) => (!hold.is_ready()).then(|| hold.ready_event()),
            Self::Donation(hold) => (!hold.is_ready()).then(|| hold.ready_event()),
            Self::Failed(failed, _) => Some(failed.clone()),
            Self::Over => None,
        }
    }

    /// The memory of a donation, which is confirmed.
    #[inline]
    pub(super) fn confirm(&mut self) -> Option<RawBuffer> {
        match std::mem::replace(self, Self::Over) {
            Self::Donation(hold) => Some(hold.confirm()),
            _ => None,
        }
    }
}

/// The holds of a run. Those of small programs stand on the stack.
pub(super) type AllHeld<'a> = SmallVec<[Held<'a>; 64]>;

/// Acquires the holds, and returns them in the order of `wanted`. It waits for conflicting holds of other calls. The
/// caller must have no holds itself.
///
/// # Errors
/// `InvalidArgument`: a buffer is deleted, or is donated and used by this call. If memory for a result has failed: its
/// error. No hold is left in these cases.
#[cold]
pub(super) fn acquire_in_order<'a>(wanted: &[Wanted<'a>], donee: Label) -> StatusOr<Vec<Held<'a>>> {
    let mut order: Vec<usize> = (0..wanted.len()).collect();
    order.sort_by_key(|&at| wanted[at].buffer.identity());
    for pair in order.windows(2) {
        let (first, second) = (&wanted[pair[0]], &wanted[pair[1]]);
        if first.buffer.identity() == second.buffer.identity() && (first.donates || second.donates) {
            return Err(clash(first, second));
        }
    }
    let mut all: Vec<Option<Held<'_>>> = wanted.iter().map(|_| None).collect();
    for at in order {
        all[at] = wanted[at].take(donee, true)?;
    }
    Ok(all.into_iter().flatten().collect())
}

/// The error for a buffer that the same call donates and uses once more.
fn clash(first: &Wanted<'_>, second: &Wanted<'_>) -> Error {
    let pjrts_words = if first.donates && second.donates {
        "Attempt to donate the same buffer twice in Execute(), as in `f(donate(a), donate(a))`"
    } else {
        "Attempt to use a buffer that was previously donated in the same call to Execute(), as in `f(donate(a), a)`"
    };
    let (first, second, buffer) = (first.role.name(), second.role.name(), first.buffer);
    Error::invalid_argument(format!("{pjrts_words}: {first} and {second} are the same {buffer:?}"))
}

impl<'a> Wanted<'a> {
    /// Acquires the hold on this buffer. `None`: another hold is in conflict, and `waits` is false.
    ///
    /// # Errors
    /// As [`acquire_in_order`].
    #[inline]
    pub(super) fn take(&self, donee: Label, waits: bool) -> StatusOr<Option<Held<'a>>> {
        if self.donates {
            match self.donate(donee, waits) {
                Some(Ok(held)) => return Ok(Some(held)),
                // The donation was refused. Only an argument with an external reference is read and copied instead.
                Some(Err(error)) if self.is_result() || !self.is_referenced() => return self.without(error, waits),
                _ => {}
            }
        }
        match self.buffer.borrowed_usage_hold(waits) {
            Ok(hold) => Ok(Some(Held::Usage(hold))),
            Err(error) => self.without(error, waits),
        }
    }

    /// The outcome of a hold that was refused: a failed argument, `None` to try again, or an error.
    #[cold]
    fn without(&self, refusal: Error, waits: bool) -> StatusOr<Option<Held<'a>>> {
        let is_there = self.buffer.has_memory() && !self.buffer.is_deleted();
        if !self.buffer.has_memory() && !self.buffer.is_deleted() && !self.is_result() {
            let donated = self.donates.then(|| self.buffer.clone());
            return Ok(Some(Held::Failed(self.buffer.ready_event(), donated)));
        }
        if is_there && !waits && !self.is_referenced() {
            return Ok(None);
        }
        let name = self.role.name();
        Err(Error::new(refusal.code(), format!("{name}, {:?}: {}", self.buffer, refusal.message())))
    }

    /// The donation hold; `None` if the memory is read-only, so that an argument is copied instead.
    #[inline]
    fn donate(&self, donee: Label, waits: bool) -> Option<StatusOr<Held<'a>>> {
        match self.buffer.borrowed_donation_hold(donee, waits) {
            // Memory of a channel that is not there yet is checked again once it is.
            Ok(hold) if hold.memory().is_mutable() => Some(Ok(Held::Donation(hold))),
            Ok(_) if self.is_result() => {
                Some(Err(Error::invalid_argument("it may not be written: it was imported read-only")))
            }
            Ok(_) => None,
            Err(error) => Some(Err(error)),
        }
    }

    fn is_result(&self) -> bool {
        matches!(self.role, Role::Result(..))
    }

    /// Whether code outside Purlin has a reference to the memory.
    fn is_referenced(&self) -> bool {
        self.buffer.hold_counts().1 > 0
    }
}

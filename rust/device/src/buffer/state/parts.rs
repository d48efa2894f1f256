//! What a buffer records: little for most buffers, and one box for all that is rare.

use std::mem;

use super::ending::{Ending, Line};
use super::{Taken, Uses};
use purlin_async::event::{Event, EventPromise, after_all};
use purlin_base::label::Label;
use purlin_base::static_text::StaticText;

/// The end of a buffer without other records stands in place, so that a program whose arguments are all donated
/// allocates nothing for that, nor does a caller that deletes what it drops. (The fields are not in a struct of their
/// own, because an array's header has no room for its padding.)
pub(super) enum BufferParts<M> {
    /// Any state.
    Full {
        /// `None` once gone, while it is being donated, and in a buffer that never had any.
        memory: Option<M>,
        /// `None`: all of it is empty.
        rest: Option<Box<RareParts>>,
        usage_holds: u32,
        /// Whether it ever had memory.
        had_memory: bool,
    },
    /// Donating. The buffer that is given back has its memory and no other record.
    Donating { by: Label, file: StaticText, line: Line, at_ms: u32 },
    /// Gone: the donation was confirmed.
    Donated { by: Label, file: StaticText, line: Line, at_ms: u32 },
    /// Gone: it was deleted.
    Deleted { file: StaticText, line: Line, at_ms: u32 },
}

/// The fields of [`BufferParts::Full`].
pub(super) struct Full<'a, M> {
    pub(super) memory: &'a mut Option<M>,
    pub(super) rest: &'a mut Option<Box<RareParts>>,
    pub(super) usage_holds: &'a mut u32,
}

/// What most buffers never need, or need when they end.
#[derive(Default)]
pub(super) struct RareParts {
    pub(super) external_references: u32,
    /// Of uses that may still go on.
    pub(super) uses: Uses,
    /// Set when a hold ends for which a thread waits.
    pub(super) changed: Option<EventPromise>,
    /// The code that donates it, while it is being donated.
    pub(super) donation: Option<Ending>,
    /// How it ended; while it is being donated, how it is to end if it is given back.
    pub(super) ending: Option<Ending>,
    pub(super) late: Option<LateUses>,
}

impl RareParts {
    /// Some, with nothing else.
    #[cold]
    #[inline(never)]
    pub(super) fn of_uses(uses: Uses) -> Option<Box<Self>> {
        Some(Box::new(Self { uses, ..Self::default() }))
    }

    #[inline]
    pub(super) fn phase(&self) -> Phase {
        match self {
            Self { donation: Some(_), .. } => Phase::Donating,
            Self { ending: Some(_), .. } => Phase::Gone,
            _ => Phase::Live,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Live,
    Donating,
    Gone,
}

/// The usage holds that were there when it was released: what the new owner waits for, and the uses that they have left
/// so far.
pub(super) struct LateUses {
    pub(super) over: EventPromise,
    pub(super) uses: Uses,
}

impl<M> BufferParts<M> {
    /// The fields for any state; an end that stands in place is moved there.
    #[inline]
    pub(super) fn full(&mut self) -> Full<'_, M> {
        if !matches!(self, Self::Full { .. }) {
            self.make_full();
        }
        let Self::Full { memory, rest, usage_holds, .. } = self else { unreachable!("it is so now") };
        Full { memory, rest, usage_holds }
    }

    #[cold]
    pub(super) fn make_full(&mut self) {
        let (donation, ending) = (self.donation(), self.ending());
        let rest = Some(Box::new(RareParts { donation, ending, ..RareParts::default() }));
        self.become_other(Self::Full { memory: None, rest, usage_holds: 0, had_memory: true });
    }

    /// For parts that own nothing. This leaves out the code that would drop them.
    #[inline]
    pub(super) fn become_other(&mut self, other: Self) {
        mem::forget(mem::replace(self, other));
    }

    pub(super) fn take(&mut self) -> Option<Taken<M>> {
        let Full { memory, rest, .. } = self.full();
        let uses = rest.as_deref_mut().map(|rest| mem::take(&mut rest.uses)).unwrap_or_default();
        memory.take().map(|memory| Taken { memory, uses })
    }

    /// A usage hold has ended: the promises to set, outside the lock, if it was the last.
    pub(super) fn last_usage_hold(&mut self) -> LastHold {
        let is_last = self.usage_holds() == 0;
        let Some(rest) = self.full().rest.as_deref_mut() else { return LastHold { changed: None, late: None } };
        let changed = if is_last { rest.changed.take() } else { None };
        let late = if is_last { rest.late.take() } else { None };
        LastHold { changed, late }
    }

    pub(super) fn rest(&mut self) -> &mut RareParts {
        self.full().rest.get_or_insert_default()
    }

    /// What there is of them.
    pub(super) fn rare(&self) -> Option<&RareParts> {
        match self {
            Self::Full { rest, .. } => rest.as_deref(),
            Self::Donating { .. } | Self::Donated { .. } | Self::Deleted { .. } => None,
        }
    }

    pub(super) fn usage_holds(&self) -> u32 {
        match self {
            Self::Full { usage_holds, .. } => *usage_holds,
            Self::Donating { .. } | Self::Donated { .. } | Self::Deleted { .. } => 0,
        }
    }

    pub(super) fn external_references(&self) -> u32 {
        self.rare().map_or(0, |rest| rest.external_references)
    }

    /// How it has ended, or is to end.
    pub(super) fn ending(&self) -> Option<Ending> {
        match *self {
            Self::Donated { by, file, line, at_ms } => Some(Ending::donation(by, file, line, at_ms)),
            Self::Deleted { file, line, at_ms } => Some(Ending::deletion(file, line, at_ms)),
            _ => self.rare().and_then(|rest| rest.ending),
        }
    }

    /// The donor, if it is being donated.
    pub(super) fn donation(&self) -> Option<Ending> {
        match *self {
            Self::Donating { by, file, line, at_ms } => Some(Ending::donation(by, file, line, at_ms)),
            _ => self.rare().and_then(|rest| rest.donation),
        }
    }

    #[inline]
    pub(super) fn phase(&self) -> Phase {
        match self {
            Self::Full { rest, .. } => rest.as_deref().map_or(Phase::Live, RareParts::phase),
            Self::Donating { .. } => Phase::Donating,
            Self::Donated { .. } | Self::Deleted { .. } => Phase::Gone,
        }
    }

    /// The promise to set after a hold has ended.
    pub(super) fn take_changed(&mut self) -> Option<EventPromise> {
        self.full().rest.as_deref_mut().and_then(|rest| rest.changed.take())
    }

    /// Happens when a hold has gone.
    pub(super) fn event(&mut self) -> Event {
        self.rest().changed.get_or_insert_with(|| EventPromise::guarding(c"holds of a buffer")).event()
    }
}

/// The waiters for the last usage hold.
pub(super) struct LastHold {
    pub(super) changed: Option<EventPromise>,
    pub(super) late: Option<LateUses>,
}

impl LastHold {
    pub(super) fn tell(self) {
        tell(self.changed);
        if let Some(late) = self.late {
            let LateUses { over, uses } = late;
            over.forward(&after_all(&uses));
        }
    }
}

pub(super) fn tell(changed: Option<EventPromise>) {
    if let Some(changed) = changed {
        changed.set_ready();
    }
}

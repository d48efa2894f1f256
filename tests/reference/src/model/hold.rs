//! Holds: which code may use an array's memory, and how it ends.

use super::event::Moment;
use super::step::{Progress, Progress::Done, Taken, none, ok};
use super::{Given, Phase, World, Wrong};
use crate::op::Op;

impl World {
    /// One more usage hold, and the memory, if there ever was any; `None` as error: another hold is in the way.
    pub(super) fn hold(&mut self, array: usize) -> Result<Option<usize>, Option<String>> {
        let allowed = self.is(Wrong::DonationAllowsUsage);
        let array = &mut self.arrays[array];
        match array.phase {
            Phase::Gone | Phase::Donating { deleted: true } => Err(Some("3:gone".into())),
            Phase::Donating { .. } if !allowed => Err(None),
            Phase::Donating { .. } | Phase::Live => {
                array.usage += 1;
                Ok(array.first_memory)
            }
        }
    }

    pub(super) fn let_go(&mut self, array: usize, until: Option<Moment>) {
        let array = &mut self.arrays[array];
        array.usage -= 1;
        if array.phase != Phase::Gone {
            array.uses.extend(until);
        } else if let Some((_, left)) = &mut array.late {
            left.extend(until);
        }
        if array.usage == 0
            && let Some((free, left)) = array.late.take()
        {
            let left = self.events.after(left);
            self.events.follow(free, left);
        }
    }

    /// The donation hold; `None` as error: another hold is in the way.
    pub(super) fn donate(&mut self, array: usize) -> Result<Taken, Option<String>> {
        let (over_usage, over_external) = (self.is(Wrong::UsageAllowsDonation), self.is(Wrong::ExternalAllowsDonation));
        if self.arrays[array].first_memory.is_none() {
            return Err(Some(self.own_error(array)));
        }
        let forget = self.is(Wrong::FreeEventForgetsUses);
        let of = &mut self.arrays[array];
        match of.phase {
            Phase::Gone | Phase::Donating { deleted: true } => Err(Some("3:donate-gone".into())),
            Phase::Donating { .. } => Err(None),
            Phase::Live if of.external > 0 && !over_external => Err(Some("3:external".into())),
            Phase::Live if of.usage > 0 && !over_usage => Err(None),
            Phase::Live => {
                of.phase = Phase::Donating { deleted: false };
                let uses = if forget { Vec::new() } else { of.uses.clone() };
                Ok(Taken { array, memory: of.first_memory.expect("seen above"), uses })
            }
        }
    }

    pub(super) fn end_donation(&mut self, array: usize, confirmed: bool) {
        let leaves = self.is(Wrong::ConfirmedDonationLeavesTheBuffer);
        let forgets = self.is(Wrong::DeleteUnderADonationIsForgotten);
        let loses = self.is(Wrong::DonationGivenBackIsLost);
        let of = &mut self.arrays[array];
        let deleted = of.phase == Phase::Donating { deleted: true } && !forgets;
        of.phase = if (confirmed && !leaves) || deleted || (loses && !confirmed) { Phase::Gone } else { Phase::Live };
    }

    pub(super) fn end(&mut self, array: usize) {
        let phase = &mut self.arrays[array].phase;
        *phase = match *phase {
            Phase::Live | Phase::Gone => Phase::Gone,
            Phase::Donating { .. } => Phase::Donating { deleted: true },
        };
    }

    pub(super) fn release_usage(&mut self, slot: usize, until: Option<Moment>) -> Progress {
        let Some(hold) = self.usages[slot].take() else { return none() };
        self.let_go(hold.array, until);
        ok()
    }

    pub(super) fn drop_external(&mut self, slot: usize) -> Progress {
        let Some(hold) = self.externals[slot].take() else { return none() };
        self.arrays[hold.array].external -= 1;
        ok()
    }

    pub(super) fn give_back(&mut self, slot: usize) -> Progress {
        let Some(donation) = self.donations[slot].take() else { return none() };
        self.end_donation(donation.array, false);
        ok()
    }

    pub(super) fn release(&mut self, op: Op) -> Progress {
        let Some(array) = self.buffers[usize::from(op.args[0])] else { return none() };
        let leaves = self.is(Wrong::ReleaseLeavesTheBuffer);
        let of = &self.arrays[array];
        let (was_live, memory, usage) = (of.phase == Phase::Live, of.first_memory, of.usage);
        let mut until = of.uses.clone();
        until.push(of.ready);
        if !leaves && !matches!(of.phase, Phase::Donating { .. }) {
            self.end(array);
        }
        let Some(memory) = memory.filter(|_| was_live) else { return Done("nothing".into()) };
        if usage > 0 {
            let late = self.events.promise();
            until.push(late);
            self.arrays[array].late = Some((late, Vec::new()));
        }
        let free = self.events.after(until);
        self.given[usize::from(op.args[1])] = Some(Given { memory, free });
        ok()
    }
}

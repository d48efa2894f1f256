//! Channels: arrays that are provided later.

use super::bytes::Content;
use super::event::Moment;
use super::step::{Progress, Progress::Blocked, Progress::Done, Progress::Senseless, none, ok};
use super::{Kind, World, Wrong};
use crate::op::Op;

impl World {
    pub(super) fn fail_channel(&mut self, slot: usize, error: Option<String>) -> Progress {
        let Some(channel) = self.channels[slot].take() else { return none() };
        let Kind::Channel { free, .. } = self.memories[channel.memory].kind else { return none() };
        let allocated = self.memories[channel.memory].allocated;
        self.events.set(free, Ok(()));
        match error {
            Some(error) => {
                self.events.set(allocated, Err(error.clone()));
                self.events.set(channel.ready, Err(error));
            }
            None => {
                self.events.abandon(allocated);
                self.events.abandon(channel.ready);
            }
        }
        ok()
    }

    pub(super) fn fulfil(&mut self, op: Op) -> Progress {
        let Some(channel) = self.channels[usize::from(op.args[0])].clone() else { return none() };
        let Some(source) = self.buffers[usize::from(op.args[1])] else { return none() };
        let (wanted, given) = (&self.arrays[channel.array], &self.arrays[source]);
        if (wanted.shape, wanted.turned) != (given.shape, given.turned) {
            return Done("3:misfit".into());
        }
        if matches!(self.content(given.content), Content::Unwritten) && given.first_memory.is_some() {
            return Senseless;
        }
        let donation = match self.donate(source) {
            Ok(donation) => donation,
            Err(Some(error)) => return Done(error),
            Err(None) => return Blocked,
        };
        // Something that waits for the channel, in memory of its own: a circle that the user made, and whose wait would
        // never end.
        let Kind::Channel { free, .. } = self.memories[channel.memory].kind else { return none() };
        let promised = [channel.ready, self.memories[channel.memory].allocated, free];
        let waits = |&moment: &Moment| self.events.waits_for(moment, &promised);
        let is_circle = donation.uses.iter().chain([&self.arrays[source].ready]).any(waits);
        if is_circle && self.root(donation.memory) != channel.memory {
            self.end_donation(source, false);
            return Senseless;
        }
        let refused = if self.root(donation.memory) == channel.memory {
            Some("3:circle")
        } else if self.memories[donation.memory].space != self.memories[channel.memory].space {
            Some("3:misfit")
        } else {
            None
        };
        if let Some(error) = refused {
            self.end_donation(source, false);
            return Done(error.into());
        }
        self.channels[usize::from(op.args[0])] = None;
        self.memories[channel.memory].kind = Kind::Channel { target: Some(donation.memory), free };
        self.events.follow(self.memories[channel.memory].allocated, self.memories[donation.memory].allocated);
        let mut until = donation.uses;
        until.push(self.arrays[source].ready);
        if self.is(Wrong::FulfilForgetsUses) {
            until.clear();
        }
        let until = self.events.after(until);
        self.events.follow(free, until);
        self.events.follow(channel.ready, self.arrays[source].ready);
        self.contents[channel.content] = Content::Same(self.arrays[source].content);
        self.settle_writable();
        self.end_donation(source, true);
        ok()
    }
}

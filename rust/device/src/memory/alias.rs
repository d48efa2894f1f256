//! The link from a block to the one for which it stands, while it is not known where that way ends.
//!
//! States: a link to some block, some bytes into it; it may be replaced, again and again, by one that goes further the
//! same way, and so releases what lies between. All links of a space are read and replaced under one lock of that
//! space, under which new ones are added, too: so no way returns to where it began. A search that follows a way makes
//! it shorter for the next: each link that was passed skips a block, and the first link then leads to the end.

#![allow(unsafe_code, reason = "links are guarded by a lock that stands elsewhere")]

use std::ptr::{self, NonNull};

use smallvec::SmallVec;

use super::block::{Backing, MemoryBlock};
use purlin_base::sync::{PinnedArc, UnsafeCell};

/// A block, and where in it bytes begin.
#[derive(Clone)]
pub(crate) struct Link {
    pub(super) target: PinnedArc<MemoryBlock>,
    pub(super) offset_bytes: usize,
}

/// See the module.
pub(crate) struct Alias(UnsafeCell<Link>);

// SAFETY: the link is reached only through the space's `Links`, or by the alias's owner.
unsafe impl Send for Alias {}
// SAFETY: as above.
unsafe impl Sync for Alias {}

/// The right to read and to replace the links of a space: there is one, behind the space's lock.
pub(crate) struct Links(());

/// What may be the last reference to something: dropped under no lock.
pub(super) type Outdated = SmallVec<[Link; 4]>;

impl Alias {
    /// For the caller that releases the block that has it.
    pub(super) fn into_target(self) -> PinnedArc<MemoryBlock> {
        let this = std::mem::ManuallyDrop::new(self);
        // SAFETY: it is ours, and is not dropped; so the link is read once.
        this.0.with(|link| unsafe { ptr::read(link) }).target
    }
}

impl Link {
    /// The bytes of `target` from `offset_bytes` on, as far as is known without following links.
    pub(super) fn new(target: PinnedArc<MemoryBlock>, offset_bytes: usize) -> Self {
        Self { target, offset_bytes }
    }

    /// How a block whose bytes these are keeps them.
    pub(super) fn into_backing(self) -> Backing {
        match self.target.backing() {
            // No other link can be added there.
            Some(Backing::Piece(_) | Backing::Imported(_)) => Backing::Part(self.target, self.offset_bytes),
            _ => Backing::Alias(Box::new(Alias(UnsafeCell::new(self)))),
        }
    }
}

impl Links {
    pub(crate) fn new() -> Self {
        Self(())
    }

    /// Where the way from `link`, of this space, ends for now: at a block that has bytes of its own, or has none yet.
    pub(super) fn end_of(&mut self, link: &Link, outdated: &mut Outdated) -> Link {
        match link.target.backing() {
            Some(Backing::Part(target, offset_bytes)) => Link::new(target.clone(), link.offset_bytes + offset_bytes),
            Some(Backing::Alias(alias)) => {
                let end = self.end_of_alias(alias, outdated);
                Link::new(end.target, link.offset_bytes + end.offset_bytes)
            }
            _ => link.clone(),
        }
    }

    /// As [`end_of`](Self::end_of), from the link of `first`, a block of this space, which is replaced.
    pub(super) fn end_of_alias(&mut self, first: &Alias, outdated: &mut Outdated) -> Link {
        let (mut at, mut passed_bytes) = (NonNull::from(first), 0);
        loop {
            // SAFETY: the first is borrowed, and what each passed link leads to is kept by `outdated`.
            let alias = unsafe { at.as_ref() };
            let link = self.get(alias).clone();
            passed_bytes += link.offset_bytes;
            let Some(Backing::Alias(next)) = link.target.backing() else {
                let end = self.end_of(&link, outdated);
                passed_bytes += end.offset_bytes - link.offset_bytes;
                let end = Link::new(end.target, passed_bytes);
                if !PinnedArc::ptr_eq(&self.get(first).target, &end.target) {
                    outdated.push(self.replace(first, end.clone()));
                }
                outdated.push(link);
                return end;
            };
            let further = self.get(next);
            let skipping = Link::new(further.target.clone(), link.offset_bytes + further.offset_bytes);
            at = NonNull::from(&**next);
            outdated.push(self.replace(alias, skipping));
            outdated.push(link);
        }
    }

    fn get(&self, alias: &Alias) -> &Link {
        // SAFETY: it is replaced only where this is borrowed exclusively, while no code has what this returns.
        alias.0.with(|link| unsafe { &*link })
    }

    fn replace(&mut self, alias: &Alias, by: Link) -> Link {
        // SAFETY: no other code reads or replaces it: that needs this.
        alias.0.with_mut(|link| unsafe { ptr::replace(link, by) })
    }
}

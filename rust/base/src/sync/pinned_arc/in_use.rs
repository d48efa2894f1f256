//! References that also count as uses, so that one locked instruction counts both.
//!
//! An owner that has to know whether only work in flight keeps a value ([`PinnedArc::counts`]) would otherwise need a
//! second count, which is changed with each reference of such work. Both stand in one word: references in its lower
//! bits, uses above. A use is a reference too, so a word without references has no uses either. More uses than there
//! are bits for are lost at the word's upper end, which harms no reference.

use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::ptr::NonNull;

use super::super::atomic::Ordering;
use super::{Inner, PinnedArc, PinnedLast, end};

/// Where the uses begin: above 2^40 references on 64 bits.
const USES_SHIFT: u32 = usize::BITS * 5 / 8;
/// The bits of the references.
pub(super) const REFERENCES: usize = (1 << USES_SHIFT) - 1;
/// One use, and its reference.
const USE: usize = (1 << USES_SHIFT) + 1;

/// References, and how many of these are uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PinnedCounts {
    /// All of them.
    pub references: usize,
    /// Those of work.
    pub uses: usize,
}

impl<T: ?Sized> PinnedArc<T> {
    /// Both counts, of one moment.
    pub fn counts(this: &Self) -> PinnedCounts {
        // Relaxed: a snapshot.
        let word = this.inner().strong.load(Ordering::Relaxed);
        PinnedCounts { references: word & REFERENCES, uses: word >> USES_SHIFT }
    }
}

/// A [`PinnedArc`] of work that uses the value.
pub struct PinnedUse<T: ?Sized>(ManuallyDrop<PinnedArc<T>>);

impl<T: ?Sized> PinnedUse<T> {
    /// One more reference, which is a use.
    #[inline]
    pub fn of(value: &PinnedArc<T>) -> Self {
        // Relaxed: there is a reference already.
        value.inner().strong.fetch_add(USE, Ordering::Relaxed);
        Self(ManuallyDrop::new(PinnedArc(value.0)))
    }

    /// The use as a pointer, to be given back once by [`from_raw`](Self::from_raw).
    pub fn into_raw(this: Self) -> NonNull<Inner<T>> {
        ManuallyDrop::new(this).0.0
    }

    /// # Safety
    /// The pointer has a use, from [`into_raw`](Self::into_raw) and maybe unsized since, which the caller gives up.
    pub unsafe fn from_raw(raw: NonNull<Inner<T>>) -> Self {
        Self(ManuallyDrop::new(PinnedArc(raw)))
    }
}

impl<T: ?Sized> Deref for PinnedUse<T> {
    type Target = PinnedArc<T>;

    fn deref(&self) -> &PinnedArc<T> {
        &self.0
    }
}

impl<T: ?Sized> Drop for PinnedUse<T> {
    #[inline]
    fn drop(&mut self) {
        // As in PinnedArc::into_last().
        if self.inner().strong.fetch_sub(USE, Ordering::AcqRel) & REFERENCES == 1 {
            end(PinnedLast(self.0.0));
        }
    }
}

impl<T: ?Sized> fmt::Debug for PinnedUse<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PinnedUse({:p})", self.0.0)
    }
}

#[cfg(all(test, not(purlin_model)))]
mod tests {
    use super::*;

    #[test]
    fn a_use_is_a_reference_that_is_counted_twice() {
        let value = PinnedArc::new(7);
        let (other, (one, two)) = (value.clone(), (PinnedUse::of(&value), PinnedUse::of(&value)));
        assert_eq!(PinnedArc::counts(&value), PinnedCounts { references: 4, uses: 2 });
        assert_eq!(PinnedArc::strong_count(&value), 4);
        drop((value, one));
        assert_eq!(PinnedArc::counts(&other), PinnedCounts { references: 2, uses: 1 });
        let weak = PinnedArc::downgrade(&other);
        assert!(PinnedArc::into_last(other).is_none());
        assert_eq!(weak.upgrade().map(|value| *value), Some(7));
        // SAFETY: the use that is put aside in the same line.
        drop(unsafe { PinnedUse::from_raw(PinnedUse::into_raw(two)) });
        assert!(weak.upgrade().is_none());
    }
}

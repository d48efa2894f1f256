//! A counted reference to a value that stays where it is until its own drop has run.
//!
//! As std's `Arc`, except that nothing moves the value out. There is no `into_inner`, no `try_unwrap`, no mutable
//! reference, so an address that is kept beside the counts ([`Uncounted`]) is good for as long as the value's drop has
//! not removed it from where it is kept. A caller that wants to decide where the value ends gets the last reference
//! itself ([`PinnedArc::into_last`]), whose drop is the value's.
//!
//! States: shared, while there are references; *last*, when one thread has the value alone and no thread can get a
//! reference any more; dropped, while [`PinnedWeak`]s keep the memory; gone. The references share one of the weak
//! counts.

#![allow(unsafe_code, reason = "values are reached through a pointer and counted")]

#[cfg_attr(purlin_model, path = "grave_model.rs")]
mod grave;
mod in_use;
#[cfg(all(test, loom))]
mod loom_model;

use std::fmt;
use std::mem;
use std::ops::Deref;
use std::ptr::NonNull;

use self::grave::Grave;
use self::in_use::REFERENCES;
pub use self::in_use::{PinnedCounts, PinnedUse};
use super::atomic::{AtomicUsize, Ordering};

/// See the module.
pub struct PinnedArc<T: ?Sized>(NonNull<Inner<T>>);

impl<T: ?Sized> fmt::Debug for PinnedArc<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PinnedArc({:p})", self.0)
    }
}

/// Keeps the memory, not the value.
pub struct PinnedWeak<T: ?Sized>(NonNull<Inner<T>>);

impl<T: ?Sized> fmt::Debug for PinnedWeak<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PinnedWeak({:p})", self.0)
    }
}

/// The value, when its last reference is gone: no other thread has it or gets it. Dropping this drops it where it is.
#[must_use = "the value is destroyed when this is dropped"]
pub struct PinnedLast<T: ?Sized>(NonNull<Inner<T>>);

impl<T: ?Sized> fmt::Debug for PinnedLast<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PinnedLast({:p})", self.0)
    }
}

/// Where a value is. Its owner knows from elsewhere that the value's memory is still there.
pub struct Uncounted<T>(NonNull<Inner<T>>);

impl<T> fmt::Debug for Uncounted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Uncounted({:p})", self.0)
    }
}

/// The counts and the value. Opaque outside this module.
pub struct Inner<T: ?Sized> {
    /// References, and uses (`in_use.rs`).
    strong: AtomicUsize,
    weak: AtomicUsize,
    grave: Grave,
    value: T,
}

impl<T: ?Sized> fmt::Debug for Inner<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PinnedInner").finish_non_exhaustive()
    }
}

// SAFETY: as Arc: references share the value, and the last one drops it, on any thread.
unsafe impl<T: ?Sized + Send + Sync> Send for PinnedArc<T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Send + Sync> Sync for PinnedArc<T> {}
// SAFETY: a reference may be made of it.
unsafe impl<T: ?Sized + Send + Sync> Send for PinnedWeak<T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Send + Sync> Sync for PinnedWeak<T> {}
// SAFETY: it owns the value.
unsafe impl<T: ?Sized + Send> Send for PinnedLast<T> {}
// SAFETY: a reference may be made of it.
unsafe impl<T: Send + Sync> Send for Uncounted<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for Uncounted<T> {}

impl<T> PinnedArc<T> {
    /// The first owner of `value`.
    pub fn new(value: T) -> Self {
        let (strong, weak) = (AtomicUsize::new(1), AtomicUsize::new(1));
        let inner = Grave::dig();
        // SAFETY: the memory is for it, and no other thread knows it.
        unsafe { inner.write(Inner { strong, weak, grave: Grave::new(), value }) };
        Self(inner)
    }

    /// The first owner of the value that `make` makes, which is made where it stays: it is not moved there.
    #[inline]
    pub fn new_in_place(make: impl FnOnce() -> T) -> Self {
        Self::new_cyclic(|_this| make())
    }

    /// The value that `make` makes, which may keep the weak reference; that leads nowhere before the value is there.
    #[inline]
    pub fn new_cyclic(make: impl FnOnce(&PinnedWeak<T>) -> T) -> Self {
        let inner = Grave::dig::<T>();
        let at = inner.as_ptr();
        // SAFETY: the memory is for these fields, and no other thread knows it.
        unsafe {
            (&raw mut (*at).strong).write(AtomicUsize::new(0));
            (&raw mut (*at).weak).write(AtomicUsize::new(1));
            (&raw mut (*at).grave).write(Grave::new());
        }
        // It is the one that the references share; if `make` panics, the memory is freed with it.
        let weak = PinnedWeak(inner);
        let value = make(&weak);
        // SAFETY: the place is for the value, and no thread reads it before the count below.
        unsafe { (&raw mut (*at).value).write(value) };
        // Release, for a thread that upgrades: the value is there.
        weak.counts().0.store(1, Ordering::Release);
        mem::forget(weak);
        Self(inner)
    }

    /// Where the value is.
    pub fn uncounted(this: &Self) -> Uncounted<T> {
        Uncounted(this.0)
    }

    /// The reference as a pointer to the value, to be given back once by [`from_value`](Self::from_value). It may be
    /// used for the counts, too.
    pub fn into_value(this: Self) -> NonNull<T> {
        let inner = Self::into_raw(this).as_ptr();
        // SAFETY: there is a reference, so the value is there.
        unsafe { NonNull::new_unchecked(&raw mut (*inner).value) }
    }

    /// # Safety
    /// The pointer has a reference, from [`into_value`](Self::into_value), which the caller gives up.
    pub unsafe fn from_value(value: NonNull<T>) -> Self {
        // SAFETY: the value is a field of what its reference points to.
        Self(unsafe { value.byte_sub(mem::offset_of!(Inner<T>, value)) }.cast())
    }
}

impl<T: ?Sized> PinnedArc<T> {
    fn inner(&self) -> &Inner<T> {
        // SAFETY: there is a reference, so the value is there.
        let inner = unsafe { self.0.as_ref() };
        inner.grave.check();
        inner
    }

    /// A reference that does not keep the value.
    pub fn downgrade(this: &Self) -> PinnedWeak<T> {
        // Relaxed: as for every new reference, there is one already.
        this.inner().weak.fetch_add(1, Ordering::Relaxed);
        PinnedWeak(this.0)
    }

    /// How many references there are: a snapshot.
    pub fn strong_count(this: &Self) -> usize {
        Self::counts(this).references
    }

    /// Gives the reference up; the value, if it was the last.
    pub fn into_last(this: Self) -> Option<PinnedLast<T>> {
        let this = mem::ManuallyDrop::new(this);
        // Release: what was done by this reference happens before the value's end. Acquire, for the last: the end
        // happens after what was done by all others.
        // No mask: a use that is left would be a second reference.
        match this.inner().strong.fetch_sub(1, Ordering::AcqRel) {
            1 => Some(PinnedLast(this.0)),
            _ => None,
        }
    }

    /// Gives the reference up. One that is the only one costs no locked instruction.
    ///
    /// # Safety
    /// No weak or uncounted reference to the value has ever been made: so the only reference is the last.
    #[inline]
    pub unsafe fn drop_without_weak(this: Self) {
        // Acquire: as in into_last().
        if this.inner().strong.load(Ordering::Acquire) == 1 {
            end(PinnedLast(mem::ManuallyDrop::new(this).0));
        }
    }

    /// So many more references, which are counted at once. Those that are not asked for are given up together with the
    /// iterator.
    pub fn clones(this: &Self, count: usize) -> Clones<T> {
        // Relaxed: there is a reference already.
        this.inner().strong.fetch_add(count, Ordering::Relaxed);
        Clones { inner: this.0, left: count }
    }

    /// The reference as a pointer, to be given back once by [`from_raw`](Self::from_raw).
    pub fn into_raw(this: Self) -> NonNull<Inner<T>> {
        mem::ManuallyDrop::new(this).0
    }

    /// # Safety
    /// The pointer has a reference, from [`into_raw`](Self::into_raw) and maybe unsized since, which the caller gives
    /// up.
    pub unsafe fn from_raw(raw: NonNull<Inner<T>>) -> Self {
        Self(raw)
    }

    /// Whether both are references to one value.
    pub fn ptr_eq(this: &Self, other: &Self) -> bool {
        std::ptr::addr_eq(this.0.as_ptr(), other.0.as_ptr())
    }
}

impl<T: ?Sized> Clone for PinnedArc<T> {
    #[inline]
    fn clone(&self) -> Self {
        // Relaxed: there is a reference already.
        self.inner().strong.fetch_add(1, Ordering::Relaxed);
        Self(self.0)
    }
}

/// References that are counted, and not yet handed out. See [`PinnedArc::clones`].
pub struct Clones<T: ?Sized> {
    inner: NonNull<Inner<T>>,
    left: usize,
}

impl<T: ?Sized> fmt::Debug for Clones<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Clones({} of {:p})", self.left, self.inner)
    }
}

impl<T: ?Sized> Iterator for Clones<T> {
    type Item = PinnedArc<T>;

    #[inline]
    fn next(&mut self) -> Option<PinnedArc<T>> {
        self.left = self.left.checked_sub(1)?;
        Some(PinnedArc(self.inner))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<T: ?Sized> ExactSizeIterator for Clones<T> {}

impl<T: ?Sized> Drop for Clones<T> {
    fn drop(&mut self) {
        self.for_each(drop);
    }
}

impl<T: ?Sized> Deref for PinnedArc<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.inner().value
    }
}

impl<T: ?Sized + fmt::Display> fmt::Display for PinnedArc<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&**self, f)
    }
}

impl<T: ?Sized> Drop for PinnedArc<T> {
    #[inline]
    fn drop(&mut self) {
        if let Some(last) = Self::into_last(Self(self.0)) {
            end(last);
        }
    }
}

/// Not where references are dropped: most are not the last.
#[inline(never)]
fn end<T: ?Sized>(last: PinnedLast<T>) {
    drop(last);
}

impl<T: ?Sized> Deref for PinnedLast<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the value is there until this is dropped.
        unsafe { &self.0.as_ref().value }
    }
}

impl<T: ?Sized> PinnedLast<T> {
    /// The value, to be changed where it is.
    ///
    /// # Safety
    /// Nothing is moved out as a whole: the value's drop still follows, here.
    pub unsafe fn get_mut(&mut self) -> &mut T {
        // SAFETY: no other thread has the value.
        unsafe { &mut self.0.as_mut().value }
    }
}

impl<T: ?Sized> Drop for PinnedLast<T> {
    fn drop(&mut self) {
        // The references' share of the memory: given up when the value is gone, also by a panic.
        let _share = PinnedWeak(self.0);
        // SAFETY: no other thread has the value, and none gets it any more.
        unsafe { std::ptr::drop_in_place(&raw mut (*self.0.as_ptr()).value) };
    }
}

impl<T: ?Sized> PinnedWeak<T> {
    /// Strong and weak.
    fn counts(&self) -> (&AtomicUsize, &AtomicUsize) {
        let inner = self.0.as_ptr();
        // SAFETY: the memory is there; the value may not be, and is not touched.
        unsafe {
            (*inner).grave.check();
            (&(*inner).strong, &(*inner).weak)
        }
    }

    /// How many references there are: a snapshot.
    #[must_use]
    pub fn strong_count(&self) -> usize {
        self.counts().0.load(Ordering::Relaxed) & REFERENCES
    }

    /// A reference, unless the last one has gone.
    pub fn upgrade(&self) -> Option<PinnedArc<T>> {
        let one_more = |strong: usize| (strong > 0).then(|| strong + 1);
        // Acquire, for new_cyclic(): the value is there.
        let strong = self.counts().0.fetch_update(Ordering::Acquire, Ordering::Relaxed, one_more);
        strong.ok().map(|_| PinnedArc(self.0))
    }
}

impl<T: ?Sized> Clone for PinnedWeak<T> {
    fn clone(&self) -> Self {
        // Relaxed: there is one already.
        self.counts().1.fetch_add(1, Ordering::Relaxed);
        Self(self.0)
    }
}

impl<T: ?Sized> Drop for PinnedWeak<T> {
    #[inline]
    fn drop(&mut self) {
        let weak = self.counts().1;
        // A thread that finds itself alone needs no locked instruction: no other thread can make another one. Acquire:
        // the memory is freed after all that other threads did with it; release: what was done here happens before
        // that.
        if weak.load(Ordering::Acquire) == 1 || weak.fetch_sub(1, Ordering::AcqRel) == 1 {
            // SAFETY: it came from dig(); the value is gone or was never there, and the rest needs no drop.
            unsafe { Grave::bury(self.0) };
        }
    }
}

impl<T> PinnedWeak<T> {
    /// Where the value is, or will be.
    pub fn uncounted(&self) -> Uncounted<T> {
        Uncounted(self.0)
    }
}

impl<T> Uncounted<T> {
    /// A reference, if the last one has not gone.
    ///
    /// # Safety
    /// The value's drop has not ended, and cannot before this has.
    pub unsafe fn upgrade(&self) -> Option<PinnedArc<T>> {
        // Not dropped: it stands for the share that the references have together, which is given up after the value's
        // drop.
        mem::ManuallyDrop::new(PinnedWeak(self.0)).upgrade()
    }

    /// The value.
    ///
    /// # Safety
    /// There is a reference for as long as the answer is used.
    pub unsafe fn get<'a>(&self) -> &'a T {
        // SAFETY: the caller's promise.
        unsafe { &self.0.as_ref().value }
    }

    /// A reference that was put aside by forgetting it.
    ///
    /// # Safety
    /// There is one, and it is given up to the answer.
    pub unsafe fn into_counted(self) -> PinnedArc<T> {
        PinnedArc(self.0)
    }
}

impl<T> Clone for Uncounted<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Uncounted<T> {}

#[cfg(all(test, not(purlin_model)))]
mod tests {
    use super::*;
    use crate::sync::Mutex;
    use std::sync::Arc;

    struct DropLog(Arc<Mutex<Vec<&'static str>>>, &'static str);

    impl Drop for DropLog {
        fn drop(&mut self) {
            self.0.lock().push(self.1);
        }
    }

    #[test]
    fn the_last_reference_ends_the_value_and_the_last_weak_one_its_memory() {
        let told = Arc::default();
        let value = PinnedArc::new(DropLog(Arc::clone(&told), "value"));
        let (other, weak) = (value.clone(), PinnedArc::downgrade(&value));
        assert_eq!((PinnedArc::strong_count(&value), PinnedArc::ptr_eq(&value, &other)), (2, true));
        assert!(PinnedArc::into_last(value).is_none());
        assert!(weak.upgrade().is_some());
        drop(other);
        assert_eq!(*told.lock(), ["value"]);
        assert!(weak.clone().upgrade().is_none());
    }

    #[test]
    fn references_that_are_counted_at_once_are_given_up_one_by_one_or_with_the_iterator() {
        let value = PinnedArc::new(7);
        let mut clones = PinnedArc::clones(&value, 3);
        assert_eq!((PinnedArc::strong_count(&value), clones.len()), (4, 3));
        let one = clones.next().expect("there are three");
        assert_eq!((*one, PinnedArc::ptr_eq(&one, &value)), (7, true));
        drop(clones);
        assert_eq!(PinnedArc::strong_count(&value), 2);
        assert!(PinnedArc::clones(&value, 0).next().is_none());
    }

    #[test]
    fn a_pointer_to_the_value_is_a_reference() {
        let told = Arc::default();
        let pointer = PinnedArc::into_value(PinnedArc::new(DropLog(Arc::clone(&told), "value")));
        // SAFETY: the pointer has a reference, and gives it up.
        let back = unsafe { PinnedArc::from_value(pointer) };
        assert_eq!((back.1, PinnedArc::strong_count(&back)), ("value", 1));
        drop(back);
        assert_eq!(*told.lock(), ["value"]);
    }

    #[test]
    fn the_last_reference_is_nobody_elses_until_it_goes() {
        let told = Arc::default();
        let value = PinnedArc::new(DropLog(Arc::clone(&told), "value"));
        let (weak, place) = (PinnedArc::downgrade(&value), PinnedArc::uncounted(&value));
        let last = PinnedArc::into_last(value).expect("there is no other");
        assert!(weak.upgrade().is_none());
        // SAFETY: the value is there until `last` is dropped.
        assert!(unsafe { place.upgrade() }.is_none());
        assert!(told.lock().is_empty(), "it stays where it is");
        drop(last);
        assert_eq!(*told.lock(), ["value"]);
    }

    #[test]
    fn a_value_may_know_itself() {
        struct Node {
            me: PinnedWeak<Node>,
        }
        let node = PinnedArc::new_cyclic(|me| {
            assert!(me.upgrade().is_none());
            Node { me: me.clone() }
        });
        assert!(PinnedArc::ptr_eq(&node, &node.me.upgrade().expect("it is there")));
        let me = node.me.clone();
        drop(node);
        assert!(me.upgrade().is_none());
    }
}

//! A value in memory of its own, as in a `Box`, that comes from the slab.

use std::fmt;
use std::ops::Deref;
use std::ptr::{self, NonNull};

use super::{allocate_for, free_for};

/// A value in a block of the slab, or, if it is large, in memory of the system; dropped with this.
///
/// ```
/// use purlin_base::slab::SlabBox;
///
/// let text = SlabBox::new("small".to_owned());
/// assert_eq!(text.len(), 5);
/// ```
pub struct SlabBox<T: ?Sized>(NonNull<T>);

// SAFETY: it owns its value, as a Box does.
unsafe impl<T: ?Sized + Send> Send for SlabBox<T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Sync> Sync for SlabBox<T> {}

impl<T> SlabBox<T> {
    /// Moves `value` there. Ends the process when the system has no memory, as `Box` does.
    #[inline]
    #[must_use]
    pub fn new(value: T) -> Self {
        let place = allocate_for::<T>();
        // SAFETY: the memory is for a T, and no other code knows it.
        unsafe { place.write(value) };
        Self(place)
    }

    /// The value, out of its memory.
    #[inline]
    #[must_use]
    pub fn into_inner(this: Self) -> T {
        let place = Self::into_raw(this);
        // SAFETY: the value is ours, and is read once; its memory is of new().
        unsafe {
            let value = place.read();
            free_for(place);
            value
        }
    }
}

impl<T: ?Sized> SlabBox<T> {
    /// Gives up the value, for [`from_raw`](Self::from_raw).
    #[inline]
    #[must_use]
    pub fn into_raw(this: Self) -> NonNull<T> {
        std::mem::ManuallyDrop::new(this).0
    }

    /// Takes a value over again, which may have been made unsized since.
    ///
    /// # Safety
    /// `raw` is of [`into_raw`](Self::into_raw), and is taken over once.
    #[inline]
    #[must_use]
    pub unsafe fn from_raw(raw: NonNull<T>) -> Self {
        Self(raw)
    }
}

impl<T: ?Sized> Deref for SlabBox<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the value is ours, and lives as long as this.
        unsafe { self.0.as_ref() }
    }
}

impl<T: ?Sized> Drop for SlabBox<T> {
    #[inline]
    fn drop(&mut self) {
        /// Also when the value's drop panics.
        struct Memory<T: ?Sized>(NonNull<T>);
        impl<T: ?Sized> Drop for Memory<T> {
            fn drop(&mut self) {
                // SAFETY: allocate_for's; the value is gone.
                unsafe { free_for(self.0) };
            }
        }
        let memory = Memory(self.0);
        // SAFETY: the value is ours, and no code sees it again.
        unsafe { ptr::drop_in_place(memory.0.as_ptr()) };
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for SlabBox<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use super::*;

    trait Named {
        fn name(&self) -> String;
    }

    impl<const BYTES: usize> Named for (Arc<()>, [u8; BYTES]) {
        fn name(&self) -> String {
            format!("{} bytes from {}", BYTES, self.1[BYTES - 1])
        }
    }

    fn erased<T: Named + 'static>(value: T) -> SlabBox<dyn Named> {
        let raw = SlabBox::into_raw(SlabBox::new(value));
        // SAFETY: of into_raw, once.
        unsafe { SlabBox::from_raw(raw as NonNull<dyn Named>) }
    }

    #[test]
    fn a_value_of_any_size_is_dropped_once_also_unsized() {
        let alive = Arc::new(());
        let values = [
            erased((Arc::clone(&alive), [1; 1])),
            erased((Arc::clone(&alive), [2; 100])),
            erased((Arc::clone(&alive), [3; 1000])),
        ];
        assert_eq!(Arc::strong_count(&alive), 4);
        let names: Vec<_> = values.iter().map(|value| value.name()).collect();
        assert_eq!(names, ["1 bytes from 1", "100 bytes from 2", "1000 bytes from 3"]);
        drop(values);
        assert_eq!(Arc::strong_count(&alive), 1);
        let taken_out = SlabBox::into_inner(SlabBox::new(Arc::clone(&alive)));
        assert_eq!(Arc::strong_count(&alive), 2, "moved, not dropped");
        drop(taken_out);
        assert_eq!(Arc::strong_count(&alive), 1);
        drop(SlabBox::new(()));
    }

    #[test]
    fn a_drop_that_panics_frees_the_memory() {
        struct Panics;
        impl Drop for Panics {
            fn drop(&mut self) {
                panic!("expected by a test");
            }
        }
        let value = SlabBox::new((Panics, 7_u64));
        assert!(thread::spawn(move || drop(value)).join().is_err());
    }
}

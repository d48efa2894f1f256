//! PJRT's objects as C knows them: addresses of ours, each with a word in front that says what it is. Small ones are
//! blocks of the slab, because every result of a run and every event is one.
//!
//! The word is checked at every use, so null, an object of another kind and, most often, one that was destroyed are
//! errors that name it. What points into nowhere cannot be known.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use purlin_base::slab;
use purlin_base::{Error, StatusOr};
use purlin_pjrt_abi::Function;

/// A kind of object that C knows by address.
pub(crate) trait Handle: Sized {
    /// What is behind the address.
    type Object: 'static;
    /// PJRT's name.
    const NAME: &'static str;

    /// The word in front.
    fn word() -> u64 {
        const { word_of(Self::NAME) }
    }
}

/// An object of ours. `PJRT_Memory` begins with the address of its table, which is then the word.
#[repr(C)]
struct Given<T> {
    word: AtomicU64,
    object: T,
}

/// What no memory begins with by chance: FNV-1a of the name.
const fn word_of(name: &str) -> u64 {
    let (bytes, mut hash, mut at) = (name.as_bytes(), 0xcbf2_9ce4_8422_2325_u64, 0);
    while at < bytes.len() {
        hash = (hash ^ bytes[at] as u64).wrapping_mul(0x0100_0000_01b3);
        at += 1;
    }
    hash
}

/// Gives `object` to C.
pub(crate) fn give<H: Handle>(object: H::Object) -> *mut H {
    let given = slab::allocate_for::<Given<H::Object>>();
    // SAFETY: the memory is for it, and no other thread knows it.
    unsafe { given.write(Given { word: AtomicU64::new(H::word()), object }) };
    given.as_ptr().cast()
}

/// The object behind `handle`, for the arguments `A`.
///
/// # Errors
/// `InvalidArgument`: it is null, or no such object.
///
/// # Safety
/// `handle` is null or points to an object of this plugin, which lives for `'a`.
pub(crate) unsafe fn lent<'a, A: Function, H: Handle>(handle: *const H) -> StatusOr<&'a H::Object> {
    // SAFETY: the caller's promise.
    unsafe { checked::<A, H>(handle) }.map(|given| &given.object)
}

/// As [`lent`], where null is none.
///
/// # Errors
/// `InvalidArgument`: it is no such object.
///
/// # Safety
/// As [`lent`].
pub(crate) unsafe fn lent_if<'a, A: Function, H: Handle>(handle: *const H) -> StatusOr<Option<&'a H::Object>> {
    if handle.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's promise.
    unsafe { lent::<A, H>(handle) }.map(Some)
}

/// Takes the object behind `handle` back. Null is none.
///
/// # Errors
/// `InvalidArgument`: it is no such object.
///
/// # Safety
/// As [`lent`]; C gives it up.
pub(crate) unsafe fn take<A: Function, H: Handle>(handle: *mut H) -> StatusOr<Option<H::Object>> {
    if handle.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's promise: give() made it.
    unsafe {
        let given = checked::<A, H>(handle)?;
        if given.word.swap(0, Relaxed) != H::word() {
            return Err(none_such::<A, H>(handle));
        }
        let given = NonNull::new_unchecked(handle.cast::<Given<H::Object>>());
        // The word is zero from now on, also while the block is free.
        let object = (&raw const (*given.as_ptr()).object).read();
        slab::free_for(given);
        Ok(Some(object))
    }
}

unsafe fn checked<'a, A: Function, H: Handle>(handle: *const H) -> StatusOr<&'a Given<H::Object>> {
    if handle.is_null() {
        return Err(Error::invalid_argument(format!("{}: the {} is null", A::FUNCTION, H::NAME)));
    }
    let given = handle.cast::<Given<H::Object>>();
    // SAFETY: the caller's promise; what is not aligned is not looked at.
    if !given.is_aligned() || unsafe { (*given).word.load(Relaxed) } != H::word() {
        return Err(none_such::<A, H>(handle));
    }
    // SAFETY: the word says that it is one.
    Ok(unsafe { &*given })
}

#[cold]
fn none_such<A: Function, H: Handle>(handle: *const H) -> Error {
    Error::invalid_argument(format!(
        "{}: what is at {handle:p} is no {} of this plugin, or was destroyed",
        A::FUNCTION,
        H::NAME
    ))
}

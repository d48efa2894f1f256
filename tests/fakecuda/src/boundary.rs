//! The boundary to C: what every entry point does before and after its work, and what C's pointers are wrapped in.
//!
//! Before: a child of fork is answered 3, a process that ends 4, a host function 800 (and reported), an entry point
//! before `cuInit` 3; the call is counted; a fault that is due is answered. After: an error becomes its number, and a
//! panic 999, said on stderr. This is the only place that catches panics.

#![allow(unsafe_code, reason = "pointers that C gives are read and written here, and nowhere else")]

use std::ffi::{CStr, c_char};
use std::panic::AssertUnwindSafe;

use purlin_fakecuda_options::Effect;

use crate::code::Code;
use crate::driver::{self, Driver};
use crate::entry::Entry;
use crate::{thread, watch};

/// One call of one entry point.
#[derive(Clone, Copy)]
pub(crate) struct Call {
    pub(crate) driver: &'static Driver,
    pub(crate) entry: Entry,
    /// What its operation fails with when it runs.
    pub(crate) fault: Option<u32>,
}

/// What an entry point answers, apart from its out parameters.
pub(crate) type Answer<T = ()> = Result<T, Code>;

/// Runs the body of an entry point.
pub(crate) fn call(entry: Entry, body: impl FnOnce(&Call) -> Answer) -> u32 {
    // clippy.toml names base's door for this; the fake shares no code with what it tests.
    #[allow(clippy::disallowed_methods, reason = "the fake depends on nothing of Purlin, and catches panics here only")]
    let caught = std::panic::catch_unwind(AssertUnwindSafe(|| enter(entry).and_then(|call| body(&call))));
    match caught {
        Ok(Ok(())) => 0,
        Ok(Err(Code(code))) => code,
        Err(_) => {
            driver::complain(&format!("{} panicked: a bug of the fake", entry.name()));
            Code::UNKNOWN.0
        }
    }
}

/// As [`call`]; in the empty mode `empty` is all that happens.
pub(crate) fn call_or(
    entry: Entry,
    empty: impl FnOnce(&'static Driver) -> Answer,
    body: impl FnOnce(&Call) -> Answer,
) -> u32 {
    call(entry, |call| if call.driver.options.empty { empty(call.driver) } else { body(call) })
}

/// [`call_or`] for what has nothing to answer.
pub(crate) fn call_or_nothing(entry: Entry, body: impl FnOnce(&Call) -> Answer) -> u32 {
    call_or(entry, |_| Ok(()), body)
}

fn enter(entry: Entry) -> Answer<Call> {
    // Counted, too: that a child of fork calls nothing is for tests to see.
    driver::may_be_called().inspect_err(|_| _ = entry.count())?;
    let driver = driver::get()?;
    let is_always_allowed =
        matches!(entry, Entry::cuGetErrorName | Entry::cuGetErrorString | Entry::cuDriverGetVersion);
    if !is_always_allowed && thread::is_host_function() {
        driver.state.lock().call_in_host_function(entry);
        return Err(Code::NOT_PERMITTED);
    }
    if !is_always_allowed && entry != Entry::cuInit && !driver.is_initialised() {
        return Err(Code::NOT_INITIALIZED);
    }
    let number = entry.count();
    watch::call(entry);
    let mut call = Call { driver, entry, fault: None };
    if let Some((code, effect)) = driver.faults.due(entry, number) {
        match effect {
            Effect::Once => return Err(Code(code)),
            Effect::Async => call.fault = Some(code),
            Effect::Sticky => {
                driver.break_device(&mut driver.state.lock(), thread::current().unwrap_or(0), code);
                return Err(Code(code));
            }
        }
    }
    Ok(call)
}

/// A place that C gives for a value; null is none.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct Out<T>(*mut T);

impl<T: Copy> Out<T> {
    pub(crate) fn new(place: *mut T) -> Self {
        Self(place)
    }

    /// INVALID_VALUE if there is no place.
    pub(crate) fn required(self) -> Answer {
        if self.0.is_null() { Err(Code::INVALID_VALUE) } else { Ok(()) }
    }

    /// Writes the value; INVALID_VALUE if there is no place.
    pub(crate) fn set(self, value: T) -> Answer {
        self.required()?;
        self.set_at(0, value);
        Ok(())
    }

    /// What the place holds; INVALID_VALUE if there is none.
    pub(crate) fn get(self) -> Answer<T> {
        In::new(self.0.cast_const()).get()
    }

    /// Writes the value, if there is a place.
    pub(crate) fn set_if_wanted(self, value: T) {
        _ = self.set(value);
    }

    /// Writes an element of an array that has more than `at`, if there is one.
    pub(crate) fn set_at(self, at: usize, value: T) {
        if !self.0.is_null() {
            // SAFETY: CUDA's contract, kept by the caller in C: a place that is not null is one for the value, or for
            // as many as were said. It need not be aligned.
            unsafe { self.0.add(at).write_unaligned(value) };
        }
    }
}

/// An array that C gives; null is none.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct In<T>(*const T);

impl<T: Copy> In<T> {
    pub(crate) fn new(first: *const T) -> Self {
        Self(first)
    }

    pub(crate) fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// The first element; INVALID_VALUE if there is no array.
    pub(crate) fn get(self) -> Answer<T> {
        self.get_at(0)
    }

    /// An element of an array that has more than `at`; INVALID_VALUE if there is no array.
    pub(crate) fn get_at(self, at: usize) -> Answer<T> {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: CUDA's contract, kept by the caller in C: a pointer that is not null leads to a value, or to as many
        // as were said. It need not be aligned.
        Ok(unsafe { self.0.add(at).read_unaligned() })
    }

    /// `count` elements; INVALID_VALUE if there is no array.
    pub(crate) fn get_all(self, count: usize) -> Answer<Vec<T>> {
        (0..count).map(|at| self.get_at(at)).collect()
    }
}

impl In<c_char> {
    /// The text that ends in a null; INVALID_VALUE if there is none.
    pub(crate) fn text(self) -> Answer<String> {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: CUDA's contract, kept by the caller in C: a name that is not null ends in a null byte.
        Ok(unsafe { CStr::from_ptr(self.0) }.to_string_lossy().into_owned())
    }
}

impl Out<c_char> {
    /// Writes as much of the text as `size_bytes` have room for, and a null.
    pub(crate) fn set_text(self, text: &str, size_bytes: usize) {
        let kept = &text.as_bytes()[..text.len().min(size_bytes.saturating_sub(1))];
        if size_bytes > 0 {
            kept.iter().enumerate().for_each(|(at, byte)| self.set_at(at, byte.cast_signed()));
            self.set_at(kept.len(), 0);
        }
    }
}

//! How calls fail: absl's canonical codes with a message, payloads and the place where the error was made.
//!
//! What can fail answers a [`Result`] with an [`Error`], which is never OK. An error is one word: it points to a
//! shared, immutable [`StatusRep`], so that one error reaches any number of waiters for a reference count each.
//! Changing the payloads of a shared error copies it first.
//!
//! C++ has one word for OK and for errors, `purlin::Status`, whose pointer is null for OK. Only the boundary knows that
//! null: `into_raw` and `from_raw`.

#![allow(unsafe_code, reason = "an error crosses the boundary as the pointer of its Arc")]

mod code;
mod location;

use std::fmt;
use std::sync::Arc;

pub use code::StatusCode;
pub use location::{SourceLocation, called_from, without_place};

/// What an error is. Only ever seen behind an [`Error`].
#[derive(Clone, Debug)]
pub struct StatusRep {
    code: StatusCode,
    message: String,
    /// Type URL and bytes, in the order in which they were first set. Few, so a list.
    payloads: Vec<(String, Vec<u8>)>,
    location: SourceLocation,
}

/// Why something failed. One word, cheap to clone.
///
/// ```
/// use purlin::{Error, StatusCode, StatusOr};
///
/// fn half(number: i32) -> StatusOr<i32> {
///     if number % 2 != 0 {
///         return Err(Error::invalid_argument(format!("{number} is odd")));
///     }
///     Ok(number / 2)
/// }
///
/// assert_eq!(half(8)?, 4);
/// let error = half(7).unwrap_err();
/// assert_eq!((error.code(), error.message()), (StatusCode::InvalidArgument, "7 is odd"));
/// # Ok::<(), purlin::Error>(())
/// ```
#[derive(Clone)]
#[repr(transparent)]
pub struct Error(Arc<StatusRep>);

const _: () = assert!(size_of::<Result<(), Error>>() == size_of::<usize>(), "a result without a value is one word");

/// A value, or an error.
///
/// ```
/// use purlin::{Error, StatusOr};
///
/// fn first(values: &[f32]) -> StatusOr<f32> {
///     values.first().copied().ok_or_else(|| Error::out_of_range("no values"))
/// }
///
/// assert_eq!(first(&[1.5])?, 1.5);
/// assert!(first(&[]).is_err());
/// # Ok::<(), purlin::Error>(())
/// ```
pub type StatusOr<T> = Result<T, Error>;

impl Error {
    /// An error made by the caller of this function. [`StatusCode::Ok`] is no error, and a bug of that caller:
    /// the code is then [`StatusCode::Internal`], and the message says so before `message`.
    ///
    /// ```
    /// use purlin::{Error, StatusCode};
    ///
    /// let error = Error::new(StatusCode::DataLoss, "checksum differs");
    /// assert_eq!(error.code(), StatusCode::DataLoss);
    /// assert_eq!(error.location().line(), line!() - 2);
    /// ```
    #[must_use]
    #[track_caller]
    pub fn new(code: StatusCode, message: impl Into<String>) -> Self {
        Self::with_location(code, message, SourceLocation::caller())
    }

    /// As [`new`](Self::new), of an error made at `location`.
    #[must_use]
    pub fn with_location(code: StatusCode, message: impl Into<String>, location: SourceLocation) -> Self {
        let message = message.into();
        let (code, message) = match code {
            StatusCode::Ok => (StatusCode::Internal, format!("an error was made with the code OK: {message}")),
            code => (code, message),
        };
        Self(Arc::new(StatusRep { code, message, payloads: Vec::new(), location }))
    }

    /// Never [`StatusCode::Ok`].
    #[must_use]
    pub fn code(&self) -> StatusCode {
        self.0.code
    }

    /// What went wrong, with which value, on what.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Where the error was made.
    #[must_use]
    pub fn location(&self) -> SourceLocation {
        self.0.location
    }

    /// Type URLs and bytes, in the order in which they were first set.
    #[must_use]
    pub fn payloads(&self) -> impl ExactSizeIterator<Item = (&str, &[u8])> {
        self.0.payloads.iter().map(|(type_url, bytes)| (type_url.as_str(), bytes.as_slice()))
    }

    /// The bytes stored under `type_url`.
    ///
    /// ```
    /// use purlin::Error;
    ///
    /// let mut error = Error::resource_exhausted("out of memory");
    /// error.set_payload("example.com/rank", b"3");
    /// assert_eq!(error.payload("example.com/rank"), Some(&b"3"[..]));
    /// assert_eq!(error.payload("example.com/host"), None);
    /// ```
    #[must_use]
    pub fn payload(&self, type_url: &str) -> Option<&[u8]> {
        self.payloads().find(|(known, _)| *known == type_url).map(|(_, bytes)| bytes)
    }

    /// Stores `bytes` under `type_url` in this error only.
    ///
    /// ```
    /// use purlin::Error;
    ///
    /// let shared = Error::internal("lost");
    /// let mut mine = shared.clone();
    /// mine.set_payload("example.com/rank", b"3");
    /// assert_eq!((mine.payloads().len(), shared.payloads().len()), (1, 0));
    /// ```
    pub fn set_payload(&mut self, type_url: &str, bytes: &[u8]) {
        let rep = Arc::make_mut(&mut self.0);
        match rep.payloads.iter_mut().find(|(known, _)| known == type_url) {
            Some((_, old)) => *old = bytes.to_vec(),
            None => rep.payloads.push((type_url.to_owned(), bytes.to_vec())),
        }
    }

    /// This error with `words` and a colon before its message. Code, payloads and location are the same.
    ///
    /// ```
    /// use purlin::Error;
    ///
    /// let error = Error::not_found("no such row").prefixed("table 'users'");
    /// assert_eq!(error.message(), "table 'users': no such row");
    /// assert_eq!(error.location().line(), line!() - 2);
    /// ```
    #[must_use]
    pub fn prefixed(mut self, words: impl fmt::Display) -> Self {
        let rep = Arc::make_mut(&mut self.0);
        rep.message = format!("{words}: {}", rep.message);
        self
    }

    /// Removes a payload from this error only; false if there was none.
    pub fn erase_payload(&mut self, type_url: &str) -> bool {
        let Some(at) = self.payloads().position(|(known, _)| known == type_url) else { return false };
        Arc::make_mut(&mut self.0).payloads.remove(at);
        true
    }

    /// Gives the reference away as a pointer, which is not null. Take it back with [`from_raw`](Self::from_raw).
    #[doc(hidden)]
    #[must_use]
    pub fn into_raw(self) -> *const StatusRep {
        Arc::into_raw(self.0)
    }

    /// Takes a reference back; `None` for null, which is C++'s OK.
    ///
    /// # Safety
    /// `rep` is null or came from [`into_raw`](Self::into_raw), once per call.
    #[doc(hidden)]
    #[must_use]
    pub unsafe fn from_raw(rep: *const StatusRep) -> Option<Self> {
        // SAFETY: the caller hands over the reference that into_raw() gave out.
        (!rep.is_null()).then(|| Self(unsafe { Arc::from_raw(rep) }))
    }

    /// One more reference to an error that the caller holds by another reference; `None` for null.
    ///
    /// # Safety
    /// `rep` is null or came from [`into_raw`](Self::into_raw), and that reference outlives this call.
    #[doc(hidden)]
    #[must_use]
    pub unsafe fn from_borrowed_raw(rep: *const StatusRep) -> Option<Self> {
        if !rep.is_null() {
            // SAFETY: the caller keeps a reference alive during this call.
            unsafe { Arc::increment_strong_count(rep) };
        }
        // SAFETY: the count was just raised for us.
        unsafe { Self::from_raw(rep) }
    }
}

/// As C++ takes how something ended: the error, given away as [`Error::into_raw`] does, or null.
#[doc(hidden)]
#[must_use]
pub fn into_raw(outcome: Result<(), Error>) -> *const StatusRep {
    outcome.map_or_else(Error::into_raw, |()| std::ptr::null())
}

/// What C++ gives as how something ended.
///
/// # Errors
/// What it gives is one, and not null.
///
/// # Safety
/// As [`Error::from_raw`].
#[doc(hidden)]
pub unsafe fn from_raw(rep: *const StatusRep) -> Result<(), Error> {
    // SAFETY: the caller's promise.
    unsafe { Error::from_raw(rep) }.map_or(Ok(()), Err)
}

/// One constructor per code that Purlin itself uses.
macro_rules! constructors {
    ($($name:ident => $code:ident),* $(,)?) => {
        impl Error {
            $(
                #[doc = concat!("An error with [`StatusCode::", stringify!($code), "`], made by the caller.")]
                #[must_use]
                #[track_caller]
                pub fn $name(message: impl Into<String>) -> Self {
                    Self::with_location(StatusCode::$code, message, SourceLocation::caller())
                }
            )*
        }
    };
}

constructors! {
    cancelled => Cancelled,
    unknown => Unknown,
    invalid_argument => InvalidArgument,
    deadline_exceeded => DeadlineExceeded,
    not_found => NotFound,
    already_exists => AlreadyExists,
    permission_denied => PermissionDenied,
    resource_exhausted => ResourceExhausted,
    failed_precondition => FailedPrecondition,
    aborted => Aborted,
    out_of_range => OutOfRange,
    unimplemented => Unimplemented,
    internal => Internal,
    unavailable => Unavailable,
    data_loss => DataLoss,
    unauthenticated => Unauthenticated,
}

/// Equal code, message and payloads; neither the place nor the order of the payloads counts.
impl PartialEq for Error {
    fn eq(&self, other: &Self) -> bool {
        let (a, b) = (&self.0, &other.0);
        Arc::ptr_eq(a, b)
            || (a.code == b.code
                && a.message == b.message
                && a.payloads.len() == b.payloads.len()
                && self.payloads().all(|(type_url, bytes)| other.payload(type_url) == Some(bytes)))
    }
}

impl Eq for Error {}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.code.name(), self.0.message)?;
        for (type_url, bytes) in &self.0.payloads {
            write!(f, " [{type_url}='{}']", bytes.escape_ascii())?;
        }
        if self.0.location != SourceLocation::UNKNOWN {
            write!(f, " (at {})", self.0.location)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ok_is_null_only_in_cpp() {
        assert!(into_raw(Ok(())).is_null());
        // SAFETY: null is OK.
        assert_eq!(unsafe { from_raw(std::ptr::null()) }, Ok(()));
        let rep = into_raw(Err(Error::aborted("x")));
        // SAFETY: the reference that into_raw() gave out.
        assert_eq!(unsafe { from_raw(rep) }, Err(Error::aborted("x")));
    }

    #[test]
    fn an_error_is_never_ok() {
        let error = Error::new(StatusCode::Ok, "all is well");
        assert_eq!(error.code(), StatusCode::Internal);
        assert_eq!(error.message(), "an error was made with the code OK: all is well");
        assert!(error.location().file().ends_with("status/mod.rs"));
    }

    #[test]
    fn an_error_knows_its_place() {
        let error = Error::not_found("no such thing");
        let location = error.location();
        assert!(location.file().ends_with("status/mod.rs"));
        assert!(location.line() > 0);
        assert!(error.to_string().starts_with("NOT_FOUND: no such thing (at "));
    }

    #[test]
    fn payloads_change_in_one_copy_only() {
        let mut a = Error::internal("x");
        a.set_payload("type/a", b"1");
        let b = a.clone();
        a.set_payload("type/a", b"2");
        a.set_payload("type/b", b"3\n");
        assert_eq!(b.payload("type/a"), Some(&b"1"[..]));
        assert_eq!(b.payloads().len(), 1);
        assert!(a.to_string().contains(r"[type/b='3\n']"));
        assert!(a.erase_payload("type/a"));
        assert!(!a.erase_payload("type/a"));
        assert_eq!(a.payloads().len(), 1);
        assert_ne!(a, b);
    }

    #[test]
    fn equality_looks_at_payloads_but_not_at_their_order() {
        let with = |payloads: &[(&str, &[u8])]| {
            let mut error = Error::aborted("x");
            payloads.iter().for_each(|(type_url, bytes)| error.set_payload(type_url, bytes));
            error
        };
        assert_eq!(with(&[("a", b"1"), ("b", b"2")]), with(&[("b", b"2"), ("a", b"1")]));
        assert_ne!(with(&[("a", b"1"), ("b", b"2")]), with(&[("a", b"2"), ("b", b"1")]));
        assert_ne!(with(&[("a", b"1"), ("b", b"2")]), with(&[("a", b"1")]));
        assert_ne!(with(&[("a", b"1"), ("b", b"2")]), with(&[("a", b"1"), ("c", b"2")]));
    }

    #[test]
    fn raw_pointers_round_trip() {
        let rep = Error::data_loss("gone").into_raw();
        // SAFETY: `rep` is the reference that into_raw() gave out, borrowed once and then taken back.
        let (borrowed, owned) = unsafe { (Error::from_borrowed_raw(rep).unwrap(), Error::from_raw(rep).unwrap()) };
        assert_eq!(borrowed, owned);
        assert_eq!(Arc::strong_count(&borrowed.0), 2);
    }
}

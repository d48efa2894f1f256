//! How calls fail: absl's canonical codes with a message, payloads and the place where the error was made.
//!
//! A [`Status`] is one word. OK is null; an error points to a shared, immutable [`StatusRep`], so that one error
//! reaches any number of waiters for a reference count each. Changing the payloads of a shared error copies it first.

#![allow(unsafe_code, reason = "a status crosses the boundary as the pointer of its Arc")]

use std::borrow::Cow;
use std::ffi::{CStr, c_char};
use std::fmt;
use std::panic::Location;
use std::sync::Arc;

use crate::static_text::StaticText;

/// absl's canonical codes, same numbers. Choose by what the caller should do next.
///
/// ```
/// use purlin::{Status, StatusCode};
///
/// let status = Status::not_found("no device 7");
/// assert_eq!(status.code(), StatusCode::NotFound);
/// assert_eq!(status.code().name(), "NOT_FOUND");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i32)]
pub enum StatusCode {
    /// No error.
    Ok = 0,
    /// The operation was cancelled, usually by its caller or because its runner has shut down.
    Cancelled = 1,
    /// Nothing better is known.
    Unknown = 2,
    /// The arguments are wrong whatever the state of the system.
    InvalidArgument = 3,
    /// A time limit passed first; the operation may still finish.
    DeadlineExceeded = 4,
    /// What was asked for does not exist.
    NotFound = 5,
    /// What was to be made exists already.
    AlreadyExists = 6,
    /// The caller may not do this.
    PermissionDenied = 7,
    /// Memory, threads or a quota are used up.
    ResourceExhausted = 8,
    /// The system is not in the state that this needs; do something else first.
    FailedPrecondition = 9,
    /// Lost a race; retry at a higher level.
    Aborted = 10,
    /// Past the valid range.
    OutOfRange = 11,
    /// Not supported here.
    Unimplemented = 12,
    /// An invariant is broken; a bug.
    Internal = 13,
    /// Not now; retry the same call.
    Unavailable = 14,
    /// Data is lost or damaged beyond repair.
    DataLoss = 15,
    /// The caller is not known.
    Unauthenticated = 16,
}

const CODES: [(StatusCode, &str); 17] = [
    (StatusCode::Ok, "OK"),
    (StatusCode::Cancelled, "CANCELLED"),
    (StatusCode::Unknown, "UNKNOWN"),
    (StatusCode::InvalidArgument, "INVALID_ARGUMENT"),
    (StatusCode::DeadlineExceeded, "DEADLINE_EXCEEDED"),
    (StatusCode::NotFound, "NOT_FOUND"),
    (StatusCode::AlreadyExists, "ALREADY_EXISTS"),
    (StatusCode::PermissionDenied, "PERMISSION_DENIED"),
    (StatusCode::ResourceExhausted, "RESOURCE_EXHAUSTED"),
    (StatusCode::FailedPrecondition, "FAILED_PRECONDITION"),
    (StatusCode::Aborted, "ABORTED"),
    (StatusCode::OutOfRange, "OUT_OF_RANGE"),
    (StatusCode::Unimplemented, "UNIMPLEMENTED"),
    (StatusCode::Internal, "INTERNAL"),
    (StatusCode::Unavailable, "UNAVAILABLE"),
    (StatusCode::DataLoss, "DATA_LOSS"),
    (StatusCode::Unauthenticated, "UNAUTHENTICATED"),
];

impl StatusCode {
    /// The code's name, such as `"INVALID_ARGUMENT"`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        CODES[self as usize].1
    }

    /// The code of that number; `Unknown` for a number outside 0..=16.
    ///
    /// ```
    /// use purlin::StatusCode;
    ///
    /// assert_eq!(StatusCode::from_raw(3), StatusCode::InvalidArgument);
    /// assert_eq!(StatusCode::from_raw(-1), StatusCode::Unknown);
    /// ```
    #[must_use]
    pub const fn from_raw(raw: i32) -> Self {
        if raw >= 0 && (raw as usize) < CODES.len() { CODES[raw as usize].0 } else { Self::Unknown }
    }
}

/// A file and a line, of Rust or of C++.
///
/// ```
/// use purlin::SourceLocation;
///
/// let here = SourceLocation::from_static(c"model/layer.cc", 12);
/// assert_eq!(here.to_string(), "model/layer.cc:12");
/// assert_eq!((here.file().as_ref(), here.line()), ("model/layer.cc", 12));
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SourceLocation {
    file: StaticText,
    line: u32,
}

impl SourceLocation {
    /// No place: file `""`, line 0.
    pub const UNKNOWN: Self = Self::from_static(c"", 0);

    /// The place of the caller.
    ///
    /// ```
    /// use purlin::SourceLocation;
    ///
    /// #[track_caller]
    /// fn asked_from() -> SourceLocation {
    ///     SourceLocation::caller()
    /// }
    ///
    /// assert_eq!(asked_from().line(), line!());
    /// ```
    #[must_use]
    #[track_caller]
    pub const fn caller() -> Self {
        let here = Location::caller();
        Self::from_static(here.file_as_c_str(), here.line())
    }

    /// A place in foreign code: the path, which need not be UTF-8, and the line.
    #[must_use]
    pub const fn from_static(file: &'static CStr, line: u32) -> Self {
        Self { file: StaticText::new(file), line }
    }

    /// As [`from_static`](Self::from_static), of a path whose length is looked for when it is read.
    ///
    /// # Safety
    /// `file` points to a string that ends with NUL, lives for ever and is never written.
    #[must_use]
    pub const unsafe fn from_ptr(file: *const c_char, line: u32) -> Self {
        // SAFETY: the caller's promise.
        Self { file: unsafe { StaticText::from_ptr(file) }, line }
    }

    /// In two words, and back: for what is kept by the thousand.
    #[must_use]
    pub const fn into_parts(self) -> (StaticText, u32) {
        (self.file, self.line)
    }

    /// See [`into_parts`](Self::into_parts).
    #[must_use]
    pub const fn from_parts(file: StaticText, line: u32) -> Self {
        Self { file, line }
    }

    /// The path as the compiler was given it; bytes that are not UTF-8 are replaced.
    #[must_use]
    pub fn file(self) -> Cow<'static, str> {
        self.file_as_c_str().to_string_lossy()
    }

    /// The path as C reads it.
    #[must_use]
    pub const fn file_as_c_str(self) -> &'static CStr {
        self.file.get()
    }

    /// Line from 1; 0 when unknown.
    #[must_use]
    pub const fn line(self) -> u32 {
        self.line
    }
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file(), self.line)
    }
}

impl fmt::Debug for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What an error is. Only ever seen behind a [`Status`].
#[derive(Clone, Debug)]
pub struct StatusRep {
    code: StatusCode,
    message: String,
    /// Type URL and bytes, in the order in which they were first set. Few, so a list.
    payloads: Vec<(String, Vec<u8>)>,
    location: SourceLocation,
}

/// OK, or an error. One word, and that word is null for OK.
///
/// ```
/// use purlin::{Status, StatusCode, StatusOr};
///
/// fn half(number: i32) -> StatusOr<i32> {
///     if number % 2 != 0 {
///         return Err(Status::invalid_argument(format!("{number} is odd")));
///     }
///     Ok(number / 2)
/// }
///
/// assert_eq!(half(8)?, 4);
/// let error = half(7).unwrap_err();
/// assert_eq!((error.code(), error.message()), (StatusCode::InvalidArgument, "7 is odd"));
/// # Ok::<(), purlin::Status>(())
/// ```
#[derive(Clone, Default)]
#[repr(transparent)]
pub struct Status(Option<Arc<StatusRep>>);

const _: () = assert!(size_of::<Status>() == size_of::<usize>(), "a Status is one word");

/// A value, or a status that is not OK.
///
/// ```
/// use purlin::{Status, StatusOr};
///
/// fn first(values: &[f32]) -> StatusOr<f32> {
///     values.first().copied().ok_or_else(|| Status::out_of_range("no values"))
/// }
///
/// assert_eq!(first(&[1.5])?, 1.5);
/// assert!(first(&[]).is_err());
/// # Ok::<(), purlin::Status>(())
/// ```
pub type StatusOr<T> = Result<T, Status>;

impl Status {
    /// No error.
    pub const OK: Self = Self(None);

    /// An error made by the caller of this function. [`StatusCode::Ok`] gives [`Status::OK`] and drops the message.
    ///
    /// ```
    /// use purlin::{Status, StatusCode};
    ///
    /// let error = Status::new(StatusCode::DataLoss, "checksum differs");
    /// assert!(!error.ok());
    /// assert_eq!(error.location().map(|place| place.line()), Some(line!() - 2));
    /// ```
    #[must_use]
    #[track_caller]
    pub fn new(code: StatusCode, message: impl Into<String>) -> Self {
        Self::with_location(code, message, SourceLocation::caller())
    }

    /// An error made at `location`. [`StatusCode::Ok`] gives [`Status::OK`] and drops the message.
    #[must_use]
    pub fn with_location(code: StatusCode, message: impl Into<String>, location: SourceLocation) -> Self {
        if code == StatusCode::Ok {
            return Self::OK;
        }
        Self(Some(Arc::new(StatusRep { code, message: message.into(), payloads: Vec::new(), location })))
    }

    /// True when there is no error.
    #[must_use]
    pub const fn ok(&self) -> bool {
        self.0.is_none()
    }

    /// [`StatusCode::Ok`] when [`ok`](Self::ok).
    #[must_use]
    pub fn code(&self) -> StatusCode {
        self.0.as_ref().map_or(StatusCode::Ok, |rep| rep.code)
    }

    /// `""` when [`ok`](Self::ok).
    #[must_use]
    pub fn message(&self) -> &str {
        self.0.as_ref().map_or("", |rep| &rep.message)
    }

    /// Where the error was made.
    #[must_use]
    pub fn location(&self) -> Option<SourceLocation> {
        self.0.as_ref().map(|rep| rep.location)
    }

    /// Type URLs and bytes, in the order in which they were first set.
    #[must_use]
    pub fn payloads(&self) -> impl ExactSizeIterator<Item = (&str, &[u8])> {
        let payloads: &[(String, Vec<u8>)] = self.0.as_ref().map_or(&[], |rep| &rep.payloads);
        payloads.iter().map(|(type_url, bytes)| (type_url.as_str(), bytes.as_slice()))
    }

    /// The bytes stored under `type_url`.
    ///
    /// ```
    /// use purlin::Status;
    ///
    /// let mut error = Status::resource_exhausted("out of memory");
    /// error.set_payload("example.com/rank", b"3");
    /// assert_eq!(error.payload("example.com/rank"), Some(&b"3"[..]));
    /// assert_eq!(error.payload("example.com/host"), None);
    /// ```
    #[must_use]
    pub fn payload(&self, type_url: &str) -> Option<&[u8]> {
        self.payloads().find(|(known, _)| *known == type_url).map(|(_, bytes)| bytes)
    }

    /// Stores `bytes` under `type_url` in this status only. Nothing on OK.
    ///
    /// ```
    /// use purlin::Status;
    ///
    /// let shared = Status::internal("lost");
    /// let mut mine = shared.clone();
    /// mine.set_payload("example.com/rank", b"3");
    /// assert_eq!((mine.payloads().len(), shared.payloads().len()), (1, 0));
    /// ```
    pub fn set_payload(&mut self, type_url: &str, bytes: &[u8]) {
        let Some(rep) = self.0.as_mut().map(Arc::make_mut) else { return };
        match rep.payloads.iter_mut().find(|(known, _)| known == type_url) {
            Some((_, old)) => *old = bytes.to_vec(),
            None => rep.payloads.push((type_url.to_owned(), bytes.to_vec())),
        }
    }

    /// Removes a payload from this status only; false if there was none.
    pub fn erase_payload(&mut self, type_url: &str) -> bool {
        let Some(at) = self.payloads().position(|(known, _)| known == type_url) else { return false };
        if let Some(rep) = self.0.as_mut().map(Arc::make_mut) {
            rep.payloads.remove(at);
        }
        true
    }

    /// Takes `new_status` if this is OK; an error that is already here stays.
    ///
    /// ```
    /// use purlin::Status;
    ///
    /// let mut outcome = Status::OK;
    /// outcome.update(&Status::OK);
    /// outcome.update(&Status::cancelled("first"));
    /// outcome.update(&Status::internal("second"));
    /// assert_eq!(outcome.message(), "first");
    /// ```
    pub fn update(&mut self, new_status: &Self) {
        if self.ok() {
            self.clone_from(new_status);
        }
    }

    /// This, with which something is to fail; where it is OK, which is a bug of the caller, `Internal`, made at the
    /// place of that caller.
    #[must_use]
    #[track_caller]
    pub fn not_ok(self, function: &str) -> Self {
        if self.ok() { Self::internal(format!("{function} was given an OK status")) } else { self }
    }

    /// `Ok(())`, or the error.
    ///
    /// # Errors
    /// This status, unless it is OK.
    ///
    /// # Examples
    /// ```
    /// use purlin::Status;
    ///
    /// assert_eq!(Status::OK.into_result(), Ok(()));
    /// let error = Status::unavailable("try again");
    /// assert_eq!(error.clone().into_result(), Err(error));
    /// ```
    pub fn into_result(self) -> Result<(), Self> {
        if self.ok() { Ok(()) } else { Err(self) }
    }

    /// Gives the reference away as a pointer; null for OK. Take it back with [`from_raw`](Self::from_raw).
    #[must_use]
    pub fn into_raw(self) -> *const StatusRep {
        self.0.map_or(std::ptr::null(), Arc::into_raw)
    }

    /// Takes a reference back.
    ///
    /// # Safety
    /// `rep` is null or came from [`into_raw`](Self::into_raw), once per call.
    #[must_use]
    pub unsafe fn from_raw(rep: *const StatusRep) -> Self {
        // SAFETY: the caller hands over the reference that into_raw() gave out.
        Self((!rep.is_null()).then(|| unsafe { Arc::from_raw(rep) }))
    }

    /// One more reference to an error that the caller holds by another reference.
    ///
    /// # Safety
    /// `rep` is null or came from [`into_raw`](Self::into_raw), and that reference outlives this call.
    #[must_use]
    pub unsafe fn from_borrowed_raw(rep: *const StatusRep) -> Self {
        if !rep.is_null() {
            // SAFETY: the caller keeps a reference alive during this call.
            unsafe { Arc::increment_strong_count(rep) };
        }
        // SAFETY: the count was just raised for us.
        unsafe { Self::from_raw(rep) }
    }
}

/// One constructor per code that Purlin itself uses.
macro_rules! constructors {
    ($($name:ident => $code:ident),* $(,)?) => {
        impl Status {
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
impl PartialEq for Status {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(a), Some(b)) => {
                Arc::ptr_eq(a, b)
                    || (a.code == b.code
                        && a.message == b.message
                        && a.payloads.len() == b.payloads.len()
                        && self.payloads().all(|(type_url, bytes)| other.payload(type_url) == Some(bytes)))
            }
            _ => false,
        }
    }
}

impl Eq for Status {}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code().name())?;
        let Some(rep) = &self.0 else { return Ok(()) };
        write!(f, ": {}", rep.message)?;
        for (type_url, bytes) in &rep.payloads {
            write!(f, " [{type_url}='{}']", bytes.escape_ascii())?;
        }
        if rep.location != SourceLocation::UNKNOWN {
            write!(f, " (at {})", rep.location)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Status {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ok_is_a_null_word() {
        assert!(Status::OK.into_raw().is_null());
        assert_eq!(Status::OK.to_string(), "OK");
        assert!(Status::new(StatusCode::Ok, "ignored").ok());
    }

    #[test]
    fn numbers_and_names_are_those_of_absl() {
        for (number, (code, name)) in CODES.iter().enumerate() {
            assert_eq!(*code as usize, number);
            assert_eq!(StatusCode::from_raw(number as i32), *code);
            assert_eq!(code.name(), *name);
        }
        assert_eq!(StatusCode::from_raw(17), StatusCode::Unknown);
        assert_eq!(StatusCode::from_raw(-1), StatusCode::Unknown);
    }

    #[test]
    fn an_error_knows_its_place() {
        let status = Status::not_found("no such thing");
        let location = status.location().expect("errors have a place");
        assert!(location.file().ends_with("status.rs"));
        assert!(location.line() > 0);
        assert!(status.to_string().starts_with("NOT_FOUND: no such thing (at "));
    }

    #[test]
    fn payloads_change_in_one_copy_only() {
        let mut a = Status::internal("x");
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
            let mut status = Status::aborted("x");
            payloads.iter().for_each(|(type_url, bytes)| status.set_payload(type_url, bytes));
            status
        };
        assert_eq!(with(&[("a", b"1"), ("b", b"2")]), with(&[("b", b"2"), ("a", b"1")]));
        assert_ne!(with(&[("a", b"1"), ("b", b"2")]), with(&[("a", b"2"), ("b", b"1")]));
        assert_ne!(with(&[("a", b"1"), ("b", b"2")]), with(&[("a", b"1")]));
        assert_ne!(with(&[("a", b"1"), ("b", b"2")]), with(&[("a", b"1"), ("c", b"2")]));
    }

    #[test]
    fn update_keeps_the_first_error() {
        let mut status = Status::OK;
        status.update(&Status::aborted("first"));
        status.update(&Status::internal("second"));
        assert_eq!(status.code(), StatusCode::Aborted);
    }

    #[test]
    fn raw_pointers_round_trip() {
        let rep = Status::data_loss("gone").into_raw();
        // SAFETY: `rep` is the reference that into_raw() gave out, borrowed once and then taken back.
        let (borrowed, owned) = unsafe { (Status::from_borrowed_raw(rep), Status::from_raw(rep)) };
        assert_eq!(borrowed, owned);
        assert_eq!(Arc::strong_count(borrowed.0.as_ref().unwrap()), 2);
    }
}

//! Why calls fail, in absl's words and numbers.

/// absl's canonical codes, same numbers. Choose by what the caller should do next.
///
/// ```
/// use purlin::{Error, StatusCode};
///
/// let error = Error::not_found("no device 7");
/// assert_eq!(error.code(), StatusCode::NotFound);
/// assert_eq!(error.code().name(), "NOT_FOUND");
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

#[cfg(test)]
mod tests {
    use super::*;

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
}

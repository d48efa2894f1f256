//! Numbers of C++'s enums. A C++ enum may hold any number of its underlying type, a Rust enum only those of its
//! variants, so they cross as numbers and are looked up here. `.ci/check/numbers` keeps it so.

use std::fmt::Write;

use purlin_base::{Error, StatusOr};

/// The value of `enumeration`, counted from 0 in `values`, where each has its name in C++.
///
/// # Errors
/// `InvalidArgument`: there is none of that number.
#[inline]
pub fn known<E: Copy>(enumeration: &str, number: impl Into<i64>, values: &[(&str, E)]) -> StatusOr<E> {
    let number = number.into();
    let found = usize::try_from(number).ok().and_then(|index| values.get(index));
    found.map(|(_, value)| *value).ok_or_else(|| unknown(enumeration, number, values))
}

#[cold]
#[inline(never)]
fn unknown<E>(enumeration: &str, number: i64, values: &[(&str, E)]) -> Error {
    let mut names = String::new();
    for (index, (name, _)) in values.iter().enumerate() {
        // Writing to a String cannot fail.
        let _ = write!(names, "{}{name} ({index})", if index == 0 { "" } else { ", " });
    }
    Error::invalid_argument(format!("the {enumeration} is {number}; it must be one of {names}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_looked_up() {
        let values = [("kOff", false), ("kOn", true)];
        assert_eq!((known("Switch", 0, &values), known("Switch", 1, &values)), (Ok(false), Ok(true)));
    }

    #[test]
    fn an_unknown_number_is_an_error_that_names_it() {
        let values = [("kOff", false), ("kOn", true)];
        for number in [-1, 2, i64::from(i32::MAX), i64::MIN, i64::MAX] {
            let error = known("Switch", number, &values).unwrap_err();
            assert_eq!(error.code(), purlin_base::StatusCode::InvalidArgument);
            assert_eq!(error.message(), format!("the Switch is {number}; it must be one of kOff (0), kOn (1)"));
        }
    }
}

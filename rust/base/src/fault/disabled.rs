//! Fail points of ordinary builds: nothing.

use std::io;

use super::Site;
use crate::status::Error;

/// Passes.
///
/// # Errors
/// None.
#[inline(always)]
pub const fn point(_site: Site) -> Result<(), Error> {
    Ok(())
}

/// Passes.
///
/// # Errors
/// None.
#[inline(always)]
pub const fn spawn(_site: Site) -> io::Result<()> {
    Ok(())
}

/// Passes.
///
/// # Errors
/// None.
#[inline(always)]
pub const fn file(_site: Site) -> io::Result<()> {
    Ok(())
}

/// Passes.
#[inline(always)]
pub const fn callback(_what: &str) {}

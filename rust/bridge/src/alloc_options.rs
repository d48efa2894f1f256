//! `purlin/alloc_options.h`.

use purlin_async::Event;
use purlin_base::StatusOr;
use purlin_device::{AllocOptions, OomPolicy};
use purlin_ffi::number::known;
use purlin_ffi::struct_size;

pub(crate) use self::ffi::RawAllocOptions;
use crate::cancel::label;

/// The first version of `purlin::AllocOptions`.
const SMALLEST_OPTIONS_BYTES: usize = 40;

#[cxx::bridge(namespace = "purlin::ffi")]
pub(crate) mod ffi {
    /// A `purlin::AllocOptions`. Borrowed.
    #[namespace = "purlin::v0::internal"]
    struct RawAllocOptions {
        /// The caller's, unchecked.
        struct_size: usize,
        /// Static, ends with a NUL.
        label: *const c_char,
        alignment_bytes: usize,
        /// Null, or alive.
        after: *mut EventHeader,
        /// Unchecked.
        oom: i32,
    }

    unsafe extern "C++" {
        include!("purlin/internal/abi.h");

        #[namespace = "purlin::v0::internal"]
        type EventHeader = crate::abi::ffi::EventHeader;
    }
}

impl RawAllocOptions {
    /// The default of C++.
    #[cfg(test)]
    pub(crate) fn plain() -> Self {
        Self {
            struct_size: SMALLEST_OPTIONS_BYTES,
            label: c"".as_ptr(),
            alignment_bytes: 0,
            after: std::ptr::null_mut(),
            oom: 0,
        }
    }

    /// # Errors
    /// `InvalidArgument`: a size that no version has; a policy that does not exist.
    ///
    /// # Safety
    /// The fields are what the struct says.
    pub(crate) unsafe fn get(&self) -> StatusOr<AllocOptions> {
        struct_size::check("AllocOptions", self.struct_size, SMALLEST_OPTIONS_BYTES)?;
        // SAFETY: the caller's promises.
        let (label, after) = unsafe { (label(self.label), Event::from_borrowed_raw(self.after.cast())) };
        let after = (!self.after.is_null()).then_some(after);
        Ok(AllocOptions { label, alignment_bytes: self.alignment_bytes, oom: oom_policy(self.oom)?, after })
    }
}

/// A `purlin::OomPolicy`.
///
/// # Errors
/// `InvalidArgument`: there is none of that number.
pub(crate) fn oom_policy(number: i32) -> StatusOr<OomPolicy> {
    const POLICIES: &[(&str, OomPolicy)] =
        &[("kFail", OomPolicy::Fail), ("kRetry", OomPolicy::Retry), ("kWait", OomPolicy::Wait)];
    known("OomPolicy", number, POLICIES)
}

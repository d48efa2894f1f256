//! A C++ closure that is called with the pieces of a staged read (`purlin/internal/piece_callback.h`): called again and
//! again.

use std::ffi::c_void;
use std::mem::offset_of;
use std::ptr;

use purlin_base::status::StatusRep;
use purlin_base::{Error, StatusOr};
use purlin_device::StagedPiece;

use crate::staging::{StagingLeaseRep, give_lease};

/// The closure, as `purlin/internal/piece_callback.h` declares it. Owned: `destroy` is called once, when it is no
/// longer called.
#[repr(C)]
pub struct PieceCallback {
    /// What the functions take; null: there is no closure.
    data: *mut c_void,
    /// Takes `error` over, or `lease`; the other is null. False if the closure threw, which was reported. Does not
    /// unwind.
    call: Option<
        unsafe extern "C" fn(
            data: *mut c_void,
            error: *const StatusRep,
            lease: *mut StagingLeaseRep,
            offset_bytes: usize,
            size_bytes: usize,
            is_last: bool,
        ) -> bool,
    >,
    /// Does not unwind.
    destroy: Option<unsafe extern "C" fn(data: *mut c_void)>,
}

const _: () = assert!(size_of::<PieceCallback>() == 24 && offset_of!(PieceCallback, data) == 0);
const _: () = assert!(offset_of!(PieceCallback, call) == 8 && offset_of!(PieceCallback, destroy) == 16);

// SAFETY: purlin/staging.h's contract: the closure is called, one call at a time, and destroyed, on any thread.
unsafe impl Send for PieceCallback {}

impl PieceCallback {
    /// # Errors
    /// `InvalidArgument`: there is no closure.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if !self.data.is_null() {
            return Ok(());
        }
        Err(Error::invalid_argument("a staged read has nobody to tell of its pieces: on_piece is empty"))
    }

    /// # Errors
    /// `Internal`: it threw.
    pub(crate) fn tell(&mut self, told: StatusOr<StagedPiece>) -> Result<(), Error> {
        let Some(call) = self.call else { return self.check() };
        let (error, lease, offset_bytes, size_bytes, is_last) = match told {
            Ok(piece) => {
                let (offset_bytes, size_bytes, is_last) = (piece.offset_bytes(), piece.size_bytes(), piece.is_last());
                (ptr::null(), give_lease(piece.into_lease()), offset_bytes, size_bytes, is_last)
            }
            Err(error) => (error.into_raw(), ptr::null_mut(), 0, 0, false),
        };
        // SAFETY: C++ gave the function together with the data that it takes, which lives until drop().
        if unsafe { call(self.data, error, lease, offset_bytes, size_bytes, is_last) } {
            return Ok(());
        }
        Err(Error::internal("the callback of a staged read threw"))
    }
}

impl Drop for PieceCallback {
    fn drop(&mut self) {
        if let Some(destroy) = self.destroy {
            // SAFETY: as above; it is no longer called.
            unsafe { destroy(self.data) };
        }
    }
}

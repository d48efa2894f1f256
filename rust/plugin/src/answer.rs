//! How a slot is called: the caller's arguments are checked and completed, a panic becomes an error, and an error an
//! object of C's.

use std::ptr;

use purlin_base::Error;
use purlin_ffi::panic::{contain, guard};
use purlin_ffi::struct_size;
use purlin_pjrt::abi::{PjrtError, arguments};
use purlin_pjrt::error;
use purlin_pjrt_abi::{Function, Versioned};

/// The arguments of a function that the plugin implements.
pub(crate) trait Answer: Function + Versioned + Copy {
    /// What the function does.
    ///
    /// # Errors
    /// The function's.
    ///
    /// # Safety
    /// The fields are what PJRT's contract says, and live until this returns.
    unsafe fn answer(&mut self) -> Result<(), Error>;
}

/// The function in the table. It takes structs of older callers, which lack fields (these are zero), and of newer ones,
/// whose further fields are not looked at.
///
/// # Safety
/// `args` is null or points to as many bytes as its first field says, which are what PJRT's contract says.
pub(crate) unsafe extern "C" fn answered<A: Answer>(args: *mut A) -> *mut PjrtError {
    let answer = guard(|| {
        if args.is_null() {
            return Err(Error::invalid_argument(format!("{}: its arguments are null", A::FUNCTION)));
        }
        // SAFETY: the caller's promise: the first field is the size.
        let size = unsafe { args.cast::<usize>().read() };
        struct_size::check(A::NAME, size, A::FIRST_SIZE)?;
        if size >= A::STRUCT_SIZE {
            // SAFETY: the caller's promise.
            return unsafe { (*args).answer() };
        }
        let mut whole: A = arguments();
        // SAFETY: as many bytes are there, and fewer than a whole one has. The size itself stays as it is.
        unsafe {
            let (first, rest) = (size_of::<usize>(), size - size_of::<usize>());
            ptr::copy_nonoverlapping(args.byte_add(first).cast::<u8>(), (&raw mut whole).byte_add(first).cast(), rest);
            let answer = whole.answer();
            ptr::copy_nonoverlapping(
                (&raw const whole).byte_add(first).cast::<u8>(),
                args.byte_add(first).cast(),
                rest,
            );
            answer
        }
    });
    answer.err().map_or(ptr::null_mut(), error::give)
}

/// The function in the table, where the plugin does not implement it.
pub(crate) unsafe extern "C" fn refused<A: Function>(_args: *mut A) -> *mut PjrtError {
    contain(A::FUNCTION, ptr::null_mut(), || {
        error::give(Error::unimplemented(format!("Purlin does not implement {}", A::FUNCTION)))
    })
}

//! How the structs of `purlin_pjrt_abi` are read and made. A party says in the first field of a table or of arguments
//! how much of it is there.

use std::mem;

pub use purlin_pjrt_abi::{
    Api, DeviceEvent, DeviceEventCallback, DeviceEventPromise, DeviceEventPromiseTable, DeviceEventTable,
    DeviceEventVector, Error as PjrtError, ErrorPayloadVisitor, ErrorTable, Memory, RawBuffer, RawBufferOnAllocated,
    RawBufferTable,
};
use purlin_pjrt_abi::{Table, Versioned};

/// A field of a foreign table: `None` where the table is too small to have it.
///
/// # Safety
/// `table` points to at least as many bytes as its first field, a `usize`, says; `offset` is that of the field.
pub unsafe fn read<T: Table, F: Copy>(table: *const T, offset: usize, _type_of_field: fn(&T) -> F) -> Option<F> {
    // SAFETY: the first field is always there.
    let size = unsafe { table.cast::<usize>().read() };
    // SAFETY: the field lies within what is there; tables are aligned as their fields are.
    (size >= offset + size_of::<F>()).then(|| unsafe { table.byte_add(offset).cast::<F>().read() })
}

/// A function of a foreign table, if the table has it. Expands to an unsafe call of [`read`].
macro_rules! slot {
    ($table:expr, $type:ty, $field:ident) => {
        $crate::abi::read($table, std::mem::offset_of!($type, $field), |table: &$type| table.$field).flatten()
    };
}
pub(crate) use slot;

/// Arguments that are zero, but for their size.
pub fn arguments<T: Versioned>() -> T {
    // SAFETY: all zeros are a value of a `Versioned`, and its first field is `struct_size`.
    unsafe {
        let mut zeroed: T = mem::zeroed();
        (&raw mut zeroed).cast::<usize>().write(T::STRUCT_SIZE);
        zeroed
    }
}

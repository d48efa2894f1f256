//! `purlin/layout.h`.

use purlin_array::Layout;
use purlin_base::StatusOr;
use purlin_ffi::handle::elements;

pub(crate) use self::ffi::RawLayout;

#[cxx::bridge(namespace = "purlin::ffi")]
pub(crate) mod ffi {
    /// A `purlin::Layout`. Borrowed, and unchecked.
    #[namespace = "purlin::v0::internal"]
    struct RawLayout {
        minor_to_major: *const i64,
        rank: usize,
    }
}

impl RawLayout {
    /// The layout that C++ points to; null: none.
    ///
    /// # Errors
    /// `InvalidArgument`: no permutation.
    ///
    /// # Safety
    /// `layout` is null, or points to a struct whose pointer points to `rank` numbers.
    pub(crate) unsafe fn get(layout: *const Self) -> StatusOr<Option<Layout>> {
        // SAFETY: the caller's promises.
        let numbers = unsafe { layout.as_ref().map(|layout| elements(layout.minor_to_major, layout.rank)) };
        numbers.map(Layout::new).transpose()
    }
}

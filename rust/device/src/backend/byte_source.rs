//! An allocator of the user's: a door, behind which tests can make it fail, too.

#![allow(unsafe_code, reason = "memory is taken from and given to an allocator by address")]

use std::alloc::Layout;
use std::ptr::NonNull;

/// Memory to hand out.
///
/// # Safety
/// Memory that [`take`](Self::take) returned is readable and writable as the layout says, has no other owner, and stays
/// so until it is given back.
///
/// # Examples
/// ```
/// use std::alloc::Layout;
/// use std::ptr::NonNull;
/// use std::sync::Arc;
///
/// use purlin::host::{ByteSource, HostBackend};
/// use purlin::{Client, ClientOptions, RawBuffer, StatusCode};
///
/// /// Has no memory.
/// struct Empty;
///
/// // SAFETY: it hands nothing out.
/// unsafe impl ByteSource for Empty {
///     fn take(&self, _layout: Layout) -> Option<NonNull<u8>> {
///         None
///     }
///     unsafe fn give_back(&self, _address: NonNull<u8>, _layout: Layout) {}
/// }
///
/// let backend = HostBackend::with_source(Arc::new(Empty));
/// let client = Client::new(&ClientOptions::default(), Arc::new(backend))?;
/// let error = RawBuffer::allocate(&client.devices()[0].default_memory_space(), 64).unwrap_err();
/// assert_eq!(error.code(), StatusCode::ResourceExhausted);
/// # Ok::<(), purlin::Error>(())
/// ```
pub unsafe trait ByteSource: Send + Sync {
    /// Memory of `layout`, whose size is not 0; contents unspecified. `None` if there is none: never aborts.
    fn take(&self, layout: Layout) -> Option<NonNull<u8>>;

    /// Takes memory back.
    ///
    /// # Safety
    /// `address` came from [`take`](Self::take) of this source with the same `layout`, is given back once, and is no
    /// longer used.
    unsafe fn give_back(&self, address: NonNull<u8>, layout: Layout);
}

//! Host memory at the end of an operation.

#![allow(unsafe_code, reason = "host pointers cross threads with their operation")]

/// Host memory to read from.
///
/// See the example of [`Backend`](super::Backend).
#[derive(Debug)]
pub struct HostSource(*const u8);

// SAFETY: HostSource::new's caller promises that any thread may read there until the operation's event is terminal.
unsafe impl Send for HostSource {}
// SAFETY: as above; a shared reference gives away only the address.
unsafe impl Sync for HostSource {}

impl HostSource {
    /// # Safety
    /// Until the event of the operation is terminal, any thread may read what the operation reads from `address` on,
    /// and nothing writes it.
    pub(crate) unsafe fn new(address: *const u8) -> Self {
        Self(address)
    }

    /// The first byte; not null. Readable for as many bytes as the operation reads until its event is terminal.
    #[must_use]
    pub fn address(&self) -> *const u8 {
        self.0
    }
}

/// Host memory to write to.
///
/// See the example of [`Backend`](super::Backend).
#[derive(Debug)]
pub struct HostDestination(*mut u8);

// SAFETY: HostDestination::new's caller promises that any thread may write there until the operation's event is
// terminal.
unsafe impl Send for HostDestination {}
// SAFETY: as above; a shared reference gives away only the address.
unsafe impl Sync for HostDestination {}

impl HostDestination {
    /// # Safety
    /// Until the event of the operation is terminal, any thread may write what the operation writes from `address` on,
    /// and nothing else reads or writes it.
    pub(crate) unsafe fn new(address: *mut u8) -> Self {
        Self(address)
    }

    /// The first byte; not null. Writable for as many bytes as the operation writes until its event is terminal.
    #[must_use]
    pub fn address(&self) -> *mut u8 {
        self.0
    }
}

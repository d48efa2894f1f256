//! Work of others on a device, by handles of the hardware's own interface.

use std::fmt;

/// A stream of others, by its handle at the hardware's own interface: for CUDA, a `CUstream`.
///
/// ```
/// use purlin::backend::ForeignStream;
///
/// // SAFETY: every context has a legacy default stream.
/// let stream = unsafe { ForeignStream::new(1) };
/// assert_eq!((stream.handle(), stream.to_string().as_str()), (1, "the stream 0x1"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForeignStream(usize);

/// An event of others, by its handle at the hardware's own interface: for CUDA, a `CUevent`.
///
/// ```
/// use purlin::backend::ForeignEvent;
///
/// // SAFETY: the value is only looked at.
/// let event = unsafe { ForeignEvent::new(0x7f30) };
/// assert_eq!((event.handle(), event.to_string().as_str()), (0x7f30, "the event 0x7f30"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForeignEvent(usize);

/// What others have enqueued by now.
///
/// ```
/// use purlin::backend::{ForeignStream, ForeignWork};
///
/// // SAFETY: every context has a legacy default stream.
/// let work = ForeignWork::from(unsafe { ForeignStream::new(0) });
/// assert_eq!(work.to_string(), "the stream 0x0");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForeignWork {
    /// All that the stream has.
    Stream(ForeignStream),
    /// All that the event's latest record is behind.
    Event(ForeignEvent),
}

#[allow(unsafe_code, reason = "handles of others are believed")]
impl ForeignStream {
    /// The stream of that handle.
    ///
    /// # Safety
    /// While the value is used, the handle is that of a stream, or one of those that stand for a default stream.
    #[must_use]
    pub const unsafe fn new(handle: usize) -> Self {
        Self(handle)
    }

    /// See [`new`](Self::new).
    #[must_use]
    pub const fn handle(self) -> usize {
        self.0
    }
}

#[allow(unsafe_code, reason = "handles of others are believed")]
impl ForeignEvent {
    /// The event of that handle.
    ///
    /// # Safety
    /// While the value is used, the handle is that of an event.
    #[must_use]
    pub const unsafe fn new(handle: usize) -> Self {
        Self(handle)
    }

    /// See [`new`](Self::new).
    #[must_use]
    pub const fn handle(self) -> usize {
        self.0
    }
}

impl From<ForeignStream> for ForeignWork {
    fn from(stream: ForeignStream) -> Self {
        Self::Stream(stream)
    }
}

impl From<ForeignEvent> for ForeignWork {
    fn from(event: ForeignEvent) -> Self {
        Self::Event(event)
    }
}

impl fmt::Display for ForeignStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the stream {:#x}", self.0)
    }
}

impl fmt::Display for ForeignEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the event {:#x}", self.0)
    }
}

impl fmt::Display for ForeignWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stream(stream) => stream.fmt(f),
            Self::Event(event) => event.fmt(f),
        }
    }
}

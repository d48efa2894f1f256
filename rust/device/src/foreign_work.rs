//! Work of others on the hardware of a device, in order with its own.

use std::panic::Location;

use crate::backend::{ForeignStream, ForeignWork, Operation};
use crate::device::Device;
use purlin_async::event::Event;
use purlin_base::label::Label;
use purlin_base::status::{Error, StatusOr};

/// Of an event that stands for work of others.
const FOREIGN: Label = Label::new(c"work of others");

impl Device {
    /// An event that happens when all is over that others have enqueued by now: on their stream, or before the latest
    /// record of their event. An event that was never recorded has happened. What they enqueue, record or destroy
    /// afterwards changes nothing.
    ///
    /// An operation of this client that depends on the event is enqueued at once, and the hardware waits: no thread of
    /// the host does. The call does not block. Nothing orders the events of several calls among themselves.
    ///
    /// Of CUDA's handles 0 and 1 are the legacy default stream of the device's primary context, and 2 is the default
    /// stream of the calling thread there. A stream is of that context; an event may be of any. While the event is
    /// pending, a stream of the client's waits for it, which a later call uses again.
    ///
    /// The event fails with `InvalidArgument`, naming the handle: the driver knows no such stream or event, or not in
    /// the device's context. With `Unimplemented`: the platform has no streams of others. With `FailedPrecondition`:
    /// the client has shut down, or this is a child made by `fork`; the stream is being captured. With `Cancelled` or
    /// `DeadlineExceeded`: the client has ended before; what was enqueued behind the event comes behind the work of
    /// others all the same. Or with the driver's error.
    ///
    /// # Examples
    /// ```
    /// use purlin::StatusCode;
    /// use purlin::backend::ForeignStream;
    /// # let client = purlin::Client::new(&Default::default(), std::sync::Arc::new(purlin::host::HostBackend::new()))?;
    ///
    /// // SAFETY: a default stream is always there.
    /// let theirs = unsafe { ForeignStream::new(0) };
    /// // On a GPU: the copies and launches that depend on this come behind what the stream has.
    /// let event = client.devices()[0].foreign_event(theirs.into());
    /// assert_eq!(event.wait().unwrap_err().code(), StatusCode::Unimplemented, "a host has no streams");
    /// # Ok::<(), purlin::Error>(())
    /// ```
    #[must_use]
    #[track_caller]
    pub fn foreign_event(&self, work: ForeignWork) -> Event {
        // It touches nothing that is known here, and the host has nothing to do.
        let operation = Operation::call(FOREIGN, [], 0, || Ok(()));
        self.instance().await_foreign(Location::caller(), self.index(), work, operation)
    }

    /// Has what others enqueue on their stream from now on come behind `event`. The handles of default streams are
    /// those of [`foreign_event`](Self::foreign_event).
    ///
    /// Of an operation of this client that is enqueued on a GPU, and of a join of such, the stream waits, and no thread
    /// does. For any other event, and until an operation is enqueued that waits for such, the calling thread waits.
    /// Only what has failed before the answer is told: of an operation that fails later, the stream finds what is
    /// there.
    ///
    /// # Errors
    /// The event's, if it has failed, and nothing is enqueued. `InvalidArgument`, naming the handle: the driver knows
    /// no such stream. `Unimplemented`: the platform has no streams of others. `FailedPrecondition`: this is a child
    /// made by `fork`. What a wait for the event fails with where the thread may not wait. The driver's.
    ///
    /// # Examples
    /// ```
    /// use purlin::backend::ForeignStream;
    /// use purlin::{Event, StatusCode};
    /// # let client = purlin::Client::new(&Default::default(), std::sync::Arc::new(purlin::host::HostBackend::new()))?;
    ///
    /// // SAFETY: a default stream is always there.
    /// let theirs = unsafe { ForeignStream::new(0) };
    /// let error = client.devices()[0].have_stream_wait(theirs, &Event::ready()).unwrap_err();
    /// assert_eq!(error.code(), StatusCode::Unimplemented, "a host has no streams");
    /// # Ok::<(), purlin::Error>(())
    /// ```
    pub fn have_stream_wait(&self, stream: ForeignStream, event: &Event) -> Result<(), Error> {
        self.instance().backend().have_stream_wait(self.index(), stream, event)
    }

    /// The handle of the stream on which launches of that [number](crate::LaunchOptions::stream) are enqueued: for
    /// CUDA, a `CUstream` of the device's primary context. Every number is good; one that the device has no stream for
    /// means the first.
    ///
    /// The client owns the stream, which is there as long as the device's handle: others may look at it, record events
    /// on it and enqueue work, and do not destroy it. The client orders nothing behind such work by itself.
    ///
    /// # Errors
    /// `Unimplemented`: the platform has no streams. `FailedPrecondition`: this is a child made by `fork`.
    ///
    /// # Examples
    /// ```
    /// # let client = purlin::Client::new(&Default::default(), std::sync::Arc::new(purlin::host::HostBackend::new()))?;
    /// assert!(client.devices()[0].launch_stream(0).is_err(), "a host has no streams");
    /// # Ok::<(), purlin::Error>(())
    /// ```
    pub fn launch_stream(&self, number: u8) -> StatusOr<usize> {
        self.instance().backend().launch_stream(self.index(), number)
    }
}

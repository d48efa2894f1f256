//! What each calling thread has of its own: the current context, the label of its calls, whether it is inside a host
//! function, and its default streams, which end with it.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use crate::detector::stamp::Stamp;
use crate::driver;

thread_local! {
    static CURRENT: Cell<Option<usize>> = const { Cell::new(None) };
    static IN_HOST_FUNCTION: Cell<bool> = const { Cell::new(false) };
    /// What put the host function on its stream; `None` in the empty mode, which has no streams.
    static HOST_FUNCTION: RefCell<Option<Arc<Stamp>>> = const { RefCell::new(None) };
    static LABEL: RefCell<Arc<str>> = RefCell::new(Arc::from(""));
    static DEFAULT_STREAMS: RefCell<DefaultStreams> = const { RefCell::new(DefaultStreams(Vec::new())) };
}

/// Device and stream.
struct DefaultStreams(Vec<(usize, usize)>);

impl Drop for DefaultStreams {
    fn drop(&mut self) {
        if let (Ok(()), Ok(driver)) = (driver::may_be_called(), driver::get()) {
            for (_, stream) in &self.0 {
                driver.state.lock().close_stream(*stream);
            }
        }
    }
}

/// The device whose primary context is current.
pub(crate) fn current() -> Option<usize> {
    CURRENT.get()
}

pub(crate) fn set_current(device: Option<usize>) {
    CURRENT.set(device);
}

pub(crate) fn is_host_function() -> bool {
    IN_HOST_FUNCTION.get()
}

/// What put the host function that this thread is inside of on its stream.
pub(crate) fn host_function_stamp() -> Option<Arc<Stamp>> {
    HOST_FUNCTION.with_borrow(Option::clone)
}

/// Runs a host function, which `stamp` put on its stream.
pub(crate) fn host_function(stamp: Option<&Arc<Stamp>>, body: impl FnOnce()) {
    HOST_FUNCTION.set(stamp.cloned());
    IN_HOST_FUNCTION.set(true);
    body();
    IN_HOST_FUNCTION.set(false);
    HOST_FUNCTION.set(None);
}

/// What this thread's calls are labelled with.
pub(crate) fn label() -> Arc<str> {
    LABEL.with_borrow(Arc::clone)
}

pub(crate) fn set_label(label: &str) {
    LABEL.set(Arc::from(label));
}

/// This thread's default stream of the device, if it has one.
pub(crate) fn default_stream(device: usize) -> Option<usize> {
    DEFAULT_STREAMS.with_borrow(|streams| streams.0.iter().find(|(of, _)| *of == device).map(|(_, stream)| *stream))
}

pub(crate) fn set_default_stream(device: usize, stream: usize) {
    DEFAULT_STREAMS.with_borrow_mut(|streams| {
        streams.0.retain(|(of, _)| *of != device);
        streams.0.push((device, stream));
    });
}

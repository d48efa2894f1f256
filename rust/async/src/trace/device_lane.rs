//! A lane for what no thread does.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use super::fields::{Fields, Value};
use super::lane::{Lane, Told, number_of_no_thread};
use super::session::{Local, numbered};
use purlin_base::sync::Mutex;
use purlin_base::sync::atomic::Ordering;

/// A lane of traces for what a device does in one order, such as a stream of a GPU. Its spans are told when they are
/// over; of a recording that is over by then, they are lost.
///
/// ```
/// use std::time::Instant;
/// use purlin::trace::{self, DeviceLane, Value};
///
/// let lane = DeviceLane::new("GPU 0, launches".to_owned());
/// let begin = Instant::now();
/// if trace::is_recording() {
///     lane.span("twice".to_owned(), begin..Instant::now(), vec![("bytes", Value::Unsigned(16))]);
/// }
/// ```
pub struct DeviceLane {
    number: u64,
    name: String,
    local: Mutex<Option<Arc<Local>>>,
}

impl DeviceLane {
    /// A lane that readers of traces show under that name.
    #[must_use]
    pub fn new(name: String) -> Self {
        Self { number: number_of_no_thread(), name, local: Mutex::new(None) }
    }

    /// A span with these values, if a trace is being recorded. Spans of a lane may be told in any order, and do not
    /// overlap in part. What began before the recording is shown from its beginning on. Blocks for no recording.
    pub fn span(&self, name: String, times: Range<Instant>, values: Vec<(&'static str, Value)>) {
        let number = super::ACTIVE.load(Ordering::Relaxed);
        if number == 0 {
            return;
        }
        let known = self.local.lock().clone();
        let local = match known.filter(|local| local.is_of(number)) {
            Some(local) => local,
            None => {
                let Some(session) = numbered(number) else { return };
                let new = Arc::new(Local::new(session, || Lane::named(self.number, self.name.clone())));
                let old = self.local.lock().replace(Arc::clone(&new));
                drop(old);
                new
            }
        };
        local.told(Told { name, fields: Fields::of(values) }, times);
    }
}

impl fmt::Debug for DeviceLane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DeviceLane").field(&self.name).finish()
    }
}

//! How one run is asked for.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use purlin_async::event::Event;
use purlin_base::Label;
use purlin_device::Buffer;

/// How one run is asked for.
///
/// ```
/// use purlin::program::ExecuteOptions;
///
/// let options = ExecuteOptions { launch_id: 7, non_donatable_input_indices: &[0], ..Default::default() };
/// assert!(!options.caller_waits && options.results.is_empty());
/// ```
#[derive(Clone, Default)]
pub struct ExecuteOptions<'a> {
    /// A number of the caller's: in traces, in errors, and for library calls.
    pub launch_id: i32,
    /// Of the run's event, and the donee that errors of donated arguments name; empty: `execute`.
    pub label: Label,
    /// Arguments that are not donated although the program would: they are copied, and stay.
    pub non_donatable_input_indices: &'a [usize],
    /// Memory for results: buffers of the result's shape, layout and place, which are donated to the run. One entry for
    /// each result, device by device, where `None` is fresh memory; or no entries at all. A result that gets the memory
    /// of a donated argument takes no other.
    pub results: &'a [Option<Buffer>],
    /// The run begins after all of these, too, and fails with the first of them that fails.
    pub dependencies: &'a [Event],
    /// What library calls may ask for by its type.
    pub context: Option<Arc<dyn Any + Send + Sync>>,
    /// The caller does nothing else before the run is over: a hop to another thread gains nothing.
    pub caller_waits: bool,
}

impl ExecuteOptions<'_> {
    /// The name of the run, and of the donee of its arguments.
    pub(super) fn donee(&self) -> Label {
        if self.label == Label::default() { Label::new(c"execute") } else { self.label }
    }
}

impl fmt::Debug for ExecuteOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExecuteOptions")
            .field("launch_id", &self.launch_id)
            .field("label", &self.label)
            .field("non_donatable_input_indices", &self.non_donatable_input_indices)
            .field("results", &self.results)
            .field("dependencies", &self.dependencies)
            .field("context", &self.context.as_ref().map(|_| "..."))
            .field("caller_waits", &self.caller_waits)
            .finish()
    }
}

//! The options of one run.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use purlin_async::event::Event;
use purlin_base::Label;
use purlin_device::Buffer;

/// The options of one run.
///
/// ```
/// use purlin::program::ExecuteOptions;
///
/// let options = ExecuteOptions { launch_id: 7, non_donatable_input_indices: &[0], ..Default::default() };
/// assert!(!options.caller_waits && options.results.is_empty());
/// ```
#[derive(Clone, Default)]
pub struct ExecuteOptions<'a> {
    /// A number that the caller chooses. Traces and errors show it, and library calls can read it.
    pub launch_id: i32,
    /// The label of the run's event, and in reports of memory that of its results and temporaries. Errors about donated
    /// arguments name it as the donee. Empty: `execute`, `result` and `temporaries`.
    pub label: Label,
    /// Arguments that stay with the caller although the program would take their memory: they are copied instead.
    pub non_donatable_input_indices: &'a [usize],
    /// Memory for results: buffers of the result's shape, layout and memory space, which are donated to the run. The
    /// list is empty, or has one entry for each result, device by device. `None` means new memory. A result that gets
    /// the memory of a donated argument must be `None`.
    pub results: &'a [Option<Buffer>],
    /// Further dependencies. The run begins after all of these events, and fails with the first of them that fails.
    pub dependencies: &'a [Event],
    /// The number of the execution stream. Runs of one client that have the same number are executed in the order in
    /// which they were started, on whatever devices, also if some of them fail. 0: the run is ordered by its arguments
    /// and `dependencies` alone. Every number is a stream, and nothing has to be created.
    pub execution_stream_id: i64,
    /// Whether results are separate buffers, if the program's root is a tuple. They always are: memory of the host has
    /// no tuples. `Some(false)` asks for one buffer, and is refused unless there is one result. `None`: as
    /// `Some(true)`.
    pub untuple: Option<bool>,
    /// A value that library calls can read by its type.
    pub context: Option<Arc<dyn Any + Send + Sync>>,
    /// Whether the caller only waits until the run completes, so that the run need not move to another thread.
    pub caller_waits: bool,
}

impl ExecuteOptions<'_> {
    /// The label of the run, and of the donee of its arguments.
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
            .field("execution_stream_id", &self.execution_stream_id)
            .field("untuple", &self.untuple)
            .field("caller_waits", &self.caller_waits)
            .finish()
    }
}

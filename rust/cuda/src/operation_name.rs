//! An operation, as errors name it. The text is made when an error needs it; the name keeps no memory of the operation.

use std::fmt;
use std::sync::Arc;

#[cfg(not(purlin_model))]
use purlin_async::trace::Value;
use purlin_base::{Label, SourceLocation};
use purlin_device::backend::{Access, ForeignWork, Launch, Operation, Work};

/// `copy of 4 bytes from host to cuda:0/device ('copy', asked for at main.rs:7)`
#[derive(Clone)]
pub(crate) struct OperationName {
    work: WorkName,
    label: Label,
    place: SourceLocation,
}

#[derive(Clone)]
enum WorkName {
    Copy {
        size_bytes: usize,
        from: Home,
        to: Home,
    },
    Launch {
        launch: Arc<dyn Launch>,
        launch_id: i32,
    },
    /// What others have enqueued.
    Foreign(ForeignWork),
    /// For models.
    #[cfg(all(test, loom))]
    Nothing,
}

/// The memory of one end of a copy: its device and kind. `None`: memory of the host that is no device's.
#[derive(Clone, Copy)]
struct Home(Option<(usize, &'static str)>);

impl OperationName {
    /// The name of an operation that was asked for at `place`.
    pub(crate) fn of(operation: &Operation, place: SourceLocation) -> Self {
        let home = |wanted: Access| {
            let end = operation.ranges().find(|(access, _)| *access == wanted);
            Home(end.map(|(_, range)| (range.device(), range.memory_kind())))
        };
        let work = match operation.work() {
            Work::Launch { launch, launch_id, .. } => {
                WorkName::Launch { launch: Arc::clone(launch), launch_id: *launch_id }
            }
            _ => {
                WorkName::Copy { size_bytes: operation.size_bytes(), from: home(Access::Read), to: home(Access::Write) }
            }
        };
        Self { work, label: operation.label(), place }
    }

    /// The name of what stands for work of others, and was asked for at `place`.
    pub(crate) fn foreign(work: ForeignWork, label: Label, place: SourceLocation) -> Self {
        Self { work: WorkName::Foreign(work), label, place }
    }

    /// What traces call it, with what they say of it.
    #[cfg(not(purlin_model))]
    pub(crate) fn span(&self) -> (String, Vec<(&'static str, Value)>) {
        let text = |text: &dyn fmt::Display| Value::Text(text.to_string());
        let mut values = vec![("label", text(&self.label)), ("place", text(&self.place))];
        let name = match &self.work {
            WorkName::Copy { from, to, .. } => {
                values.extend([("from", text(from)), ("to", text(to))]);
                "copy".to_owned()
            }
            WorkName::Launch { launch, launch_id } => {
                values.push(("launch_id", Value::Signed(i64::from(*launch_id))));
                launch.name().to_owned()
            }
            WorkName::Foreign(work) => format!("import of {work}"),
            #[cfg(all(test, loom))]
            WorkName::Nothing => "nothing".to_owned(),
        };
        (name, values)
    }

    #[cfg(all(test, loom))]
    pub(crate) fn nothing() -> Self {
        Self { work: WorkName::Nothing, label: Label::default(), place: SourceLocation::UNKNOWN }
    }
}

impl fmt::Display for OperationName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.work {
            WorkName::Copy { size_bytes, from, to } => write!(f, "copy of {size_bytes} bytes from {from} to {to}")?,
            WorkName::Launch { launch, launch_id } => write!(f, "launch {launch_id} of '{}'", launch.name())?,
            WorkName::Foreign(work) => write!(f, "import of {work}")?,
            #[cfg(all(test, loom))]
            WorkName::Nothing => f.write_str("nothing")?,
        }
        write!(f, " ('{}', asked for at {})", self.label, self.place)
    }
}

impl fmt::Display for Home {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some((device, kind)) => write!(f, "cuda:{device}/{kind}"),
            None => f.write_str("host"),
        }
    }
}

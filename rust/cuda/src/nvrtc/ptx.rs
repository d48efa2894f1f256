//! What a compilation gives.

use std::fmt;
use std::sync::Arc;

use purlin_base::StatusOr;
use purlin_program::{KernelLoaderSpec, KernelPayload};

/// The PTX that a [`KernelSource`](super::KernelSource) was compiled to, with the names that its name expressions have
/// there, and what the compiler said. Clones share one copy.
#[derive(Clone, PartialEq, Eq)]
pub struct Ptx {
    pub(super) text: Arc<str>,
    /// Expression and name of each.
    pub(super) lowered: Arc<[(String, String)]>,
    pub(super) log: Arc<str>,
}

impl Ptx {
    /// The PTX, without the zero byte at its end.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What a [name expression](super::KernelSource::with_name_expression) of the source is called in the PTX. `None`:
    /// the source had no such expression.
    #[must_use]
    pub fn lowered_name(&self, expression: &str) -> Option<&str> {
        self.lowered.iter().find(|(known, _)| known == expression).map(|(_, name)| name.as_str())
    }

    /// What the compiler said, such as warnings; empty if nothing.
    #[must_use]
    pub fn log(&self) -> &str {
        &self.log
    }

    /// A description by which a kernel of this PTX is loaded. `kernel` is a name expression of the source or a name in
    /// the PTX, as `extern "C"` functions have it; `arity` is the number of its arguments.
    ///
    /// # Errors
    /// As [`KernelLoaderSpec::new`].
    pub fn loader_spec(&self, kernel: &str, arity: u32) -> StatusOr<KernelLoaderSpec> {
        let name = self.lowered_name(kernel).unwrap_or(kernel);
        KernelLoaderSpec::new(KernelPayload::Ptx(Arc::clone(&self.text)), name, arity)
    }
}

impl fmt::Debug for Ptx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ptx({} bytes, names {:?}, log {:?})", self.text.len(), self.lowered, self.log)
    }
}

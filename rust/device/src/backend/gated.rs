//! What has not begun because it waits for an event, as errors name it.

use std::fmt;

use super::Block;
use purlin_base::label::Label;
use purlin_base::sync::PinnedWeak;

/// An operation that a gate holds back.
#[derive(Clone)]
pub(crate) enum Gated {
    /// A copy; `None` is the host.
    Copy { size_bytes: usize, from: Option<PinnedWeak<dyn Block>>, to: Option<PinnedWeak<dyn Block>> },
    /// An allocation.
    Memory { size_bytes: usize, block: PinnedWeak<dyn Block> },
    /// Another one.
    Named(Label),
}

impl fmt::Display for Gated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Copy { size_bytes, from, to } => {
                write!(f, "the copy of {size_bytes} bytes from {} to {}", End(from.as_ref()), End(to.as_ref()))
            }
            Self::Memory { size_bytes, block } => {
                write!(f, "the allocation of {size_bytes} bytes in {}", End(Some(block)))
            }
            Self::Named(label) => write!(f, "'{label}'"),
        }
    }
}

/// Memory, if it is still there, or the host.
struct End<'a>(Option<&'a PinnedWeak<dyn Block>>);

impl fmt::Display for End<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.map(PinnedWeak::upgrade) {
            None => f.write_str("host"),
            Some(Some(block)) => fmt::Display::fmt(&*block, f),
            Some(None) => f.write_str("memory that is gone"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Gated;
    use crate::backend::test_operation::operation;
    use std::sync::Arc;

    #[test]
    fn memory_that_is_gone_is_said_to_be() {
        let Gated::Copy { from: Some(block), .. } = operation(8, &Arc::default()).gated() else {
            unreachable!("it has two ends")
        };
        let gated = Gated::Copy { size_bytes: 7, from: None, to: Some(block.clone()) };
        assert_eq!(gated.to_string(), "the copy of 7 bytes from host to memory that is gone");
        let gated = Gated::Memory { size_bytes: 7, block };
        assert_eq!(gated.to_string(), "the allocation of 7 bytes in memory that is gone");
    }
}

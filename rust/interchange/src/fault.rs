//! Why the content of a file is refused: what is wrong, and at which byte.

use std::fmt::Display;
use std::path::Path;

use purlin_base::{Error, StatusCode};

/// What is wrong with a file. `offset` is at most its length, where what is missing should begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) offset: usize,
    pub(crate) code: StatusCode,
    pub(crate) what: String,
}

impl Fault {
    /// The file is not what its format says.
    pub(crate) fn damage(offset: usize, what: impl Display) -> Self {
        Self { offset, code: StatusCode::DataLoss, what: what.to_string() }
    }

    /// The file is sound, but no buffer can hold what is in it.
    pub(crate) fn unsupported(offset: usize, what: impl Display) -> Self {
        Self { offset, code: StatusCode::Unimplemented, what: what.to_string() }
    }

    /// The file is sound, but not what the caller says that it is.
    pub(crate) fn mismatch(offset: usize, what: impl Display) -> Self {
        Self { offset, code: StatusCode::InvalidArgument, what: what.to_string() }
    }

    /// The same fault, in bytes of a file in which ours begin at `base`.
    pub(crate) fn within(self, base: usize) -> Self {
        Self { offset: base.saturating_add(self.offset), ..self }
    }

    /// As an error of the file at `path`.
    pub(crate) fn of(self, path: &Path) -> Error {
        Error::new(self.code, format!("{}, byte {}: {}", path.display(), self.offset, self.what))
    }
}

/// Foreign bytes in a message: short, and printable.
pub(crate) fn shown(bytes: &[u8]) -> String {
    const LONGEST: usize = 40;
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(LONGEST)]);
    format!("{text:?}{}", if bytes.len() > LONGEST { "..." } else { "" })
}

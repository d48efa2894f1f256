//! Where the file of a path is, or would be made.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{self, Path, PathBuf};

use super::kept::Kept;
use super::{folder_of, is_same, regular, system, temporary};

/// As many links as Linux follows.
const MOST_LINKS: usize = 40;
/// A process that replaces the file again and again does not keep others from it for ever.
const MOST_LOOKS: usize = 100;

/// The file's own name, which a rename can take.
pub(super) struct Place {
    /// Absolute, and no link.
    pub(super) path: PathBuf,
    /// `None`: nothing is there.
    pub(super) kept: Option<Kept>,
}

impl Place {
    /// The place of `path`. Which links may be followed and written through is the system's own judgement; only where
    /// the links end is found here.
    pub(super) fn find(path: &Path) -> io::Result<Self> {
        for _ in 0..MOST_LOOKS {
            let found = match fs::metadata(path) {
                Ok(found) => found,
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    return Ok(Self { path: end_of_links(path)?, kept: None });
                }
                Err(error) => return Err(error),
            };
            regular::check(&found)?;
            regular::check_writable(path)?;
            let place = end_of_links(path)?;
            if fs::symlink_metadata(&place).is_ok_and(|there| is_same(&there, &found)) {
                let kept = Kept::of(&place, &found)?;
                return Ok(Self { path: place, kept: Some(kept) });
            }
            // Replaced between the two looks; or it has no name (/proc/self/fd of a file that was removed).
        }
        Err(io::Error::new(ErrorKind::AlreadyExists, "the file there has no name that another could take"))
    }
}

fn end_of_links(path: &Path) -> io::Result<PathBuf> {
    let mut place = path::absolute(path)?;
    if names_a_folder(path.as_os_str()) {
        return Err(ErrorKind::IsADirectory.into());
    }
    for _ in 0..MOST_LINKS {
        match fs::read_link(&place) {
            Ok(next) if names_a_folder(next.as_os_str()) => return Err(ErrorKind::IsADirectory.into()),
            Ok(next) => place = folder_of(&place).join(next),
            // It is no link, or there is nothing.
            Err(error) if matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::NotFound) => {
                let name = place.file_name().ok_or(ErrorKind::IsADirectory)?;
                if temporary::is_name(name.as_encoded_bytes()) {
                    let why = "such names are of temporary files, which are removed when nobody writes them";
                    return Err(io::Error::new(ErrorKind::InvalidInput, why));
                }
                return Ok(fs::canonicalize(folder_of(&place))?.join(name));
            }
            Err(error) => return Err(error),
        }
    }
    Err(system::loop_of_links())
}

/// "new/" and "new/." would be taken for "new" by everything but the rename.
fn names_a_folder(path: &OsStr) -> bool {
    let last = path.as_encoded_bytes().rsplit(|byte| *byte == b'/').next();
    matches!(last, Some(b"" | b"." | b".."))
}

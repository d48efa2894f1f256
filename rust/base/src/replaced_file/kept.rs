//! A file's owner and permissions: what the new file takes over from the one that was there.
//!
//! No user gets more than before: where the group or the access control list cannot be kept, the group may do what all
//! may. The set-user-ID and set-group-ID bits are lost, as by any write.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::Path;

use super::{system, temporary};

/// Read, write and execute, of user, group and others.
const ALL: u32 = 0o777;
/// What a program asks for that makes a file; the user's mask and the folder's default list take some of it away.
const ASKED_FOR: u32 = 0o666;

#[derive(Debug)]
pub(super) struct Kept {
    mode: u32,
    /// User, group and list; `None`: those of the process that makes the file.
    owner: Option<(u32, u32, Option<Vec<u8>>)>,
}

impl Kept {
    /// What the file at `place`, which was `found` there, has.
    pub(super) fn of(place: &Path, found: &Metadata) -> io::Result<Self> {
        let list = system::access_list(place)?;
        Ok(Self { mode: found.mode() & ALL, owner: Some((found.uid(), found.gid(), list)) })
    }

    /// What a new file in `folder` has, as an empty one shows, because to ask for the user's mask is to change it for a
    /// moment.
    pub(super) fn of_new(folder: &Path) -> io::Result<Self> {
        let path = temporary::name_in(folder);
        let file = OpenOptions::new().write(true).create_new(true).mode(ASKED_FOR).open(&path)?;
        let found = file.metadata();
        // A process that found it unlocked may have removed it.
        let _ = fs::remove_file(&path);
        Ok(Self { mode: found?.mode() & ALL, owner: None })
    }

    /// Gives it to `file`, which is ours.
    pub(super) fn give(&self, file: &File) -> io::Result<()> {
        let mut mode = self.mode;
        if let Some((user, group, list)) = &self.owner {
            let found = file.metadata()?;
            let is_kept = (found.uid(), found.gid()) == (*user, *group)
                || fchown(file, Some(*user), Some(*group)).is_ok()
                || found.gid() == *group
                || fchown(file, None, Some(*group)).is_ok();
            let is_listed = system::set_access_list(file, list.as_deref()).is_ok();
            if !is_kept || !is_listed {
                mode = without_group(mode);
            }
        }
        let set = file.set_permissions(Permissions::from_mode(mode));
        // File systems without modes refuse, and give every file the same one.
        set.or_else(|error| if file.metadata()?.mode() & ALL == mode { Ok(()) } else { Err(error) })
    }
}

/// `mode`, where the group may do no more than all others.
fn without_group(mode: u32) -> u32 {
    mode & !0o070 | mode & ((mode & 0o007) << 3)
}

#[cfg(test)]
mod tests {
    use super::without_group;

    #[test]
    fn a_group_that_is_another_may_do_what_everybody_may() {
        for (before, after) in [(0o640, 0o600), (0o664, 0o644), (0o666, 0o666), (0o606, 0o606), (0o670, 0o600)] {
            assert_eq!(without_group(before), after, "{before:o}");
        }
    }
}

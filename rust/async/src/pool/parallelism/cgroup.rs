//! CPU quotas of control groups: how much CPU time a group may use per period, in v2 and v1.
//!
//! `/proc/self/cgroup` names our group in each hierarchy, `/proc/self/mountinfo` says where that hierarchy is mounted
//! and which of its groups is the mount's root (in a container often our own). From our group's directory we walk up to
//! the mount point, because a quota binds all groups below it. A path that leads outside the mount (another cgroup
//! namespace) cannot be followed; then the mount point alone is read.
//!
//! On machines with both versions the cpu controller lives in one of them; looking into both needs no decision.

use std::fmt;
use std::path::{Component, Path, PathBuf};

use super::System;

/// A quota, and the file that sets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Quota {
    quota_us: u64,
    /// Never 0.
    period_us: u64,
    file: PathBuf,
}

impl Quota {
    /// How many threads can use it up; at least 1.
    pub(super) fn threads(&self) -> usize {
        usize::try_from(self.quota_us.div_ceil(self.period_us)).unwrap_or(usize::MAX).max(1)
    }

    fn is_below(&self, other: &Self) -> bool {
        u128::from(self.quota_us) * u128::from(other.period_us)
            < u128::from(other.quota_us) * u128::from(self.period_us)
    }
}

impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let thousandths = u128::from(self.quota_us) * 1000 / u128::from(self.period_us);
        let cpus = format!("{}.{:03}", thousandths / 1000, thousandths % 1000);
        let cpus = cpus.trim_end_matches('0').trim_end_matches('.');
        write!(f, "cgroup quota {cpus} CPUs ({})", self.file.display())
    }
}

/// The smallest quota that binds this process, if any does.
pub(super) fn smallest_quota(system: &mut System) -> Option<Quota> {
    let groups = system.read(Path::new("/proc/self/cgroup"))?;
    let mounts = system.read(Path::new("/proc/self/mountinfo")).unwrap_or_default();
    let mut smallest: Option<Quota> = None;
    for line in groups.lines() {
        // hierarchy number : controllers : path of our group, which may hold colons.
        let mut fields = line.splitn(3, ':');
        let (Some(number), Some(controllers), Some(group)) = (fields.next(), fields.next(), fields.next()) else {
            system.ignore(Path::new("/proc/self/cgroup"), line);
            continue;
        };
        let version = match (number, controllers) {
            ("0", "") => Version::V2,
            _ if controllers.split(',').any(|controller| controller == "cpu") => Version::V1,
            _ => continue,
        };
        let (mount_point, group) = locate(version, Path::new(group), &mounts);
        let mut directory = mount_point.join(group);
        loop {
            if let Some(quota) = version.quota_in(&directory, system)
                && smallest.as_ref().is_none_or(|known| quota.is_below(known))
            {
                smallest = Some(quota);
            }
            if directory == mount_point || !directory.pop() {
                break;
            }
        }
    }
    smallest
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    V1,
    V2,
}

impl Version {
    /// The quota of the group in `directory` itself; none where there is no limit.
    fn quota_in(self, directory: &Path, system: &mut System) -> Option<Quota> {
        let (file, quota, period) = match self {
            Self::V2 => {
                // "max 100000" or "150000 100000"; the root group has no such file.
                let file = directory.join("cpu.max");
                let content = system.read(&file)?;
                let Some((quota, period)) = content.trim().split_once(' ') else {
                    system.ignore(&file, &content);
                    return None;
                };
                (file, quota.to_owned(), period.to_owned())
            }
            Self::V1 => {
                // "-1" is no limit.
                let file = directory.join("cpu.cfs_quota_us");
                let quota = system.read(&file)?;
                let period = system.read(&directory.join("cpu.cfs_period_us")).unwrap_or_default();
                (file, quota.trim().to_owned(), period.trim().to_owned())
            }
        };
        if quota == (if self == Self::V2 { "max" } else { "-1" }) {
            return None;
        }
        match (quota.parse(), period.parse()) {
            (Ok(quota_us), Ok(period_us)) if period_us > 0 => Some(Quota { quota_us, period_us, file }),
            _ => {
                system.ignore(&file, &format!("{quota} {period}"));
                None
            }
        }
    }

    /// True for a mount of the hierarchy that holds the cpu controller in this version.
    fn is_mounted_as(self, file_system: &str, super_options: &str) -> bool {
        match self {
            Self::V2 => file_system == "cgroup2",
            Self::V1 => file_system == "cgroup" && super_options.split(',').any(|option| option == "cpu"),
        }
    }
}

/// Where the hierarchy is mounted, and `group` relative to that mount.
fn locate(version: Version, group: &Path, mounts: &str) -> (PathBuf, PathBuf) {
    let is_below = |path: &Path| path.components().all(|part| matches!(part, Component::Normal(_)));
    let mut first_mount = None;
    for line in mounts.lines() {
        // id, parent, device, root, mount point, options, any number of tags, "-", file system, source, super options.
        let Some((mount, file_system)) = line.split_once(" - ") else { continue };
        let mut mount = mount.split(' ').skip(3).map(unescape);
        let mut file_system = file_system.split(' ');
        let (Some(root), Some(point)) = (mount.next(), mount.next()) else { continue };
        let (Some(kind), _source, Some(options)) = (file_system.next(), file_system.next(), file_system.next()) else {
            continue;
        };
        if !version.is_mounted_as(kind, options) {
            continue;
        }
        match group.strip_prefix(&root) {
            Ok(below) if is_below(below) => return (PathBuf::from(point), below.to_owned()),
            _ => first_mount = first_mount.or(Some(PathBuf::from(point))),
        }
    }
    if let Some(point) = first_mount {
        return (point, PathBuf::new());
    }
    // Nothing is known of mounts: the places that every distribution uses.
    let usual_place = if version == Version::V2 { "/sys/fs/cgroup" } else { "/sys/fs/cgroup/cpu" };
    let below = group.strip_prefix("/").ok().filter(|below| is_below(below));
    (PathBuf::from(usual_place), below.unwrap_or(Path::new("")).to_owned())
}

/// A field of mountinfo, in which the kernel writes blanks, tabs, line ends and backslashes as `\` and three octal
/// digits.
fn unescape(field: &str) -> String {
    let mut text = String::with_capacity(field.len());
    let mut rest = field;
    while let Some(at) = rest.find('\\') {
        text.push_str(&rest[..at]);
        let code = rest.get(at + 1..at + 4).and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match code.filter(u8::is_ascii) {
            Some(code) => {
                text.push(char::from(code));
                rest = &rest[at + 4..];
            }
            None => {
                text.push('\\');
                rest = &rest[at + 1..];
            }
        }
    }
    text + rest
}

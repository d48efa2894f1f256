//! Launches: work on device memory that a crate above this one brings, such as a program's run.

#![allow(unsafe_code, reason = "a launch accesses memory by address")]

use super::{CommandFlow, CommandList};
use purlin_base::label::Label;
use purlin_base::status::Error;

/// Work that can be launched many times, each time on the ranges of one [`Operation`](super::Operation). A launch boxes
/// nothing. [`Device::launch`](crate::Device::launch) starts it.
pub trait Launch: Send + Sync {
    /// The name, which errors and reports show.
    fn name(&self) -> &str;

    /// Does the work on the calling thread, which the backend chooses. `addresses` are those of the operation's ranges,
    /// in their order.
    ///
    /// # Errors
    /// Any code: the cause of the failure. The operation fails with this error.
    ///
    /// # Safety
    /// Only [`Operation::perform`](super::Operation::perform) calls it. The ranges are those that were listed for this
    /// launch. Each address is valid for the size of its range until this returns. The promise that the caller of
    /// [`Device::launch`](crate::Device::launch) gave holds.
    unsafe fn launch(&self, info: LaunchInfo, addresses: &[*mut u8]) -> Result<(), Error>;

    /// What a device does by itself instead, on the operation's ranges: for backends that enqueue commands. The same
    /// for every launch on a device, by its number. `None`, which is the default: only the host can do the work.
    fn commands(&self, device: u16) -> Option<&CommandList> {
        let _ = device;
        None
    }

    /// As [`commands`](Self::commands), where the device's own bytes decide what is done. Such a launch has no list.
    fn flow(&self, device: u16) -> Option<&CommandFlow> {
        let _ = device;
        None
    }
}

/// The parameters of one launch of a [`Launch`].
///
/// ```
/// use purlin::backend::LaunchInfo;
///
/// let info = LaunchInfo { label: c"step".into(), launch_id: 7, device: 0, stream: 0 };
/// assert_eq!(info.label.to_string(), "step");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchInfo {
    /// The label of its event.
    pub label: Label,
    /// The number that the caller gave the launch.
    pub launch_id: i32,
    /// The number of its device.
    pub device: u16,
    /// Which of the device's streams is meant to do it, where it has several; a stream that it has not is its first.
    pub stream: u8,
}

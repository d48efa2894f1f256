//! Work on device memory that a room above does: programs.

#![allow(unsafe_code, reason = "a launch gets addresses")]

use purlin_base::label::Label;
use purlin_base::status::Error;

/// Work that is done, again and again, on whatever ranges an [`Operation`](super::Operation) has: nothing is boxed for
/// one launch of it. Asked for by [`Device::launch`](crate::Device::launch).
pub trait Launch: Send + Sync {
    /// As errors and reports name it.
    fn name(&self) -> &str;

    /// Does the work on the calling thread. `addresses` are those of the operation's ranges, in their order.
    ///
    /// # Errors
    /// Why it could not be done; the operation fails with that.
    ///
    /// # Safety
    /// Called by [`Operation::perform`](super::Operation::perform) only: the ranges are those that were listed for this
    /// launch, each is there for as many bytes as it has until this returns, and what was promised to
    /// [`Device::launch`](crate::Device::launch) holds.
    unsafe fn launch(&self, info: LaunchInfo, addresses: &[*mut u8]) -> Result<(), Error>;
}

/// What a [`Launch`] is told of one launch.
///
/// ```
/// use purlin::backend::LaunchInfo;
///
/// let info = LaunchInfo { label: c"step".into(), launch_id: 7, device: 0 };
/// assert_eq!(info.label.to_string(), "step");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchInfo {
    /// Of its event.
    pub label: Label,
    /// The number that its caller gave it.
    pub launch_id: i32,
    /// The number of the device that it is for.
    pub device: u16,
}

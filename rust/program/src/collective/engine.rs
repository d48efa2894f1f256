//! The seam: what executes the collectives of a launch.

use std::fmt;
use std::sync::Arc;

use super::{Collective, CollectiveArray};
use crate::library::OperandBytes;
use purlin_base::Error;

/// A way to exchange the arrays of collectives. [`InProcess`](super::InProcess) is the one that every
/// [`LoadedExecutable`](crate::LoadedExecutable) has at first.
pub trait CollectiveEngine: Send + Sync + fmt::Debug {
    /// A launch of `program` begins, with so many participants. Called once for each launch whose program has
    /// collectives.
    fn begin(&self, program: &str, launch_id: i32, participants: u32) -> Arc<dyn CollectiveLaunch>;
}

/// The collectives of one launch, for all of its participants.
pub trait CollectiveLaunch: Send + Sync {
    /// A participant executes a collective, on its own thread. It blocks until the arrays of all members are written,
    /// or until one of them cannot take part. No member's arrays are accessed after its call has returned.
    ///
    /// # Errors
    /// Any code: the cause why the collective failed. All members fail, with the error of the participant that failed
    /// first.
    fn join(&self, call: &CollectiveCall<'_>) -> Result<(), Error>;

    /// The run of `participant` is over, and it takes part in nothing more. Called once for each participant, whether
    /// its run succeeded, failed or never began. All that wait for it must fail.
    fn left(&self, participant: u32, outcome: &Result<(), Error>);
}

/// One member's part in a collective.
#[derive(Debug)]
pub struct CollectiveCall<'a> {
    /// The operation.
    pub collective: &'a Collective,
    /// The members, in the order of ranks.
    pub members: &'a [u32],
    /// The rank of this member.
    pub rank: usize,
    /// The arrays of the command, for their types.
    pub arrays: &'a [CollectiveArray],
    /// The bytes that the member gives, by array.
    pub from: &'a [OperandBytes],
    /// The bytes that the member gets, by array.
    pub to: &'a [OperandBytes],
}

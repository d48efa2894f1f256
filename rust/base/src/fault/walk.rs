//! Fail points that fail: one armed site for the whole process, counted under a lock that is a leaf.
//!
//! States: idle, in which points pass uncounted; armed, from [`arm`] to [`disarm`], by one test at a time.

use std::io;

use super::{Kind, Site};
use crate::status::{Error, SourceLocation};
use crate::sync::Mutex;

/// What is to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Where; `None`: nowhere, points are only counted.
    pub site: Option<Site>,
    /// At which reach, from 1.
    pub nth: usize,
    /// And at all that follow.
    pub and_all_after: bool,
}

/// The result of a plan.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// How often each site was reached, in the order of [`Site::ALL`].
    pub reached: Vec<usize>,
    /// How often the armed one has failed.
    pub failed: usize,
}

struct WalkState {
    plan: Plan,
    reached: Vec<usize>,
    failed: usize,
}

static STATE: Mutex<Option<WalkState>> = Mutex::new(None);

/// Arms the plan; the counts begin anew.
pub fn arm(plan: Plan) {
    *STATE.lock() = Some(WalkState { plan, reached: vec![0; Site::ALL.len()], failed: 0 });
}

/// Nothing fails any more.
pub fn disarm() -> Seen {
    let state = STATE.lock().take();
    state.map_or_else(Seen::default, |WalkState { reached, failed, .. }| Seen { reached, failed })
}

/// The result of the armed plan up to now.
pub fn seen() -> Seen {
    let state = STATE.lock();
    state.as_ref().map_or_else(Seen::default, |WalkState { reached, failed, .. }| Seen {
        reached: reached.clone(),
        failed: *failed,
    })
}

/// Counts the reach; which one it was, if it is to fail.
fn reach(site: Site) -> Option<usize> {
    let mut state = STATE.lock();
    let WalkState { plan, reached, failed } = state.as_mut()?;
    let count = &mut reached[site as usize];
    *count += 1;
    let hit = plan.site == Some(site) && (*count == plan.nth || (plan.and_all_after && *count > plan.nth));
    *failed += usize::from(hit);
    hit.then_some(*count)
}

fn message(site: Site, reach: usize) -> String {
    format!("fail point '{}' (reach {reach})", site.name())
}

/// Passes, or fails as the plan says.
///
/// # Errors
/// The fail point's, with its kind's code.
#[track_caller]
pub fn point(site: Site) -> Result<(), Error> {
    match reach(site) {
        None => Ok(()),
        Some(reach) => Err(Error::with_location(site.kind().code(), message(site, reach), SourceLocation::caller())),
    }
}

/// [`point`], for threads.
///
/// # Errors
/// The fail point's.
pub fn spawn(site: Site) -> io::Result<()> {
    reach(site).map_or(Ok(()), |reach| Err(io::Error::other(message(site, reach))))
}

/// [`point`], for files: the disk is full.
///
/// # Errors
/// The fail point's.
pub fn file(site: Site) -> io::Result<()> {
    reach(site).map_or(Ok(()), |reach| Err(io::Error::new(io::ErrorKind::StorageFull, message(site, reach))))
}

/// Passes, or panics as the plan says; `what` is called there, by the name of its site.
pub fn callback(what: &str) {
    let site = Site::ALL.iter().find(|site| site.kind() == Kind::Callback && site.name() == what);
    let site = *site.unwrap_or_else(|| unreachable!("{what} is no site that can panic"));
    if let Some(reach) = reach(site) {
        panic!("{}", message(site, reach));
    }
}

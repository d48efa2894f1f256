//! Which error a join has: the one place where the errors of several things become one. Joins of events and of
//! futures, count-downs, and the joins that C++ makes in its headers ([`merge`] over the bridge) come here once, with
//! all their errors, when the last of their members has arrived. `include/purlin/error_policy.h` has the contract.

use purlin_base::status::Error;

/// Which error a join has when several of its members failed. `include/purlin/error_policy.h` has the contract, which
/// holds for joins of events and futures and for count-downs, in both languages.
///
/// ```
/// use purlin::{ErrorPolicy, Event, JoinOptions, Error, when_all_with};
///
/// let failed = [Error::internal("a"), Error::data_loss("b")].map(Event::from_error);
/// let with = |policy| when_all_with(&failed, JoinOptions { policy, ..Default::default() }).error().unwrap();
/// assert_eq!(with(ErrorPolicy::FirstByIndex).message(), "a");
/// assert_eq!(with(ErrorPolicy::LastInTime).message(), "b");
/// let all = with(ErrorPolicy::All);
/// assert_eq!(all.message(), "2 of 2 failed: [0] INTERNAL: a; [1] DATA_LOSS: b");
/// assert_eq!(all.code(), Error::internal("").code(), "that of the lowest index");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorPolicy {
    /// That of the member with the lowest index: the result does not depend on the order of completion.
    #[default]
    FirstByIndex,
    /// That of the member that failed first.
    FirstInTime,
    /// That of the member that failed last.
    LastInTime,
    /// One error that lists all of them, with the code, payloads and place of the lowest index.
    All,
}

/// How a join treats errors.
///
/// ```
/// use purlin::{EventPromise, JoinOptions, Error, when_all_with};
///
/// let (slow, broken) = (EventPromise::new(c"slow"), EventPromise::new(c"broken"));
/// let options = JoinOptions { fail_fast: true, ..Default::default() };
/// let joined = when_all_with(&[slow.event(), broken.event()], options);
/// broken.set_error(Error::internal("broken"));
/// assert_eq!(joined.error().unwrap().message(), "broken", "it did not wait for the slow one");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JoinOptions {
    /// Which error the join has.
    pub policy: ErrorPolicy,
    /// Fail as soon as one member fails, with its error, whatever the policy; otherwise wait for all of them.
    pub fail_fast: bool,
}

impl JoinOptions {
    /// The policy that the errors which have arrived are merged by.
    pub(super) fn effective_policy(self) -> ErrorPolicy {
        if self.fail_fast { ErrorPolicy::FirstInTime } else { self.policy }
    }
}

/// The index of a member that has none.
pub(super) const NO_INDEX: usize = usize::MAX;

/// An error, and the index of its member, or [`NO_INDEX`].
pub type Failure<'a> = (usize, &'a Error);

/// Where in `failures`, which are in the order of time and not none, the error stands that is the result as it is.
/// `None`: the result is made of all of them.
pub(super) fn chosen(policy: ErrorPolicy, failures: &[Failure<'_>]) -> Option<usize> {
    match policy {
        // Of equal indices the first in time.
        ErrorPolicy::FirstByIndex => (0..failures.len()).min_by_key(|&at| failures[at].0),
        ErrorPolicy::FirstInTime => Some(0),
        ErrorPolicy::LastInTime => Some(failures.len() - 1),
        ErrorPolicy::All => (failures.len() == 1).then_some(0),
    }
}

/// The error of a join of `total` members, `failed` of which failed, with `failures`, which are in the order of time;
/// `Ok` if these are none.
#[cold]
pub fn merge(policy: ErrorPolicy, total: usize, failed: usize, failures: &[Failure<'_>]) -> Result<(), Error> {
    if failures.is_empty() {
        return Ok(());
    }
    if let Some(at) = chosen(policy, failures) {
        return Err(failures[at].1.clone());
    }
    let mut by_index = failures.to_vec();
    // Stable: of equal indices, and of members without one, in the order of time.
    by_index.sort_by_key(|(index, _)| *index);
    let list: Vec<_> = by_index
        .iter()
        .map(|(index, error)| {
            let number = if *index == NO_INDEX { String::new() } else { format!("[{index}] ") };
            format!("{number}{}: {}", error.code().name(), error.message())
        })
        .collect();
    let message = format!("{failed} of {total} failed: {}", list.join("; "));
    let (_, lowest) = by_index[0];
    let mut all = Error::with_location(lowest.code(), message, lowest.location());
    for (type_url, bytes) in lowest.payloads() {
        all.set_payload(type_url, bytes);
    }
    Err(all)
}

#[cfg(all(test, not(purlin_model)))]
mod tests {
    use super::*;

    #[test]
    fn what_did_not_fail_is_ok_under_every_policy() {
        for policy in [ErrorPolicy::FirstByIndex, ErrorPolicy::FirstInTime, ErrorPolicy::LastInTime, ErrorPolicy::All] {
            assert_eq!(merge(policy, 3, 0, &[]), Ok(()));
        }
    }

    #[test]
    fn members_without_an_index_are_listed_last_in_the_order_of_time() {
        let [a, b, c] = ["a", "b", "c"].map(Error::aborted);
        let failures = [(NO_INDEX, &a), (1, &b), (NO_INDEX, &c)];
        let all = merge(ErrorPolicy::All, 7, 4, &failures).unwrap_err();
        assert_eq!(all.message(), "4 of 7 failed: [1] ABORTED: b; ABORTED: a; ABORTED: c");
        assert_eq!(merge(ErrorPolicy::FirstByIndex, 7, 4, &failures), Err(b.clone()));
    }
}

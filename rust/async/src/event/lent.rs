//! Whether memory or a stack may be lent until an event: then a wait for it does not return early.
//!
//! Something may be lent until an event that the library owes, unless it is a [service](FLAG_LENDS_NOTHING); until one
//! that [says so](FLAG_LENDS_THROUGHOUT); until one that [`EventPromise::guarding`](super::EventPromise::guarding)
//! made; and until one that waits for such an event. A user's promise that is none of these lends nothing, and neither
//! does a task. This is looked at when a wait is to be given up, not when it begins: meanwhile a promise may have been
//! forwarded to a copy.

use super::abi::{EventHeader, FLAG_LENDS_NOTHING, FLAG_LENDS_THROUGHOUT, FLAG_POISONABLE};
use super::debt::{self, Seen};

/// Whether a thread that waits for `event` may have lent something until it.
pub(super) fn is_lent_until(event: &EventHeader) -> bool {
    let guards = |seen: Seen| {
        seen.flags & FLAG_LENDS_THROUGHOUT != 0
            || (seen.is_owed_by_a_promise() && seen.flags & (FLAG_POISONABLE | FLAG_LENDS_NOTHING) == 0)
    };
    // SAFETY: alive, because borrowed.
    let nodes = unsafe { debt::explore(std::ptr::from_ref(event).cast_mut(), |node| guards(node.seen)) };
    // The last is one, or there is none. A cell that belonged to an unrelated event by then is not looked at twice: it
    // makes a wait last.
    nodes.last().is_some_and(|last| guards(last.seen))
}

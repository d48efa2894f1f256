//! Errors and contexts. An error carries numbers, which are cheap, survive copies and the wire, and become text late.

use super::{UserContext, kind};
use purlin_base::status::{SourceLocation, Status};

/// The payload of an error that holds the numbers of its contexts: decimal, separated by commas, the outermost first.
pub const PAYLOAD: &str = "purlin/user_context";

/// `error` with the number of `context` (of a chain: its numbers, the outermost first), unless it has some already. OK
/// stays OK.
#[must_use]
pub fn annotate(error: Status, context: &UserContext) -> Status {
    annotate_lazily(error, || kind::chain_ids(context))
}

/// As [`annotate`], for a context of which only the number is known, and which may have expired.
#[must_use]
pub fn annotate_with_id(error: Status, id: u64) -> Status {
    annotate_lazily(error, || UserContext::lookup(id).map_or_else(|| vec![id], |context| kind::chain_ids(&context)))
}

fn annotate_lazily(mut error: Status, ids: impl FnOnce() -> Vec<u64>) -> Status {
    if error.ok() || error.payload(PAYLOAD).is_some() {
        return error;
    }
    let ids: Vec<String> = ids().iter().map(u64::to_string).collect();
    error.set_payload(PAYLOAD, ids.join(",").as_bytes());
    error
}

/// `error` with the texts of its contexts in the message, in place of their numbers: for display to people. Renders, so
/// it may call the user's closures; do not call it under a lock that those take. Contexts that have ended are named by
/// their numbers. An error without contexts, and OK, stay as they are.
#[must_use]
pub fn expand(error: &Status) -> Status {
    let Some(ids) = error.payload(PAYLOAD) else { return error.clone() };
    let mut message = error.message().to_owned();
    for id in String::from_utf8_lossy(ids).split(',') {
        let context = id.parse().ok().map(UserContext::lookup);
        message.push_str(&match context {
            Some(Some(context)) => format!("\n  in user context {id}: {}", context.debug_string()),
            Some(None) => format!("\n  in user context {id}, which has expired"),
            None => format!("\n  in user context {id:?}, which is no number"),
        });
    }
    let place = error.location().unwrap_or(SourceLocation::UNKNOWN);
    let mut expanded = Status::with_location(error.code(), message, place);
    for (type_url, bytes) in error.payloads().filter(|(type_url, _)| *type_url != PAYLOAD) {
        expanded.set_payload(type_url, bytes);
    }
    expanded
}

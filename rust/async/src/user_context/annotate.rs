//! Errors and contexts. An error carries numbers, which are cheap, survive copies and the wire, and become text late.

use super::{UserContext, kind};
use purlin_base::status::Error;

/// The payload of an error that holds the numbers of its contexts: decimal, separated by commas, the outermost first.
pub const PAYLOAD: &str = "purlin/user_context";

/// `error` with the number of `context` (of a chain: its numbers, the outermost first), unless it has some already.
#[must_use]
pub fn annotate(error: Error, context: &UserContext) -> Error {
    annotate_lazily(error, || kind::chain_ids(context))
}

/// As [`annotate`], for a context of which only the number is known, and which may have expired.
#[must_use]
pub fn annotate_with_id(error: Error, id: u64) -> Error {
    annotate_lazily(error, || UserContext::lookup(id).map_or_else(|| vec![id], |context| kind::chain_ids(&context)))
}

fn annotate_lazily(mut error: Error, ids: impl FnOnce() -> Vec<u64>) -> Error {
    if error.payload(PAYLOAD).is_some() {
        return error;
    }
    let ids: Vec<String> = ids().iter().map(u64::to_string).collect();
    error.set_payload(PAYLOAD, ids.join(",").as_bytes());
    error
}

/// `error` with the texts of its contexts in the message, in place of their numbers: for display to people. Renders, so
/// it may call the user's closures; do not call it under a lock that those take. Contexts that have ended are named by
/// their numbers. An error without contexts stays as it is.
#[must_use]
pub fn expand(error: &Error) -> Error {
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
    let place = error.location();
    let mut expanded = Error::with_location(error.code(), message, place);
    for (type_url, bytes) in error.payloads().filter(|(type_url, _)| *type_url != PAYLOAD) {
        expanded.set_payload(type_url, bytes);
    }
    expanded
}

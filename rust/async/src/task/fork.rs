//! What is answered in a child, made by `fork`, for an object of the parent's that has threads there (`sync/fork.rs`).

use purlin_base::status::Error;

/// `what` names the object, such as "pool 'x'".
#[cold]
pub fn refusal(what: impl std::fmt::Display) -> Error {
    Error::failed_precondition(format!(
        "this process was made by fork(), which copies no threads: {what} cannot be used here; make it after fork(), or exec()"
    ))
}

//! The current context of a thread.
//!
//! The thread's state owns one reference to what is current; a scope owns the one that it displaced. So each reference
//! has one owner, whatever the order in which scopes end, and a scope that is forgotten leaks and does no harm.

use std::ptr;

use super::UserContext;
use purlin_base::thread_state;

/// While it lives, a context is current on this thread; then what was current before is current again, also after a
/// panic. Scopes end in the reverse order of their beginning.
///
/// ```
/// use purlin::{UserContext, UserContextScope};
///
/// let request = UserContext::new("request 12");
/// let scope = UserContextScope::new(request.clone());
/// assert_eq!(UserContext::current(), Some(request));
/// drop(scope);
/// assert_eq!(UserContext::current(), None);
/// ```
#[derive(Debug)]
#[must_use = "the context is current only while the scope lives"]
pub struct UserContextScope {
    /// Owned; null for none. Also keeps the scope on its thread: pointers are not Send.
    displaced: *const u64,
}

impl UserContextScope {
    /// Makes `context` current.
    pub fn new(context: UserContext) -> Self {
        Self { displaced: replace(context.into_raw()) }
    }

    /// Makes none current.
    pub fn none() -> Self {
        Self { displaced: replace(ptr::null()) }
    }
}

impl Drop for UserContextScope {
    fn drop(&mut self) {
        let ended = replace(self.displaced);
        if !ended.is_null() {
            // Its end may run user code, which sees what is current now.
            // SAFETY: the state owned a reference, which is ours now.
            drop(unsafe { UserContext::from_raw(ended) });
        }
    }
}

/// Puts an owned pointer, or null, into the thread's state and gives what was there, owned.
fn replace(context: *const u64) -> *const u64 {
    thread_state::with_state(|state| state.context.replace(context))
}

/// Makes no context current while the result lives, if one is current: for code that was given to Purlin where none
/// was. Code that was given with a context sets it itself.
#[inline]
pub fn cleared() -> Option<UserContextScope> {
    if thread_state::with_state(|state| state.context.get().is_null()) { None } else { Some(UserContextScope::none()) }
}

/// `closure`, to be called with `context` current, for your own threads. Events and tasks do this by themselves.
///
/// ```
/// use purlin::{UserContext, with_user_context};
///
/// let request = UserContext::new("request 12");
/// let call = with_user_context(request.clone(), UserContext::current);
/// assert_eq!(UserContext::current(), None);
/// assert_eq!(std::thread::spawn(call).join().unwrap(), Some(request));
/// ```
pub fn with_user_context<R>(context: UserContext, closure: impl FnOnce() -> R) -> impl FnOnce() -> R {
    move || {
        let _scope = UserContextScope::new(context);
        closure()
    }
}

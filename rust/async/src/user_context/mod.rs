//! On whose behalf something is done: a number, and a text that names its origin, rendered only when asked for.
//!
//! A [`UserContext`] is made where work starts (a line of a Python program, say), made current by a
//! [`UserContextScope`], and carried from there: events remember its number, waiters and tasks hold it and make it
//! current while they run, and an error takes its number along (`annotate.rs`). A process-wide registry (`registry.rs`)
//! finds it again by its number for as long as a reference is held.
//!
//! Kinds: a basic one has an origin; an annotated one a parent and a further text; a chained one an outer and an inner
//! context; a fused one several of equal rank. Contexts never change, and cannot form a cycle.
//!
//! An origin may be a closure of the user's that takes locks of its own. It is called, and destroyed, under no lock of
//! ours; if it panics, the text says so. Nothing here can fail but [`UserContext::with_id`].
//!
//! Files: `kind.rs` what contexts are made of and how they read, `number.rs` the numbers, `scope.rs` the current one.

#![allow(unsafe_code, reason = "the current context is a bare pointer, shared with C++")]

mod annotate;
mod kind;
mod number;
mod registry;
mod scope;

use std::fmt;
use std::sync::Arc;

use kind::Kind;
use purlin_base::slab;
use purlin_base::status::{Error, StatusOr};
use purlin_base::thread_state;

pub use annotate::{PAYLOAD, annotate, annotate_with_id, expand};
pub use kind::Origin;
pub use scope::cleared;
pub use scope::{UserContextScope, with_user_context};

/// The memory of a context. C++ reads the number inline, through [`UserContext::into_raw`]'s pointer.
#[derive(Debug)]
#[repr(C)]
struct UserContextRep {
    id: u64,
    kind: Kind,
}

const _: () = assert!(std::mem::offset_of!(UserContextRep, id) == 0, "C++ reads the number from the first word");

/// A reference to a context: one word, cheap to clone. Equal if it is the same context.
///
/// ```
/// use purlin::UserContext;
///
/// let request = UserContext::new("request 12");
/// let step = UserContext::annotated(request.clone(), "decode");
/// assert_eq!(UserContext::lookup(request.id()), Some(request));
/// assert!(step.debug_string().contains("request 12"));
/// ```
#[derive(Clone)]
#[repr(transparent)]
pub struct UserContext(Arc<UserContextRep>);

impl UserContext {
    /// A basic context.
    #[must_use]
    pub fn new(origin: impl Into<Origin>) -> Self {
        Self::numbered(Kind::Basic(origin.into()))
    }

    /// `parent`, and what is done in it.
    #[must_use]
    pub fn annotated(parent: Self, origin: impl Into<Origin>) -> Self {
        Self::numbered(Kind::Annotated(parent, origin.into()))
    }

    /// `outer` asked for `inner`: for work that crosses from one system of contexts to another.
    #[must_use]
    pub fn chained(outer: Self, inner: Self) -> Self {
        Self::numbered(Kind::Chained([outer, inner]))
    }

    /// All of `contexts` at once: for work that was merged. `None` for no contexts; for one, that one itself.
    ///
    /// ```
    /// use purlin::UserContext;
    ///
    /// let (left, right) = (UserContext::new("left"), UserContext::new("right"));
    /// let both = UserContext::fused(vec![left, right]).unwrap();
    /// assert!(both.debug_string().contains("left") && both.debug_string().contains("right"));
    /// assert_eq!(UserContext::fused(Vec::new()), None);
    /// ```
    #[must_use]
    pub fn fused(mut contexts: Vec<Self>) -> Option<Self> {
        match contexts.len() {
            0 | 1 => contexts.pop(),
            _ => Some(Self::numbered(Kind::Fused(contexts))),
        }
    }

    /// A context whose number was made elsewhere, in another process, say: the living one of that number if there is
    /// one (then `origin` is dropped), else a new one.
    ///
    /// # Errors
    /// [`InvalidArgument`](purlin_base::StatusCode::InvalidArgument): `id` is 0, which stands for no context.
    pub fn with_id(id: u64, origin: impl Into<Origin>) -> StatusOr<Self> {
        let origin = origin.into();
        if id == 0 {
            return Err(Error::invalid_argument("0 is no number of a user context"));
        }
        let new = Self(Arc::new(UserContextRep { id, kind: Kind::Basic(origin) }));
        Ok(registry::process().register(&new).unwrap_or(new))
    }

    fn numbered(kind: Kind) -> Self {
        let mut new = Self(Arc::new(UserContextRep { id: number::next(), kind }));
        // A number from elsewhere may be in the way.
        while registry::process().register(&new).is_some() {
            if let Some(rep) = Arc::get_mut(&mut new.0) {
                rep.id = number::next();
            }
        }
        new
    }

    /// Its number: no other context of this process has it, and most probably none of another process. Never 0.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.0.id
    }

    /// The text, rendered inside this call: it may call the user's closures. Do not call it under a lock that those
    /// take.
    #[must_use]
    pub fn debug_string(&self) -> String {
        kind::render(self)
    }

    /// The living context of that number.
    #[must_use]
    pub fn lookup(id: u64) -> Option<Self> {
        registry::process().lookup(id)
    }

    /// All living contexts, by their numbers.
    #[must_use]
    pub fn lookup_all() -> Vec<Self> {
        registry::process().lookup_all()
    }

    /// The context that is current on this thread.
    #[inline]
    #[must_use]
    pub fn current() -> Option<Self> {
        let context = thread_state::with_state(|state| state.context.get());
        // SAFETY: the thread's state owns a reference to what it points to, and only this thread changes it.
        (!context.is_null()).then(|| unsafe { Self::from_borrowed_raw(context) })
    }

    /// Gives the reference away, as the address of the number. Take it back with [`from_raw`](Self::from_raw).
    #[doc(hidden)]
    #[must_use]
    pub fn into_raw(self) -> *const u64 {
        Arc::into_raw(self.0).cast()
    }

    /// Takes a reference back.
    ///
    /// # Safety
    /// `context` came from [`into_raw`](Self::into_raw), once per call.
    #[doc(hidden)]
    #[must_use]
    pub unsafe fn from_raw(context: *const u64) -> Self {
        // SAFETY: the caller hands over the reference that into_raw() gave out.
        Self(unsafe { Arc::from_raw(context.cast()) })
    }

    /// One more reference to a context that the caller holds by another reference.
    ///
    /// # Safety
    /// `context` came from [`into_raw`](Self::into_raw), and that reference outlives this call.
    #[doc(hidden)]
    #[must_use]
    pub unsafe fn from_borrowed_raw(context: *const u64) -> Self {
        // SAFETY: the caller keeps a reference alive during this call; the count is raised for ours.
        unsafe {
            Arc::increment_strong_count(context.cast::<UserContextRep>());
            Self::from_raw(context)
        }
    }
}

/// The number of the context that is current on this thread.
#[inline]
pub(crate) fn current_id() -> Option<u64> {
    Some(thread_state::with_state(slab::ThreadState::context_id)).filter(|&id| id != 0)
}

impl Drop for UserContextRep {
    /// A loop, so that a parent's parent's parent, a million times, needs no stack.
    fn drop(&mut self) {
        registry::process().forget_if_dead(self.id);
        let mut parts = self.kind.take_parts();
        while let Some(part) = parts.pop() {
            if let Some(mut last) = Arc::into_inner(part.0) {
                parts.append(&mut last.kind.take_parts());
            }
        }
    }
}

impl PartialEq for UserContext {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for UserContext {}

impl fmt::Debug for UserContext {
    /// Renders nothing.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UserContext({})", self.id())
    }
}

#[cfg(all(test, loom))]
mod loom_model;
#[cfg(all(test, not(purlin_model)))]
mod tests;

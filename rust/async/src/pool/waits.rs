//! The waits of a pool's threads that may be given up, oldest first. Under the pool's lock, which a wait passes to
//! leave it; so its event is alive while it is woken.

use crate::event::Blocked;

#[derive(Default)]
pub(crate) struct Waits(Vec<Waiting>);

struct Waiting(*const Blocked<'static>);

// SAFETY: a wait is looked at under the lock only, and leaves the list before it ends.
unsafe impl Send for Waiting {}

impl Waits {
    pub(crate) fn enter(&mut self, wait: Option<&Blocked<'_>>) {
        self.0.extend(wait.map(|wait| Waiting(std::ptr::from_ref(wait).cast())));
    }

    pub(crate) fn leave(&mut self, wait: Option<&Blocked<'_>>) {
        // From the back: waits end in any order, the newest often first. One that was given up is not there.
        if let Some(at) = wait.and_then(|wait| self.0.iter().rposition(|Waiting(known)| wait.is_at(*known))) {
            self.0.remove(at);
        }
    }

    /// Gives up the newest, of those until which nothing is lent; false if there is none.
    pub(crate) fn give_up_newest(&mut self) -> bool {
        // SAFETY: a wait in the list has not ended, and cannot while the caller has the lock.
        let Some(at) = self.0.iter().rposition(|Waiting(wait)| unsafe { !(**wait).lasts() }) else { return false };
        let Waiting(wait) = self.0.remove(at);
        // SAFETY: as above.
        unsafe { (*wait).give_up() };
        true
    }

    /// Until how many nothing is lent.
    #[cfg(not(purlin_model))]
    pub(crate) fn may_give_up(&self) -> usize {
        // SAFETY: as above.
        self.0.iter().filter(|Waiting(wait)| unsafe { !(**wait).lasts() }).count()
    }
}

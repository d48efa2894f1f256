//! Events that are taken and given back while the pool ends.

use std::sync::Arc;

use loom::thread;
use purlin_base::sync::explore;

use super::EventPool;
use crate::model::{Flag, driver};

/// Takes one, uses it, and gives it back.
fn use_one(pool: &Arc<EventPool>) {
    let event = pool.take().unwrap_or_else(|code| unreachable!("the driver refuses nothing, and answers {code}"));
    Flag::of(event.handle()).touch();
}

#[test]
fn an_event_has_one_user_at_a_time_and_is_destroyed_once() {
    explore("two use events against the pool's end", 3, || {
        let pool = Arc::new(EventPool::new(driver()));
        use_one(&pool);
        let users = [Arc::clone(&pool), Arc::clone(&pool)].map(|pool| thread::spawn(move || use_one(&pool)));
        pool.destroy();
        users.into_iter().for_each(|user| user.join().unwrap());
        // loom says so if one is left.
        assert!(pool.idle.lock().events.is_empty());
    });
}

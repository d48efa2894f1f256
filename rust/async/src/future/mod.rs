//! Values that tasks compute, and how they are handed on.
//!
//! [`Promise`] sets, once; [`Future`] reads, by reference, any number of them. A promise that is dropped unset
//! completes its future with an error that names it, so every future is completed: where work is given to an executor,
//! the task holds the promise, and an executor that refuses or drops the task completes it too.
//!
//! A future is an [`AsyncValue`](crate::AsyncValue) that only its promise can set. What [`crate::event`] says about
//! states, threads and memory order holds here.
//!
//! Files: `value.rs` the two sides, `derived.rs` futures made from futures, `on.rs` with an executor in between,
//! `join.rs` several at once, `once_map.rs` computed once for each key, `spawn.rs` Rust's `async` on an executor,
//! `poll.rs` the other way round.

mod derived;
mod join;
mod on;
mod once_map;
#[cfg(not(purlin_model))]
mod poll;
mod spawn;
mod value;

pub use join::{Joined, join_futures};
pub use on::future_on;
pub use once_map::OnceMap;
#[cfg(not(purlin_model))]
pub use poll::FutureRef;
pub use spawn::{spawn, try_spawn};
pub use value::{AlreadySet, Future, Promise, SharedPromise};

#[cfg(all(test, loom))]
mod loom_model;
#[cfg(all(test, not(purlin_model)))]
mod tests;

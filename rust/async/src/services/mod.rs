//! Services over any executor: deadlines, and how much at a time.
//!
//! They are built from locks and events. A thread that takes an entry out under the lock completes it under none, so
//! nothing is completed twice or forgotten, and the events' trampoline bounds the stack. Each file opens with its
//! states.

pub mod semaphore;
// Threads of std, which models cannot explore.
#[cfg(not(purlin_model))]
pub mod timer;

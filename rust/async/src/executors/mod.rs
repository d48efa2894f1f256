//! Executors beside the pool: none of its own threads ([`inline`]), one task at a time over another executor
//! ([`serial_queue`]), as many threads as tasks ([`elastic_pool`]).

// Threads of std, which models cannot explore.
#[cfg(not(purlin_model))]
pub mod elastic_pool;
#[cfg(not(purlin_model))]
mod elastic_waits;
pub mod inline;
pub mod serial_queue;

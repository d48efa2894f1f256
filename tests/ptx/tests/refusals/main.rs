//! What is refused, what ends a kernel, and what no text can do.

mod launches;
mod mutations;
mod planted;
#[path = "../support/mod.rs"]
mod support;
mod texts;
mod traps;

//! x
#![deny(unsafe_code)]
#![allow(dead_code, unused_imports)]

mod fault;
mod library;
mod link;
mod load;
mod module;
mod proto;

pub use load::{LoadOptions, check, load_program};

//! x
#![deny(unsafe_code)]
#![allow(dead_code, unused_imports)]

mod fault;
mod link;
mod proto;

//! An executable reference model of buffers, events, holds, donation and runs of programs, and what compares the
//! library with it.
//!
//! A string of bytes is a sequence of operations (`op.rs`). The model (`model/`) says what each answers, and what can
//! be seen when everything has happened; a [`Subject`] does the same with the library: in Rust (`rust_subject.rs`), or
//! in C++ by a program on the other side of a pipe (`cpp_subject.rs`, `cpp/subject.cc`). `fuzz.rs` makes sequences for
//! one thread, `pair.rs` for two, where the answers of both must be those of some interleaving (`linear.rs`). What
//! differs is made small (`shrink.rs`) and kept in `corpus/`, as is whatever meets something new.

mod corpus;
mod cpp_subject;
mod fuzz;
mod linear;
pub mod model;
pub mod op;
mod pair;
mod random;
mod rust_programs;
mod rust_subject;
mod shrink;
mod subject;

pub use corpus::{Corpus, Coverage};
pub use cpp_subject::CppSubject;
pub use fuzz::{Difference, Fuzz, Report, compare};
pub use pair::PairFuzz;
pub use random::Random;
pub use rust_subject::RustSubject;
pub use subject::{Backend, Subject};

//! Purlin's C++ library for programs that cargo builds.
//!
//! A package whose own C++ uses Purlin depends on this crate. Its build script finds the public headers in the folder
//! that `DEP_PURLIN_INCLUDE` names, and compiles as it likes, by `cc` or `cxx-build`:
//!
//! ```ignore
//! // build.rs
//! let include = std::env::var("DEP_PURLIN_INCLUDE").expect("purlin-cpp is a dependency");
//! cc::Build::new().cpp(true).std("c++17").include(include).file("src/mine.cc").compile("mine");
//! ```
//!
//! One line in the program, `use purlin_cpp as _;`, makes rustc link the library. `tests/consumer/cargo` is such a
//! program.

#![forbid(unsafe_code)]

// What C++ calls is in there.
use purlin_bridge as _;

//! Compiles the program's own C++ with Purlin's headers.

fn main() {
    let include = std::env::var("DEP_PURLIN_INCLUDE").expect("purlin-cpp is a dependency");
    println!("cargo::rerun-if-changed=src/answer.cc");
    cc::Build::new().cpp(true).std("c++17").include(include).file("src/answer.cc").compile("answer");
}

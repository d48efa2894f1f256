//! Asks its own C++, which asks Purlin.

use purlin_cpp as _;

unsafe extern "C" {
    safe fn answer() -> i32;
}

fn main() {
    assert_eq!(answer(), 42, "a code of an error of Purlin's, unless it is 42");
    println!("the C++ of this program says {}", answer());
}

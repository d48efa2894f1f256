//! Brings a second copy of Rust's std, allocator shims and panic runtime into a C++ program that also links Purlin.

use std::panic::catch_unwind;

/// The sum of `1..=count`, through a thread and the allocator; -1 if that thread was lost.
#[unsafe(no_mangle)]
pub extern "C" fn second_rust_sum(count: i64) -> i64 {
    std::thread::spawn(move || (1..=count).collect::<Vec<i64>>().iter().sum()).join().unwrap_or(-1)
}

/// 1 if a panic was raised and caught here, which needs this library's own personality function and panic count.
#[unsafe(no_mangle)]
pub extern "C" fn second_rust_catches_a_panic() -> i32 {
    std::panic::set_hook(Box::new(|_| {}));
    let caught = catch_unwind(|| {
        let numbers: Vec<i32> = Vec::new();
        numbers[std::hint::black_box(3)]
    });
    i32::from(caught.is_err() && !std::thread::panicking())
}

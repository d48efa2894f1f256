//! The kernels of `kernels/`, as the compiler made them, over random shapes, beside a plain version of each. Numbers
//! are equal to the bit where each operation is rounded as PTX says, and within a stated bound where it approximates or
//! the order of a sum is free.

mod digits;
mod fill;
mod functions;
mod gradient;
mod halves;
mod integers;
mod matmul;
mod momentum;
mod pack;
mod reduce;
mod softmax;
#[path = "../support/mod.rs"]
mod support;

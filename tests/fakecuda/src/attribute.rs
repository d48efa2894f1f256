//! Attributes of devices by number: those of an H100, but for what the environment says. Numbers that no device has
//! are INVALID_VALUE.

use purlin_fakecuda_options::{Identity, Options};

use crate::boundary::Answer;
use crate::code::Code;

/// The most threads of a block, in all and in each dimension.
pub(crate) const MOST_THREADS: u32 = 1024;
pub(crate) const MOST_BLOCK: [u32; 3] = [1024, 1024, 64];
/// The most blocks in each dimension.
pub(crate) const MOST_GRID: [u32; 3] = [0x7FFF_FFFF, 65_535, 65_535];
/// Shared memory of a block, unless its function asks for more, and the most that it may ask for.
pub(crate) const SHARED_BYTES: u32 = 48 << 10;
pub(crate) const MOST_SHARED_BYTES: u32 = 227 << 10;
/// The highest number that a device of CUDA 13 knows.
const LAST: u32 = 150;

/// Number and value of those that are not 0.
const FIXED: &[(u32, u32)] = &[
    (1, MOST_THREADS),
    (2, MOST_BLOCK[0]),
    (3, MOST_BLOCK[1]),
    (4, MOST_BLOCK[2]),
    (5, MOST_GRID[0]),
    (6, MOST_GRID[1]),
    (7, MOST_GRID[2]),
    (8, SHARED_BYTES),
    (9, 64 << 10),     // constant memory
    (10, 32),          // threads of a warp
    (11, 0x7FFF_FFFF), // pitch
    (12, 64 << 10),    // registers of a block
    (13, 1_755_000),   // clock, kHz
    (14, 512),         // alignment of textures
    (15, 1),           // copies beside kernels
    (16, 132),         // multiprocessors
    (19, 1),           // host memory is mapped
    (31, 1),           // kernels beside kernels
    (32, 1),           // ECC
    (36, 2_619_000),   // clock of memory, kHz
    (37, 5120),        // width of its bus
    (38, 50 << 20),    // second cache
    (39, 2048),        // threads of a multiprocessor
    (40, 3),           // engines that copy
    (41, 1),           // one address space
    (51, 32),          // alignment of pitches
    (78, 1),           // priorities
    (79, 1),           // first cache, global
    (80, 1),           // and local
    (81, 228 << 10),   // shared memory of a multiprocessor
    (82, 64 << 10),    // registers of a multiprocessor
    (87, 2),           // single to double
    (90, 1),           // preemption
    (91, 1),           // registered memory has its own address
    (95, 1),           // cooperative launches
    (97, MOST_SHARED_BYTES),
    (99, 1),        // memory is registered
    (106, 32),      // blocks of a multiprocessor
    (111, 1 << 10), // shared memory that the system takes of a block
];

/// The attribute `number` of that device.
pub(crate) fn of_device(options: &Options, number: u32, ordinal: usize) -> Answer<i32> {
    let value = match number {
        33 => Identity { ordinal }.bus(),
        75 => options.capability.0,
        76 => options.capability.1,
        115 => u32::from(!options.without_pools),
        0 | LAST.. => return Err(Code::INVALID_VALUE),
        _ => FIXED.iter().find(|(known, _)| *known == number).map_or(0, |(_, value)| *value),
    };
    i32::try_from(value).map_err(|_| Code::UNKNOWN)
}

/// CUdevice_P2PAttribute: rank, access, native atomics, arrays.
pub(crate) fn between(options: &Options, number: u32) -> Answer<i32> {
    match number {
        1 => Ok(0),
        2..=4 => Ok(i32::from(!options.without_peers)),
        _ => Err(Code::INVALID_VALUE),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_those_of_the_options_or_fixed() {
        let options = Options { capability: (8, 6), without_pools: true, ..Options::default() };
        let of = |number| of_device(&options, number, 1);
        assert_eq!([of(75), of(76), of(115), of(33), of(10), of(17)].map(Result::ok), [8, 6, 0, 2, 32, 0].map(Some));
        assert_eq!([of(0), of(4711)], [Err(Code::INVALID_VALUE); 2]);
        assert_eq!((between(&options, 2), between(&options, 9)), (Ok(1), Err(Code::INVALID_VALUE)));
    }
}

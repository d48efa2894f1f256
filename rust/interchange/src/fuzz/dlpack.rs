//! DLPack: structs whose numbers lie. Their pointers do not: a struct is believed in where its memory is, so arrays
//! that reach beyond the memory of this test are only described, not read.

#![allow(unsafe_code, reason = "arrays are read by address")]

use purlin_base::StatusCode;

use super::{Chance, Outcome, fuzz};
use crate::array_bytes::HostBytes;
use crate::dlpack::abi::{DLDataType, device, flag};
use crate::dlpack::import::{address, described};
use crate::dlpack::import_dlpack;
use crate::dlpack::tests::{Ends, Stranger};
use crate::testing::Host;

const MEMORY_BYTES: usize = 256;
/// Numbers at which arithmetic breaks, and those of sound arrays.
const NUMBERS: [i64; 16] = [0, 1, 2, 3, 4, 6, 8, -1, -2, -4, 65, 1 << 31, 1 << 32, i64::MAX / 4, i64::MAX, i64::MIN];

/// What a struct says.
#[derive(Debug)]
struct Input {
    dims: Vec<i64>,
    strides: Option<Vec<i64>>,
    dtype: DLDataType,
    device_type: i32,
    flags: u64,
    byte_offset: u64,
    major: u32,
    ndim: i32,
    has_shape: bool,
    has_data: bool,
}

fn number(chance: &mut Chance) -> i64 {
    // Mostly those of sound arrays.
    if chance.one_in(8) { *chance.of(&NUMBERS) } else { 1 + chance.below(4) as i64 }
}

fn made(chance: &mut Chance) -> Input {
    let rank = chance.below(4);
    let dims: Vec<i64> = (0..rank).map(|_| number(chance)).collect();
    let sound = [(0, 8), (1, 8), (1, 16), (2, 32), (2, 64), (4, 16), (5, 64), (6, 8), (10, 8), (0, 4), (1, 2), (17, 4)];
    let (code, bits) = match chance.one_in(12) {
        true => (chance.next() as u8, chance.next() as u8),
        false => *chance.of(&sound),
    };
    Input {
        strides: chance
            .one_in(2)
            .then(|| dims.iter().map(|_| number(chance).wrapping_sub(chance.below(3) as i64)).collect()),
        dtype: DLDataType { code, bits, lanes: if chance.one_in(16) { chance.next() as u16 } else { 1 } },
        device_type: if chance.one_in(16) {
            chance.next() as i32
        } else {
            *chance.of(&[device::CPU, device::CUDA_HOST])
        },
        flags: *chance.of(&[0, flag::READ_ONLY, flag::IS_SUBBYTE_TYPE_PADDED, u64::MAX]),
        byte_offset: match chance.below(12) {
            0 => *chance.of(&[u64::MAX, 1 << 63, u64::MAX / 2]),
            1..8 => 0,
            _ => chance.below(MEMORY_BYTES) as u64,
        },
        major: if chance.one_in(24) { chance.next() as u32 } else { 1 },
        // Never more than there are, but for what is refused before they are read.
        ndim: if chance.one_in(24) { *chance.of(&[-1, i32::MIN, 65, i32::MAX]) } else { rank as i32 },
        has_shape: !chance.one_in(24),
        has_data: !chance.one_in(24),
        dims,
    }
}

/// The struct, whose memory begins in the middle, so that strides may be negative.
fn stranger(input: &Input) -> (*mut Stranger, Ends) {
    let bytes: Vec<u8> = (0..MEMORY_BYTES).map(|index| index as u8).collect();
    let (raw, ends) = Stranger::new(&bytes, input.dtype, &input.dims, input.strides.as_deref());
    // SAFETY: it is alive, and ours.
    let managed = unsafe { &mut (*raw).managed };
    managed.version.major = input.major;
    managed.flags = input.flags;
    let tensor = &mut managed.dl_tensor;
    tensor.ndim = input.ndim;
    tensor.device.device_type = input.device_type;
    tensor.byte_offset = input.byte_offset;
    if !input.has_shape {
        tensor.shape = std::ptr::null_mut();
    }
    if !input.has_data {
        tensor.data = std::ptr::null_mut();
    }
    (raw, ends)
}

/// Whether every element is one of the memory's.
fn lies_inside(input: &Input, raw: *mut Stranger) -> bool {
    // SAFETY: it is alive, and its pointers are what DLPack says, or null where the description looks.
    let tensor = unsafe { &(*raw).managed.dl_tensor };
    // SAFETY: as above.
    let Ok((shape, array)) = (unsafe { described(tensor, input.flags) }) else { return true };
    if address(tensor, array.as_ref(), &shape).is_err() || shape.element_count() == 0 {
        return true;
    }
    let extent = array.map_or(0..shape.size_bytes() as isize, |array| array.extent());
    let first = input.byte_offset as i128;
    // A broadcast over 2^32 entries would be copied as that many.
    first + extent.start as i128 >= 0
        && first + extent.end as i128 <= MEMORY_BYTES as i128
        && shape.element_count() <= 1 << 16
}

#[test]
fn no_dlpack_struct_breaks_the_import() {
    let host = Host::new();
    let look = |input: &Input, _: &mut Chance, outcome: &mut Outcome| {
        let (raw, ends) = stranger(input);
        if !lies_inside(input, raw) {
            outcome.kind("it lies about its memory");
            // SAFETY: it stayed ours.
            return unsafe { Stranger::end(Stranger::managed(raw)) };
        }
        // SAFETY: all elements are the memory's, which nothing writes.
        match unsafe { import_dlpack(Stranger::managed(raw), &host.space) } {
            Ok((buffer, _)) => {
                outcome.accepted += 1;
                assert_eq!(buffer.dims(), input.dims);
                let elements = HostBytes::of(&buffer).unwrap();
                assert_eq!(elements.as_slice().len(), buffer.shape().host_size_bytes());
                if buffer.dtype().byte_width() == 1 && buffer.shape().element_count() > 0 {
                    assert_eq!(elements.as_slice()[0], input.byte_offset as u8, "bytes are their own addresses");
                }
                drop((elements, buffer));
                ends.wait();
                assert_eq!(ends.count(), 1);
            }
            Err(error) => {
                assert!([StatusCode::InvalidArgument, StatusCode::Unimplemented].contains(&error.code()), "{error}");
                outcome.kind(error.message().rsplit_once("imported: ").map_or(error.message(), |(_, why)| why));
                assert_eq!(ends.count(), 0);
                // SAFETY: it stayed ours.
                unsafe { Stranger::end(Stranger::managed(raw)) };
            }
        }
    };
    fuzz("DLPack", made, look);
}

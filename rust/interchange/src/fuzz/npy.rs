//! `.npy`: headers whose words are exchanged, whose length is right or wrong, and whose data is cut.

#![allow(unsafe_code, reason = "arrays are made from bytes")]

use purlin_array::{DType, HostArray, Shape};
use purlin_base::Label;
use purlin_device::Buffer;

use super::{Bytes, Chance, Outcome, fuzz, mutate};
use crate::array_bytes::{HostBytes, into_buffer};
use crate::npy::{header, tests::parse};
use crate::testing::Host;

const WORDS: [&str; 24] = [
    "'descr'",
    "'fortran_order'",
    "'shape'",
    "True",
    "False",
    "'<f4'",
    "'|u1'",
    "'<V2'",
    "'|V1'",
    "'<c16'",
    "'|b1'",
    "'>f8'",
    "'|O'",
    "(2, 3)",
    "(3,)",
    "()",
    "(0, 5)",
    "(1, 1)",
    ", ",
    ": ",
    "L",
    "{",
    "}",
    "\n",
];

/// A sound file, and then up to four changes; half of the time, the header's length is what it was made into.
fn damaged(chance: &mut Chance) -> Bytes {
    let dtype = *chance.of(&[DType::F32, DType::U8, DType::C128, DType::BF16, DType::Pred]);
    let dims: Vec<i64> = (0..chance.below(4)).map(|_| chance.below(5) as i64).collect();
    let shape = Shape::new(dtype, &dims).unwrap();
    let mut head = header::written(&shape).unwrap();
    if chance.one_in(4) {
        let text = String::from_utf8(head.split_off(10)).unwrap().replace("False", "True");
        head.extend(text.into_bytes());
    }
    let version = *chance.of(&[1, 1, 2, 3]);
    let mut text = head.split_off(10);
    let mut data: Vec<u8> = (0..shape.host_size_bytes()).map(|index| index as u8).collect();
    let changes = chance.below(5);
    let is_fixed = chance.one_in(2);
    if is_fixed {
        (0..changes).for_each(|_| mutate(&mut text, &WORDS, chance));
    }
    let length = text.len() as u32;
    let mut bytes = b"\x93NUMPY".to_vec();
    bytes.extend([version, 0]);
    bytes.extend(&length.to_le_bytes()[..if version == 1 { 2 } else { 4 }]);
    bytes.append(&mut text);
    bytes.append(&mut data);
    if !is_fixed {
        (0..changes).for_each(|_| mutate(&mut bytes, &WORDS, chance));
    }
    Bytes(bytes)
}

/// The elements in row-major order, by one loop, from the description.
fn gathered(data: &[u8], array: &HostArray) -> Vec<u8> {
    let (dims, width) = (array.shape().dims(), array.shape().dtype().host_byte_width());
    let mut elements = Vec::new();
    for number in 0..array.shape().element_count() {
        let (mut rest, mut offset) = (number, 0_i64);
        for (&dim, &stride) in dims.iter().zip(array.byte_strides()).rev() {
            offset += rest % dim * stride;
            rest /= dim;
        }
        elements.extend(&data[offset as usize..offset as usize + width]);
    }
    elements
}

#[test]
fn no_npy_file_breaks_the_reader() {
    let host = Host::new();
    let look = |bytes: &Bytes, chance: &mut Chance, outcome: &mut Outcome| {
        let bytes = &bytes.0;
        let named = *chance.of(&[None, Some(DType::BF16), Some(DType::S4), Some(DType::F32)]);
        let (array, offset) = match parse(bytes, named) {
            Ok(parsed) => parsed,
            Err(fault) => return outcome.refused(&fault, bytes.len()),
        };
        outcome.accepted += 1;
        let (shape, data) = (array.shape(), &bytes[offset..]);
        assert_eq!(data.len(), shape.host_size_bytes(), "the array ends where the file does");
        let extent = array.extent();
        assert!(extent.start == 0 && extent.end as usize == data.len(), "{array}");
        assert!(parse(&bytes[..chance.below(bytes.len())], named).is_err(), "a part of a file is none");
        // There and back again; narrow elements keep only their low bits.
        let kept = data.to_vec();
        let first = kept.as_ptr();
        // SAFETY: the keeper is the bytes, which nothing writes.
        let made = unsafe { into_buffer(first, &array, &host.space, Label::default(), false, kept) };
        let buffer: Buffer = made.unwrap().0;
        let elements = HostBytes::of(&buffer).unwrap();
        if !shape.dtype().is_sub_byte() {
            assert_eq!(elements.as_slice(), gathered(data, &array));
        }
        let again = [header::written(shape).unwrap().as_slice(), elements.as_slice()].concat();
        let (array, offset) = parse(&again, Some(shape.dtype())).unwrap();
        assert_eq!(array.shape(), shape);
        assert!(array.is_row_major() || shape.dtype().is_sub_byte());
        assert_eq!(&again[offset..], elements.as_slice());
    };
    fuzz("npy", damaged, look);
}

//! For the tests of crates that declare messages: a message and its table agree.

use std::any::type_name;

use prost::Message as Prost;

use crate::wire::{Message, Passed};

/// A field of that number in each wire format, with a value that is not the default.
fn samples(number: u32) -> [Vec<u8>; 5] {
    let with = |wire: u32, value: &[u8]| {
        let mut bytes = Vec::new();
        prost::encoding::encode_varint(u64::from(number << 3 | wire), &mut bytes);
        bytes.extend(value);
        bytes
    };
    // A message of one byte would be a tag without a value; text and packed numbers accept any byte.
    [with(0, &[1]), with(1, &[1; 8]), with(5, &[1; 4]), with(2, &[1, b'A']), with(2, &[0])]
}

/// Whether prost keeps a field of that number.
fn is_read<M: Prost + Default>(number: u32) -> bool {
    samples(number).iter().any(|bytes| match M::decode(bytes.as_slice()) {
        Ok(message) => !message.encode_to_vec().is_empty(),
        // The number is known, with another wire format, so another sample is accepted.
        Err(_) => false,
    })
}

/// Checks that `table` lists exactly the fields of `M` that are read, of numbers up to 100.
///
/// # Panics
/// The two differ: the message says by which field.
pub fn agrees<M: Prost + Default>(table: &'static Message) {
    assert_eq!(table.size_bytes, size_of::<M>(), "{}", table.name);
    let nested = |number| table.nested.iter().any(|(known, _)| *known == number);
    for number in 1..=100 {
        let said = table.scalars.contains(&number) || nested(number);
        assert_eq!(is_read::<M>(number), said, "field {number} of {} and {}", table.name, type_name::<M>());
        if let Passed::These(passed) = table.passed {
            assert!(!said || !passed.contains(&number), "field {number} of {} is read and passed over", table.name);
        }
    }
}

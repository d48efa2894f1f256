//! safetensors: descriptions whose words are exchanged, whose numbers overlap, overflow and lie. What is accepted is
//! accepted by the format's own implementation, which sees the same arrays; what only that accepts is refused for a
//! reason that is known.

use std::collections::{HashMap, HashSet};

use ::safetensors::tensor::{SafeTensors, TensorView};

use super::{Bytes, Chance, Outcome, fuzz, mutate};
use crate::safetensors::tests::parse;

const WORDS: [&str; 26] = [
    "\"a\"",
    "\"b\"",
    "\"__metadata__\"",
    "\"dtype\"",
    "\"shape\"",
    "\"data_offsets\"",
    "\"F32\"",
    "\"U8\"",
    "\"F4\"",
    "\"BF16\"",
    "\"F6_E2M3\"",
    "\"\\u0061\"",
    "[0,4]",
    "[4,8]",
    "[2]",
    "[]",
    "{}",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "null",
    "1.5",
    "  ",
];

/// A sound file, and then up to four changes; half of the time, the header's length is what it was made into.
fn damaged(chance: &mut Chance) -> Bytes {
    use ::safetensors::Dtype;
    let data: Vec<u8> = (0..64).collect();
    let all = [(Dtype::F32, 4), (Dtype::U8, 1), (Dtype::BF16, 2), (Dtype::C64, 8), (Dtype::BOOL, 1), (Dtype::F64, 8)];
    let views: Vec<(&str, TensorView<'_>)> = ["a", "b", "c d", "\u{e9}\""][..chance.below(5)]
        .iter()
        .map(|name| {
            let (dtype, width) = *chance.of(&all);
            let dims = chance.of(&[vec![], vec![2], vec![1, 3], vec![0, 4], vec![2, 2, 2]]).clone();
            let size_bytes = dims.iter().product::<usize>() * width;
            (*name, TensorView::new(dtype, dims, &data[..size_bytes]).unwrap())
        })
        .collect();
    let metadata = chance.one_in(3).then(|| HashMap::from([("format".to_owned(), "pt".to_owned())]));
    let mut bytes = ::safetensors::tensor::serialize(views, metadata).unwrap();
    let changes = chance.below(5);
    if chance.one_in(2) {
        (0..changes).for_each(|_| mutate(&mut bytes, &WORDS, chance));
    } else {
        let length = u64::from_le_bytes(*bytes.first_chunk().unwrap()) as usize;
        let data = bytes.split_off(8 + length);
        let mut text = bytes.split_off(8);
        (0..changes).for_each(|_| mutate(&mut text, &WORDS, chance));
        bytes = (text.len() as u64).to_le_bytes().to_vec();
        bytes.append(&mut text);
        bytes.extend(data);
    }
    Bytes(bytes)
}

/// Why we refuse what the format's own implementation accepts: rules of the format that it does not enforce.
const STRICTER: [&str; 6] = [
    "a second entry",       // Equal names: it takes the last.
    "a second key",         // As above.
    "instead of the brace", // White space before the header.
    "instead of an object", // An array that lists an object's values.
    "expected an object",   // As above, or null, for the metadata.
    "more than any memory", // Dimensions of 2^63 and more, beside one of 0.
];

#[test]
fn no_safetensors_file_breaks_the_reader() {
    let look = |bytes: &Bytes, chance: &mut Chance, outcome: &mut Outcome| {
        let bytes = &bytes.0;
        let judged = SafeTensors::deserialize(bytes);
        let header = match parse(bytes) {
            Ok(header) => header,
            Err(fault) => {
                assert!(
                    judged.is_err() || STRICTER.iter().any(|reason| fault.what.contains(reason)),
                    "the format's own implementation accepts this: {fault:?}"
                );
                return outcome.refused(&fault, bytes.len());
            }
        };
        outcome.accepted += 1;
        let mut end = 8 + u64::from_le_bytes(*bytes.first_chunk().unwrap()) as usize;
        let names: HashSet<&str> = header.tensors.iter().map(|tensor| tensor.name()).collect();
        assert_eq!(names.len(), header.tensors.len(), "no name twice");
        for tensor in &header.tensors {
            assert_eq!(tensor.range().start, end, "no gaps, no overlaps");
            end = tensor.range().end;
            assert_eq!(header.find(tensor.name()), Some(tensor));
        }
        assert_eq!(end, bytes.len(), "the last array ends where the file does");
        assert!(parse(&bytes[..chance.below(bytes.len())]).is_err(), "a part of a file is none");
        // It multiplies dimensions until they overflow, also where one of them is 0.
        let is_plain = |dims: &[i64]| dims.iter().try_fold(1_i64, |product, &dim| product.checked_mul(dim)).is_some();
        if header.tensors.iter().any(|tensor| tensor.dtype().is_none() || !is_plain(tensor.dims())) {
            return;
        }
        let judged = judged.expect("the format's own implementation accepts what we accept");
        assert_eq!(judged.len(), header.tensors.len());
        for tensor in &header.tensors {
            let view = judged.tensor(tensor.name()).unwrap();
            assert_eq!(view.data(), &bytes[tensor.range()]);
            assert_eq!(format!("{:?}", view.dtype()), tensor.dtype_name());
            assert!(view.shape().iter().map(|&dim| dim as i64).eq(tensor.dims().iter().copied()));
        }
    };
    fuzz("safetensors", damaged, look);
}

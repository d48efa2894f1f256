//! Elements narrower than a byte: between one in each byte and as many as a byte holds, the first in the low bits.

use std::mem::MaybeUninit;

use crate::dtype::DType;

/// How the elements of one type are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packing {
    Unsigned2,
    Signed2,
    Unsigned4,
    Signed4,
}

impl Packing {
    /// `None` for types of whole bytes.
    pub(super) fn of(dtype: DType) -> Option<Self> {
        match (dtype.is_sub_byte(), dtype.bits(), dtype.is_signed_integer()) {
            (false, ..) => None,
            (true, 2, false) => Some(Self::Unsigned2),
            (true, 2, true) => Some(Self::Signed2),
            (true, 4, false) => Some(Self::Unsigned4),
            (true, 4, true) => Some(Self::Signed4),
            (true, bits, _) => unreachable!("no element has {bits} bits"),
        }
    }

    pub(super) fn elements_per_byte(self) -> usize {
        match self {
            Self::Unsigned2 | Self::Signed2 => 4,
            Self::Unsigned4 | Self::Signed4 => 2,
        }
    }

    /// Packs the low bits of `elements`. `packed.len() == ceil(elements.len() / elements_per_byte())`; all is written.
    pub(super) fn pack(self, elements: &[u8], packed: &mut [MaybeUninit<u8>]) {
        match self {
            Self::Unsigned2 | Self::Signed2 => pack_by(elements, packed, |group: [u8; 4]| {
                let bits = u32::from_le_bytes(group) & 0x0303_0303;
                (bits | bits >> 6 | bits >> 12 | bits >> 18) as u8
            }),
            Self::Unsigned4 | Self::Signed4 => pack_by(elements, packed, |group: [u8; 2]| {
                let bits = u16::from_le_bytes(group) & 0x0f0f;
                (bits | bits >> 4) as u8
            }),
        }
    }

    /// The reverse, with signed elements sign-extended and zeros above others. The lengths are as in
    /// [`pack`](Self::pack).
    pub(super) fn unpack(self, packed: &[u8], elements: &mut [MaybeUninit<u8>]) {
        match self {
            Self::Unsigned2 => unpack_by(packed, elements, |byte| [byte & 3, byte >> 2 & 3, byte >> 4 & 3, byte >> 6]),
            Self::Signed2 => unpack_by(packed, elements, |byte| {
                [byte << 6, byte << 4, byte << 2, byte].map(|b| arithmetic_shift(b, 6))
            }),
            Self::Unsigned4 => unpack_by(packed, elements, |byte| [byte & 15, byte >> 4]),
            Self::Signed4 => unpack_by(packed, elements, |byte| [byte << 4, byte].map(|b| arithmetic_shift(b, 4))),
        }
    }
}

fn arithmetic_shift(byte: u8, bits: u32) -> u8 {
    (byte.cast_signed() >> bits).cast_unsigned()
}

fn pack_by<const N: usize>(elements: &[u8], packed: &mut [MaybeUninit<u8>], byte_of: impl Fn([u8; N]) -> u8) {
    debug_assert_eq!(packed.len(), elements.len().div_ceil(N));
    let (groups, rest) = elements.as_chunks::<N>();
    for (byte, group) in packed.iter_mut().zip(groups) {
        byte.write(byte_of(*group));
    }
    if !rest.is_empty() {
        let mut group = [0; N];
        group[..rest.len()].copy_from_slice(rest);
        packed[groups.len()].write(byte_of(group));
    }
}

fn unpack_by<const N: usize>(packed: &[u8], elements: &mut [MaybeUninit<u8>], group_of: impl Fn(u8) -> [u8; N]) {
    debug_assert_eq!(packed.len(), elements.len().div_ceil(N));
    let (groups, rest) = elements.as_chunks_mut::<N>();
    for (group, &byte) in groups.iter_mut().zip(packed) {
        *group = group_of(byte).map(MaybeUninit::new);
    }
    let whole = groups.len();
    if !rest.is_empty() {
        for (element, value) in rest.iter_mut().zip(group_of(packed[whole])) {
            element.write(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(dtype: DType, elements: &[u8]) -> Vec<u8> {
        let packing = Packing::of(dtype).unwrap();
        let mut bytes = vec![MaybeUninit::new(0xaa); elements.len().div_ceil(packing.elements_per_byte())];
        packing.pack(elements, &mut bytes);
        bytes.iter().map(|byte| written(*byte)).collect()
    }

    fn unpacked(dtype: DType, packed: &[u8], count: usize) -> Vec<u8> {
        let mut elements = vec![MaybeUninit::new(0xaa); count];
        Packing::of(dtype).unwrap().unpack(packed, &mut elements);
        elements.iter().map(|element| written(*element)).collect()
    }

    #[allow(unsafe_code, reason = "the bytes were initialised before they were given away")]
    fn written(byte: MaybeUninit<u8>) -> u8 {
        // SAFETY: made by `MaybeUninit::new`.
        unsafe { byte.assume_init() }
    }

    #[test]
    fn the_first_element_is_in_the_low_bits() {
        assert_eq!(packed(DType::U4, &[0x1, 0x2, 0x3]), [0x21, 0x03]);
        assert_eq!(packed(DType::F4E2M1FN, &[0x7, 0xf]), [0xf7]);
        assert_eq!(packed(DType::U2, &[1, 2, 3, 0, 2]), [0b00_11_10_01, 0b10]);
        assert!(packed(DType::U4, &[]).is_empty());
    }

    #[test]
    fn only_the_low_bits_are_packed() {
        assert_eq!(packed(DType::S4, &[0xff, 0xf8, 0x77]), [0x8f, 0x07]);
        assert_eq!(packed(DType::S2, &[0xfe, 0xfd, 0x43, 0x80, 0xff]), [0b00_11_01_10, 0b11]);
    }

    #[test]
    fn signed_elements_come_back_sign_extended_and_others_with_zeros() {
        assert_eq!(unpacked(DType::S4, &[0x8f, 0x07], 3), [0xff, 0xf8, 0x07]);
        assert_eq!(unpacked(DType::U4, &[0x8f, 0x07], 3), [0x0f, 0x08, 0x07]);
        assert_eq!(unpacked(DType::F4E2M1FN, &[0x8f], 2), [0x0f, 0x08]);
        assert_eq!(unpacked(DType::S2, &[0b00_11_01_10, 0b11], 5), [0xfe, 0x01, 0xff, 0x00, 0xff]);
        assert_eq!(unpacked(DType::U2, &[0b00_11_01_10, 0b11], 5), [2, 1, 3, 0, 3]);
    }

    #[test]
    fn types_of_whole_bytes_are_not_packed() {
        for dtype in DType::all() {
            let per_byte = Packing::of(dtype).map(Packing::elements_per_byte);
            assert_eq!(per_byte, dtype.is_sub_byte().then(|| 8 / dtype.bits()), "{dtype}");
        }
    }
}

//! Whole numbers of 16, 32 and 64 bits, as bits whose unused ones are zero.

use crate::types::{Type, mask, signed};

/// The quotient and the remainder. By zero: all ones, and the dividend, as GPUs have it; PTX promises nothing.
pub(crate) fn divide(a: u64, b: u64, ty: Type) -> (u64, u64) {
    let all = mask(ty.bits);
    if b == 0 {
        return (all, a);
    }
    if !ty.is_signed() {
        return (a / b, a % b);
    }
    let (a, b) = (signed(a, ty.bits), signed(b, ty.bits));
    (a.wrapping_div(b) as u64 & all, a.wrapping_rem(b) as u64 & all)
}

/// The upper half of a product.
pub(crate) fn product_high(a: u64, b: u64, ty: Type) -> u64 {
    let product = if ty.is_signed() {
        ((i128::from(signed(a, ty.bits)) * i128::from(signed(b, ty.bits))) >> ty.bits) as u64
    } else {
        ((u128::from(a) * u128::from(b)) >> ty.bits) as u64
    };
    product & mask(ty.bits)
}

/// The whole product of numbers of at most 32 bits, in twice as many.
pub(crate) fn product_wide(a: u64, b: u64, ty: Type) -> u64 {
    let product =
        if ty.is_signed() { signed(a, ty.bits).wrapping_mul(signed(b, ty.bits)) as u64 } else { a.wrapping_mul(b) };
    product & mask(2 * ty.bits)
}

/// `bfind`: the place of the highest bit that is not the sign, or how far to shift it to the top; all ones if none.
pub(crate) fn highest_bit(a: u64, ty: Type, shifts: bool) -> u64 {
    let a = if ty.is_signed() && signed(a, ty.bits) < 0 { !a & mask(ty.bits) } else { a };
    match a.checked_ilog2() {
        None => mask(32),
        Some(place) => u64::from(if shifts { ty.bits - 1 - place } else { place }),
    }
}

/// `bfe`: `count` bits from `at` on, extended with their sign, which is that of the whole number where they reach
/// beyond its end.
pub(crate) fn extract(a: u64, at: u64, count: u64, ty: Type) -> u64 {
    let (at, count) = ((at & 0xff) as u32, (count & 0xff) as u32);
    if count == 0 {
        return 0;
    }
    let sign_at = (at + count - 1).min(ty.bits - 1);
    let is_negative = ty.is_signed() && a >> sign_at & 1 == 1;
    let found = if at >= ty.bits { 0 } else { a >> at & mask(count) };
    let known = if at >= ty.bits { 0 } else { count.min(ty.bits - at) };
    if is_negative { (found | !mask(known)) & mask(ty.bits) } else { found }
}

/// `bfi`: `b`, with the lowest `count` bits of `a` from `at` on.
pub(crate) fn insert(a: u64, b: u64, at: u64, count: u64, bits: u32) -> u64 {
    let (at, count) = ((at & 0xff) as u32, (count & 0xff) as u32);
    if at >= bits {
        return b;
    }
    let field = mask(count) << at & mask(bits);
    b & !field | a << at & field
}

/// `lop3`: bit by bit, what the table says for the bits of a, b and c.
pub(crate) fn look_up(a: u64, b: u64, c: u64, table: u8) -> u64 {
    let term = |index: u8| {
        let of = |value: u64, bit: u8| if index >> bit & 1 == 1 { value } else { !value };
        if table >> index & 1 == 1 { of(a, 2) & of(b, 1) & of(c, 0) } else { 0 }
    };
    (0..8).fold(0, |all, index| all | term(index)) & mask(32)
}

/// How `prmt` chooses bytes.
#[derive(Clone, Copy)]
pub(crate) enum Permute {
    Any,
    Forward,
    Backward,
    ReplicateByte,
    ClampLeft,
    ClampRight,
    ReplicateHalf,
}

/// `prmt`: four of the eight bytes of `b` and `a`.
pub(crate) fn permute(a: u64, b: u64, selector: u64, mode: Permute) -> u64 {
    let bytes = b << 32 | a & mask(32);
    let s = selector & 3;
    let chosen = |place: u64| match mode {
        Permute::Any => selector >> (4 * place) & 15,
        Permute::Forward => s + place,
        Permute::Backward => (s + 8 - place) & 7,
        Permute::ReplicateByte => s,
        Permute::ClampLeft => s.max(place),
        Permute::ClampRight => s.min(place),
        Permute::ReplicateHalf => place & 1 | (s & 1) << 1,
    };
    (0..4).fold(0, |all, place| {
        let chosen = chosen(place);
        let byte = bytes >> (8 * (chosen & 7)) & 0xff;
        // Only `Any` can ask for a sign.
        let byte = if chosen & 8 == 0 { byte } else { (byte >> 7) * 0xff };
        all | byte << (8 * place)
    })
}

/// `shf`: 64 bits, `b` above `a`, shifted; the upper or the lower half.
pub(crate) fn funnel(a: u64, b: u64, by: u64, left: bool, clamps: bool) -> u64 {
    let by = if clamps { by.min(32) } else { by & 31 };
    let both = b << 32 | a;
    (if left { both << by >> 32 } else { both >> by }) & mask(32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{Class, U32};

    const S32: Type = Type { class: Class::Signed, bits: 32 };

    #[test]
    fn fields_are_cut_out_and_put_in() {
        assert_eq!(extract(0xabcd_1234, 8, 8, U32), 0x12);
        assert_eq!(extract(0x0000_8000, 12, 4, S32), 0xffff_fff8);
        assert_eq!(extract(0x8000_0000, 28, 16, S32), 0xffff_fff8, "beyond the end");
        assert_eq!(extract(0x8000_0000, 200, 5, S32), 0xffff_ffff);
        assert_eq!(extract(0x8000_0000, 200, 5, U32), 0);
        assert_eq!(extract(0xffff_ffff, 0, 0, S32), 0);
        assert_eq!(insert(0xabc, 0x1111_1111, 4, 8, 32), 0x1111_1bc1);
        assert_eq!(insert(0xabc, 0x1111_1111, 28, 255, 32), 0xc111_1111);
        assert_eq!(insert(0xabc, 0x1111_1111, 32, 8, 32), 0x1111_1111);
    }

    #[test]
    fn bytes_are_permuted() {
        let (a, b) = (0x3322_1180, 0x7766_5544);
        assert_eq!(permute(a, b, 0x7531, Permute::Any), 0x7755_3311);
        assert_eq!(permute(a, b, 0x8888, Permute::Any), 0xffff_ffff);
        assert_eq!(permute(a, b, 1, Permute::Forward), 0x4433_2211);
        assert_eq!(permute(a, b, 1, Permute::Backward), 0x6677_8011);
        assert_eq!(permute(a, b, 2, Permute::ReplicateByte), 0x2222_2222);
        assert_eq!(permute(a, b, 2, Permute::ClampLeft), 0x3322_2222);
        assert_eq!(permute(a, b, 2, Permute::ClampRight), 0x2222_1180);
        assert_eq!(permute(a, b, 1, Permute::ReplicateHalf), 0x3322_3322);
    }

    #[test]
    fn tables_of_three_bits_are_looked_up() {
        let (a, b, c) = (0xf0f0_1234, 0xcccc_5678, 0xaaaa_9abc);
        assert_eq!(look_up(a, b, c, 0x80), a & b & c);
        assert_eq!(look_up(a, b, c, 0xfe), a | b | c);
        assert_eq!(look_up(a, b, c, 0x96), a ^ b ^ c);
        assert_eq!(look_up(a, b, c, 0xca), a & b | !a & c & mask(32));
    }

    #[test]
    fn what_a_division_cannot_do_is_as_on_gpus() {
        assert_eq!(divide(7, 0, U32), (0xffff_ffff, 7));
        assert_eq!(divide(0x8000_0000, 0xffff_ffff, S32), (0x8000_0000, 0));
        let s64 = S32.widened(64);
        assert_eq!(divide(1 << 63, u64::MAX, s64), (1 << 63, 0));
    }

    #[test]
    fn the_highest_bit_is_found() {
        assert_eq!(highest_bit(0x0010_0000, U32, false), 20);
        assert_eq!(highest_bit(0x0010_0000, U32, true), 11);
        assert_eq!(highest_bit(0xffff_fffe, S32, false), 0);
        assert_eq!(highest_bit(0xffff_ffff, S32, false), 0xffff_ffff);
    }
}

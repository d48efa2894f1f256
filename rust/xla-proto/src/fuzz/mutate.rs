//! Messages with a change somewhere in them, at random from a seed.

/// A random generator: SplitMix64. Every seed gives another sequence.
#[derive(Debug)]
pub struct Chance(pub u64);

impl Chance {
    /// Any number.
    #[allow(clippy::should_implement_trait, reason = "no iterator: it never ends")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number of `0..count`.
    pub fn below(&mut self, count: usize) -> usize {
        (self.next() % count.max(1) as u64) as usize
    }

    /// Whether a die of `count` sides shows its first.
    pub fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }
}

/// Boundary values for arithmetic.
const NUMBERS: [u64; 14] =
    [0, 1, 2, 7, 63, 64, 255, 4095, 1 << 20, u32::MAX as u64, i64::MAX as u64, i64::MIN as u64, u64::MAX - 7, u64::MAX];

/// A field of a message: its tag, and the range of its value.
struct Field {
    tag: u64,
    begin: usize,
    end: usize,
}

fn varint(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let (mut value, mut shift) = (0_u64, 0);
    loop {
        let byte = *bytes.get(*at)?;
        *at += 1;
        value |= u64::from(byte & 0x7f).checked_shl(shift)?;
        shift += 7;
        if byte < 0x80 {
            return Some(value);
        }
    }
}

fn put_varint(mut value: u64, bytes: &mut Vec<u8>) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// The fields of `bytes`; `None` if they are no message.
fn fields(bytes: &[u8]) -> Option<Vec<Field>> {
    let (mut at, mut fields) = (0, Vec::new());
    while at < bytes.len() {
        let tag = varint(bytes, &mut at)?;
        let mut begin = at;
        match tag & 7 {
            0 => drop(varint(bytes, &mut at)?),
            1 => at += 8,
            5 => at += 4,
            2 => {
                let size = usize::try_from(varint(bytes, &mut at)?).ok()?;
                begin = at;
                at = at.checked_add(size)?;
            }
            _ => return None,
        }
        if at > bytes.len() || tag >> 3 == 0 {
            return None;
        }
        fields.push(Field { tag, begin, end: at });
    }
    Some(fields)
}

fn put_field(tag: u64, value: &[u8], bytes: &mut Vec<u8>) {
    put_varint(tag, bytes);
    if tag & 7 == 2 {
        put_varint(value.len() as u64, bytes);
    }
    bytes.extend(value);
}

/// A message with one change somewhere in it. The change is mostly in a nested message, whose enclosing lengths are
/// kept consistent.
pub(super) fn mutated(bytes: &[u8], chance: &mut Chance) -> Vec<u8> {
    let Some(fields) = fields(bytes).filter(|fields| !fields.is_empty()) else {
        return mutated_bytes(bytes, chance);
    };
    let chosen = chance.below(fields.len());
    let mut out = Vec::with_capacity(bytes.len() + 16);
    for (number, field) in fields.iter().enumerate() {
        let value = &bytes[field.begin..field.end];
        if number != chosen {
            put_field(field.tag, value, &mut out);
            continue;
        }
        match chance.below(12) {
            0 => {}
            1 => (0..2).for_each(|_| put_field(field.tag, value, &mut out)),
            2 => put_field(field.tag ^ (8 << chance.below(6)), value, &mut out),
            3 => {
                let other = &fields[chance.below(fields.len())];
                put_field(field.tag, &bytes[other.begin..other.end], &mut out);
            }
            _ if field.tag & 7 == 2 => put_field(field.tag, &mutated(value, chance), &mut out),
            _ => {
                put_varint(field.tag, &mut out);
                match field.tag & 7 {
                    0 if chance.one_in(2) => put_varint(NUMBERS[chance.below(NUMBERS.len())], &mut out),
                    0 => put_varint(chance.below(20) as u64, &mut out),
                    _ => out.extend(mutated_bytes(value, chance)),
                }
            }
        }
    }
    out
}

pub(super) fn mutated_bytes(bytes: &[u8], chance: &mut Chance) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let at = chance.below(bytes.len() + 1);
    match chance.below(6) {
        0 if at < bytes.len() => bytes[at] ^= 1 << chance.below(8),
        1 if at < bytes.len() => bytes[at] = chance.next() as u8,
        2 => bytes.insert(at, chance.next() as u8),
        3 => bytes.truncate(at),
        4 if at + 8 <= bytes.len() => {
            bytes[at..at + 8].copy_from_slice(&NUMBERS[chance.below(NUMBERS.len())].to_le_bytes());
        }
        _ if at + 4 <= bytes.len() => {
            bytes[at..at + 4].copy_from_slice(&(NUMBERS[chance.below(NUMBERS.len())] as u32).to_le_bytes());
        }
        _ => {}
    }
    bytes
}

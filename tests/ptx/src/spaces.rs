//! Where the memories are that generic addresses reach: windows far above all that a driver hands out.

use crate::instruction::Space;

/// Bytes of a window.
const WINDOW_BYTES: u64 = 1 << 32;
/// The lowest address that is in no window.
const WINDOWS: u64 = 0xf000_0000_0000_0000;

/// The byte with which memory begins that no one has written yet.
pub(crate) const UNWRITTEN: u8 = 0xcb;
/// Eight of them.
pub(crate) const UNWRITTEN_WORD: u64 = 0x0101_0101_0101_0101 * UNWRITTEN as u64;

/// The first generic address of a space; 0 for those whose addresses are generic ones.
fn window(space: Space) -> u64 {
    match space {
        Space::Generic | Space::Global | Space::Constant => 0,
        Space::Shared => WINDOWS + WINDOW_BYTES,
        Space::Local => WINDOWS + 2 * WINDOW_BYTES,
        Space::Parameter => WINDOWS + 3 * WINDOW_BYTES,
    }
}

/// An address of a space as a generic one.
pub(crate) fn to_generic(space: Space, address: u64) -> u64 {
    address.wrapping_add(window(space))
}

/// A generic address as one of a space. One that is not in its window becomes one that no space has.
pub(crate) fn from_generic(space: Space, address: u64) -> u64 {
    address.wrapping_sub(window(space))
}

/// To which space a generic address belongs, and which address it is there.
pub(crate) fn resolve(address: u64) -> (Space, u64) {
    let within = |space| {
        let offset = address.wrapping_sub(window(space));
        (offset < WINDOW_BYTES).then_some((space, offset))
    };
    if address < WINDOWS {
        return (Space::Global, address);
    }
    [Space::Shared, Space::Local, Space::Parameter].into_iter().find_map(within).unwrap_or((Space::Global, address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generic_addresses_are_told_apart() {
        for space in [Space::Shared, Space::Local, Space::Parameter] {
            for address in [0, 8, WINDOW_BYTES - 1] {
                let generic = to_generic(space, address);
                assert_eq!(resolve(generic), (space, address));
                assert_eq!(from_generic(space, generic), address);
            }
        }
        assert_eq!(resolve(0x7fff_0000_1234), (Space::Global, 0x7fff_0000_1234));
        assert_eq!(resolve(u64::MAX), (Space::Global, u64::MAX));
    }
}

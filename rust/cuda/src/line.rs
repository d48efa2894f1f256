//! The orders of a GPU's work: its streams, by what they are for.

use std::fmt;

/// What a stream of a GPU is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Role {
    ToDevice,
    ToHost,
    /// Copies to the host through chunks, which may be long: small ones to pinned memory go on beside them.
    ToHostToo,
    Within,
    WithinToo,
    /// Launches.
    Compute,
    /// Launches that may go on beside those.
    Compute1,
    Compute2,
    Compute3,
    /// Allocations, each of which is waited for.
    Memory,
    /// What frees memory behind the work that used it.
    Free,
}

impl Role {
    pub(crate) const ALL: [Self; 11] = [
        Self::ToDevice,
        Self::ToHost,
        Self::ToHostToo,
        Self::Within,
        Self::WithinToo,
        Self::Compute,
        Self::Compute1,
        Self::Compute2,
        Self::Compute3,
        Self::Memory,
        Self::Free,
    ];

    /// As traces and stall reports name it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ToDevice => "host to device",
            Self::ToHost => "device to host",
            Self::ToHostToo => "device to host, by chunks",
            Self::Within => "within the device",
            Self::WithinToo => "to other devices",
            Self::Compute => "launches",
            Self::Compute1 => "launches, stream 1",
            Self::Compute2 => "launches, stream 2",
            Self::Compute3 => "launches, stream 3",
            Self::Memory => "allocations",
            Self::Free => "frees",
        }
    }

    /// The stream for launches of that number; the first, if there is none.
    pub(crate) fn of_launches(number: u8) -> Self {
        match number {
            1 => Self::Compute1,
            2 => Self::Compute2,
            3 => Self::Compute3,
            _ => Self::Compute,
        }
    }
}

/// A stream of a GPU, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Line {
    Own(Role),
    /// The [side stream](crate::side_streams) of that number, which waits for work of others.
    Import(u32),
}

/// As stall reports name it.
impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own(role) => f.write_str(role.name()),
            Self::Import(number) => write!(f, "work of others {number}"),
        }
    }
}

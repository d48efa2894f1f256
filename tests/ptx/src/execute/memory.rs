//! Loads, stores and atomic operations, in all memories. Alignment and ends are checked here; global addresses are the
//! caller's to judge.

use crate::Fault;
use crate::block::Shared;
use crate::instruction::{Access, Address, Base, Operand, Register, Space};
use crate::race::Kind;
use crate::spaces;
use crate::thread::Thread;
use crate::types::{mask, signed};

use super::Problem;

/// The most that one access moves.
const MOST_BYTES: usize = 32;

/// The address, within its space.
pub(super) fn address(thread: &Thread, address: Address, shared: &Shared<'_>) -> u64 {
    let base = match address.base {
        Base::Nothing => 0,
        Base::Register(register) => thread.registers[thread.frame.registers + register as usize],
        Base::Shared(variable) => shared.run.kernel.linked.shared[variable as usize],
        Base::Global(variable) => shared.run.globals[variable as usize],
        Base::Local => thread.frame.local as u64,
        Base::Parameter => thread.frame.parameters as u64,
    };
    base.wrapping_add_signed(address.offset)
}

/// The space, which is not generic any more, and the address there, which is aligned.
fn locate(thread: &Thread, access: &Access, shared: &Shared<'_>) -> Result<(Space, u64, usize), Problem> {
    let address = address(thread, access.address, shared);
    let size_bytes = usize::from(access.size_bytes) * usize::from(access.count);
    let (space, address) =
        if access.space == Space::Generic { spaces::resolve(address) } else { (access.space, address) };
    if address % size_bytes as u64 != 0 {
        return Err(Problem::Misaligned { address, alignment: size_bytes });
    }
    Ok((space, address, size_bytes))
}

/// The bytes of a memory of the interpreter's own; `None`: it is the caller's.
fn own<'b>(space: Space, thread: &'b mut Thread, shared: &'b mut Shared<'_>) -> Option<&'b mut Vec<u8>> {
    match space {
        Space::Generic | Space::Global | Space::Constant => None,
        Space::Shared => Some(&mut shared.bytes),
        Space::Local => Some(&mut thread.local),
        Space::Parameter => Some(&mut thread.parameters),
    }
}

/// Notes an access of shared memory that has been found right. `changes`: see [`Watch::access`].
///
/// [`Watch::access`]: crate::race::Watch::access
fn watch(
    thread: &Thread,
    access: &Access,
    kind: Kind,
    address: u64,
    changes: bool,
    shared: &mut Shared<'_>,
) -> Result<(), Problem> {
    if access.is_strong {
        return Ok(());
    }
    let size_bytes = usize::from(access.size_bytes) * usize::from(access.count);
    let function = &shared.run.kernel.program.functions[thread.frame.function as usize];
    let line = function.origins[thread.frame.at as usize].line;
    let seen = shared.watch.access(kind, thread.number, line, address, size_bytes, changes);
    seen.map_err(|other| Problem::Race { address, size_bytes, writes: kind != Kind::Read, other })
}

fn part(bytes: &mut [u8], space: Space, address: u64, size_bytes: usize) -> Result<&mut [u8], Fault> {
    let length = bytes.len();
    let begin = usize::try_from(address).ok();
    let found = begin.and_then(|begin| bytes.get_mut(begin..begin.checked_add(size_bytes)?));
    found.ok_or_else(|| {
        let name = match space {
            Space::Shared => "shared",
            Space::Local => "local",
            _ => "parameter",
        };
        Fault(format!("there are {length} bytes of {name} memory"))
    })
}

/// Reads into registers.
pub(super) fn load(
    thread: &mut Thread,
    access: &Access,
    into: &[Register],
    sign_bits: u8,
    shared: &mut Shared<'_>,
) -> Result<(), Problem> {
    let (space, address, size_bytes) = locate(thread, access, shared)?;
    let mut bytes = [0; MOST_BYTES];
    let bytes = &mut bytes[..size_bytes];
    let memory = shared.run.memory;
    let read = match own(space, thread, shared) {
        None => memory.read(address, bytes),
        Some(own) => part(own, space, address, size_bytes).map(|part| bytes.copy_from_slice(part)),
    };
    read.map_err(|fault| Problem::Memory { address, size_bytes, writes: false, fault })?;
    if space == Space::Shared {
        watch(thread, access, Kind::Read, address, false, shared)?;
    }
    for (&register, element) in into.iter().zip(bytes.chunks_exact(usize::from(access.size_bytes))) {
        let mut value = word(element);
        if sign_bits != 0 {
            value = signed(value, u32::from(access.size_bytes) * 8) as u64 & mask(u32::from(sign_bits));
        }
        thread.set(register, value);
    }
    Ok(())
}

/// Writes from registers.
pub(super) fn store(
    thread: &mut Thread,
    access: &Access,
    from: &[Operand],
    shared: &mut Shared<'_>,
) -> Result<(), Problem> {
    let (space, address, size_bytes) = locate(thread, access, shared)?;
    let mut bytes = [0; MOST_BYTES];
    let bytes = &mut bytes[..size_bytes];
    let size = usize::from(access.size_bytes);
    for (&operand, element) in from.iter().zip(bytes.chunks_exact_mut(size)) {
        element.copy_from_slice(&thread.value(operand).to_le_bytes()[..size]);
    }
    let memory = shared.run.memory;
    let mut changes = false;
    let written = match own(space, thread, shared) {
        None => memory.write(address, bytes),
        Some(own) => part(own, space, address, size_bytes).map(|part| {
            changes = part != bytes;
            part.copy_from_slice(bytes);
        }),
    };
    written.map_err(|fault| Problem::Memory { address, size_bytes, writes: true, fault })?;
    if space == Space::Shared {
        watch(thread, access, Kind::Write, address, changes, shared)?;
    }
    Ok(())
}

/// Replaces what is there; what was there.
pub(super) fn atomic(
    thread: &mut Thread,
    access: &Access,
    f: &dyn Fn(u64) -> u64,
    shared: &mut Shared<'_>,
) -> Result<u64, Problem> {
    let (space, address, size_bytes) = locate(thread, access, shared)?;
    let mut before = 0;
    let mut change = |bytes: &mut [u8]| {
        // A caller's memory might give fewer: then nothing is changed.
        if bytes.len() == size_bytes {
            before = word(bytes);
            bytes.copy_from_slice(&f(before).to_le_bytes()[..size_bytes]);
        }
    };
    let memory = shared.run.memory;
    let changed = match own(space, thread, shared) {
        None => memory.update(address, size_bytes, &mut change),
        Some(own) => part(own, space, address, size_bytes).map(change),
    };
    changed.map_err(|fault| Problem::Memory { address, size_bytes, writes: true, fault })?;
    if space == Space::Shared {
        watch(thread, access, Kind::Atomic, address, true, shared)?;
    }
    Ok(before)
}

/// Up to eight bytes as a number.
fn word(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
}

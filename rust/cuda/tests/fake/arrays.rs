//! The part of the scenario under faults that is about arrays: from the host, in its order and in others, between
//! devices, donated, made again of what was donated, run through a program, written by a kernel, and left in flight
//! when the client ends.

#![allow(unsafe_code, reason = "memory is written by address")]

use std::sync::Arc;

use purlin::backend::{Access, Command as DeviceCommand, CommandList, FillPattern, Launch, Place};
use purlin::program::{
    ArraySpec, Command, Executable, ExecuteOptions, Kernel, LoadedExecutable, Operand, ProgramBuilder,
};
use purlin::{
    Buffer, Client, DType, Error, Event, FromHostOptions, HostArray, HostBufferSemantics, LaunchOptions, RawBuffer,
    Shape,
};

use crate::launches::{Recorded, fill, start};
use crate::support::*;

/// Of that many bytes, in memory of that kind on the first device.
fn array(client: &Client, kind: &str, bytes: &[u8]) -> Result<Buffer, Error> {
    Buffer::from_slice(bytes, &[bytes.len() as i64], &client.devices()[0].memory_space(kind)?)
}

/// `x += 1` by the host, in donated pinned memory.
fn increment(client: &Client, bytes: usize) -> Result<LoadedExecutable, Error> {
    let add_one = Kernel::from_fn("add_one", |call| {
        call.writes[0].iter_mut().for_each(|byte| *byte = byte.wrapping_add(1));
        Ok(())
    });
    let mut builder = ProgramBuilder::new("increment");
    let spec = ArraySpec::new(Shape::new(DType::U8, &[bytes as i64])?).in_memory("pinned_host");
    let x = builder.donated_parameter(spec);
    builder.push(Command::Kernel { kernel: add_one, workgroups: [1, 1, 1], operands: vec![Operand::read_write(x)] });
    LoadedExecutable::new(&Executable::new(builder.build()?), &client.devices()[..1], 1)
}

/// A way through arrays. What was wrong with their bytes.
pub(crate) fn work(client: &Client, bytes: usize) -> Result<Option<String>, Error> {
    let data = pattern(bytes, 7);
    let (first, pinned) = (array(client, "device", &data)?, array(client, "pinned_host", &data)?);
    let there = first.copy_to_device(&client.devices()[1])?;
    if there.to_vec::<u8>()? != data {
        return Ok(Some("no error, and wrong bytes, of an array that went to another device".to_owned()));
    }
    // The memory of the first is written again behind its uses.
    let donation = first.donate(c"scenario")?;
    let free = donation.free_event();
    let (memory, more) = (donation.confirm(), pattern(bytes, 8));
    // SAFETY: the bytes stay until the event, which is waited for.
    let written = unsafe { memory.copy_from_host(more.as_ptr(), 0, bytes, std::slice::from_ref(&free)) };
    let second = Buffer::from_raw(memory, first.shape(), None, &written);
    outcome(&written)?;
    if second?.to_vec::<u8>()? != more {
        return Ok(Some("no error, and wrong bytes, of an array in donated memory".to_owned()));
    }
    let execution = increment(client, bytes)?.execute(&[&pinned], &ExecuteOptions::default())?;
    outcome(&execution.done)?;
    let moved = execution.outputs[0].copy_to_memory_space(&client.devices()[0].default_memory_space())?;
    if moved.to_vec::<u8>()? != data.iter().map(|byte| byte.wrapping_add(1)).collect::<Vec<_>>() {
        return Ok(Some("no error, and wrong bytes, of what a program returned".to_owned()));
    }
    launched(client, bytes)
}

/// A kernel and other commands on the first device. What was wrong with the bytes.
fn launched(client: &Client, bytes: usize) -> Result<Option<String>, Error> {
    let device = &client.devices()[0];
    let (words, block) = (bytes / 4 * 4, block(client, 0, "device", bytes)?);
    let filled = start(&fill(device, 0x0403_0201, words)?, &[&block], &LaunchOptions::default())?;
    let to = |offset_bytes| Place { range: 0, offset_bytes };
    let commands = CommandList::new(vec![
        DeviceCommand::Fill { to: to(0), size_bytes: 4, pattern: FillPattern::Byte(9) },
        DeviceCommand::Fill { to: to(4), size_bytes: 4, pattern: FillPattern::Pair(0x0807) },
        DeviceCommand::Fill { to: to(8), size_bytes: 4, pattern: FillPattern::Word(0x0d0c_0b0a) },
        DeviceCommand::Copy { from: to(0), to: to(12), size_bytes: 6 },
        DeviceCommand::Copy { from: to(6), to: to(18), size_bytes: 6 },
    ]);
    let recorded: Arc<dyn Launch> = Arc::new(Recorded(commands?));
    // As calls, as a graph, and as a graph with other addresses.
    let (mut done, behind) = (filled.clone(), block.slice(words / 8 * 4, 64)?);
    for part in [&block, &block, &behind] {
        let options = LaunchOptions { dependencies: std::slice::from_ref(&done), ..LaunchOptions::default() };
        // SAFETY: nothing else uses the block.
        done = unsafe { device.launch(Arc::clone(&recorded), &[(Access::Write, part)], &options) }?;
    }
    outcome(&filled).and(outcome(&done))?;
    let mut expected = [1, 2, 3, 4].repeat(words / 4);
    for begin in [0, words / 8 * 4] {
        expected[begin..begin + 12].copy_from_slice(&[9, 9, 9, 9, 7, 8, 7, 8, 10, 11, 12, 13]);
        expected.copy_within(begin..begin + 12, begin + 12);
    }
    let is_right = read(&block.slice(0, words)?)? == expected;
    Ok((!is_right).then(|| "no error, and wrong bytes, of a launch".to_owned()))
}

/// Transposed on the host, through chunks: by a caller that waits, and by tasks. What was wrong with the bytes.
pub(crate) fn strided(client: &Client, dims: [i64; 2]) -> Result<Option<String>, Error> {
    // Elements that repeat after a prime number of them.
    let data = pattern(16 * 3967, 9).repeat((dims[0] * dims[1]) as usize / 3967 + 1);
    let data = &data[..(dims[0] * dims[1] * 16) as usize];
    let shape = Shape::new(DType::C128, &dims)?;
    let array = HostArray::new(&shape, Some(&[16, 16 * dims[0]]))?;
    let space = client.devices()[0].default_memory_space();
    for semantics in
        [HostBufferSemantics::ImmutableOnlyDuringCall, HostBufferSemantics::ImmutableUntilTransferCompletes]
    {
        let options = FromHostOptions { semantics, ..FromHostOptions::default() };
        // SAFETY: the bytes are the array's, and stay until the event, which is waited for below.
        let (there, _) = unsafe { Buffer::from_host_array(data.as_ptr(), &array, &space, options) }?;
        outcome(&there.ready_event())?;
        let mut back = vec![0; data.len()];
        // SAFETY: as above.
        outcome(&unsafe { there.copy_to_host_array(back.as_mut_ptr(), &array) })?;
        if back != data {
            return Ok(Some("no error, and wrong bytes, of an array that is transposed on the host".to_owned()));
        }
        let bytes = Shape::new(DType::U8, &[data.len() as i64])?;
        let alias = Buffer::from_raw(there.raw_alias()?, &bytes, None, &there.ready_event())?;
        let (read, row) = (alias.to_vec::<u8>()?, 16 * dims[1] as usize);
        // The second row begins with the second element of the host.
        if read[..16] != data[..16] || read[row..row + 16] != data[16..32] {
            return Ok(Some("no error, and wrong bytes, of a transposed array that is read as it stands".to_owned()));
        }
    }
    Ok(None)
}

/// Copies that nobody waits for: they must have happened once the client has ended.
pub(crate) fn left_in_flight(client: &Client, bytes: usize) -> Result<Vec<Event>, Error> {
    let kinds = ["pinned_host", "device", "unpinned_host", "device"];
    let blocks = kinds.map(|kind| block(client, 0, kind, bytes)).into_iter().collect::<Result<Vec<RawBuffer>, _>>()?;
    let mut events = vec![Event::ready()];
    for pair in blocks.windows(2) {
        events.push(copy(&pair[0], &pair[1], &events[events.len() - 1..]));
    }
    Ok(events)
}

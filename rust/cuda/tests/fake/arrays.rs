//! The part of the scenario under faults that is about arrays: from the host, between devices, donated, made again of
//! what was donated, run through a program, and left in flight when the client ends.

#![allow(unsafe_code, reason = "memory is written by address")]

use purlin::program::{
    ArraySpec, Command, Executable, ExecuteOptions, Kernel, LoadedExecutable, Operand, ProgramBuilder,
};
use purlin::{Buffer, Client, DType, Error, Event, RawBuffer, Shape};

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

//! A client and all that it does, under faults.

#![allow(unsafe_code, reason = "copies are made by address")]

use purlin::{Client, Error, Event, Mutability, RawBuffer};
use purlin_fakecuda::Driver;

use crate::arrays;
use crate::entries::is_of_traces;
use crate::flows;
use crate::foreign;
use crate::pieces;
use crate::stranger::Told;
use crate::support::*;
use crate::traces::recorded;

/// Larger than a slab, and than a chunk with its successor.
const SIZES: [usize; 2] = [SMALL, (4 << 20) + (64 << 10)];
/// What stays smaller than a slab goes through one.
const SMALL: usize = 3000;

/// What each entry point makes, or takes back, that the books have: where it fails, that may be left.
fn may_be_left(entry: &str) -> &'static [&'static str] {
    match entry {
        "cuStreamDestroy_v2" => &["streams"],
        "cuEventDestroy_v2" => &["events"],
        "cuMemFreeAsync" | "cuMemFree_v2" => &["device_bytes"],
        "cuMemFreeHost" | "cuMemHostUnregister" => &["pinned_bytes"],
        "cuDevicePrimaryCtxRelease_v2" => &["contexts"],
        "cuModuleUnload" => &["modules"],
        "cuGraphDestroy" | "cuGraphExecDestroy" => &["graphs"],
        // What is freed in no context is not freed.
        "cuCtxGetCurrent" | "cuCtxSetCurrent" => &["pinned_bytes", "device_bytes", "modules", "graphs"],
        _ => &[],
    }
}

/// Runs the scenario with those faults. How often the last of their entry points was called.
///
/// The detector is silent, every event happened, bytes are right where no error was told, and nothing is left but what
/// the driver refused to take back.
pub(crate) fn under(faults: &str) -> u64 {
    let entries: Vec<&str> = faults.split(',').filter_map(|fault| fault.split(':').next()).collect();
    let driver = Driver::open();
    let before = driver.left();
    driver.control.clear_reports();
    driver.control.reset_calls();
    driver.control.set_faults(faults);
    let is_traced = entries.last().is_some_and(|entry| is_of_traces(entry));
    let ran = if is_traced { recorded(run).0 } else { run() };
    let calls = entries.last().map_or(0, |entry| driver.control.calls(entry));
    driver.control.set_faults("");
    if let Err(wrong) = ran {
        panic!("{faults}: {wrong}");
    }
    let allowed: Vec<&str> = entries.iter().flat_map(|entry| may_be_left(entry)).copied().collect();
    only_is_left(faults, &driver, &before, &allowed);
    nothing_is_promised(faults);
    if breaks(faults) {
        only_what_broke_is_reported(faults, &driver);
    }
    let reports = driver.control.take_reports();
    assert!(reports.is_empty(), "{faults}: the detector says:\n{}", reports.join("\n"));
    calls
}

/// Whether the backend holds the device for broken. Codes that stay are believed, also where this driver goes on: those
/// that a table has, and one that the driver answers to a question about the device, too.
fn breaks(faults: &str) -> bool {
    let words = |fault: &str| {
        let mut words = fault.split(':');
        Some((words.next()?.to_owned(), words.nth(1)?.parse::<u32>().ok()?, words.next().is_some()))
    };
    let all: Vec<_> = faults.split(',').filter_map(words).collect();
    let answered = |code| all.iter().any(|(entry, other, _)| entry == "cuStreamQuery" && *other == code);
    all.iter().any(|(entry, code, has_effect)| {
        *has_effect
            || matches!(code, 214 | 220 | 226 | 700 | 702 | 710 | 714..=719 | 721)
            || (entry != "cuStreamQuery" && answered(*code))
    })
}

/// All that a client does, on two devices; errors of the driver's are no failures.
///
/// # Errors
/// What is not as it should be.
pub(crate) fn run() -> Result<(), String> {
    let Ok(client) = client(2) else { return Ok(()) };
    let mut tries = SIZES.map(|bytes| work(&client, bytes)).to_vec();
    tries.push(imported(&client, SMALL));
    tries.push(beside_others(&client, SMALL));
    tries.push(arrays::work(&client, SMALL));
    // A slab, and two chunks.
    tries.extend([[40, 60], [600, 500]].map(|dims| arrays::strided(&client, dims)));
    tries.push(flows::work(&client));
    tries.push(pieces::work(&client, SMALL));
    let wrong = tries.into_iter().find_map(|tried| tried.unwrap_or(None));
    let left = arrays::left_in_flight(&client, SMALL);
    // A broken device does not stop it.
    let ended = shut_down(&client).map_err(|error| format!("shutdown: {error}"));
    if let Some(events) = left.ok().filter(|events| events.iter().any(|event| !event.is_ready())) {
        return Err(format!("{} events did not happen by the end of the client", events.len()));
    }
    wrong.map_or(ended, Err)
}

/// A way from memory of the host through everything and back. What was wrong with the bytes.
fn work(client: &Client, bytes: usize) -> Result<Option<String>, Error> {
    let block = |device, kind| block(client, device, kind, bytes);
    let (pinned, first, second) = (block(0, "pinned_host")?, block(0, "device")?, block(0, "device")?);
    let (there, back, plain) = (block(1, "device")?, block(1, "pinned_host")?, block(1, "unpinned_host")?);
    let (data, mut pageable, mut mapped) = (pattern(bytes, bytes), vec![0; bytes], vec![0; bytes]);
    let shift = bytes / 3;
    let mapping = client.dma_map(mapped.as_ptr(), bytes);
    // SAFETY: all bytes stay until every event has happened, which is waited for below whatever fails; the chain orders
    // what uses the blocks.
    let chain: Vec<Event> = unsafe {
        let up = first.copy_from_host(data.as_ptr(), 0, bytes, &[]);
        let down = copy(&first, &pinned, std::slice::from_ref(&up));
        let again = copy(&pinned, &second, std::slice::from_ref(&down));
        let across = copy(&second, &there, std::slice::from_ref(&again));
        let away = copy(&there, &back, std::slice::from_ref(&across));
        let paged = there.copy_to_host(pageable.as_mut_ptr(), 0, bytes, std::slice::from_ref(&across));
        let to_plain = copy(&there, &plain, std::slice::from_ref(&across));
        let to_mapped = there.copy_to_host(mapped.as_mut_ptr(), 0, bytes, std::slice::from_ref(&across));
        let within = first.copy_range_to(0, &first, shift, bytes - shift, std::slice::from_ref(&down));
        vec![away, paged, to_plain, to_mapped, within, up, down, again, across]
    };
    let outcomes: Vec<_> = chain.iter().map(outcome).collect();
    drop(mapping);
    // A chain ends well only if all of it did.
    let results = [bytes_of(&back), &pageable, bytes_of(&plain), &mapped];
    for ((name, bytes), outcome) in ["pinned", "pageable", "plain", "mapped"].iter().zip(results).zip(&outcomes) {
        if outcome.is_ok() && bytes != data {
            return Ok(Some(format!("no error, and wrong bytes, of the {name} copy of {} bytes", data.len())));
        }
    }
    if outcomes[4].is_ok()
        && let Ok(moved) = read(&first)
        && (moved[shift..] != data[..bytes - shift] || moved[..shift] != data[..shift])
    {
        return Ok(Some("no error, and wrong bytes, of overlapping ranges".to_owned()));
    }
    drop((pinned, first, second, there, back, plain));
    client.devices().iter().flat_map(purlin::Device::memory_spaces).for_each(|space| space.trim());
    // Smaller ones find what is there, or ask anew.
    _ = crate::support::block(client, 0, "device", SMALL)?;
    Ok(None)
}

/// A way through memory of the device that somebody else owns: here another block. What was wrong with it.
fn imported(client: &Client, bytes: usize) -> Result<Option<String>, Error> {
    let (owned, back) = (block(client, 0, "device", bytes)?, block(client, 0, "pinned_host", bytes)?);
    let (told, data) = (Told::default(), pattern(bytes, 5));
    outcome(&owned.allocation_event())?;
    let address = std::ptr::with_exposed_provenance_mut(owned.device_pointer()?);
    let space = client.devices()[0].default_memory_space();
    // SAFETY: the block stays until the owner was told, and nothing else uses it.
    let taken = unsafe { RawBuffer::import(&space, address, bytes, Mutability::Mutable, Some(told.release())) }?;
    // SAFETY: the bytes stay until the event, which is waited for.
    let up = unsafe { taken.copy_from_host(data.as_ptr(), 0, bytes, &[]) };
    let down = copy(&taken, &back, std::slice::from_ref(&up));
    let outcomes = [outcome(&up), outcome(&down)];
    drop(taken);
    until(|| format!("the owner was told {} times", told.count()), || told.count() == 1);
    let is_wrong = outcomes.iter().all(Result::is_ok) && bytes_of(&back) != data;
    Ok(is_wrong.then(|| "no error, and wrong bytes, of a copy through imported memory".to_owned()))
}

/// A way over a stream of others: here one of the client's, for launches. What was wrong with it.
fn beside_others(client: &Client, bytes: usize) -> Result<Option<String>, Error> {
    let (there, back) = (block(client, 0, "device", bytes)?, block(client, 0, "pinned_host", bytes)?);
    let (data, device) = (pattern(bytes, 6), client.devices().swap_remove(0));
    let theirs = foreign::stream(device.launch_stream(2)?);
    // SAFETY: the bytes stay until the event, which is waited for.
    let up = unsafe { there.copy_from_host(data.as_ptr(), 0, bytes, &[]) };
    let is_behind = device.have_stream_wait(theirs, &up).is_ok();
    let behind = device.foreign_event(theirs.into());
    // The stream does nothing but wait, and so is behind the first copy.
    let down = if is_behind { copy(&there, &back, std::slice::from_ref(&behind)) } else { Event::ready() };
    let outcomes = [outcome(&up), outcome(&behind), outcome(&down)];
    let is_wrong = is_behind && outcomes.iter().all(Result::is_ok) && bytes_of(&back) != data;
    Ok(is_wrong.then(|| "no error, and wrong bytes, of a copy behind others".to_owned()))
}

/// The bytes of memory that the host reaches.
fn bytes_of(block: &RawBuffer) -> &[u8] {
    let address = block.host_pointer().expect("it is memory of the host");
    // SAFETY: the block has so many bytes, and what used them is over.
    unsafe { std::slice::from_raw_parts(address.as_ptr(), block.size_bytes()) }
}

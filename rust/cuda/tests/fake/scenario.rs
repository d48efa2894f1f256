//! A client and all that it does, under faults.

#![allow(unsafe_code, reason = "copies are made by address")]

use purlin::{Client, Error, Event, RawBuffer};
use purlin_fakecuda::Driver;

use crate::arrays;
use crate::support::*;

/// What must be true after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expect {
    /// The detector is silent, every event happened, and bytes are right where no error was told.
    Anything,
    /// And nothing is left but what the driver refused to take back.
    NothingLeft,
}

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

/// Runs the scenario with those faults. How often the entry point was called.
pub(crate) fn under(fault: &str, expect: Expect) -> u64 {
    let entry = fault.split(':').next().unwrap_or_default();
    let driver = Driver::open();
    let before = driver.left();
    driver.control.reset_calls();
    driver.control.set_faults(fault);
    let ran = run();
    let calls = driver.control.calls(entry);
    driver.control.set_faults("");
    if let Err(wrong) = ran {
        panic!("{fault}: {wrong}");
    }
    until(|| format!("{fault}: threads {:?}", threads()), || threads().is_empty());
    if expect == Expect::NothingLeft {
        only_is_left(fault, &driver, &before, may_be_left(entry));
    }
    // Codes that stay are believed, also where this driver goes on.
    let code = fault.split(':').nth(2).and_then(|code| code.parse::<u32>().ok());
    let is_sticky = [":sticky", ":async"].iter().any(|effect| fault.ends_with(effect))
        || code.is_some_and(|code| matches!(code, 214 | 220 | 226 | 700 | 702 | 710 | 714..=719 | 721));
    if is_sticky {
        only_what_broke_is_reported(fault, &driver);
    }
    let reports = driver.control.reports();
    assert!(reports.is_empty(), "{fault}: the detector says:\n{}", reports.join("\n"));
    calls
}

/// All that a client does, on two devices; errors of the driver's are no failures.
///
/// # Errors
/// What is not as it should be.
pub(crate) fn run() -> Result<(), String> {
    let Ok(client) = client(2) else { return Ok(()) };
    let mut tries = SIZES.map(|bytes| work(&client, bytes)).to_vec();
    tries.push(arrays::work(&client, SMALL));
    // A slab, and two chunks.
    tries.extend([[40, 60], [600, 500]].map(|dims| arrays::strided(&client, dims)));
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
    let seen = [&pageable, &mapped];
    let results = [bytes_of(&back), seen[0].clone(), bytes_of(&plain), seen[1].clone()];
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

/// The bytes of memory that the host reaches.
fn bytes_of(block: &RawBuffer) -> Vec<u8> {
    let address = block.host_pointer().expect("it is memory of the host");
    // SAFETY: the block has so many bytes, and what used them is over.
    unsafe { std::slice::from_raw_parts(address.as_ptr(), block.size_bytes()) }.to_vec()
}

//! A list of ten commands that cases launch: a device that has commands does them by itself, else the host does.

#![allow(unsafe_code, reason = "launches access memory by address, and their callers order what uses it")]

use std::slice;
use std::sync::Arc;

use purlin_async::Event;
use purlin_base::Error;
use purlin_device::backend::{Access, Command, CommandList, FillPattern, Launch, LaunchInfo, Place};
use purlin_device::{Device, LaunchOptions, RawBuffer};

/// The parts of a block, and the bytes of each.
const PARTS: usize = 10;
const PART_BYTES: usize = 24;
const NEW: u8 = 0xa5;

/// Moves each part of a block to the place of the one before it, and writes a new one in place of the last.
pub(crate) struct Shift(CommandList);

impl Shift {
    pub(crate) fn new() -> Arc<Self> {
        let place = |part: usize| Place { range: 0, offset_bytes: part * PART_BYTES };
        let copies =
            (1..PARTS).map(|part| Command::Copy { from: place(part), to: place(part - 1), size_bytes: PART_BYTES });
        let new = Command::Fill { to: place(PARTS - 1), size_bytes: PART_BYTES, pattern: FillPattern::Byte(NEW) };
        Arc::new(Self(CommandList::new(copies.chain([new]).collect()).expect("it writes its own range")))
    }

    /// On a block, on the compute stream of that number.
    pub(crate) fn start(self: &Arc<Self>, device: &Device, block: &RawBuffer, stream: u8, after: &[Event]) -> Event {
        let options = LaunchOptions { dependencies: after, stream, label: c"shift".into(), ..Default::default() };
        let (launch, ranges): (Arc<dyn Launch>, _) = (self.clone(), [(Access::Write, block), (Access::Read, block)]);
        // SAFETY: the commands access their range alone; cases order what uses its memory by events.
        unsafe { device.launch(launch, &ranges, &options) }.expect("a block is as long as the parts")
    }
}

impl Launch for Shift {
    fn name(&self) -> &str {
        "shift"
    }

    unsafe fn launch(&self, _info: LaunchInfo, addresses: &[*mut u8]) -> Result<(), Error> {
        // SAFETY: the first range has all parts, and nothing else uses it meanwhile, as the caller of start() promises.
        shift(unsafe { slice::from_raw_parts_mut(addresses[0], PARTS * PART_BYTES) });
        Ok(())
    }

    fn commands(&self, _device: u16) -> Option<&CommandList> {
        Some(&self.0)
    }
}

/// What it does.
pub(crate) fn shift(block: &mut [u8]) {
    block.copy_within(PART_BYTES..PARTS * PART_BYTES, 0);
    block[(PARTS - 1) * PART_BYTES..PARTS * PART_BYTES].fill(NEW);
}

//! Every kind of wait between launches, or reads to ordinary memory, and what else streams do: two operations on one
//! block, ordered by an event alone. The detector knows a wait that is missing whatever the timing, and any report
//! fails the test.

use std::sync::Arc;

use purlin::program::KernelLaunch;
use purlin::{Event, LaunchOptions, RawBuffer};
use purlin_fakecuda::{Options, process};

use crate::launches::{fill, start};
use crate::support::*;

const BYTES: usize = 4096;

/// What is done with the block, by the stream that does it.
#[derive(Clone, Copy)]
enum Step {
    /// From pinned memory.
    ToDevice,
    /// To pinned memory.
    ToHost,
    /// To ordinary memory of the host.
    ToPageable,
    /// From another block of the GPU.
    Within,
    /// To another GPU.
    WithinToo,
    /// A kernel that writes it, on a stream of that number.
    Launch(u8),
}

struct Blocks {
    block: RawBuffer,
    pinned: RawBuffer,
    pageable: RawBuffer,
    other: RawBuffer,
    peer: RawBuffer,
    fill: Arc<KernelLaunch>,
}

impl Blocks {
    /// All written, so that each may be read.
    fn new(session: &Session) -> Self {
        let kinds = [(0, "device"), (0, "pinned_host"), (0, "unpinned_host"), (0, "device"), (1, "device")];
        let [block, pinned, pageable, other, peer] = kinds.map(|(device, kind)| session.block(device, kind, BYTES));
        [&block, &pinned, &pageable, &other, &peer]
            .into_iter()
            .for_each(|block| write(block, &pattern(BYTES, 1)).unwrap());
        Self { block, pinned, pageable, other, peer, fill: fill(&session.client.devices()[0], 7, BYTES).unwrap() }
    }

    fn start(&self, step: Step, after: &[Event]) -> Event {
        match step {
            Step::ToDevice => copy(&self.pinned, &self.block, after),
            Step::ToHost => copy(&self.block, &self.pinned, after),
            Step::ToPageable => copy(&self.block, &self.pageable, after),
            Step::Within => copy(&self.other, &self.block, after),
            Step::WithinToo => copy(&self.block, &self.peer, after),
            Step::Launch(stream) => {
                let options = LaunchOptions { dependencies: after, stream, ..LaunchOptions::default() };
                start(&self.fill, &[&self.block], &options).unwrap()
            }
        }
    }
}

fn one_after_the_other(name: &str, first: Step, second: Step) {
    process::run(&format!("order::{name}"), &Options::default(), || {
        Session::with(2, |session| {
            let blocks = Blocks::new(session);
            let held = Held::new(&session.driver);
            let done = blocks.start(first, &[]);
            let done = blocks.start(second, &[done]);
            drop(held);
            outcome(&done).unwrap();
        });
    });
}

macro_rules! orders {
    ($($name:ident: $first:expr, $second:expr;)*) => {
        $(#[test]
        fn $name() {
            one_after_the_other(stringify!($name), $first, $second);
        })*
    };
}

orders! {
    a_launch_after_a_copy_from_the_host: Step::ToDevice, Step::Launch(0);
    a_launch_after_a_copy_to_the_host: Step::ToHost, Step::Launch(0);
    a_launch_after_a_copy_within: Step::Within, Step::Launch(0);
    a_launch_after_a_copy_to_a_peer: Step::WithinToo, Step::Launch(0);
    a_copy_from_the_host_after_a_launch: Step::Launch(0), Step::ToDevice;
    a_copy_to_the_host_after_a_copy_within: Step::Within, Step::ToHost;
    a_copy_to_the_host_after_a_launch: Step::Launch(0), Step::ToHost;
    a_copy_within_after_a_launch: Step::Launch(0), Step::Within;
    a_copy_to_a_peer_after_a_launch: Step::Launch(0), Step::WithinToo;
    a_read_to_ordinary_memory_after_a_copy_from_the_host: Step::ToDevice, Step::ToPageable;
    a_read_to_ordinary_memory_after_a_copy_within: Step::Within, Step::ToPageable;
    a_read_to_ordinary_memory_after_a_launch: Step::Launch(0), Step::ToPageable;
    a_launch_after_one_on_another_stream: Step::Launch(1), Step::Launch(0);
    a_launch_on_another_stream_after_one: Step::Launch(0), Step::Launch(1);
}

/// The memory of `first`'s block, which is dropped, is the next one's.
#[test]
fn memory_is_written_again_behind_a_read_to_ordinary_memory() {
    process::run("order::memory_is_written_again_behind_a_read_to_ordinary_memory", &Options::default(), || {
        Session::with(2, |session| {
            let Blocks { block, pinned, pageable, .. } = Blocks::new(session);
            let address = block.device_pointer().unwrap();
            let held = Held::new(&session.driver);
            let read_all = copy(&block, &pageable, &[]);
            drop(block);
            let again = session.block(0, "device", BYTES);
            assert_eq!(again.device_pointer().unwrap(), address);
            let done = copy(&pinned, &again, &[]);
            drop(held);
            outcome(&read_all).and(outcome(&done)).unwrap();
        });
    });
}

#[test]
fn memory_is_freed_behind_the_read_to_ordinary_memory_that_uses_it() {
    let name = "order::memory_is_freed_behind_the_read_to_ordinary_memory_that_uses_it";
    process::run(name, &Options::default(), || {
        Session::with(1, |session| {
            // An extent of its own.
            let (block, plain) = (session.block(0, "device", 40 << 20), session.block(0, "unpinned_host", BYTES));
            write(&block.slice(0, BYTES).unwrap(), &pattern(BYTES, 1)).unwrap();
            let held = Held::new(&session.driver);
            let done = copy(&block.slice(0, BYTES).unwrap(), &plain, &[]);
            drop(block);
            session.client.devices()[0].default_memory_space().trim();
            assert_eq!(session.driver.control.calls("cuMemFreeAsync"), 1);
            drop(held);
            outcome(&done).unwrap();
        });
    });
}

#[test]
fn memory_is_freed_behind_the_launch_that_uses_it() {
    process::run("order::memory_is_freed_behind_the_launch_that_uses_it", &Options::default(), || {
        Session::with(1, |session| {
            let device = &session.client.devices()[0];
            // An extent of its own.
            let (block, fill) = (session.block(0, "device", 40 << 20), fill(device, 7, BYTES).unwrap());
            let held = Held::new(&session.driver);
            let done = start(&fill, &[&block], &LaunchOptions::default()).unwrap();
            drop(block);
            device.default_memory_space().trim();
            assert_eq!(session.driver.control.calls("cuMemFreeAsync"), 1);
            assert!(!done.is_ready());
            drop(held);
            outcome(&done).unwrap();
        });
    });
}

//! Every kind of wait between the streams of a GPU: two operations on one block, ordered by an event alone, or by the
//! use of memory. The detector knows a wait that is missing whatever the timing, and any report fails the test.
//!
//! rust/cuda/defects/defects.txt names, for each kind, the test here that finds it left out.

use std::sync::Arc;

use purlin::backend::Launch;
use purlin::program::KernelLaunch;
use purlin::{Event, LaunchOptions, RawBuffer};
use purlin_fakecuda::{Options, process};

use crate::launches::{fill, start};
use crate::stranger::Stranger;
use crate::support::*;
use crate::{foreign, graphs};

const BYTES: usize = 4096;
/// An extent of its own.
const LARGE: usize = 40 << 20;

/// What is done with the block, by the stream that does it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// A graph that writes the beginning of it.
    Graph,
}

impl Step {
    const ALL: [Self; 10] = [
        Self::ToDevice,
        Self::ToHost,
        Self::ToPageable,
        Self::Within,
        Self::WithinToo,
        Self::Launch(0),
        Self::Launch(1),
        Self::Launch(2),
        Self::Launch(3),
        Self::Graph,
    ];

    fn writes(self) -> bool {
        !matches!(self, Self::ToHost | Self::ToPageable | Self::WithinToo)
    }
}

struct Blocks<'a> {
    session: &'a Session,
    block: RawBuffer,
    pinned: RawBuffer,
    pageable: RawBuffer,
    other: RawBuffer,
    peer: RawBuffer,
    fill: Arc<KernelLaunch>,
    graph: Arc<dyn Launch>,
}

impl<'a> Blocks<'a> {
    /// All written, so that each may be read. The graph is there.
    fn new(session: &'a Session) -> Self {
        let kinds = [(0, "device"), (0, "pinned_host"), (0, "unpinned_host"), (0, "device"), (1, "device")];
        let [block, pinned, pageable, other, peer] = kinds.map(|(device, kind)| session.block(device, kind, BYTES));
        [&block, &pinned, &pageable, &other, &peer]
            .into_iter()
            .for_each(|block| write(block, &pattern(BYTES, 1)).unwrap());
        let (fill, graph) = (fill(&session.client.devices()[0], 7, BYTES).unwrap(), graphs::twenty());
        // Once command by command, once as it is recorded.
        (0..2).for_each(|_| outcome(&graphs::launch(session, &graph, &block, &[])).unwrap());
        Self { session, block, pinned, pageable, other, peer, fill, graph }
    }

    fn start(&self, step: Step, after: &[Event]) -> Event {
        self.start_on(&self.block, step, after)
    }

    fn start_on(&self, block: &RawBuffer, step: Step, after: &[Event]) -> Event {
        match step {
            Step::ToDevice => copy(&self.pinned, block, after),
            Step::ToHost => copy(block, &self.pinned, after),
            Step::ToPageable => copy(block, &self.pageable, after),
            Step::Within => copy(&self.other, block, after),
            Step::WithinToo => copy(block, &self.peer, after),
            Step::Launch(stream) => {
                let options = LaunchOptions { dependencies: after, stream, ..LaunchOptions::default() };
                start(&self.fill, &[block], &options).unwrap()
            }
            Step::Graph => graphs::launch(self.session, &self.graph, block, after),
        }
    }
}

/// The one step behind the other, for which nothing but an event is waited for.
fn are_in_order(blocks: &Blocks<'_>, first: Step, second: Step) {
    let driver = &blocks.session.driver;
    let (before, held) = (driver.control.calls("cuGraphLaunch"), Held::new(driver));
    let done = blocks.start(first, &[]);
    let done = blocks.start(second, &[done]);
    drop(held);
    outcome(&done).unwrap();
    let reports = driver.control.reports();
    assert!(reports.is_empty(), "{second:?} behind {first:?}: {}", reports.join("\n"));
    let graphs = [first, second].iter().filter(|step| **step == Step::Graph).count() as u64;
    assert_eq!(driver.control.calls("cuGraphLaunch") - before, graphs, "{second:?} behind {first:?}");
}

/// Each step that uses the block in another way, behind the first.
fn all_wait_for(name: &str, first: Step) {
    process::run(&format!("order::{name}"), &Options::default(), || {
        Session::with(2, |session| {
            let blocks = Blocks::new(session);
            let is_other = |second: &Step| *second != first && (first.writes() || second.writes());
            Step::ALL.into_iter().filter(is_other).for_each(|second| are_in_order(&blocks, first, second));
            is_freed_behind(session, &blocks, first);
        });
    });
}

/// An extent goes back to the driver behind the first.
fn is_freed_behind(session: &Session, blocks: &Blocks, first: Step) {
    let large = session.block(0, "device", LARGE);
    let block = large.slice(0, BYTES).unwrap();
    write(&block, &pattern(BYTES, 1)).unwrap();
    let frees = || session.driver.control.calls("cuMemFreeAsync");
    let (before, held) = (frees(), Held::new(&session.driver));
    let done = blocks.start_on(&block, first, &[]);
    drop((large, block));
    session.client.devices()[0].default_memory_space().trim();
    assert_eq!(frees(), before + 1);
    assert!(!done.is_ready());
    drop(held);
    outcome(&done).unwrap();
}

macro_rules! steps {
    ($($name:ident: $first:expr;)*) => {
        $(#[test]
        fn $name() {
            all_wait_for(stringify!($name), $first);
        })*
    };
}

steps! {
    all_wait_for_a_copy_from_the_host: Step::ToDevice;
    all_wait_for_a_copy_to_the_host: Step::ToHost;
    all_wait_for_a_copy_within: Step::Within;
    all_wait_for_a_copy_to_a_peer: Step::WithinToo;
    all_wait_for_a_launch: Step::Launch(0);
    all_wait_for_a_launch_on_the_second_stream: Step::Launch(1);
    all_wait_for_a_launch_on_the_third_stream: Step::Launch(2);
    all_wait_for_a_launch_on_the_fourth_stream: Step::Launch(3);
    all_wait_for_a_graph: Step::Graph;
}

/// Alone, so that no kernel on the same stream has waited before.
#[test]
fn a_graph_waits_for_all() {
    process::run("order::a_graph_waits_for_all", &Options::default(), || {
        Session::with(2, |session| {
            let blocks = Blocks::new(session);
            let others = Step::ALL.into_iter().filter(|first| *first != Step::Graph);
            others.for_each(|first| are_in_order(&blocks, first, Step::Graph));
            wait_for_work_of_others(session, &blocks, &[Step::Graph]);
        });
        Session::with(2, |session| writes_behind_a_read_to_ordinary_memory(session, Step::Graph));
    });
}

/// Each of the steps behind what others have done with the block on a stream of theirs.
fn wait_for_work_of_others(session: &Session, blocks: &Blocks<'_>, steps: &[Step]) {
    let (stranger, device) = (Stranger::on(0), foreign::device(session));
    let theirs = stranger.make_stream();
    for &second in steps {
        let held = Held::new(&session.driver);
        stranger.set(theirs, foreign::address(&blocks.block), 2, BYTES);
        let done = blocks.start(second, &[device.foreign_event(foreign::stream(theirs).into())]);
        drop(held);
        outcome(&done).unwrap();
        let reports = session.driver.control.reports();
        assert!(reports.is_empty(), "{second:?} behind others: {}", reports.join("\n"));
    }
    stranger.destroy_stream(theirs);
}

#[test]
fn all_wait_for_work_of_others() {
    process::run("order::all_wait_for_work_of_others", &Options::default(), || {
        Session::with(2, |session| wait_for_work_of_others(session, &Blocks::new(session), &Step::ALL));
    });
}

/// Others, on a stream of theirs, behind each step that uses the block.
#[test]
fn others_wait_for_all() {
    process::run("order::others_wait_for_all", &Options::default(), || {
        Session::with(2, |session| {
            let (blocks, stranger, device) = (Blocks::new(session), Stranger::on(0), foreign::device(session));
            let theirs = stranger.make_stream();
            for first in Step::ALL {
                let held = (first != Step::ToPageable).then(|| Held::new(&session.driver));
                let done = blocks.start(first, &[]);
                device.have_stream_wait(foreign::stream(theirs), &done).unwrap();
                stranger.set(theirs, foreign::address(&blocks.block), 2, BYTES);
                drop(held);
                outcome(&device.foreign_event(foreign::stream(theirs).into())).unwrap();
                let reports = session.driver.control.reports();
                assert!(reports.is_empty(), "others behind {first:?}: {}", reports.join("\n"));
            }
            stranger.destroy_stream(theirs);
        });
    });
}

/// No stream waits for the event of a read to ordinary memory, which the host ends. The memory of its block, which is
/// dropped, is that of the next step's.
fn writes_behind_a_read_to_ordinary_memory(session: &Session, second: Step) {
    let mut blocks = Blocks::new(session);
    let address = blocks.block.device_pointer().unwrap();
    let held = Held::new(&session.driver);
    let read_all = blocks.start(Step::ToPageable, &[]);
    // Its last holder goes, before there is another.
    blocks.block = blocks.other.slice(0, BYTES).unwrap();
    blocks.block = session.block(0, "device", BYTES);
    assert_eq!(blocks.block.device_pointer().unwrap(), address);
    let done = blocks.start(second, &[]);
    drop(held);
    outcome(&read_all).and(outcome(&done)).unwrap();
}

#[test]
fn memory_is_written_again_behind_a_read_to_ordinary_memory() {
    process::run("order::memory_is_written_again_behind_a_read_to_ordinary_memory", &Options::default(), || {
        for second in Step::ALL.into_iter().filter(|second| second.writes()) {
            Session::with(2, |session| writes_behind_a_read_to_ordinary_memory(session, second));
        }
    });
}

#[test]
fn memory_is_freed_behind_the_read_to_ordinary_memory_that_uses_it() {
    let name = "order::memory_is_freed_behind_the_read_to_ordinary_memory_that_uses_it";
    process::run(name, &Options::default(), || {
        Session::with(2, |session| is_freed_behind(session, &Blocks::new(session), Step::ToPageable));
    });
}

/// Both only read, so the detector has nothing to say; but what comes behind the read may rely on the first.
fn a_read_waits_for(name: &str, first: Step) {
    process::run(&format!("order::{name}"), &Options::default(), || {
        Session::with(2, |session| {
            let (blocks, control) = (Blocks::new(session), &session.driver.control);
            let held = Held::new(&session.driver);
            let done = blocks.start(first, &[]);
            control.reset_calls();
            let read = copy(&blocks.other, &blocks.pageable, &[done]);
            until(|| "the read is not enqueued".to_owned(), || control.calls("cuMemcpyDtoHAsync_v2") == 1);
            assert_eq!(control.calls("cuStreamWaitEvent"), 1, "waits of the read");
            drop(held);
            outcome(&read).unwrap();
        });
    });
}

#[test]
fn a_read_to_ordinary_memory_waits_for_a_copy_to_the_host() {
    a_read_waits_for("a_read_to_ordinary_memory_waits_for_a_copy_to_the_host", Step::ToHost);
}

#[test]
fn a_read_to_ordinary_memory_waits_for_a_copy_to_a_peer() {
    a_read_waits_for("a_read_to_ordinary_memory_waits_for_a_copy_to_a_peer", Step::WithinToo);
}

/// An event of the driver's is not recorded anew while a wait for it can follow, also when no other event is idle.
#[test]
fn an_event_is_not_recorded_anew_under_those_that_wait_for_it() {
    /// More than Purlin has idle events after half as many operations.
    const MANY: usize = 64;
    process::run("order::an_event_is_not_recorded_anew_under_those_that_wait_for_it", &Options::default(), || {
        Session::with(2, |session| {
            let blocks = Blocks::new(session);
            let launches = |count| {
                let launch = |_| blocks.start_on(&blocks.other, Step::Launch(1), &[]);
                (0..count).map(launch).collect::<Vec<_>>()
            };
            // Events that are idle afterwards.
            let held = Held::new(&session.driver);
            let done = launches(MANY / 2);
            drop(held);
            done.iter().for_each(|done| outcome(done).unwrap());
            let held = Held::new(&session.driver);
            let written = blocks.start(Step::ToDevice, &[]);
            let others = launches(MANY);
            let done = blocks.start(Step::Launch(0), &[written]);
            drop(held);
            others.iter().chain([&done]).for_each(|done| outcome(done).unwrap());
        });
    });
}

//! Lists of commands that are launched again: as graphs, with the right addresses, and without where there are none.

#![allow(unsafe_code, reason = "launches access memory by address")]

use std::sync::Arc;

use purlin::backend::{Access, Command, CommandList, FillPattern, Launch, Place};
use purlin::{Event, LaunchOptions, RawBuffer};
use purlin_fakecuda::{Options, process};

use crate::calls::{BUT, counted, warm};
use crate::launches::Recorded;
use crate::support::*;

const COMMANDS: usize = 20;
const BYTES: usize = 4 * COMMANDS;

/// Word `at` of a block becomes `at`, and the last a copy of the first.
pub(crate) fn twenty() -> Arc<dyn Launch> {
    let place = |at: usize| Place { range: 0, offset_bytes: 4 * at };
    let fill = |at| Command::Fill { to: place(at), size_bytes: 4, pattern: FillPattern::Word(at as u32) };
    let copy = Command::Copy { from: place(0), to: place(COMMANDS - 1), size_bytes: 4 };
    Arc::new(Recorded(CommandList::new((0..COMMANDS - 1).map(fill).chain([copy]).collect()).unwrap()))
}

fn expected() -> Vec<u8> {
    (0..COMMANDS as u32).map(|at| if at == COMMANDS as u32 - 1 { 0 } else { at }).flat_map(u32::to_ne_bytes).collect()
}

pub(crate) fn launch(session: &Session, list: &Arc<dyn Launch>, block: &RawBuffer, after: &[Event]) -> Event {
    let options = LaunchOptions { dependencies: after, ..LaunchOptions::default() };
    let ranges = [(Access::Write, block)];
    // SAFETY: callers order what uses the block by `after`.
    unsafe { session.client.devices()[0].launch(Arc::clone(list), &ranges, &options) }.unwrap()
}

/// Launches the list on a block that has other bytes, and looks at what it wrote.
fn launch_and_look(session: &Session, list: &Arc<dyn Launch>, block: &RawBuffer) {
    write(block, &[9; BYTES]).unwrap();
    outcome(&launch(session, list, block, &[])).unwrap();
    assert_eq!(read(block).unwrap(), expected());
}

#[test]
fn a_list_of_twenty_is_launched_again_by_one_call() {
    process::run("graphs::a_list_of_twenty_is_launched_again_by_one_call", &Options::default(), || {
        Session::with(1, |session| {
            let (list, block) = (twenty(), session.block(0, "device", BYTES));
            // Once command by command, once as it is recorded.
            (0..2).for_each(|_| launch_and_look(session, &list, &block));
            write(&block, &[9; BYTES]).unwrap();
            warm(session);
            outcome(&launch(session, &list, &block, &[])).unwrap();
            assert_eq!(session.calls(&BUT), counted(&[("cuGraphLaunch", 1), ("cuEventRecord", 1)]));
            assert_eq!(read(&block).unwrap(), expected());
        });
    });
}

#[test]
fn a_graph_comes_after_what_it_waits_for_and_before_what_waits_for_it() {
    let name = "graphs::a_graph_comes_after_what_it_waits_for_and_before_what_waits_for_it";
    process::run(name, &Options::default(), || {
        Session::with(1, |session| {
            let (list, block, pinned) =
                (twenty(), session.block(0, "device", BYTES), session.block(0, "pinned_host", BYTES));
            write(&pinned, &[7; BYTES]).unwrap();
            for _ in 0..4 {
                let held = Held::new(&session.driver);
                let up = copy(&pinned, &block, &[]);
                let done = launch(session, &list, &block, &[up]);
                let down = copy(&block, &pinned, &[done]);
                drop(held);
                outcome(&down).unwrap();
                assert_eq!(read(&pinned).unwrap(), expected());
            }
        });
    });
}

#[test]
fn other_addresses_update_a_graph_until_they_change_too_often() {
    process::run("graphs::other_addresses_update_a_graph_until_they_change_too_often", &Options::default(), || {
        Session::with(1, |session| {
            let list = twenty();
            let blocks = [session.block(0, "device", BYTES), session.block(0, "device", BYTES)];
            session.driver.control.reset_calls();
            // Twice each: a change for two launches is worth it.
            (0..24).for_each(|at| launch_and_look(session, &list, &blocks[at / 2 % 2]));
            session
                .called(&[("cuGraphInstantiateWithFlags", 1), ("cuGraphExecUpdate_v2", 11)], "two graphs' addresses");
            // Each another one: not any more.
            (0..40).for_each(|at| launch_and_look(session, &list, &blocks[at % 2]));
            if session.driver.control.is_fake() {
                let [updates, fills] =
                    ["cuGraphExecUpdate_v2", "cuMemsetD32Async"].map(|name| session.driver.control.calls(name));
                assert!(updates < 35 && fills > 0, "{updates} updates, {fills} fills");
            }
        });
    });
}

#[test]
fn lists_are_launched_command_by_command_without_graphs() {
    let options = Options { without_graphs: true, ..Options::default() };
    process::run("graphs::lists_are_launched_command_by_command_without_graphs", &options, || {
        Session::with(1, |session| {
            let (list, block) = (twenty(), session.block(0, "device", BYTES));
            (0..4).for_each(|_| launch_and_look(session, &list, &block));
        });
    });
}

#[test]
fn what_is_refused_of_a_graph_leaves_commands_one_by_one() {
    process::run("graphs::what_is_refused_of_a_graph_leaves_commands_one_by_one", &Options::default(), || {
        Session::with(1, |session| {
            for entry in [
                "cuStreamBeginCapture_v2",
                "cuStreamEndCapture",
                "cuGraphInstantiateWithFlags",
                "cuStreamCreate",
                "cuMemsetD32Async",
                "cuGraphDestroy",
            ] {
                let (list, block) = (twenty(), session.block(0, "device", BYTES));
                launch_and_look(session, &list, &block);
                session.driver.control.set_faults(&format!("{entry}:1:1"));
                (0..3).for_each(|_| launch_and_look(session, &list, &block));
                session.driver.control.set_faults("");
            }
        });
    });
}

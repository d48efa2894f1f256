//! Children made by fork, and processes that end in the midst of their work: these also on a GPU (`scripts/gpu`), where
//! no device is broken.

#![allow(unsafe_code, reason = "processes are made by fork")]

use std::sync::Arc;

use purlin::backend::{Access, Launch};
use purlin::{LaunchOptions, RawBuffer, StatusCode};
use purlin_cuda::CudaBackend;
use purlin_fakecuda::{Driver, Options, process};

use crate::foreign;
use crate::graphs::{self, twenty};
use crate::launches::{fill, start};
use crate::support::*;

#[test]
fn a_child_of_fork_is_refused_before_any_call() {
    process::run("children::a_child_of_fork_is_refused_before_any_call", &Options::default(), || {
        Session::with(2, |session| {
            let mut blocks: Vec<RawBuffer> =
                ["device", "pinned_host", "unpinned_host"].map(|kind| session.block(0, kind, 4096)).into();
            write(&blocks[0], &pattern(4096, 1)).unwrap();
            let pages = vec![0_u8; 1 << 16];
            let mut mapping = Some(session.client.dma_map(pages.as_ptr(), pages.len()).unwrap());
            // Code that is loaded, alone and as a graph, which is made at the second launch.
            let device = session.client.devices().swap_remove(0);
            let (kernel, list) = (fill(&device, 1, 4096).unwrap(), twenty());
            let of_list = blocks[0].slice(0, 80).unwrap();
            (0..3).for_each(|_| outcome(&graphs::launch(session, &list, &of_list, &[])).unwrap());
            assert_eq!(session.driver.control.calls("cuGraphLaunch"), 2);
            let mut code = Some((kernel, list));
            let held = Held::new(&session.driver);
            let pending = copy(&blocks[1], &blocks[0], &[]);
            // Dropped in the child, which has copies of all of this.
            let mut handles = Some((blocks.clone(), session.client.clone(), pending.clone()));
            forked("a child of a process that uses CUDA", || {
                session.driver.control.reset_calls();
                let refused = StatusCode::FailedPrecondition;
                let error = CudaBackend::new().unwrap_err();
                assert_eq!(error.code(), refused);
                assert!(error.message().contains("fork"), "{error}");
                assert_eq!(client(1).unwrap_err().code(), refused);
                for kind in ["device", "pinned_host"] {
                    for bytes in [64, 64 << 20] {
                        assert_eq!(block(&session.client, 0, kind, bytes).unwrap_err().code(), refused, "{kind}");
                    }
                }
                for (from, to) in [(0, 1), (1, 0), (0, 0), (2, 0), (0, 2)] {
                    let event = copy(&blocks[from], &blocks[to], &[]);
                    assert_eq!(event.error().map(|error| error.code()), Some(refused), "copy {from} to {to}");
                }
                let theirs = foreign::stream(0);
                let imported = device.foreign_event(theirs.into());
                assert_eq!(imported.error().map(|error| error.code()), Some(refused), "work of others");
                assert_eq!(device.have_stream_wait(theirs, &pending).unwrap_err().code(), refused);
                assert_eq!(device.launch_stream(0).unwrap_err().code(), refused);
                // Of code that is loaded, and of other code, which the driver would have to compile.
                for words in [1, 2] {
                    let error = fill(&device, words, 4096).map(drop).unwrap_err();
                    assert_eq!(error.code(), refused, "{error}");
                }
                let (kernel, list) = code.take().unwrap();
                let options = LaunchOptions::default();
                let launch = |list: &Arc<dyn Launch>| {
                    // SAFETY: nothing else uses the block.
                    unsafe { device.launch(Arc::clone(list), &[(Access::Write, &of_list)], &options) }
                };
                for launched in [start(&kernel, &[&blocks[0]], &options), launch(&list), launch(&twenty())] {
                    assert_eq!(launched.unwrap_err().code(), refused, "a launch");
                }
                // The last that have this code.
                drop((kernel, list));
                let more = vec![0_u8; 4096];
                assert_eq!(session.client.dma_map(more.as_ptr(), 4096).unwrap_err().code(), refused);
                assert_eq!(shut_down(&session.client).unwrap_err().code(), refused);
                session.client.devices()[0].default_memory_space().trim();
                drop((mapping.take(), std::mem::take(&mut blocks), handles.take()));
                let calls = session.calls(&[]);
                assert!(calls.is_empty(), "a child has called {calls:?}");
            });
            drop(held);
            outcome(&pending).unwrap();
        });
    });
}

#[test]
fn a_report_fails_the_child_that_it_is_about() {
    process::run("children::a_report_fails_the_child_that_it_is_about", &Options::default(), || {
        // It asks the detector nothing itself.
        let child = |bytes: usize| {
            forked("a child that reads what it has written", || {
                let session = Session::new(1);
                let block = session.block(0, "device", 64);
                write(&block.slice(0, bytes).unwrap(), &vec![1; bytes]).unwrap();
                read(&block).unwrap();
                drop(block);
                shut_down(&session.client).unwrap();
            });
        };
        child(64);
        purlin_base::panics::caught(|| child(32)).unwrap_err();
    });
}

/// The next of numbers that have no order, by splitmix64.
fn random(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut number = *seed;
    number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// What may happen to a process that works.
const FORKS: u64 = 0;
const BREAKS: u64 = 1;
const EXITS: u64 = 2;

/// A client that works, and something that happens meanwhile. The detector is silent at the end, if there is one.
fn live_and_end(mut seed: u64) {
    let driver = Driver::if_fake();
    if let Some(driver) = &driver {
        driver.control.set_delays(seed, 200);
    }
    let client = client(2).unwrap();
    let mut blocks = Vec::new();
    for device in 0..2 {
        for kind in ["device", "pinned_host", "unpinned_host"] {
            let block = block(&client, device, kind, 1 << (8 + random(&mut seed) % 14)).unwrap();
            write(&block, &pattern(block.size_bytes(), blocks.len())).unwrap();
            blocks.push(block);
        }
    }
    let (when, what) = (random(&mut seed) % 30, random(&mut seed) % 4);
    let mut events = Vec::new();
    for turn in 0..30 {
        let (from, to) = (&blocks[(random(&mut seed) % 6) as usize], &blocks[(random(&mut seed) % 6) as usize]);
        let bytes = from.size_bytes().min(to.size_bytes());
        // One after the other: an event that fails fails what is behind it.
        let after: Vec<_> = events.last().cloned().into_iter().collect();
        // SAFETY: the events order what uses the blocks.
        events.push(unsafe { from.copy_range_to(0, to, 0, bytes, &after) });
        if turn != when {
            continue;
        }
        match what {
            FORKS => forked("of a process that works", || {
                assert!(CudaBackend::new().is_err());
                blocks.clear();
            }),
            BREAKS => {
                let code = [700, 719, 46, 4711][(random(&mut seed) % 4) as usize];
                driver.iter().for_each(|driver| driver.control.break_device(0, code));
            }
            EXITS => std::process::exit(0),
            // To the end.
            _ => {}
        }
    }
    for event in &events {
        _ = outcome(event);
    }
    drop(blocks);
    shut_down(&client).unwrap();
    drop(client);
    until(|| format!("threads are left: {:?}", threads()), || threads().is_empty());
    driver.iter().for_each(nothing_is_left);
    if what == BREAKS {
        driver.iter().for_each(|driver| only_what_broke_is_reported("a broken GPU", driver));
    }
}

#[test]
fn processes_may_fork_break_a_device_or_exit_at_any_moment() {
    let name = "children::processes_may_fork_break_a_device_or_exit_at_any_moment";
    process::run(name, &Options::default(), || {
        let count = std::env::var("PURLIN_CUDA_PROCESSES").ok().and_then(|count| count.parse().ok()).unwrap_or(40);
        for seed in 0..count {
            forked(&format!("process {seed}"), || live_and_end(seed));
        }
        println!("{count} processes ended as they should");
    });
}

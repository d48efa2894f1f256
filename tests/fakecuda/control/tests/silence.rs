//! The detector is silent about what is right: threads with streams of their own, and pipelines through all of them.

#[macro_use]
mod support;

use std::{env, thread};

use support::*;

const THREADS: u8 = 4;
const SIZE: usize = 1 << 12;
const WORDS: u32 = 64;

fn pipelines(gpu: &Session, function: usize, id: u8, count: u8) {
    gpu.make_current(usize::from(id) % gpu.contexts.len());
    let streams: Vec<usize> = (0..3).map(|_| gpu.stream(NON_BLOCKING)).collect();
    let (from, to) = (gpu.pinned(SIZE), gpu.pinned(SIZE));
    let (first, second) = (gpu.allocate_async(SIZE, streams[0]), gpu.allocate(SIZE));
    let uploaded = gpu.event();
    for round in 0..count {
        let byte = id.wrapping_mul(31).wrapping_add(round);
        from.set(byte);
        from.to_device(first, streams[0]);
        gpu.record(uploaded, streams[0]);
        gpu.wait(streams[1], uploaded);
        let on_this_device = usize::from(id) % gpu.contexts.len() == 0;
        let mut expected = vec![byte; SIZE];
        gpu.d2d(second, first, SIZE, streams[1]);
        if on_this_device {
            gpu.launch(function, 1, WORDS, streams[1], &[second, first]);
            for word in expected[..WORDS as usize * 4].chunks_mut(4) {
                let plus_one = u32::from_ne_bytes([byte; 4]).wrapping_add(1);
                word.copy_from_slice(&plus_one.to_ne_bytes());
            }
        }
        gpu.order(streams[1], streams[2]);
        to.read_from(second, streams[2]);
        // The next upload must not overtake this round's reads, nor the next copy this download.
        gpu.order(streams[1], streams[0]);
        gpu.order(streams[2], streams[1]);
        gpu.sync(streams[2]);
        assert!(to.get() == expected, "thread {id}, round {round}");
    }
    gpu.order(streams[1], streams[0]);
    ok!(gpu, cuMemFreeAsync(first, streams[0]));
    streams.iter().for_each(|stream| gpu.sync(*stream));
    gpu.free(second);
    from.free();
    to.free();
    ok!(gpu, cuEventDestroy_v2(uploaded));
    streams.iter().for_each(|stream| ok!(gpu, cuStreamDestroy_v2(*stream)));
}

#[test]
fn right_programs_are_not_reported() {
    process::run("right_programs_are_not_reported", &Options::default(), || {
        let gpu = Session::new();
        let module = gpu.module(TEXT);
        let function = gpu.function(module, "add_one");
        let rounds = env::var("PURLIN_FAKECUDA_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(50);
        for round in 0..rounds {
            gpu.control.set_delays(round, if round % 2 == 0 { 0 } else { 30 });
            thread::scope(|scope| {
                for id in 0..THREADS {
                    let gpu = &gpu;
                    scope.spawn(move || pipelines(gpu, function, id, 4));
                }
            });
            gpu.control.no_reports();
        }
        println!("silent {rounds} times");
        ok!(gpu, cuModuleUnload(module));
        gpu.end();
    });
}

//! Barriers: all of a block, some of it, with reductions; and those at which a block stays.

use crate::support::{Arguments, Device, line, module, text_of, try_run};

const BEFORE: &str = ".shared .align 4 .b8 near[4096];";

/// Runs a body whose result is in `%r0`; what each of `threads` has.
fn try_results(body: &str, threads: u32) -> Result<Vec<u32>, String> {
    let body = format!(
        ".reg .pred %p<9>;\n.reg .b32 %r<19>, tid, at;\n.reg .b64 %rd<9>, out;\nld.param.u64 out, [k_out];
        mov.u32 tid, %tid.x;\nmov.u32 at, near;\nshl.b32 %r9, tid, 2;\nadd.u32 at, at, %r9;\nmov.u32 %r0, 77;\n{body}
        mul.wide.u32 %rd0, tid, 4;\nadd.s64 out, out, %rd0;\nst.global.u32 [out], %r0;"
    );
    let module = module(&text_of(BEFORE, ".param .u64 k_out", &body));
    let device = Device::default();
    let out = device.put(&vec![0xff; 4 * threads as usize]);
    try_run(&module, "k", line(1, threads), &Arguments::default().pointer(out), &device)
        .map_err(|trap| trap.to_string())?;
    Ok(device.u32(out))
}

fn results(body: &str, threads: u32) -> Vec<u32> {
    try_results(body, threads).unwrap_or_else(|trap| panic!("{trap}"))
}

/// Each thread reads what the next one wrote.
fn neighbours(barrier: &str) -> String {
    format!("st.shared.u32 [at], tid;\n{barrier}\nld.shared.u32 %r0, [at+4];")
}

#[test]
fn what_was_written_before_a_barrier_is_read_behind_it() {
    for barrier in [
        "bar.sync 0;",
        "barrier.sync 3;",
        "barrier.cta.sync.aligned 15;",
        "bar.cta.sync 1, 96;",
        "mov.u32 %r2, 2;\nbar.sync %r2;",
    ] {
        let got = results(&neighbours(barrier), 96);
        assert!((0..95).all(|thread| got[thread] == thread as u32 + 1), "{barrier}");
        assert_eq!(got[95], 0xcbcb_cbcb);
    }
}

#[test]
fn without_it_two_threads_race_whoever_comes_first() {
    let at =
        "kernel k, line 16, st.shared.u32, block (0, 0, 0), thread (1, 0, 0): writes 4 bytes of shared memory at 0x4; ";
    let race = format!("{at}thread (0, 0, 0) read it in line 18, and no barrier is between");
    assert_eq!(try_results(&neighbours(""), 64), Err(race));
    // Each reads what the one before wrote, which is there already as threads run one after another.
    let before = neighbours("").replace("[at+4]", "[at+-4]").replace("ld.shared", "@%p1 ld.shared");
    let race = try_results(&format!("setp.ne.u32 %p1, tid, 0;\n{before}"), 64).unwrap_err();
    assert!(race.ends_with("thread (0, 0, 0) wrote it in line 17, and no barrier is between"), "{race}");
    // Whoever says that it is meant so has what no one has written.
    let meant = neighbours("").replace(".shared", ".volatile.shared");
    assert!(results(&meant, 64).iter().all(|&got| got == 0xcbcb_cbcb));
}

#[test]
fn a_barrier_may_be_for_some_warps() {
    // Two pairs of warps, each with a barrier of its own; the last warp is not full.
    let body = "shr.u32 %r2, tid, 6;\nadd.u32 %r2, %r2, 1;\nst.shared.u32 [at], tid;\nbar.sync %r2, 64;\nxor.b32 %r3, %r9, 128;
        mov.u32 %r4, near;\nadd.u32 %r4, %r4, %r3;\nld.shared.u32 %r0, [%r4];";
    let got = results(body, 120);
    assert!((0..120).all(|thread: u32| thread ^ 32 >= 120 || got[thread as usize] == thread ^ 32));
}

#[test]
fn who_arrives_does_not_wait() {
    // The second warp writes and arrives, the first waits and reads.
    let body = "setp.ge.u32 %p1, tid, 32;\n@%p1 bra WRITES;\nbar.sync 1, 64;\nld.shared.u32 %r0, [at+128];\nbra END;
        WRITES:\nst.shared.u32 [at], tid;\nbar.arrive 1, 64;\nEND:";
    let got = results(body, 64);
    assert_eq!((got[0], got[31], got[32]), (32, 63, 77));
}

#[test]
fn predicates_are_reduced_at_a_barrier() {
    let few = "setp.lt.u32 %p1, tid, 5;\n";
    let all = |got: Vec<u32>, expected| got.iter().all(|&value| value == expected);
    assert!(all(results(&format!("{few}bar.red.popc.u32 %r0, 0, %p1;"), 70), 5));
    assert!(all(results(&format!("{few}bar.red.popc.u32 %r0, 0, 64, !%p1;"), 64), 59));
    let flag = "selp.u32 %r0, 1, 0, %p2;";
    assert!(all(results(&format!("{few}bar.red.and.pred %p2, 0, %p1;\n{flag}"), 64), 0));
    assert!(all(results(&format!("{few}barrier.cta.red.or.aligned.pred %p2, 0, %p1;\n{flag}"), 64), 1));
}

#[test]
fn barriers_may_be_used_again_and_again() {
    let body = "mov.u32 %r0, 0;\nLOOP:\nst.shared.u32 [at], %r0;\nbar.sync 0;\nld.shared.u32 %r1, [near];\nbar.sync 0;
        add.u32 %r0, %r1, 1;\nsetp.lt.u32 %p1, %r0, 50;\n@%p1 bra LOOP;";
    assert!(results(body, 65).iter().all(|&got| got == 50));
}

#[test]
fn a_block_that_stays_at_a_barrier_is_a_trap() {
    let rows = [
        (
            "setp.eq.u32 %p1, tid, 3;\n@%p1 exit;\nbar.sync 0;",
            64,
            "barrier 0 is waited at by 63 threads, and 1 do not come; thread (3, 0, 0) left, line 17",
        ),
        (
            "setp.lt.u32 %p1, tid, 32;\n@%p1 bra FIRST;\nbar.sync 1;\nbra END;\nFIRST:\nbar.sync 2;\nEND:",
            64,
            "barrier 2 is waited at by 32 threads, and 32 do not come; thread (32, 0, 0) is at a barrier, line 18",
        ),
        (
            "setp.eq.u32 %p1, tid, 0;\n@%p1 bra FIRST;\nbar.sync 0;\nbra END;\nFIRST:\nbar.sync 0;\nEND:",
            32,
            "its warp comes apart: thread (1, 0, 0) is at a barrier, line 18",
        ),
        ("mov.u32 %r2, 16;\nbar.sync %r2;", 32, "there is no barrier 16"),
        ("mov.u32 %r2, 33;\nbar.sync 0, %r2;", 64, "a barrier of 33 threads, in a block of 64"),
        ("bar.sync 0, 128;", 64, "a barrier of 128 threads, in a block of 64"),
        (
            "shr.u32 %r2, tid, 5;\nadd.u32 %r2, %r2, 2;\nshl.b32 %r2, %r2, 5;\nbar.sync 0, %r2;",
            96,
            "a barrier of 96 threads, where others came to one of 64",
        ),
    ];
    for (body, threads, expected) in rows {
        let trap = try_results(body, threads).unwrap_err();
        assert!(trap.ends_with(expected), "{trap}");
    }
    // Not aligned: the threads of a warp may come by different ways.
    let body = "setp.eq.u32 %p1, tid, 0;\n@%p1 bra FIRST;\nbarrier.sync 0;\nbra END;\nFIRST:\nbarrier.sync 0;\nEND:";
    assert!(results(body, 32).iter().all(|&got| got == 77));
}

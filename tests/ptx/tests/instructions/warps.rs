//! What the threads of a warp do together.

use crate::support::{Arguments, Device, line, module, text_of, try_run};

/// Runs a body whose results are in `%r0` and `%p0`; both, for each of `threads`.
fn try_results(body: &str, threads: u32) -> Result<Vec<(u32, bool)>, String> {
    let body = format!(
        ".reg .pred %p<9>;\n.reg .b32 %r<19>, tid;\n.reg .b64 %rd<9>, out, at;\nld.param.u64 out, [k_out];
        mov.u32 tid, %tid.x;\nsetp.ne.u32 %p0, 0, 0;\n{body}
        mul.wide.u32 at, tid, 8;\nadd.s64 out, out, at;\nselp.u32 %r18, 1, 0, %p0;\nst.global.v2.u32 [out], {{%r0, %r18}};"
    );
    let module = module(&text_of("", ".param .u64 k_out", &body));
    let device = Device::default();
    let out = device.put(&vec![0xff; 8 * threads as usize]);
    try_run(&module, "k", line(1, threads), &Arguments::default().pointer(out), &device)
        .map_err(|trap| trap.to_string())?;
    Ok(device.u32(out).chunks(2).map(|pair| (pair[0], pair[1] == 1)).collect())
}

fn results(body: &str, threads: u32) -> Vec<(u32, bool)> {
    try_results(body, threads).unwrap_or_else(|trap| panic!("{trap}"))
}

/// As the manual of PTX computes it.
fn source(mode: &str, lane: u32, b: u32, c: u32) -> (u32, bool) {
    let (clamp, segment) = (c & 31, c >> 8 & 31);
    let most = lane & segment | clamp & !segment;
    let (from, holds) = match mode {
        "up" => (lane.wrapping_sub(b), lane as i32 - b as i32 >= most as i32),
        "down" => (lane + b, lane + b <= most),
        "bfly" => (lane ^ b, lane ^ b <= most),
        _ => (lane & segment | b & !segment & 31, lane & segment | b & !segment & 31 <= most),
    };
    (if holds { from } else { lane }, holds)
}

#[test]
fn shuffles_take_from_the_lane_that_the_manual_says() {
    for mode in ["up", "down", "bfly", "idx"] {
        for segment in [0, 16, 24, 28] {
            for b in [0, 1, 3, 7, 16, 31] {
                let c = segment << 8 | if mode == "up" { 0 } else { 31 };
                let body = format!("mul.lo.u32 %r2, tid, 3;\nshfl.sync.{mode}.b32 %r0|%p0, %r2, {b}, {c}, -1;");
                for (lane, got) in (0..).zip(results(&body, 32)) {
                    let (from, holds) = source(mode, lane, b, c);
                    assert_eq!(got, (3 * from, holds), "{mode} of lane {lane} by {b}, {c:#x}");
                }
            }
        }
    }
}

#[test]
fn lanes_that_are_not_there_give_a_pattern() {
    let got = results("shfl.sync.down.b32 %r0|%p0, tid, 4, 31, 0xffffffff;", 40);
    assert_eq!(got[0], (4, true));
    assert_eq!(got[32], (36, true));
    assert_eq!(got[37], (0xcbcb_cbcb, true));
    assert_eq!(got[30], (30, false));
}

#[test]
fn votes_count_those_of_the_mask() {
    let odd = "and.b32 %r1, tid, 1;\nsetp.eq.u32 %p1, %r1, 1;\nsetp.ge.u32 %p2, tid, 0;\n";
    let ballot = results(&format!("{odd}vote.sync.ballot.b32 %r0, %p1, -1;\nvote.sync.any.pred %p0, %p1, -1;"), 32);
    assert!(ballot.iter().all(|&got| got == (0xaaaa_aaaa, true)));
    let all = results(&format!("{odd}vote.sync.ballot.b32 %r0, !%p1, -1;\nvote.sync.all.pred %p0, %p1, -1;"), 20);
    assert!(all.iter().all(|&got| got == (0x5_5555, false)));
    let same = results(&format!("{odd}mov.u32 %r0, 0;\nvote.sync.uni.pred %p0, %p2, -1;"), 32);
    assert!(same.iter().all(|&got| got == (0, true)));
    // Odd and even lanes vote apart, by masks of their own.
    let apart = format!(
        "{odd}mov.u32 %r2, 0x55555555;\n@%p1 not.b32 %r2, %r2;\nmov.u32 %r0, %r2;\nvote.sync.all.pred %p0, %p1, %r2;"
    );
    for (lane, got) in results(&apart, 32).into_iter().enumerate() {
        assert_eq!(got.1, lane % 2 == 1);
    }
}

#[test]
fn equal_values_are_matched_and_all_are_reduced() {
    let third = "rem.u32 %r1, tid, 3;\n";
    for (lane, got) in results(&format!("{third}match.any.sync.b32 %r0, %r1, -1;"), 32).into_iter().enumerate() {
        let expected = (0..32).filter(|other| other % 3 == lane % 3).fold(0, |lanes, other| lanes | 1 << other);
        assert_eq!(got.0, expected);
    }
    assert!(results(&format!("{third}match.all.sync.b32 %r0|%p0, %r1, -1;"), 32).iter().all(|&got| got == (0, false)));
    assert!(results("match.all.sync.b64 %r0|%p0, 5, -1;", 31).iter().all(|&got| got == (0x7fff_ffff, true)));
    let lanes: Vec<u32> = (0..32).map(|lane| (lane * 7) ^ 0x8000_0001).collect();
    let signed = || lanes.iter().map(|&value| value as i32);
    for (reduce, expected) in [
        ("add.u32", lanes.iter().fold(0_u32, |sum, value| sum.wrapping_add(*value))),
        ("min.u32", *lanes.iter().min().unwrap()),
        ("max.s32", signed().max().unwrap() as u32),
        ("min.s32", signed().min().unwrap() as u32),
        ("xor.b32", lanes.iter().fold(0, |all, value| all ^ value)),
        ("and.b32", lanes.iter().fold(u32::MAX, |all, value| all & value)),
        ("or.b32", lanes.iter().fold(0, |all, value| all | value)),
    ] {
        let body = format!("mul.lo.u32 %r1, tid, 7;\nxor.b32 %r1, %r1, 0x80000001;\nredux.sync.{reduce} %r0, %r1, -1;");
        assert!(results(&body, 32).iter().all(|&(got, _)| got == expected), "{reduce}");
    }
}

#[test]
fn those_that_are_at_the_same_place_are_active() {
    let body = "setp.lt.u32 %p1, tid, 8;\n@%p1 bra FEW;\nactivemask.b32 %r0;\nbra END;\nFEW:\nactivemask.b32 %r0;\nEND:\nbar.warp.sync -1;";
    let got = results(body, 32);
    assert_eq!((got[0].0, got[7].0, got[8].0, got[31].0), (0xff, 0xff, 0xffff_ff00, 0xffff_ff00));
}

#[test]
fn a_warp_that_cannot_meet_is_a_trap() {
    let outside = try_results("shfl.sync.idx.b32 %r0, tid, 0, 31, 1;", 2).unwrap_err();
    assert!(outside.ends_with("thread (1, 0, 0): lane 1 is not in its own mask 0x00000001"), "{outside}");
    // Lane 0 goes another way, and waits at another operation.
    let body = "setp.eq.u32 %p1, tid, 0;\n@%p1 bra OTHER;\nvote.sync.ballot.b32 %r0, %p1, -1;\nbra END;\nOTHER:\nbar.warp.sync -1;\nEND:";
    let apart = try_results(body, 2).unwrap_err();
    assert!(apart.contains("bar.warp.sync"), "{apart}");
    assert!(apart.ends_with("it waits for lanes that wait for others"), "{apart}");
    let body = "setp.eq.u32 %p1, tid, 1;\n@%p1 bra OTHER;\nvote.sync.ballot.b32 %r0, %p1, -1;\nOTHER:\nbar.sync 0;";
    let apart = try_results(body, 2).unwrap_err();
    assert!(
        apart.contains("it waits for a lane that does not come: thread (1, 0, 0) is at a barrier, line 17"),
        "{apart}"
    );
    // Whoever has left is not waited for.
    assert_eq!(results("setp.eq.u32 %p1, tid, 1;\n@%p1 exit;\nvote.sync.ballot.b32 %r0, !%p1, -1;", 3)[0].0, 0b101);
}

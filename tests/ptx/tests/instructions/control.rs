//! Jumps, calls, guards and special registers.

use purlin_ptx::Launch;

use crate::support::{Arguments, Device, line, module, run, text_of, try_run};

/// Runs a body whose result is in `%r0`, with one parameter `n`; what each of `threads` has.
fn results(before: &str, body: &str, n: u32, threads: u32) -> Vec<u32> {
    let body = format!(
        ".reg .pred %p<9>;\n.reg .b32 %r<19>, tid;\n.reg .b64 %rd<9>, out, at;\nld.param.u64 out, [k_out];
        ld.param.u32 %r1, [k_n];\nmov.u32 tid, %tid.x;\n{body}
        mul.wide.u32 at, tid, 4;\nadd.s64 out, out, at;\nst.global.u32 [out], %r0;"
    );
    let module = module(&text_of(before, ".param .u64 k_out, .param .u32 k_n", &body));
    let device = Device::of(&module);
    let out = device.put(&vec![0; 4 * threads as usize]);
    run(&module, "k", line(1, threads), &Arguments::default().pointer(out).u32(n), &device);
    device.u32(out)
}

#[test]
fn guards_and_loops_go_where_predicates_say() {
    let body = "mov.u32 %r0, 0;\nLOOP:\nsetp.eq.u32 %p0, %r1, 0;\n@%p0 bra.uni DONE;\nadd.u32 %r0, %r0, %r1;
        sub.u32 %r1, %r1, 1;\nbra LOOP;\nDONE:\n@!%p0 mov.u32 %r0, 99;\n@%p0 add.u32 %r0, %r0, 1;";
    assert_eq!(results("", body, 10, 1), [56]);
}

#[test]
fn tables_of_jumps_are_indexed() {
    let body = "rem.u32 %r2, tid, 3;\nTABLE: .branchtargets A, B, C;\nbrx.idx %r2, TABLE;
        A: mov.u32 %r0, 10;\nbra D;\nB: mov.u32 %r0, 11;\nbra D;\nC: mov.u32 %r0, 12;\nD:";
    assert_eq!(results("", body, 0, 5), [10, 11, 12, 10, 11]);
    let body = body.replace("rem.u32 %r2, tid, 3", "add.u32 %r2, tid, 3");
    let text = text_of("", "", &format!(".reg .b32 tid, %r<3>;\nmov.u32 tid, 0;\n{body}\nret;"));
    let trap = try_run(&module(&text), "k", line(1, 1), &Arguments::default(), &Device::default()).unwrap_err();
    assert_eq!(
        trap.to_string(),
        "kernel k, line 11, brx.idx, block (0, 0, 0), thread (0, 0, 0): entry 3 of a table of 3"
    );
}

#[test]
fn functions_take_and_give_what_they_say() {
    let before = ".func (.param .align 8 .b8 s[16]) swap (.param .b32 a, .param .align 8 .b8 b[8]);
        .func (.param .align 8 .b8 s[16]) swap (.param .b32 a, .param .align 8 .b8 b[8])
        {\n.reg .b32 %r<3>;\nld.param.u32 %r0, [a];\nld.param.v2.u32 {%r1, %r2}, [b];\nst.param.b32 [s+8], %r2;
        st.param.v2.b32 [s], {%r0, %r1};\nret;\n}
        .func quiet { .local .b32 x; .reg .b32 %r0; mov.u32 %r0, 5; st.local.u32 [x], %r0; @%p bra L; L: ret; }"
        .replace("@%p bra L; L: ", "");
    let body = "{ .param .b32 p0; .param .align 8 .b8 p1[8]; .param .align 8 .b8 q1[16];
        st.param.b32 [p0], 7; st.param.b32 [p1], tid; st.param.b32 [p1+4], %r1;
        call.uni (q1), swap, (p0, p1);
        ld.param.b32 %r2, [q1+8]; ld.param.v2.b32 {%r3, %r4}, [q1]; }
        call quiet;
        shl.b32 %r2, %r2, 16; shl.b32 %r3, %r3, 8; or.b32 %r0, %r2, %r3; or.b32 %r0, %r0, %r4;";
    assert_eq!(results(&before, body, 3, 2), [0x0003_0700, 0x0003_0701]);
}

#[test]
fn local_memory_is_each_call_s_own() {
    let before = ".func (.param .b32 r) sum (.param .b32 n)\n{\n.reg .pred p;\n.reg .b32 n0, x, y;\n.local .b32 kept;
        ld.param.u32 n0, [n];\nst.local.u32 [kept], n0;\nmov.u32 x, 0;\nsetp.eq.u32 p, n0, 0;\n@p bra END;
        { .param .b32 a; .param .b32 b; sub.u32 n0, n0, 1; st.param.b32 [a], n0; call (b), sum, (a); ld.param.b32 x, [b]; }
        END:\nld.local.u32 y, [kept];\nadd.u32 x, x, y;\nst.param.b32 [r], x;\n}";
    let body = "{ .param .b32 a; .param .b32 b; st.param.b32 [a], %r1; call (b), sum, (a); ld.param.b32 %r0, [b]; }";
    assert_eq!(results(before, body, 100, 3), [5050; 3]);
}

#[test]
fn exits_end_a_thread_from_within_a_function() {
    let before = ".func leave { exit; }";
    let body = "mov.u32 %r0, 1;\nsetp.eq.u32 %p0, tid, 1;\n@%p0 call leave;";
    assert_eq!(results(before, body, 0, 3), [1, 0, 1]);
}

#[test]
fn names_of_inner_brackets_hide_those_of_outer_ones() {
    let body = "{ .reg .b32 %r<2>; mov.u32 %r1, 5; { .reg .b32 tid; mov.u32 tid, 6; add.u32 %r1, %r1, tid; } st.global.u32 [out], %r1; }
        ld.global.u32 %r2, [out];\nadd.u32 %r0, %r2, %r1;";
    assert_eq!(results("", body, 20, 1), [31]);
}

#[test]
fn threads_know_where_they_are() {
    let names =
        ["tid.x", "tid.y", "tid.z", "ctaid.x", "ctaid.y", "ctaid.z", "laneid", "warpid", "lanemask_lt", "lanemask_ge"];
    let mut body = ".reg .b32 %r<9>, n;\n.reg .b64 out, at;\nld.param.u64 out, [k_out];
        mov.u32 %r0, %ctaid.z;\nmov.u32 %r1, %nctaid.y;\nmov.u32 %r2, %ctaid.y;\nmad.lo.u32 %r0, %r0, %r1, %r2;
        mov.u32 %r1, %nctaid.x;\nmov.u32 %r2, %ctaid.x;\nmad.lo.u32 %r0, %r0, %r1, %r2;
        mov.u32 %r1, %ntid.z;\nmov.u32 %r2, %tid.z;\nmad.lo.u32 %r0, %r0, %r1, %r2;
        mov.u32 %r1, %ntid.y;\nmov.u32 %r2, %tid.y;\nmad.lo.u32 %r0, %r0, %r1, %r2;
        mov.u32 %r1, %ntid.x;\nmov.u32 %r2, %tid.x;\nmad.lo.u32 %r0, %r0, %r1, %r2;
        mul.wide.u32 at, %r0, 40;\nadd.s64 out, out, at;\n"
        .to_owned();
    for (index, name) in names.iter().enumerate() {
        body += &format!("mov.u32 n, %{name};\nst.global.u32 [out+{}], n;\n", 4 * index);
    }
    let module = module(&text_of("", ".param .u64 k_out", &body));
    let ([gx, gy, gz], [bx, by, bz]) = ([2, 3, 2], [5, 3, 4]);
    let device = Device::default();
    let total = gx * gy * gz * bx * by * bz;
    let out = device.put(&vec![0; 40 * total as usize]);
    let launch = Launch { grid: [gx, gy, gz], block: [bx, by, bz], dynamic_shared_bytes: 0 };
    run(&module, "k", launch, &Arguments::default().pointer(out), &device);
    for (number, row) in (0..).zip(device.u32(out).chunks(10)) {
        let (thread, block) = (number % (bx * by * bz), number / (bx * by * bz));
        let lane = thread % 32;
        let expected = [
            thread % bx,
            thread / bx % by,
            thread / bx / by,
            block % gx,
            block / gx % gy,
            block / gx / gy,
            lane,
            thread / 32,
            (1 << lane) - 1,
            u32::MAX << lane,
        ];
        assert_eq!(row, expected);
    }
}

//! What ends a kernel.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use purlin_ptx::Trap;

use crate::support::{Arguments, Device, line, module, text_of, try_run};

const REGISTERS: &str = ".reg .pred %p<9>;\n.reg .b32 %r<9>;\n.reg .b64 %rd<9>, out;\nld.param.u64 out, [k_out];";

/// The trap of a body, in a grid of two blocks of two threads, of 64 bytes of memory.
fn trap(before: &str, body: &str) -> Trap {
    let module = module(&text_of(before, ".param .u64 k_out", &format!("{REGISTERS}\n{body}")));
    let device = Device::of(&module);
    let out = device.put(&[0; 64]);
    try_run(&module, "k", line(2, 2), &Arguments::default().pointer(out), &device).unwrap_err()
}

#[test]
fn a_trap_says_where_it_is() {
    let body =
        "mov.u32 %r0, %ctaid.x;\nmov.u32 %r1, %tid.x;\nand.b32 %r0, %r0, %r1;\nsetp.eq.u32 %p0, %r0, 1;\n@%p0 trap;";
    let trap = trap("", body);
    assert!(matches!(trap, Trap::Trapped(_)));
    assert_eq!(trap.to_string(), "kernel k, line 15, trap, block (1, 0, 0), thread (1, 0, 0): trap");
    let place = trap.place().unwrap();
    assert_eq!((place.line, place.block, place.thread), (15, [1, 0, 0], [1, 0, 0]));
}

#[test]
fn wild_addresses_are_the_memory_s_to_refuse() {
    let at = "kernel k, line 11, ";
    let by = "block (0, 0, 0), thread (0, 0, 0): ";
    let rows = [
        (
            "",
            "ld.global.u32 %r0, [out+64];",
            "ld.global.u32, ",
            "reads 4 bytes at 0x700000000040: 64 bytes into an allocation of 64",
        ),
        (
            "",
            "ld.global.v4.u32 {%r0, %r1, %r2, %r3}, [out+64];",
            "ld.global.v4.u32, ",
            "reads 16 bytes at 0x700000000040: 64 bytes into an allocation of 64",
        ),
        ("", "st.global.u8 [out+-1], 1;", "st.global.u8, ", "writes 1 bytes at 0x6fffffffffff: nothing is there"),
        (
            "",
            "atom.global.add.u32 %r0, [out+96], 1;",
            "atom.global.add.u32, ",
            "writes 4 bytes at 0x700000000060: 96 bytes into an allocation of 64",
        ),
        ("", "mov.u64 %rd0, 0; ld.u32 %r0, [%rd0];", "ld.u32, ", "reads 4 bytes at 0x0: nothing is there"),
        (
            ".shared .b8 near[8];",
            "ld.shared.u32 %r0, [near+8];",
            "ld.shared.u32, ",
            "reads 4 bytes at 0x8: there are 8 bytes of shared memory",
        ),
        (
            "",
            "mov.u32 %r0, 0; st.shared.u64 [%r0], 1;",
            "st.shared.u64, ",
            "writes 8 bytes at 0x0: there are 0 bytes of shared memory",
        ),
        (
            "",
            ".local .b64 mine; st.local.u32 [mine+8], 1;",
            "st.local.u32, ",
            "writes 4 bytes at 0x8: there are 8 bytes of local memory",
        ),
        (
            "",
            "ld.param.u32 %r0, [k_out+8];",
            "ld.param.u32, ",
            "reads 4 bytes at 0x8: there are 8 bytes of parameter memory",
        ),
        (
            "",
            "cvta.to.shared.u64 %rd0, out; ld.shared.u32 %r0, [%rd0];",
            "ld.shared.u32, ",
            "reads 4 bytes at 0x1000700000000000",
        ),
    ];
    for (before, body, instruction, expected) in rows {
        let trap = trap(before, body);
        assert!(matches!(trap, Trap::Memory { .. }), "{trap}");
        let (said, expected) = (trap.to_string(), format!("{at}{instruction}{by}{expected}"));
        assert!(said.starts_with(&expected.replace("0x1000700000000000", "0x")), "{said}");
    }
}

#[test]
fn addresses_are_multiples_of_what_is_accessed() {
    for (before, body, alignment) in [
        ("", "ld.global.u16 %r0, [out+1];", 2),
        ("", "st.global.u64 [out+4], 1;", 8),
        ("", "ld.global.v4.u32 {%r0, %r1, %r2, %r3}, [out+8];", 16),
        ("", "red.global.add.u64 [out+4], 1;", 8),
        (".shared .align 8 .b8 near[16];", "ld.shared.v2.u32 {%r0, %r1}, [near+4];", 8),
        ("", ".local .align 8 .b8 mine[16]; ld.local.u32 %r0, [mine+2];", 4),
        ("", "ld.param.u32 %r0, [k_out+2];", 4),
    ] {
        let trap = trap(before, body);
        assert!(matches!(trap, Trap::Misaligned { alignment: found, .. } if found == alignment), "{trap}");
        assert!(trap.to_string().ends_with(&format!("is no multiple of {alignment}")), "{trap}");
    }
}

#[test]
fn calls_do_not_nest_without_end() {
    let before = ".func f { call f; ret; }";
    let deep = trap(before, "call f;");
    assert!(matches!(deep, Trap::Stack(_)), "{deep}");
    assert!(deep.to_string().starts_with("kernel k, function f, line 4, call, "), "{deep}");
    let wide = trap(".func f { .local .b8 mine[100000]; call f; ret; }", "call f;");
    assert!(matches!(wide, Trap::Stack(_)), "{wide}");
}

#[test]
fn the_stacks_of_a_block_are_bounded() {
    // 1024 threads that wait for each other, of 512 KiB each and more.
    let body = ".local .b8 mine[524288];\nbar.sync 0;";
    let module = module(&text_of("", "", body));
    let trap = try_run(&module, "k", line(1, 1024), &Arguments::default(), &Device::default()).unwrap_err();
    assert!(matches!(trap, Trap::Stack(_)), "{trap}");
    assert!(try_run(&module, "k", line(9, 512), &Arguments::default(), &Device::default()).is_ok());
}

#[test]
fn a_kernel_that_never_ends_is_stopped() {
    for body in ["L: bra L;", "L: call f; bra L;", "T: .branchtargets L; L: brx.idx 0, T;", "L: bar.sync 0; bra L;"] {
        let module = module(&text_of(".func f { ret; }", "", body));
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let running = scope.spawn(|| {
                let (kernel, device) = (module.kernel("k").unwrap(), Device::default());
                kernel.run(&line(1, 1), &[], &|_| None, &device, &stop)
            });
            std::thread::sleep(Duration::from_millis(2));
            stop.store(true, Ordering::Relaxed);
            assert_eq!(running.join().unwrap(), Err(Trap::Stopped), "{body}");
        });
    }
}

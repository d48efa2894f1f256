//! `atom` and `red`, in global and shared memory.

use crate::support::{Arguments, Device, line, module, run, text_of};

/// What `code` leaves at `near` and in `d` of `bits`, where `before` was there.
fn both(code: &str, bits: u32, before: u64, space: &str) -> (u64, u64) {
    let body = format!(
        ".reg .b{bits} d, old;\n.reg .b64 out, at;\nld.param.u64 out, [k_out];\nmov.b{bits} d, 0;\nmov.b{bits} old, {before};
        {}\nst.{space}.b{bits} [at], old;\n{code}\nld.{space}.b{bits} old, [at];\nst.global.b{bits} [out], old;
        st.global.b{bits} [out+8], d;",
        if space == "shared" { "mov.u64 at, near;" } else { "add.u64 at, out, 16;" }
    );
    let module = module(&text_of(".shared .align 8 .b8 near[8];", ".param .u64 k_out", &body));
    let device = Device::default();
    let out = device.put(&[0; 24]);
    run(&module, "k", line(1, 1), &Arguments::default().pointer(out), &device);
    let words = device.u64(out);
    (words[0], words[1])
}

#[test]
fn operations_replace_what_was_there() {
    let one = u64::from(1.0_f32.to_bits());
    let rows: [(&str, &str, u32, u64, u64); 24] = [
        ("add.u32", "5", 32, 0xffff_ffff, 4),
        ("add.s32", "-1", 32, 0, 0xffff_ffff),
        ("add.u64", "5", 64, u64::MAX, 4),
        ("min.s32", "-2", 32, 1, 0xffff_fffe),
        ("min.u32", "-2", 32, 1, 1),
        ("max.s64", "-2", 64, 1, 1),
        ("max.u64", "-2", 64, 1, u64::MAX - 1),
        ("and.b32", "0xff0", 32, 0xff, 0xf0),
        ("or.b32", "0xff0", 32, 0xff, 0xfff),
        ("xor.b64", "0xff0", 64, 0xff, 0xf0f),
        ("inc.u32", "7", 32, 6, 7),
        ("inc.u32", "7", 32, 7, 0),
        ("dec.u32", "7", 32, 0, 7),
        ("dec.u32", "7", 32, 9, 7),
        ("dec.u32", "7", 32, 5, 4),
        ("exch.b32", "9", 32, 1, 9),
        ("exch.b64", "9", 64, 1, 9),
        ("cas.b32", "1, 9", 32, 1, 9),
        ("cas.b32", "2, 9", 32, 1, 1),
        ("cas.b64", "1, 9", 64, 1, 9),
        ("cas.b16", "1, 9", 16, 1, 9),
        ("add.f32", "0f3F800000", 32, one, 0x4000_0000),
        ("add.f64", "0d3FF0000000000000", 64, 1.0_f64.to_bits(), 2.0_f64.to_bits()),
        ("add.noftz.f16x2", "d", 32, 0x3c00_4000, 0x3c00_4000),
    ];
    for space in ["global", "shared"] {
        for (operation, operands, bits, before, after) in rows {
            let got = both(&format!("atom.{space}.{operation} d, [at], {operands};"), bits, before, space);
            assert_eq!(got, (after, before), "atom.{space}.{operation}");
            let hinted = format!("atom.acq_rel.gpu.{space}.{operation} d, [at], {operands};");
            assert_eq!(both(&hinted, bits, before, space), (after, before), "{hinted}");
            if !operation.starts_with("cas") && !operation.starts_with("exch") {
                let got = both(&format!("red.relaxed.sys.{space}.{operation} [at], {operands};"), bits, before, space);
                assert_eq!(got, (after, 0), "red.{space}.{operation}");
            }
        }
    }
}

#[test]
fn no_addition_is_lost_between_blocks_and_threads() {
    let body =
        ".reg .b64 out;\nld.param.u64 out, [k_out];\nred.global.add.u32 [out], 3;\natom.shared.add.u32 _, [near], 1;";
    let module = module(&text_of(".shared .align 8 .b8 near[8];", ".param .u64 k_out", body));
    let device = Device::default();
    let out = device.put(&[0; 4]);
    run(&module, "k", line(7, 100), &Arguments::default().pointer(out), &device);
    assert_eq!(device.u32(out), [2100]);
}

//! Loads and stores of all widths and memories, and addresses.

use crate::support::{Arguments, Device, line, module, run, text_of};

/// Runs `code` with `in` at 64 bytes 0x80, 0x81, ... and `out` at as many zeros; what `out` has then.
fn bytes_of(before: &str, code: &str) -> Vec<u8> {
    let head = ".param .u64 k_out, .param .u64 k_in, .param .align 8 .b8 k_more[24]";
    let body = format!(
        ".reg .pred %p<4>;\n.reg .b16 %rs<9>;\n.reg .b32 %r<9>;\n.reg .b64 %rd<9>, out, in;\n.reg .f32 %f<9>;\n
        ld.param.u64 out, [k_out];\nld.param.u64 in, [k_in];\n{code}"
    );
    let module = module(&text_of(before, head, &body));
    let device = Device::of(&module);
    let (out, input) = (device.put(&[0; 64]), device.put(&(0x80..0xc0).collect::<Vec<u8>>()));
    let more: Vec<u8> = (1..=24).collect();
    let arguments = Arguments::default().pointer(out).pointer(input).aligned(&more, 8);
    run(&module, "k", line(1, 1), &arguments, &device);
    device.bytes(out)
}

fn words_of(before: &str, code: &str) -> Vec<u32> {
    bytes_of(before, code).chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
}

#[test]
fn what_is_narrow_is_extended_to_its_register() {
    let code = "ld.global.u8 %r0, [in+1];\nst.global.u32 [out], %r0;
        ld.global.s8 %r1, [in+1];\nst.global.u32 [out+4], %r1;
        ld.global.s8 %rs1, [in+2];\nst.global.u16 [out+8], %rs1;
        ld.global.s16 %r2, [in+2];\nst.global.u32 [out+12], %r2;
        ld.global.b8 %rd1, [in+3];\nst.global.u64 [out+16], %rd1;
        ld.global.s32 %rd2, [in+4];\nst.global.u64 [out+24], %rd2;
        ld.global.s8 %r3, [in];\nst.global.u8 [out+32], %r3;";
    let words = words_of("", code);
    assert_eq!(words[..4], [0x81, 0xffff_ff81, 0xff82, 0xffff_8382]);
    assert_eq!(words[4..9], [0x83, 0, 0x8786_8584, 0xffff_ffff, 0x80]);
}

#[test]
fn vectors_are_one_access() {
    let code = "ld.global.v4.u32 {%r0, %r1, _, %r3}, [in];\nst.global.v2.u32 [out], {%r3, %r0};
        ld.global.nc.v2.u64 {%rd0, %rd1}, [in+16];\nst.global.v2.b64 [out+16], {%rd1, %rd0};
        ld.global.v4.u8 {%rs0, %rs1, %rs2, %rs3}, [in+4];\nst.global.v4.u8 [out+32], {%rs3, %rs2, %rs1, 7};";
    let bytes = bytes_of("", code);
    assert_eq!(bytes[..8], [0x8c, 0x8d, 0x8e, 0x8f, 0x80, 0x81, 0x82, 0x83]);
    assert_eq!(
        bytes[16..32],
        [0x98, 0x99, 0x9a, 0x9b, 0x9c, 0x9d, 0x9e, 0x9f, 0x90, 0x91, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97]
    );
    assert_eq!(bytes[32..36], [0x87, 0x86, 0x85, 7]);
}

#[test]
fn hints_of_caches_and_order_change_nothing() {
    for load in [
        "ld.volatile.global",
        "ld.global.ca",
        "ld.relaxed.gpu.global",
        "ld.acquire.sys.global",
        "ld.global.nc.L1::no_allocate",
    ] {
        let words = words_of(
            "",
            &format!("{load}.u32 %r0, [in];\nst.global.wt.u32 [out], %r0;\nmembar.gl;\nfence.acq_rel.gpu;"),
        );
        assert_eq!(words[0], 0x8382_8180, "{load}");
    }
    assert_eq!(words_of("", "prefetch.global.L2 [in];\nst.release.gpu.global.u32 [out], 5;")[0], 5);
}

#[test]
fn memories_are_told_apart_by_generic_addresses() {
    let before = ".shared .align 8 .b8 near[16];\n.global .align 4 .u32 far[2] = {11, 12};\n.const .align 4 .b8 fixed[4] = {1, 2};";
    let code = ".local .align 4 .b8 mine[8];
        mov.u64 %rd0, mine;\ncvta.local.u64 %rd1, %rd0;\nst.u32 [%rd1+4], 21;\nld.local.u32 %r0, [mine+4];
        st.global.u32 [out], %r0;
        mov.u32 %r1, near;\ncvt.u64.u32 %rd2, %r1;\ncvta.shared.u64 %rd2, %rd2;\nst.u32 [%rd2+8], 22;
        ld.shared.u32 %r0, [%r1+8];\nst.global.u32 [out+4], %r0;
        cvta.global.u64 %rd3, far;\nld.u32 %r0, [%rd3+4];\nst.global.u32 [out+8], %r0;
        cvta.to.shared.u64 %rd4, %rd2;\nld.shared.u32 %r0, [%rd4+8];\nst.global.u32 [out+12], %r0;
        ld.const.u32 %r0, [fixed];\nst.global.u32 [out+16], %r0;
        isspacep.shared %p0, %rd2;\nisspacep.local %p1, %rd2;\nisspacep.global %p2, in;\nisspacep.local %p3, %rd1;
        selp.u32 %r0, 1, 0, %p0;\nselp.u32 %r1, 1, 0, %p1;\nselp.u32 %r2, 1, 0, %p2;\nselp.u32 %r3, 1, 0, %p3;
        st.global.v4.u32 [out+32], {%r0, %r1, %r2, %r3};
        ld.global.u32 %r0, [far];\nst.global.u32 [out+48], %r0;
        ld.u32 %r0, [far+4];\nst.u32 [out+52], %r0;";
    let words = words_of(before, code);
    assert_eq!(words[..5], [21, 22, 12, 22, 0x0201]);
    assert_eq!(words[8..14], [1, 0, 1, 1, 11, 12]);
}

#[test]
fn parameters_have_addresses() {
    let code = "mov.b64 %rd0, k_more;\nld.param.u32 %r0, [%rd0+4];\nst.global.u32 [out], %r0;
        ld.param.v2.u32 {%r1, %r2}, [k_more+8];\nst.global.v2.u32 [out+8], {%r1, %r2};
        cvta.param.u64 %rd1, %rd0;\nld.u8 %r3, [%rd1+23];\nst.global.u32 [out+4], %r3;";
    assert_eq!(words_of("", code)[..4], [0x0807_0605, 24, 0x0c0b_0a09, 0x100f_0e0d]);
}

#[test]
fn what_no_one_has_written_is_the_same_each_time() {
    let before = ".shared .align 4 .b8 near[4];";
    let code = ".local .align 4 .b8 mine[4];
        ld.shared.u32 %r0, [near];\nld.local.u32 %r1, [mine];\nst.global.v4.u32 [out], {%r0, %r1, %r5, %r0};";
    assert_eq!(words_of(before, code)[..4], [0xcbcb_cbcb; 4]);
}

#[test]
fn registers_are_taken_apart_and_put_together() {
    let code = "mov.u64 %rd0, 0x8877665544332211;\nmov.b64 {%r0, _}, %rd0;\nmov.b64 {%rs0, %rs1, %rs2, %rs3}, %rd0;
        st.global.u32 [out], %r0;\nmov.b32 %r1, {%rs3, %rs0};\nst.global.u32 [out+4], %r1;
        mov.b64 %rd1, {%rs3, %rs2, %rs1, %rs0};\nst.global.u64 [out+8], %rd1;\nmov.b32 {_, %rs4}, %r0;\nst.global.u16 [out+16], %rs4;";
    assert_eq!(words_of("", code)[..5], [0x4433_2211, 0x2211_8877, 0x6655_8877, 0x2211_4433, 0x4433]);
}

#[test]
fn variables_begin_with_what_the_text_says() {
    let text = text_of(
        ".const .align 8 .f64 halves[2] = {0d3FE0000000000000, 1.5};\n.global .s16 small[3] = {-1, 2};\n.global .b8 bare[5];",
        "",
        "ret;",
    );
    let module = module(&text);
    let [halves, small, bare] = module.globals() else { panic!("there are three") };
    assert_eq!((halves.name(), halves.size(), halves.align(), halves.is_constant()), ("halves", 16, 8, true));
    assert_eq!(halves.initial(), [0.5_f64.to_le_bytes(), 1.5_f64.to_le_bytes()].concat());
    assert_eq!((small.size(), small.align(), small.initial()), (6, 2, [255, 255, 2, 0].as_slice()));
    assert_eq!((bare.size(), bare.initial().len(), bare.is_constant()), (5, 0, false));
}

//! Texts that are not understood: by line and by name.

use purlin_ptx::Module;

use crate::support::text_of;

/// What is said of a text.
fn refusal(text: &str) -> String {
    match Module::parse(text) {
        Ok(_) => panic!("this was understood: {text}"),
        Err(refusal) => refusal.to_string(),
    }
}

const REGISTERS: &str = ".reg .pred %p<9>; .reg .b16 %rs<9>; .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<9>;";

/// What is said of an instruction in a kernel; without the line, which is the eighth.
fn of(instruction: &str) -> String {
    let said = refusal(&text_of(".shared .b32 near;\n", "", &format!("{REGISTERS}\n{instruction}\nret;")));
    // What is missing is missed where the next word stands.
    let stripped = said.strip_prefix("line 9: ").or_else(|| said.strip_prefix("line 10: "));
    stripped.unwrap_or_else(|| panic!("another line: {said}")).to_owned()
}

#[test]
fn instructions_are_refused_by_name() {
    let unknown = "wmma.load.a.sync.aligned.row.m16n16k16.f16 mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
        ldmatrix.sync.aligned.m8n8.x4.shared.b16 cp.async.ca.shared.global cp.async.bulk.commit_group vabsdiff4.u32.u32.u32
        mbarrier.init.shared.b64 tex.2d.v4.f32.s32 suld.b.1d.v2.b32.trap surf alloca stacksave.u64 setmaxnreg.inc.sync.aligned.u32
        griddepcontrol.wait elect.sync wgmma.fence.sync.aligned tcgen05.alloc mul24.lo.u32 fns.b32 szext.wrap.u32 bmsk.clamp.b32
        brkpt pmevent discard.global.L2 applypriority.global.L2::evict_normal getctarank.u64 mapa.u64 multimem.red.add.f32
        dp2a.lo.u32.u32 createpolicy.fractional.L2::evict_last.b64 nonsense.f32 Add.u32";
    for name in unknown.split_whitespace() {
        assert_eq!(of(&format!("{name} %r1, %r2;")), format!("{name}: this instruction is not known"));
    }
}

#[test]
fn modifiers_and_types_are_refused_by_name() {
    let rows = [
        ("add.rq.f32 %f1, %f2, %f3;", "add.rq.f32: the modifier .rq is not known here"),
        ("add.cc.sat.s32 %r1, %r2, %r3;", "add.cc.sat.s32: the modifier .sat is not known here"),
        ("ld.global.cx.u32 %r1, [%rd1];", "ld.global.cx.u32: the modifier .cx is not known here"),
        (
            "ld.global.L2::cache_hint.u32 %r1, [%rd1], %rd2;",
            "ld.global.L2::cache_hint.u32: the modifier .L2::cache_hint is not known here",
        ),
        (
            "ld.shared::cluster.u32 %r1, [%rd1];",
            "ld.shared::cluster.u32: the modifier .shared::cluster is not known here",
        ),
        ("ld.global.v8.u32 %r1, [%rd1];", "ld.global.v8.u32: the modifier .v8 is not known here"),
        ("ld.global.v4.u64 {%rd1, %rd2, %rd3, %rd4}, [%rd1];", "ld.global.v4.u64: this type is not known here"),
        ("ld.global.f16 %rs1, [%rd1];", "ld.global.f16: this type is not known here"),
        ("st.const.u32 [%rd1], %r1;", "st.const.u32: constant memory cannot be written"),
        ("add.u8 %rs1, %rs2, %rs3;", "add.u8: this type is not known here"),
        ("add.f16x3 %r1, %r2, %r3;", "add.f16x3: it has no type that is known"),
        ("mul.u32 %r1, %r2, %r3;", "mul.u32: the modifier .u32 is not known here"),
        ("mul.wide.u64 %rd1, %rd2, %rd3;", "mul.wide.u64: this type is not known here"),
        ("fma.f32 %f1, %f2, %f3, %f4;", "fma.f32: the modifier .f32 is not known here"),
        ("div.f32 %f1, %f2, %f3;", "div.f32: the modifier .f32 is not known here"),
        ("add.rz.f64 %rd1, %rd2, %rd3;", "add.rz.f64: of f64, only what is rounded to the nearest is known"),
        ("shl.u32 %r1, %r2, 3;", "shl.u32: this type is not known here"),
        ("setp.ltu.u32 %p1, %r1, %r2;", "setp.ltu.u32: this type is not known here"),
        ("setp.lt.b32 %p1, %r1, %r2;", "setp.lt.b32: this type is not known here"),
        ("cvt.f32.s32 %f1, %r1;", "cvt.f32.s32: this rounding is not known between these types"),
        ("cvt.rn.f64.f32 %rd1, %f1;", "cvt.rn.f64.f32: this rounding is not known between these types"),
        (
            "cvt.rz.satfinite.e4m3x2.f32 %rs1, %f1, %f2;",
            "cvt.rz.satfinite.e4m3x2.f32: the modifier .satfinite is not known here",
        ),
        ("atom.global.add.s64 %rd1, [%rd2];", "atom.global.add.s64: ',' was expected, not ';'"),
        ("atom.local.add.u32 %r1, [%r2], 1;", "atom.local.add.u32: it works on global and shared memory"),
        ("atom.global.xor.f32 %f1, [%rd1], %f2;", "atom.global.xor.f32: this type is not known here"),
        ("red.global.exch.b32 [%rd1], %r1;", "red.global.exch.b32: this is not known of this type"),
        ("shfl.up.b32 %r1, %r2, 1, 0;", "shfl.up.b32: the modifier .up is not known here"),
        ("vote.all.pred %p1, %p2;", "vote.all.pred: the modifier .all is not known here"),
        ("bar.sync.aligned 0;", "bar.sync.aligned: the modifier .aligned is not known here"),
        ("bar.arrive 0;", "bar.arrive: it has no number of threads"),
        ("fence.proxy.async;", "fence.proxy.async: the modifier .proxy is not known here"),
        ("cvta.u64 %rd1, %rd2;", "cvta.u64: the modifier .u64 is not known here"),
        ("lop3.b32 %r1, %r2, %r3, %r4, 256;", "lop3.b32: its table is a number from 0 to 255"),
    ];
    for (instruction, expected) in rows {
        assert_eq!(of(instruction), expected);
    }
}

#[test]
fn instructions_that_the_target_does_not_have_are_refused() {
    let rows = [
        ("redux.sync.add.u32 %r1, %r2, -1;", 80),
        ("cvt.rn.bf16.f32 %rs1, %f1;", 80),
        ("cvt.rna.tf32.f32 %r1, %f1;", 80),
        ("cvt.rn.f16x2.f32 %r1, %f1, %f2;", 80),
        ("cvt.rn.satfinite.e5m2x2.f32 %rs1, %f1, %f2;", 89),
        ("fma.rn.bf16 %rs1, %rs2, %rs3, %rs4;", 80),
        ("max.NaN.f32 %f1, %f2, %f3;", 80),
        ("tanh.approx.f32 %f1, %f2;", 75),
        ("match.any.sync.b32 %r1, %r2, -1;", 70),
        ("atom.global.cas.b16 %rs1, [%rd1], %rs2, %rs3;", 70),
        ("atom.global.add.f64 %rd1, [%rd2], %rd3;", 60),
        ("red.global.add.noftz.bf16x2 [%rd2], %r3;", 90),
        ("dp4a.u32.u32 %r1, %r2, %r3, %r4;", 61),
        ("nanosleep.u32 5;", 70),
        ("add.f16 %rs1, %rs2, %rs3;", 53),
    ];
    for (instruction, least) in rows {
        let text = text_of("", "", &format!("{REGISTERS}\n{instruction}\nret;"));
        let with = |target: u32| Module::parse(&text.replace("sm_90", &format!("sm_{target}")));
        assert!(with(least).is_ok(), "{instruction} {:?}", with(least));
        let said = with(least - 1).unwrap_err().to_string();
        assert!(said.ends_with(&format!("it needs sm_{least}, and the target is sm_{}", least - 1)), "{said}");
    }
}

#[test]
fn operands_are_refused_by_name() {
    let rows = [
        ("add.u32 %r1, %r2, %r9;", "add.u32: %r9 is not declared"),
        ("add.u32 %r1, %r2, %r01;", "add.u32: %r01 is not declared"),
        ("add.u32 %r1, %r2, %rd1;", "add.u32: %rd1 has 64 bits, not 32"),
        ("ld.global.u32 %rs1, [%rd1];", "ld.global.u32: %rs1 has 16 bits, not 32 to 64"),
        ("ld.global.f32 %rd1, [%rd1];", "ld.global.f32: %rd1 has 64 bits, not 32"),
        ("ld.global.u32 %r1, [%r2];", "ld.global.u32: %r2 has 32 bits, not 64"),
        ("ld.global.u32 %r1, [near];", "ld.global.u32: near is not in that memory"),
        ("ld.u32 %r1, [near];", "ld.u32: near is not in that memory"),
        (
            "ld.global.v2.u32 {%r1, %rd2}, [%rd1];",
            "ld.global.v2.u32: its registers are not as many, or not as wide, as its elements",
        ),
        (
            "ld.global.v2.u32 {%r1}, [%rd1];",
            "ld.global.v2.u32: its registers are not as many, or not as wide, as its elements",
        ),
        ("st.global.u32 [%rd1], {%r1, %r2};", "st.global.u32: its registers are not as many as its elements"),
        ("add.u32 %r1, %r2, near;", "add.u32: near is no register"),
        ("mov.u16 %rs1, near;", "mov.u16: this type is not known here"),
        ("mov.u32 %r1, %tid;", "mov.u32: %tid is not declared"),
        ("mov.u64 %rd1, %tid.x;", "mov.u64: %tid.x has 32 bits"),
        ("mov.u32 %r1, %clusterid.x;", "mov.u32: %clusterid.x is not declared"),
        ("mov.u32 %r1, %envreg0;", "mov.u32: %envreg0 is not declared"),
        ("mov.b64 %rd1, {%r1, %r2, %r3};", "mov.b64: its parts are more or fewer than the whole"),
        ("mov.u32 %r1, 4294967296;", "mov.u32: 4294967296 is no constant of this type"),
        ("mov.u32 %r1, -2147483649;", "mov.u32: -2147483649 is no constant of this type"),
        ("mov.f32 %f1, 1;", "mov.f32: 1 is no constant of this type"),
        ("mov.f32 %f1, 0d3FF0000000000000;", "mov.f32: 0d3FF0000000000000 is no constant of this type"),
        ("add.u32 %r1, %r2;", "add.u32: ',' was expected, not ';'"),
        ("add.u32 %r1, %r2, 1", "add.u32: ';' was expected, not 'ret'"),
        ("add.u32 1, %r2, 3;", "add.u32: a register was expected, not '1'"),
        ("@%r1 ret;", "@: %r1 has 32 bits, not 1"),
        ("bra NOWHERE;", "NOWHERE: there is no such label"),
        ("brx.idx %r1, NOWHERE;", "brx.idx: NOWHERE is no list of targets"),
        ("call unknown;", "call: unknown is not declared"),
        ("call k;", "call: k is no function that is known by its name"),
        ("call %rd1, (), proto;", "call: %rd1 is no function that is known by its name"),
        ("ld.u32 %r1, [0];", "ld.u32: an address was expected, not '0'"),
        ("add.s32 %r1, %f1, %r2;", "add.s32: %f1 is declared with another type"),
        ("mov.f32 %f1, -0f3F800000;", "mov.f32: -0f3F800000 is no constant of this type"),
        ("bar.sync 16;", "bar.sync: a block has the barriers 0 to 15"),
        ("bar.sync 0, 33;", "bar.sync: its threads are no whole warps"),
        (";", ".reg: an instruction was expected, not ';'"),
        ("isspacep.const %p1, %rd1;", "isspacep.const: constant and global memory are one here"),
    ];
    for (instruction, expected) in rows {
        assert_eq!(of(instruction), expected);
    }
}

#[test]
fn directives_are_refused_by_name() {
    let head = ".version 8.2\n.target sm_75\n.address_size 64\n";
    let rows = [
        ("", "line 1: text: it has no .version or no .target"),
        ("hello", "line 1: hello: a text begins with .version"),
        (".target sm_75", "line 1: .target: a text begins with .version"),
        (".version 8", "line 1: .version: 8 is no version"),
        (".version 8.2\n.version 8.3", "line 2: .version: this directive is not known here"),
        (
            ".version 8.2\n.target sm_75, texmode_independent",
            "line 2: .target: debug was expected, not 'texmode_independent'",
        ),
        (".version 8.2\n.target compute_75", "line 2: .target: compute_75 is no target that is known"),
        (".version 8.2\n.target sm_75\n.address_size 32", "line 3: .address_size: addresses have 64 bits here"),
        ("HEAD.global .texref t;", "line 4: .global: .texref is not known here"),
        ("HEAD.global .b8 a[];", "line 4: .global: a has no size, or is too large"),
        (
            "HEAD.global .b8 a[99999999999999999999];",
            "line 4: .global: a number of elements was expected, not '99999999999999999999'",
        ),
        ("HEAD.global .b64 a[4611686018427387904];", "line 4: .global: a has no size, or is too large"),
        ("HEAD.global .b8 a[4294967296][4294967296];", "line 4: .global: a is too large"),
        ("HEAD.global .align 3 .b8 a[8];", "line 4: .global: an alignment of 3 is not allowed"),
        ("HEAD.global .u8 a[2] = {1, 2, 3};", "line 4: .global: a has more values than elements"),
        ("HEAD.global .u8 a[2] = {256};", "line 4: .global: 256 is no constant of this type"),
        ("HEAD.global .u64 a = b;", "line 4: .global: an operand was expected, not 'b'"),
        ("HEAD.global .u8 a[2][2] = {{1, 2}, {3, 4}};", "line 4: .global: a: values in two brackets are not known"),
        ("HEAD.global .u8 a; .global .u8 a;", "line 4: .global: a is declared twice"),
        ("HEAD.shared .b8 a[1048577];", "line 4: .shared: a is too large"),
        ("HEAD.extern .global .b8 a[4];", "line 4: .extern: there is no other text that has it"),
        ("HEAD.alias f, g;", "line 4: .alias: this directive is not known here"),
        ("HEAD.section .nv.info { }", "line 4: .section: .nv.info is not known here"),
        ("HEAD.entry k() .explicitcluster { ret; }", "line 4: .explicitcluster: this directive is not known here"),
        ("HEAD.entry k(.param .b8 a[32765]) { ret; }", "line 4: .entry: parameters are too large"),
        ("HEAD.entry k(.param .b8 a[]) { ret; }", "line 4: .entry: a has no size"),
        ("HEAD.entry k(.param .u32 a, .param .u32 a) { ret; }", "line 4: .entry: a is declared twice"),
        ("HEAD.entry k(.reg .u32 a) { ret; }", "line 4: .entry: .param was expected, not '.reg'"),
        ("HEAD.entry k() { ret; } .entry k() { ret; }", "line 4: .entry: k is declared twice"),
        (
            "HEAD.func f(.param .u32 a); .func f(.param .u64 a) { ret; }",
            "line 4: .func: f was declared with other parameters",
        ),
        ("HEAD.func f { ret; } .func f { ret; }", "line 4: .func: f is defined twice"),
        ("HEAD.func (.reg .u32 r) f { ret; }", "line 4: .func: .param was expected, not '.reg'"),
        ("HEAD.extern .func f;\n.entry k() {\ncall f;\n}", "line 6: f: this function is called, but not defined"),
        ("HEAD.entry k() { .reg .b128 r; }", "line 4: .reg: .b128 is not known as a register's type"),
        ("HEAD.entry k() { .reg .v4 .b32 r; }", "line 4: .reg: .v4 is not known as a register's type"),
        ("HEAD.entry k() { .reg .b32 r, r; }", "line 4: .reg: r is declared twice"),
        ("HEAD.entry k() { .local .b8 a[524289]; }", "line 4: .local: a has no size, or is too large"),
        (
            "HEAD.entry k() { .local .align 256 .b8 a[8]; }",
            "line 4: .local: a has a larger alignment than there is here",
        ),
        ("HEAD.entry k() { .param .b8 a[262145]; }", "line 4: .param: a has no size, or is too large"),
        ("HEAD.shared .b8 a[];", "line 4: .shared: a has no size, and is not .extern"),
        ("HEAD.visible .target sm_75", "line 4: .target: a variable or a function was expected"),
        ("HEAD.visible", "line 4: .visible: a directive was expected, not 'the end of the text'"),
        ("HEAD.address_size 64", "line 4: .address_size: this directive is not known here"),
        ("HEAD.global .b8 a.b;", "line 4: .global: a.b cannot be a name"),
        ("HEAD.func (.param .b8 a, .param .b8 b) f;", "line 4: .func: it has more than one result"),
        ("HEAD// é", "line 4: text: PTX is ASCII, in comments, too"),
        (".version 8.2\n.target sm_8", "line 2: .target: sm_8 is no target that is known"),
        ("HEAD.entry k() { a.b: ret; }", "line 4: a.b: this cannot be a label"),
        ("HEAD.entry k() { L: L: ret; }", "line 4: L: this label stands twice"),
        ("HEAD.entry k() { p: .callprototype _ (); ret; }", "line 4: .callprototype: this directive is not known here"),
        ("HEAD.entry k() { .maxnreg 5; }", "line 4: .maxnreg: this directive is not known here"),
        ("HEAD.entry k() {", "line 4: .entry: an instruction was expected, not 'the end of the text'"),
        ("HEAD}", "line 4: .address_size: a directive was expected, not '}'"),
        ("HEAD/* never closed", "line 4: /*: a comment without an end"),
        ("HEAD.pragma \"never closed;\n", "line 4: \": a string without an end"),
        ("HEAD.entry k() { #; }", "line 4: .entry: an instruction was expected, not '#'"),
    ];
    for (text, expected) in rows {
        assert_eq!(refusal(&text.replace("HEAD", head)), expected, "{text}");
    }
}

#[test]
fn a_refusal_is_short_whatever_the_text() {
    let name = "x".repeat(1 << 20);
    for instruction in [
        name.clone(),
        format!("add.{name} %r1, %r2, %r3"),
        format!("mov.u32 %r1, {name}"),
        format!("add.u32 %r1, %r2, 1{name}"),
    ] {
        let said = refusal(&text_of("", "", &format!("{REGISTERS}\n{instruction};")));
        assert!(said.len() < 500, "{} bytes", said.len());
    }
    let deep = refusal(&text_of("", "", &"{".repeat(1 << 20)));
    assert!(deep.ends_with("brackets are nested too deeply"), "{deep}");
}

#[test]
fn registers_that_are_not_used_cost_nothing() {
    let body = ".reg .b64 %rd<18446744073709551615>;\nmov.u64 %rd18446744073709551614, 5;\nret;";
    assert!(Module::parse(&text_of("", "", body)).is_ok());
    let mut body = ".reg .b64 %rd<100000>;\n".to_owned();
    (0..70_000).for_each(|number| body += &format!("mov.u64 %rd{number}, 5;\n"));
    assert!(refusal(&text_of("", "", &body)).ends_with("a function uses more than 65536 registers"));
}

#[test]
fn what_only_tools_read_is_no_hindrance() {
    let text = "// A comment.\n.version 7.8 /* another\n*/ .target sm_86, debug\n.address_size 64\n.file 1 \"a.cu\", 123, 456\n
        .extern .func unused (.param .b64 a);\n.weak .func f(.param .b64 a) .noreturn { ret.uni; }
        .visible .entry k(.param .u64 .ptr .global .align 16 a, .param .align 4 .b8 b[12]) .maxntid 128, 2 .minnctapersm 4 .pragma \"x\";
        {\n.loc 1 2 3\n.pragma \"nounroll\";\n.loc 1 4 5, function_name $L__info+10, inlined_at 1 2 3\nret;\n}
        .section .debug_info { .b8 1, 2 .b64 $L__tmp0 .b32 .debug_abbrev+4 }\0 and more";
    let module = Module::parse(text).unwrap();
    let kernel = module.kernel("k").unwrap();
    assert_eq!((module.version(), module.target()), ((7, 8), "sm_86"));
    assert_eq!((kernel.max_threads(), kernel.parameter_bytes()), (Some(256), 20));
    let places: Vec<_> = kernel.parameters().iter().map(|p| (p.offset, p.size, p.align)).collect();
    assert_eq!(places, [(0, 8, 8), (8, 12, 4)]);
    assert_eq!(format!("{module:?}"), "Module { version: (7, 8), target: \"sm_86\", kernels: [\"k\"], .. }");
}

//! Launches that are refused before anything runs.

use purlin_ptx::{Launch, Trap};

use crate::support::{Arguments, Device, line, module, text_of, try_run};

fn said(text: &str, launch: Launch, bytes: usize) -> String {
    let trap = try_run(&module(text), "k", launch, &Arguments(vec![0; bytes]), &Device::default());
    let Err(Trap::Launch { kernel, why }) = trap else { panic!("{trap:?}") };
    assert_eq!(kernel, "k");
    why
}

#[test]
fn dimensions_and_sizes_are_checked() {
    let text = text_of(
        ".extern .shared .align 16 .b8 more[];\n.shared .b8 near[17];",
        ".param .u32 a, .param .u64 b",
        "
        .reg .b32 r;\nmov.u32 r, near;\nmov.u32 r, more;",
    );
    let launch = |grid, block, dynamic_shared_bytes| Launch { grid, block, dynamic_shared_bytes };
    let rows = [
        (launch([0, 1, 1], [1, 1, 1], 0), 16, "a grid of [0, 1, 1] blocks; each is 1 to [2147483647, 65535, 65535]"),
        (
            launch([1, 65536, 1], [1, 1, 1], 0),
            16,
            "a grid of [1, 65536, 1] blocks; each is 1 to [2147483647, 65535, 65535]",
        ),
        (launch([1, 1, 1], [0, 1, 1], 0), 16, "a block of [0, 1, 1] threads; there are 1 to 1024 in all"),
        (launch([1, 1, 1], [32, 32, 2], 0), 16, "a block of [32, 32, 2] threads; there are 1 to 1024 in all"),
        (launch([1, 1, 1], [1, 1, 65], 0), 16, "a block of [1, 1, 65] threads; there are 1 to 1024 in all"),
        (
            launch([1, 1, 1], [u32::MAX; 3], 0),
            16,
            "a block of [4294967295, 4294967295, 4294967295] threads; there are 1 to 1024 in all",
        ),
        (launch([1, 1, 1], [1, 1, 1], 0), 15, "15 bytes of parameters; it has 16"),
        (launch([1, 1, 1], [1, 1, 1], u32::MAX), 16, "4294967327 bytes of shared memory; there are 1048576"),
    ];
    for (launch, bytes, expected) in rows {
        assert_eq!(said(&text, launch, bytes), expected);
    }
    assert_eq!(module(&text).kernel("k").unwrap().static_shared_bytes(), 17);
}

#[test]
fn a_kernel_says_how_many_threads_it_takes() {
    let text = text_of("", "", "ret;").replace("k()", "k() .maxntid 16, 4, 1");
    assert!(try_run(&module(&text), "k", line(1, 64), &Arguments::default(), &Device::default()).is_ok());
    assert_eq!(said(&text, line(1, 65), 0), "a block of [65, 1, 1] threads; .maxntid allows [16, 4, 1]");
    let text = text_of("", "", "ret;").replace("k()", "k() .reqntid 16, 4");
    assert_eq!(said(&text, line(1, 64), 0), "a block of [64, 1, 1] threads; .reqntid asks for [16, 4, 1]");
}

#[test]
fn a_variable_without_an_address_is_named_if_it_is_used() {
    let before = ".global .u32 used;\n.global .u32 unused;\n.func f { .reg .u64 r; mov.u64 r, used; ret; }";
    let text = text_of(before, "", "call f;");
    assert_eq!(said(&text, line(1, 1), 0), "it uses the variable used, which has no address");
    assert!(
        try_run(&module(&text_of(before, "", "ret;")), "k", line(1, 1), &Arguments::default(), &Device::default())
            .is_ok()
    );
}

#[test]
fn only_the_shared_memory_that_a_kernel_uses_is_its_own() {
    let text = ".version 8.2\n.target sm_75\n.shared .align 4 .b8 a[12];\n.shared .align 16 .b8 b[32];\n.shared .b64 c;
        .func f { .reg .b32 r; mov.u32 r, c; ret; }
        .entry both() { .reg .b32 r; mov.u32 r, a; mov.u32 r, b; ret; }
        .entry called() { call f; ret; }\n.entry none() { ret; }
        .entry inner() { .shared .b8 x[5]; .reg .b32 r; ld.shared.u8 r, [x]; ret; }";
    let module = module(text);
    let bytes = |name| module.kernel(name).unwrap().static_shared_bytes();
    assert_eq!((bytes("both"), bytes("called"), bytes("none"), bytes("inner")), (48, 8, 0, 5));
}

#[test]
fn modules_and_traps_go_between_threads() {
    fn goes<T: Send + Sync>() {}
    goes::<purlin_ptx::Module>();
    goes::<purlin_ptx::Kernel>();
    goes::<purlin_ptx::Refusal>();
    goes::<Trap>();
}

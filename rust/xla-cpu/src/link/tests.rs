//! Links objects that the system's C compiler makes, and refuses objects that are broken in one place.

#![allow(unsafe_code, reason = "linked functions are called")]

use std::fs;
use std::process::Command;

use purlin_base::StatusCode;

use super::*;

/// The object that `source` compiles to. `None`: there is no C compiler, which the test prints.
pub(crate) fn compiled(name: &str, source: &str, flags: &[&str]) -> Option<Vec<u8>> {
    let base = std::env::temp_dir().join(format!("purlin-link-{}-{name}", std::process::id()));
    let (c, o) = (base.with_extension("c"), base.with_extension("o"));
    fs::write(&c, source).unwrap();
    let common = ["-O1", "-c", "-mcmodel=large", "-fno-pic", "-fno-stack-protector", "-fcf-protection=none"];
    let status = Command::new("cc").args(common).args(flags).arg(&c).arg("-o").arg(&o).status();
    let object = status.ok().filter(|status| status.success()).and_then(|_| fs::read(&o).ok());
    [c, o].iter().for_each(|path| drop(fs::remove_file(path)));
    if object.is_none() {
        eprintln!("skipped: there is no C compiler");
    }
    object
}

const SOURCE: &str = "
    #include <math.h>
    static const double table[] = {1.0, 2.0, 4.0};
    static long calls;
    static char zeros[5000];
    double scaled(int which, double x) { calls += 1 + zeros[which]; return table[which] * sin(x); }
    long count(void) { return calls; }
    float power(float x, float y) { return powf(x, y); }
";

fn link(objects: &[(&str, &[u8])], unwind_tables: bool) -> StatusOr<Code> {
    let mut reasons = Reasons::default();
    let mut files = Vec::new();
    for (name, bytes) in objects {
        files.push(ObjectFile::read(name, bytes, &mut reasons)?);
    }
    let linkable = Linkable::new(files, &mut reasons);
    reasons.into_result("test")?;
    linkable.unwrap().load(unwind_tables)
}

fn refusal(objects: &[(&str, &[u8])]) -> (StatusCode, String) {
    let error = link(objects, false).unwrap_err();
    (error.code(), error.message().to_owned())
}

unsafe fn function<F: Copy>(code: &Code, name: &str) -> F {
    let address = std::ptr::with_exposed_provenance::<()>(code.function(name).unwrap());
    assert_eq!(size_of::<F>(), size_of_val(&address));
    // SAFETY: the caller names the function's type.
    unsafe { std::mem::transmute_copy(&address) }
}

/// The protection of the pages around an address, as `/proc/self/maps` shows it.
fn protection(address: usize) -> Option<String> {
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines().find_map(|line| {
        let (range, rest) = line.split_once(' ')?;
        let (begin, end) = range.split_once('-')?;
        let range = usize::from_str_radix(begin, 16).ok()?..usize::from_str_radix(end, 16).ok()?;
        range.contains(&address).then(|| rest[..4].to_owned())
    })
}

#[test]
fn linked_functions_compute_and_keep_their_data() {
    let Some(object) = compiled("computes", SOURCE, &[]) else { return };
    let code = link(&[("test.o", &object)], false).unwrap();
    // SAFETY: the functions are those of SOURCE.
    unsafe {
        let scaled: extern "C" fn(i32, f64) -> f64 = function(&code, "scaled");
        let count: extern "C" fn() -> i64 = function(&code, "count");
        let power: extern "C" fn(f32, f32) -> f32 = function(&code, "power");
        assert_eq!((scaled(2, 0.5), scaled(0, 1.0), count()), (4.0 * 0.5_f64.sin(), 1.0_f64.sin(), 2));
        assert_eq!(power(2.0, 10.0), 1024.0);
    }
    assert_eq!(code.function("table"), None, "what is local is not seen");
}

#[test]
fn pages_are_never_writable_and_executable_and_go_with_the_last_kernel() {
    let Some(object) = compiled("pages", SOURCE, &[]) else { return };
    let code = link(&[("test.o", &object)], false).unwrap();
    let at = code.function("scaled").unwrap();
    let page = at - at % pages::PAGE_BYTES;
    assert_eq!(protection(at).unwrap(), "r-xp");
    assert_eq!(protection(page - 1).unwrap(), "---p", "a guard before");
    let mapped = fs::read_to_string("/proc/self/maps").unwrap();
    assert!(!mapped.lines().any(|line| line.contains("wx")), "{mapped}");
    drop(code);
    assert_ne!(protection(at).as_deref(), Some("r-xp"));
}

#[test]
fn several_files_see_each_other() {
    let (one, two) =
        ("int twice(int x) { return 2 * x; }", "int twice(int); int four(int x) { return twice(twice(x)); }");
    let (Some(one), Some(two)) = (compiled("one", one, &[]), compiled("two", two, &[])) else { return };
    let code = link(&[("two.o", &two), ("one.o", &one)], false).unwrap();
    // SAFETY: as above.
    let four: extern "C" fn(i32) -> i32 = unsafe { function(&code, "four") };
    assert_eq!(four(3), 12);
    assert!(refusal(&[("one.o", &one), ("again.o", &one)]).1.contains("symbol 'twice' is defined twice"));
}

#[test]
fn symbols_that_are_not_in_the_list_are_named_all_at_once() {
    let source =
        "int system(const char*); int execv(const char*, void*); int f(void) { return system(0) + execv(0, 0); }";
    let Some(object) = compiled("symbols", source, &["-Wno-builtin-declaration-mismatch"]) else { return };
    let (code, message) = refusal(&[("test.o", &object)]);
    assert_eq!(code, StatusCode::Unimplemented);
    assert!(message.contains("symbol 'execv' is not among those that code may call; symbol 'system'"), "{message}");
}

#[test]
fn relocations_and_sections_that_are_not_known_are_named() {
    let Some(object) = compiled("small", SOURCE, &["-mcmodel=small"]) else { return };
    let message = refusal(&[("test.o", &object)]).1;
    assert!(message.contains("relocation R_X86_64_P") && message.contains("in section .text"), "{message}");
    let source = "__thread int local = 3; __attribute__((constructor)) void begin(void) { local = 4; }";
    let Some(object) = compiled("sections", source, &["-mcmodel=small"]) else { return };
    let message = refusal(&[("test.o", &object)]).1;
    assert!(message.contains("section .tdata") && message.contains("section .init_array"), "{message}");
}

#[test]
fn the_unwinder_knows_code_as_long_as_it_is_there() {
    unsafe extern "C" {
        fn _Unwind_Find_FDE(pc: *const u8, bases: *mut [usize; 3]) -> *const u8;
    }
    let Some(object) = compiled("unwind", SOURCE, &["-fasynchronous-unwind-tables"]) else { return };
    let known = |at: usize| {
        let mut bases = [0; 3];
        // SAFETY: a look-up; the address is not read.
        !unsafe { _Unwind_Find_FDE(std::ptr::without_provenance(at), &raw mut bases) }.is_null()
    };
    let code = link(&[("test.o", &object)], true).unwrap();
    let at = code.function("scaled").unwrap() + 1;
    assert!(known(at));
    drop(code);
    assert!(!known(at));
    let code = link(&[("test.o", &object)], false).unwrap();
    assert!(!known(code.function("scaled").unwrap() + 1), "only if it is asked for");
}

#[test]
fn files_that_are_no_objects_are_damage() {
    for bytes in [&b""[..], b"\x7fELF", b"#!/bin/sh\n"] {
        assert_eq!(refusal(&[("test.o", bytes)]).0, StatusCode::DataLoss);
    }
    let Some(object) = compiled("damage", SOURCE, &[]) else { return };
    let with = |at: usize, byte: u8| {
        let mut object = object.clone();
        object[at] = byte;
        refusal(&[("test.o", &object)])
    };
    assert!(with(18, 183).1.contains("no relocatable file for x86-64, but of machine"), "AArch64");
    assert!(with(16, 3).1.contains("no relocatable file"), "a shared library");
    for end in (0..object.len()).step_by(7) {
        assert!(link(&[("test.o", &object[..end])], false).is_err(), "cut after {end} bytes");
    }
}

#[test]
fn a_distance_that_four_bytes_may_not_hold_is_refused() {
    let source = r#"asm(".pushsection .eh_frame,\"a\"; .long sin - .; .popsection");"#;
    let Some(object) = compiled("distance", source, &["-fno-asynchronous-unwind-tables"]) else { return };
    let (code, message) = refusal(&[("test.o", &object)]);
    let why = "relocation R_X86_64_PC32 in section .eh_frame to what may be too far away";
    assert_eq!((code, message.contains(why)), (StatusCode::Unimplemented, true), "{message}");
}

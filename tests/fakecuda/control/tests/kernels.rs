//! Modules, functions, launches.

#[macro_use]
mod support;

use std::ffi::{CStr, CString, c_void};
use std::ptr;

use purlin_fakecuda::on_a_gpu;
use support::*;

fn load(gpu: &Session, image: &[u8], log: &mut [u8]) -> (u32, usize) {
    let (mut module, image) = (0, [image, &[0]].concat());
    // CU_JIT_ERROR_LOG_BUFFER and its size.
    let mut options = [5, 6];
    let mut values: [*mut c_void; 2] = [log.as_mut_ptr().cast(), ptr::without_provenance_mut(log.len())];
    let code =
        cu!(gpu, cuModuleLoadDataEx(&mut module, image.as_ptr().cast(), 2, options.as_mut_ptr(), values.as_mut_ptr()));
    (code, values[1].addr())
}

#[test]
fn arguments_are_captured_at_the_call() {
    process::run("arguments_are_captured_at_the_call", &Options::default(), || {
        let gpu = Session::new();
        let (memory, stream, module) = (gpu.allocate(512), gpu.stream(NON_BLOCKING), gpu.module(TEXT));
        let add_one = gpu.function(module, "add_one");
        assert_eq!(add_one, gpu.function(module, "add_one"), "the same each time");
        gpu.fill(memory, 0, 512, stream);
        gpu.control.hold(true);
        let mut arguments = [memory + 256, memory];
        gpu.launch(add_one, 1, 8, stream, &arguments);
        // The same in one buffer, by keys: BUFFER_POINTER, BUFFER_SIZE, END.
        let mut size = 16_usize;
        let mut extra: [*mut c_void; 5] = [
            ptr::without_provenance_mut(1),
            arguments.as_mut_ptr().cast(),
            ptr::without_provenance_mut(2),
            ptr::from_mut(&mut size).cast(),
            ptr::null_mut(),
        ];
        arguments = [memory + 384, memory + 256];
        let by_extra = |size: u32| {
            assert!(size > 0);
            let each = ptr::null_mut();
            cu!(gpu, cuLaunchKernel(add_one, 1, 1, 1, 8, 1, 1, 0, stream, each, extra.as_ptr().cast_mut()))
        };
        assert_eq!(by_extra(16), 0);
        arguments.fill(0);
        gpu.control.hold(false);
        assert_eq!(gpu.read(memory + 256, 4, stream), [1, 0, 0, 0]);
        assert_eq!(gpu.read(memory + 384, 4, stream), [2, 0, 0, 0]);
        size = 15;
        assert_eq!((by_extra(15), size), (1, 15), "too few bytes");
        let mut each: [*mut c_void; 2] = [ptr::null_mut(); 2];
        let both =
            cu!(gpu, cuLaunchKernel(add_one, 1, 1, 1, 8, 1, 1, 0, stream, each.as_mut_ptr(), extra.as_mut_ptr()));
        assert_eq!(both, 1);
        ok!(gpu, cuModuleUnload(module));
        assert_eq!(gpu.try_launch(add_one, 1, 1, stream, &[memory, memory]), 400, "it went with its module");
        gpu.free(memory);
        ok!(gpu, cuStreamDestroy_v2(stream));
        gpu.end();
    });
}

#[test]
fn images_are_refused_with_a_log() {
    process::run("images_are_refused_with_a_log", &Options { driver_version: 12_020, ..Options::default() }, || {
        let gpu = Session::new();
        let mut log = [0_u8; 200];
        let text = |version: &str, target: &str, body: &str| {
            format!(
                ".version {version}\n.target {target}\n.address_size 64\n.visible .entry k()\n{{\n{body}\nret;\n}}\n"
            )
        };
        assert_eq!(load(&gpu, b"\x7FELF and more", &mut log).0, 209);
        assert_eq!(load(&gpu, text("8.3", "sm_75", "").as_bytes(), &mut log).0, 222);
        assert_eq!(load(&gpu, text("8.2", "sm_100", "").as_bytes(), &mut log).0, 209);
        let (code, written) = load(&gpu, text("8.2", "sm_75", "no.such.thing;").as_bytes(), &mut log);
        let said = CStr::from_bytes_until_nul(&log).unwrap().to_str().unwrap();
        assert_eq!((code, written), (218, said.len() + 1));
        assert!(said.starts_with("line 6: no.such.thing"), "{said}");
        let mut short = [1_u8; 5];
        assert_eq!(load(&gpu, b"nothing", &mut short), (218, 5));
        assert_eq!(short[4], 0);
        assert_eq!(load(&gpu, b"", &mut log).0, 218);
        gpu.end();
    });
}

#[test]
fn launches_are_checked() {
    process::run("launches_are_checked", &Options::default(), || {
        let gpu = Session::new();
        let module = gpu.module(TEXT);
        let (few, bump) = (gpu.function(module, "few"), gpu.function(module, "bump"));
        let launch = |function, grid: [u32; 3], block: [u32; 3], shared| {
            let ([gx, gy, gz], [bx, by, bz]) = (grid, block);
            let none = ptr::null_mut;
            cu!(gpu, cuLaunchKernel(function, gx, gy, gz, bx, by, bz, shared, 0, none(), none()))
        };
        assert_eq!(launch(few, [1; 3], [8, 1, 1], 0), 0);
        assert_eq!(launch(few, [1; 3], [9, 1, 1], 0), 1, "it says at most 8");
        for (grid, block, shared) in [
            ([0, 1, 1], [1; 3], 0),
            ([1; 3], [1, 0, 1], 0),
            ([1; 3], [1025, 1, 1], 0),
            ([1; 3], [1, 1, 65], 0),
            ([1; 3], [32, 32, 2], 0),
            ([1, 65_536, 1], [1; 3], 0),
            ([1; 3], [1; 3], (48 << 10) - 1023),
        ] {
            assert_eq!(launch(few, grid, block, shared), 1, "{grid:?} {block:?} {shared}");
        }
        let mut value = 0;
        let mut attribute = |number| {
            ok!(gpu, cuFuncGetAttribute(&mut value, number, few));
            value
        };
        assert_eq!([attribute(0), attribute(1), attribute(5), attribute(8)], [8, 1024, 75, (48 << 10) - 1024]);
        assert_eq!(cu!(gpu, cuFuncSetAttribute(few, 8, 227 << 10)), 1);
        ok!(gpu, cuFuncSetAttribute(few, 8, 100 << 10));
        assert_eq!(launch(few, [1; 3], [1; 3], 100 << 10), 0);
        assert_eq!(launch(bump, [1; 3], [1; 3], 100 << 10), 1, "each function has its own");
        assert_eq!(cu!(gpu, cuFuncGetAttribute(&mut value, 99, few)), 1);
        gpu.sync_all();
        ok!(gpu, cuModuleUnload(module));
        gpu.end();
    });
}

#[test]
fn parameters_and_variables_are_told() {
    process::run("parameters_and_variables_are_told", &Options::default(), || {
        let gpu = Session::new();
        let module = gpu.module(TEXT);
        let add_one = gpu.function(module, "add_one");
        let (mut offset, mut size, mut address) = (9, 9, 0);
        ok!(gpu, cuFuncGetParamInfo(add_one, 1, &mut offset, &mut size));
        assert_eq!((offset, size, cu!(gpu, cuFuncGetParamInfo(add_one, 2, &mut offset, &mut size))), (8, 8, 1));
        let name = |name| CString::new(name).unwrap();
        ok!(gpu, cuModuleGetGlobal_v2(&mut address, &mut size, module, name("count").as_ptr()));
        assert_eq!((size, cu!(gpu, cuModuleGetFunction(&mut offset, module, name("none").as_ptr()))), (4, 500));
        let mut none = 9;
        assert_eq!(cu!(gpu, cuModuleGetGlobal_v2(&mut none, &mut size, module, name("none").as_ptr())), 500);
        assert_eq!(none, 0);
        let bump = gpu.function(module, "bump");
        gpu.launch(bump, 1, 1, 0, &[]);
        assert_eq!(gpu.read(address, 4, 0), [8, 0, 0, 0]);
        // Threads load, add and store: a GPU's do so at once, the fake's one after the other.
        if !on_a_gpu() {
            gpu.launch(bump, 2, 3, 0, &[]);
            assert_eq!(gpu.read(address, 4, 0), [14, 0, 0, 0]);
        }
        assert_eq!(cu!(gpu, cuMemFree_v2(address)), 1, "it is the module's");
        ok!(gpu, cuModuleUnload(module));
        assert_eq!(cu!(gpu, cuModuleUnload(module)), 400);
        gpu.end();
    });
}

#[test]
fn a_kernel_that_does_not_end_ends_when_it_is_told() {
    let options = Options { endless: vec!["bump".to_owned()], ..Options::default() };
    process::run("a_kernel_that_does_not_end_ends_when_it_is_told", &options, || {
        let gpu = Session::new();
        let module = gpu.module(TEXT);
        let stream = gpu.stream(NON_BLOCKING);
        gpu.launch(gpu.function(module, "bump"), 1, 1, stream, &[]);
        assert_eq!(cu!(gpu, cuStreamQuery(stream)), NOT_READY);
        gpu.control.set_endless("");
        gpu.sync(stream);
        ok!(gpu, cuStreamDestroy_v2(stream));
        ok!(gpu, cuModuleUnload(module));
        gpu.end();
    });
}

/// The softmax of rows, as nvrtc compiled it: barriers, shared memory of the launch, reads of what the kernel wrote.
const SOFTMAX: &str = include_str!("../../../ptx/kernels/softmax.ptx");

#[test]
fn a_kernel_that_nvrtc_compiled_runs_between_two_copies() {
    process::run("a_kernel_that_nvrtc_compiled_runs_between_two_copies", &Options::default(), || {
        const ROWS: usize = 3;
        const COLUMNS: u32 = 50;
        const THREADS: u32 = 16;
        let gpu = Session::new();
        let (up, compute, down) = (gpu.stream(NON_BLOCKING), gpu.stream(NON_BLOCKING), gpu.stream(NON_BLOCKING));
        let module = gpu.module(SOFTMAX);
        let softmax = gpu.function(module, "softmax_rows");
        let values: Vec<f32> = (0..ROWS * COLUMNS as usize).map(|at| ((at * 37) % 101) as f32 / 10.0).collect();
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
        let (from, to) = (gpu.allocate_async(bytes.len(), up), gpu.allocate(bytes.len()));
        gpu.write(from, &bytes, up);
        gpu.order(up, compute);
        let mut each: [*mut c_void; 3] = [
            ptr::from_ref(&to).cast_mut().cast(),
            ptr::from_ref(&from).cast_mut().cast(),
            ptr::from_ref(&COLUMNS).cast_mut().cast(),
        ];
        let (rows, shared) = (u32::try_from(ROWS).unwrap(), 4 * THREADS);
        let each = each.as_mut_ptr();
        ok!(gpu, cuLaunchKernel(softmax, rows, 1, 1, THREADS, 1, 1, shared, compute, each, ptr::null_mut()));
        gpu.order(compute, down);
        gpu.order(compute, up);
        ok!(gpu, cuMemFreeAsync(from, up));
        let found = gpu.read(to, bytes.len(), down);
        let found: Vec<f32> = found.chunks(4).map(|word| f32::from_ne_bytes(word.try_into().unwrap())).collect();
        for (found, row) in found.chunks(COLUMNS as usize).zip(values.chunks(COLUMNS as usize)) {
            let sum: f64 = row.iter().map(|value| f64::from(*value).exp()).sum();
            for (found, value) in found.iter().zip(row) {
                let expected = f64::from(*value).exp() / sum;
                assert!((f64::from(*found) - expected).abs() <= 1e-5 * expected, "{found} instead of {expected}");
            }
        }
        gpu.sync(up);
        gpu.free(to);
        ok!(gpu, cuModuleUnload(module));
        [up, compute, down].into_iter().for_each(|stream| ok!(gpu, cuStreamDestroy_v2(stream)));
        gpu.end();
    });
}

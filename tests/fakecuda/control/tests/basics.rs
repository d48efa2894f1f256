//! The driver, its devices and contexts, and what it answers to those who may not ask.

#[macro_use]
mod support;

use std::ffi::{CStr, c_char};
use std::ptr;

use purlin_fakecuda::on_a_gpu;
use support::*;

#[test]
fn nothing_works_before_init() {
    process::run("nothing_works_before_init", &Options::default(), || {
        let driver = Driver::open();
        let (mut count, mut stream, mut version) = (0, 0, 0);
        assert_eq!(cu!(driver, cuDeviceGetCount(&mut count)), 3);
        assert_eq!(cu!(driver, cuStreamCreate(&mut stream, 0)), 3);
        ok!(driver, cuDriverGetVersion(&mut version));
        assert_eq!(version, 13_000);
        assert_eq!(cu!(driver, cuInit(1)), 1);
        ok!(driver, cuInit(0));
        ok!(driver, cuDeviceGetCount(&mut count));
        assert_eq!(count, 2);
    });
}

#[test]
fn devices_are_as_the_environment_says() {
    let options = Options {
        devices: 3,
        memory_bytes: 192 << 20,
        capability: (8, 6),
        driver_version: 12_020,
        ..Options::default()
    };
    process::run("devices_are_as_the_environment_says", &options, || {
        let gpu = Session::new();
        let (mut device, mut bytes, mut major, mut version) = (7, 0, 0, 0);
        ok!(gpu, cuDeviceGet(&mut device, 2));
        assert_eq!(
            (device, cu!(gpu, cuDeviceGet(&mut device, 3)), cu!(gpu, cuDeviceGet(&mut device, -1))),
            (2, 101, 101)
        );
        ok!(gpu, cuDeviceTotalMem_v2(&mut bytes, 2));
        ok!(gpu, cuDeviceGetAttribute(&mut major, 75, 2));
        ok!(gpu, cuDriverGetVersion(&mut version));
        assert_eq!((bytes, major, version), (192 << 20, 8, 12_020));
        assert_eq!(cu!(gpu, cuDeviceGetAttribute(&mut major, 9999, 0)), 1);
        assert_eq!(cu!(gpu, cuDeviceGetAttribute(ptr::null_mut(), 75, 0)), 1);
        let text = |ask: &dyn Fn(*mut c_char, i32)| {
            let mut buffer = [1_u8; 64];
            ask(buffer.as_mut_ptr().cast(), 64);
            CStr::from_bytes_until_nul(&buffer).unwrap().to_str().unwrap().to_owned()
        };
        let id = text(&|buffer, size| ok!(gpu, cuDeviceGetPCIBusId(buffer, size, 1)));
        let name = text(&|buffer, size| ok!(gpu, cuDeviceGetName(buffer, size.min(7), 0)));
        assert_eq!((id.as_str(), name.as_str()), ("0000:02:00.0", "Purlin"), "cut to its room");
        let (mut first, mut second) = ([0; 16], [0; 16]);
        ok!(gpu, cuDeviceGetUuid_v2(&mut first, 0));
        ok!(gpu, cuDeviceGetUuid_v2(&mut second, 1));
        assert_ne!(first, second);
        gpu.end();
    });
}

#[test]
fn options_are_said_before_the_first_call() {
    process::run("options_are_said_before_the_first_call", &Options::default(), || {
        let driver = Driver::open_with(&Options { devices: 5, ..Options::default() });
        let mut count = 0;
        ok!(driver, cuInit(0));
        ok!(driver, cuDeviceGetCount(&mut count));
        assert_eq!(count, 5);
        assert!(!driver.control.configure(&Options::default()), "it is too late");
    });
}

#[test]
fn no_devices_are_told() {
    process::run("no_devices_are_told", &Options { devices: 0, ..Options::default() }, || {
        assert_eq!(cu!(Driver::open(), cuInit(0)), 100);
    });
}

#[test]
fn contexts_are_retained_and_current_per_thread() {
    process::run("contexts_are_retained_and_current_per_thread", &Options::default(), || {
        let driver = Driver::open();
        ok!(driver, cuInit(0));
        let (mut context, mut again, mut current, mut stream) = (0, 0, 7, 0);
        ok!(driver, cuCtxGetCurrent(&mut current));
        assert_eq!(current, 0);
        assert_eq!(cu!(driver, cuStreamCreate(&mut stream, 0)), 201);
        let active = || {
            let (mut flags, mut active) = (1, 7);
            ok!(driver, cuDevicePrimaryCtxGetState(1, &mut flags, &mut active));
            active
        };
        assert_eq!(active(), 0);
        ok!(driver, cuDevicePrimaryCtxRetain(&mut context, 1));
        ok!(driver, cuDevicePrimaryCtxRetain(&mut again, 1));
        assert_eq!((context, active()), (again, 1));
        ok!(driver, cuCtxSetCurrent(context));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut current = 7;
                ok!(driver, cuCtxGetCurrent(&mut current));
                assert_eq!(current, 0, "another thread has its own");
            });
        });
        ok!(driver, cuStreamCreate(&mut stream, 0));
        let mut of = 0;
        ok!(driver, cuStreamGetCtx(stream, &mut of));
        assert_eq!(of, context);
        let (mut least, mut greatest) = (1, 1);
        ok!(driver, cuCtxGetStreamPriorityRange(&mut least, &mut greatest));
        assert!(least > greatest);
        assert_eq!(cu!(driver, cuCtxSetCurrent(4711)), 201);
        ok!(driver, cuStreamDestroy_v2(stream));
        ok!(driver, cuDevicePrimaryCtxRelease_v2(1));
        ok!(driver, cuStreamCreate(&mut stream, 0));
        ok!(driver, cuDevicePrimaryCtxRelease_v2(1));
        assert_eq!(cu!(driver, cuDevicePrimaryCtxRelease_v2(1)), 201);
        assert_eq!(cu!(driver, cuStreamQuery(stream)), 709, "its context is gone");
        assert_eq!(cu!(driver, cuCtxSynchronize()), 709);
        assert_eq!(driver.left(), [("streams", 1)], "it was forgotten");
    });
}

#[test]
fn peers_are_enabled_once() {
    process::run("peers_are_enabled_once", &Options::default(), || {
        let gpu = Session::new();
        let mut can = 7;
        ok!(gpu, cuDeviceCanAccessPeer(&mut can, 0, 1));
        assert_eq!(can, 1);
        ok!(gpu, cuDeviceCanAccessPeer(&mut can, 1, 1));
        assert_eq!(can, 0);
        ok!(gpu, cuDeviceGetP2PAttribute(&mut can, 2, 0, 1));
        assert_eq!(can, 1);
        assert_eq!(cu!(gpu, cuDeviceGetP2PAttribute(&mut can, 2, 0, 0)), 101);
        ok!(gpu, cuCtxEnablePeerAccess(gpu.contexts[1], 0));
        assert_eq!(cu!(gpu, cuCtxEnablePeerAccess(gpu.contexts[1], 0)), 704);
        assert_eq!(cu!(gpu, cuCtxEnablePeerAccess(gpu.contexts[0], 0)), 101);
        assert_eq!(cu!(gpu, cuCtxEnablePeerAccess(gpu.contexts[1], 1)), 1);
        gpu.end();
    });
}

#[test]
fn groups_may_be_missing() {
    let options = Options { without_pools: true, without_peers: true, without_graphs: true, ..Options::default() };
    process::run("groups_may_be_missing", &options, || {
        let gpu = Session::new();
        let (mut can, mut pool, mut memory) = (7, 0, 0);
        ok!(gpu, cuDeviceCanAccessPeer(&mut can, 0, 1));
        assert_eq!(can, 0);
        assert_eq!(cu!(gpu, cuCtxEnablePeerAccess(gpu.contexts[1], 0)), 217);
        ok!(gpu, cuDeviceGetAttribute(&mut can, 115, 0));
        assert_eq!(can, 0);
        assert_eq!(cu!(gpu, cuDeviceGetDefaultMemPool(&mut pool, 0)), 801);
        assert_eq!(cu!(gpu, cuMemAllocAsync(&mut memory, 64, 0)), 801);
        assert_eq!(cu!(gpu, cuStreamBeginCapture_v2(2, 1)), 801);
        gpu.end();
    });
}

#[test]
fn codes_have_names() {
    process::run("codes_have_names", &Options::default(), || {
        let driver = Driver::open();
        let mut text = ptr::null();
        ok!(driver, cuGetErrorName(700, &mut text));
        // SAFETY: the driver's texts are constants that end in a null.
        assert_eq!(unsafe { CStr::from_ptr(text) }, c"CUDA_ERROR_ILLEGAL_ADDRESS");
        ok!(driver, cuGetErrorString(2, &mut text));
        // SAFETY: as above.
        assert_eq!(unsafe { CStr::from_ptr(text) }, c"out of memory");
        assert_eq!(cu!(driver, cuGetErrorName(9999, &mut text)), 1);
        assert!(text.is_null());
    });
}

#[test]
fn a_child_of_fork_is_not_initialised() {
    process::run("a_child_of_fork_is_not_initialised", &Options::default(), || {
        let gpu = Session::new();
        let stream = gpu.stream(NON_BLOCKING);
        // SAFETY: the child calls the driver, which answers before it takes a lock, and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let mut other = 0;
            // Driver 580 says of the stream that it is idle.
            let query = if on_a_gpu() { 3 } else { cu!(gpu, cuStreamQuery(stream)) };
            let codes =
                [cu!(gpu, cuInit(0)), query, cu!(gpu, cuStreamCreate(&mut other, 0)), cu!(gpu, cuCtxSetCurrent(0))];
            if codes != [3; 4] {
                eprintln!("the child was answered {codes:?}");
            }
            // SAFETY: nothing of the parent's is to be ended.
            unsafe { libc::_exit(i32::from(codes != [3; 4])) };
        }
        let mut status = -1;
        // SAFETY: the child is ours, and the place is for its status.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        assert_eq!(status, 0, "all calls were answered 3");
        ok!(gpu, cuStreamDestroy_v2(stream));
        gpu.end();
    });
}

#[test]
fn an_environment_that_is_not_understood_is_said() {
    use std::process::Command;
    if std::env::var("PURLIN_FAKECUDA_MODE").is_ok() {
        assert_eq!(cu!(Driver::open(), cuInit(0)), 999);
        return;
    }
    let program = std::env::current_exe().unwrap();
    let name = "an_environment_that_is_not_understood_is_said";
    let arguments = ["--exact", name, "--nocapture"];
    let output = Command::new(program).args(arguments).env("PURLIN_FAKECUDA_MODE", "half").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("PURLIN_FAKECUDA_MODE is 'half'"), "{said}");
}

static STRAGGLER: std::sync::OnceLock<Driver> = std::sync::OnceLock::new();

extern "C" fn ask_at_exit() {
    let mut current = 0;
    let code = STRAGGLER.get().map_or(0, |driver| cu!(driver, cuCtxGetCurrent(&mut current)));
    // SAFETY: the process ends anyway.
    unsafe { libc::_exit(if code == 4 { 42 } else { 1 }) };
}

#[test]
fn a_process_that_ends_is_told_so() {
    process::run("a_process_that_ends_is_told_so", &Options::default(), || {
        // Before the driver's own handler, so it runs behind it.
        // SAFETY: the handler calls the driver, and ends the process.
        unsafe { libc::atexit(ask_at_exit) };
        let gpu = Session::new();
        assert!(STRAGGLER.set(gpu.driver).is_ok());
    });
}

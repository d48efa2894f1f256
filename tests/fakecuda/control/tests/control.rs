//! What tests are given: counters, the empty mode, links, the ledger, NVML.

#[macro_use]
mod support;

use std::ffi::{CStr, c_char, c_void};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{env, fs};

use purlin_fakecuda::{Cuda, Nvml, OnReport, find, links};
use support::*;

/// The entry points that the fake was asked to have.
const WANTED: &str = "
    cuInit cuDriverGetVersion cuDeviceGetCount cuDeviceGet cuDeviceGetName cuDeviceGetUuid_v2 cuDeviceTotalMem_v2
    cuDeviceGetAttribute cuDeviceGetPCIBusId cuDeviceCanAccessPeer cuDeviceGetP2PAttribute

    cuDevicePrimaryCtxRetain cuDevicePrimaryCtxRelease_v2 cuDevicePrimaryCtxGetState cuCtxGetCurrent cuCtxSetCurrent
    cuCtxSynchronize cuCtxGetStreamPriorityRange cuCtxEnablePeerAccess

    cuStreamCreate cuStreamCreateWithPriority cuStreamDestroy_v2 cuStreamSynchronize cuStreamQuery cuStreamWaitEvent
    cuStreamGetCtx cuLaunchHostFunc cuStreamBeginCapture_v2 cuStreamEndCapture cuStreamIsCapturing

    cuEventCreate cuEventDestroy_v2 cuEventRecord cuEventQuery cuEventSynchronize cuEventElapsedTime_v2

    cuMemGetInfo_v2 cuMemAlloc_v2 cuMemFree_v2 cuMemAllocAsync cuMemAllocFromPoolAsync cuMemFreeAsync cuMemHostAlloc
    cuMemFreeHost cuMemHostRegister_v2 cuMemHostUnregister cuMemGetAddressRange_v2 cuPointerGetAttributes
    cuDeviceGetDefaultMemPool cuMemPoolCreate cuMemPoolDestroy cuMemPoolSetAttribute cuMemPoolGetAttribute
    cuMemPoolTrimTo cuMemPoolSetAccess

    cuMemcpyHtoDAsync_v2 cuMemcpyDtoHAsync_v2 cuMemcpyDtoDAsync_v2 cuMemcpyPeerAsync cuMemcpy2DAsync_v2 cuMemsetD8Async
    cuMemsetD32Async

    cuModuleLoadDataEx cuModuleUnload cuModuleGetFunction cuModuleGetGlobal_v2 cuFuncGetAttribute cuFuncSetAttribute
    cuFuncGetParamInfo cuLaunchKernel

    cuGraphInstantiateWithFlags cuGraphExecUpdate_v2 cuGraphExecKernelNodeSetParams_v2 cuGraphLaunch cuGraphUpload
    cuGraphDestroy cuGraphExecDestroy cuGetErrorName cuGetErrorString
";

/// The older name of cuEventElapsedTime_v2, cuModuleLoadData, which cudarc calls, cuGraphGetNodes, which finds the node
/// that cuGraphExecKernelNodeSetParams_v2 wants, cuMemsetD16Async, by which programs fill with patterns of two bytes,
/// and cuDeviceSetMemPool, by which they choose the pool of cuMemAllocAsync.
const BESIDES: [&str; 5] =
    ["cuEventElapsedTime", "cuModuleLoadData", "cuGraphGetNodes", "cuMemsetD16Async", "cuDeviceSetMemPool"];

#[test]
fn every_entry_point_that_was_wanted_is_there() {
    process::run("every_entry_point_that_was_wanted_is_there", &Options::default(), || {
        let wanted: Vec<&str> = WANTED.split_whitespace().collect();
        assert_eq!(wanted.len(), 79);
        // Each symbol of the table is looked up, and there are counters for no other names than the fake's own.
        let driver = Driver::open();
        for name in wanted.iter().chain(&BESIDES) {
            assert!(Cuda::NAMES.contains(name), "{name} is not in the table of tests");
            assert_eq!(driver.control.calls(name), 0);
        }
        let mut all: Vec<&str> = wanted.iter().chain(&BESIDES).copied().collect();
        all.sort_unstable();
        let mut there = Cuda::NAMES.to_vec();
        there.sort_unstable();
        assert_eq!(all, there, "each once, and no others");
    });
}

#[test]
fn calls_are_counted() {
    process::run("calls_are_counted", &Options::default(), || {
        let gpu = Session::new();
        gpu.control.reset_calls();
        let (up, middle, down) = (gpu.stream(NON_BLOCKING), gpu.stream(NON_BLOCKING), gpu.stream(NON_BLOCKING));
        gpu.order(up, middle);
        gpu.order(middle, down);
        let calls = |entry| gpu.control.calls(entry);
        assert_eq!([calls("cuStreamCreate"), calls("cuEventRecord"), calls("cuStreamWaitEvent")], [3, 2, 2]);
        assert_eq!(calls("cuMemAlloc_v2"), 0);
        [up, middle, down].into_iter().for_each(|stream| ok!(gpu, cuStreamDestroy_v2(stream)));
        gpu.end();
    });
}

static WAS_CALLED: AtomicBool = AtomicBool::new(false);

extern "C" fn was_called(_: *mut c_void) {
    WAS_CALLED.store(true, Ordering::Relaxed);
}

#[test]
fn in_the_empty_mode_all_is_over_at_once() {
    process::run("in_the_empty_mode_all_is_over_at_once", &Options { empty: true, ..Options::default() }, || {
        let gpu = Session::new();
        let (stream, event) = (gpu.stream(NON_BLOCKING), gpu.event());
        let (first, second) = (gpu.allocate_async(64, stream), gpu.allocate(64));
        assert!(first != 0 && second >= first + 64 && stream != event);
        gpu.d2d(second, first, 64, stream);
        gpu.record(event, stream);
        gpu.wait(stream, event);
        assert_eq!(cu!(gpu, cuEventQuery(event)), 0);
        gpu.sync(stream);
        let pinned = gpu.pinned(64);
        pinned.set(1);
        pinned.read_from(first, stream);
        assert_eq!(pinned.get(), [1; 64], "nothing was copied");
        pinned.free();
        gpu.free(second);
        let module = gpu.module(TEXT);
        gpu.launch(gpu.function(module, "stop"), 1, 1, stream, &[]);
        let (mut graph, mut exec) = (0, 0);
        ok!(gpu, cuStreamBeginCapture_v2(stream, 1));
        ok!(gpu, cuStreamEndCapture(stream, &mut graph));
        ok!(gpu, cuGraphInstantiateWithFlags(&mut exec, graph, 0));
        ok!(gpu, cuGraphLaunch(exec, stream));
        ok!(gpu, cuModuleUnload(module));
        ok!(gpu, cuLaunchHostFunc(stream, Some(was_called), std::ptr::null_mut()));
        assert!(WAS_CALLED.load(Ordering::Relaxed));
        gpu.sync_all();
        ok!(gpu, cuStreamDestroy_v2(stream));
        assert_eq!(gpu.control.calls("cuMemcpyDtoHAsync_v2"), 1, "counted all the same");
        assert_eq!(gpu.control.ledger("threads"), 0);
    });
}

#[test]
fn what_is_watched_is_told_with_its_thread_and_event() {
    process::run("what_is_watched_is_told_with_its_thread_and_event", &Options::default(), || {
        let gpu = Session::new();
        let (event, cuda) = (gpu.event(), gpu.driver.cuda);
        gpu.control.watch(true);
        let ask = move || {
            // SAFETY: the event lives.
            assert_eq!(unsafe { (cuda.cuEventQuery)(event) }, 0);
        };
        (0..2).for_each(|_| ask());
        std::thread::Builder::new().name("a long name that is cut".to_owned()).spawn(ask).unwrap().join().unwrap();
        let unused = gpu.event();
        gpu.control.watch(false);
        [event, unused].into_iter().for_each(|event| ok!(gpu, cuEventDestroy_v2(event)));
        let seen = gpu.control.watched();
        let seen: Vec<_> = seen.iter().map(|call| (call.entry.as_str(), call.handle.as_str())).collect();
        let event = event.to_string();
        assert_eq!(seen, [("cuEventCreate", "0"), ("cuEventQuery", &event), ("cuEventQuery", &event)]);
        let threads: Vec<_> = gpu.control.watched().into_iter().map(|call| call.thread).collect();
        assert!(threads.contains(&"a long name tha".to_owned()) && threads[0] != "a long name tha", "{threads:?}");
        gpu.control.watch(true);
        assert_eq!(gpu.control.watched(), []);
        gpu.end();
    });
}

#[test]
fn the_ledger_counts_what_lives() {
    process::run("the_ledger_counts_what_lives", &Options::default(), || {
        let gpu = Session::new();
        assert_eq!(gpu.left(), [("contexts", 2)]);
        let (stream, event, memory, pinned) = (gpu.stream(0), gpu.event(), gpu.allocate(1000), gpu.pinned(10));
        let pooled = gpu.allocate_async(24, stream);
        let module = gpu.module(TEXT);
        let count = |what| gpu.control.ledger(what);
        assert_eq!([count("streams"), count("events"), count("modules"), count("threads")], [1; 4]);
        assert_eq!([count("device_bytes"), count("pinned_bytes")], [1024, 10]);
        ok!(gpu, cuMemFreeAsync(pooled, stream));
        gpu.free(memory);
        pinned.free();
        ok!(gpu, cuModuleUnload(module));
        ok!(gpu, cuEventDestroy_v2(event));
        ok!(gpu, cuStreamDestroy_v2(stream));
        gpu.end();
    });
}

#[test]
fn a_report_may_end_the_process() {
    let name = "a_report_may_end_the_process";
    if env::var("PURLIN_FAKECUDA_ON_REPORT").is_ok() {
        let gpu = Session::new();
        cu!(gpu, cuMemsetD8Async(4711, 1, 1, 0));
        return;
    }
    let options = Options { on_report: OnReport::Abort, ..Options::default() };
    let program = env::current_exe().unwrap();
    let output =
        Command::new(program).args(["--exact", name, "--nocapture"]).envs(options.variables()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && said.contains("wild address of 1 bytes at 0x1267..0x1268: cuMemsetD8Async"),
        "{said}"
    );
}

#[test]
#[should_panic(expected = "the process of a_report_fails_its_test ended with exit status: 101")]
fn a_report_fails_its_test() {
    process::run("a_report_fails_its_test", &Options::default(), || {
        let gpu = Session::new();
        cu!(gpu, cuMemsetD8Async(4711, 1, 1, 0));
    });
}

#[test]
fn reports_that_are_taken_fail_no_test() {
    process::run("reports_that_are_taken_fail_no_test", &Options::default(), || {
        let gpu = Session::new();
        cu!(gpu, cuMemsetD8Async(4711, 1, 1, 0));
        assert_eq!(gpu.control.take_reports().len(), 1);
        assert_eq!(gpu.control.report_count(), 0);
    });
}

#[test]
fn both_libraries_are_found_by_the_names_of_the_real_ones() {
    let folder = env::temp_dir().join(format!("fakecuda-{}", std::process::id()));
    links(&folder).unwrap();
    links(&folder).unwrap();
    let mut found: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    found.sort();
    assert_eq!(found, ["libcuda.so", "libcuda.so.1", "libnvidia-ml.so.1"]);
    for name in found {
        // SAFETY: the fakes' initialisers do nothing.
        unsafe { libloading::Library::new(folder.join(name)).unwrap() };
    }
    fs::remove_dir_all(&folder).unwrap();
}

/// A program that stands alone: nothing was built beside it.
#[test]
fn where_no_fake_is_built_it_is_told_how_to_build_one() {
    const LIBRARIES: [&str; 3] = ["libcuda.so", "libnvidia_ml.so", "libpurlin_fakenvrtc.so"];
    let name = "where_no_fake_is_built_it_is_told_how_to_build_one";
    if env::var_os("PURLIN_FAKECUDA_TEST").is_some_and(|test| test == name) {
        LIBRARIES.iter().for_each(|library| println!("{}", find(library).unwrap_err()));
        println!("{}", links(&env::current_exe().unwrap().with_file_name("links")).unwrap_err());
        let _ = Driver::open();
        return;
    }
    let folder = env::temp_dir().join(format!("without-fakecuda-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let program = folder.join("program");
    fs::copy(env::current_exe().unwrap(), &program).unwrap();
    let mut command = Command::new(&program);
    command.args(["--exact", name, "--nocapture"]).env("PURLIN_FAKECUDA_TEST", name);
    command.env_remove("LD_LIBRARY_PATH").env_remove("PURLIN_GPU_DEVICES").current_dir("/");
    let output = command.output().unwrap();
    fs::remove_dir_all(&folder).unwrap();
    let (said, complained) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    for library in LIBRARIES {
        let line = format!("{library} is not built: cargo build -p purlin-fakecuda");
        assert!(said.lines().any(|said| said == line), "'{line}': {said}");
    }
    let line = "libcuda.so is not built: cargo build -p purlin-fakecuda";
    assert_eq!(said.lines().filter(|said| *said == line).count(), 2, "links() says so, too: {said}");
    assert!(!output.status.success() && complained.contains(line), "Driver::open() panics with it: {complained}");
}

#[test]
fn nvml_knows_the_devices_of_the_driver() {
    process::run("nvml_knows_the_devices_of_the_driver", &Options { devices: 3, ..Options::default() }, || {
        let (nvml, gpu) = (Nvml::open(), Session::new());
        macro_rules! ask {
            ($name:ident($($argument:expr),*)) => {{
                // SAFETY: the places are for what is answered.
                unsafe { (nvml.$name)($($argument),*) }
            }};
        }
        let (mut count, mut device, mut other) = (0, 0, 0);
        assert_eq!(ask!(nvmlDeviceGetCount_v2(&mut count)), 1, "not initialised");
        assert_eq!(ask!(nvmlInit_v2()), 0);
        assert_eq!((ask!(nvmlDeviceGetCount_v2(&mut count)), count), (0, 3));
        assert_eq!(ask!(nvmlDeviceGetHandleByIndex_v2(2, &mut device)), 0);
        assert_eq!(ask!(nvmlDeviceGetHandleByIndex_v2(3, &mut other)), 2);
        let mut id = [0 as c_char; 32];
        ok!(gpu, cuDeviceGetPCIBusId(id.as_mut_ptr(), 32, 2));
        assert_eq!(ask!(nvmlDeviceGetHandleByPciBusId_v2(id.as_ptr(), &mut other)), 0);
        assert_eq!(device, other);
        assert_eq!(ask!(nvmlDeviceGetHandleByPciBusId_v2(c"0000:77:00.0".as_ptr(), &mut other)), 6);
        let mut name = [0_u8; 64];
        assert_eq!(ask!(nvmlDeviceGetName(device, name.as_mut_ptr().cast(), 64)), 0);
        assert_eq!(CStr::from_bytes_until_nul(&name).unwrap(), c"Purlin fake GPU");
        assert_eq!(ask!(nvmlDeviceGetName(device, name.as_mut_ptr().cast(), 15)), 7);
        let (mut memory, mut utilization, mut number) = ([0; 3], [9; 2], 0);
        assert_eq!(ask!(nvmlDeviceGetMemoryInfo(device, &mut memory)), 0);
        assert_eq!((memory[0], memory[1] + memory[2]), (4 << 30, 4 << 30));
        assert_eq!((ask!(nvmlDeviceGetUtilizationRates(device, &mut utilization)), utilization), (0, [0; 2]));
        assert_eq!((ask!(nvmlDeviceGetTemperature(device, 0, &mut number)), number), (0, 35));
        assert_eq!((ask!(nvmlDeviceGetPowerUsage(device, &mut number)), number), (0, 70_000));
        assert_eq!(ask!(nvmlSystemGetDriverVersion(name.as_mut_ptr().cast(), 64)), 0);
        // Version and size, cluster, status, clique, state.
        let mut fabric = [0x0200_0023_u32, 9, 9, 9, 9, 9, 9, 9, 0];
        assert_eq!(ask!(nvmlDeviceGetGpuFabricInfoV(device, &mut fabric)), 25, "another version");
        fabric[0] += 1;
        assert_eq!((ask!(nvmlDeviceGetGpuFabricInfoV(device, &mut fabric)), &fabric[1..7]), (0, &[0; 6][..]));
        nvml.set_fabric("3:4:5");
        assert_eq!((ask!(nvmlDeviceGetGpuFabricInfoV(device, &mut fabric)), &fabric[5..7]), (0, &[4, 5][..]));
        assert_eq!((fabric[1].to_le_bytes(), fabric[7] & 0xff), (*b"purl", 3));
        nvml.set_faults("nvmlDeviceGetGpuFabricInfoV:2:3");
        let answers = [0, 1, 2].map(|_| ask!(nvmlDeviceGetGpuFabricInfoV(device, &mut fabric)));
        assert_eq!(answers, [0, 3, 0]);
        // SAFETY: the texts are constants that end in a null.
        assert_eq!(unsafe { CStr::from_ptr((nvml.nvmlErrorString)(6)) }, c"not found");
        assert_eq!((ask!(nvmlShutdown()), ask!(nvmlShutdown())), (0, 1));
        gpu.end();
    });
}

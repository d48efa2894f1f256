//! What is said where CUDA cannot be used, and to whom asks for too much of it.

#![allow(unsafe_code, reason = "the driver's library is looked for")]

use std::os::unix::fs::symlink;
use std::process::Command;
use std::sync::Barrier;
use std::{env, fs, thread};

use cudarc::driver::sys::is_culib_present;
use purlin::program::LoadedKernel;
use purlin::{Error, LaunchOptions, StatusCode};
use purlin_cuda::CudaBackend;
use purlin_fakecuda::{Driver, Options, find, process};

use crate::known_codes::{KNOWN, UNKNOWN};
use crate::launches::{FILL, fill, spec, start};
use crate::support::*;

/// The error, again at every call.
#[track_caller]
fn unavailable(words: &[&str]) -> Error {
    let error = CudaBackend::new().unwrap_err();
    assert_eq!(error.code(), StatusCode::Unavailable, "{error}");
    words.iter().for_each(|word| assert!(error.message().contains(word), "'{word}' in: {error}"));
    assert_eq!(client(1).unwrap_err(), error);
    error
}

/// Says that there is a driver where the test wants none, if so.
fn has_another_driver(name: &str) -> bool {
    // SAFETY: it looks for a library by the names that drivers have.
    let is_there = unsafe { is_culib_present() };
    if is_there {
        eprintln!("{name}: skipped: this machine has a driver of its own");
    }
    is_there
}

#[test]
fn without_a_driver_it_says_where_one_is_looked_for() {
    let name = "opening::without_a_driver_it_says_where_one_is_looked_for";
    let nowhere = |command: &mut Command| _ = command.env_remove("LD_LIBRARY_PATH").current_dir("/");
    process::run_with(name, nowhere, || {
        if !has_another_driver(name) {
            let words = "(libcuda.so.1: cannot open shared object file: No such file or directory)";
            unavailable(&[words, "install NVIDIA's driver", "LD_LIBRARY_PATH"]);
        }
    });
}

#[test]
fn a_driver_that_cannot_be_loaded_is_told_why() {
    let name = "opening::a_driver_that_cannot_be_loaded_is_told_why";
    let folder = env::temp_dir().join(format!("purlin-empty-driver-{}", std::process::id()));
    let prepare = |command: &mut Command| {
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("libcuda.so.1"), "").unwrap();
        command.env("LD_LIBRARY_PATH", &folder).current_dir("/");
    };
    process::run_with(name, prepare, || {
        if !has_another_driver(name) {
            unavailable(&["CUDA's driver cannot be loaded (", "/libcuda.so.1: file too short)"]);
        }
    });
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_library_that_is_no_driver_is_told_what_it_lacks() {
    let name = "opening::a_library_that_is_no_driver_is_told_what_it_lacks";
    let folder = env::temp_dir().join(format!("purlin-no-driver-{}", std::process::id()));
    let prepare = |command: &mut Command| {
        fs::create_dir_all(&folder).unwrap();
        let link = folder.join("libcuda.so.1");
        _ = fs::remove_file(&link);
        symlink(find("libnvidia_ml.so").unwrap(), link).unwrap();
        command.env("LD_LIBRARY_PATH", &folder).current_dir("/");
    };
    process::run_with(name, prepare, || match CudaBackend::new() {
        Ok(_) => eprintln!("{name}: skipped: this machine has a driver of its own"),
        Err(_) => _ = unavailable(&["CUDA's driver", "has no cuInit"]),
    });
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn an_old_driver_is_told_how_old() {
    let options = Options { driver_version: 12_010, ..Options::default() };
    process::run("opening::an_old_driver_is_told_how_old", &options, || {
        unavailable(&["CUDA 12.1,", "12.2", "535"]);
    });
}

#[test]
fn the_least_driver_is_enough() {
    let options = Options { driver_version: 12_020, ..Options::default() };
    process::run("opening::the_least_driver_is_enough", &options, || {
        Session::with(1, |session| write(&session.block(0, "device", 64), &pattern(64, 1)).unwrap());
    });
}

/// Drivers before 12.4 do not say which parameters a kernel has: any number of arguments is taken for the right one.
#[test]
fn a_driver_without_lists_of_parameters_loads_and_launches_kernels() {
    const ENTRY: &[u8] = b"cuFuncGetParamInfo";
    const OTHER: &[u8] = b"cuFuncGetParamNone";
    let name = "opening::a_driver_without_lists_of_parameters_loads_and_launches_kernels";
    let folder = env::temp_dir().join(format!("purlin-older-driver-{}", std::process::id()));
    let prepare = |command: &mut Command| {
        let mut driver = fs::read(find("libcuda.so").unwrap()).unwrap();
        let places: Vec<usize> = (0..driver.len()).filter(|&at| driver[at..].starts_with(ENTRY)).collect();
        places.iter().for_each(|&at| driver[at..at + ENTRY.len()].copy_from_slice(OTHER));
        fs::create_dir_all(&folder).unwrap();
        ["libcuda.so", "libcuda.so.1"].iter().for_each(|name| fs::write(folder.join(name), &driver).unwrap());
        let options = Options { driver_version: 12_020, ..Options::default() };
        command.env("LD_LIBRARY_PATH", &folder).envs(options.variables());
    };
    process::run_with(name, prepare, || {
        let client = client(1).unwrap();
        let device = &client.devices()[0];
        drop(LoadedKernel::load(device, &spec(FILL, "fill_8", 1, &[])).unwrap());
        let (fill, block) = (fill(device, 7, 64).unwrap(), block(&client, 0, "device", 64).unwrap());
        outcome(&start(&fill, &[&block], &LaunchOptions::default()).unwrap()).unwrap();
        assert_eq!(read(&block).unwrap(), 7_u32.to_ne_bytes().repeat(16));
    });
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn without_a_device_there_is_no_client() {
    process::run("opening::without_a_device_there_is_no_client", &Options { devices: 0, ..Options::default() }, || {
        unavailable(&["CUDA_ERROR_NO_DEVICE (100)", "nvidia-smi", "CUDA_VISIBLE_DEVICES"]);
    });
}

#[test]
fn a_driver_that_does_not_begin_is_told_what_helps() {
    process::run("opening::a_driver_that_does_not_begin_is_told_what_helps", &Options::default(), || {
        for (code, what) in [
            (3, "fork before"),
            (34, "the folder 'stubs'"),
            (100, "CUDA_VISIBLE_DEVICES"),
            (101, "CUDA_VISIBLE_DEVICES"),
            (802, "fabric manager"),
            (803, "of different versions"),
            (804, "the folder 'compat'"),
            (999, "nvidia-smi"),
            (4711, "nvidia-smi"),
        ] {
            forked(what, || {
                Driver::open().control.set_faults(&format!("cuInit:0:{code}"));
                unavailable(&["CUDA's driver cannot be initialised", &code.to_string(), what]);
            });
        }
    });
}

#[test]
fn a_driver_that_does_not_begin_is_unavailable_whatever_it_says() {
    let name = "opening::a_driver_that_does_not_begin_is_unavailable_whatever_it_says";
    process::run(name, &Options::default(), || {
        for entry in ["cuInit", "cuDriverGetVersion", "cuDeviceGetCount"] {
            for code in KNOWN.iter().chain(&UNKNOWN) {
                for effect in ["", ":sticky"] {
                    let fault = format!("{entry}:0:{code}{effect}");
                    forked(&fault, || {
                        Driver::open().control.set_faults(&fault);
                        unavailable(&[&code.to_string()]);
                    });
                }
            }
        }
    });
}

#[test]
fn more_devices_than_there_are_are_refused_with_both_numbers() {
    let name = "opening::more_devices_than_there_are_are_refused_with_both_numbers";
    process::run(name, &Options { devices: 3, ..Options::default() }, || {
        let error = client(5).unwrap_err();
        assert_eq!(error.code(), StatusCode::InvalidArgument);
        assert!(error.message().contains('5') && error.message().contains('3'), "{error}");
        let driver = Driver::open();
        nothing_is_left(&driver);
        Session::with(3, |session| assert_eq!(session.client.devices().len(), 3));
    });
}

#[test]
fn threads_that_begin_at_once_initialise_the_driver_once() {
    process::run("opening::threads_that_begin_at_once_initialise_the_driver_once", &Options::default(), || {
        const THREADS: usize = 8;
        let (driver, begin) = (Driver::open(), Barrier::new(THREADS));
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    begin.wait();
                    let client = client(1).unwrap();
                    drop(block(&client, 0, "device", 64).unwrap());
                    shut_down(&client).unwrap();
                });
            }
        });
        if driver.control.is_fake() {
            let calls = ["cuInit", "cuDriverGetVersion", "cuDeviceGetCount"].map(|name| driver.control.calls(name));
            assert_eq!(calls, [1; 3]);
        }
        nothing_is_left(&driver);
    });
}

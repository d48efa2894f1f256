//! Every entry point that the backend calls, with every code: an error or a success with the right bytes, and never a
//! panic, an abort or a hang.
//!
//! One part of 64 of the combinations, that which `PURLIN_CUDA_FAULTS` names, 0 by default: each has every
//! entry point and a different code for each.

use purlin_fakecuda::{Options, process};

use crate::scenario::{self, Expect};
use crate::support::*;

/// The codes that cudarc 0.19.10 knows, as numbers, but for 0.
pub(crate) const KNOWN: [u32; 105] = [
    1, 2, 3, 4, 5, 6, 7, 8, 34, 36, 46, 47, 100, 101, 102, 200, 201, 202, 205, 206, 207, 208, 209, 210, 211, 212, 213,
    214, 215, 216, 217, 218, 219, 220, 221, 222, 223, 224, 225, 226, 227, 300, 301, 302, 303, 304, 400, 401, 402, 500,
    600, 700, 701, 702, 703, 704, 705, 708, 709, 710, 711, 712, 713, 714, 715, 716, 717, 718, 719, 720, 721, 800, 801,
    802, 803, 804, 805, 806, 807, 808, 809, 810, 811, 812, 900, 901, 902, 903, 904, 905, 906, 907, 908, 909, 910, 911,
    912, 913, 914, 915, 916, 917, 918, 919, 999,
];

/// Codes that nobody knows.
pub(crate) const UNKNOWN: [u32; 3] = [9999, 1_000_000, u32::MAX];

/// `CUDA_ERROR_NOT_READY`: no error, but that work goes on. A driver that answers it for ever says that the work never
/// ends, and is waited for.
const NOT_READY: u32 = 600;

/// The entry points that a client and its work call, after the driver has begun.
pub(crate) const ENTRIES: [&str; 49] = [
    "cuDeviceGet",
    "cuDeviceGetName",
    "cuDeviceTotalMem_v2",
    "cuDeviceGetAttribute",
    "cuDeviceGetPCIBusId",
    "cuDevicePrimaryCtxRetain",
    "cuDevicePrimaryCtxRelease_v2",
    "cuCtxGetCurrent",
    "cuCtxSetCurrent",
    "cuStreamCreate",
    "cuStreamDestroy_v2",
    "cuStreamQuery",
    "cuStreamSynchronize",
    "cuStreamWaitEvent",
    "cuEventCreate",
    "cuEventDestroy_v2",
    "cuEventRecord",
    "cuEventQuery",
    "cuMemGetInfo_v2",
    "cuMemAllocFromPoolAsync",
    "cuMemFreeAsync",
    "cuMemHostAlloc",
    "cuMemFreeHost",
    "cuMemHostRegister_v2",
    "cuMemHostUnregister",
    "cuPointerGetAttributes",
    "cuMemcpyHtoDAsync_v2",
    "cuMemcpyDtoHAsync_v2",
    "cuMemcpyDtoDAsync_v2",
    "cuMemcpyPeerAsync",
    "cuMemsetD8Async",
    "cuMemsetD16Async",
    "cuMemsetD32Async",
    "cuModuleLoadDataEx",
    "cuModuleUnload",
    "cuModuleGetFunction",
    "cuFuncGetAttribute",
    "cuFuncSetAttribute",
    "cuFuncGetParamInfo",
    "cuLaunchKernel",
    "cuStreamBeginCapture_v2",
    "cuStreamEndCapture",
    "cuGraphInstantiateWithFlags",
    "cuGraphExecUpdate_v2",
    "cuGraphLaunch",
    "cuGraphDestroy",
    "cuGraphExecDestroy",
    "cuGetErrorName",
    "cuGetErrorString",
];

/// Whether every call is to fail in turn (`PURLIN_CUDA_FAULTS=all`).
pub(crate) fn all() -> bool {
    std::env::var("PURLIN_CUDA_FAULTS").is_ok_and(|wanted| wanted == "all")
}

/// The part of the combinations of an entry point and a code that is wanted.
fn combinations() -> Vec<(&'static str, u32)> {
    const PARTS: usize = 64;
    let part = std::env::var("PURLIN_CUDA_FAULTS").ok().and_then(|part| part.parse::<usize>().ok()).unwrap_or(0);
    let codes: Vec<u32> = KNOWN.into_iter().chain(UNKNOWN).collect();
    let of_entry = |(at, entry): (usize, &'static str)| {
        let codes = codes.iter().enumerate().filter(move |(code, _)| (at + code) % PARTS == part % PARTS);
        codes.map(move |(_, code)| (entry, *code)).collect::<Vec<_>>()
    };
    ENTRIES.into_iter().enumerate().flat_map(of_entry).collect()
}

#[test]
fn every_entry_point_may_answer_any_code_for_ever() {
    process::run("codes::every_entry_point_may_answer_any_code_for_ever", &Options::default(), || {
        for (entry, code) in combinations() {
            if (entry, code) == ("cuEventQuery", NOT_READY) {
                continue;
            }
            let fault = format!("{entry}:0:{code}");
            forked(&fault, || _ = scenario::under(&fault, Expect::Anything));
        }
    });
}

#[test]
fn every_entry_point_may_break_the_device_with_any_code() {
    process::run("codes::every_entry_point_may_break_the_device_with_any_code", &Options::default(), || {
        for (entry, code) in combinations() {
            if code == NOT_READY {
                continue;
            }
            // The third call, in the midst of the work, if there are so many.
            for number in [1, 3] {
                let fault = format!("{entry}:{number}:{code}:sticky");
                forked(&fault, || _ = scenario::under(&fault, Expect::Anything));
            }
        }
    });
}

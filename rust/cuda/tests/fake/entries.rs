//! The entry points of the driver that the backend calls, as its source lists them, and how tests have each called.

use purlin_fakecuda::Cuda;

/// Its groups name every entry point.
const SOURCE: &str = include_str!("../../src/api.rs");

/// All of them, in the order of the source.
pub(crate) fn all() -> Vec<&'static str> {
    let named = SOURCE.split(" = \"").skip(1).filter_map(|rest| rest.split_once('"'));
    named.map(|(name, _)| name).filter(|name| name.starts_with("cu")).collect()
}

/// Called once for a process, before all else.
pub(crate) fn is_opening(entry: &str) -> bool {
    matches!(entry, "cuInit" | "cuDriverGetVersion" | "cuDeviceGetCount")
}

/// Called only where the driver has no pools.
pub(crate) fn is_without_pools(entry: &str) -> bool {
    matches!(entry, "cuMemAlloc_v2" | "cuMemFree_v2")
}

/// Called only while a trace is recorded.
pub(crate) fn is_of_traces(entry: &str) -> bool {
    entry == "cuEventElapsedTime"
}

/// Called by a client of a driver with pools.
pub(crate) fn with_pools() -> Vec<&'static str> {
    all().into_iter().filter(|entry| !is_opening(entry) && !is_without_pools(entry)).collect()
}

/// Called by a client of a driver without pools.
pub(crate) fn without_pools() -> Vec<&'static str> {
    const OF_POOLS: [&str; 4] =
        ["cuMemAllocFromPoolAsync", "cuMemFreeAsync", "cuDeviceGetDefaultMemPool", "cuMemPoolSetAccess"];
    all().into_iter().filter(|entry| !is_opening(entry) && !OF_POOLS.contains(entry)).collect()
}

/// Faults, with a comma behind each, that have an entry point called that is called after failures alone: of memory, a
/// stream and a copy. Empty: all goes well before it is called.
pub(crate) fn leading(entry: &str, has_pools: bool) -> &'static str {
    const OF_WORK: &str = "cuEventRecord:9:1,cuMemcpyDtoDAsync_v2:2:1,cuMemHostAlloc:3:2,cuLaunchKernel:1:1,";
    match entry {
        "cuStreamQuery" | "cuGetErrorName" | "cuGetErrorString" => OF_WORK,
        // Extents of pools are waited for; else streams are, after failures.
        "cuStreamSynchronize" if !has_pools => OF_WORK,
        "cuMemGetInfo_v2" if has_pools => "cuMemAllocFromPoolAsync:2:1,cuMemAllocFromPoolAsync:5:1,",
        "cuMemGetInfo_v2" => "cuMemAlloc_v2:2:1,cuMemAlloc_v2:5:1,",
        _ => "",
    }
}

#[test]
fn the_list_is_that_of_the_source() {
    let mut names = all();
    assert_eq!(names.len(), SOURCE.matches("\"cu").count(), "the source names more than are found: {names:?}");
    names.iter().for_each(|name| assert!(Cuda::NAMES.contains(name), "the fake driver has no {name}"));
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all().len(), "an entry point is named twice");
}

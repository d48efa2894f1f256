//! Result codes: plain numbers, since a driver may answer one that nobody knows.
//!
//! Each known one has its name as CUDA's header spells it, and words of ours for `cuGetErrorString`.

use std::ffi::{CStr, CString};
use std::sync::OnceLock;

/// What an entry point answers other than 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Code(pub(crate) u32);

impl Code {
    pub(crate) const INVALID_VALUE: Self = Self(1);
    pub(crate) const OUT_OF_MEMORY: Self = Self(2);
    pub(crate) const NOT_INITIALIZED: Self = Self(3);
    pub(crate) const DEINITIALIZED: Self = Self(4);
    pub(crate) const NO_DEVICE: Self = Self(100);
    pub(crate) const INVALID_DEVICE: Self = Self(101);
    pub(crate) const INVALID_CONTEXT: Self = Self(201);
    pub(crate) const NO_BINARY_FOR_GPU: Self = Self(209);
    pub(crate) const PEER_ACCESS_UNSUPPORTED: Self = Self(217);
    pub(crate) const INVALID_PTX: Self = Self(218);
    pub(crate) const UNSUPPORTED_PTX_VERSION: Self = Self(222);
    pub(crate) const INVALID_HANDLE: Self = Self(400);
    pub(crate) const ILLEGAL_STATE: Self = Self(401);
    pub(crate) const NOT_FOUND: Self = Self(500);
    pub(crate) const NOT_READY: Self = Self(600);
    pub(crate) const ILLEGAL_ADDRESS: Self = Self(700);
    pub(crate) const PEER_ACCESS_ALREADY_ENABLED: Self = Self(704);
    pub(crate) const CONTEXT_IS_DESTROYED: Self = Self(709);
    pub(crate) const HOST_MEMORY_ALREADY_REGISTERED: Self = Self(712);
    pub(crate) const HOST_MEMORY_NOT_REGISTERED: Self = Self(713);
    pub(crate) const LAUNCH_FAILED: Self = Self(719);
    pub(crate) const NOT_PERMITTED: Self = Self(800);
    pub(crate) const NOT_SUPPORTED: Self = Self(801);
    pub(crate) const STREAM_CAPTURE_UNSUPPORTED: Self = Self(900);
    pub(crate) const STREAM_CAPTURE_INVALIDATED: Self = Self(901);
    pub(crate) const STREAM_CAPTURE_MERGE: Self = Self(902);
    pub(crate) const STREAM_CAPTURE_UNMATCHED: Self = Self(903);
    pub(crate) const STREAM_CAPTURE_UNJOINED: Self = Self(904);
    pub(crate) const STREAM_CAPTURE_ISOLATION: Self = Self(905);
    pub(crate) const STREAM_CAPTURE_IMPLICIT: Self = Self(906);
    pub(crate) const CAPTURED_EVENT: Self = Self(907);
    pub(crate) const STREAM_CAPTURE_WRONG_THREAD: Self = Self(908);
    pub(crate) const GRAPH_EXEC_UPDATE_FAILURE: Self = Self(910);
    pub(crate) const UNKNOWN: Self = Self(999);
}

/// Number and name, by number.
const KNOWN: &[(u32, &CStr)] = &[
    (0, c"CUDA_SUCCESS"),
    (1, c"CUDA_ERROR_INVALID_VALUE"),
    (2, c"CUDA_ERROR_OUT_OF_MEMORY"),
    (3, c"CUDA_ERROR_NOT_INITIALIZED"),
    (4, c"CUDA_ERROR_DEINITIALIZED"),
    (5, c"CUDA_ERROR_PROFILER_DISABLED"),
    (6, c"CUDA_ERROR_PROFILER_NOT_INITIALIZED"),
    (7, c"CUDA_ERROR_PROFILER_ALREADY_STARTED"),
    (8, c"CUDA_ERROR_PROFILER_ALREADY_STOPPED"),
    (34, c"CUDA_ERROR_STUB_LIBRARY"),
    (36, c"CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER"),
    (46, c"CUDA_ERROR_DEVICE_UNAVAILABLE"),
    (47, c"CUDA_ERROR_MULTICAST_RESOURCE_FULL"),
    (100, c"CUDA_ERROR_NO_DEVICE"),
    (101, c"CUDA_ERROR_INVALID_DEVICE"),
    (102, c"CUDA_ERROR_DEVICE_NOT_LICENSED"),
    (200, c"CUDA_ERROR_INVALID_IMAGE"),
    (201, c"CUDA_ERROR_INVALID_CONTEXT"),
    (202, c"CUDA_ERROR_CONTEXT_ALREADY_CURRENT"),
    (205, c"CUDA_ERROR_MAP_FAILED"),
    (206, c"CUDA_ERROR_UNMAP_FAILED"),
    (207, c"CUDA_ERROR_ARRAY_IS_MAPPED"),
    (208, c"CUDA_ERROR_ALREADY_MAPPED"),
    (209, c"CUDA_ERROR_NO_BINARY_FOR_GPU"),
    (210, c"CUDA_ERROR_ALREADY_ACQUIRED"),
    (211, c"CUDA_ERROR_NOT_MAPPED"),
    (212, c"CUDA_ERROR_NOT_MAPPED_AS_ARRAY"),
    (213, c"CUDA_ERROR_NOT_MAPPED_AS_POINTER"),
    (214, c"CUDA_ERROR_ECC_UNCORRECTABLE"),
    (215, c"CUDA_ERROR_UNSUPPORTED_LIMIT"),
    (216, c"CUDA_ERROR_CONTEXT_ALREADY_IN_USE"),
    (217, c"CUDA_ERROR_PEER_ACCESS_UNSUPPORTED"),
    (218, c"CUDA_ERROR_INVALID_PTX"),
    (219, c"CUDA_ERROR_INVALID_GRAPHICS_CONTEXT"),
    (220, c"CUDA_ERROR_NVLINK_UNCORRECTABLE"),
    (221, c"CUDA_ERROR_JIT_COMPILER_NOT_FOUND"),
    (222, c"CUDA_ERROR_UNSUPPORTED_PTX_VERSION"),
    (223, c"CUDA_ERROR_JIT_COMPILATION_DISABLED"),
    (224, c"CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY"),
    (225, c"CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC"),
    (226, c"CUDA_ERROR_CONTAINED"),
    (227, c"CUDA_ERROR_INSUFFICIENT_LOADER_VERSION"),
    (300, c"CUDA_ERROR_INVALID_SOURCE"),
    (301, c"CUDA_ERROR_FILE_NOT_FOUND"),
    (302, c"CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND"),
    (303, c"CUDA_ERROR_SHARED_OBJECT_INIT_FAILED"),
    (304, c"CUDA_ERROR_OPERATING_SYSTEM"),
    (400, c"CUDA_ERROR_INVALID_HANDLE"),
    (401, c"CUDA_ERROR_ILLEGAL_STATE"),
    (402, c"CUDA_ERROR_LOSSY_QUERY"),
    (500, c"CUDA_ERROR_NOT_FOUND"),
    (600, c"CUDA_ERROR_NOT_READY"),
    (700, c"CUDA_ERROR_ILLEGAL_ADDRESS"),
    (701, c"CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"),
    (702, c"CUDA_ERROR_LAUNCH_TIMEOUT"),
    (703, c"CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING"),
    (704, c"CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED"),
    (705, c"CUDA_ERROR_PEER_ACCESS_NOT_ENABLED"),
    (708, c"CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE"),
    (709, c"CUDA_ERROR_CONTEXT_IS_DESTROYED"),
    (710, c"CUDA_ERROR_ASSERT"),
    (711, c"CUDA_ERROR_TOO_MANY_PEERS"),
    (712, c"CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED"),
    (713, c"CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED"),
    (714, c"CUDA_ERROR_HARDWARE_STACK_ERROR"),
    (715, c"CUDA_ERROR_ILLEGAL_INSTRUCTION"),
    (716, c"CUDA_ERROR_MISALIGNED_ADDRESS"),
    (717, c"CUDA_ERROR_INVALID_ADDRESS_SPACE"),
    (718, c"CUDA_ERROR_INVALID_PC"),
    (719, c"CUDA_ERROR_LAUNCH_FAILED"),
    (720, c"CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE"),
    (721, c"CUDA_ERROR_TENSOR_MEMORY_LEAK"),
    (800, c"CUDA_ERROR_NOT_PERMITTED"),
    (801, c"CUDA_ERROR_NOT_SUPPORTED"),
    (802, c"CUDA_ERROR_SYSTEM_NOT_READY"),
    (803, c"CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"),
    (804, c"CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE"),
    (805, c"CUDA_ERROR_MPS_CONNECTION_FAILED"),
    (806, c"CUDA_ERROR_MPS_RPC_FAILURE"),
    (807, c"CUDA_ERROR_MPS_SERVER_NOT_READY"),
    (808, c"CUDA_ERROR_MPS_MAX_CLIENTS_REACHED"),
    (809, c"CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED"),
    (810, c"CUDA_ERROR_MPS_CLIENT_TERMINATED"),
    (811, c"CUDA_ERROR_CDP_NOT_SUPPORTED"),
    (812, c"CUDA_ERROR_CDP_VERSION_MISMATCH"),
    (900, c"CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"),
    (901, c"CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"),
    (902, c"CUDA_ERROR_STREAM_CAPTURE_MERGE"),
    (903, c"CUDA_ERROR_STREAM_CAPTURE_UNMATCHED"),
    (904, c"CUDA_ERROR_STREAM_CAPTURE_UNJOINED"),
    (905, c"CUDA_ERROR_STREAM_CAPTURE_ISOLATION"),
    (906, c"CUDA_ERROR_STREAM_CAPTURE_IMPLICIT"),
    (907, c"CUDA_ERROR_CAPTURED_EVENT"),
    (908, c"CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD"),
    (909, c"CUDA_ERROR_TIMEOUT"),
    (910, c"CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE"),
    (911, c"CUDA_ERROR_EXTERNAL_DEVICE"),
    (912, c"CUDA_ERROR_INVALID_CLUSTER_SIZE"),
    (913, c"CUDA_ERROR_FUNCTION_NOT_LOADED"),
    (914, c"CUDA_ERROR_INVALID_RESOURCE_TYPE"),
    (915, c"CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION"),
    (916, c"CUDA_ERROR_KEY_ROTATION"),
    (917, c"CUDA_ERROR_STREAM_DETACHED"),
    (918, c"CUDA_ERROR_GRAPH_RECAPTURE_FAILURE"),
    (919, c"CUDA_ERROR_FABRIC_NOT_READY"),
    (999, c"CUDA_ERROR_UNKNOWN"),
];

fn known(code: u32) -> Option<usize> {
    KNOWN.binary_search_by_key(&code, |(number, _)| *number).ok()
}

/// As CUDA's header spells it.
pub(crate) fn name(code: u32) -> Option<&'static CStr> {
    known(code).map(|at| KNOWN[at].1)
}

/// In words.
pub(crate) fn words(code: u32) -> Option<&'static CStr> {
    static WORDS: OnceLock<Vec<CString>> = OnceLock::new();
    let in_words = |(_, name): &(u32, &CStr)| {
        let name = name.to_string_lossy();
        let name = name.trim_start_matches("CUDA_").trim_start_matches("ERROR_").replace('_', " ").to_lowercase();
        CString::new(name).unwrap_or_default()
    };
    known(code).map(|at| WORDS.get_or_init(|| KNOWN.iter().map(in_words).collect())[at].as_c_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_codes_have_a_name_and_words() {
        assert!(KNOWN.is_sorted_by_key(|(number, _)| *number));
        assert_eq!((name(0), words(0)), (Some(c"CUDA_SUCCESS"), Some(c"success")));
        assert_eq!((name(700), words(700)), (Some(c"CUDA_ERROR_ILLEGAL_ADDRESS"), Some(c"illegal address")));
        assert_eq!((name(9999), words(12345)), (None, None));
    }
}

//! The entry points by name: for counters, faults and reports.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! entries {
    ($($name:ident)*) => {
        /// One entry point, called as its symbol is.
        #[allow(non_camel_case_types, reason = "the names of the symbols")]
        #[derive(Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Entry {
            $($name,)*
        }

        /// The symbols, in the order of [`Entry`].
        pub(crate) const NAMES: &[&str] = &[$(stringify!($name),)*];
    };
}

entries! {
    cuInit cuDriverGetVersion cuDeviceGetCount cuDeviceGet cuDeviceGetName cuDeviceGetUuid_v2 cuDeviceTotalMem_v2
    cuDeviceGetAttribute cuDeviceGetPCIBusId cuDeviceCanAccessPeer cuDeviceGetP2PAttribute
    cuDevicePrimaryCtxRetain cuDevicePrimaryCtxRelease_v2 cuDevicePrimaryCtxGetState cuCtxGetCurrent cuCtxSetCurrent
    cuCtxSynchronize cuCtxGetStreamPriorityRange cuCtxEnablePeerAccess
    cuStreamCreate cuStreamCreateWithPriority cuStreamDestroy_v2 cuStreamSynchronize cuStreamQuery cuStreamWaitEvent
    cuStreamGetCtx cuLaunchHostFunc cuStreamBeginCapture_v2 cuStreamEndCapture cuStreamIsCapturing
    cuEventCreate cuEventDestroy_v2 cuEventRecord cuEventQuery cuEventSynchronize cuEventElapsedTime
    cuEventElapsedTime_v2
    cuMemGetInfo_v2 cuMemAlloc_v2 cuMemFree_v2 cuMemAllocAsync cuMemAllocFromPoolAsync cuMemFreeAsync cuMemHostAlloc
    cuMemFreeHost cuMemHostRegister_v2 cuMemHostUnregister cuMemGetAddressRange_v2 cuPointerGetAttributes
    cuDeviceGetDefaultMemPool cuDeviceSetMemPool cuMemPoolCreate cuMemPoolDestroy cuMemPoolSetAttribute cuMemPoolGetAttribute
    cuMemPoolTrimTo cuMemPoolSetAccess
    cuMemcpyHtoDAsync_v2 cuMemcpyDtoHAsync_v2 cuMemcpyDtoDAsync_v2 cuMemcpyPeerAsync cuMemcpy2DAsync_v2
    cuMemsetD8Async cuMemsetD16Async cuMemsetD32Async
    cuModuleLoadData cuModuleLoadDataEx cuModuleUnload cuModuleGetFunction cuModuleGetGlobal_v2 cuFuncGetAttribute cuFuncSetAttribute
    cuFuncGetParamInfo cuLaunchKernel
    cuGraphInstantiateWithFlags cuGraphExecUpdate_v2 cuGraphExecKernelNodeSetParams_v2 cuGraphLaunch cuGraphUpload
    cuGraphDestroy cuGraphExecDestroy cuGraphGetNodes
    cuGetErrorName cuGetErrorString
}

static CALLS: [AtomicU64; NAMES.len()] = [const { AtomicU64::new(0) }; NAMES.len()];

impl Entry {
    pub(crate) const fn name(self) -> &'static str {
        NAMES[self as usize]
    }

    /// One call more. Its number, from 1.
    pub(crate) fn count(self) -> u64 {
        // Relaxed: a number for people, ordered with nothing.
        CALLS[self as usize].fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// How often the entry point was called since the last [`reset`]; `None`: there is none of that name.
pub(crate) fn calls(name: &str) -> Option<u64> {
    let at = NAMES.iter().position(|known| *known == name)?;
    Some(CALLS[at].load(Ordering::Relaxed))
}

/// All counters are 0.
pub(crate) fn reset() {
    CALLS.iter().for_each(|calls| calls.store(0, Ordering::Relaxed));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_there_once() {
        let mut sorted = NAMES.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        // Which they are, control/tests/control.rs says.
        assert_eq!((sorted.len(), NAMES.len()), (84, 84));
        assert_eq!(Entry::cuGetErrorString.name(), "cuGetErrorString");
    }
}

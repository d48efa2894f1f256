//! The driver's entry points, called by address.
//!
//! Results stay plain numbers: in `cudarc` they are a Rust enum, and a code that it does not know would be undefined
//! behaviour. Entry points are looked up once. Those of a group that a driver may lack are there as a whole or not at
//! all.

#![allow(unsafe_code, reason = "entry points are looked up by name and called by address")]
#![allow(non_snake_case, reason = "the names are the driver's")]

use std::ffi::{c_char, c_int, c_uchar, c_uint, c_ushort, c_void};

use cudarc::driver::sys::{
    CUcontext, CUdevice, CUdeviceptr, CUevent, CUfunction, CUgraph, CUgraphExec, CUmemAccessDesc, CUmemoryPool,
    CUmodule, CUstream, CUuuid, culib,
};
use purlin_base::Error;

/// What an entry point answers: 0, or why not.
pub(crate) type ResultCode = u32;

macro_rules! group {
    ($(#[$doc:meta])* $group:ident { $($name:ident = $symbol:literal ($($argument:ty),*);)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub(crate) struct $group {
            $(pub(crate) $name: unsafe extern "C" fn($($argument),*) -> ResultCode,)*
        }

        impl $group {
            /// # Errors
            /// The first name that the library lacks.
            ///
            /// # Safety
            /// The library's symbols have the types of CUDA's manual. It stays loaded.
            pub(crate) unsafe fn of(library: &libloading::Library) -> Result<Self, &'static str> {
                Ok(Self {
                    $($name: {
                        let symbol = concat!($symbol, "\0").as_bytes();
                        // SAFETY: the caller's promise; the types are those of the manual.
                        *unsafe { library.get::<unsafe extern "C" fn($($argument),*) -> ResultCode>(symbol) }
                            .map_err(|_| $symbol)?
                    },)*
                })
            }

            /// For models: all answer 0 and do nothing.
            #[cfg(all(test, loom))]
            pub(crate) fn idle() -> Self {
                $(unsafe extern "C" fn $name($(_: $argument),*) -> ResultCode {
                    0
                })*
                Self { $($name,)* }
            }
        }
    };
}
pub(crate) use group;

group! {
    /// What every driver has.
    Base {
        init = "cuInit"(c_uint);
        driver_version = "cuDriverGetVersion"(*mut c_int);
        device_count = "cuDeviceGetCount"(*mut c_int);
        device = "cuDeviceGet"(*mut CUdevice, c_int);
        device_name = "cuDeviceGetName"(*mut c_char, c_int, CUdevice);
        device_total_bytes = "cuDeviceTotalMem_v2"(*mut usize, CUdevice);
        device_attribute = "cuDeviceGetAttribute"(*mut c_int, c_uint, CUdevice);
        device_uuid = "cuDeviceGetUuid_v2"(*mut CUuuid, CUdevice);
        device_bus_id = "cuDeviceGetPCIBusId"(*mut c_char, c_int, CUdevice);
        retain_context = "cuDevicePrimaryCtxRetain"(*mut CUcontext, CUdevice);
        release_context = "cuDevicePrimaryCtxRelease_v2"(CUdevice);
        current_context = "cuCtxGetCurrent"(*mut CUcontext);
        set_current_context = "cuCtxSetCurrent"(CUcontext);
        create_stream = "cuStreamCreate"(*mut CUstream, c_uint);
        destroy_stream = "cuStreamDestroy_v2"(CUstream);
        query_stream = "cuStreamQuery"(CUstream);
        synchronize_stream = "cuStreamSynchronize"(CUstream);
        is_capturing = "cuStreamIsCapturing"(CUstream, *mut c_uint);
        wait_event = "cuStreamWaitEvent"(CUstream, CUevent, c_uint);
        create_event = "cuEventCreate"(*mut CUevent, c_uint);
        destroy_event = "cuEventDestroy_v2"(CUevent);
        record_event = "cuEventRecord"(CUevent, CUstream);
        query_event = "cuEventQuery"(CUevent);
        memory_info = "cuMemGetInfo_v2"(*mut usize, *mut usize);
        allocate = "cuMemAlloc_v2"(*mut CUdeviceptr, usize);
        free = "cuMemFree_v2"(CUdeviceptr);
        allocate_host = "cuMemHostAlloc"(*mut *mut c_void, usize, c_uint);
        free_host = "cuMemFreeHost"(*mut c_void);
        register_host = "cuMemHostRegister_v2"(*mut c_void, usize, c_uint);
        unregister_host = "cuMemHostUnregister"(*mut c_void);
        pointer_attributes = "cuPointerGetAttributes"(c_uint, *mut c_uint, *mut *mut c_void, CUdeviceptr);
        copy_to_device = "cuMemcpyHtoDAsync_v2"(CUdeviceptr, *const c_void, usize, CUstream);
        copy_to_host = "cuMemcpyDtoHAsync_v2"(*mut c_void, CUdeviceptr, usize, CUstream);
        copy_within = "cuMemcpyDtoDAsync_v2"(CUdeviceptr, CUdeviceptr, usize, CUstream);
        copy_to_peer = "cuMemcpyPeerAsync"(CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, usize, CUstream);
        fill_bytes = "cuMemsetD8Async"(CUdeviceptr, c_uchar, usize, CUstream);
        fill_pairs = "cuMemsetD16Async"(CUdeviceptr, c_ushort, usize, CUstream);
        fill_words = "cuMemsetD32Async"(CUdeviceptr, c_uint, usize, CUstream);
        load_module = "cuModuleLoadDataEx"(*mut CUmodule, *const c_void, c_uint, *mut c_uint, *mut *mut c_void);
        unload_module = "cuModuleUnload"(CUmodule);
        function = "cuModuleGetFunction"(*mut CUfunction, CUmodule, *const c_char);
        function_attribute = "cuFuncGetAttribute"(*mut c_int, c_uint, CUfunction);
        set_function_attribute = "cuFuncSetAttribute"(CUfunction, c_uint, c_int);
        launch = "cuLaunchKernel"(
            CUfunction, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, CUstream, *mut *mut c_void,
            *mut *mut c_void
        );
        error_name = "cuGetErrorName"(ResultCode, *mut *const c_char);
        error_text = "cuGetErrorString"(ResultCode, *mut *const c_char);
    }
}

group! {
    /// Allocation in the order of a stream.
    Pools {
        allocate = "cuMemAllocFromPoolAsync"(*mut CUdeviceptr, usize, CUmemoryPool, CUstream);
        free = "cuMemFreeAsync"(CUdeviceptr, CUstream);
        default_of = "cuDeviceGetDefaultMemPool"(*mut CUmemoryPool, CUdevice);
        set_access = "cuMemPoolSetAccess"(CUmemoryPool, *const CUmemAccessDesc, usize);
    }
}

group! {
    /// Access to the memory of other GPUs.
    Peers {
        can_access = "cuDeviceCanAccessPeer"(*mut c_int, CUdevice, CUdevice);
        enable = "cuCtxEnablePeerAccess"(CUcontext, c_uint);
    }
}

group! {
    /// Work that is recorded and launched as a whole.
    Graphs {
        begin_capture = "cuStreamBeginCapture_v2"(CUstream, c_uint);
        end_capture = "cuStreamEndCapture"(CUstream, *mut CUgraph);
        instantiate = "cuGraphInstantiateWithFlags"(*mut CUgraphExec, CUgraph, u64);
        update = "cuGraphExecUpdate_v2"(CUgraphExec, CUgraph, *mut c_void);
        launch = "cuGraphLaunch"(CUgraphExec, CUstream);
        destroy = "cuGraphDestroy"(CUgraph);
        destroy_executable = "cuGraphExecDestroy"(CUgraphExec);
    }
}

group! {
    /// Times of events.
    Times {
        elapsed = "cuEventElapsedTime"(*mut f32, CUevent, CUevent);
    }
}

group! {
    /// What parameters a kernel has, since driver 12.4.
    Parameters {
        info = "cuFuncGetParamInfo"(CUfunction, usize, *mut usize, *mut usize);
    }
}

/// All entry points that are used.
pub(crate) struct Api {
    pub(crate) base: Base,
    pub(crate) pools: Option<Pools>,
    pub(crate) peers: Option<Peers>,
    pub(crate) parameters: Option<Parameters>,
    pub(crate) graphs: Option<Graphs>,
    pub(crate) times: Option<Times>,
}

impl Api {
    /// # Errors
    /// `Unavailable`: the library lacks an entry point that every driver has.
    ///
    /// # Safety
    /// There is a library, and it is a driver.
    pub(crate) unsafe fn of_library() -> Result<Self, Error> {
        // SAFETY: the caller's promise.
        let library = unsafe { culib() };
        // SAFETY: as above; it is never unloaded.
        let (base, pools, peers) = unsafe { (Base::of(library), Pools::of(library), Peers::of(library)) };
        // SAFETY: as above.
        let (parameters, graphs, times) = unsafe { (Parameters::of(library), Graphs::of(library), Times::of(library)) };
        let base =
            base.map_err(|name| Error::unavailable(format!("the library that is called CUDA's driver has no {name}")))?;
        let (pools, peers, parameters) = (pools.ok(), peers.ok(), parameters.ok());
        Ok(Self { base, pools, peers, parameters, graphs: graphs.ok(), times: times.ok() })
    }
}

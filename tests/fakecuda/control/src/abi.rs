//! The entry points by name and type, looked up in the library. Handles, enums and codes are plain numbers.

#![allow(unsafe_code, reason = "symbols are looked up")]
#![allow(non_snake_case, reason = "the names of the symbols")]

use std::ffi::{c_char, c_int, c_uint, c_void};

use libloading::Library;

type Handle = usize;
type Address = u64;

macro_rules! table {
    ($(#[$what:meta])* $table:ident { $($name:ident($($argument:ty),*) $(-> $answer:ty)?;)* }) => {
        $(#[$what])*
        #[derive(Clone, Copy, Debug)]
        pub struct $table {
            $(
                /// As the manual has it.
                pub $name: unsafe extern "C" fn($($argument),*) -> table!(@answer $($answer)?),
            )*
        }

        impl $table {
            /// How many there are.
            pub const NAMES: &[&str] = &[$(stringify!($name),)*];

            /// # Panics
            /// For a library that lacks one.
            pub(crate) fn of(library: &'static Library) -> Self {
                Self {
                    $(
                        // SAFETY: the types are those of the header, and the library stays loaded.
                        $name: unsafe { *library.get(stringify!($name)).expect(stringify!($name)) },
                    )*
                }
            }
        }
    };
    (@answer) => { u32 };
    (@answer $answer:ty) => { $answer };
}

table! {
    /// The driver.
    Cuda {
        cuInit(c_uint);
        cuDriverGetVersion(*mut c_int);
        cuDeviceGetCount(*mut c_int);
        cuDeviceGet(*mut c_int, c_int);
        cuDeviceGetName(*mut c_char, c_int, c_int);
        cuDeviceGetUuid_v2(*mut [u8; 16], c_int);
        cuDeviceTotalMem_v2(*mut usize, c_int);
        cuDeviceGetAttribute(*mut c_int, c_uint, c_int);
        cuDeviceGetPCIBusId(*mut c_char, c_int, c_int);
        cuDeviceCanAccessPeer(*mut c_int, c_int, c_int);
        cuDeviceGetP2PAttribute(*mut c_int, c_uint, c_int, c_int);
        cuDevicePrimaryCtxRetain(*mut Handle, c_int);
        cuDevicePrimaryCtxRelease_v2(c_int);
        cuDevicePrimaryCtxGetState(c_int, *mut c_uint, *mut c_int);
        cuCtxGetCurrent(*mut Handle);
        cuCtxSetCurrent(Handle);
        cuCtxSynchronize();
        cuCtxGetStreamPriorityRange(*mut c_int, *mut c_int);
        cuCtxEnablePeerAccess(Handle, c_uint);
        cuStreamCreate(*mut Handle, c_uint);
        cuStreamCreateWithPriority(*mut Handle, c_uint, c_int);
        cuStreamDestroy_v2(Handle);
        cuStreamSynchronize(Handle);
        cuStreamQuery(Handle);
        cuStreamWaitEvent(Handle, Handle, c_uint);
        cuStreamGetCtx(Handle, *mut Handle);
        cuLaunchHostFunc(Handle, Option<unsafe extern "C" fn(*mut c_void)>, *mut c_void);
        cuStreamBeginCapture_v2(Handle, c_uint);
        cuStreamEndCapture(Handle, *mut Handle);
        cuStreamIsCapturing(Handle, *mut c_uint);
        cuEventCreate(*mut Handle, c_uint);
        cuEventDestroy_v2(Handle);
        cuEventRecord(Handle, Handle);
        cuEventQuery(Handle);
        cuEventSynchronize(Handle);
        cuEventElapsedTime(*mut f32, Handle, Handle);
        cuEventElapsedTime_v2(*mut f32, Handle, Handle);
        cuMemGetInfo_v2(*mut usize, *mut usize);
        cuMemAlloc_v2(*mut Address, usize);
        cuMemFree_v2(Address);
        cuMemAllocAsync(*mut Address, usize, Handle);
        cuMemAllocFromPoolAsync(*mut Address, usize, Handle, Handle);
        cuMemFreeAsync(Address, Handle);
        cuMemHostAlloc(*mut *mut c_void, usize, c_uint);
        cuMemFreeHost(*mut c_void);
        cuMemHostRegister_v2(*mut c_void, usize, c_uint);
        cuMemHostUnregister(*mut c_void);
        cuMemGetAddressRange_v2(*mut Address, *mut usize, Address);
        cuPointerGetAttributes(c_uint, *const c_uint, *mut *mut c_void, Address);
        cuDeviceGetDefaultMemPool(*mut Handle, c_int);
        cuDeviceSetMemPool(c_int, Handle);
        cuMemPoolCreate(*mut Handle, *const c_void);
        cuMemPoolDestroy(Handle);
        cuMemPoolSetAttribute(Handle, c_uint, *mut c_void);
        cuMemPoolGetAttribute(Handle, c_uint, *mut c_void);
        cuMemPoolTrimTo(Handle, usize);
        cuMemPoolSetAccess(Handle, *const c_void, usize);
        cuMemcpyHtoDAsync_v2(Address, *const c_void, usize, Handle);
        cuMemcpyDtoHAsync_v2(*mut c_void, Address, usize, Handle);
        cuMemcpyDtoDAsync_v2(Address, Address, usize, Handle);
        cuMemcpyPeerAsync(Address, Handle, Address, Handle, usize, Handle);
        cuMemcpy2DAsync_v2(*const c_void, Handle);
        cuMemsetD8Async(Address, u8, usize, Handle);
        cuMemsetD16Async(Address, u16, usize, Handle);
        cuMemsetD32Async(Address, c_uint, usize, Handle);
        cuModuleLoadData(*mut Handle, *const c_void);
        cuModuleLoadDataEx(*mut Handle, *const c_void, c_uint, *mut c_uint, *mut *mut c_void);
        cuModuleUnload(Handle);
        cuModuleGetFunction(*mut Handle, Handle, *const c_char);
        cuModuleGetGlobal_v2(*mut Address, *mut usize, Handle, *const c_char);
        cuFuncGetAttribute(*mut c_int, c_uint, Handle);
        cuFuncSetAttribute(Handle, c_uint, c_int);
        cuFuncGetParamInfo(Handle, usize, *mut usize, *mut usize);
        cuLaunchKernel(Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle, *mut *mut c_void, *mut *mut c_void);
        cuGraphInstantiateWithFlags(*mut Handle, Handle, u64);
        cuGraphExecUpdate_v2(Handle, Handle, *mut c_void);
        cuGraphExecKernelNodeSetParams_v2(Handle, Handle, *const c_void);
        cuGraphLaunch(Handle, Handle);
        cuGraphUpload(Handle, Handle);
        cuGraphDestroy(Handle);
        cuGraphExecDestroy(Handle);
        cuGraphGetNodes(Handle, *mut Handle, *mut usize);
        cuGetErrorName(c_uint, *mut *const c_char);
        cuGetErrorString(c_uint, *mut *const c_char);
    }
}

table! {
    /// NVML.
    Nvml {
        nvmlInit_v2();
        nvmlShutdown();
        nvmlSystemGetDriverVersion(*mut c_char, c_uint);
        nvmlDeviceGetCount_v2(*mut c_uint);
        nvmlDeviceGetHandleByIndex_v2(c_uint, *mut Handle);
        nvmlDeviceGetHandleByPciBusId_v2(*const c_char, *mut Handle);
        nvmlDeviceGetName(Handle, *mut c_char, c_uint);
        nvmlDeviceGetMemoryInfo(Handle, *mut [u64; 3]);
        nvmlDeviceGetUtilizationRates(Handle, *mut [c_uint; 2]);
        nvmlDeviceGetTemperature(Handle, c_uint, *mut c_uint);
        nvmlDeviceGetPowerUsage(Handle, *mut c_uint);
        nvmlDeviceGetGpuFabricInfoV(Handle, *mut [u32; 9]);
        nvmlErrorString(c_uint) -> *const c_char;
        purlin_fakenvml_set_faults(*const c_char);
        purlin_fakenvml_set_fabric(*const c_char);
    }
}

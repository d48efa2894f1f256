/* Purlin: PJRT's C API, version 0.115, with names of our own, so that a file may include XLA's headers, too.
 *
 * Written by `cargo run -p purlin-pjrt-abi` from rust/pjrt-abi/pjrt.abi: change that. docs/pjrt-api.md says for each
 * field what happens to it, and since which version it is there. Facts of XLA's headers xla/pjrt/c/pjrt_c_api.h,
 * pjrt_c_api_*_extension.h and pjrt_c_api_device_event.h, as of August 2026. purlin/adapters/pjrt_tables.h makes and
 * takes such objects.
 *
 * A struct that begins with `struct_size` says with it how much of the struct its writer knows: kPurlinPjrt...Size is
 * that of version 0.115, the end of the last field, without padding. Functions return an error, which is the caller's,
 * or null, and may be called from every thread. */
#ifndef PURLIN_ADAPTERS_PJRT_ABI_H_
#define PURLIN_ADAPTERS_PJRT_ABI_H_

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* clang-format off */
/* NOLINTBEGIN(modernize-use-using): C has no other. */
#ifdef __cplusplus
extern "C" {
#endif

static_assert(sizeof(void*) == 8 && sizeof(size_t) == 8 && sizeof(int) == 4,
              "these are the layouts of 64-bit platforms");

/* Enumerations ---------------------------------------------------------------------------------------------------- */

/** PJRT_Error_Code: absl's codes, which are the field's. */
typedef int PurlinPjrtErrorCode;
/** Values of PurlinPjrtErrorCode. */
enum {
  kPurlinPjrtErrorCode_OK = 0, /**< PJRT_Error_Code_OK. */
  kPurlinPjrtErrorCode_CANCELLED = 1, /**< PJRT_Error_Code_CANCELLED. */
  kPurlinPjrtErrorCode_UNKNOWN = 2, /**< PJRT_Error_Code_UNKNOWN. */
  kPurlinPjrtErrorCode_INVALID_ARGUMENT = 3, /**< PJRT_Error_Code_INVALID_ARGUMENT. */
  kPurlinPjrtErrorCode_DEADLINE_EXCEEDED = 4, /**< PJRT_Error_Code_DEADLINE_EXCEEDED. */
  kPurlinPjrtErrorCode_NOT_FOUND = 5, /**< PJRT_Error_Code_NOT_FOUND. */
  kPurlinPjrtErrorCode_ALREADY_EXISTS = 6, /**< PJRT_Error_Code_ALREADY_EXISTS. */
  kPurlinPjrtErrorCode_PERMISSION_DENIED = 7, /**< PJRT_Error_Code_PERMISSION_DENIED. */
  kPurlinPjrtErrorCode_RESOURCE_EXHAUSTED = 8, /**< PJRT_Error_Code_RESOURCE_EXHAUSTED. */
  kPurlinPjrtErrorCode_FAILED_PRECONDITION = 9, /**< PJRT_Error_Code_FAILED_PRECONDITION. */
  kPurlinPjrtErrorCode_ABORTED = 10, /**< PJRT_Error_Code_ABORTED. */
  kPurlinPjrtErrorCode_OUT_OF_RANGE = 11, /**< PJRT_Error_Code_OUT_OF_RANGE. */
  kPurlinPjrtErrorCode_UNIMPLEMENTED = 12, /**< PJRT_Error_Code_UNIMPLEMENTED. */
  kPurlinPjrtErrorCode_INTERNAL = 13, /**< PJRT_Error_Code_INTERNAL. */
  kPurlinPjrtErrorCode_UNAVAILABLE = 14, /**< PJRT_Error_Code_UNAVAILABLE. */
  kPurlinPjrtErrorCode_DATA_LOSS = 15, /**< PJRT_Error_Code_DATA_LOSS. */
  kPurlinPjrtErrorCode_UNAUTHENTICATED = 16, /**< PJRT_Error_Code_UNAUTHENTICATED. */
};

/** PJRT_Extension_Type: What an extension is; the order of the numbers is upstream's. */
typedef int PurlinPjrtExtensionType;
/** Values of PurlinPjrtExtensionType. */
enum {
  kPurlinPjrtExtensionType_Gpu_Custom_Call = 0, /**< PJRT_Extension_Type_Gpu_Custom_Call. */
  kPurlinPjrtExtensionType_Profiler = 1, /**< PJRT_Extension_Type_Profiler. */
  kPurlinPjrtExtensionType_Custom_Partitioner = 2, /**< PJRT_Extension_Type_Custom_Partitioner. */
  kPurlinPjrtExtensionType_Stream = 3, /**< PJRT_Extension_Type_Stream. */
  kPurlinPjrtExtensionType_Layouts = 4, /**< PJRT_Extension_Type_Layouts. */
  kPurlinPjrtExtensionType_FFI = 5, /**< PJRT_Extension_Type_FFI. */
  kPurlinPjrtExtensionType_MemoryDescriptions = 6, /**< PJRT_Extension_Type_MemoryDescriptions. */
  kPurlinPjrtExtensionType_Triton = 7, /**< PJRT_Extension_Type_Triton. */
  kPurlinPjrtExtensionType_RawBuffer = 8, /**< PJRT_Extension_Type_RawBuffer. */
  kPurlinPjrtExtensionType_PhaseCompile = 9, /**< PJRT_Extension_Type_PhaseCompile. */
  kPurlinPjrtExtensionType_Example = 10, /**< PJRT_Extension_Type_Example. */
  kPurlinPjrtExtensionType_Unknown = 11, /**< PJRT_Extension_Type_Unknown. */
  kPurlinPjrtExtensionType_CrossHostTransfers = 12, /**< PJRT_Extension_Type_CrossHostTransfers. */
  kPurlinPjrtExtensionType_ExecutableMetadata = 13, /**< PJRT_Extension_Type_ExecutableMetadata. */
  kPurlinPjrtExtensionType_Callback = 14, /**< PJRT_Extension_Type_Callback. */
  kPurlinPjrtExtensionType_HostAllocator = 15, /**< PJRT_Extension_Type_HostAllocator. */
  kPurlinPjrtExtensionType_TpuTopology = 16, /**< PJRT_Extension_Type_TpuTopology. */
  kPurlinPjrtExtensionType_TpuExecutable = 17, /**< PJRT_Extension_Type_TpuExecutable. */
  kPurlinPjrtExtensionType_Megascale = 18, /**< PJRT_Extension_Type_Megascale. */
  kPurlinPjrtExtensionType_Shardings = 19, /**< PJRT_Extension_Type_Shardings. */
  kPurlinPjrtExtensionType_AbiVersion = 20, /**< PJRT_Extension_Type_AbiVersion. */
  kPurlinPjrtExtensionType_Collectives = 21, /**< PJRT_Extension_Type_Collectives. */
  kPurlinPjrtExtensionType_MultiSlice = 22, /**< PJRT_Extension_Type_MultiSlice. */
  kPurlinPjrtExtensionType_HostMemoryAllocator = 23, /**< PJRT_Extension_Type_HostMemoryAllocator. */
  kPurlinPjrtExtensionType_XlaTransform = 24, /**< PJRT_Extension_Type_XlaTransform. */
};

/** PJRT_NamedValue_Type: Which member of a named value's union holds it. */
typedef int PurlinPjrtNamedValueType;
/** Values of PurlinPjrtNamedValueType. */
enum {
  kPurlinPjrtNamedValueType_kString = 0, /**< PJRT_NamedValue_kString. */
  kPurlinPjrtNamedValueType_kInt64 = 1, /**< PJRT_NamedValue_kInt64. */
  kPurlinPjrtNamedValueType_kInt64List = 2, /**< PJRT_NamedValue_kInt64List. */
  kPurlinPjrtNamedValueType_kFloat = 3, /**< PJRT_NamedValue_kFloat. */
  kPurlinPjrtNamedValueType_kBool = 4, /**< PJRT_NamedValue_kBool. */
};

/** PJRT_Buffer_Type: The type of an array's elements. */
typedef int PurlinPjrtBufferType;
/** Values of PurlinPjrtBufferType. */
enum {
  kPurlinPjrtBufferType_INVALID = 0, /**< PJRT_Buffer_Type_INVALID. */
  kPurlinPjrtBufferType_PRED = 1, /**< PJRT_Buffer_Type_PRED. */
  kPurlinPjrtBufferType_S8 = 2, /**< PJRT_Buffer_Type_S8. */
  kPurlinPjrtBufferType_S16 = 3, /**< PJRT_Buffer_Type_S16. */
  kPurlinPjrtBufferType_S32 = 4, /**< PJRT_Buffer_Type_S32. */
  kPurlinPjrtBufferType_S64 = 5, /**< PJRT_Buffer_Type_S64. */
  kPurlinPjrtBufferType_U8 = 6, /**< PJRT_Buffer_Type_U8. */
  kPurlinPjrtBufferType_U16 = 7, /**< PJRT_Buffer_Type_U16. */
  kPurlinPjrtBufferType_U32 = 8, /**< PJRT_Buffer_Type_U32. */
  kPurlinPjrtBufferType_U64 = 9, /**< PJRT_Buffer_Type_U64. */
  kPurlinPjrtBufferType_F16 = 10, /**< PJRT_Buffer_Type_F16. */
  kPurlinPjrtBufferType_F32 = 11, /**< PJRT_Buffer_Type_F32. */
  kPurlinPjrtBufferType_F64 = 12, /**< PJRT_Buffer_Type_F64. */
  kPurlinPjrtBufferType_BF16 = 13, /**< PJRT_Buffer_Type_BF16. */
  kPurlinPjrtBufferType_C64 = 14, /**< PJRT_Buffer_Type_C64. */
  kPurlinPjrtBufferType_C128 = 15, /**< PJRT_Buffer_Type_C128. */
  kPurlinPjrtBufferType_F8E5M2 = 16, /**< PJRT_Buffer_Type_F8E5M2. */
  kPurlinPjrtBufferType_F8E4M3FN = 17, /**< PJRT_Buffer_Type_F8E4M3FN. */
  kPurlinPjrtBufferType_F8E4M3B11FNUZ = 18, /**< PJRT_Buffer_Type_F8E4M3B11FNUZ. */
  kPurlinPjrtBufferType_F8E5M2FNUZ = 19, /**< PJRT_Buffer_Type_F8E5M2FNUZ. */
  kPurlinPjrtBufferType_F8E4M3FNUZ = 20, /**< PJRT_Buffer_Type_F8E4M3FNUZ. */
  kPurlinPjrtBufferType_S4 = 21, /**< PJRT_Buffer_Type_S4. */
  kPurlinPjrtBufferType_U4 = 22, /**< PJRT_Buffer_Type_U4. */
  kPurlinPjrtBufferType_TOKEN = 23, /**< PJRT_Buffer_Type_TOKEN. */
  kPurlinPjrtBufferType_S2 = 24, /**< PJRT_Buffer_Type_S2. */
  kPurlinPjrtBufferType_U2 = 25, /**< PJRT_Buffer_Type_U2. */
  kPurlinPjrtBufferType_F8E4M3 = 26, /**< PJRT_Buffer_Type_F8E4M3. */
  kPurlinPjrtBufferType_F8E3M4 = 27, /**< PJRT_Buffer_Type_F8E3M4. */
  kPurlinPjrtBufferType_F8E8M0FNU = 28, /**< PJRT_Buffer_Type_F8E8M0FNU. */
  kPurlinPjrtBufferType_F4E2M1FN = 29, /**< PJRT_Buffer_Type_F4E2M1FN. */
  kPurlinPjrtBufferType_S1 = 30, /**< PJRT_Buffer_Type_S1. */
  kPurlinPjrtBufferType_U1 = 31, /**< PJRT_Buffer_Type_U1. */
};

/** PJRT_HostBufferSemantics: How long the bytes of an array that comes from the host stay as they are. */
typedef int PurlinPjrtHostBufferSemantics;
/** Values of PurlinPjrtHostBufferSemantics. */
enum {
  /** PJRT_HostBufferSemantics_kImmutableOnlyDuringCall. */
  kPurlinPjrtHostBufferSemantics_kImmutableOnlyDuringCall = 0,
  /** PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes. */
  kPurlinPjrtHostBufferSemantics_kImmutableUntilTransferCompletes = 1,
  kPurlinPjrtHostBufferSemantics_kImmutableZeroCopy = 2, /**< PJRT_HostBufferSemantics_kImmutableZeroCopy. */
  kPurlinPjrtHostBufferSemantics_kMutableZeroCopy = 3, /**< PJRT_HostBufferSemantics_kMutableZeroCopy. */
};

/** PJRT_Buffer_MemoryLayout_Type: Which member of a layout's union holds it. */
typedef int PurlinPjrtBufferMemoryLayoutType;
/** Values of PurlinPjrtBufferMemoryLayoutType. */
enum {
  kPurlinPjrtBufferMemoryLayoutType_Tiled = 0, /**< PJRT_Buffer_MemoryLayout_Type_Tiled. */
  kPurlinPjrtBufferMemoryLayoutType_Strides = 1, /**< PJRT_Buffer_MemoryLayout_Type_Strides. */
};

/** PJRT_ProcessState: How another process of the same job does. */
typedef int PurlinPjrtProcessState;
/** Values of PurlinPjrtProcessState. */
enum {
  kPurlinPjrtProcessState_kUnspecified = 0, /**< PJRT_ProcessState_kUnspecified. */
  kPurlinPjrtProcessState_kUninitialized = 1, /**< PJRT_ProcessState_kUninitialized. */
  kPurlinPjrtProcessState_kDisconnected = 2, /**< PJRT_ProcessState_kDisconnected. */
  kPurlinPjrtProcessState_kConnected = 3, /**< PJRT_ProcessState_kConnected. */
  kPurlinPjrtProcessState_kError = 4, /**< PJRT_ProcessState_kError. */
};

/** PJRT_DeviceEvent_State: Of an experimental table, DeviceEvent's. */
typedef int PurlinPjrtDeviceEventState;
/** Values of PurlinPjrtDeviceEventState. */
enum {
  kPurlinPjrtDeviceEventState_Unavailable = 0, /**< PJRT_DeviceEvent_State_Unavailable. */
  kPurlinPjrtDeviceEventState_Ready = 1, /**< PJRT_DeviceEvent_State_Ready. */
  kPurlinPjrtDeviceEventState_Error = 2, /**< PJRT_DeviceEvent_State_Error. */
};


/* Names ----------------------------------------------------------------------------------------------------------- */

typedef struct PurlinPjrtEvent PurlinPjrtEvent; /**< PJRT_Event: opaque. */
typedef struct PurlinPjrtClient PurlinPjrtClient; /**< PJRT_Client: opaque. */
typedef struct PurlinPjrtDevice PurlinPjrtDevice; /**< PJRT_Device: opaque. */
typedef struct PurlinPjrtDeviceDescription PurlinPjrtDeviceDescription; /**< PJRT_DeviceDescription: opaque. */
typedef struct PurlinPjrtTopologyDescription PurlinPjrtTopologyDescription; /**< PJRT_TopologyDescription: opaque. */
typedef struct PurlinPjrtExecutable PurlinPjrtExecutable; /**< PJRT_Executable: opaque. */
typedef struct PurlinPjrtLoadedExecutable PurlinPjrtLoadedExecutable; /**< PJRT_LoadedExecutable: opaque. */
typedef struct PurlinPjrtBuffer PurlinPjrtBuffer; /**< PJRT_Buffer: opaque. */
/** PJRT_FulfillAliasBufferCallback: opaque. */
typedef struct PurlinPjrtFulfillAliasBufferCallback PurlinPjrtFulfillAliasBufferCallback;
/** PJRT_AsyncHostToDeviceTransferManager: opaque. */
typedef struct PurlinPjrtAsyncHostToDeviceTransferManager PurlinPjrtAsyncHostToDeviceTransferManager;
typedef struct PurlinPjrtAsyncTrackingEvent PurlinPjrtAsyncTrackingEvent; /**< PJRT_AsyncTrackingEvent: opaque. */
typedef struct PurlinPjrtExecuteContext PurlinPjrtExecuteContext; /**< PJRT_ExecuteContext: opaque. */
typedef struct PurlinPjrtCopyToDeviceStream PurlinPjrtCopyToDeviceStream; /**< PJRT_CopyToDeviceStream: opaque. */
typedef struct PurlinPjrtMultiSliceConfig PurlinPjrtMultiSliceConfig; /**< PJRT_MultiSlice_Config: opaque. */
/** PJRT_HloOutputCallbackInfo: opaque. */
typedef struct PurlinPjrtHloOutputCallbackInfo PurlinPjrtHloOutputCallbackInfo;
typedef struct PurlinPjrtSerializedExecutable PurlinPjrtSerializedExecutable; /**< PJRT_SerializedExecutable: opaque. */
/** PJRT_SerializedCompileOptions: opaque. */
typedef struct PurlinPjrtSerializedCompileOptions PurlinPjrtSerializedCompileOptions;
typedef struct PurlinPjrtSerializedTopology PurlinPjrtSerializedTopology; /**< PJRT_SerializedTopology: opaque. */
/** PJRT_DeviceAssignmentSerialized: opaque. */
typedef struct PurlinPjrtDeviceAssignmentSerialized PurlinPjrtDeviceAssignmentSerialized;
typedef struct PurlinPjrtDeviceAttributes PurlinPjrtDeviceAttributes; /**< PJRT_Device_Attributes: opaque. */
typedef struct PurlinPjrtLayoutsMemoryLayout PurlinPjrtLayoutsMemoryLayout; /**< PJRT_Layouts_MemoryLayout: opaque. */
/** PJRT_Layouts_SerializedLayout: opaque. */
typedef struct PurlinPjrtLayoutsSerializedLayout PurlinPjrtLayoutsSerializedLayout;
typedef struct PurlinPjrtMemoryDescription PurlinPjrtMemoryDescription; /**< PJRT_MemoryDescription: opaque. */
typedef struct PurlinPjrtError PurlinPjrtError;
typedef struct PurlinPjrtErrorTable PurlinPjrtErrorTable;
typedef struct PurlinPjrtMemory PurlinPjrtMemory;
typedef struct PurlinPjrtMemoryTable PurlinPjrtMemoryTable;
typedef struct PurlinPjrtExtensionBase PurlinPjrtExtensionBase;
typedef struct PurlinPjrtApiVersion PurlinPjrtApiVersion;
typedef struct PurlinPjrtNamedValue PurlinPjrtNamedValue;
typedef struct PurlinPjrtKeyValueGetCallbackArgs PurlinPjrtKeyValueGetCallbackArgs;
typedef struct PurlinPjrtKeyValueTryGetCallbackArgs PurlinPjrtKeyValueTryGetCallbackArgs;
typedef struct PurlinPjrtKeyValuePutCallbackArgs PurlinPjrtKeyValuePutCallbackArgs;
typedef struct PurlinPjrtProcessInfo PurlinPjrtProcessInfo;
typedef struct PurlinPjrtProgram PurlinPjrtProgram;
typedef struct PurlinPjrtBufferMemoryLayoutTiled PurlinPjrtBufferMemoryLayoutTiled;
typedef struct PurlinPjrtBufferMemoryLayoutStrides PurlinPjrtBufferMemoryLayoutStrides;
typedef struct PurlinPjrtBufferMemoryLayout PurlinPjrtBufferMemoryLayout;
typedef struct PurlinPjrtShapeSpec PurlinPjrtShapeSpec;
typedef struct PurlinPjrtLogicalDeviceIds PurlinPjrtLogicalDeviceIds;
typedef struct PurlinPjrtChunk PurlinPjrtChunk;
typedef struct PurlinPjrtSendCallbackInfo PurlinPjrtSendCallbackInfo;
typedef struct PurlinPjrtRecvCallbackInfo PurlinPjrtRecvCallbackInfo;
typedef struct PurlinPjrtExecuteOptions PurlinPjrtExecuteOptions;
typedef struct PurlinPjrtBufferCopyRawToHostFutureCallbackArgs PurlinPjrtBufferCopyRawToHostFutureCallbackArgs;
typedef struct PurlinPjrtBufferDonateWithControlDependencyCallbackArgs
    PurlinPjrtBufferDonateWithControlDependencyCallbackArgs;
typedef struct PurlinPjrtFFITypeInfo PurlinPjrtFFITypeInfo;
typedef struct PurlinPjrtFFIUserData PurlinPjrtFFIUserData;
typedef struct PurlinPjrtDeviceEvent PurlinPjrtDeviceEvent;
typedef struct PurlinPjrtDeviceEventTable PurlinPjrtDeviceEventTable;
typedef struct PurlinPjrtDeviceEventVector PurlinPjrtDeviceEventVector;
typedef struct PurlinPjrtDeviceEventPromise PurlinPjrtDeviceEventPromise;
typedef struct PurlinPjrtDeviceEventPromiseTable PurlinPjrtDeviceEventPromiseTable;
typedef struct PurlinPjrtRawBuffer PurlinPjrtRawBuffer;
typedef struct PurlinPjrtRawBufferTable PurlinPjrtRawBufferTable;
typedef struct PurlinPjrtErrorDestroyArgs PurlinPjrtErrorDestroyArgs;
typedef struct PurlinPjrtErrorMessageArgs PurlinPjrtErrorMessageArgs;
typedef struct PurlinPjrtErrorGetCodeArgs PurlinPjrtErrorGetCodeArgs;
typedef struct PurlinPjrtPluginInitializeArgs PurlinPjrtPluginInitializeArgs;
typedef struct PurlinPjrtPluginAttributesArgs PurlinPjrtPluginAttributesArgs;
typedef struct PurlinPjrtEventDestroyArgs PurlinPjrtEventDestroyArgs;
typedef struct PurlinPjrtEventIsReadyArgs PurlinPjrtEventIsReadyArgs;
typedef struct PurlinPjrtEventErrorArgs PurlinPjrtEventErrorArgs;
typedef struct PurlinPjrtEventAwaitArgs PurlinPjrtEventAwaitArgs;
typedef struct PurlinPjrtEventOnReadyArgs PurlinPjrtEventOnReadyArgs;
typedef struct PurlinPjrtClientCreateArgs PurlinPjrtClientCreateArgs;
typedef struct PurlinPjrtClientDestroyArgs PurlinPjrtClientDestroyArgs;
typedef struct PurlinPjrtClientPlatformNameArgs PurlinPjrtClientPlatformNameArgs;
typedef struct PurlinPjrtClientProcessIndexArgs PurlinPjrtClientProcessIndexArgs;
typedef struct PurlinPjrtClientPlatformVersionArgs PurlinPjrtClientPlatformVersionArgs;
typedef struct PurlinPjrtClientDevicesArgs PurlinPjrtClientDevicesArgs;
typedef struct PurlinPjrtClientAddressableDevicesArgs PurlinPjrtClientAddressableDevicesArgs;
typedef struct PurlinPjrtClientLookupDeviceArgs PurlinPjrtClientLookupDeviceArgs;
typedef struct PurlinPjrtClientLookupAddressableDeviceArgs PurlinPjrtClientLookupAddressableDeviceArgs;
typedef struct PurlinPjrtClientAddressableMemoriesArgs PurlinPjrtClientAddressableMemoriesArgs;
typedef struct PurlinPjrtClientCompileArgs PurlinPjrtClientCompileArgs;
typedef struct PurlinPjrtClientDefaultDeviceAssignmentArgs PurlinPjrtClientDefaultDeviceAssignmentArgs;
typedef struct PurlinPjrtClientBufferFromHostBufferArgs PurlinPjrtClientBufferFromHostBufferArgs;
typedef struct PurlinPjrtDeviceDescriptionIdArgs PurlinPjrtDeviceDescriptionIdArgs;
typedef struct PurlinPjrtDeviceDescriptionProcessIndexArgs PurlinPjrtDeviceDescriptionProcessIndexArgs;
typedef struct PurlinPjrtDeviceDescriptionAttributesArgs PurlinPjrtDeviceDescriptionAttributesArgs;
typedef struct PurlinPjrtDeviceDescriptionKindArgs PurlinPjrtDeviceDescriptionKindArgs;
typedef struct PurlinPjrtDeviceDescriptionDebugStringArgs PurlinPjrtDeviceDescriptionDebugStringArgs;
typedef struct PurlinPjrtDeviceDescriptionToStringArgs PurlinPjrtDeviceDescriptionToStringArgs;
typedef struct PurlinPjrtDeviceGetDescriptionArgs PurlinPjrtDeviceGetDescriptionArgs;
typedef struct PurlinPjrtDeviceIsAddressableArgs PurlinPjrtDeviceIsAddressableArgs;
typedef struct PurlinPjrtDeviceLocalHardwareIdArgs PurlinPjrtDeviceLocalHardwareIdArgs;
typedef struct PurlinPjrtDeviceAddressableMemoriesArgs PurlinPjrtDeviceAddressableMemoriesArgs;
typedef struct PurlinPjrtDeviceDefaultMemoryArgs PurlinPjrtDeviceDefaultMemoryArgs;
typedef struct PurlinPjrtDeviceMemoryStatsArgs PurlinPjrtDeviceMemoryStatsArgs;
typedef struct PurlinPjrtMemoryIdArgs PurlinPjrtMemoryIdArgs;
typedef struct PurlinPjrtMemoryKindArgs PurlinPjrtMemoryKindArgs;
typedef struct PurlinPjrtMemoryDebugStringArgs PurlinPjrtMemoryDebugStringArgs;
typedef struct PurlinPjrtMemoryToStringArgs PurlinPjrtMemoryToStringArgs;
typedef struct PurlinPjrtMemoryAddressableByDevicesArgs PurlinPjrtMemoryAddressableByDevicesArgs;
typedef struct PurlinPjrtExecutableDestroyArgs PurlinPjrtExecutableDestroyArgs;
typedef struct PurlinPjrtExecutableNameArgs PurlinPjrtExecutableNameArgs;
typedef struct PurlinPjrtExecutableNumReplicasArgs PurlinPjrtExecutableNumReplicasArgs;
typedef struct PurlinPjrtExecutableNumPartitionsArgs PurlinPjrtExecutableNumPartitionsArgs;
typedef struct PurlinPjrtExecutableNumOutputsArgs PurlinPjrtExecutableNumOutputsArgs;
typedef struct PurlinPjrtExecutableSizeOfGeneratedCodeInBytesArgs PurlinPjrtExecutableSizeOfGeneratedCodeInBytesArgs;
typedef struct PurlinPjrtExecutableGetCostAnalysisArgs PurlinPjrtExecutableGetCostAnalysisArgs;
typedef struct PurlinPjrtExecutableOutputMemoryKindsArgs PurlinPjrtExecutableOutputMemoryKindsArgs;
typedef struct PurlinPjrtExecutableOptimizedProgramArgs PurlinPjrtExecutableOptimizedProgramArgs;
typedef struct PurlinPjrtExecutableSerializeArgs PurlinPjrtExecutableSerializeArgs;
typedef struct PurlinPjrtLoadedExecutableDestroyArgs PurlinPjrtLoadedExecutableDestroyArgs;
typedef struct PurlinPjrtLoadedExecutableGetExecutableArgs PurlinPjrtLoadedExecutableGetExecutableArgs;
typedef struct PurlinPjrtLoadedExecutableAddressableDevicesArgs PurlinPjrtLoadedExecutableAddressableDevicesArgs;
typedef struct PurlinPjrtLoadedExecutableDeleteArgs PurlinPjrtLoadedExecutableDeleteArgs;
typedef struct PurlinPjrtLoadedExecutableIsDeletedArgs PurlinPjrtLoadedExecutableIsDeletedArgs;
typedef struct PurlinPjrtLoadedExecutableExecuteArgs PurlinPjrtLoadedExecutableExecuteArgs;
typedef struct PurlinPjrtExecutableDeserializeAndLoadArgs PurlinPjrtExecutableDeserializeAndLoadArgs;
typedef struct PurlinPjrtLoadedExecutableFingerprintArgs PurlinPjrtLoadedExecutableFingerprintArgs;
typedef struct PurlinPjrtBufferDestroyArgs PurlinPjrtBufferDestroyArgs;
typedef struct PurlinPjrtBufferElementTypeArgs PurlinPjrtBufferElementTypeArgs;
typedef struct PurlinPjrtBufferDimensionsArgs PurlinPjrtBufferDimensionsArgs;
typedef struct PurlinPjrtBufferUnpaddedDimensionsArgs PurlinPjrtBufferUnpaddedDimensionsArgs;
typedef struct PurlinPjrtBufferDynamicDimensionIndicesArgs PurlinPjrtBufferDynamicDimensionIndicesArgs;
typedef struct PurlinPjrtBufferGetMemoryLayoutArgs PurlinPjrtBufferGetMemoryLayoutArgs;
typedef struct PurlinPjrtBufferOnDeviceSizeInBytesArgs PurlinPjrtBufferOnDeviceSizeInBytesArgs;
typedef struct PurlinPjrtBufferDeviceArgs PurlinPjrtBufferDeviceArgs;
typedef struct PurlinPjrtBufferMemoryArgs PurlinPjrtBufferMemoryArgs;
typedef struct PurlinPjrtBufferDeleteArgs PurlinPjrtBufferDeleteArgs;
typedef struct PurlinPjrtBufferIsDeletedArgs PurlinPjrtBufferIsDeletedArgs;
typedef struct PurlinPjrtBufferCopyToDeviceArgs PurlinPjrtBufferCopyToDeviceArgs;
typedef struct PurlinPjrtBufferToHostBufferArgs PurlinPjrtBufferToHostBufferArgs;
typedef struct PurlinPjrtBufferIsOnCpuArgs PurlinPjrtBufferIsOnCpuArgs;
typedef struct PurlinPjrtBufferReadyEventArgs PurlinPjrtBufferReadyEventArgs;
typedef struct PurlinPjrtBufferUnsafePointerArgs PurlinPjrtBufferUnsafePointerArgs;
typedef struct PurlinPjrtBufferIncreaseExternalReferenceCountArgs PurlinPjrtBufferIncreaseExternalReferenceCountArgs;
typedef struct PurlinPjrtBufferDecreaseExternalReferenceCountArgs PurlinPjrtBufferDecreaseExternalReferenceCountArgs;
typedef struct PurlinPjrtBufferOpaqueDeviceMemoryDataPointerArgs PurlinPjrtBufferOpaqueDeviceMemoryDataPointerArgs;
typedef struct PurlinPjrtCopyToDeviceStreamDestroyArgs PurlinPjrtCopyToDeviceStreamDestroyArgs;
typedef struct PurlinPjrtCopyToDeviceStreamAddChunkArgs PurlinPjrtCopyToDeviceStreamAddChunkArgs;
typedef struct PurlinPjrtCopyToDeviceStreamTotalBytesArgs PurlinPjrtCopyToDeviceStreamTotalBytesArgs;
typedef struct PurlinPjrtCopyToDeviceStreamGranuleSizeArgs PurlinPjrtCopyToDeviceStreamGranuleSizeArgs;
typedef struct PurlinPjrtCopyToDeviceStreamCurrentBytesArgs PurlinPjrtCopyToDeviceStreamCurrentBytesArgs;
typedef struct PurlinPjrtTopologyDescriptionCreateArgs PurlinPjrtTopologyDescriptionCreateArgs;
typedef struct PurlinPjrtTopologyDescriptionDestroyArgs PurlinPjrtTopologyDescriptionDestroyArgs;
typedef struct PurlinPjrtTopologyDescriptionPlatformNameArgs PurlinPjrtTopologyDescriptionPlatformNameArgs;
typedef struct PurlinPjrtTopologyDescriptionPlatformVersionArgs PurlinPjrtTopologyDescriptionPlatformVersionArgs;
typedef struct PurlinPjrtTopologyDescriptionGetDeviceDescriptionsArgs
    PurlinPjrtTopologyDescriptionGetDeviceDescriptionsArgs;
typedef struct PurlinPjrtTopologyDescriptionSerializeArgs PurlinPjrtTopologyDescriptionSerializeArgs;
typedef struct PurlinPjrtTopologyDescriptionAttributesArgs PurlinPjrtTopologyDescriptionAttributesArgs;
typedef struct PurlinPjrtCompileArgs PurlinPjrtCompileArgs;
typedef struct PurlinPjrtExecutableOutputElementTypesArgs PurlinPjrtExecutableOutputElementTypesArgs;
typedef struct PurlinPjrtExecutableOutputDimensionsArgs PurlinPjrtExecutableOutputDimensionsArgs;
typedef struct PurlinPjrtBufferCopyToMemoryArgs PurlinPjrtBufferCopyToMemoryArgs;
typedef struct PurlinPjrtClientCreateViewOfDeviceBufferArgs PurlinPjrtClientCreateViewOfDeviceBufferArgs;
typedef struct PurlinPjrtExecutableFingerprintArgs PurlinPjrtExecutableFingerprintArgs;
typedef struct PurlinPjrtClientTopologyDescriptionArgs PurlinPjrtClientTopologyDescriptionArgs;
typedef struct PurlinPjrtExecutableGetCompiledMemoryStatsArgs PurlinPjrtExecutableGetCompiledMemoryStatsArgs;
typedef struct PurlinPjrtMemoryKindIdArgs PurlinPjrtMemoryKindIdArgs;
typedef struct PurlinPjrtExecuteContextCreateArgs PurlinPjrtExecuteContextCreateArgs;
typedef struct PurlinPjrtExecuteContextDestroyArgs PurlinPjrtExecuteContextDestroyArgs;
typedef struct PurlinPjrtBufferCopyRawToHostArgs PurlinPjrtBufferCopyRawToHostArgs;
typedef struct PurlinPjrtAsyncHostToDeviceTransferManagerDestroyArgs
    PurlinPjrtAsyncHostToDeviceTransferManagerDestroyArgs;
typedef struct PurlinPjrtAsyncHostToDeviceTransferManagerTransferDataArgs
    PurlinPjrtAsyncHostToDeviceTransferManagerTransferDataArgs;
typedef struct PurlinPjrtClientCreateBuffersForAsyncHostToDeviceArgs
    PurlinPjrtClientCreateBuffersForAsyncHostToDeviceArgs;
typedef struct PurlinPjrtAsyncHostToDeviceTransferManagerRetrieveBufferArgs
    PurlinPjrtAsyncHostToDeviceTransferManagerRetrieveBufferArgs;
typedef struct PurlinPjrtAsyncHostToDeviceTransferManagerDeviceArgs
    PurlinPjrtAsyncHostToDeviceTransferManagerDeviceArgs;
typedef struct PurlinPjrtAsyncHostToDeviceTransferManagerBufferCountArgs
    PurlinPjrtAsyncHostToDeviceTransferManagerBufferCountArgs;
typedef struct PurlinPjrtAsyncHostToDeviceTransferManagerBufferSizeArgs
    PurlinPjrtAsyncHostToDeviceTransferManagerBufferSizeArgs;
typedef struct PurlinPjrtAsyncHostToDeviceTransferManagerSetBufferErrorArgs
    PurlinPjrtAsyncHostToDeviceTransferManagerSetBufferErrorArgs;
typedef struct PurlinPjrtAsyncHostToDeviceTransferManagerAddMetadataArgs
    PurlinPjrtAsyncHostToDeviceTransferManagerAddMetadataArgs;
typedef struct PurlinPjrtClientDmaMapArgs PurlinPjrtClientDmaMapArgs;
typedef struct PurlinPjrtClientDmaUnmapArgs PurlinPjrtClientDmaUnmapArgs;
typedef struct PurlinPjrtClientCreateUninitializedBufferArgs PurlinPjrtClientCreateUninitializedBufferArgs;
typedef struct PurlinPjrtClientUpdateGlobalProcessInfoArgs PurlinPjrtClientUpdateGlobalProcessInfoArgs;
typedef struct PurlinPjrtTopologyDescriptionDeserializeArgs PurlinPjrtTopologyDescriptionDeserializeArgs;
typedef struct PurlinPjrtClientCreateAliasBufferArgs PurlinPjrtClientCreateAliasBufferArgs;
typedef struct PurlinPjrtClientFulfillAliasBufferArgs PurlinPjrtClientFulfillAliasBufferArgs;
typedef struct PurlinPjrtLoadedExecutableGetDeviceAssignmentArgs PurlinPjrtLoadedExecutableGetDeviceAssignmentArgs;
typedef struct PurlinPjrtClientCreateErrorBufferArgs PurlinPjrtClientCreateErrorBufferArgs;
typedef struct PurlinPjrtAsyncHostToDeviceTransferManagerTransferLiteralArgs
    PurlinPjrtAsyncHostToDeviceTransferManagerTransferLiteralArgs;
typedef struct PurlinPjrtBufferCopyRawToHostFutureArgs PurlinPjrtBufferCopyRawToHostFutureArgs;
typedef struct PurlinPjrtDevicePoisonExecutionArgs PurlinPjrtDevicePoisonExecutionArgs;
typedef struct PurlinPjrtDeviceCreateAsyncTrackingEventArgs PurlinPjrtDeviceCreateAsyncTrackingEventArgs;
typedef struct PurlinPjrtAsyncTrackingEventDestroyArgs PurlinPjrtAsyncTrackingEventDestroyArgs;
typedef struct PurlinPjrtExecutableGetCompileOptionsArgs PurlinPjrtExecutableGetCompileOptionsArgs;
typedef struct PurlinPjrtBufferDonateWithControlDependencyArgs PurlinPjrtBufferDonateWithControlDependencyArgs;
typedef struct PurlinPjrtEventCreateArgs PurlinPjrtEventCreateArgs;
typedef struct PurlinPjrtEventSetArgs PurlinPjrtEventSetArgs;
typedef struct PurlinPjrtDeviceGetAttributesArgs PurlinPjrtDeviceGetAttributesArgs;
typedef struct PurlinPjrtClientLoadArgs PurlinPjrtClientLoadArgs;
typedef struct PurlinPjrtLoadedExecutableAddressableDeviceLogicalIdsArgs
    PurlinPjrtLoadedExecutableAddressableDeviceLogicalIdsArgs;
typedef struct PurlinPjrtBufferBitcastArgs PurlinPjrtBufferBitcastArgs;
typedef struct PurlinPjrtErrorForEachPayloadArgs PurlinPjrtErrorForEachPayloadArgs;
typedef struct PurlinPjrtTopologyDescriptionFingerprintArgs PurlinPjrtTopologyDescriptionFingerprintArgs;
typedef struct PurlinPjrtExecutableParameterMemoryKindsArgs PurlinPjrtExecutableParameterMemoryKindsArgs;
typedef struct PurlinPjrtDeviceClearMemoryStatsArgs PurlinPjrtDeviceClearMemoryStatsArgs;
typedef struct PurlinPjrtTopologyDescriptionMakeCanonicalShapeForMemorySpaceArgs
    PurlinPjrtTopologyDescriptionMakeCanonicalShapeForMemorySpaceArgs;
typedef struct PurlinPjrtTopologyDescriptionGetMemorySpaceKindIdsArgs
    PurlinPjrtTopologyDescriptionGetMemorySpaceKindIdsArgs;
typedef struct PurlinPjrtLayoutsMemoryLayoutDestroyArgs PurlinPjrtLayoutsMemoryLayoutDestroyArgs;
typedef struct PurlinPjrtLayoutsMemoryLayoutSerializeArgs PurlinPjrtLayoutsMemoryLayoutSerializeArgs;
typedef struct PurlinPjrtLayoutsClientGetDefaultLayoutArgs PurlinPjrtLayoutsClientGetDefaultLayoutArgs;
typedef struct PurlinPjrtLayoutsBufferMemoryLayoutArgs PurlinPjrtLayoutsBufferMemoryLayoutArgs;
typedef struct PurlinPjrtLayoutsTopologyGetDefaultLayoutArgs PurlinPjrtLayoutsTopologyGetDefaultLayoutArgs;
typedef struct PurlinPjrtLayoutsExecutableGetOutputLayoutsArgs PurlinPjrtLayoutsExecutableGetOutputLayoutsArgs;
typedef struct PurlinPjrtLayoutsExecutableGetParameterLayoutsArgs PurlinPjrtLayoutsExecutableGetParameterLayoutsArgs;
typedef struct PurlinPjrtFFITypeRegisterArgs PurlinPjrtFFITypeRegisterArgs;
typedef struct PurlinPjrtFFIUserDataAddArgs PurlinPjrtFFIUserDataAddArgs;
typedef struct PurlinPjrtFFIRegisterHandlerArgs PurlinPjrtFFIRegisterHandlerArgs;
typedef struct PurlinPjrtDeviceDescriptionMemoryDescriptionsArgs PurlinPjrtDeviceDescriptionMemoryDescriptionsArgs;
typedef struct PurlinPjrtMemoryDescriptionKindArgs PurlinPjrtMemoryDescriptionKindArgs;
typedef struct PurlinPjrtShardingsExecutableParameterShardingsArgs PurlinPjrtShardingsExecutableParameterShardingsArgs;
typedef struct PurlinPjrtShardingsExecutableOutputShardingsArgs PurlinPjrtShardingsExecutableOutputShardingsArgs;
/** PJRT_Error_PayloadVisitor: Is shown one payload; its bytes are lent for the call. */
typedef void (*PurlinPjrtErrorPayloadVisitor)(const char* key, size_t key_size, const char* value, size_t value_size,
    void* user_arg);
/** PJRT_Memory_UserDataDeleter: Frees what was attached. */
typedef void (*PurlinPjrtMemoryUserDataDeleter)(void* data);
/** PJRT_CallbackError: Makes an error for a callback to return; the message is copied. */
typedef PurlinPjrtError* (*PurlinPjrtCallbackError)(PurlinPjrtErrorCode code, const char* message, size_t message_size);
/** PJRT_DeviceEvent_Callback: Called once, when an event has completed or failed. */
typedef void (*PurlinPjrtDeviceEventCallback)(void* user_arg);
/** PJRT_RawBuffer_OnAllocated: Called once with how an allocation went; owns the error, which may be null. */
typedef void (*PurlinPjrtRawBufferOnAllocated)(PurlinPjrtError* error, void* user_data);

/* Structs --------------------------------------------------------------------------------------------------------- */

/** PJRT_Error: An error; a null pointer is OK. Opaque before. Since 0.107. */
struct PurlinPjrtError {
  const PurlinPjrtErrorTable* table; /**< Its functions. */
};

/** PJRT_Error_FunctionTable: What can be done with an error, without the plugin's table. Since 0.107. */
struct PurlinPjrtErrorTable {
  size_t struct_size; /**< Bytes of this table. */
  size_t instance_size; /**< Bytes of what can be seen of an error, 8. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions; null in Purlin's. */
  void (*destroy)(PurlinPjrtError* error); /**< Ends an error of the caller's; null is ignored. */
  /** UTF-8 without a NUL, lent as long as the error lives. */
  void (*message)(const PurlinPjrtError* error, const char** message, size_t* message_size);
  PurlinPjrtErrorCode (*get_code)(const PurlinPjrtError* error); /**< absl's number, 1 to 16. */
  /** Calls the visitor for each payload before it returns. */
  void (*for_each_payload)(const PurlinPjrtError* error, PurlinPjrtErrorPayloadVisitor visitor, void* user_arg);
};

/** PJRT_Memory: A kind of memory of a device. Opaque before. Since 0.105. */
struct PurlinPjrtMemory {
  const PurlinPjrtMemoryTable* table; /**< Its functions. */
};

/** PJRT_Memory_FunctionTable: What callers attach to a memory. Since 0.105. */
struct PurlinPjrtMemoryTable {
  size_t struct_size; /**< Bytes of this table. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions; null in Purlin's. */
  size_t instance_struct_size; /**< Bytes of what can be seen of a memory, 8. */
  /** What was attached under a key; null if nothing was. */
  void* (*get_user_data)(PurlinPjrtMemory* memory, const void* key);
  /** Attaches data in place of what was there, which is destroyed; null data detaches. */
  void (*set_user_data)(PurlinPjrtMemory* memory, const void* key, void* data, PurlinPjrtMemoryUserDataDeleter deleter);
};

/** PJRT_Extension_Base: The beginning of every extension. */
struct PurlinPjrtExtensionBase {
  size_t struct_size; /**< Bytes of the extension. */
  PurlinPjrtExtensionType type; /**< Which it is. */
  PurlinPjrtExtensionBase* next; /**< The next one in the chain. */
};

/** PJRT_Api_Version: Which version a plugin was built with. */
struct PurlinPjrtApiVersion {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  int major_version; /**< Out. 0 so far. */
  int minor_version; /**< Out. Grows with each addition. */
};
/** What goes into struct_size of PurlinPjrtApiVersion. */
enum { kPurlinPjrtApiVersionSize = 24 };

/** What a PurlinPjrtNamedValue holds. */
typedef union PurlinPjrtNamedValueValue {
  const char* string_value; /**< One of several. */
  int64_t int64_value; /**< One of several. */
  const int64_t* int64_array_value; /**< One of several. */
  float float_value; /**< One of several. */
  bool bool_value; /**< One of several. */
} PurlinPjrtNamedValueValue;

/** PJRT_NamedValue: A name and a value of one of five types. */
struct PurlinPjrtNamedValue {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  const char* name; /**< UTF-8. */
  size_t name_size; /**< Bytes of the name. */
  PurlinPjrtNamedValueType type; /**< Which member of the union is set. */
  PurlinPjrtNamedValueValue value; /**< One of several; the type says which. */
  size_t value_size; /**< Bytes of a string, elements of an array, 1 of a single value. */
};
/** What goes into struct_size of PurlinPjrtNamedValue. */
enum { kPurlinPjrtNamedValueSize = 56 };

/** PJRT_KeyValueGetCallback_Args: A blocking read of the caller's key-value store. */
struct PurlinPjrtKeyValueGetCallbackArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  const char* key; /**< The key. */
  size_t key_size; /**< Bytes of the key. */
  int timeout_in_ms; /**< How long to wait. */
  PurlinPjrtCallbackError* callback_error; /**< Makes the error that the callback returns. */
  void* user_arg; /**< The caller's own. */
  char* value; /**< Out. The value, until the deleter is called. */
  size_t value_size; /**< Out. Bytes of the value. */
  void (*value_deleter_callback)(char* value); /**< Frees the value. */
};
/** What goes into struct_size of PurlinPjrtKeyValueGetCallbackArgs. */
enum { kPurlinPjrtKeyValueGetCallbackArgsSize = 80 };

/** PJRT_KeyValueTryGetCallback_Args: A read that fails at once where there is no such key. Since 0.61. */
struct PurlinPjrtKeyValueTryGetCallbackArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  const char* key; /**< The key. */
  size_t key_size; /**< Bytes of the key. */
  PurlinPjrtCallbackError* callback_error; /**< Makes the error that the callback returns. */
  void* user_arg; /**< The caller's own. */
  char* value; /**< Out. The value, until the deleter is called. */
  size_t value_size; /**< Out. Bytes of the value. */
  void (*value_deleter_callback)(char* value); /**< Frees the value. */
};
/** What goes into struct_size of PurlinPjrtKeyValueTryGetCallbackArgs. */
enum { kPurlinPjrtKeyValueTryGetCallbackArgsSize = 72 };

/** PJRT_KeyValuePutCallback_Args: A write to the caller's key-value store. */
struct PurlinPjrtKeyValuePutCallbackArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  const char* key; /**< The key. */
  size_t key_size; /**< Bytes of the key. */
  const char* value; /**< The value. */
  size_t value_size; /**< Bytes of the value. */
  PurlinPjrtCallbackError* callback_error; /**< Makes the error that the callback returns. */
  void* user_arg; /**< The caller's own. */
};
/** What goes into struct_size of PurlinPjrtKeyValuePutCallbackArgs. */
enum { kPurlinPjrtKeyValuePutCallbackArgsSize = 64 };

/** PJRT_ProcessInfo: What is known of another process. Since 0.73. */
struct PurlinPjrtProcessInfo {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  int task_id; /**< Its number. */
  uint64_t incarnation_id; /**< Changes when it starts again. */
  PurlinPjrtProcessState state; /**< How it does. */
  int error_code; /**< absl's, when it failed. */
  const char* error_message; /**< What went wrong. */
  size_t error_message_size; /**< Bytes of that. */
};
/** What goes into struct_size of PurlinPjrtProcessInfo. */
enum { kPurlinPjrtProcessInfoSize = 48 };

/** PJRT_Program: A program in one of XLA's forms. */
struct PurlinPjrtProgram {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  char* code; /**< The serialized program, the caller's. */
  size_t code_size; /**< Bytes of the code. */
  const char* format; /**< "mlir" (StableHLO), "hlo" or "hlo_with_config". */
  size_t format_size; /**< Bytes of the format. */
};
/** What goes into struct_size of PurlinPjrtProgram. */
enum { kPurlinPjrtProgramSize = 48 };

/** PJRT_Buffer_MemoryLayout_Tiled: A layout by an order of dimensions, and tiles. */
struct PurlinPjrtBufferMemoryLayoutTiled {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  const int64_t* minor_to_major; /**< Logical dimensions, the fastest first. */
  size_t minor_to_major_size; /**< As many as the array has dimensions. */
  const int64_t* tile_dims; /**< The dimensions of all tiles, one tile after the other. */
  const size_t* tile_dim_sizes; /**< How many dimensions each tile has. */
  size_t num_tiles; /**< How many tiles. */
};
/** What goes into struct_size of PurlinPjrtBufferMemoryLayoutTiled. */
enum { kPurlinPjrtBufferMemoryLayoutTiledSize = 56 };

/** PJRT_Buffer_MemoryLayout_Strides: A layout by strides. */
struct PurlinPjrtBufferMemoryLayoutStrides {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  const int64_t* byte_strides; /**< Bytes from one element to the next; may be negative. */
  size_t num_byte_strides; /**< As many as the array has dimensions. */
};
/** What goes into struct_size of PurlinPjrtBufferMemoryLayoutStrides. */
enum { kPurlinPjrtBufferMemoryLayoutStridesSize = 32 };

/** What a PurlinPjrtBufferMemoryLayout holds. */
typedef union PurlinPjrtBufferMemoryLayoutValue {
  PurlinPjrtBufferMemoryLayoutTiled tiled; /**< One of several. */
  PurlinPjrtBufferMemoryLayoutStrides strides; /**< One of several. */
} PurlinPjrtBufferMemoryLayoutValue;

/** PJRT_Buffer_MemoryLayout: A layout of one of two kinds. */
struct PurlinPjrtBufferMemoryLayout {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtBufferMemoryLayoutValue value; /**< One of several; the type says which. */
  PurlinPjrtBufferMemoryLayoutType type; /**< Which member of the union is set. */
};
/** What goes into struct_size of PurlinPjrtBufferMemoryLayout. */
enum { kPurlinPjrtBufferMemoryLayoutSize = 76 };

/** PJRT_ShapeSpec: The type and dimensions of an array. */
struct PurlinPjrtShapeSpec {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  const int64_t* dims; /**< Its dimensions. */
  size_t num_dims; /**< How many. */
  PurlinPjrtBufferType element_type; /**< Its elements. */
};
/** What goes into struct_size of PurlinPjrtShapeSpec. */
enum { kPurlinPjrtShapeSpecSize = 36 };

/** PJRT_LogicalDeviceIds: Where a device stands in an assignment. Since 0.96. */
struct PurlinPjrtLogicalDeviceIds {
  int replica; /**< Out. Which replica. */
  int partition; /**< Out. Which partition. */
};

/** PJRT_Chunk: Bytes that change hands. */
struct PurlinPjrtChunk {
  void* data; /**< The bytes. */
  size_t size; /**< How many. */
  void (*deleter)(void* data, void* deleter_arg); /**< Frees them. */
  void* deleter_arg; /**< What the deleter is given. */
};

/** PJRT_SendCallbackInfo: What is called when a program sends. */
struct PurlinPjrtSendCallbackInfo {
  int64_t channel_id; /**< Which send. */
  void* user_arg; /**< The caller's own. */
  /** Owns the chunk. */
  PurlinPjrtError* (*send_callback)(PurlinPjrtChunk* chunk, PurlinPjrtCallbackError* callback_error,
      size_t total_size_in_bytes, bool done, void* user_arg);
};

/** PJRT_RecvCallbackInfo: What is called when a program receives. */
struct PurlinPjrtRecvCallbackInfo {
  int64_t channel_id; /**< Which receive. */
  void* user_arg; /**< The caller's own. */
  void (*recv_callback)(PurlinPjrtCopyToDeviceStream* stream, void* user_arg); /**< Owns the stream. */
};

/** PJRT_ExecuteOptions: How a program is run. */
struct PurlinPjrtExecuteOptions {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtSendCallbackInfo** send_callbacks; /**< For each device, what is called for each send. */
  PurlinPjrtRecvCallbackInfo** recv_callbacks; /**< For each device, what is called for each receive. */
  size_t num_send_ops; /**< Sends of the program. */
  size_t num_recv_ops; /**< Receives of the program. */
  int launch_id; /**< Orders the launches of several devices; 0 for none. */
  /** Arguments that stay the caller's even where the program may reuse them. Since 0.39. */
  const int64_t* non_donatable_input_indices;
  size_t num_non_donatable_input_indices; /**< How many. Since 0.39. */
  PurlinPjrtExecuteContext* context; /**< What handlers of custom calls find. Since 0.64. */
  const char* call_location; /**< File and line of the Python that runs it, with a NUL. Since 0.76. */
  size_t num_tasks; /**< Other processes. Since 0.78. */
  int* task_ids; /**< Their numbers. Since 0.78. */
  int64_t* incarnation_ids; /**< Their incarnations. Since 0.78. */
  PurlinPjrtMultiSliceConfig* multi_slice_config; /**< Slices of a TPU. Since 0.97. */
  bool use_major_to_minor_data_layout_for_callbacks; /**< Whether sends and receives see dense arrays. Since 0.112. */
  /** Values inside the program that a caller wants to see. Since 0.112. */
  PurlinPjrtHloOutputCallbackInfo* hlo_output_callbacks;
  size_t num_hlo_output_callbacks; /**< How many. Since 0.112. */
};
/** What goes into struct_size of PurlinPjrtExecuteOptions. */
enum { kPurlinPjrtExecuteOptionsSize = 144 };

/** PJRT_Buffer_CopyRawToHostFuture_Callback_Args: Where a copy shall go. Since 0.84. */
struct PurlinPjrtBufferCopyRawToHostFutureCallbackArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  void* callback_data; /**< What the call gave. */
  PurlinPjrtErrorCode error_code; /**< OK, or why there will be no destination. */
  const char* error_message; /**< Its text. */
  size_t error_message_size; /**< Bytes of that. */
  void* dst; /**< The destination. */
};
/** What goes into struct_size of PurlinPjrtBufferCopyRawToHostFutureCallbackArgs. */
enum { kPurlinPjrtBufferCopyRawToHostFutureCallbackArgsSize = 48 };

/** PJRT_Buffer_DonateWithControlDependency_Callback_Args: How the dependency ended. Since 0.88. */
struct PurlinPjrtBufferDonateWithControlDependencyCallbackArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  void* callback_data; /**< What the call gave. */
  PurlinPjrtErrorCode error_code; /**< OK, or why it failed. */
  const char* error_message; /**< Its text. */
  size_t error_message_size; /**< Bytes of that. */
};
/** What goes into struct_size of PurlinPjrtBufferDonateWithControlDependencyCallbackArgs. */
enum { kPurlinPjrtBufferDonateWithControlDependencyCallbackArgsSize = 40 };

/** PJRT_FFI_Type_Info: What can be done with a value of a type of the FFI. */
struct PurlinPjrtFFITypeInfo {
  void (*deleter)(void* object); /**< Frees it. */
  void (*serialize)(void); /**< Not used yet. */
  void (*deserialize)(void); /**< Not used yet. */
};

/** PJRT_FFI_UserData: A value for handlers. */
struct PurlinPjrtFFIUserData {
  int64_t type_id; /**< Its type. */
  void* data; /**< Its address. */
};

/** PJRT_DeviceEvent: An event and its functions. A null event is none: Purlin takes it for one that has completed, and
 * never gives one. Since 0.114. */
struct PurlinPjrtDeviceEvent {
  const PurlinPjrtDeviceEventTable* table; /**< Its functions. */
  void* event; /**< What the functions take. */
};

/** PJRT_DeviceEvent_FunctionTable: What can be done with an event. Since 0.114. */
struct PurlinPjrtDeviceEventTable {
  size_t struct_size; /**< Bytes of this table. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions; null in Purlin's. */
  void (*inc_ref)(void* event); /**< One more reference, the caller's. */
  void (*dec_ref)(void* event); /**< Ends a reference of the caller's. Needed. */
  /** Calls back once, on the thread that completes it, or here and now. Purlin's always completes. Needed. */
  void (*and_then)(void* event, PurlinPjrtDeviceEventCallback callback, void* user_arg);
  /** 1 and the error, whose message is lent as long as the event lives, if it has failed; else 0, also while it is
   * pending. */
  int (*get_error_if_present)(void* event, int* code, const char** message, size_t* message_size);
  /** The table of a type that the event also is. Null in Purlin's; where it leads to Purlin's table, the event is taken
   * for one of Purlin's. */
  const PurlinPjrtDeviceEventTable* parent;
  int (*get_state)(void* event); /**< A DeviceEvent_State. */
  /** The platform's handle of the stream that completes the event, and its place there; or 0. */
  intptr_t (*get_definition_stream)(void* event, uint64_t* sequence_number);
};

/** PJRT_DeviceEventVector: Events, each with a reference: the receiver moves them out and leaves the vector zeroed.
 * Since 0.114. */
struct PurlinPjrtDeviceEventVector {
  PurlinPjrtDeviceEvent* data; /**< The events. */
  size_t size; /**< How many there are. */
  size_t capacity; /**< How many have room. */
  void (*destroy)(PurlinPjrtDeviceEvent* data); /**< Frees the array, not what its elements own. */
};

/** PJRT_DeviceEventPromise: What can be seen of a promise. Since 0.114. */
struct PurlinPjrtDeviceEventPromise {
  const PurlinPjrtDeviceEventPromiseTable* table; /**< Its functions. */
};

/** PJRT_DeviceEventPromise_FunctionTable: What can be done with a promise. The first set decides; Purlin's ignores
 * later ones but for what they own. Since 0.114. */
struct PurlinPjrtDeviceEventPromiseTable {
  size_t struct_size; /**< Bytes of this table. */
  size_t instance_size; /**< Bytes of what can be seen of a promise, 8. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions; null in Purlin's. */
  void (*inc_ref)(PurlinPjrtDeviceEventPromise* promise); /**< One more reference, the caller's. */
  /** Ends a reference of the caller's. The last fails Purlin's event with kInternal, if it is not set. Needed. */
  void (*dec_ref)(PurlinPjrtDeviceEventPromise* promise);
  /** The event, lent as long as the promise lives. */
  PurlinPjrtDeviceEvent (*event)(PurlinPjrtDeviceEventPromise* promise);
  /** Makes the event follow another one, a reference to which is taken. */
  void (*set)(PurlinPjrtDeviceEventPromise* promise, PurlinPjrtDeviceEvent event);
  /** Makes it fail with an error, which is taken. Needed. */
  void (*set_error)(PurlinPjrtDeviceEventPromise* promise, PurlinPjrtError* error);
  void (*set_ready)(PurlinPjrtDeviceEventPromise* promise); /**< Completes it. Needed. */
};

/** PJRT_RawBuffer: What can be seen of a raw buffer. Since 0.114. */
struct PurlinPjrtRawBuffer {
  const PurlinPjrtRawBufferTable* table; /**< Its functions. */
};

/** PJRT_RawBuffer_FunctionTable: What can be done with a raw buffer. Errors that are returned are the caller's. Offsets
 * and sizes are bytes; a range that is not within the buffer is an error, returned or in the event. Dependencies may be
 * null; they are moved out whatever is returned. Null buffers and places are errors; sizes and pointers of them are 0.
 * Since 0.114. */
struct PurlinPjrtRawBufferTable {
  size_t struct_size; /**< Bytes of this table. */
  size_t instance_size; /**< Bytes of what can be seen of a raw buffer, 8. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions; null in Purlin's. */
  void (*inc_ref)(PurlinPjrtRawBuffer* buffer); /**< One more reference, the caller's. Needed of a destination. */
  /** Ends a reference of the caller's; the memory stays until copies in flight are done. Needed of a destination. */
  void (*dec_ref)(PurlinPjrtRawBuffer* buffer);
  size_t (*get_on_device_size_in_bytes)(const PurlinPjrtRawBuffer* buffer); /**< Bytes. */
  /** Lent; of Purlin's, what ToPjrt was given. */
  PurlinPjrtMemory* (*get_memory_space)(const PurlinPjrtRawBuffer* buffer);
  /** Null if the host does not reach the memory, or it is not there yet. */
  void* (*get_host_pointer)(const PurlinPjrtRawBuffer* buffer);
  /** The source is lent until the event, which is the caller's. Needed of a destination. */
  PurlinPjrtError* (*copy_raw_host_to_device_and_return_event)(PurlinPjrtRawBuffer* buffer, const void* source,
      int64_t offset, int64_t transfer_size, PurlinPjrtDeviceEventVector* dependencies, PurlinPjrtDeviceEvent* event);
  /** The destination is lent until the event, which is the caller's. */
  PurlinPjrtError* (*copy_raw_device_to_host_and_return_event)(PurlinPjrtRawBuffer* buffer, void* destination,
      int64_t offset, int64_t transfer_size, PurlinPjrtDeviceEventVector* dependencies, PurlinPjrtDeviceEvent* event);
  /** The device's address; null while the memory is not there. Purlin's does not wait for it, as XLA's does. */
  void* (*opaque_device_memory_data_pointer)(const PurlinPjrtRawBuffer* buffer);
  /** When the memory is there; the caller's. */
  PurlinPjrtError* (*make_allocation_ready_event)(PurlinPjrtRawBuffer* buffer, PurlinPjrtDeviceEvent* event);
  /** The same, lent as long as the buffer lives. */
  PurlinPjrtError* (*get_raw_buffer_async_value)(PurlinPjrtRawBuffer* buffer, PurlinPjrtDeviceEvent* event);
  bool (*is_mutable)(const PurlinPjrtRawBuffer* buffer); /**< Whether it may be written. */
  /** Shares the memory; the caller's. Null on an error. */
  PurlinPjrtError* (*slice)(PurlinPjrtRawBuffer* buffer, int64_t offset, int64_t slice_size,
      PurlinPjrtRawBuffer** slice);
  /** Copies all of the source to the beginning of the destination, perhaps of another table, when the dependencies have
   * completed; both are lent for the call. The allocation's callback runs once, before the destination is touched. Both
   * promises are taken, and completed or failed when all is done; either may be null. If a dependency fails, nothing is
   * copied, and all three get its error. */
  void (*schedule_copy_to)(PurlinPjrtRawBuffer* source, PurlinPjrtDeviceEventVector* dependencies,
      PurlinPjrtRawBuffer* destination, PurlinPjrtDeviceEventPromise* definition_event_promise,
      PurlinPjrtDeviceEventPromise* source_usage_event_promise, PurlinPjrtRawBufferOnAllocated on_allocated,
      void* user_data);
};

/** PJRT_Error_Destroy_Args: The arguments of `PJRT_Error_Destroy`. */
struct PurlinPjrtErrorDestroyArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtError* error; /**< Null is ignored. */
};
/** What goes into struct_size of PurlinPjrtErrorDestroyArgs. */
enum { kPurlinPjrtErrorDestroyArgsSize = 24 };

/** PJRT_Error_Message_Args: The arguments of `PJRT_Error_Message`. */
struct PurlinPjrtErrorMessageArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  const PurlinPjrtError* error; /**< in: an object, lent for the call. */
  const char* message; /**< Out. UTF-8 without a NUL. */
  size_t message_size; /**< Out. Bytes of the message. */
};
/** What goes into struct_size of PurlinPjrtErrorMessageArgs. */
enum { kPurlinPjrtErrorMessageArgsSize = 40 };

/** PJRT_Error_GetCode_Args: The arguments of `PJRT_Error_GetCode`. */
struct PurlinPjrtErrorGetCodeArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  const PurlinPjrtError* error; /**< in: an object, lent for the call. */
  PurlinPjrtErrorCode code; /**< Out. absl's number. */
};
/** What goes into struct_size of PurlinPjrtErrorGetCodeArgs. */
enum { kPurlinPjrtErrorGetCodeArgsSize = 28 };

/** PJRT_Plugin_Initialize_Args: The arguments of `PJRT_Plugin_Initialize`. */
struct PurlinPjrtPluginInitializeArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
};
/** What goes into struct_size of PurlinPjrtPluginInitializeArgs. */
enum { kPurlinPjrtPluginInitializeArgsSize = 16 };

/** PJRT_Plugin_Attributes_Args: The arguments of `PJRT_Plugin_Attributes`. */
struct PurlinPjrtPluginAttributesArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  const PurlinPjrtNamedValue* attributes; /**< Out. For the life of the process. */
  size_t num_attributes; /**< Out. How many. */
};
/** What goes into struct_size of PurlinPjrtPluginAttributesArgs. */
enum { kPurlinPjrtPluginAttributesArgsSize = 32 };

/** PJRT_Event_Destroy_Args: The arguments of `PJRT_Event_Destroy`. */
struct PurlinPjrtEventDestroyArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtEvent* event; /**< Null is ignored. */
};
/** What goes into struct_size of PurlinPjrtEventDestroyArgs. */
enum { kPurlinPjrtEventDestroyArgsSize = 24 };

/** PJRT_Event_IsReady_Args: The arguments of `PJRT_Event_IsReady`. */
struct PurlinPjrtEventIsReadyArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtEvent* event; /**< in: an object, lent for the call. */
  bool is_ready; /**< Out. The answer. */
};
/** What goes into struct_size of PurlinPjrtEventIsReadyArgs. */
enum { kPurlinPjrtEventIsReadyArgsSize = 25 };

/** PJRT_Event_Error_Args: The arguments of `PJRT_Event_Error`. */
struct PurlinPjrtEventErrorArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtEvent* event; /**< in: an object, lent for the call. */
};
/** What goes into struct_size of PurlinPjrtEventErrorArgs. */
enum { kPurlinPjrtEventErrorArgsSize = 24 };

/** PJRT_Event_Await_Args: The arguments of `PJRT_Event_Await`. */
struct PurlinPjrtEventAwaitArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtEvent* event; /**< in: an object, lent for the call. */
};
/** What goes into struct_size of PurlinPjrtEventAwaitArgs. */
enum { kPurlinPjrtEventAwaitArgsSize = 24 };

/** PJRT_Event_OnReady_Args: The arguments of `PJRT_Event_OnReady`. */
struct PurlinPjrtEventOnReadyArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtEvent* event; /**< in: an object, lent for the call. */
  void (*callback)(PurlinPjrtError* error, void* user_arg); /**< Owns the error; null is success. */
  void* user_arg; /**< The caller's own. */
};
/** What goes into struct_size of PurlinPjrtEventOnReadyArgs. */
enum { kPurlinPjrtEventOnReadyArgsSize = 40 };

/** PJRT_Client_Create_Args: The arguments of `PJRT_Client_Create`. */
struct PurlinPjrtClientCreateArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  const PurlinPjrtNamedValue* create_options; /**< The plugin's own options. */
  size_t num_options; /**< How many. */
  /** Reads the store that all processes share. */
  PurlinPjrtError* (*kv_get_callback)(PurlinPjrtKeyValueGetCallbackArgs* args);
  void* kv_get_user_arg; /**< The caller's own. */
  PurlinPjrtError* (*kv_put_callback)(PurlinPjrtKeyValuePutCallbackArgs* args); /**< Writes to it. */
  void* kv_put_user_arg; /**< The caller's own. */
  PurlinPjrtClient* client; /**< Out. Client_Destroy ends it. */
  /** Reads it without waiting. Since 0.61. */
  PurlinPjrtError* (*kv_try_get_callback)(PurlinPjrtKeyValueTryGetCallbackArgs* args);
  void* kv_try_get_user_arg; /**< The caller's own. Since 0.61. */
};
/** What goes into struct_size of PurlinPjrtClientCreateArgs. */
enum { kPurlinPjrtClientCreateArgsSize = 88 };

/** PJRT_Client_Destroy_Args: The arguments of `PJRT_Client_Destroy`. */
struct PurlinPjrtClientDestroyArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtClient* client; /**< Null is ignored. */
};
/** What goes into struct_size of PurlinPjrtClientDestroyArgs. */
enum { kPurlinPjrtClientDestroyArgsSize = 24 };

/** PJRT_Client_PlatformName_Args: The arguments of `PJRT_Client_PlatformName`. */
struct PurlinPjrtClientPlatformNameArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtClient* client; /**< in: an object, lent for the call. */
  const char* platform_name; /**< Out. UTF-8. */
  size_t platform_name_size; /**< Out. Bytes of the name. */
};
/** What goes into struct_size of PurlinPjrtClientPlatformNameArgs. */
enum { kPurlinPjrtClientPlatformNameArgsSize = 40 };

/** PJRT_Client_ProcessIndex_Args: The arguments of `PJRT_Client_ProcessIndex`. */
struct PurlinPjrtClientProcessIndexArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtClient* client; /**< in: an object, lent for the call. */
  int process_index; /**< Out. 0 where there is only one. */
};
/** What goes into struct_size of PurlinPjrtClientProcessIndexArgs. */
enum { kPurlinPjrtClientProcessIndexArgsSize = 28 };

/** PJRT_Client_PlatformVersion_Args: The arguments of `PJRT_Client_PlatformVersion`. */
struct PurlinPjrtClientPlatformVersionArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtClient* client; /**< in: an object, lent for the call. */
  const char* platform_version; /**< Out. UTF-8. */
  size_t platform_version_size; /**< Out. Bytes of the version. */
};
/** What goes into struct_size of PurlinPjrtClientPlatformVersionArgs. */
enum { kPurlinPjrtClientPlatformVersionArgsSize = 40 };

/** PJRT_Client_Devices_Args: The arguments of `PJRT_Client_Devices`. */
struct PurlinPjrtClientDevicesArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtClient* client; /**< in: an object, lent for the call. */
  PurlinPjrtDevice* const* devices; /**< Out. The devices. */
  size_t num_devices; /**< Out. How many. */
};
/** What goes into struct_size of PurlinPjrtClientDevicesArgs. */
enum { kPurlinPjrtClientDevicesArgsSize = 40 };

/** PJRT_Client_AddressableDevices_Args: The arguments of `PJRT_Client_AddressableDevices`. */
struct PurlinPjrtClientAddressableDevicesArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtClient* client; /**< in: an object, lent for the call. */
  PurlinPjrtDevice* const* addressable_devices; /**< Out. The devices. */
  size_t num_addressable_devices; /**< Out. How many. */
};
/** What goes into struct_size of PurlinPjrtClientAddressableDevicesArgs. */
enum { kPurlinPjrtClientAddressableDevicesArgsSize = 40 };

/** PJRT_Client_LookupDevice_Args: The arguments of `PJRT_Client_LookupDevice`. */
struct PurlinPjrtClientLookupDeviceArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtClient* client; /**< in: an object, lent for the call. */
  int id; /**< As DeviceDescription_Id has it. */
  PurlinPjrtDevice* device; /**< Out. The device. */
};
/** What goes into struct_size of PurlinPjrtClientLookupDeviceArgs. */
enum { kPurlinPjrtClientLookupDeviceArgsSize = 40 };

/** PJRT_Client_LookupAddressableDevice_Args: The arguments of `PJRT_Client_LookupAddressableDevice`. */
struct PurlinPjrtClientLookupAddressableDeviceArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtClient* client; /**< in: an object, lent for the call. */
  int local_hardware_id; /**< As Device_LocalHardwareId has it. */
  PurlinPjrtDevice* addressable_device; /**< Out. The device. */
};
/** What goes into struct_size of PurlinPjrtClientLookupAddressableDeviceArgs. */
enum { kPurlinPjrtClientLookupAddressableDeviceArgsSize = 40 };

/** PJRT_Client_AddressableMemories_Args: The arguments of `PJRT_Client_AddressableMemories`. */
struct PurlinPjrtClientAddressableMemoriesArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtClient* client; /**< in: an object, lent for the call. */
  PurlinPjrtMemory* const* addressable_memories; /**< Out. The memories. */
  size_t num_addressable_memories; /**< Out. How many. */
};
/** What goes into struct_size of PurlinPjrtClientAddressableMemoriesArgs. */
enum { kPurlinPjrtClientAddressableMemoriesArgsSize = 40 };

/** PJRT_Client_Compile_Args: The arguments of `PJRT_Client_Compile`. */
struct PurlinPjrtClientCompileArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtClient* client; /**< in: an object, lent for the call. */
  const PurlinPjrtProgram* program; /**< The program. */
  const char* compile_options; /**< A serialized CompileOptionsProto. */
  size_t compile_options_size; /**< Bytes of the options. */
  PurlinPjrtLoadedExecutable* executable; /**< Out. LoadedExecutable_Destroy ends it. */
};
/** What goes into struct_size of PurlinPjrtClientCompileArgs. */
enum { kPurlinPjrtClientCompileArgsSize = 56 };

/** PJRT_Client_DefaultDeviceAssignment_Args: The arguments of `PJRT_Client_DefaultDeviceAssignment`. */
struct PurlinPjrtClientDefaultDeviceAssignmentArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtClient* client; /**< in: an object, lent for the call. */
  int num_replicas; /**< Replicas. */
  int num_partitions; /**< Partitions of each. */
  size_t default_assignment_size; /**< At least replicas times partitions. */
  int* default_assignment; /**< The caller's; gets the devices' numbers. */
};
/** What goes into struct_size of PurlinPjrtClientDefaultDeviceAssignmentArgs. */
enum { kPurlinPjrtClientDefaultDeviceAssignmentArgsSize = 48 };

/** PJRT_Client_BufferFromHostBuffer_Args: The arguments of `PJRT_Client_BufferFromHostBuffer`. */
struct PurlinPjrtClientBufferFromHostBufferArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtClient* client; /**< in: an object, lent for the call. */
  const void* data; /**< The bytes, as long as the semantics say. */
  PurlinPjrtBufferType type; /**< Their type. */
  const int64_t* dims; /**< The array's dimensions. */
  size_t num_dims; /**< How many. */
  const int64_t* byte_strides; /**< Bytes from one element to the next; none: dense. */
  size_t num_byte_strides; /**< As many as dimensions, or 0. */
  PurlinPjrtHostBufferSemantics host_buffer_semantics; /**< How long the bytes stay as they are. */
  PurlinPjrtDevice* device; /**< Where to, if no memory is given. */
  PurlinPjrtMemory* memory; /**< Where to. */
  PurlinPjrtBufferMemoryLayout* device_layout; /**< The layout there; null: dense. */
  PurlinPjrtEvent* done_with_host_buffer; /**< Out. When the caller may free or change the bytes. */
  PurlinPjrtBuffer* buffer; /**< Out. Buffer_Destroy ends it. */
};
/** What goes into struct_size of PurlinPjrtClientBufferFromHostBufferArgs. */
enum { kPurlinPjrtClientBufferFromHostBufferArgsSize = 120 };

/** PJRT_DeviceDescription_Id_Args: The arguments of `PJRT_DeviceDescription_Id`. */
struct PurlinPjrtDeviceDescriptionIdArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtDeviceDescription* device_description; /**< in: an object, lent for the call. */
  int id; /**< Out. The number. */
};
/** What goes into struct_size of PurlinPjrtDeviceDescriptionIdArgs. */
enum { kPurlinPjrtDeviceDescriptionIdArgsSize = 28 };

/** PJRT_DeviceDescription_ProcessIndex_Args: The arguments of `PJRT_DeviceDescription_ProcessIndex`. */
struct PurlinPjrtDeviceDescriptionProcessIndexArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtDeviceDescription* device_description; /**< in: an object, lent for the call. */
  int process_index; /**< Out. The process. */
};
/** What goes into struct_size of PurlinPjrtDeviceDescriptionProcessIndexArgs. */
enum { kPurlinPjrtDeviceDescriptionProcessIndexArgsSize = 28 };

/** PJRT_DeviceDescription_Attributes_Args: The arguments of `PJRT_DeviceDescription_Attributes`. */
struct PurlinPjrtDeviceDescriptionAttributesArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtDeviceDescription* device_description; /**< in: an object, lent for the call. */
  size_t num_attributes; /**< Out. How many. */
  const PurlinPjrtNamedValue* attributes; /**< Out. The attributes. */
};
/** What goes into struct_size of PurlinPjrtDeviceDescriptionAttributesArgs. */
enum { kPurlinPjrtDeviceDescriptionAttributesArgsSize = 40 };

/** PJRT_DeviceDescription_Kind_Args: The arguments of `PJRT_DeviceDescription_Kind`. */
struct PurlinPjrtDeviceDescriptionKindArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtDeviceDescription* device_description; /**< in: an object, lent for the call. */
  const char* device_kind; /**< Out. UTF-8. */
  size_t device_kind_size; /**< Out. Bytes of the kind. */
};
/** What goes into struct_size of PurlinPjrtDeviceDescriptionKindArgs. */
enum { kPurlinPjrtDeviceDescriptionKindArgsSize = 40 };

/** PJRT_DeviceDescription_DebugString_Args: The arguments of `PJRT_DeviceDescription_DebugString`. */
struct PurlinPjrtDeviceDescriptionDebugStringArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtDeviceDescription* device_description; /**< in: an object, lent for the call. */
  const char* debug_string; /**< Out. UTF-8. */
  size_t debug_string_size; /**< Out. Bytes of the text. */
};
/** What goes into struct_size of PurlinPjrtDeviceDescriptionDebugStringArgs. */
enum { kPurlinPjrtDeviceDescriptionDebugStringArgsSize = 40 };

/** PJRT_DeviceDescription_ToString_Args: The arguments of `PJRT_DeviceDescription_ToString`. */
struct PurlinPjrtDeviceDescriptionToStringArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtDeviceDescription* device_description; /**< in: an object, lent for the call. */
  const char* to_string; /**< Out. UTF-8. */
  size_t to_string_size; /**< Out. Bytes of the text. */
};
/** What goes into struct_size of PurlinPjrtDeviceDescriptionToStringArgs. */
enum { kPurlinPjrtDeviceDescriptionToStringArgsSize = 40 };

/** PJRT_Device_GetDescription_Args: The arguments of `PJRT_Device_GetDescription`. */
struct PurlinPjrtDeviceGetDescriptionArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtDevice* device; /**< in: an object, lent for the call. */
  PurlinPjrtDeviceDescription* device_description; /**< Out. The description. */
};
/** What goes into struct_size of PurlinPjrtDeviceGetDescriptionArgs. */
enum { kPurlinPjrtDeviceGetDescriptionArgsSize = 32 };

/** PJRT_Device_IsAddressable_Args: The arguments of `PJRT_Device_IsAddressable`. */
struct PurlinPjrtDeviceIsAddressableArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtDevice* device; /**< in: an object, lent for the call. */
  bool is_addressable; /**< Out. The answer. */
};
/** What goes into struct_size of PurlinPjrtDeviceIsAddressableArgs. */
enum { kPurlinPjrtDeviceIsAddressableArgsSize = 25 };

/** PJRT_Device_LocalHardwareId_Args: The arguments of `PJRT_Device_LocalHardwareId`. */
struct PurlinPjrtDeviceLocalHardwareIdArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtDevice* device; /**< in: an object, lent for the call. */
  int local_hardware_id; /**< Out. The number; -1 where it has none. */
};
/** What goes into struct_size of PurlinPjrtDeviceLocalHardwareIdArgs. */
enum { kPurlinPjrtDeviceLocalHardwareIdArgsSize = 28 };

/** PJRT_Device_AddressableMemories_Args: The arguments of `PJRT_Device_AddressableMemories`. */
struct PurlinPjrtDeviceAddressableMemoriesArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtDevice* device; /**< in: an object, lent for the call. */
  PurlinPjrtMemory* const* memories; /**< Out. The memories. */
  size_t num_memories; /**< Out. How many. */
};
/** What goes into struct_size of PurlinPjrtDeviceAddressableMemoriesArgs. */
enum { kPurlinPjrtDeviceAddressableMemoriesArgsSize = 40 };

/** PJRT_Device_DefaultMemory_Args: The arguments of `PJRT_Device_DefaultMemory`. */
struct PurlinPjrtDeviceDefaultMemoryArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtDevice* device; /**< in: an object, lent for the call. */
  PurlinPjrtMemory* memory; /**< Out. The memory. */
};
/** What goes into struct_size of PurlinPjrtDeviceDefaultMemoryArgs. */
enum { kPurlinPjrtDeviceDefaultMemoryArgsSize = 32 };

/** PJRT_Device_MemoryStats_Args: The arguments of `PJRT_Device_MemoryStats`. */
struct PurlinPjrtDeviceMemoryStatsArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtDevice* device; /**< in: an object, lent for the call. */
  int64_t bytes_in_use; /**< Out. Allocated now. */
  int64_t peak_bytes_in_use; /**< Out. The most so far. */
  bool peak_bytes_in_use_is_set; /**< Out. Whether that is known. */
  int64_t num_allocs; /**< Out. Allocations so far. */
  bool num_allocs_is_set; /**< Out. Whether that is known. */
  int64_t largest_alloc_size; /**< Out. The largest so far. */
  bool largest_alloc_size_is_set; /**< Out. Whether that is known. */
  int64_t bytes_limit; /**< Out. The most that can be allocated. */
  bool bytes_limit_is_set; /**< Out. Whether that is known. */
  int64_t bytes_reserved; /**< Out. Held without being allocated. */
  bool bytes_reserved_is_set; /**< Out. Whether that is known. */
  int64_t peak_bytes_reserved; /**< Out. The most so far. */
  bool peak_bytes_reserved_is_set; /**< Out. Whether that is known. */
  int64_t bytes_reservable_limit; /**< Out. The most that can be held. */
  bool bytes_reservable_limit_is_set; /**< Out. Whether that is known. */
  int64_t largest_free_block_bytes; /**< Out. The largest free block. */
  bool largest_free_block_bytes_is_set; /**< Out. Whether that is known. */
  int64_t pool_bytes; /**< Out. What the allocator has of the platform. */
  bool pool_bytes_is_set; /**< Out. Whether that is known. */
  int64_t peak_pool_bytes; /**< Out. The most so far. */
  bool peak_pool_bytes_is_set; /**< Out. Whether that is known. */
};
/** What goes into struct_size of PurlinPjrtDeviceMemoryStatsArgs. */
enum { kPurlinPjrtDeviceMemoryStatsArgsSize = 185 };

/** PJRT_Memory_Id_Args: The arguments of `PJRT_Memory_Id`. */
struct PurlinPjrtMemoryIdArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtMemory* memory; /**< in: an object, lent for the call. */
  int id; /**< Out. The number. */
};
/** What goes into struct_size of PurlinPjrtMemoryIdArgs. */
enum { kPurlinPjrtMemoryIdArgsSize = 28 };

/** PJRT_Memory_Kind_Args: The arguments of `PJRT_Memory_Kind`. */
struct PurlinPjrtMemoryKindArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtMemory* memory; /**< in: an object, lent for the call. */
  const char* kind; /**< Out. UTF-8. */
  size_t kind_size; /**< Out. Bytes of the kind. */
};
/** What goes into struct_size of PurlinPjrtMemoryKindArgs. */
enum { kPurlinPjrtMemoryKindArgsSize = 40 };

/** PJRT_Memory_DebugString_Args: The arguments of `PJRT_Memory_DebugString`. */
struct PurlinPjrtMemoryDebugStringArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtMemory* memory; /**< in: an object, lent for the call. */
  const char* debug_string; /**< Out. UTF-8. */
  size_t debug_string_size; /**< Out. Bytes of the text. */
};
/** What goes into struct_size of PurlinPjrtMemoryDebugStringArgs. */
enum { kPurlinPjrtMemoryDebugStringArgsSize = 40 };

/** PJRT_Memory_ToString_Args: The arguments of `PJRT_Memory_ToString`. */
struct PurlinPjrtMemoryToStringArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtMemory* memory; /**< in: an object, lent for the call. */
  const char* to_string; /**< Out. UTF-8. */
  size_t to_string_size; /**< Out. Bytes of the text. */
};
/** What goes into struct_size of PurlinPjrtMemoryToStringArgs. */
enum { kPurlinPjrtMemoryToStringArgsSize = 40 };

/** PJRT_Memory_AddressableByDevices_Args: The arguments of `PJRT_Memory_AddressableByDevices`. */
struct PurlinPjrtMemoryAddressableByDevicesArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtMemory* memory; /**< in: an object, lent for the call. */
  PurlinPjrtDevice* const* devices; /**< Out. The devices. */
  size_t num_devices; /**< Out. How many. */
};
/** What goes into struct_size of PurlinPjrtMemoryAddressableByDevicesArgs. */
enum { kPurlinPjrtMemoryAddressableByDevicesArgsSize = 40 };

/** PJRT_Executable_Destroy_Args: The arguments of `PJRT_Executable_Destroy`. */
struct PurlinPjrtExecutableDestroyArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtExecutable* executable; /**< Null is ignored. */
};
/** What goes into struct_size of PurlinPjrtExecutableDestroyArgs. */
enum { kPurlinPjrtExecutableDestroyArgsSize = 24 };

/** PJRT_Executable_Name_Args: The arguments of `PJRT_Executable_Name`. */
struct PurlinPjrtExecutableNameArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtExecutable* executable; /**< in: an object, lent for the call. */
  const char* executable_name; /**< Out. UTF-8. */
  size_t executable_name_size; /**< Out. Bytes of the name. */
};
/** What goes into struct_size of PurlinPjrtExecutableNameArgs. */
enum { kPurlinPjrtExecutableNameArgsSize = 40 };

/** PJRT_Executable_NumReplicas_Args: The arguments of `PJRT_Executable_NumReplicas`. */
struct PurlinPjrtExecutableNumReplicasArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtExecutable* executable; /**< in: an object, lent for the call. */
  size_t num_replicas; /**< Out. The number. */
};
/** What goes into struct_size of PurlinPjrtExecutableNumReplicasArgs. */
enum { kPurlinPjrtExecutableNumReplicasArgsSize = 32 };

/** PJRT_Executable_NumPartitions_Args: The arguments of `PJRT_Executable_NumPartitions`. */
struct PurlinPjrtExecutableNumPartitionsArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtExecutable* executable; /**< in: an object, lent for the call. */
  size_t num_partitions; /**< Out. The number. */
};
/** What goes into struct_size of PurlinPjrtExecutableNumPartitionsArgs. */
enum { kPurlinPjrtExecutableNumPartitionsArgsSize = 32 };

/** PJRT_Executable_NumOutputs_Args: The arguments of `PJRT_Executable_NumOutputs`. */
struct PurlinPjrtExecutableNumOutputsArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtExecutable* executable; /**< in: an object, lent for the call. */
  size_t num_outputs; /**< Out. The number. */
};
/** What goes into struct_size of PurlinPjrtExecutableNumOutputsArgs. */
enum { kPurlinPjrtExecutableNumOutputsArgsSize = 32 };

/** PJRT_Executable_SizeOfGeneratedCodeInBytes_Args: The arguments of `PJRT_Executable_SizeOfGeneratedCodeInBytes`. */
struct PurlinPjrtExecutableSizeOfGeneratedCodeInBytesArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtExecutable* executable; /**< in: an object, lent for the call. */
  int64_t size_in_bytes; /**< Out. Bytes. */
};
/** What goes into struct_size of PurlinPjrtExecutableSizeOfGeneratedCodeInBytesArgs. */
enum { kPurlinPjrtExecutableSizeOfGeneratedCodeInBytesArgsSize = 32 };

/** PJRT_Executable_GetCostAnalysis_Args: The arguments of `PJRT_Executable_GetCostAnalysis`. */
struct PurlinPjrtExecutableGetCostAnalysisArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtExecutable* executable; /**< in: an object, lent for the call. */
  size_t num_properties; /**< Out. How many. */
  const PurlinPjrtNamedValue* properties; /**< Out. The costs. */
};
/** What goes into struct_size of PurlinPjrtExecutableGetCostAnalysisArgs. */
enum { kPurlinPjrtExecutableGetCostAnalysisArgsSize = 40 };

/** PJRT_Executable_OutputMemoryKinds_Args: The arguments of `PJRT_Executable_OutputMemoryKinds`. */
struct PurlinPjrtExecutableOutputMemoryKindsArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtExecutable* executable; /**< in: an object, lent for the call. */
  size_t num_outputs; /**< Out. Results. */
  const char* const* memory_kinds; /**< Out. The kinds. */
  const size_t* memory_kind_sizes; /**< Out. Bytes of each. */
};
/** What goes into struct_size of PurlinPjrtExecutableOutputMemoryKindsArgs. */
enum { kPurlinPjrtExecutableOutputMemoryKindsArgsSize = 48 };

/** PJRT_Executable_OptimizedProgram_Args: The arguments of `PJRT_Executable_OptimizedProgram`. */
struct PurlinPjrtExecutableOptimizedProgramArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtExecutable* executable; /**< in: an object, lent for the call. */
  PurlinPjrtProgram* program; /**< The caller's; without code, only the size and the format are set. */
};
/** What goes into struct_size of PurlinPjrtExecutableOptimizedProgramArgs. */
enum { kPurlinPjrtExecutableOptimizedProgramArgsSize = 32 };

/** PJRT_Executable_Serialize_Args: The arguments of `PJRT_Executable_Serialize`. */
struct PurlinPjrtExecutableSerializeArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  const PurlinPjrtExecutable* executable; /**< in: an object, lent for the call. */
  const char* serialized_bytes; /**< Out. The bytes. */
  size_t serialized_bytes_size; /**< Out. How many. */
  PurlinPjrtSerializedExecutable* serialized_executable; /**< Out. What holds the bytes. */
  void (*serialized_executable_deleter)(PurlinPjrtSerializedExecutable* executable); /**< Ends that; an out argument. */
};
/** What goes into struct_size of PurlinPjrtExecutableSerializeArgs. */
enum { kPurlinPjrtExecutableSerializeArgsSize = 56 };

/** PJRT_LoadedExecutable_Destroy_Args: The arguments of `PJRT_LoadedExecutable_Destroy`. */
struct PurlinPjrtLoadedExecutableDestroyArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtLoadedExecutable* executable; /**< Null is ignored. */
};
/** What goes into struct_size of PurlinPjrtLoadedExecutableDestroyArgs. */
enum { kPurlinPjrtLoadedExecutableDestroyArgsSize = 24 };

/** PJRT_LoadedExecutable_GetExecutable_Args: The arguments of `PJRT_LoadedExecutable_GetExecutable`. */
struct PurlinPjrtLoadedExecutableGetExecutableArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtLoadedExecutable* loaded_executable; /**< in: an object, lent for the call. */
  PurlinPjrtExecutable* executable; /**< Out. Executable_Destroy ends it. */
};
/** What goes into struct_size of PurlinPjrtLoadedExecutableGetExecutableArgs. */
enum { kPurlinPjrtLoadedExecutableGetExecutableArgsSize = 32 };

/** PJRT_LoadedExecutable_AddressableDevices_Args: The arguments of `PJRT_LoadedExecutable_AddressableDevices`. */
struct PurlinPjrtLoadedExecutableAddressableDevicesArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtLoadedExecutable* executable; /**< in: an object, lent for the call. */
  PurlinPjrtDevice* const* addressable_devices; /**< Out. The devices. */
  size_t num_addressable_devices; /**< Out. How many. */
};
/** What goes into struct_size of PurlinPjrtLoadedExecutableAddressableDevicesArgs. */
enum { kPurlinPjrtLoadedExecutableAddressableDevicesArgsSize = 40 };

/** PJRT_LoadedExecutable_Delete_Args: The arguments of `PJRT_LoadedExecutable_Delete`. */
struct PurlinPjrtLoadedExecutableDeleteArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtLoadedExecutable* executable; /**< in: an object, lent for the call. */
};
/** What goes into struct_size of PurlinPjrtLoadedExecutableDeleteArgs. */
enum { kPurlinPjrtLoadedExecutableDeleteArgsSize = 24 };

/** PJRT_LoadedExecutable_IsDeleted_Args: The arguments of `PJRT_LoadedExecutable_IsDeleted`. */
struct PurlinPjrtLoadedExecutableIsDeletedArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtLoadedExecutable* executable; /**< in: an object, lent for the call. */
  bool is_deleted; /**< Out. The answer. */
};
/** What goes into struct_size of PurlinPjrtLoadedExecutableIsDeletedArgs. */
enum { kPurlinPjrtLoadedExecutableIsDeletedArgsSize = 25 };

/** PJRT_LoadedExecutable_Execute_Args: The arguments of `PJRT_LoadedExecutable_Execute`. */
struct PurlinPjrtLoadedExecutableExecuteArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtLoadedExecutable* executable; /**< in: an object, lent for the call. */
  PurlinPjrtExecuteOptions* options; /**< How. */
  PurlinPjrtBuffer* const* const* argument_lists; /**< For each device, its arguments; donated ones are deleted. */
  size_t num_devices; /**< Devices. */
  size_t num_args; /**< Arguments of each. */
  PurlinPjrtBuffer** const* output_lists; /**< Out. The caller's lists; each gets the results of a device. */
  PurlinPjrtEvent** device_complete_events; /**< Out. The caller's list; gets an event of each device's run. */
  PurlinPjrtDevice* execute_device; /**< Runs it only there. */
};
/** What goes into struct_size of PurlinPjrtLoadedExecutableExecuteArgs. */
enum { kPurlinPjrtLoadedExecutableExecuteArgsSize = 80 };

/** PJRT_Executable_DeserializeAndLoad_Args: The arguments of `PJRT_Executable_DeserializeAndLoad`. */
struct PurlinPjrtExecutableDeserializeAndLoadArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtClient* client; /**< in: an object, lent for the call. */
  const char* serialized_executable; /**< The bytes. */
  size_t serialized_executable_size; /**< How many. */
  PurlinPjrtLoadedExecutable* loaded_executable; /**< Out. LoadedExecutable_Destroy ends it. */
  const char* overridden_serialized_compile_options; /**< Options instead of those in the bytes. Since 0.71. */
  size_t overridden_serialized_compile_options_size; /**< Bytes of the options. Since 0.71. */
};
/** What goes into struct_size of PurlinPjrtExecutableDeserializeAndLoadArgs. */
enum { kPurlinPjrtExecutableDeserializeAndLoadArgsSize = 64 };

/** PJRT_LoadedExecutable_Fingerprint_Args: The arguments of `PJRT_LoadedExecutable_Fingerprint`. */
struct PurlinPjrtLoadedExecutableFingerprintArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtLoadedExecutable* executable; /**< in: an object, lent for the call. */
  const char* executable_fingerprint; /**< Out. The fingerprint. */
  size_t executable_fingerprint_size; /**< Out. Its bytes. */
};
/** What goes into struct_size of PurlinPjrtLoadedExecutableFingerprintArgs. */
enum { kPurlinPjrtLoadedExecutableFingerprintArgsSize = 40 };

/** PJRT_Buffer_Destroy_Args: The arguments of `PJRT_Buffer_Destroy`. */
struct PurlinPjrtBufferDestroyArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtBuffer* buffer; /**< Null is ignored. */
};
/** What goes into struct_size of PurlinPjrtBufferDestroyArgs. */
enum { kPurlinPjrtBufferDestroyArgsSize = 24 };

/** PJRT_Buffer_ElementType_Args: The arguments of `PJRT_Buffer_ElementType`. */
struct PurlinPjrtBufferElementTypeArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtBuffer* buffer; /**< in: an object, lent for the call. */
  PurlinPjrtBufferType type; /**< Out. The type. */
};
/** What goes into struct_size of PurlinPjrtBufferElementTypeArgs. */
enum { kPurlinPjrtBufferElementTypeArgsSize = 28 };

/** PJRT_Buffer_Dimensions_Args: The arguments of `PJRT_Buffer_Dimensions`. */
struct PurlinPjrtBufferDimensionsArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtBuffer* buffer; /**< in: an object, lent for the call. */
  const int64_t* dims; /**< Out. The dimensions. */
  size_t num_dims; /**< Out. How many. */
};
/** What goes into struct_size of PurlinPjrtBufferDimensionsArgs. */
enum { kPurlinPjrtBufferDimensionsArgsSize = 40 };

/** PJRT_Buffer_UnpaddedDimensions_Args: The arguments of `PJRT_Buffer_UnpaddedDimensions`. */
struct PurlinPjrtBufferUnpaddedDimensionsArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtBuffer* buffer; /**< in: an object, lent for the call. */
  const int64_t* unpadded_dims; /**< Out. The dimensions. */
  size_t num_dims; /**< Out. How many. */
};
/** What goes into struct_size of PurlinPjrtBufferUnpaddedDimensionsArgs. */
enum { kPurlinPjrtBufferUnpaddedDimensionsArgsSize = 40 };

/** PJRT_Buffer_DynamicDimensionIndices_Args: The arguments of `PJRT_Buffer_DynamicDimensionIndices`. */
struct PurlinPjrtBufferDynamicDimensionIndicesArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtBuffer* buffer; /**< in: an object, lent for the call. */
  const size_t* dynamic_dim_indices; /**< Out. Their places. */
  size_t num_dynamic_dims; /**< Out. How many. */
};
/** What goes into struct_size of PurlinPjrtBufferDynamicDimensionIndicesArgs. */
enum { kPurlinPjrtBufferDynamicDimensionIndicesArgsSize = 40 };

/** PJRT_Buffer_GetMemoryLayout_Args: The arguments of `PJRT_Buffer_GetMemoryLayout`. */
struct PurlinPjrtBufferGetMemoryLayoutArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtBuffer* buffer; /**< in: an object, lent for the call. */
  PurlinPjrtBufferMemoryLayout layout; /**< Out. What it points to is lent as long as the array lives. */
};
/** What goes into struct_size of PurlinPjrtBufferGetMemoryLayoutArgs. */
enum { kPurlinPjrtBufferGetMemoryLayoutArgsSize = 104 };

/** PJRT_Buffer_OnDeviceSizeInBytes_Args: The arguments of `PJRT_Buffer_OnDeviceSizeInBytes`. */
struct PurlinPjrtBufferOnDeviceSizeInBytesArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtBuffer* buffer; /**< in: an object, lent for the call. */
  size_t on_device_size_in_bytes; /**< Out. Bytes. */
};
/** What goes into struct_size of PurlinPjrtBufferOnDeviceSizeInBytesArgs. */
enum { kPurlinPjrtBufferOnDeviceSizeInBytesArgsSize = 32 };

/** PJRT_Buffer_Device_Args: The arguments of `PJRT_Buffer_Device`. */
struct PurlinPjrtBufferDeviceArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtBuffer* buffer; /**< in: an object, lent for the call. */
  PurlinPjrtDevice* device; /**< Out. For the life of the client. */
};
/** What goes into struct_size of PurlinPjrtBufferDeviceArgs. */
enum { kPurlinPjrtBufferDeviceArgsSize = 32 };

/** PJRT_Buffer_Memory_Args: The arguments of `PJRT_Buffer_Memory`. */
struct PurlinPjrtBufferMemoryArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtBuffer* buffer; /**< in: an object, lent for the call. */
  PurlinPjrtMemory* memory; /**< Out. For the life of the client. */
};
/** What goes into struct_size of PurlinPjrtBufferMemoryArgs. */
enum { kPurlinPjrtBufferMemoryArgsSize = 32 };

/** PJRT_Buffer_Delete_Args: The arguments of `PJRT_Buffer_Delete`. */
struct PurlinPjrtBufferDeleteArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtBuffer* buffer; /**< in: an object, lent for the call. */
};
/** What goes into struct_size of PurlinPjrtBufferDeleteArgs. */
enum { kPurlinPjrtBufferDeleteArgsSize = 24 };

/** PJRT_Buffer_IsDeleted_Args: The arguments of `PJRT_Buffer_IsDeleted`. */
struct PurlinPjrtBufferIsDeletedArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtBuffer* buffer; /**< in: an object, lent for the call. */
  bool is_deleted; /**< Out. The answer. */
};
/** What goes into struct_size of PurlinPjrtBufferIsDeletedArgs. */
enum { kPurlinPjrtBufferIsDeletedArgsSize = 25 };

/** PJRT_Buffer_CopyToDevice_Args: The arguments of `PJRT_Buffer_CopyToDevice`. */
struct PurlinPjrtBufferCopyToDeviceArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtBuffer* buffer; /**< in: an object, lent for the call. */
  PurlinPjrtDevice* dst_device; /**< in: an object, lent for the call. */
  PurlinPjrtBuffer* dst_buffer; /**< Out. Buffer_Destroy ends it. */
};
/** What goes into struct_size of PurlinPjrtBufferCopyToDeviceArgs. */
enum { kPurlinPjrtBufferCopyToDeviceArgsSize = 40 };

/** PJRT_Buffer_ToHostBuffer_Args: The arguments of `PJRT_Buffer_ToHostBuffer`. */
struct PurlinPjrtBufferToHostBufferArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtBuffer* src; /**< in: an object, lent for the call. */
  PurlinPjrtBufferMemoryLayout* host_layout; /**< The layout there; null: the array's own. */
  void* dst; /**< Where to; null asks for the size. */
  size_t dst_size; /**< Bytes there; without a destination, bytes needed. */
  PurlinPjrtEvent* event; /**< Out. When the bytes are there. */
};
/** What goes into struct_size of PurlinPjrtBufferToHostBufferArgs. */
enum { kPurlinPjrtBufferToHostBufferArgsSize = 56 };

/** PJRT_Buffer_IsOnCpu_Args: The arguments of `PJRT_Buffer_IsOnCpu`. */
struct PurlinPjrtBufferIsOnCpuArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtBuffer* buffer; /**< in: an object, lent for the call. */
  bool is_on_cpu; /**< Out. The answer. */
};
/** What goes into struct_size of PurlinPjrtBufferIsOnCpuArgs. */
enum { kPurlinPjrtBufferIsOnCpuArgsSize = 25 };

/** PJRT_Buffer_ReadyEvent_Args: The arguments of `PJRT_Buffer_ReadyEvent`. */
struct PurlinPjrtBufferReadyEventArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtBuffer* buffer; /**< in: an object, lent for the call. */
  PurlinPjrtEvent* event; /**< Out. Event_Destroy ends it. */
};
/** What goes into struct_size of PurlinPjrtBufferReadyEventArgs. */
enum { kPurlinPjrtBufferReadyEventArgsSize = 32 };

/** PJRT_Buffer_UnsafePointer_Args: The arguments of `PJRT_Buffer_UnsafePointer`. */
struct PurlinPjrtBufferUnsafePointerArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtBuffer* buffer; /**< in: an object, lent for the call. */
  uintptr_t buffer_pointer; /**< Out. The address. */
};
/** What goes into struct_size of PurlinPjrtBufferUnsafePointerArgs. */
enum { kPurlinPjrtBufferUnsafePointerArgsSize = 32 };

/** PJRT_Buffer_IncreaseExternalReferenceCount_Args: The arguments of `PJRT_Buffer_IncreaseExternalReferenceCount`. */
struct PurlinPjrtBufferIncreaseExternalReferenceCountArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtBuffer* buffer; /**< in: an object, lent for the call. */
};
/** What goes into struct_size of PurlinPjrtBufferIncreaseExternalReferenceCountArgs. */
enum { kPurlinPjrtBufferIncreaseExternalReferenceCountArgsSize = 24 };

/** PJRT_Buffer_DecreaseExternalReferenceCount_Args: The arguments of `PJRT_Buffer_DecreaseExternalReferenceCount`. */
struct PurlinPjrtBufferDecreaseExternalReferenceCountArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtBuffer* buffer; /**< in: an object, lent for the call. */
};
/** What goes into struct_size of PurlinPjrtBufferDecreaseExternalReferenceCountArgs. */
enum { kPurlinPjrtBufferDecreaseExternalReferenceCountArgsSize = 24 };

/** PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args: The arguments of `PJRT_Buffer_OpaqueDeviceMemoryDataPointer`. */
struct PurlinPjrtBufferOpaqueDeviceMemoryDataPointerArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtBuffer* buffer; /**< in: an object, lent for the call. */
  void* device_memory_ptr; /**< Out. The address. */
};
/** What goes into struct_size of PurlinPjrtBufferOpaqueDeviceMemoryDataPointerArgs. */
enum { kPurlinPjrtBufferOpaqueDeviceMemoryDataPointerArgsSize = 32 };

/** PJRT_CopyToDeviceStream_Destroy_Args: The arguments of `PJRT_CopyToDeviceStream_Destroy`. */
struct PurlinPjrtCopyToDeviceStreamDestroyArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtCopyToDeviceStream* stream; /**< Null is ignored. */
};
/** What goes into struct_size of PurlinPjrtCopyToDeviceStreamDestroyArgs. */
enum { kPurlinPjrtCopyToDeviceStreamDestroyArgsSize = 24 };

/** PJRT_CopyToDeviceStream_AddChunk_Args: The arguments of `PJRT_CopyToDeviceStream_AddChunk`. */
struct PurlinPjrtCopyToDeviceStreamAddChunkArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtCopyToDeviceStream* stream; /**< in: an object, lent for the call. */
  PurlinPjrtChunk* chunk; /**< Its deleter is called when the bytes were read. */
  PurlinPjrtEvent* transfer_complete; /**< Out. When they are there. */
};
/** What goes into struct_size of PurlinPjrtCopyToDeviceStreamAddChunkArgs. */
enum { kPurlinPjrtCopyToDeviceStreamAddChunkArgsSize = 40 };

/** PJRT_CopyToDeviceStream_TotalBytes_Args: The arguments of `PJRT_CopyToDeviceStream_TotalBytes`. */
struct PurlinPjrtCopyToDeviceStreamTotalBytesArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtCopyToDeviceStream* stream; /**< in: an object, lent for the call. */
  int64_t total_bytes; /**< Out. Bytes. */
};
/** What goes into struct_size of PurlinPjrtCopyToDeviceStreamTotalBytesArgs. */
enum { kPurlinPjrtCopyToDeviceStreamTotalBytesArgsSize = 32 };

/** PJRT_CopyToDeviceStream_GranuleSize_Args: The arguments of `PJRT_CopyToDeviceStream_GranuleSize`. */
struct PurlinPjrtCopyToDeviceStreamGranuleSizeArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtCopyToDeviceStream* stream; /**< in: an object, lent for the call. */
  int64_t granule_size_in_bytes; /**< Out. Bytes. */
};
/** What goes into struct_size of PurlinPjrtCopyToDeviceStreamGranuleSizeArgs. */
enum { kPurlinPjrtCopyToDeviceStreamGranuleSizeArgsSize = 32 };

/** PJRT_CopyToDeviceStream_CurrentBytes_Args: The arguments of `PJRT_CopyToDeviceStream_CurrentBytes`. */
struct PurlinPjrtCopyToDeviceStreamCurrentBytesArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtCopyToDeviceStream* stream; /**< in: an object, lent for the call. */
  int64_t current_bytes; /**< Out. Bytes. */
};
/** What goes into struct_size of PurlinPjrtCopyToDeviceStreamCurrentBytesArgs. */
enum { kPurlinPjrtCopyToDeviceStreamCurrentBytesArgsSize = 32 };

/** PJRT_TopologyDescription_Create_Args: The arguments of `PJRT_TopologyDescription_Create`. */
struct PurlinPjrtTopologyDescriptionCreateArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  const char* topology_name; /**< Which. */
  size_t topology_name_size; /**< Bytes of the name. */
  const PurlinPjrtNamedValue* create_options; /**< The plugin's own options. */
  size_t num_options; /**< How many. */
  PurlinPjrtTopologyDescription* topology; /**< Out. TopologyDescription_Destroy ends it. */
};
/** What goes into struct_size of PurlinPjrtTopologyDescriptionCreateArgs. */
enum { kPurlinPjrtTopologyDescriptionCreateArgsSize = 56 };

/** PJRT_TopologyDescription_Destroy_Args: The arguments of `PJRT_TopologyDescription_Destroy`. */
struct PurlinPjrtTopologyDescriptionDestroyArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtTopologyDescription* topology; /**< Null is ignored. */
};
/** What goes into struct_size of PurlinPjrtTopologyDescriptionDestroyArgs. */
enum { kPurlinPjrtTopologyDescriptionDestroyArgsSize = 24 };

/** PJRT_TopologyDescription_PlatformName_Args: The arguments of `PJRT_TopologyDescription_PlatformName`. */
struct PurlinPjrtTopologyDescriptionPlatformNameArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  const PurlinPjrtTopologyDescription* topology; /**< in: an object, lent for the call. */
  const char* platform_name; /**< Out. UTF-8. */
  size_t platform_name_size; /**< Out. Bytes of the name. */
};
/** What goes into struct_size of PurlinPjrtTopologyDescriptionPlatformNameArgs. */
enum { kPurlinPjrtTopologyDescriptionPlatformNameArgsSize = 40 };

/** PJRT_TopologyDescription_PlatformVersion_Args: The arguments of `PJRT_TopologyDescription_PlatformVersion`. */
struct PurlinPjrtTopologyDescriptionPlatformVersionArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtTopologyDescription* topology; /**< in: an object, lent for the call. */
  const char* platform_version; /**< Out. UTF-8. */
  size_t platform_version_size; /**< Out. Bytes of the version. */
};
/** What goes into struct_size of PurlinPjrtTopologyDescriptionPlatformVersionArgs. */
enum { kPurlinPjrtTopologyDescriptionPlatformVersionArgsSize = 40 };

/** PJRT_TopologyDescription_GetDeviceDescriptions_Args: The arguments of
 * `PJRT_TopologyDescription_GetDeviceDescriptions`. */
struct PurlinPjrtTopologyDescriptionGetDeviceDescriptionsArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  const PurlinPjrtTopologyDescription* topology; /**< in: an object, lent for the call. */
  PurlinPjrtDeviceDescription* const* descriptions; /**< Out. The devices. */
  size_t num_descriptions; /**< Out. How many. */
};
/** What goes into struct_size of PurlinPjrtTopologyDescriptionGetDeviceDescriptionsArgs. */
enum { kPurlinPjrtTopologyDescriptionGetDeviceDescriptionsArgsSize = 40 };

/** PJRT_TopologyDescription_Serialize_Args: The arguments of `PJRT_TopologyDescription_Serialize`. */
struct PurlinPjrtTopologyDescriptionSerializeArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtTopologyDescription* topology; /**< in: an object, lent for the call. */
  const char* serialized_bytes; /**< Out. The bytes. */
  size_t serialized_bytes_size; /**< Out. How many. */
  PurlinPjrtSerializedTopology* serialized_topology; /**< Out. What holds the bytes. */
  void (*serialized_topology_deleter)(PurlinPjrtSerializedTopology* topology); /**< Ends that; an out argument. */
};
/** What goes into struct_size of PurlinPjrtTopologyDescriptionSerializeArgs. */
enum { kPurlinPjrtTopologyDescriptionSerializeArgsSize = 56 };

/** PJRT_TopologyDescription_Attributes_Args: The arguments of `PJRT_TopologyDescription_Attributes`. */
struct PurlinPjrtTopologyDescriptionAttributesArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtTopologyDescription* topology; /**< in: an object, lent for the call. */
  const PurlinPjrtNamedValue* attributes; /**< Out. The attributes. */
  size_t num_attributes; /**< Out. How many. */
};
/** What goes into struct_size of PurlinPjrtTopologyDescriptionAttributesArgs. */
enum { kPurlinPjrtTopologyDescriptionAttributesArgsSize = 40 };

/** PJRT_Compile_Args: The arguments of `PJRT_Compile`. */
struct PurlinPjrtCompileArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  const PurlinPjrtTopologyDescription* topology; /**< in: an object, lent for the call. */
  const PurlinPjrtProgram* program; /**< The program. */
  const char* compile_options; /**< A serialized CompileOptionsProto. */
  size_t compile_options_size; /**< Bytes of the options. */
  PurlinPjrtClient* client; /**< Whose measurements may guide the compiler. */
  PurlinPjrtExecutable* executable; /**< Out. Executable_Destroy ends it. */
};
/** What goes into struct_size of PurlinPjrtCompileArgs. */
enum { kPurlinPjrtCompileArgsSize = 64 };

/** PJRT_Executable_OutputElementTypes_Args: The arguments of `PJRT_Executable_OutputElementTypes`. */
struct PurlinPjrtExecutableOutputElementTypesArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtExecutable* executable; /**< in: an object, lent for the call. */
  PurlinPjrtBufferType* output_types; /**< Out. The types. */
  size_t num_output_types; /**< Out. How many. */
};
/** What goes into struct_size of PurlinPjrtExecutableOutputElementTypesArgs. */
enum { kPurlinPjrtExecutableOutputElementTypesArgsSize = 40 };

/** PJRT_Executable_OutputDimensions_Args: The arguments of `PJRT_Executable_OutputDimensions`. */
struct PurlinPjrtExecutableOutputDimensionsArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtExecutable* executable; /**< in: an object, lent for the call. */
  size_t num_outputs; /**< Out. Results. */
  const int64_t* dims; /**< Out. As many as all sizes together. */
  const size_t* dim_sizes; /**< Out. Dimensions of each result. */
};
/** What goes into struct_size of PurlinPjrtExecutableOutputDimensionsArgs. */
enum { kPurlinPjrtExecutableOutputDimensionsArgsSize = 48 };

/** PJRT_Buffer_CopyToMemory_Args: The arguments of `PJRT_Buffer_CopyToMemory`. Since 0.32. */
struct PurlinPjrtBufferCopyToMemoryArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtBuffer* buffer; /**< in: an object, lent for the call. */
  PurlinPjrtMemory* dst_memory; /**< in: an object, lent for the call. */
  PurlinPjrtBuffer* dst_buffer; /**< Out. Buffer_Destroy ends it. */
};
/** What goes into struct_size of PurlinPjrtBufferCopyToMemoryArgs. */
enum { kPurlinPjrtBufferCopyToMemoryArgsSize = 40 };

/** PJRT_Client_CreateViewOfDeviceBuffer_Args: The arguments of `PJRT_Client_CreateViewOfDeviceBuffer`. Since 0.33. */
struct PurlinPjrtClientCreateViewOfDeviceBufferArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtClient* client; /**< in: an object, lent for the call. */
  void* device_buffer_ptr; /**< The memory, until the callback. */
  const int64_t* dims; /**< The array's dimensions. */
  size_t num_dims; /**< How many. */
  PurlinPjrtBufferType element_type; /**< Its elements. */
  PurlinPjrtBufferMemoryLayout* layout; /**< Its layout; null: dense. */
  PurlinPjrtDevice* device; /**< Deprecated; the memory is meant. */
  /** Called once, when the memory is not needed any more. */
  void (*on_delete_callback)(void* device_buffer_ptr, void* user_arg);
  void* on_delete_callback_arg; /**< The caller's own. */
  intptr_t stream; /**< The platform's stream that writes the memory, or 0. */
  PurlinPjrtBuffer* buffer; /**< Out. Buffer_Destroy ends it. */
  PurlinPjrtMemory* memory; /**< Where the memory is. Since 0.66. */
};
/** What goes into struct_size of PurlinPjrtClientCreateViewOfDeviceBufferArgs. */
enum { kPurlinPjrtClientCreateViewOfDeviceBufferArgsSize = 112 };

/** PJRT_Executable_Fingerprint_Args: The arguments of `PJRT_Executable_Fingerprint`. Since 0.35. */
struct PurlinPjrtExecutableFingerprintArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtExecutable* executable; /**< in: an object, lent for the call. */
  const char* executable_fingerprint; /**< Out. The fingerprint. */
  size_t executable_fingerprint_size; /**< Out. Its bytes. */
};
/** What goes into struct_size of PurlinPjrtExecutableFingerprintArgs. */
enum { kPurlinPjrtExecutableFingerprintArgsSize = 40 };

/** PJRT_Client_TopologyDescription_Args: The arguments of `PJRT_Client_TopologyDescription`. Since 0.36. */
struct PurlinPjrtClientTopologyDescriptionArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtClient* client; /**< in: an object, lent for the call. */
  PurlinPjrtTopologyDescription* topology; /**< Out. The topology. */
};
/** What goes into struct_size of PurlinPjrtClientTopologyDescriptionArgs. */
enum { kPurlinPjrtClientTopologyDescriptionArgsSize = 32 };

/** PJRT_Executable_GetCompiledMemoryStats_Args: The arguments of `PJRT_Executable_GetCompiledMemoryStats`. Since 0.40.
 * */
struct PurlinPjrtExecutableGetCompiledMemoryStatsArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtExecutable* executable; /**< in: an object, lent for the call. */
  int64_t generated_code_size_in_bytes; /**< Out. Code. */
  int64_t argument_size_in_bytes; /**< Out. Arguments. */
  int64_t output_size_in_bytes; /**< Out. Results. */
  int64_t alias_size_in_bytes; /**< Out. Results that lie where arguments were. */
  int64_t temp_size_in_bytes; /**< Out. Temporaries. */
  int64_t host_generated_code_size_in_bytes; /**< Out. Code in the host's memory. Since 0.43. */
  int64_t host_argument_size_in_bytes; /**< Out. Arguments there. Since 0.43. */
  int64_t host_output_size_in_bytes; /**< Out. Results there. Since 0.43. */
  int64_t host_alias_size_in_bytes; /**< Out. Results there that lie where arguments were. Since 0.43. */
  int64_t host_temp_size_in_bytes; /**< Out. Temporaries there. Since 0.43. */
  int64_t peak_memory_in_bytes; /**< Out. The most at any time. Since 0.72. */
  int64_t total_size_in_bytes; /**< Out. All of the device's. Since 0.90. */
  int64_t total_allocation_bytes; /**< Out. All allocations. Since 0.104. */
  int64_t indefinite_allocations; /**< Out. Allocations without an end. Since 0.104. */
  int64_t peak_unpadded_heap_bytes; /**< Out. The most at any time, without padding. Since 0.104. */
};
/** What goes into struct_size of PurlinPjrtExecutableGetCompiledMemoryStatsArgs. */
enum { kPurlinPjrtExecutableGetCompiledMemoryStatsArgsSize = 144 };

/** PJRT_Memory_Kind_Id_Args: The arguments of `PJRT_Memory_Kind_Id`. Since 0.48. */
struct PurlinPjrtMemoryKindIdArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtMemory* memory; /**< in: an object, lent for the call. */
  int kind_id; /**< Out. The number. */
};
/** What goes into struct_size of PurlinPjrtMemoryKindIdArgs. */
enum { kPurlinPjrtMemoryKindIdArgsSize = 28 };

/** PJRT_ExecuteContext_Create_Args: The arguments of `PJRT_ExecuteContext_Create`. Since 0.52. */
struct PurlinPjrtExecuteContextCreateArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtExecuteContext* context; /**< Out. ExecuteContext_Destroy ends it. */
};
/** What goes into struct_size of PurlinPjrtExecuteContextCreateArgs. */
enum { kPurlinPjrtExecuteContextCreateArgsSize = 24 };

/** PJRT_ExecuteContext_Destroy_Args: The arguments of `PJRT_ExecuteContext_Destroy`. Since 0.52. */
struct PurlinPjrtExecuteContextDestroyArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtExecuteContext* context; /**< Null is ignored. */
};
/** What goes into struct_size of PurlinPjrtExecuteContextDestroyArgs. */
enum { kPurlinPjrtExecuteContextDestroyArgsSize = 24 };

/** PJRT_Buffer_CopyRawToHost_Args: The arguments of `PJRT_Buffer_CopyRawToHost`. Since 0.56. */
struct PurlinPjrtBufferCopyRawToHostArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtBuffer* buffer; /**< in: an object, lent for the call. */
  void* dst; /**< Where to. */
  int64_t offset; /**< The first byte. */
  int64_t transfer_size; /**< How many. */
  PurlinPjrtEvent* event; /**< Out. When they are there. */
};
/** What goes into struct_size of PurlinPjrtBufferCopyRawToHostArgs. */
enum { kPurlinPjrtBufferCopyRawToHostArgsSize = 56 };

/** PJRT_AsyncHostToDeviceTransferManager_Destroy_Args: The arguments of
 * `PJRT_AsyncHostToDeviceTransferManager_Destroy`. Since 0.60. */
struct PurlinPjrtAsyncHostToDeviceTransferManagerDestroyArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtAsyncHostToDeviceTransferManager* transfer_manager; /**< Null is ignored. */
};
/** What goes into struct_size of PurlinPjrtAsyncHostToDeviceTransferManagerDestroyArgs. */
enum { kPurlinPjrtAsyncHostToDeviceTransferManagerDestroyArgsSize = 24 };

/** PJRT_AsyncHostToDeviceTransferManager_TransferData_Args: The arguments of
 * `PJRT_AsyncHostToDeviceTransferManager_TransferData`. Since 0.60. */
struct PurlinPjrtAsyncHostToDeviceTransferManagerTransferDataArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtAsyncHostToDeviceTransferManager* transfer_manager; /**< in: an object, lent for the call. */
  int buffer_index; /**< Which array. */
  const void* data; /**< The bytes. */
  int64_t offset; /**< The first byte there. */
  int64_t transfer_size; /**< How many. */
  bool is_last_transfer; /**< Whether the array is whole then. */
  PurlinPjrtEvent* done_with_h2d_transfer; /**< Out. When the bytes are there. */
};
/** What goes into struct_size of PurlinPjrtAsyncHostToDeviceTransferManagerTransferDataArgs. */
enum { kPurlinPjrtAsyncHostToDeviceTransferManagerTransferDataArgsSize = 72 };

/** PJRT_Client_CreateBuffersForAsyncHostToDevice_Args: The arguments of
 * `PJRT_Client_CreateBuffersForAsyncHostToDevice`. Since 0.60. */
struct PurlinPjrtClientCreateBuffersForAsyncHostToDeviceArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtClient* client; /**< in: an object, lent for the call. */
  PurlinPjrtShapeSpec* shape_specs; /**< Their types and dimensions. */
  size_t num_shape_specs; /**< How many. */
  PurlinPjrtBufferMemoryLayout** device_layouts; /**< Their layouts; none: dense. */
  size_t num_device_layouts; /**< How many. */
  PurlinPjrtMemory* memory; /**< in: an object, lent for the call. */
  /** Out. AsyncHostToDeviceTransferManager_Destroy ends it. */
  PurlinPjrtAsyncHostToDeviceTransferManager* transfer_manager;
};
/** What goes into struct_size of PurlinPjrtClientCreateBuffersForAsyncHostToDeviceArgs. */
enum { kPurlinPjrtClientCreateBuffersForAsyncHostToDeviceArgsSize = 72 };

/** PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args: The arguments of
 * `PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer`. Since 0.62. */
struct PurlinPjrtAsyncHostToDeviceTransferManagerRetrieveBufferArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtAsyncHostToDeviceTransferManager* transfer_manager; /**< in: an object, lent for the call. */
  int buffer_index; /**< Which array. */
  PurlinPjrtBuffer* buffer_out; /**< Out. Buffer_Destroy ends it. */
};
/** What goes into struct_size of PurlinPjrtAsyncHostToDeviceTransferManagerRetrieveBufferArgs. */
enum { kPurlinPjrtAsyncHostToDeviceTransferManagerRetrieveBufferArgsSize = 40 };

/** PJRT_AsyncHostToDeviceTransferManager_Device_Args: The arguments of `PJRT_AsyncHostToDeviceTransferManager_Device`.
 * Since 0.62. */
struct PurlinPjrtAsyncHostToDeviceTransferManagerDeviceArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtAsyncHostToDeviceTransferManager* transfer_manager; /**< in: an object, lent for the call. */
  PurlinPjrtDevice* device_out; /**< Out. For the life of the client. */
};
/** What goes into struct_size of PurlinPjrtAsyncHostToDeviceTransferManagerDeviceArgs. */
enum { kPurlinPjrtAsyncHostToDeviceTransferManagerDeviceArgsSize = 32 };

/** PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args: The arguments of
 * `PJRT_AsyncHostToDeviceTransferManager_BufferCount`. Since 0.62. */
struct PurlinPjrtAsyncHostToDeviceTransferManagerBufferCountArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtAsyncHostToDeviceTransferManager* transfer_manager; /**< in: an object, lent for the call. */
  size_t buffer_count; /**< Out. The number. */
};
/** What goes into struct_size of PurlinPjrtAsyncHostToDeviceTransferManagerBufferCountArgs. */
enum { kPurlinPjrtAsyncHostToDeviceTransferManagerBufferCountArgsSize = 32 };

/** PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args: The arguments of
 * `PJRT_AsyncHostToDeviceTransferManager_BufferSize`. Since 0.62. */
struct PurlinPjrtAsyncHostToDeviceTransferManagerBufferSizeArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtAsyncHostToDeviceTransferManager* transfer_manager; /**< in: an object, lent for the call. */
  int buffer_index; /**< Which array. */
  size_t buffer_size; /**< Out. Bytes. */
};
/** What goes into struct_size of PurlinPjrtAsyncHostToDeviceTransferManagerBufferSizeArgs. */
enum { kPurlinPjrtAsyncHostToDeviceTransferManagerBufferSizeArgsSize = 40 };

/** PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args: The arguments of
 * `PJRT_AsyncHostToDeviceTransferManager_SetBufferError`. Since 0.62. */
struct PurlinPjrtAsyncHostToDeviceTransferManagerSetBufferErrorArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtAsyncHostToDeviceTransferManager* transfer_manager; /**< in: an object, lent for the call. */
  int buffer_index; /**< Which array. */
  PurlinPjrtErrorCode error_code; /**< Why. */
  const char* error_message; /**< In words. */
  size_t error_message_size; /**< Bytes of that. */
};
/** What goes into struct_size of PurlinPjrtAsyncHostToDeviceTransferManagerSetBufferErrorArgs. */
enum { kPurlinPjrtAsyncHostToDeviceTransferManagerSetBufferErrorArgsSize = 48 };

/** PJRT_AsyncHostToDeviceTransferManager_AddMetadata_Args: The arguments of
 * `PJRT_AsyncHostToDeviceTransferManager_AddMetadata`. Since 0.62. */
struct PurlinPjrtAsyncHostToDeviceTransferManagerAddMetadataArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtAsyncHostToDeviceTransferManager* transfer_manager; /**< in: an object, lent for the call. */
  const PurlinPjrtNamedValue* transfer_metadata; /**< The notes. */
  size_t num_metadata; /**< How many. */
};
/** What goes into struct_size of PurlinPjrtAsyncHostToDeviceTransferManagerAddMetadataArgs. */
enum { kPurlinPjrtAsyncHostToDeviceTransferManagerAddMetadataArgsSize = 40 };

/** PJRT_Client_DmaMap_Args: The arguments of `PJRT_Client_DmaMap`. Since 0.67. */
struct PurlinPjrtClientDmaMapArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtClient* client; /**< in: an object, lent for the call. */
  void* data; /**< The memory, until Client_DmaUnmap. */
  size_t size; /**< Bytes. */
};
/** What goes into struct_size of PurlinPjrtClientDmaMapArgs. */
enum { kPurlinPjrtClientDmaMapArgsSize = 40 };

/** PJRT_Client_DmaUnmap_Args: The arguments of `PJRT_Client_DmaUnmap`. Since 0.67. */
struct PurlinPjrtClientDmaUnmapArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtClient* client; /**< in: an object, lent for the call. */
  void* data; /**< The memory. */
};
/** What goes into struct_size of PurlinPjrtClientDmaUnmapArgs. */
enum { kPurlinPjrtClientDmaUnmapArgsSize = 32 };

/** PJRT_Client_CreateUninitializedBuffer_Args: The arguments of `PJRT_Client_CreateUninitializedBuffer`. Since 0.69. */
struct PurlinPjrtClientCreateUninitializedBufferArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtClient* client; /**< in: an object, lent for the call. */
  const int64_t* shape_dims; /**< Its dimensions. */
  size_t shape_num_dims; /**< How many. */
  PurlinPjrtBufferType shape_element_type; /**< Its elements. */
  PurlinPjrtBufferMemoryLayout* shape_layout; /**< Its layout; null: dense. */
  PurlinPjrtDevice* device; /**< Where, if no memory is given. */
  PurlinPjrtMemory* memory; /**< Where. */
  PurlinPjrtBuffer* buffer; /**< Out. Buffer_Destroy ends it. */
};
/** What goes into struct_size of PurlinPjrtClientCreateUninitializedBufferArgs. */
enum { kPurlinPjrtClientCreateUninitializedBufferArgsSize = 80 };

/** PJRT_Client_UpdateGlobalProcessInfo_Args: The arguments of `PJRT_Client_UpdateGlobalProcessInfo`. Since 0.73. */
struct PurlinPjrtClientUpdateGlobalProcessInfoArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtClient* client; /**< in: an object, lent for the call. */
  PurlinPjrtProcessInfo* process_infos; /**< Of each. */
  size_t num_process_infos; /**< How many. */
};
/** What goes into struct_size of PurlinPjrtClientUpdateGlobalProcessInfoArgs. */
enum { kPurlinPjrtClientUpdateGlobalProcessInfoArgsSize = 40 };

/** PJRT_TopologyDescription_Deserialize_Args: The arguments of `PJRT_TopologyDescription_Deserialize`. Since 0.75. */
struct PurlinPjrtTopologyDescriptionDeserializeArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  const char* serialized_topology; /**< The bytes. */
  size_t serialized_topology_size; /**< How many. */
  PurlinPjrtTopologyDescription* topology; /**< Out. TopologyDescription_Destroy ends it. */
};
/** What goes into struct_size of PurlinPjrtTopologyDescriptionDeserializeArgs. */
enum { kPurlinPjrtTopologyDescriptionDeserializeArgsSize = 40 };

/** PJRT_Client_CreateAliasBuffer_Args: The arguments of `PJRT_Client_CreateAliasBuffer`. Since 0.77. */
struct PurlinPjrtClientCreateAliasBufferArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtClient* client; /**< in: an object, lent for the call. */
  PurlinPjrtMemory* memory; /**< in: an object, lent for the call. */
  const int64_t* shape_dims; /**< Its dimensions. */
  size_t shape_num_dims; /**< How many. */
  PurlinPjrtBufferType shape_element_type; /**< Its elements. */
  PurlinPjrtBufferMemoryLayout* shape_layout; /**< Its layout; null: dense. */
  PurlinPjrtBuffer* alias_buffer; /**< Out. Buffer_Destroy ends it. */
  PurlinPjrtFulfillAliasBufferCallback* fulfill_alias_buffer_cb; /**< Out. Client_FulfillAliasBuffer takes it. */
};
/** What goes into struct_size of PurlinPjrtClientCreateAliasBufferArgs. */
enum { kPurlinPjrtClientCreateAliasBufferArgsSize = 80 };

/** PJRT_Client_FulfillAliasBuffer_Args: The arguments of `PJRT_Client_FulfillAliasBuffer`. Since 0.77. */
struct PurlinPjrtClientFulfillAliasBufferArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtClient* client; /**< in: an object, lent for the call. */
  PurlinPjrtBuffer* buffer; /**< Which. */
  PurlinPjrtErrorCode status_code; /**< OK, or why none. */
  const char* error_message; /**< In words. */
  size_t error_message_size; /**< Bytes of that. */
  PurlinPjrtFulfillAliasBufferCallback* fulfill_alias_buffer_cb; /**< What Client_CreateAliasBuffer gave. */
};
/** What goes into struct_size of PurlinPjrtClientFulfillAliasBufferArgs. */
enum { kPurlinPjrtClientFulfillAliasBufferArgsSize = 64 };

/** PJRT_LoadedExecutable_GetDeviceAssignment_Args: The arguments of `PJRT_LoadedExecutable_GetDeviceAssignment`. Since
 * 0.79. */
struct PurlinPjrtLoadedExecutableGetDeviceAssignmentArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtLoadedExecutable* executable; /**< in: an object, lent for the call. */
  const char* serialized_bytes; /**< Out. A serialized DeviceAssignmentProto. */
  size_t serialized_bytes_size; /**< Out. Its bytes. */
  PurlinPjrtDeviceAssignmentSerialized* serialized_device_assignment; /**< Out. What holds the bytes. */
  /** Ends that; an out argument. */
  void (*serialized_device_assignment_deleter)(PurlinPjrtDeviceAssignmentSerialized* assignment);
};
/** What goes into struct_size of PurlinPjrtLoadedExecutableGetDeviceAssignmentArgs. */
enum { kPurlinPjrtLoadedExecutableGetDeviceAssignmentArgsSize = 56 };

/** PJRT_Client_CreateErrorBuffer_Args: The arguments of `PJRT_Client_CreateErrorBuffer`. Since 0.82. */
struct PurlinPjrtClientCreateErrorBufferArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtClient* client; /**< in: an object, lent for the call. */
  PurlinPjrtErrorCode error_code; /**< Why. */
  const char* error_message; /**< In words. */
  size_t error_message_size; /**< Bytes of that. */
  const int64_t* shape_dims; /**< Its dimensions. */
  size_t shape_num_dims; /**< How many. */
  PurlinPjrtBufferType shape_element_type; /**< Its elements. */
  PurlinPjrtBufferMemoryLayout* shape_layout; /**< Its layout; null: dense. */
  PurlinPjrtMemory* memory; /**< in: an object, lent for the call. */
  PurlinPjrtBuffer* buffer; /**< Out. Buffer_Destroy ends it. */
  const PurlinPjrtNamedValue* payload; /**< The error's payloads. Since 0.103. */
  size_t num_payload; /**< How many. Since 0.103. */
};
/** What goes into struct_size of PurlinPjrtClientCreateErrorBufferArgs. */
enum { kPurlinPjrtClientCreateErrorBufferArgsSize = 112 };

/** PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args: The arguments of
 * `PJRT_AsyncHostToDeviceTransferManager_TransferLiteral`. Since 0.83. */
struct PurlinPjrtAsyncHostToDeviceTransferManagerTransferLiteralArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtAsyncHostToDeviceTransferManager* transfer_manager; /**< in: an object, lent for the call. */
  int buffer_index; /**< Which array. */
  const void* data; /**< The bytes. */
  const int64_t* shape_dims; /**< The dimensions of what is copied. */
  size_t shape_num_dims; /**< How many. */
  PurlinPjrtBufferType shape_element_type; /**< Its elements. */
  PurlinPjrtBufferMemoryLayout* shape_layout; /**< Its layout; null: dense. */
  PurlinPjrtEvent* done_with_h2d_transfer; /**< Out. When the bytes are there. */
};
/** What goes into struct_size of PurlinPjrtAsyncHostToDeviceTransferManagerTransferLiteralArgs. */
enum { kPurlinPjrtAsyncHostToDeviceTransferManagerTransferLiteralArgsSize = 80 };

/** PJRT_Buffer_CopyRawToHostFuture_Args: The arguments of `PJRT_Buffer_CopyRawToHostFuture`. Since 0.84. */
struct PurlinPjrtBufferCopyRawToHostFutureArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtBuffer* buffer; /**< in: an object, lent for the call. */
  int64_t offset; /**< The first byte. */
  int64_t transfer_size; /**< How many. */
  PurlinPjrtEvent* event; /**< Out. When they are there. */
  void* callback_data; /**< Out. What the callback is given. */
  /** An out argument; the caller calls it once. */
  void (*future_ready_callback)(PurlinPjrtBufferCopyRawToHostFutureCallbackArgs* args);
};
/** What goes into struct_size of PurlinPjrtBufferCopyRawToHostFutureArgs. */
enum { kPurlinPjrtBufferCopyRawToHostFutureArgsSize = 64 };

/** PJRT_Device_PoisonExecution_Args: The arguments of `PJRT_Device_PoisonExecution`. Since 0.85. */
struct PurlinPjrtDevicePoisonExecutionArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtDevice* device; /**< in: an object, lent for the call. */
  int32_t launch_id; /**< Which launch. */
  PurlinPjrtErrorCode error_code; /**< Why. */
  const char* error_message; /**< In words. */
  size_t error_message_size; /**< Bytes of that. */
  bool poisoned; /**< Out. Whether there was such a launch. */
  const PurlinPjrtNamedValue* payload; /**< The error's payloads. Since 0.100. */
  size_t num_payload; /**< How many. Since 0.100. */
};
/** What goes into struct_size of PurlinPjrtDevicePoisonExecutionArgs. */
enum { kPurlinPjrtDevicePoisonExecutionArgsSize = 72 };

/** PJRT_Device_CreateAsyncTrackingEvent_Args: The arguments of `PJRT_Device_CreateAsyncTrackingEvent`. Since 0.86. */
struct PurlinPjrtDeviceCreateAsyncTrackingEventArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtDevice* device; /**< in: an object, lent for the call. */
  const char* description; /**< Which work. */
  size_t description_size; /**< Bytes of that. */
  PurlinPjrtAsyncTrackingEvent* event; /**< Out. AsyncTrackingEvent_Destroy ends it. */
};
/** What goes into struct_size of PurlinPjrtDeviceCreateAsyncTrackingEventArgs. */
enum { kPurlinPjrtDeviceCreateAsyncTrackingEventArgsSize = 48 };

/** PJRT_AsyncTrackingEvent_Destroy_Args: The arguments of `PJRT_AsyncTrackingEvent_Destroy`. Since 0.86. */
struct PurlinPjrtAsyncTrackingEventDestroyArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtAsyncTrackingEvent* event; /**< Null is ignored. */
};
/** What goes into struct_size of PurlinPjrtAsyncTrackingEventDestroyArgs. */
enum { kPurlinPjrtAsyncTrackingEventDestroyArgsSize = 24 };

/** PJRT_Executable_GetCompileOptions_Args: The arguments of `PJRT_Executable_GetCompileOptions`. Since 0.87. */
struct PurlinPjrtExecutableGetCompileOptionsArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtExecutable* executable; /**< in: an object, lent for the call. */
  const char* serialized_bytes; /**< Out. A serialized CompileOptionsProto. */
  size_t serialized_bytes_size; /**< Out. Its bytes. */
  PurlinPjrtSerializedCompileOptions* serialized_compile_options; /**< Out. What holds the bytes. */
  /** Ends that; an out argument. */
  void (*serialized_compile_options_deleter)(PurlinPjrtSerializedCompileOptions* options);
};
/** What goes into struct_size of PurlinPjrtExecutableGetCompileOptionsArgs. */
enum { kPurlinPjrtExecutableGetCompileOptionsArgsSize = 56 };

/** PJRT_Buffer_DonateWithControlDependency_Args: The arguments of `PJRT_Buffer_DonateWithControlDependency`. Since
 * 0.88. */
struct PurlinPjrtBufferDonateWithControlDependencyArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtBuffer* buffer; /**< Is deleted. */
  void* callback_data; /**< Out. What the callback is given. */
  /** An out argument; the caller calls it once. */
  void (*dependency_ready_callback)(PurlinPjrtBufferDonateWithControlDependencyCallbackArgs* args);
  PurlinPjrtBuffer* out_buffer; /**< Out. Buffer_Destroy ends it. */
};
/** What goes into struct_size of PurlinPjrtBufferDonateWithControlDependencyArgs. */
enum { kPurlinPjrtBufferDonateWithControlDependencyArgsSize = 48 };

/** PJRT_Event_Create_Args: The arguments of `PJRT_Event_Create`. Since 0.89. */
struct PurlinPjrtEventCreateArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtEvent* event; /**< Out. Event_Destroy ends it. */
};
/** What goes into struct_size of PurlinPjrtEventCreateArgs. */
enum { kPurlinPjrtEventCreateArgsSize = 24 };

/** PJRT_Event_Set_Args: The arguments of `PJRT_Event_Set`. Since 0.89. */
struct PurlinPjrtEventSetArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtEvent* event; /**< in: an object, lent for the call. */
  PurlinPjrtErrorCode error_code; /**< OK, or why it failed. */
  const char* error_message; /**< In words. */
  size_t error_message_size; /**< Bytes of that. */
};
/** What goes into struct_size of PurlinPjrtEventSetArgs. */
enum { kPurlinPjrtEventSetArgsSize = 48 };

/** PJRT_Device_GetAttributes_Args: The arguments of `PJRT_Device_GetAttributes`. Since 0.92. */
struct PurlinPjrtDeviceGetAttributesArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtDevice* device; /**< in: an object, lent for the call. */
  const PurlinPjrtNamedValue* attributes; /**< Out. The attributes. */
  size_t num_attributes; /**< Out. How many. */
  PurlinPjrtDeviceAttributes* device_attributes; /**< Out. What holds them. */
  void (*attributes_deleter)(PurlinPjrtDeviceAttributes* attributes); /**< Ends that; an out argument. */
};
/** What goes into struct_size of PurlinPjrtDeviceGetAttributesArgs. */
enum { kPurlinPjrtDeviceGetAttributesArgsSize = 56 };

/** PJRT_Client_Load_Args: The arguments of `PJRT_Client_Load`. Since 0.95. */
struct PurlinPjrtClientLoadArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtClient* client; /**< in: an object, lent for the call. */
  PurlinPjrtExecutable* executable; /**< in: an object, lent for the call. */
  const char* compile_options; /**< A serialized CompileOptionsProto. */
  size_t compile_options_size; /**< Bytes of the options. */
  PurlinPjrtLoadedExecutable* loaded_executable; /**< Out. LoadedExecutable_Destroy ends it. */
};
/** What goes into struct_size of PurlinPjrtClientLoadArgs. */
enum { kPurlinPjrtClientLoadArgsSize = 56 };

/** PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args: The arguments of
 * `PJRT_LoadedExecutable_AddressableDeviceLogicalIds`. Since 0.96. */
struct PurlinPjrtLoadedExecutableAddressableDeviceLogicalIdsArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtLoadedExecutable* executable; /**< in: an object, lent for the call. */
  PurlinPjrtLogicalDeviceIds* addressable_device_logical_ids; /**< Out. Of each. */
  size_t num_addressable_device_logical_ids; /**< Out. How many. */
};
/** What goes into struct_size of PurlinPjrtLoadedExecutableAddressableDeviceLogicalIdsArgs. */
enum { kPurlinPjrtLoadedExecutableAddressableDeviceLogicalIdsArgsSize = 40 };

/** PJRT_Buffer_Bitcast_Args: The arguments of `PJRT_Buffer_Bitcast`. Since 0.98. */
struct PurlinPjrtBufferBitcastArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtBuffer* buffer; /**< in: an object, lent for the call. */
  PurlinPjrtBufferType element_type; /**< The new type. */
  const int64_t* dims; /**< The new dimensions. */
  size_t num_dims; /**< How many. */
  PurlinPjrtBufferMemoryLayout* device_layout; /**< The new layout; null: dense. */
  PurlinPjrtBuffer* out_buffer; /**< Out. Buffer_Destroy ends it. */
};
/** What goes into struct_size of PurlinPjrtBufferBitcastArgs. */
enum { kPurlinPjrtBufferBitcastArgsSize = 64 };

/** PJRT_Error_ForEachPayload_Args: The arguments of `PJRT_Error_ForEachPayload`. Since 0.99. */
struct PurlinPjrtErrorForEachPayloadArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  const PurlinPjrtError* error; /**< in: an object, lent for the call. */
  PurlinPjrtErrorPayloadVisitor visitor; /**< Called for each, before the function returns. */
  void* user_arg; /**< The caller's own. */
};
/** What goes into struct_size of PurlinPjrtErrorForEachPayloadArgs. */
enum { kPurlinPjrtErrorForEachPayloadArgsSize = 40 };

/** PJRT_TopologyDescription_Fingerprint_Args: The arguments of `PJRT_TopologyDescription_Fingerprint`. Since 0.101. */
struct PurlinPjrtTopologyDescriptionFingerprintArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  const PurlinPjrtTopologyDescription* topology; /**< in: an object, lent for the call. */
  uint64_t fingerprint; /**< Out. The number. */
};
/** What goes into struct_size of PurlinPjrtTopologyDescriptionFingerprintArgs. */
enum { kPurlinPjrtTopologyDescriptionFingerprintArgsSize = 32 };

/** PJRT_Executable_ParameterMemoryKinds_Args: The arguments of `PJRT_Executable_ParameterMemoryKinds`. Since 0.102. */
struct PurlinPjrtExecutableParameterMemoryKindsArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtExecutable* executable; /**< in: an object, lent for the call. */
  size_t num_parameters; /**< Out. Arguments. */
  const char* const* memory_kinds; /**< Out. The kinds. */
  const size_t* memory_kind_sizes; /**< Out. Bytes of each. */
};
/** What goes into struct_size of PurlinPjrtExecutableParameterMemoryKindsArgs. */
enum { kPurlinPjrtExecutableParameterMemoryKindsArgsSize = 48 };

/** PJRT_Device_ClearMemoryStats_Args: The arguments of `PJRT_Device_ClearMemoryStats`. Since 0.115. */
struct PurlinPjrtDeviceClearMemoryStatsArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtDevice* device; /**< in: an object, lent for the call. */
};
/** What goes into struct_size of PurlinPjrtDeviceClearMemoryStatsArgs. */
enum { kPurlinPjrtDeviceClearMemoryStatsArgsSize = 24 };

/** PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args: The arguments of
 * `PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace`. Since 0.115. */
struct PurlinPjrtTopologyDescriptionMakeCanonicalShapeForMemorySpaceArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  const PurlinPjrtTopologyDescription* topology; /**< in: an object, lent for the call. */
  int memory_space_kind_id; /**< The memory's kind. */
  const int64_t* dims; /**< The array's dimensions. */
  size_t num_dims; /**< How many. */
  PurlinPjrtBufferType element_type; /**< Its elements. */
  const PurlinPjrtBufferMemoryLayout* layout; /**< The layout that is asked for; null: any. */
  const char* serialized_shape; /**< Out. A serialized ShapeProto, until the deleter is called. */
  size_t serialized_shape_size; /**< Out. Its bytes. */
  void (*serialized_shape_deleter)(const char* serialized_shape); /**< An out argument. */
};
/** What goes into struct_size of PurlinPjrtTopologyDescriptionMakeCanonicalShapeForMemorySpaceArgs. */
enum { kPurlinPjrtTopologyDescriptionMakeCanonicalShapeForMemorySpaceArgsSize = 88 };

/** PJRT_TopologyDescription_GetMemorySpaceKindIds_Args: The arguments of
 * `PJRT_TopologyDescription_GetMemorySpaceKindIds`. Since 0.115. */
struct PurlinPjrtTopologyDescriptionGetMemorySpaceKindIdsArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  const PurlinPjrtTopologyDescription* topology; /**< in: an object, lent for the call. */
  const int* memory_space_kind_ids; /**< Out. Their numbers. */
  size_t num_memory_space_kind_ids; /**< Out. How many. */
};
/** What goes into struct_size of PurlinPjrtTopologyDescriptionGetMemorySpaceKindIdsArgs. */
enum { kPurlinPjrtTopologyDescriptionGetMemorySpaceKindIdsArgsSize = 40 };

/** PJRT_Layouts_MemoryLayout_Destroy_Args: The arguments of `PJRT_Layouts_MemoryLayout_Destroy`. Since 0.51. */
struct PurlinPjrtLayoutsMemoryLayoutDestroyArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtLayoutsMemoryLayout* layout; /**< Null is ignored. */
};
/** What goes into struct_size of PurlinPjrtLayoutsMemoryLayoutDestroyArgs. */
enum { kPurlinPjrtLayoutsMemoryLayoutDestroyArgsSize = 24 };

/** PJRT_Layouts_MemoryLayout_Serialize_Args: The arguments of `PJRT_Layouts_MemoryLayout_Serialize`. Since 0.51. */
struct PurlinPjrtLayoutsMemoryLayoutSerializeArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtLayoutsMemoryLayout* layout; /**< in: an object, lent for the call. */
  const char* serialized_bytes; /**< Out. The text. */
  size_t serialized_bytes_size; /**< Out. Its bytes. */
  PurlinPjrtLayoutsSerializedLayout* serialized_layout; /**< Out. What holds the text. */
  void (*serialized_layout_deleter)(PurlinPjrtLayoutsSerializedLayout* layout); /**< Ends that; an out argument. */
};
/** What goes into struct_size of PurlinPjrtLayoutsMemoryLayoutSerializeArgs. */
enum { kPurlinPjrtLayoutsMemoryLayoutSerializeArgsSize = 56 };

/** PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args: The arguments of `PJRT_Layouts_PJRT_Client_GetDefaultLayout`. Since
 * 0.51. */
struct PurlinPjrtLayoutsClientGetDefaultLayoutArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtClient* client; /**< in: an object, lent for the call. */
  PurlinPjrtBufferType type; /**< Its elements. */
  const int64_t* dims; /**< Its dimensions. */
  size_t num_dims; /**< How many. */
  PurlinPjrtLayoutsMemoryLayout* layout; /**< Out. Layouts_MemoryLayout_Destroy ends it. */
};
/** What goes into struct_size of PurlinPjrtLayoutsClientGetDefaultLayoutArgs. */
enum { kPurlinPjrtLayoutsClientGetDefaultLayoutArgsSize = 56 };

/** PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args: The arguments of `PJRT_Layouts_PJRT_Buffer_MemoryLayout`. Since 0.51. */
struct PurlinPjrtLayoutsBufferMemoryLayoutArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtBuffer* buffer; /**< in: an object, lent for the call. */
  PurlinPjrtLayoutsMemoryLayout* layout; /**< Out. Layouts_MemoryLayout_Destroy ends it. */
};
/** What goes into struct_size of PurlinPjrtLayoutsBufferMemoryLayoutArgs. */
enum { kPurlinPjrtLayoutsBufferMemoryLayoutArgsSize = 32 };

/** PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args: The arguments of `PJRT_Layouts_PJRT_Topology_GetDefaultLayout`.
 * Since 0.51. */
struct PurlinPjrtLayoutsTopologyGetDefaultLayoutArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtTopologyDescription* topology_description; /**< in: an object, lent for the call. */
  PurlinPjrtBufferType type; /**< Its elements. */
  const int64_t* dims; /**< Its dimensions. */
  size_t num_dims; /**< How many. */
  PurlinPjrtLayoutsMemoryLayout* layout; /**< Out. Layouts_MemoryLayout_Destroy ends it. */
};
/** What goes into struct_size of PurlinPjrtLayoutsTopologyGetDefaultLayoutArgs. */
enum { kPurlinPjrtLayoutsTopologyGetDefaultLayoutArgsSize = 56 };

/** PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args: The arguments of
 * `PJRT_Layouts_PJRT_Executable_GetOutputLayouts`. Since 0.81. */
struct PurlinPjrtLayoutsExecutableGetOutputLayoutsArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtExecutable* executable; /**< in: an object, lent for the call. */
  size_t num_outputs; /**< Out. Results. */
  PurlinPjrtLayoutsMemoryLayout** layouts; /**< Out. Their layouts. */
};
/** What goes into struct_size of PurlinPjrtLayoutsExecutableGetOutputLayoutsArgs. */
enum { kPurlinPjrtLayoutsExecutableGetOutputLayoutsArgsSize = 40 };

/** PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args: The arguments of
 * `PJRT_Layouts_PJRT_Executable_GetParameterLayouts`. Since 0.93. */
struct PurlinPjrtLayoutsExecutableGetParameterLayoutsArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtExecutable* executable; /**< in: an object, lent for the call. */
  size_t num_parameters; /**< Out. Arguments. */
  PurlinPjrtLayoutsMemoryLayout** layouts; /**< Out. Their layouts. */
};
/** What goes into struct_size of PurlinPjrtLayoutsExecutableGetParameterLayoutsArgs. */
enum { kPurlinPjrtLayoutsExecutableGetParameterLayoutsArgsSize = 40 };

/** PJRT_FFI_Type_Register_Args: The arguments of `PJRT_FFI_Type_Register`. Since 0.53. */
struct PurlinPjrtFFITypeRegisterArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  const char* type_name; /**< The name. */
  size_t type_name_size; /**< Bytes of the name. */
  int64_t type_id; /**< Its number; 0 asks for one. */
  PurlinPjrtFFITypeInfo* type_info; /**< What can be done with a value. */
};
/** What goes into struct_size of PurlinPjrtFFITypeRegisterArgs. */
enum { kPurlinPjrtFFITypeRegisterArgsSize = 48 };

/** PJRT_FFI_UserData_Add_Args: The arguments of `PJRT_FFI_UserData_Add`. Since 0.53. */
struct PurlinPjrtFFIUserDataAddArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtExecuteContext* context; /**< in: an object, lent for the call. */
  PurlinPjrtFFIUserData user_data; /**< The value, the caller's while the context lives. */
};
/** What goes into struct_size of PurlinPjrtFFIUserDataAddArgs. */
enum { kPurlinPjrtFFIUserDataAddArgsSize = 40 };

/** PJRT_FFI_Register_Handler_Args: The arguments of `PJRT_FFI_Register_Handler`. Since 0.53. */
struct PurlinPjrtFFIRegisterHandlerArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  const char* target_name; /**< Its name. */
  size_t target_name_size; /**< Bytes of the name. */
  void* handler; /**< An XLA_FFI_Handler, for the life of the process. */
  const char* platform_name; /**< For which platform, `Host` for instance. */
  size_t platform_name_size; /**< Bytes of the platform. */
  unsigned traits; /**< Bit 0: can be recorded in a command buffer. */
};
/** What goes into struct_size of PurlinPjrtFFIRegisterHandlerArgs. */
enum { kPurlinPjrtFFIRegisterHandlerArgsSize = 52 };

/** PJRT_DeviceDescription_MemoryDescriptions_Args: The arguments of `PJRT_DeviceDescription_MemoryDescriptions`. Since
 * 0.59. */
struct PurlinPjrtDeviceDescriptionMemoryDescriptionsArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtDeviceDescription* device_description; /**< in: an object, lent for the call. */
  const PurlinPjrtMemoryDescription* const* memory_descriptions; /**< Out. The memories. */
  size_t num_memory_descriptions; /**< Out. How many. */
  size_t default_memory_index; /**< Out. Which is the default; the largest number: none. */
};
/** What goes into struct_size of PurlinPjrtDeviceDescriptionMemoryDescriptionsArgs. */
enum { kPurlinPjrtDeviceDescriptionMemoryDescriptionsArgsSize = 48 };

/** PJRT_MemoryDescription_Kind_Args: The arguments of `PJRT_MemoryDescription_Kind`. Since 0.59. */
struct PurlinPjrtMemoryDescriptionKindArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  const PurlinPjrtMemoryDescription* memory_description; /**< in: an object, lent for the call. */
  const char* kind; /**< Out. UTF-8. */
  size_t kind_size; /**< Out. Bytes of the kind. */
  int kind_id; /**< Out. Its number. */
};
/** What goes into struct_size of PurlinPjrtMemoryDescriptionKindArgs. */
enum { kPurlinPjrtMemoryDescriptionKindArgsSize = 44 };

/** PJRT_Shardings_PJRT_Executable_ParameterShardings_Args: The arguments of
 * `PJRT_Shardings_PJRT_Executable_ParameterShardings`. Since 0.91. */
struct PurlinPjrtShardingsExecutableParameterShardingsArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtExecutable* executable; /**< in: an object, lent for the call. */
  size_t num_parameters; /**< Out. Arguments. */
  const char* const* shardings; /**< Out. Serialized OpShardings; null: not known. */
  const size_t* sharding_sizes; /**< Out. Bytes of each. */
};
/** What goes into struct_size of PurlinPjrtShardingsExecutableParameterShardingsArgs. */
enum { kPurlinPjrtShardingsExecutableParameterShardingsArgsSize = 48 };

/** PJRT_Shardings_PJRT_Executable_OutputShardings_Args: The arguments of
 * `PJRT_Shardings_PJRT_Executable_OutputShardings`. Since 0.91. */
struct PurlinPjrtShardingsExecutableOutputShardingsArgs {
  size_t struct_size; /**< Bytes of this struct that the caller knows. */
  PurlinPjrtExtensionBase* extension_start; /**< Extensions of this call. */
  PurlinPjrtExecutable* executable; /**< in: an object, lent for the call. */
  size_t num_outputs; /**< Out. Results. */
  const char* const* shardings; /**< Out. Serialized OpShardings; null: not known. */
  const size_t* sharding_sizes; /**< Out. Bytes of each. */
};
/** What goes into struct_size of PurlinPjrtShardingsExecutableOutputShardingsArgs. */
enum { kPurlinPjrtShardingsExecutableOutputShardingsArgsSize = 48 };


/* Functions ------------------------------------------------------------------------------------------------------- */

/** PJRT_Api: the functions of a plugin. */
typedef struct PurlinPjrtApi {
  size_t struct_size; /**< Bytes of this table. */
  PurlinPjrtExtensionBase* extension_start; /**< The first of a chain of extensions. */
  PurlinPjrtApiVersion version; /**< What the plugin was built with. */
  void (*error_destroy)(PurlinPjrtErrorDestroyArgs* args); /**< PJRT_Error_Destroy: Frees an error. */
  void (*error_message)(PurlinPjrtErrorMessageArgs* args); /**< PJRT_Error_Message: What went wrong. */
  PurlinPjrtError* (*error_get_code)(PurlinPjrtErrorGetCodeArgs* args); /**< PJRT_Error_GetCode: An error's code. */
  /** PJRT_Plugin_Initialize: Prepares the plugin, once, before all other calls. */
  PurlinPjrtError* (*plugin_initialize)(PurlinPjrtPluginInitializeArgs* args);
  /** PJRT_Plugin_Attributes: What a plugin says of itself; its names are `xla_version`, `stablehlo_current_version` and
   * such. */
  PurlinPjrtError* (*plugin_attributes)(PurlinPjrtPluginAttributesArgs* args);
  /** PJRT_Event_Destroy: Frees an event; what it stands for goes on. */
  PurlinPjrtError* (*event_destroy)(PurlinPjrtEventDestroyArgs* args);
  /** PJRT_Event_IsReady: Whether an event has completed or failed. */
  PurlinPjrtError* (*event_is_ready)(PurlinPjrtEventIsReadyArgs* args);
  /** PJRT_Event_Error: The error of an event that is ready, the caller's, as the function's own. */
  PurlinPjrtError* (*event_error)(PurlinPjrtEventErrorArgs* args);
  /** PJRT_Event_Await: Blocks until the event has completed or failed; its error is the function's own. */
  PurlinPjrtError* (*event_await)(PurlinPjrtEventAwaitArgs* args);
  /** PJRT_Event_OnReady: Calls back once, on the thread that completes the event, or here and now. */
  PurlinPjrtError* (*event_on_ready)(PurlinPjrtEventOnReadyArgs* args);
  PurlinPjrtError* (*client_create)(PurlinPjrtClientCreateArgs* args); /**< PJRT_Client_Create: Makes a client. */
  PurlinPjrtError* (*client_destroy)(PurlinPjrtClientDestroyArgs* args); /**< PJRT_Client_Destroy: Frees a client. */
  /** PJRT_Client_PlatformName: The platform, `cpu` for instance. */
  PurlinPjrtError* (*client_platform_name)(PurlinPjrtClientPlatformNameArgs* args);
  /** PJRT_Client_ProcessIndex: Which process of a job this is. */
  PurlinPjrtError* (*client_process_index)(PurlinPjrtClientProcessIndexArgs* args);
  /** PJRT_Client_PlatformVersion: The platform's version, as a text for people. */
  PurlinPjrtError* (*client_platform_version)(PurlinPjrtClientPlatformVersionArgs* args);
  /** PJRT_Client_Devices: All devices of a job. */
  PurlinPjrtError* (*client_devices)(PurlinPjrtClientDevicesArgs* args);
  /** PJRT_Client_AddressableDevices: The devices of this process. */
  PurlinPjrtError* (*client_addressable_devices)(PurlinPjrtClientAddressableDevicesArgs* args);
  /** PJRT_Client_LookupDevice: The device with a number. */
  PurlinPjrtError* (*client_lookup_device)(PurlinPjrtClientLookupDeviceArgs* args);
  /** PJRT_Client_LookupAddressableDevice: The device of this process with a number. */
  PurlinPjrtError* (*client_lookup_addressable_device)(PurlinPjrtClientLookupAddressableDeviceArgs* args);
  /** PJRT_Client_AddressableMemories: The memories that this process reaches. */
  PurlinPjrtError* (*client_addressable_memories)(PurlinPjrtClientAddressableMemoriesArgs* args);
  /** PJRT_Client_Compile: Compiles a program and loads it. */
  PurlinPjrtError* (*client_compile)(PurlinPjrtClientCompileArgs* args);
  /** PJRT_Client_DefaultDeviceAssignment: Which device each replica and partition runs on, unless the caller says
   * otherwise. */
  PurlinPjrtError* (*client_default_device_assignment)(PurlinPjrtClientDefaultDeviceAssignmentArgs* args);
  /** PJRT_Client_BufferFromHostBuffer: Makes an array out of the caller's bytes. */
  PurlinPjrtError* (*client_buffer_from_host_buffer)(PurlinPjrtClientBufferFromHostBufferArgs* args);
  /** PJRT_DeviceDescription_Id: A device's number in its job. */
  PurlinPjrtError* (*device_description_id)(PurlinPjrtDeviceDescriptionIdArgs* args);
  /** PJRT_DeviceDescription_ProcessIndex: The process that reaches a device. */
  PurlinPjrtError* (*device_description_process_index)(PurlinPjrtDeviceDescriptionProcessIndexArgs* args);
  /** PJRT_DeviceDescription_Attributes: What the platform says of a device. */
  PurlinPjrtError* (*device_description_attributes)(PurlinPjrtDeviceDescriptionAttributesArgs* args);
  /** PJRT_DeviceDescription_Kind: The kind of a device, as its vendor names it. */
  PurlinPjrtError* (*device_description_kind)(PurlinPjrtDeviceDescriptionKindArgs* args);
  /** PJRT_DeviceDescription_DebugString: A device, for logs. */
  PurlinPjrtError* (*device_description_debug_string)(PurlinPjrtDeviceDescriptionDebugStringArgs* args);
  /** PJRT_DeviceDescription_ToString: A device, for users. */
  PurlinPjrtError* (*device_description_to_string)(PurlinPjrtDeviceDescriptionToStringArgs* args);
  /** PJRT_Device_GetDescription: A device's description. */
  PurlinPjrtError* (*device_get_description)(PurlinPjrtDeviceGetDescriptionArgs* args);
  /** PJRT_Device_IsAddressable: Whether this process reaches a device. */
  PurlinPjrtError* (*device_is_addressable)(PurlinPjrtDeviceIsAddressableArgs* args);
  /** PJRT_Device_LocalHardwareId: A device's number in this process. */
  PurlinPjrtError* (*device_local_hardware_id)(PurlinPjrtDeviceLocalHardwareIdArgs* args);
  /** PJRT_Device_AddressableMemories: The memories that a device reaches. */
  PurlinPjrtError* (*device_addressable_memories)(PurlinPjrtDeviceAddressableMemoriesArgs* args);
  /** PJRT_Device_DefaultMemory: Where a device's arrays lie unless the caller says otherwise. */
  PurlinPjrtError* (*device_default_memory)(PurlinPjrtDeviceDefaultMemoryArgs* args);
  /** PJRT_Device_MemoryStats: What a device's allocator counts, in bytes; what it does not count is not set. */
  PurlinPjrtError* (*device_memory_stats)(PurlinPjrtDeviceMemoryStatsArgs* args);
  /** PJRT_Memory_Id: A memory's number, unique in its client. */
  PurlinPjrtError* (*memory_id)(PurlinPjrtMemoryIdArgs* args);
  /** PJRT_Memory_Kind: The kind of a memory, `device` or `pinned_host` for instance. */
  PurlinPjrtError* (*memory_kind)(PurlinPjrtMemoryKindArgs* args);
  /** PJRT_Memory_DebugString: A memory, for logs. */
  PurlinPjrtError* (*memory_debug_string)(PurlinPjrtMemoryDebugStringArgs* args);
  /** PJRT_Memory_ToString: A memory, for users. */
  PurlinPjrtError* (*memory_to_string)(PurlinPjrtMemoryToStringArgs* args);
  /** PJRT_Memory_AddressableByDevices: The devices that reach a memory. */
  PurlinPjrtError* (*memory_addressable_by_devices)(PurlinPjrtMemoryAddressableByDevicesArgs* args);
  /** PJRT_Executable_Destroy: Frees an executable. */
  PurlinPjrtError* (*executable_destroy)(PurlinPjrtExecutableDestroyArgs* args);
  /** PJRT_Executable_Name: An executable's name. */
  PurlinPjrtError* (*executable_name)(PurlinPjrtExecutableNameArgs* args);
  /** PJRT_Executable_NumReplicas: How many replicas an executable has. */
  PurlinPjrtError* (*executable_num_replicas)(PurlinPjrtExecutableNumReplicasArgs* args);
  /** PJRT_Executable_NumPartitions: How many partitions an executable has. */
  PurlinPjrtError* (*executable_num_partitions)(PurlinPjrtExecutableNumPartitionsArgs* args);
  /** PJRT_Executable_NumOutputs: How many results an executable has on each device. */
  PurlinPjrtError* (*executable_num_outputs)(PurlinPjrtExecutableNumOutputsArgs* args);
  /** PJRT_Executable_SizeOfGeneratedCodeInBytes: How large its code is. */
  PurlinPjrtError* (*executable_size_of_generated_code_in_bytes)(
      PurlinPjrtExecutableSizeOfGeneratedCodeInBytesArgs* args);
  /** PJRT_Executable_GetCostAnalysis: What the compiler expects a run to cost. */
  PurlinPjrtError* (*executable_get_cost_analysis)(PurlinPjrtExecutableGetCostAnalysisArgs* args);
  /** PJRT_Executable_OutputMemoryKinds: The kind of memory of each result. */
  PurlinPjrtError* (*executable_output_memory_kinds)(PurlinPjrtExecutableOutputMemoryKindsArgs* args);
  /** PJRT_Executable_OptimizedProgram: The program after XLA's optimizations: a first call says how large, a second
   * fills. */
  PurlinPjrtError* (*executable_optimized_program)(PurlinPjrtExecutableOptimizedProgramArgs* args);
  /** PJRT_Executable_Serialize: An executable as bytes for Executable_DeserializeAndLoad. */
  PurlinPjrtError* (*executable_serialize)(PurlinPjrtExecutableSerializeArgs* args);
  /** PJRT_LoadedExecutable_Destroy: Frees a loaded executable; runs in flight end as they would. */
  PurlinPjrtError* (*loaded_executable_destroy)(PurlinPjrtLoadedExecutableDestroyArgs* args);
  /** PJRT_LoadedExecutable_GetExecutable: The executable that was loaded. */
  PurlinPjrtError* (*loaded_executable_get_executable)(PurlinPjrtLoadedExecutableGetExecutableArgs* args);
  /** PJRT_LoadedExecutable_AddressableDevices: The devices of this process that it runs on. */
  PurlinPjrtError* (*loaded_executable_addressable_devices)(PurlinPjrtLoadedExecutableAddressableDevicesArgs* args);
  /** PJRT_LoadedExecutable_Delete: Lets go of its code when the runs in flight have ended; the object stays. */
  PurlinPjrtError* (*loaded_executable_delete)(PurlinPjrtLoadedExecutableDeleteArgs* args);
  /** PJRT_LoadedExecutable_IsDeleted: Whether LoadedExecutable_Delete was called. */
  PurlinPjrtError* (*loaded_executable_is_deleted)(PurlinPjrtLoadedExecutableIsDeletedArgs* args);
  /** PJRT_LoadedExecutable_Execute: Runs it on its devices of this process, or on one. */
  PurlinPjrtError* (*loaded_executable_execute)(PurlinPjrtLoadedExecutableExecuteArgs* args);
  /** PJRT_Executable_DeserializeAndLoad: Loads what Executable_Serialize wrote. */
  PurlinPjrtError* (*executable_deserialize_and_load)(PurlinPjrtExecutableDeserializeAndLoadArgs* args);
  /** PJRT_LoadedExecutable_Fingerprint: Deprecated; Executable_Fingerprint is meant. */
  PurlinPjrtError* (*loaded_executable_fingerprint)(PurlinPjrtLoadedExecutableFingerprintArgs* args);
  /** PJRT_Buffer_Destroy: Deletes an array and frees the object. */
  PurlinPjrtError* (*buffer_destroy)(PurlinPjrtBufferDestroyArgs* args);
  /** PJRT_Buffer_ElementType: The type of an array's elements. */
  PurlinPjrtError* (*buffer_element_type)(PurlinPjrtBufferElementTypeArgs* args);
  /** PJRT_Buffer_Dimensions: An array's dimensions. */
  PurlinPjrtError* (*buffer_dimensions)(PurlinPjrtBufferDimensionsArgs* args);
  /** PJRT_Buffer_UnpaddedDimensions: The same, where dynamic ones are as large as what is in use. */
  PurlinPjrtError* (*buffer_unpadded_dimensions)(PurlinPjrtBufferUnpaddedDimensionsArgs* args);
  /** PJRT_Buffer_DynamicDimensionIndices: Which dimensions are dynamic. */
  PurlinPjrtError* (*buffer_dynamic_dimension_indices)(PurlinPjrtBufferDynamicDimensionIndicesArgs* args);
  /** PJRT_Buffer_GetMemoryLayout: Deprecated since 0.54; the extension Layouts is meant. */
  PurlinPjrtError* (*buffer_get_memory_layout)(PurlinPjrtBufferGetMemoryLayoutArgs* args);
  /** PJRT_Buffer_OnDeviceSizeInBytes: How large an array's memory is. */
  PurlinPjrtError* (*buffer_on_device_size_in_bytes)(PurlinPjrtBufferOnDeviceSizeInBytesArgs* args);
  PurlinPjrtError* (*buffer_device)(PurlinPjrtBufferDeviceArgs* args); /**< PJRT_Buffer_Device: An array's device. */
  PurlinPjrtError* (*buffer_memory)(PurlinPjrtBufferMemoryArgs* args); /**< PJRT_Buffer_Memory: An array's memory. */
  /** PJRT_Buffer_Delete: Lets go of an array's memory when nothing in flight uses it; the object stays. */
  PurlinPjrtError* (*buffer_delete)(PurlinPjrtBufferDeleteArgs* args);
  /** PJRT_Buffer_IsDeleted: Whether an array was deleted or donated. */
  PurlinPjrtError* (*buffer_is_deleted)(PurlinPjrtBufferIsDeletedArgs* args);
  /** PJRT_Buffer_CopyToDevice: Copies an array to another device. */
  PurlinPjrtError* (*buffer_copy_to_device)(PurlinPjrtBufferCopyToDeviceArgs* args);
  /** PJRT_Buffer_ToHostBuffer: Copies an array to the caller's memory. */
  PurlinPjrtError* (*buffer_to_host_buffer)(PurlinPjrtBufferToHostBufferArgs* args);
  /** PJRT_Buffer_IsOnCpu: Whether the host reads an array's memory as its own. */
  PurlinPjrtError* (*buffer_is_on_cpu)(PurlinPjrtBufferIsOnCpuArgs* args);
  /** PJRT_Buffer_ReadyEvent: When an array's value is there, or failed. */
  PurlinPjrtError* (*buffer_ready_event)(PurlinPjrtBufferReadyEventArgs* args);
  /** PJRT_Buffer_UnsafePointer: An array's address, perhaps. */
  PurlinPjrtError* (*buffer_unsafe_pointer)(PurlinPjrtBufferUnsafePointerArgs* args);
  /** PJRT_Buffer_IncreaseExternalReferenceCount: Keeps an array's memory where it is. */
  PurlinPjrtError* (*buffer_increase_external_reference_count)(
      PurlinPjrtBufferIncreaseExternalReferenceCountArgs* args);
  /** PJRT_Buffer_DecreaseExternalReferenceCount: Takes that back once. */
  PurlinPjrtError* (*buffer_decrease_external_reference_count)(
      PurlinPjrtBufferDecreaseExternalReferenceCountArgs* args);
  /** PJRT_Buffer_OpaqueDeviceMemoryDataPointer: An array's address, good while an external reference is held. */
  PurlinPjrtError* (*buffer_opaque_device_memory_data_pointer)(PurlinPjrtBufferOpaqueDeviceMemoryDataPointerArgs* args);
  /** PJRT_CopyToDeviceStream_Destroy: Frees a stream of chunks. */
  PurlinPjrtError* (*copy_to_device_stream_destroy)(PurlinPjrtCopyToDeviceStreamDestroyArgs* args);
  /** PJRT_CopyToDeviceStream_AddChunk: Adds bytes to a stream. */
  PurlinPjrtError* (*copy_to_device_stream_add_chunk)(PurlinPjrtCopyToDeviceStreamAddChunkArgs* args);
  /** PJRT_CopyToDeviceStream_TotalBytes: How many bytes a stream expects. */
  PurlinPjrtError* (*copy_to_device_stream_total_bytes)(PurlinPjrtCopyToDeviceStreamTotalBytesArgs* args);
  /** PJRT_CopyToDeviceStream_GranuleSize: What a chunk's size must be a multiple of. */
  PurlinPjrtError* (*copy_to_device_stream_granule_size)(PurlinPjrtCopyToDeviceStreamGranuleSizeArgs* args);
  /** PJRT_CopyToDeviceStream_CurrentBytes: How many bytes a stream has. */
  PurlinPjrtError* (*copy_to_device_stream_current_bytes)(PurlinPjrtCopyToDeviceStreamCurrentBytesArgs* args);
  /** PJRT_TopologyDescription_Create: Describes devices that need not be there. */
  PurlinPjrtError* (*topology_description_create)(PurlinPjrtTopologyDescriptionCreateArgs* args);
  /** PJRT_TopologyDescription_Destroy: Frees a topology. */
  PurlinPjrtError* (*topology_description_destroy)(PurlinPjrtTopologyDescriptionDestroyArgs* args);
  /** PJRT_TopologyDescription_PlatformName: A topology's platform. */
  PurlinPjrtError* (*topology_description_platform_name)(PurlinPjrtTopologyDescriptionPlatformNameArgs* args);
  /** PJRT_TopologyDescription_PlatformVersion: A topology's version, as a text for people. */
  PurlinPjrtError* (*topology_description_platform_version)(PurlinPjrtTopologyDescriptionPlatformVersionArgs* args);
  /** PJRT_TopologyDescription_GetDeviceDescriptions: The devices of a topology. */
  PurlinPjrtError* (*topology_description_get_device_descriptions)(
      PurlinPjrtTopologyDescriptionGetDeviceDescriptionsArgs* args);
  /** PJRT_TopologyDescription_Serialize: A topology as bytes, for keys of caches. */
  PurlinPjrtError* (*topology_description_serialize)(PurlinPjrtTopologyDescriptionSerializeArgs* args);
  /** PJRT_TopologyDescription_Attributes: What the platform says of a topology. */
  PurlinPjrtError* (*topology_description_attributes)(PurlinPjrtTopologyDescriptionAttributesArgs* args);
  /** PJRT_Compile: Compiles a program for a topology, without loading it. */
  PurlinPjrtError* (*compile)(PurlinPjrtCompileArgs* args);
  /** PJRT_Executable_OutputElementTypes: The types of the results. */
  PurlinPjrtError* (*executable_output_element_types)(PurlinPjrtExecutableOutputElementTypesArgs* args);
  /** PJRT_Executable_OutputDimensions: The dimensions of all results, one after the other. */
  PurlinPjrtError* (*executable_output_dimensions)(PurlinPjrtExecutableOutputDimensionsArgs* args);
  /** PJRT_Buffer_CopyToMemory: Copies an array to another memory. Since 0.32. */
  PurlinPjrtError* (*buffer_copy_to_memory)(PurlinPjrtBufferCopyToMemoryArgs* args);
  /** PJRT_Client_CreateViewOfDeviceBuffer: Makes an array of memory that the caller has already. Since 0.33. */
  PurlinPjrtError* (*client_create_view_of_device_buffer)(PurlinPjrtClientCreateViewOfDeviceBufferArgs* args);
  /** PJRT_Executable_Fingerprint: A text that is the same for the same program, options and compiler. Since 0.35. */
  PurlinPjrtError* (*executable_fingerprint)(PurlinPjrtExecutableFingerprintArgs* args);
  /** PJRT_Client_TopologyDescription: The topology of a client's devices. Since 0.36. */
  PurlinPjrtError* (*client_topology_description)(PurlinPjrtClientTopologyDescriptionArgs* args);
  /** PJRT_Executable_GetCompiledMemoryStats: How much memory a run needs, in bytes. Since 0.40. */
  PurlinPjrtError* (*executable_get_compiled_memory_stats)(PurlinPjrtExecutableGetCompiledMemoryStatsArgs* args);
  /** PJRT_Memory_Kind_Id: The number of a memory's kind. Since 0.48. */
  PurlinPjrtError* (*memory_kind_id)(PurlinPjrtMemoryKindIdArgs* args);
  /** PJRT_ExecuteContext_Create: Makes a place for what handlers of custom calls find. Since 0.52. */
  PurlinPjrtError* (*execute_context_create)(PurlinPjrtExecuteContextCreateArgs* args);
  /** PJRT_ExecuteContext_Destroy: Frees that place. Since 0.52. */
  PurlinPjrtError* (*execute_context_destroy)(PurlinPjrtExecuteContextDestroyArgs* args);
  /** PJRT_Buffer_CopyRawToHost: Copies some of an array's bytes to the caller's memory. Since 0.56. */
  PurlinPjrtError* (*buffer_copy_raw_to_host)(PurlinPjrtBufferCopyRawToHostArgs* args);
  /** PJRT_AsyncHostToDeviceTransferManager_Destroy: Frees a manager; arrays that are not whole fail. Since 0.60. */
  PurlinPjrtError* (*async_host_to_device_transfer_manager_destroy)(
      PurlinPjrtAsyncHostToDeviceTransferManagerDestroyArgs* args);
  /** PJRT_AsyncHostToDeviceTransferManager_TransferData: Copies bytes into one of its arrays. Since 0.60. */
  PurlinPjrtError* (*async_host_to_device_transfer_manager_transfer_data)(
      PurlinPjrtAsyncHostToDeviceTransferManagerTransferDataArgs* args);
  /** PJRT_Client_CreateBuffersForAsyncHostToDevice: Makes arrays that the caller fills later. Since 0.60. */
  PurlinPjrtError* (*client_create_buffers_for_async_host_to_device)(
      PurlinPjrtClientCreateBuffersForAsyncHostToDeviceArgs* args);
  /** PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer: One of its arrays, once. Since 0.62. */
  PurlinPjrtError* (*async_host_to_device_transfer_manager_retrieve_buffer)(
      PurlinPjrtAsyncHostToDeviceTransferManagerRetrieveBufferArgs* args);
  /** PJRT_AsyncHostToDeviceTransferManager_Device: Where its arrays are. Since 0.62. */
  PurlinPjrtError* (*async_host_to_device_transfer_manager_device)(
      PurlinPjrtAsyncHostToDeviceTransferManagerDeviceArgs* args);
  /** PJRT_AsyncHostToDeviceTransferManager_BufferCount: How many arrays it has. Since 0.62. */
  PurlinPjrtError* (*async_host_to_device_transfer_manager_buffer_count)(
      PurlinPjrtAsyncHostToDeviceTransferManagerBufferCountArgs* args);
  /** PJRT_AsyncHostToDeviceTransferManager_BufferSize: How large one of them is. Since 0.62. */
  PurlinPjrtError* (*async_host_to_device_transfer_manager_buffer_size)(
      PurlinPjrtAsyncHostToDeviceTransferManagerBufferSizeArgs* args);
  /** PJRT_AsyncHostToDeviceTransferManager_SetBufferError: Makes one of them fail. Since 0.62. */
  PurlinPjrtError* (*async_host_to_device_transfer_manager_set_buffer_error)(
      PurlinPjrtAsyncHostToDeviceTransferManagerSetBufferErrorArgs* args);
  /** PJRT_AsyncHostToDeviceTransferManager_AddMetadata: Notes for people that debug. Since 0.62. */
  PurlinPjrtError* (*async_host_to_device_transfer_manager_add_metadata)(
      PurlinPjrtAsyncHostToDeviceTransferManagerAddMetadataArgs* args);
  /** PJRT_Client_DmaMap: Makes the caller's memory fast to copy from and to. Since 0.67. */
  PurlinPjrtError* (*client_dma_map)(PurlinPjrtClientDmaMapArgs* args);
  /** PJRT_Client_DmaUnmap: Takes that back. Since 0.67. */
  PurlinPjrtError* (*client_dma_unmap)(PurlinPjrtClientDmaUnmapArgs* args);
  /** PJRT_Client_CreateUninitializedBuffer: Makes an array of any bytes. Since 0.69. */
  PurlinPjrtError* (*client_create_uninitialized_buffer)(PurlinPjrtClientCreateUninitializedBufferArgs* args);
  /** PJRT_Client_UpdateGlobalProcessInfo: What is known of all processes of a job. Since 0.73. */
  PurlinPjrtError* (*client_update_global_process_info)(PurlinPjrtClientUpdateGlobalProcessInfoArgs* args);
  /** PJRT_TopologyDescription_Deserialize: Reads what TopologyDescription_Serialize wrote. Since 0.75. */
  PurlinPjrtError* (*topology_description_deserialize)(PurlinPjrtTopologyDescriptionDeserializeArgs* args);
  /** PJRT_Client_CreateAliasBuffer: Makes an array that will be another one. Since 0.77. */
  PurlinPjrtError* (*client_create_alias_buffer)(PurlinPjrtClientCreateAliasBufferArgs* args);
  /** PJRT_Client_FulfillAliasBuffer: Says which one, or why none. Since 0.77. */
  PurlinPjrtError* (*client_fulfill_alias_buffer)(PurlinPjrtClientFulfillAliasBufferArgs* args);
  /** PJRT_LoadedExecutable_GetDeviceAssignment: Which device each replica and partition runs on. Since 0.79. */
  PurlinPjrtError* (*loaded_executable_get_device_assignment)(PurlinPjrtLoadedExecutableGetDeviceAssignmentArgs* args);
  /** PJRT_Client_CreateErrorBuffer: Makes an array that has failed. Since 0.82. */
  PurlinPjrtError* (*client_create_error_buffer)(PurlinPjrtClientCreateErrorBufferArgs* args);
  /** PJRT_AsyncHostToDeviceTransferManager_TransferLiteral: Copies a whole array into one of its arrays. Since 0.83. */
  PurlinPjrtError* (*async_host_to_device_transfer_manager_transfer_literal)(
      PurlinPjrtAsyncHostToDeviceTransferManagerTransferLiteralArgs* args);
  /** PJRT_Buffer_CopyRawToHostFuture: The same copy, to a place that the caller will know later. Since 0.84. */
  PurlinPjrtError* (*buffer_copy_raw_to_host_future)(PurlinPjrtBufferCopyRawToHostFutureArgs* args);
  /** PJRT_Device_PoisonExecution: Makes a launch that has not ended fail. Since 0.85. */
  PurlinPjrtError* (*device_poison_execution)(PurlinPjrtDevicePoisonExecutionArgs* args);
  /** PJRT_Device_CreateAsyncTrackingEvent: Marks work on a device for people that debug. Since 0.86. */
  PurlinPjrtError* (*device_create_async_tracking_event)(PurlinPjrtDeviceCreateAsyncTrackingEventArgs* args);
  /** PJRT_AsyncTrackingEvent_Destroy: Says that the work has ended. Since 0.86. */
  PurlinPjrtError* (*async_tracking_event_destroy)(PurlinPjrtAsyncTrackingEventDestroyArgs* args);
  /** PJRT_Executable_GetCompileOptions: The options that it was compiled with. Since 0.87. */
  PurlinPjrtError* (*executable_get_compile_options)(PurlinPjrtExecutableGetCompileOptionsArgs* args);
  /** PJRT_Buffer_DonateWithControlDependency: Moves an array into a new one that waits for the caller. Since 0.88. */
  PurlinPjrtError* (*buffer_donate_with_control_dependency)(PurlinPjrtBufferDonateWithControlDependencyArgs* args);
  /** PJRT_Event_Create: Makes an event that the caller completes. Since 0.89. */
  PurlinPjrtError* (*event_create)(PurlinPjrtEventCreateArgs* args);
  /** PJRT_Event_Set: Completes an event of Event_Create. Since 0.89. */
  PurlinPjrtError* (*event_set)(PurlinPjrtEventSetArgs* args);
  /** PJRT_Device_GetAttributes: What a device says of itself now. Since 0.92. */
  PurlinPjrtError* (*device_get_attributes)(PurlinPjrtDeviceGetAttributesArgs* args);
  /** PJRT_Client_Load: Loads an executable that was only compiled. Since 0.95. */
  PurlinPjrtError* (*client_load)(PurlinPjrtClientLoadArgs* args);
  /** PJRT_LoadedExecutable_AddressableDeviceLogicalIds: Replica and partition of each device that it runs on. Since
   * 0.96. */
  PurlinPjrtError* (*loaded_executable_addressable_device_logical_ids)(
      PurlinPjrtLoadedExecutableAddressableDeviceLogicalIdsArgs* args);
  /** PJRT_Buffer_Bitcast: The same bytes as an array of another type, shape and layout. Since 0.98. */
  PurlinPjrtError* (*buffer_bitcast)(PurlinPjrtBufferBitcastArgs* args);
  /** PJRT_Error_ForEachPayload: Shows an error's payloads. Since 0.99. */
  PurlinPjrtError* (*error_for_each_payload)(PurlinPjrtErrorForEachPayloadArgs* args);
  /** PJRT_TopologyDescription_Fingerprint: A number that is the same for the same topology. Since 0.101. */
  PurlinPjrtError* (*topology_description_fingerprint)(PurlinPjrtTopologyDescriptionFingerprintArgs* args);
  /** PJRT_Executable_ParameterMemoryKinds: The kind of memory of each argument. Since 0.102. */
  PurlinPjrtError* (*executable_parameter_memory_kinds)(PurlinPjrtExecutableParameterMemoryKindsArgs* args);
  /** PJRT_Device_ClearMemoryStats: Begins to count the most from now. Since 0.115. */
  PurlinPjrtError* (*device_clear_memory_stats)(PurlinPjrtDeviceClearMemoryStatsArgs* args);
  /** PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace: How an array lies in a memory. Since 0.115. */
  PurlinPjrtError* (*topology_description_make_canonical_shape_for_memory_space)(
      PurlinPjrtTopologyDescriptionMakeCanonicalShapeForMemorySpaceArgs* args);
  /** PJRT_TopologyDescription_GetMemorySpaceKindIds: The kinds of memory of a topology. Since 0.115. */
  PurlinPjrtError* (*topology_description_get_memory_space_kind_ids)(
      PurlinPjrtTopologyDescriptionGetMemorySpaceKindIdsArgs* args);
} PurlinPjrtApi;

/** PJRT_Layouts_Extension, version 4: Layouts of arrays and executables. */
typedef struct PurlinPjrtLayoutsExtension {
  PurlinPjrtExtensionBase base; /**< What every extension begins with. */
  /** PJRT_Layouts_MemoryLayout_Destroy: Frees a layout. Since 0.51. */
  PurlinPjrtError* (*memory_layout_destroy)(PurlinPjrtLayoutsMemoryLayoutDestroyArgs* args);
  /** PJRT_Layouts_MemoryLayout_Serialize: A layout as a text. Since 0.51. */
  PurlinPjrtError* (*memory_layout_serialize)(PurlinPjrtLayoutsMemoryLayoutSerializeArgs* args);
  /** PJRT_Layouts_PJRT_Client_GetDefaultLayout: The layout of an array that asks for none. Since 0.51. */
  PurlinPjrtError* (*client_get_default_layout)(PurlinPjrtLayoutsClientGetDefaultLayoutArgs* args);
  /** PJRT_Layouts_PJRT_Buffer_MemoryLayout: The layout of an array. Since 0.51. */
  PurlinPjrtError* (*buffer_memory_layout)(PurlinPjrtLayoutsBufferMemoryLayoutArgs* args);
  /** PJRT_Layouts_PJRT_Topology_GetDefaultLayout: The layout of an array that asks for none, on a topology. Since 0.51.
   * */
  PurlinPjrtError* (*topology_get_default_layout)(PurlinPjrtLayoutsTopologyGetDefaultLayoutArgs* args);
  /** PJRT_Layouts_PJRT_Executable_GetOutputLayouts: The layouts of the results. Since 0.81. */
  PurlinPjrtError* (*executable_get_output_layouts)(PurlinPjrtLayoutsExecutableGetOutputLayoutsArgs* args);
  /** PJRT_Layouts_PJRT_Executable_GetParameterLayouts: The layouts of the arguments. Since 0.93. */
  PurlinPjrtError* (*executable_get_parameter_layouts)(PurlinPjrtLayoutsExecutableGetParameterLayoutsArgs* args);
} PurlinPjrtLayoutsExtension;

/** PJRT_FFI_Extension, version 3: Custom calls. */
typedef struct PurlinPjrtFFIExtension {
  PurlinPjrtExtensionBase base; /**< What every extension begins with. */
  /** PJRT_FFI_Type_Register: Names a type of the values that handlers find. Since 0.53. */
  PurlinPjrtError* (*type_register)(PurlinPjrtFFITypeRegisterArgs* args);
  /** PJRT_FFI_UserData_Add: Puts a value where handlers find it. Since 0.53. */
  PurlinPjrtError* (*user_data_add)(PurlinPjrtFFIUserDataAddArgs* args);
  /** PJRT_FFI_Register_Handler: Says what a custom call does. Since 0.53. */
  PurlinPjrtError* (*register_handler)(PurlinPjrtFFIRegisterHandlerArgs* args);
} PurlinPjrtFFIExtension;

/** PJRT_MemoryDescriptions_Extension, version 1: Memories of devices that need not be there. */
typedef struct PurlinPjrtMemoryDescriptionsExtension {
  PurlinPjrtExtensionBase base; /**< What every extension begins with. */
  /** PJRT_DeviceDescription_MemoryDescriptions: The memories of a device. Since 0.59. */
  PurlinPjrtError* (*device_description_memory_descriptions)(PurlinPjrtDeviceDescriptionMemoryDescriptionsArgs* args);
  /** PJRT_MemoryDescription_Kind: The kind of a memory. Since 0.59. */
  PurlinPjrtError* (*memory_description_kind)(PurlinPjrtMemoryDescriptionKindArgs* args);
} PurlinPjrtMemoryDescriptionsExtension;

/** PJRT_Shardings_Extension, version 1: How arrays of an executable are divided among devices. */
typedef struct PurlinPjrtShardingsExtension {
  PurlinPjrtExtensionBase base; /**< What every extension begins with. */
  /** PJRT_Shardings_PJRT_Executable_ParameterShardings: Of the arguments. Since 0.91. */
  PurlinPjrtError* (*executable_parameter_shardings)(PurlinPjrtShardingsExecutableParameterShardingsArgs* args);
  /** PJRT_Shardings_PJRT_Executable_OutputShardings: Of the results. Since 0.91. */
  PurlinPjrtError* (*executable_output_shardings)(PurlinPjrtShardingsExecutableOutputShardingsArgs* args);
} PurlinPjrtShardingsExtension;

#ifdef __cplusplus
} /* extern "C" */
#endif
/* NOLINTEND(modernize-use-using) */
/* clang-format on */

#endif /* PURLIN_ADAPTERS_PJRT_ABI_H_ */

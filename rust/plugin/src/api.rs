//! The table of all functions: `answered` is implemented, `refused` says which function it is.

use std::ptr;

use purlin_base::sync::OnceLock;
use purlin_pjrt::abi::arguments;
use purlin_pjrt_abi::{
    Api, ApiVersion, ExtensionBase, FFIExtension, LayoutsExtension, MemoryDescriptionsExtension, ShardingsExtension,
};

use crate::answer::{answered, refused};
use crate::{error, ffi, layouts, memory_descriptions, shardings};

/// What this table was made for: of PJRT's C API.
const VERSION: (i32, i32) = (0, 115);

/// The table, and the extensions that it leads to.
struct Whole {
    api: Api,
    _extensions: Box<Extensions>,
}

/// In the order of the chain.
struct Extensions {
    layouts: LayoutsExtension,
    ffi: FFIExtension,
    memory_descriptions: MemoryDescriptionsExtension,
    shardings: ShardingsExtension,
}

// SAFETY: none of it is written any more, and the functions may be called from every thread.
unsafe impl Send for Whole {}
// SAFETY: as above.
unsafe impl Sync for Whole {}

/// The table, for the life of the process.
pub(crate) fn table() -> *const Api {
    static WHOLE: OnceLock<Whole> = OnceLock::new();
    &raw const WHOLE.get_or_init(make).api
}

fn make() -> Whole {
    let mut extensions = Box::new(Extensions {
        layouts: layouts::extension(ptr::null_mut()),
        ffi: ffi::extension(ptr::null_mut()),
        memory_descriptions: memory_descriptions::extension(ptr::null_mut()),
        shardings: shardings::extension(ptr::null_mut()),
    });
    let chain: [*mut ExtensionBase; 4] = [
        (&raw mut extensions.layouts).cast(),
        (&raw mut extensions.ffi).cast(),
        (&raw mut extensions.memory_descriptions).cast(),
        (&raw mut extensions.shardings).cast(),
    ];
    for pair in chain.windows(2) {
        // SAFETY: each begins with what all extensions have, and no other reference to it exists.
        unsafe { (*pair[0]).next = pair[1] };
    }
    Whole { api: Api { extension_start: chain[0], ..functions() }, _extensions: extensions }
}

/// The functions, without extensions.
fn functions() -> Api {
    let version = ApiVersion { major_version: VERSION.0, minor_version: VERSION.1, ..arguments() };
    Api {
        struct_size: size_of::<Api>(),
        extension_start: ptr::null_mut(),
        version,
        error_destroy: Some(error::destroy),
        error_message: Some(error::message),
        error_get_code: Some(answered),
        plugin_initialize: Some(answered),
        plugin_attributes: Some(answered),
        event_destroy: Some(answered),
        event_is_ready: Some(answered),
        event_error: Some(answered),
        event_await: Some(answered),
        event_on_ready: Some(answered),
        client_create: Some(answered),
        client_destroy: Some(answered),
        client_platform_name: Some(answered),
        client_process_index: Some(answered),
        client_platform_version: Some(answered),
        client_devices: Some(answered),
        client_addressable_devices: Some(answered),
        client_lookup_device: Some(answered),
        client_lookup_addressable_device: Some(answered),
        client_addressable_memories: Some(answered),
        client_compile: Some(answered),
        client_default_device_assignment: Some(answered),
        client_buffer_from_host_buffer: Some(answered),
        device_description_id: Some(answered),
        device_description_process_index: Some(answered),
        device_description_attributes: Some(answered),
        device_description_kind: Some(answered),
        device_description_debug_string: Some(answered),
        device_description_to_string: Some(answered),
        device_get_description: Some(answered),
        device_is_addressable: Some(answered),
        device_local_hardware_id: Some(answered),
        device_addressable_memories: Some(answered),
        device_default_memory: Some(answered),
        device_memory_stats: Some(answered),
        memory_id: Some(answered),
        memory_kind: Some(answered),
        memory_debug_string: Some(answered),
        memory_to_string: Some(answered),
        memory_addressable_by_devices: Some(answered),
        executable_destroy: Some(answered),
        executable_name: Some(answered),
        executable_num_replicas: Some(answered),
        executable_num_partitions: Some(answered),
        executable_num_outputs: Some(answered),
        executable_size_of_generated_code_in_bytes: Some(answered),
        executable_get_cost_analysis: Some(answered),
        executable_output_memory_kinds: Some(answered),
        executable_optimized_program: Some(answered),
        executable_serialize: Some(answered),
        loaded_executable_destroy: Some(answered),
        loaded_executable_get_executable: Some(answered),
        loaded_executable_addressable_devices: Some(answered),
        loaded_executable_delete: Some(answered),
        loaded_executable_is_deleted: Some(answered),
        loaded_executable_execute: Some(answered),
        executable_deserialize_and_load: Some(answered),
        loaded_executable_fingerprint: Some(answered),
        buffer_destroy: Some(answered),
        buffer_element_type: Some(answered),
        buffer_dimensions: Some(answered),
        buffer_unpadded_dimensions: Some(answered),
        buffer_dynamic_dimension_indices: Some(answered),
        buffer_get_memory_layout: Some(answered),
        buffer_on_device_size_in_bytes: Some(answered),
        buffer_device: Some(answered),
        buffer_memory: Some(answered),
        buffer_delete: Some(answered),
        buffer_is_deleted: Some(answered),
        buffer_copy_to_device: Some(answered),
        buffer_to_host_buffer: Some(answered),
        buffer_is_on_cpu: Some(answered),
        buffer_ready_event: Some(answered),
        buffer_unsafe_pointer: Some(answered),
        buffer_increase_external_reference_count: Some(answered),
        buffer_decrease_external_reference_count: Some(answered),
        buffer_opaque_device_memory_data_pointer: Some(answered),
        copy_to_device_stream_destroy: Some(refused),
        copy_to_device_stream_add_chunk: Some(refused),
        copy_to_device_stream_total_bytes: Some(refused),
        copy_to_device_stream_granule_size: Some(refused),
        copy_to_device_stream_current_bytes: Some(refused),
        topology_description_create: Some(refused),
        topology_description_destroy: Some(answered),
        topology_description_platform_name: Some(answered),
        topology_description_platform_version: Some(answered),
        topology_description_get_device_descriptions: Some(answered),
        topology_description_serialize: Some(answered),
        topology_description_attributes: Some(answered),
        compile: Some(refused),
        executable_output_element_types: Some(answered),
        executable_output_dimensions: Some(answered),
        buffer_copy_to_memory: Some(answered),
        client_create_view_of_device_buffer: Some(answered),
        executable_fingerprint: Some(answered),
        client_topology_description: Some(answered),
        executable_get_compiled_memory_stats: Some(answered),
        memory_kind_id: Some(answered),
        execute_context_create: Some(answered),
        execute_context_destroy: Some(answered),
        buffer_copy_raw_to_host: Some(answered),
        async_host_to_device_transfer_manager_destroy: Some(answered),
        async_host_to_device_transfer_manager_transfer_data: Some(answered),
        client_create_buffers_for_async_host_to_device: Some(answered),
        async_host_to_device_transfer_manager_retrieve_buffer: Some(answered),
        async_host_to_device_transfer_manager_device: Some(answered),
        async_host_to_device_transfer_manager_buffer_count: Some(answered),
        async_host_to_device_transfer_manager_buffer_size: Some(answered),
        async_host_to_device_transfer_manager_set_buffer_error: Some(answered),
        async_host_to_device_transfer_manager_add_metadata: Some(answered),
        client_dma_map: Some(answered),
        client_dma_unmap: Some(answered),
        client_create_uninitialized_buffer: Some(answered),
        client_update_global_process_info: Some(refused),
        topology_description_deserialize: Some(refused),
        client_create_alias_buffer: Some(answered),
        client_fulfill_alias_buffer: Some(answered),
        loaded_executable_get_device_assignment: Some(answered),
        client_create_error_buffer: Some(answered),
        async_host_to_device_transfer_manager_transfer_literal: Some(answered),
        buffer_copy_raw_to_host_future: Some(answered),
        device_poison_execution: Some(refused),
        device_create_async_tracking_event: Some(refused),
        async_tracking_event_destroy: Some(refused),
        executable_get_compile_options: Some(answered),
        buffer_donate_with_control_dependency: Some(answered),
        event_create: Some(answered),
        event_set: Some(answered),
        device_get_attributes: Some(answered),
        client_load: Some(refused),
        loaded_executable_addressable_device_logical_ids: Some(answered),
        buffer_bitcast: Some(answered),
        error_for_each_payload: Some(answered),
        topology_description_fingerprint: Some(answered),
        executable_parameter_memory_kinds: Some(answered),
        device_clear_memory_stats: Some(answered),
        topology_description_make_canonical_shape_for_memory_space: Some(refused),
        topology_description_get_memory_space_kind_ids: Some(answered),
    }
}

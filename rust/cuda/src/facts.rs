//! What a GPU says of itself, as attributes of its device. `include/purlin/cuda.h` lists them for callers.
//!
//! Names are those of XLA: of its plugin's attributes, or else of its description of a GPU. What the driver does not
//! say is no attribute.

use purlin_device::backend::{AttributeValue, DeviceAttribute, DeviceDescription};

use crate::gpu::Gpu;
use crate::nvml;

/// Attributes that are one number of the driver's (`CUdevice_attribute`).
const NUMBERS: [(&str, u32); 11] = [
    ("core_count", 16),
    ("threads_per_warp", 10),
    ("threads_per_block_limit", 1),
    ("threads_per_core_limit", 39),
    ("registers_per_block_limit", 12),
    ("registers_per_core_limit", 82),
    ("shared_memory_per_block", 8),
    ("shared_memory_per_block_optin", 97),
    ("shared_memory_per_core", 81),
    ("l2_cache_size", 38),
    ("memory_bus_width", MEMORY_BUS_WIDTH),
];
/// Attributes that are three numbers of the driver's, each.
const TRIPLES: [(&str, [u32; 3]); 2] = [("thread_dim_limit", [2, 3, 4]), ("block_dim_limit", [5, 6, 7])];
const CLOCK_KHZ: u32 = 13;
const MEMORY_CLOCK_KHZ: u32 = 36;
const MEMORY_BUS_WIDTH: u32 = 37;
const CAPABILITY: [u32; 2] = [75, 76];

/// The first major compute capability of GPUs that NVLink may join beyond one machine.
const LEAST_WITH_FABRIC: i64 = 9;

/// The device that is this GPU.
pub(crate) fn describe(gpu: &Gpu) -> DeviceDescription {
    let mut description = DeviceDescription::of_kind(gpu.name());
    description.local_hardware_id = i32::try_from(gpu.ordinal).ok();
    let attributes = &mut description.attributes;
    let mut add = |name: &'static str, value: Option<AttributeValue>| {
        attributes.extend(value.map(|value| DeviceAttribute { name: name.into(), value }));
    };
    let (text, integer) = (AttributeValue::Text, AttributeValue::Integer);
    let [major, minor] = CAPABILITY.map(|number| gpu.attribute(number));
    let bus_id = gpu.bus_id();
    add("device_vendor", Some(text("NVIDIA Corporation".to_owned())));
    add("compute_capability", major.zip(minor).map(|(major, minor)| text(format!("{major}.{minor}"))));
    add("driver_version", Some(text(gpu.driver.version_text())));
    add("uuid", gpu.uuid().map(|uuid| text(format!("GPU-{}", dashed(&uuid)))));
    add("pci_bus_id", bus_id.clone().map(text));
    add("device_memory_bytes", gpu.total_bytes().and_then(|bytes| i64::try_from(bytes).ok()).map(integer));
    for (name, number) in NUMBERS {
        add(name, gpu.attribute(number).map(integer));
    }
    for (name, numbers) in TRIPLES {
        let values = numbers.map(|number| gpu.attribute(number));
        add(name, values.into_iter().collect::<Option<Vec<_>>>().map(AttributeValue::Integers));
    }
    let clock = |number| gpu.attribute(number).filter(|khz| *khz > 0);
    add("clock_rate_ghz", clock(CLOCK_KHZ).map(|khz| AttributeValue::Float((khz as f64 / 1e6) as f32)));
    let moved = clock(MEMORY_CLOCK_KHZ).zip(gpu.attribute(MEMORY_BUS_WIDTH));
    // Twice a cycle, and as many bits as the bus has.
    add("memory_bandwidth", moved.map(|(khz, bits)| integer(2 * khz * 1000 * bits / 8)));
    let has_fabric = major.is_some_and(|major| major >= LEAST_WITH_FABRIC);
    let fabric = bus_id.filter(|_| has_fabric).and_then(|bus_id| nvml::fabric_of(&bus_id));
    add("fabric_uuid", fabric.map(|fabric| text(format!("{}/{}", dashed(&fabric.cluster), fabric.clique))));
    description
}

/// Such as `4d4c1a7c-0c5d-4b8e-9a57-0e3a6a1f2b33`.
fn dashed(uuid: &[u8; 16]) -> String {
    let mut text = String::with_capacity(36);
    for (at, byte) in uuid.iter().enumerate() {
        text.push_str(if matches!(at, 4 | 6 | 8 | 10) { "-" } else { "" });
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

//! Descriptions of kernels that a platform loads: as data that can be serialized, or by a name or a type that is
//! registered.
//!
//! Nothing here loads or launches a kernel: backends do. XLA has the same descriptions; `purlin-xla-proto` reads and
//! writes its messages. Registries have a plain lock, which is held for a look-up and never while foreign code runs.
//!
//! | module | what it is |
//! |---|---|
//! | `compute_capability` | [`ComputeCapability`]: of a GPU, or of the code for one |
//! | `packed_args` | [`PackedKernelArgs`]: the bytes that a kernel receives |
//! | `packing_spec` | [`KernelArgsPackingSpec`]: how these bytes are made of addresses and constants |
//! | `symbol` | [`KernelSymbol`]: a kernel in this process; [`SymbolRegistry`]: its persistent name |
//! | `loader_spec` | [`KernelLoaderSpec`]: code, name, arguments |
//! | `registry` | [`KernelRegistry`]: objects of libraries for each platform |

mod compute_capability;
mod loader_spec;
mod packed_args;
mod packing_spec;
mod registry;
mod symbol;
#[cfg(test)]
mod tests;

pub use compute_capability::{ComputeCapability, DeviceCode, FeatureExtension};
pub use loader_spec::{KernelLoaderSpec, KernelPayload};
pub use packed_args::PackedKernelArgs;
pub use packing_spec::{KernelArgPackingRelocation, KernelArgPackingSpec, KernelArgsPackingSpec};
pub use registry::{KernelRegistry, RegistryKey};
pub use symbol::{KernelSymbol, SymbolRegistry};

/// The names of platforms, as errors show them.
fn listed<'a>(platforms: impl Iterator<Item = &'a String>) -> String {
    let names: Vec<&str> = platforms.map(String::as_str).collect();
    if names.is_empty() { "no platform".to_owned() } else { names.join(", ") }
}

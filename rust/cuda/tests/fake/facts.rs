//! What a GPU says of itself, and what it leaves out where the driver or NVML does not say.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

use purlin::backend::AttributeValue;
use purlin_fakecuda::{Nvml, Options, find, links, process};

use crate::stranger::Stranger;
use crate::support::*;

/// Name and value of each attribute of the first device of a new client.
fn facts() -> Vec<(String, AttributeValue)> {
    let client = client(1).unwrap();
    let of = client.devices()[0].attributes().iter().map(|fact| (fact.name.to_string(), fact.value.clone())).collect();
    shut_down(&client).unwrap();
    of
}

fn fact(name: &str) -> Option<String> {
    facts().into_iter().find(|(known, _)| known == name).map(|(_, value)| value.to_string())
}

#[test]
fn a_gpu_says_what_it_is_and_how_much_it_has() {
    let options = Options { driver_version: 12_040, ..Options::default() };
    process::run("facts::a_gpu_says_what_it_is_and_how_much_it_has", &options, || {
        Session::with(2, |session| {
            let said = |device: usize| {
                let device = &session.client.devices()[device];
                device.attributes().iter().map(ToString::to_string).collect::<Vec<_>>()
            };
            let expected = |number: u32| {
                [
                    "device_vendor=NVIDIA Corporation",
                    "compute_capability=9.0",
                    "driver_version=12.4",
                    &format!("uuid=GPU-7075726c-696e-2d66-616b-652d677075{number:02x}"),
                    &format!("pci_bus_id=0000:{:02X}:00.0", number + 1),
                    "device_memory_bytes=4294967296",
                    "core_count=132",
                    "threads_per_warp=32",
                    "threads_per_block_limit=1024",
                    "threads_per_core_limit=2048",
                    "registers_per_block_limit=65536",
                    "registers_per_core_limit=65536",
                    "shared_memory_per_block=49152",
                    "shared_memory_per_block_optin=232448",
                    "shared_memory_per_core=233472",
                    "l2_cache_size=52428800",
                    "memory_bus_width=5120",
                    "thread_dim_limit=[1024, 1024, 64]",
                    "block_dim_limit=[2147483647, 65535, 65535]",
                    "clock_rate_ghz=1.755",
                    "memory_bandwidth=3352320000000",
                ]
                .map(ToOwned::to_owned)
            };
            for device in [0, 1] {
                assert_eq!(said(device), expected(device as u32));
            }
        });
    });
}

/// Whichever GPUs there are: what each says belongs together, and is its own.
#[test]
fn every_gpu_says_which_it_is_and_what_its_driver_says_of_its_memory() {
    let name = "facts::every_gpu_says_which_it_is_and_what_its_driver_says_of_its_memory";
    process::run(name, &Options::default(), || {
        let count = gpus();
        Session::with(count, |session| {
            let fact = |device: usize, name: &str| {
                let attributes = session.client.devices()[device].attributes().to_vec();
                let found = attributes.into_iter().find(|fact| fact.name == name);
                found.unwrap_or_else(|| panic!("GPU {device} says no {name}")).value.to_string()
            };
            let number = |device, name: &str| fact(device, name).parse::<usize>().unwrap();
            for (name, length) in [("uuid", 40), ("pci_bus_id", 12)] {
                let all: BTreeSet<String> = (0..count).map(|device| fact(device, name)).collect();
                assert!(all.len() == count && all.iter().all(|one| one.len() == length), "{name} of each: {all:?}");
            }
            for device in 0..count {
                let (free, all) = (Stranger::on(device as i32).free_bytes(), number(device, "device_memory_bytes"));
                assert!(free > 0 && free <= all, "{free} of {all} bytes of GPU {device} are free");
                let [unasked, asked, in_core] =
                    ["block", "block_optin", "core"].map(|of| number(device, &format!("shared_memory_per_{of}")));
                assert!(unasked <= asked && asked <= in_core, "shared memory: {unasked}, {asked}, {in_core}");
                assert_eq!([number(device, "threads_per_warp"), number(device, "threads_per_block_limit")], [32, 1024]);
                assert!(number(device, "core_count") > 0);
            }
        });
    });
}

#[test]
fn what_the_driver_does_not_say_is_left_out() {
    process::run("facts::what_the_driver_does_not_say_is_left_out", &Options::default(), || {
        let driver = purlin_fakecuda::Driver::open();
        let all = facts().len();
        for (entry, lost) in [
            ("cuDeviceGetUuid_v2", &["uuid"][..]),
            ("cuDeviceGetPCIBusId", &["pci_bus_id"]),
            ("cuDeviceTotalMem_v2", &["device_memory_bytes"]),
        ] {
            driver.control.set_faults(&format!("{entry}:0:1"));
            let left = facts();
            assert!(left.len() == all - lost.len() && left.iter().all(|(name, _)| !lost.contains(&name.as_str())));
        }
        // All that is a number.
        driver.control.set_faults("cuDeviceGetAttribute:0:1");
        let names: Vec<_> = facts().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["device_vendor", "driver_version", "uuid", "pci_bus_id", "device_memory_bytes"]);
    });
}

/// A folder in which the loader finds NVML: a link to `target`.
fn nvml_at(name: &str, target: Option<PathBuf>) -> PathBuf {
    let folder = env::temp_dir().join(format!("purlin-nvml-{name}-{}", std::process::id()));
    links(&folder).unwrap();
    if let Some(target) = target {
        let link = folder.join("libnvidia-ml.so.1");
        fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink(target, link).unwrap();
    }
    folder
}

/// Runs `body` where the loader finds that NVML and devices of that capability are joined to a fabric.
#[track_caller]
fn with_nvml(test: &str, capability: (u32, u32), faults: &str, target: Option<PathBuf>, body: impl FnOnce()) {
    let fabric = purlin_fakecuda::Fabric { state: 3, status: 0, clique: 7 };
    let folder = nvml_at(test, target);
    let prepare = |command: &mut Command| {
        command.envs(Options { fabric, capability, ..Options::default() }.variables());
        command.env("PURLIN_FAKECUDA_FAULTS", faults).env("LD_LIBRARY_PATH", &folder);
    };
    process::run_with(&format!("facts::{test}"), prepare, body);
    fs::remove_dir_all(&folder).unwrap();
}

/// The cluster of the fake, and the clique.
const FABRIC: &str = "7075726c-696e-2d66-616b-652d6e766c00/7";

#[test]
fn a_gpu_in_a_fabric_of_nvlinks_says_which() {
    with_nvml("a_gpu_in_a_fabric_of_nvlinks_says_which", (9, 0), "", None, || {
        let nvml = Nvml::open();
        assert_eq!(fact("fabric_uuid").as_deref(), Some(FABRIC));
        // None, not begun, under way, and numbers that NVML has not yet.
        for state in [0, 1, 2, 4, 255] {
            nvml.set_fabric(&format!("{state}:0:7"));
            assert_eq!(fact("fabric_uuid"), None, "state {state}");
        }
        // Joining it has failed.
        for status in (1..30).chain([999, 4711, u32::MAX]) {
            nvml.set_fabric(&format!("3:{status}:7"));
            assert_eq!(fact("fabric_uuid"), None, "status {status}");
        }
        nvml.set_fabric("3:0:4294967295");
        assert_eq!(fact("fabric_uuid"), Some(FABRIC.replace("/7", "/4294967295")));
    });
}

#[test]
fn whatever_nvml_answers_a_client_is_made() {
    with_nvml("whatever_nvml_answers_a_client_is_made", (10, 3), "", None, || {
        let nvml = Nvml::open();
        for entry in ["nvmlDeviceGetHandleByPciBusId_v2", "nvmlDeviceGetGpuFabricInfoV"] {
            for code in (1..30).chain([999, 4711, u32::MAX]) {
                nvml.set_faults(&format!("{entry}:0:{code}"));
                assert_eq!(fact("fabric_uuid"), None, "{entry} answers {code}");
            }
        }
        nvml.set_faults("");
        assert_eq!(fact("fabric_uuid").as_deref(), Some(FABRIC));
    });
}

#[test]
fn an_nvml_that_does_not_begin_is_none() {
    with_nvml("an_nvml_that_does_not_begin_is_none", (9, 0), "nvmlInit_v2:0:9", None, || {
        assert_eq!(fact("fabric_uuid"), None);
        // It is asked once.
        Nvml::open().set_faults("");
        assert_eq!(fact("fabric_uuid"), None);
    });
}

#[test]
fn a_library_that_is_no_nvml_is_none() {
    // The fake driver, which has no entry point of NVML's.
    let test = "a_library_that_is_no_nvml_is_none";
    with_nvml(test, (9, 0), "", find("libcuda.so").ok(), || assert_eq!(fact("fabric_uuid"), None));
}

#[test]
fn gpus_that_have_no_fabric_are_not_asked_for_one() {
    with_nvml("gpus_that_have_no_fabric_are_not_asked_for_one", (8, 6), "", None, || {
        assert_eq!(fact("fabric_uuid"), None);
    });
}

#[test]
fn a_child_of_fork_asks_nvml_nothing() {
    with_nvml("a_child_of_fork_asks_nvml_nothing", (9, 0), "", None, || {
        let before = fact("fabric_uuid");
        assert_eq!(before.as_deref(), Some(FABRIC));
        forked("a child whose parent has used NVML", || assert!(client(1).is_err()));
        assert_eq!(fact("fabric_uuid"), before);
    });
}

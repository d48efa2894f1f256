//! Checks that this machine's processor has the features that the code was compiled for. XLA only logs a difference,
//! and a kernel then ends the process.

use std::arch::x86_64::{__cpuid, __cpuid_count};

use crate::fault::Reasons;
use crate::proto::TargetProto;

/// Adds a reason for another architecture, and one for each missing feature.
pub(super) fn check(target: &TargetProto, reasons: &mut Reasons) {
    if !target.triple.is_empty() && !target.triple.starts_with("x86_64-") {
        reasons.add(format!("code for {}", target.triple));
    }
    let missing: Vec<&str> =
        target.features.split(',').filter_map(|feature| feature.strip_prefix('+')).filter(|name| !has(name)).collect();
    if !missing.is_empty() {
        reasons.add(format!("code for a processor with {}, which this one lacks", missing.join(", ")));
    }
}

/// Features of every x86-64, and those whose instructions no compiler writes by itself: for the system, for caches, for
/// keys, random numbers and digests, for tiles and messages; preferences, too.
fn is_harmless(name: &str) -> bool {
    let is_listed = matches!(
        name,
        "64bit"
            | "cldemote"
            | "clflushopt"
            | "clwb"
            | "clzero"
            | "cmov"
            | "crc32"
            | "cx16"
            | "cx8"
            | "enqcmd"
            | "fsgsbase"
            | "fxsr"
            | "hreset"
            | "invpcid"
            | "kl"
            | "lwp"
            | "mmx"
            | "movdir64b"
            | "movdiri"
            | "movrs"
            | "mwaitx"
            | "pconfig"
            | "pku"
            | "prefetchi"
            | "prfchw"
            | "ptwrite"
            | "raoint"
            | "rdpid"
            | "rdpru"
            | "rdrnd"
            | "rdseed"
            | "rtm"
            | "sahf"
            | "serialize"
            | "sgx"
            | "sha"
            | "sha512"
            | "shstk"
            | "sm3"
            | "sm4"
            | "sse"
            | "sse2"
            | "tsxldtrk"
            | "uintr"
            | "usermsr"
            | "waitpkg"
            | "wbnoinvd"
            | "widekl"
            | "xsave"
            | "xsavec"
            | "xsaveopt"
            | "xsaves"
    );
    is_listed || name.starts_with("prefer-") || name.starts_with("amx-")
}

/// Whether the processor has LLVM's feature of that name, one of those that LLVM finds on a host
/// (its `sys::getHostCPUFeatures`). What is not known here counts as missing.
fn has(name: &str) -> bool {
    macro_rules! ask {
        ($($llvm:literal => $rust:tt),* $(,)?) => {
            match name {
                $($llvm => std::arch::is_x86_feature_detected!($rust),)*
                _ => is_harmless(name) || has_unnamed(name),
            }
        };
    }
    ask! {
        "aes" => "aes", "pclmul" => "pclmulqdq", "sse3" => "sse3", "ssse3" => "ssse3", "sse4.1" => "sse4.1",
        "sse4.2" => "sse4.2", "sse4a" => "sse4a", "popcnt" => "popcnt", "avx" => "avx", "avx2" => "avx2", "fma" => "fma",
        "f16c" => "f16c", "bmi" => "bmi1", "bmi2" => "bmi2", "lzcnt" => "lzcnt", "adx" => "adx", "movbe" => "movbe",
        "tbm" => "tbm", "avx512f" => "avx512f", "avx512cd" => "avx512cd", "avx512dq" => "avx512dq",
        "avx512bw" => "avx512bw", "avx512vl" => "avx512vl", "avx512ifma" => "avx512ifma", "avx512vbmi" => "avx512vbmi",
        "avx512vbmi2" => "avx512vbmi2", "avx512vnni" => "avx512vnni", "avx512bitalg" => "avx512bitalg",
        "avx512vpopcntdq" => "avx512vpopcntdq", "avx512bf16" => "avx512bf16", "avx512fp16" => "avx512fp16",
        "avx512vp2intersect" => "avx512vp2intersect", "gfni" => "gfni", "vaes" => "vaes", "vpclmulqdq" => "vpclmulqdq",
        "avxvnni" => "avxvnni", "avxifma" => "avxifma", "avxneconvert" => "avxneconvert",
        "avxvnniint8" => "avxvnniint8", "avxvnniint16" => "avxvnniint16",
    }
}

/// As [`has`], of features that the standard library has no name for; the bits are those of Intel's manual, volume 2A,
/// CPUID, and of AMD's, volume 3, appendix E. A virtual machine takes microseconds for each CPUID.
fn has_unnamed(name: &str) -> bool {
    let is_set = |word: u32, bit: u32| word >> bit & 1 == 1;
    let has_leaf = |leaf: u32| __cpuid(0).eax >= leaf;
    match name {
        "cmpccxadd" => has_leaf(7) && is_set(__cpuid_count(7, 1).eax, 7),
        "xop" => is_set(__cpuid(0x8000_0001).ecx, 11),
        "fma4" => is_set(__cpuid(0x8000_0001).ecx, 16),
        // The registers are those of AVX-512, which the system must save.
        "avx10.1" | "avx10.1-256" | "avx10.1-512" | "avx10.2" | "avx10.2-256" | "avx10.2-512" => {
            let is_there = has_leaf(0x24) && is_set(__cpuid_count(7, 1).edx, 19) && has("avx512f");
            let wanted = if name.starts_with("avx10.2") { 2 } else { 1 };
            is_there && __cpuid_count(0x24, 0).ebx & 0xff >= wanted
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_architectures_and_features_that_are_not_there_are_reasons() {
        let refusal = |triple: &str, features: &str| {
            let mut reasons = Reasons::default();
            check(&TargetProto { triple: triple.to_owned(), features: features.to_owned() }, &mut reasons);
            reasons.into_result("f").err().map(|error| error.message().to_owned())
        };
        assert_eq!(refusal("x86_64-unknown-linux-gnu", "+sse3,-avx512fp16,+prefer-256-bit"), None);
        assert!(refusal("aarch64-unknown-linux-gnu", "").unwrap().contains("code for aarch64"));
        let unknown = refusal("x86_64-unknown-linux-gnu", "+sse2,+avx99").unwrap();
        assert!(unknown.contains("code for a processor with avx99"), "{unknown}");
    }

    /// What Linux finds under these names, LLVM finds, too.
    #[test]
    fn what_this_processor_has_is_known() {
        let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap();
        let flags = cpuinfo.lines().find(|line| line.starts_with("flags")).unwrap();
        let same =
            |flag: &&str| flag.starts_with("avx") || matches!(*flag, "fma" | "f16c" | "gfni" | "vaes" | "bmi2" | "adx");
        let found: Vec<String> =
            flags.split_whitespace().filter(same).map(|flag| flag.replace("512_", "512")).collect();
        assert!(!found.is_empty(), "{flags}");
        for flag in found {
            let name = if flag == "avx_vnni" { "avxvnni" } else { &flag };
            assert!(has(name), "{name}");
        }
    }
}

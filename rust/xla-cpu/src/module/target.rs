//! Checks that this machine's processor has the features that the code was compiled for. XLA only logs a difference,
//! and a kernel then ends the process.

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
/// random numbers and digests; preferences, too.
fn is_harmless(name: &str) -> bool {
    const OTHERS: &str = "64bit clflushopt clwb clzero cmov crc32 cx16 cx8 fsgsbase fxsr invpcid mmx prfchw rdpid rdrnd \
                          rdseed sahf sha shstk sse sse2 xsave xsavec xsaveopt xsaves";
    name.starts_with("prefer-") || OTHERS.split(' ').any(|other| other == name)
}

/// Whether the processor has LLVM's feature of that name. What is not known here counts as missing.
fn has(name: &str) -> bool {
    macro_rules! ask {
        ($($llvm:literal => $rust:tt),* $(,)?) => {
            match name {
                $($llvm => std::arch::is_x86_feature_detected!($rust),)*
                _ => is_harmless(name),
            }
        };
    }
    ask! {
        "aes" => "aes", "pclmul" => "pclmulqdq", "sse3" => "sse3", "ssse3" => "ssse3", "sse4.1" => "sse4.1",
        "sse4.2" => "sse4.2", "sse4a" => "sse4a", "popcnt" => "popcnt", "avx" => "avx", "avx2" => "avx2", "fma" => "fma",
        "f16c" => "f16c", "bmi" => "bmi1", "bmi2" => "bmi2", "lzcnt" => "lzcnt", "adx" => "adx", "movbe" => "movbe",
        "avx512f" => "avx512f", "avx512cd" => "avx512cd", "avx512dq" => "avx512dq", "avx512bw" => "avx512bw",
        "avx512vl" => "avx512vl", "avx512ifma" => "avx512ifma", "avx512vbmi" => "avx512vbmi",
        "avx512vbmi2" => "avx512vbmi2", "avx512vnni" => "avx512vnni", "avx512bitalg" => "avx512bitalg",
        "avx512vpopcntdq" => "avx512vpopcntdq", "avx512bf16" => "avx512bf16", "avx512fp16" => "avx512fp16",
        "gfni" => "gfni", "vaes" => "vaes", "vpclmulqdq" => "vpclmulqdq", "avxvnni" => "avxvnni",
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
}

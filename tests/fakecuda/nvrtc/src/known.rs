//! The kernels of tests/ptx, as nvrtc 12.2 compiled them (scripts/ptx): what the fake answers for them runs.

macro_rules! known {
    ($($source:literal: $($target:literal $ptx:literal),*;)*) => {
        /// Source, target and PTX.
        const KNOWN: &[(&str, &str, &str)] = &[$($((
            include_str!(concat!("../../../ptx/kernels/", $source)),
            $target,
            include_str!(concat!("../../../ptx/kernels/", $ptx)),
        ),)*)*];
    };
}

known! {
    "fill.cu": "75" "fill.ptx";
    "gradient.cu": "75" "gradient.ptx";
    "halves.cu": "75" "halves.ptx", "80" "halves.80.ptx";
    "matmul.cu": "75" "matmul.ptx";
    "momentum.cu": "75" "momentum.ptx";
    "pack.cu": "75" "pack.ptx";
    "reduce.cu": "75" "reduce.ptx", "50" "reduce.50.ptx", "80" "reduce.80.ptx";
    "softmax.cu": "75" "softmax.ptx", "50" "softmax.50.ptx";
    "various.cu": "75" "various.ptx", "90" "various.90.ptx";
}

/// The PTX of that source for that target, if it is one of them.
pub(crate) fn ptx(text: &str, target: &str) -> Option<&'static str> {
    KNOWN.iter().find(|(source, for_target, _)| *source == text && *for_target == target).map(|(_, _, ptx)| *ptx)
}

//! The compute capability of an NVIDIA GPU, or the one that code was compiled for.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use purlin_base::Error;

/// A restriction of code to some GPUs, in exchange for features that only those have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FeatureExtension {
    /// No restriction.
    #[default]
    None,
    /// `a`: features of exactly this compute capability.
    Accelerated,
    /// `f`: features of the GPUs of this major version, from this minor version on.
    Family,
}

/// The two kinds of code for NVIDIA GPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeviceCode {
    /// Text that the driver compiles when it loads it, also for GPUs newer than the text.
    Ptx,
    /// Machine code. It runs on GPUs of one major version.
    Cubin,
}

/// A compute capability such as 9.0, or a target of compilation such as 9.0a.
///
/// There is no total order: code for 9.0a is newer than code for 8.0, but does not run on GPUs of 10.0. So the type has
/// no `Ord`. [`can_run_on`](Self::can_run_on) answers whether code runs on a GPU.
///
/// `PartialOrd` compares two targets of PTX. `a <= b` means that each GPU which runs PTX for `b` also runs PTX for `a`.
/// So, of several codes that run on one GPU, the greatest was compiled with the most knowledge of it.
///
/// ```
/// use purlin::program::{ComputeCapability, DeviceCode};
///
/// let gpu = ComputeCapability::new(10, 3);
/// let compiled: ComputeCapability = "9.0a".parse()?;
/// assert!(!compiled.can_run_on(DeviceCode::Ptx, gpu));
/// assert!(ComputeCapability::new(9, 0).can_run_on(DeviceCode::Ptx, gpu));
/// assert!(!ComputeCapability::new(9, 0).can_run_on(DeviceCode::Cubin, gpu));
/// assert_eq!(compiled.partial_cmp(&ComputeCapability::new(10, 0)), None);
/// # Ok::<(), purlin::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ComputeCapability {
    /// The generation of the architecture.
    pub major: u16,
    /// The version within the generation.
    pub minor: u16,
    /// The restriction of code. A GPU has none.
    pub feature_extension: FeatureExtension,
}

impl ComputeCapability {
    /// A compute capability without a feature extension.
    #[must_use]
    pub const fn new(major: u16, minor: u16) -> Self {
        Self { major, minor, feature_extension: FeatureExtension::None }
    }

    /// The same numbers with another feature extension.
    #[must_use]
    pub const fn with(self, feature_extension: FeatureExtension) -> Self {
        Self { feature_extension, ..self }
    }

    /// Whether code of this kind, compiled for `self`, can run on a GPU of compute capability `gpu`. PTX can run where
    /// the driver can compile it. A feature extension of `gpu` is ignored.
    ///
    /// | compiled for | PTX runs on | cubin runs on |
    /// |---|---|---|
    /// | 9.0 | 9.0 and all that are greater | 9.0 and greater minor versions |
    /// | 9.0f | 9.0 and greater minor versions | 9.0 and greater minor versions |
    /// | 9.0a | 9.0 | 9.0 |
    #[must_use]
    pub fn can_run_on(self, code: DeviceCode, gpu: Self) -> bool {
        let in_family = self.major == gpu.major && self.minor <= gpu.minor;
        match (self.feature_extension, code) {
            (FeatureExtension::None, DeviceCode::Ptx) => self.numbers() <= gpu.numbers(),
            (FeatureExtension::None, DeviceCode::Cubin) | (FeatureExtension::Family, _) => in_family,
            (FeatureExtension::Accelerated, _) => self.numbers() == gpu.numbers(),
        }
    }

    fn numbers(self) -> (u16, u16) {
        (self.major, self.minor)
    }

    /// Whether each GPU that runs PTX for `other` also runs PTX for `self`.
    fn runs_wherever(self, other: Self) -> bool {
        use FeatureExtension::{Accelerated, Family, None};
        match (self.feature_extension, other.feature_extension) {
            // `other` runs on one GPU alone.
            (_, Accelerated) => self.can_run_on(DeviceCode::Ptx, other),
            (None, _) | (Family, Family) => self.can_run_on(DeviceCode::Ptx, other),
            (Family, None) | (Accelerated, None | Family) => false,
        }
    }
}

impl PartialOrd for ComputeCapability {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        match (self.runs_wherever(*other), other.runs_wherever(*self)) {
            (true, true) => Some(Ordering::Equal),
            (true, false) => Some(Ordering::Less),
            (false, true) => Some(Ordering::Greater),
            (false, false) => None,
        }
    }
}

/// XLA's text: `9.0`, `9.0a`, `10.0f`.
impl fmt::Display for ComputeCapability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let suffix = match self.feature_extension {
            FeatureExtension::None => "",
            FeatureExtension::Accelerated => "a",
            FeatureExtension::Family => "f",
        };
        write!(f, "{}.{}{suffix}", self.major, self.minor)
    }
}

impl FromStr for ComputeCapability {
    type Err = Error;

    /// Parses XLA's text.
    ///
    /// # Errors
    /// `InvalidArgument`: the text is not two numbers with a dot between them, followed by `a`, `f` (of either case) or
    /// nothing.
    fn from_str(text: &str) -> Result<Self, Error> {
        let (numbers, feature_extension) = match (text.strip_suffix(['a', 'A']), text.strip_suffix(['f', 'F'])) {
            (Some(numbers), _) => (numbers, FeatureExtension::Accelerated),
            (None, Some(numbers)) => (numbers, FeatureExtension::Family),
            (None, None) => (text, FeatureExtension::None),
        };
        // u16::from_str() would also accept a sign.
        let number = |digits: &str| digits.parse().ok().filter(|_| digits.bytes().all(|byte| byte.is_ascii_digit()));
        let parsed = numbers.split_once('.').and_then(|(major, minor)| Some((number(major)?, number(minor)?)));
        let Some((major, minor)) = parsed else {
            let shown: String = text.chars().take(32).collect();
            return Err(Error::invalid_argument(format!(
                "a compute capability is written as 9.0, 9.0a or 10.0f, not as '{}'",
                shown.escape_debug()
            )));
        };
        Ok(Self { major, minor, feature_extension })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The compute capabilities of GPUs from 5.0 to 12.1.
    const GPUS: [(u16, u16); 21] = [
        (5, 0),
        (5, 2),
        (5, 3),
        (6, 0),
        (6, 1),
        (6, 2),
        (7, 0),
        (7, 2),
        (7, 5),
        (8, 0),
        (8, 6),
        (8, 7),
        (8, 8),
        (8, 9),
        (9, 0),
        (10, 0),
        (10, 1),
        (10, 3),
        (11, 0),
        (12, 0),
        (12, 1),
    ];

    fn gpus() -> impl Iterator<Item = ComputeCapability> {
        GPUS.into_iter().map(|(major, minor)| ComputeCapability::new(major, minor))
    }

    fn targets() -> Vec<ComputeCapability> {
        use FeatureExtension::{Accelerated, Family, None};
        [None, Accelerated, Family].into_iter().flat_map(|feature| gpus().map(move |gpu| gpu.with(feature))).collect()
    }

    /// The GPUs on which such code runs.
    fn runs_on(target: &str, code: DeviceCode) -> String {
        let target: ComputeCapability = target.parse().unwrap();
        let names = gpus().filter(|gpu| target.can_run_on(code, *gpu)).map(|gpu| gpu.to_string());
        names.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn code_runs_where_the_table_says() {
        // Compiled for, PTX runs on, cubin runs on.
        let table = [
            (
                "5.0",
                "5.0 5.2 5.3 6.0 6.1 6.2 7.0 7.2 7.5 8.0 8.6 8.7 8.8 8.9 9.0 10.0 10.1 10.3 11.0 12.0 12.1",
                "5.0 5.2 5.3",
            ),
            ("5.2", "5.2 5.3 6.0 6.1 6.2 7.0 7.2 7.5 8.0 8.6 8.7 8.8 8.9 9.0 10.0 10.1 10.3 11.0 12.0 12.1", "5.2 5.3"),
            ("5.3", "5.3 6.0 6.1 6.2 7.0 7.2 7.5 8.0 8.6 8.7 8.8 8.9 9.0 10.0 10.1 10.3 11.0 12.0 12.1", "5.3"),
            ("6.0", "6.0 6.1 6.2 7.0 7.2 7.5 8.0 8.6 8.7 8.8 8.9 9.0 10.0 10.1 10.3 11.0 12.0 12.1", "6.0 6.1 6.2"),
            ("6.1", "6.1 6.2 7.0 7.2 7.5 8.0 8.6 8.7 8.8 8.9 9.0 10.0 10.1 10.3 11.0 12.0 12.1", "6.1 6.2"),
            ("6.2", "6.2 7.0 7.2 7.5 8.0 8.6 8.7 8.8 8.9 9.0 10.0 10.1 10.3 11.0 12.0 12.1", "6.2"),
            ("7.0", "7.0 7.2 7.5 8.0 8.6 8.7 8.8 8.9 9.0 10.0 10.1 10.3 11.0 12.0 12.1", "7.0 7.2 7.5"),
            ("7.2", "7.2 7.5 8.0 8.6 8.7 8.8 8.9 9.0 10.0 10.1 10.3 11.0 12.0 12.1", "7.2 7.5"),
            ("7.5", "7.5 8.0 8.6 8.7 8.8 8.9 9.0 10.0 10.1 10.3 11.0 12.0 12.1", "7.5"),
            ("8.0", "8.0 8.6 8.7 8.8 8.9 9.0 10.0 10.1 10.3 11.0 12.0 12.1", "8.0 8.6 8.7 8.8 8.9"),
            ("8.6", "8.6 8.7 8.8 8.9 9.0 10.0 10.1 10.3 11.0 12.0 12.1", "8.6 8.7 8.8 8.9"),
            ("8.7", "8.7 8.8 8.9 9.0 10.0 10.1 10.3 11.0 12.0 12.1", "8.7 8.8 8.9"),
            ("8.8", "8.8 8.9 9.0 10.0 10.1 10.3 11.0 12.0 12.1", "8.8 8.9"),
            ("8.9", "8.9 9.0 10.0 10.1 10.3 11.0 12.0 12.1", "8.9"),
            ("9.0", "9.0 10.0 10.1 10.3 11.0 12.0 12.1", "9.0"),
            ("9.0a", "9.0", "9.0"),
            ("10.0", "10.0 10.1 10.3 11.0 12.0 12.1", "10.0 10.1 10.3"),
            ("10.0a", "10.0", "10.0"),
            ("10.0f", "10.0 10.1 10.3", "10.0 10.1 10.3"),
            ("10.1", "10.1 10.3 11.0 12.0 12.1", "10.1 10.3"),
            ("10.1a", "10.1", "10.1"),
            ("10.1f", "10.1 10.3", "10.1 10.3"),
            ("10.3", "10.3 11.0 12.0 12.1", "10.3"),
            ("10.3a", "10.3", "10.3"),
            ("10.3f", "10.3", "10.3"),
            ("11.0", "11.0 12.0 12.1", "11.0"),
            ("11.0a", "11.0", "11.0"),
            ("11.0f", "11.0", "11.0"),
            ("12.0", "12.0 12.1", "12.0 12.1"),
            ("12.0a", "12.0", "12.0"),
            ("12.0f", "12.0 12.1", "12.0 12.1"),
            ("12.1", "12.1", "12.1"),
            ("12.1a", "12.1", "12.1"),
            ("12.1f", "12.1", "12.1"),
        ];
        for (target, ptx, cubin) in table {
            assert_eq!(runs_on(target, DeviceCode::Ptx), ptx, "PTX for {target}");
            assert_eq!(runs_on(target, DeviceCode::Cubin), cubin, "cubin for {target}");
        }
    }

    #[test]
    fn a_suffix_of_the_gpu_means_nothing() {
        for (target, gpu) in targets().iter().flat_map(|target| targets().into_iter().map(move |gpu| (*target, gpu))) {
            for code in [DeviceCode::Ptx, DeviceCode::Cubin] {
                let bare = gpu.with(FeatureExtension::None);
                assert_eq!(target.can_run_on(code, gpu), target.can_run_on(code, bare), "{target} on {gpu}");
            }
        }
    }

    #[test]
    fn the_order_is_partial_and_is_that_of_can_run_on() {
        let all = targets();
        for &a in &all {
            assert_eq!(a.partial_cmp(&a), Some(Ordering::Equal));
            for &b in &all {
                assert_eq!(a <= b && b <= a, a == b, "{a} and {b}");
                assert_eq!(a.partial_cmp(&b), b.partial_cmp(&a).map(Ordering::reverse), "{a} and {b}");
                if a <= b {
                    let all_of = |gpu| !b.can_run_on(DeviceCode::Ptx, gpu) || a.can_run_on(DeviceCode::Ptx, gpu);
                    assert!(gpus().all(all_of), "{a} and {b}");
                }
                for &c in &all {
                    assert!(!(a <= b && b <= c) || a <= c, "{a}, {b}, {c}");
                }
            }
            // The strongest code for a GPU is that with its `a`: what is at most that runs there.
            for gpu in gpus() {
                let strongest = gpu.with(FeatureExtension::Accelerated);
                assert_eq!(a.can_run_on(DeviceCode::Ptx, gpu), a <= strongest, "{a} on {gpu}");
            }
        }
        let pair = |a: &str, b: &str| a.parse::<ComputeCapability>().unwrap().partial_cmp(&b.parse().unwrap());
        assert_eq!(pair("9.0", "9.0a"), Some(Ordering::Less));
        assert_eq!(pair("9.0a", "10.0"), None);
        assert_eq!(pair("10.0f", "10.3a"), Some(Ordering::Less));
        assert_eq!(pair("10.0f", "12.0"), None);
        assert_eq!(pair("12.1", "5.0"), Some(Ordering::Greater));
    }

    #[test]
    fn text_makes_the_journey_back_and_other_text_is_refused() {
        for target in targets() {
            assert_eq!(target.to_string().parse::<ComputeCapability>().unwrap(), target);
        }
        for (upper, lower) in [("9.0A", "9.0a"), ("10.3F", "10.3f")] {
            assert_eq!(upper.parse::<ComputeCapability>().unwrap().to_string(), lower);
        }
        for text in ["", "12", "9.0x", "9.0aa", "9.", ".0", "9.0.0", "+9.0", "9.-1", " 9.0", "9.65536", "a", "9.0f "] {
            let error = text.parse::<ComputeCapability>().unwrap_err();
            let expected = format!("a compute capability is written as 9.0, 9.0a or 10.0f, not as '{text}'");
            assert_eq!(error.message(), expected);
        }
    }
}

//! What the fake driver is told by the environment, read and written in one place.
//!
//! A test sets the [`variables`](Options::variables) of a process; the fakes read them once, by
//! [`Options::from_environment`], when the process first uses them. docs/testing.md has the table. A variable that is
//! not understood is an error with its name and value; the fake driver then answers 999 to `cuInit` and says it on
//! stderr.

#![deny(unsafe_code)]

mod fabric;
mod fault;
mod identity;
mod parse;

pub use fabric::Fabric;
pub use fault::{Effect, Fault};
pub use identity::Identity;
pub use parse::{delays, ignored, names, traps};

/// How many devices there are.
pub const DEVICES: &str = "PURLIN_FAKECUDA_DEVICES";
/// Bytes of memory of each device; K, M, G and T may follow.
pub const MEMORY: &str = "PURLIN_FAKECUDA_MEMORY";
/// Compute capability, such as 9.0.
pub const CAPABILITY: &str = "PURLIN_FAKECUDA_CAPABILITY";
/// What `cuDriverGetVersion` answers, such as 13000.
pub const DRIVER_VERSION: &str = "PURLIN_FAKECUDA_DRIVER_VERSION";
/// Groups that are not supported: `pools`, `peers`, `graphs`, separated by commas.
pub const WITHOUT: &str = "PURLIN_FAKECUDA_WITHOUT";
/// `STATE:STATUS:CLIQUE`: what NVML answers of the NVLink fabric of each device.
pub const FABRIC: &str = "PURLIN_FAKECUDA_FABRIC";
/// `SEED:MICROSECONDS`: each operation begins up to so much later.
pub const DELAYS: &str = "PURLIN_FAKECUDA_DELAYS";
/// [`Fault`]s, separated by commas.
pub const FAULTS: &str = "PURLIN_FAKECUDA_FAULTS";
/// `KERNEL[:CODE]`, separated by commas: these kernels trap.
pub const TRAPS: &str = "PURLIN_FAKECUDA_TRAPS";
/// Names of kernels that never end until they are told, separated by commas.
pub const ENDLESS: &str = "PURLIN_FAKECUDA_ENDLESS";
/// `on` or `off`.
pub const DETECTOR: &str = "PURLIN_FAKECUDA_DETECTOR";
/// `keep`, `print` or `abort`.
pub const ON_REPORT: &str = "PURLIN_FAKECUDA_ON_REPORT";
/// `all`, or labels separated by commas: waits of callers with these labels are no-ops.
pub const IGNORE_WAITS: &str = "PURLIN_FAKECUDA_IGNORE_WAITS";
/// `full` or `empty`.
pub const MODE: &str = "PURLIN_FAKECUDA_MODE";
/// Bytes of address space of each device; K, M, G and T may follow.
pub const ADDRESSES: &str = "PURLIN_FAKECUDA_ADDRESSES";

/// What happens to a report of the detector besides being kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnReport {
    /// Nothing.
    Keep,
    /// It is written to stderr.
    Print,
    /// It is written to stderr, and the process ends by `abort`.
    Abort,
}

/// Which `cuStreamWaitEvent` do nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Ignored {
    /// None.
    #[default]
    None,
    /// Each.
    All,
    /// Those of callers with these labels.
    Labels(Vec<String>),
}

/// See the crate. `..Options::default()` is two devices as an H100 has them, but for 4 GiB of memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// [`DEVICES`]; 0: `cuInit` answers 100.
    pub devices: usize,
    /// [`MEMORY`].
    pub memory_bytes: u64,
    /// [`CAPABILITY`], major and minor.
    pub capability: (u32, u32),
    /// [`DRIVER_VERSION`].
    pub driver_version: u32,
    /// [`WITHOUT`] names `pools`.
    pub without_pools: bool,
    /// [`WITHOUT`] names `peers`.
    pub without_peers: bool,
    /// [`WITHOUT`] names `graphs`.
    pub without_graphs: bool,
    /// [`FABRIC`]; state 0: there is none.
    pub fabric: Fabric,
    /// [`DELAYS`]: a seed, and the longest delay in microseconds.
    pub delays: Option<(u64, u64)>,
    /// [`FAULTS`].
    pub faults: Vec<Fault>,
    /// [`TRAPS`], with the code that the device has from then on.
    pub traps: Vec<(String, u32)>,
    /// [`ENDLESS`].
    pub endless: Vec<String>,
    /// [`DETECTOR`].
    pub detector: bool,
    /// [`ON_REPORT`].
    pub on_report: OnReport,
    /// [`IGNORE_WAITS`].
    pub ignored_waits: Ignored,
    /// [`MODE`] is `empty`: every operation is over at once, and no books are kept.
    pub empty: bool,
    /// [`ADDRESSES`].
    pub address_bytes: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            devices: 2,
            memory_bytes: 4 << 30,
            capability: (9, 0),
            driver_version: 13_000,
            without_pools: false,
            without_peers: false,
            without_graphs: false,
            fabric: Fabric::default(),
            delays: None,
            faults: Vec::new(),
            traps: Vec::new(),
            endless: Vec::new(),
            detector: true,
            on_report: OnReport::Keep,
            ignored_waits: Ignored::None,
            empty: false,
            // ThreadSanitizer's own map of memory is in the way of a terabyte.
            address_bytes: if cfg!(purlin_tsan) { 16 << 30 } else { 1 << 40 },
        }
    }
}

impl Options {
    /// What this process is told.
    ///
    /// # Errors
    /// A text that names the variable and its value.
    pub fn from_environment() -> Result<Self, String> {
        Self::from_variables(|name| std::env::var(name).ok())
    }

    /// What `variable` answers for each name, `None` being the default.
    ///
    /// # Errors
    /// A text that names the variable and its value.
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let mut options = Self::default();
        let read = |name: &'static str, take: &mut dyn FnMut(&str) -> Option<()>| match variable(name) {
            Some(text) => take(&text).ok_or_else(|| format!("{name} is '{text}', which is not understood")),
            None => Ok(()),
        };
        read(DEVICES, &mut |text| {
            text.parse().ok().filter(|count| *count <= 128).map(|count| options.devices = count)
        })?;
        read(MEMORY, &mut |text| parse::bytes(text).map(|bytes| options.memory_bytes = bytes))?;
        read(CAPABILITY, &mut |text| parse::capability(text).map(|capability| options.capability = capability))?;
        read(DRIVER_VERSION, &mut |text| text.parse().ok().map(|version| options.driver_version = version))?;
        read(WITHOUT, &mut |text| {
            for group in names(text) {
                match group.as_str() {
                    "pools" => options.without_pools = true,
                    "peers" => options.without_peers = true,
                    "graphs" => options.without_graphs = true,
                    _ => return None,
                }
            }
            Some(())
        })?;
        read(FABRIC, &mut |text| Fabric::parse(text).map(|fabric| options.fabric = fabric))?;
        read(DELAYS, &mut |text| delays(text).map(|delays| options.delays = delays))?;
        read(FAULTS, &mut |text| Fault::list(text).map(|faults| options.faults = faults))?;
        read(TRAPS, &mut |text| traps(text).map(|traps| options.traps = traps))?;
        read(ENDLESS, &mut |text| {
            options.endless = names(text);
            Some(())
        })?;
        read(DETECTOR, &mut |text| parse::either(text, "on", "off").map(|is_on| options.detector = is_on))?;
        read(ON_REPORT, &mut |text| parse::on_report(text).map(|on_report| options.on_report = on_report))?;
        read(IGNORE_WAITS, &mut |text| {
            options.ignored_waits = ignored(text);
            Some(())
        })?;
        read(MODE, &mut |text| parse::either(text, "empty", "full").map(|is_empty| options.empty = is_empty))?;
        read(ADDRESSES, &mut |text| parse::bytes(text).map(|bytes| options.address_bytes = bytes))?;
        Ok(options)
    }

    /// All variables, with the values that say these options.
    #[must_use]
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        let without = [(self.without_pools, "pools"), (self.without_peers, "peers"), (self.without_graphs, "graphs")];
        let without: Vec<_> = without.iter().filter(|(is, _)| *is).map(|(_, name)| *name).collect();
        let traps: Vec<_> = self.traps.iter().map(|(kernel, code)| format!("{kernel}:{code}")).collect();
        let faults: Vec<_> = self.faults.iter().map(Fault::to_string).collect();
        let (major, minor) = self.capability;
        vec![
            (DEVICES, self.devices.to_string()),
            (MEMORY, self.memory_bytes.to_string()),
            (CAPABILITY, format!("{major}.{minor}")),
            (DRIVER_VERSION, self.driver_version.to_string()),
            (WITHOUT, without.join(",")),
            (FABRIC, self.fabric.to_string()),
            (DELAYS, self.delays.map_or_else(String::new, |(seed, most)| format!("{seed}:{most}"))),
            (FAULTS, faults.join(",")),
            (TRAPS, traps.join(",")),
            (ENDLESS, self.endless.join(",")),
            (DETECTOR, if self.detector { "on" } else { "off" }.to_owned()),
            (ON_REPORT, parse::on_report_text(self.on_report).to_owned()),
            (IGNORE_WAITS, parse::ignored_text(&self.ignored_waits)),
            (MODE, if self.empty { "empty" } else { "full" }.to_owned()),
            (ADDRESSES, self.address_bytes.to_string()),
        ]
    }
}

#[cfg(test)]
mod tests;

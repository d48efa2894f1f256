//! The NVLink fabric of the fake devices, as text: `STATE:STATUS:CLIQUE`.

use std::fmt;

/// What NVML answers of a device's fabric, whatever its numbers mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fabric {
    /// `nvmlGpuFabricState_t`: 0 is that there is none, 3 that joining it is over.
    pub state: u8,
    /// `nvmlReturn_t`: how joining it has ended.
    pub status: u32,
    /// The part of the cluster in which the device is.
    pub clique: u32,
}

impl Fabric {
    /// The fabric that a text says.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(':');
        let (state, status) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let clique = words.next()?.parse().ok()?;
        words.next().is_none().then_some(Self { state, status, clique })
    }
}

impl fmt::Display for Fabric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.state, self.status, self.clique)
    }
}

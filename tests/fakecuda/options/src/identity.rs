//! What a fake device is called: the same for the fake driver and the fake NVML, so that one finds the other's devices.

/// The names of one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Its number, from 0.
    pub ordinal: usize,
}

impl Identity {
    /// The model.
    #[must_use]
    pub fn name(self) -> String {
        "Purlin fake GPU".to_owned()
    }

    /// Its place on the bus, which is its number, from 1.
    #[must_use]
    pub fn bus(self) -> u32 {
        u32::try_from(self.ordinal).unwrap_or(u32::MAX).saturating_add(1)
    }

    /// As CUDA writes it: `0000:01:00.0`.
    #[must_use]
    pub fn pci_bus_id(self) -> String {
        format!("0000:{:02X}:00.0", self.bus())
    }

    /// Sixteen bytes that no other fake device has.
    #[must_use]
    pub fn uuid(self) -> [u8; 16] {
        let mut uuid = *b"purlin-fake-gpu\0";
        uuid[15] = u8::try_from(self.ordinal).unwrap_or(u8::MAX);
        uuid
    }

    /// Sixteen bytes that all fake devices have in common: those of their NVLink fabric.
    #[must_use]
    pub fn cluster() -> [u8; 16] {
        *b"purlin-fake-nvl\0"
    }
}

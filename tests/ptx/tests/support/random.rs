//! Numbers that a seed decides.

/// splitmix64.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn any(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// One of `0..below`.
    pub(crate) fn below(&mut self, below: u64) -> u64 {
        self.any() % below
    }

    /// One of `least..=most`.
    pub(crate) fn within(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most - least + 1)
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| (self.any() >> 32) as u8).collect()
    }

    /// Between -1 and 1.
    pub(crate) fn unit(&mut self) -> f32 {
        (self.any() >> 40) as f32 / (1 << 23) as f32 - 1.0
    }

    /// Any bits at all: infinities, subnormal numbers, what is no number.
    pub(crate) fn any_f32(&mut self) -> f32 {
        f32::from_bits((self.any() >> 32) as u32)
    }

    pub(crate) fn units(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.unit()).collect()
    }
}

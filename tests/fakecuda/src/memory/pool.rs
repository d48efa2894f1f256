//! Pools: memory that a device lends out in the order of streams.
//!
//! `used <= reserved`. What is given back stays reserved until a synchronisation, when all above the release threshold
//! goes back to the device; or until the device needs it. A free counts at its call, since the streams order it.

use std::collections::HashMap;

use super::Memory;
use crate::boundary::Answer;
use crate::code::Code;

/// See the module.
#[derive(Default)]
pub(crate) struct Pool {
    pub(crate) device: usize,
    /// The device's own, which is never destroyed.
    pub(crate) is_default: bool,
    /// It goes with its last block.
    pub(crate) is_destroyed: bool,
    pub(crate) release_threshold: u64,
    /// 0: as the device has.
    pub(crate) most_bytes: u64,
    pub(crate) used: u64,
    pub(crate) used_high: u64,
    pub(crate) reserved: u64,
    pub(crate) reserved_high: u64,
    /// The three settings that let memory be used again; all are on.
    pub(crate) reuse: HashMap<u32, i32>,
    /// Other devices that may use its memory.
    pub(crate) access: HashMap<usize, bool>,
    pub(crate) blocks: usize,
}

impl Memory {
    /// The pool; INVALID_VALUE without one.
    pub(crate) fn pool(&mut self, handle: usize) -> Answer<&mut Pool> {
        self.pools.get_mut(&handle).filter(|pool| !pool.is_destroyed).ok_or(Code::INVALID_VALUE)
    }

    pub(super) fn take_from_pool(&mut self, handle: usize, size_bytes: u64) -> Answer {
        let pool = self.pool(handle)?;
        let device = pool.device;
        if pool.most_bytes > 0 && pool.used.saturating_add(size_bytes) > pool.most_bytes {
            return Err(Code::OUT_OF_MEMORY);
        }
        let missing = pool.used.saturating_add(size_bytes).saturating_sub(pool.reserved);
        if self.free_bytes(device) < missing {
            // What this pool holds unused is for this block; what others hold unused is the device's again.
            let others: Vec<usize> = self.pools.keys().copied().filter(|other| *other != handle).collect();
            others.into_iter().for_each(|other| self.trim(other, 0));
        }
        if self.free_bytes(device) < missing {
            return Err(Code::OUT_OF_MEMORY);
        }
        self.spaces[device].used_bytes += missing;
        let pool = self.pool(handle)?;
        pool.reserved += missing;
        pool.used += size_bytes;
        pool.blocks += 1;
        pool.used_high = pool.used_high.max(pool.used);
        pool.reserved_high = pool.reserved_high.max(pool.reserved);
        Ok(())
    }

    pub(super) fn give_to_pool(&mut self, handle: usize, size_bytes: u64) {
        if let Some(pool) = self.pools.get_mut(&handle) {
            pool.used = pool.used.saturating_sub(size_bytes);
            pool.blocks = pool.blocks.saturating_sub(1);
            self.drop_if_done(handle);
        }
    }

    /// Gives back what the pool does not use, but for `kept` bytes.
    pub(crate) fn trim(&mut self, handle: usize, kept: u64) {
        if let Some(pool) = self.pools.get_mut(&handle) {
            let (device, before) = (pool.device, pool.reserved);
            pool.reserved = pool.reserved.min(pool.used.max(kept));
            let given = before - pool.reserved;
            self.give_back(device, given);
        }
    }

    /// A synchronisation of the device: pools keep what their thresholds say.
    pub(crate) fn synchronised(&mut self, device: usize) {
        let of_device = self.pools.iter().filter(|(_, pool)| pool.device == device);
        let pools: Vec<(usize, u64)> = of_device.map(|(handle, pool)| (*handle, pool.release_threshold)).collect();
        pools.into_iter().for_each(|(handle, threshold)| self.trim(handle, threshold));
    }

    /// The pool takes no new blocks and goes with its last one.
    pub(crate) fn destroy_pool(&mut self, handle: usize) -> Answer {
        let pool = self.pool(handle)?;
        if pool.is_default {
            return Err(Code::INVALID_VALUE);
        }
        pool.is_destroyed = true;
        self.drop_if_done(handle);
        Ok(())
    }

    fn drop_if_done(&mut self, handle: usize) {
        if self.pools.get(&handle).is_some_and(|pool| pool.is_destroyed && pool.blocks == 0) {
            self.trim(handle, 0);
            self.pools.remove(&handle);
        }
    }
}

//! What programs ask of pools.

use crate::allocation::needs_pools;
use crate::boundary::{Answer, Call, In, Out};
use crate::code::Code;
use crate::context;
use crate::driver::Driver;
use crate::memory::pool::Pool;
use crate::state::State;

/// CUmemPoolProps as 13.4 has it: the size never changed, and what follows `most_bytes` is for chips.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Properties {
    kind: u32,
    handle_kinds: u32,
    location_kind: u32,
    location: i32,
    security: usize,
    most_bytes: usize,
    rest: [u8; 56],
}

/// CUmemAccessDesc.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct AccessDescription {
    location_kind: u32,
    location: i32,
    flags: u32,
}

// As a C compiler lays them out.
const _: () = assert!(size_of::<Properties>() == 88 && size_of::<AccessDescription>() == 12);

/// CU_MEM_ALLOCATION_TYPE_PINNED.
const PINNED: u32 = 1;
/// CU_MEM_LOCATION_TYPE_DEVICE.
const DEVICE: u32 = 1;
/// CU_MEM_ACCESS_FLAGS_PROT_NONE and _READWRITE; what is between is read-only, which devices do not have.
const NO_ACCESS: u32 = 0;
const FULL_ACCESS: u32 = 3;

/// Numbers of CUmemPool_attribute.
mod attribute {
    pub(super) const REUSE_FOLLOW_EVENTS: u32 = 1;
    pub(super) const REUSE_INTERNAL: u32 = 3;
    pub(super) const RELEASE_THRESHOLD: u32 = 4;
    pub(super) const RESERVED: u32 = 5;
    pub(super) const RESERVED_HIGH: u32 = 6;
    pub(super) const USED: u32 = 7;
    pub(super) const USED_HIGH: u32 = 8;
}

impl State {
    /// The device's own pool.
    pub(crate) fn default_pool(&mut self, driver: &Driver, device: usize) -> usize {
        let is_it = |pool: &Pool| pool.is_default && pool.device == device;
        if let Some((handle, _)) = self.memory.pools.iter().find(|(_, pool)| is_it(pool)) {
            return *handle;
        }
        let handle = driver.new_handle();
        self.memory.pools.insert(handle, Pool { device, is_default: true, ..Pool::default() });
        handle
    }

    /// The pool that allocations of the device come from that name none.
    pub(crate) fn current_pool(&mut self, driver: &Driver, device: usize) -> usize {
        match self.memory.current_pools.get(&device).copied() {
            // The device's own follows one that is destroyed.
            Some(pool) if self.memory.pool(pool).is_ok() => pool,
            _ => self.default_pool(driver, device),
        }
    }
}

/// From now on that one is the device's current pool, which must be of its memory.
pub(crate) fn set_current(call: &Call, device: usize, pool: usize) -> Answer {
    needs_pools(&call.driver.options)?;
    let mut state = call.driver.state.lock();
    if state.memory.pool(pool)?.device != device {
        return Err(Code::INVALID_VALUE);
    }
    state.memory.current_pools.insert(device, pool);
    Ok(())
}

pub(crate) fn default_of(call: &Call, device: usize) -> Answer<usize> {
    needs_pools(&call.driver.options)?;
    Ok(call.driver.state.lock().default_pool(call.driver, device))
}

pub(crate) fn create(call: &Call, properties: In<Properties>) -> Answer<usize> {
    needs_pools(&call.driver.options)?;
    let Properties { kind, handle_kinds, location_kind, location, most_bytes, .. } = properties.get()?;
    if kind != PINNED || location_kind != DEVICE {
        return Err(Code::INVALID_VALUE);
    }
    let device = context::ordinal(call.driver, location).map_err(|_| Code::INVALID_VALUE)?;
    if handle_kinds != 0 {
        return Err(Code::NOT_SUPPORTED);
    }
    call.driver.works(device)?;
    let handle = call.driver.new_handle();
    let pool = Pool { device, most_bytes: most_bytes as u64, ..Pool::default() };
    call.driver.state.lock().memory.pools.insert(handle, pool);
    Ok(handle)
}

pub(crate) fn destroy(call: &Call, pool: usize) -> Answer {
    call.driver.state.lock().memory.destroy_pool(pool)
}

pub(crate) fn trim(call: &Call, pool: usize, kept: usize) -> Answer {
    let mut state = call.driver.state.lock();
    state.memory.pool(pool)?;
    state.memory.trim(pool, kept as u64);
    Ok(())
}

/// The thresholds and counters are 64 bits wide, the switches 32.
pub(crate) fn get(call: &Call, pool: usize, number: u32, value: *mut u64) -> Answer {
    let mut state = call.driver.state.lock();
    let pool = state.memory.pool(pool)?;
    let wide = match number {
        attribute::RELEASE_THRESHOLD => pool.release_threshold,
        attribute::RESERVED => pool.reserved,
        attribute::RESERVED_HIGH => pool.reserved_high,
        attribute::USED => pool.used,
        attribute::USED_HIGH => pool.used_high,
        attribute::REUSE_FOLLOW_EVENTS..=attribute::REUSE_INTERNAL => {
            let is_on = pool.reuse.get(&number).copied().unwrap_or(1);
            return Out::new(value.cast::<i32>()).set(is_on);
        }
        _ => return Err(Code::INVALID_VALUE),
    };
    Out::new(value).set(wide)
}

pub(crate) fn set(call: &Call, pool: usize, number: u32, value: *const u64) -> Answer {
    let mut state = call.driver.state.lock();
    let pool = state.memory.pool(pool)?;
    match number {
        attribute::RELEASE_THRESHOLD => pool.release_threshold = In::new(value).get()?,
        // High-water marks may only be begun anew.
        attribute::RESERVED_HIGH if In::new(value).get()? == 0 => pool.reserved_high = pool.reserved,
        attribute::USED_HIGH if In::new(value).get()? == 0 => pool.used_high = pool.used,
        attribute::REUSE_FOLLOW_EVENTS..=attribute::REUSE_INTERNAL => {
            pool.reuse.insert(number, In::new(value.cast::<i32>()).get()?);
        }
        _ => return Err(Code::INVALID_VALUE),
    }
    Ok(())
}

/// Whether other devices may use the pool's memory.
pub(crate) fn set_access(call: &Call, pool: usize, map: In<AccessDescription>, count: usize) -> Answer {
    let mut state = call.driver.state.lock();
    let pool = state.memory.pool(pool)?;
    for AccessDescription { location_kind, location, flags } in map.get_all(count)? {
        let device = context::ordinal(call.driver, location).map_err(|_| Code::INVALID_DEVICE)?;
        if location_kind != DEVICE || !matches!(flags, NO_ACCESS | FULL_ACCESS) {
            return Err(Code::INVALID_VALUE);
        }
        if device == pool.device {
            // Its own device always may.
            if flags == NO_ACCESS {
                return Err(Code::INVALID_VALUE);
            }
            continue;
        }
        if call.driver.options.without_peers {
            return Err(Code::INVALID_DEVICE);
        }
        pool.access.insert(device, flags == FULL_ACCESS);
    }
    Ok(())
}

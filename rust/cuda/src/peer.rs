//! Access from one GPU to the memory of another.
//!
//! Copies between GPUs need none of this: without it, the driver takes them through the host. With it they go straight
//! from one to the other, and kernels may use the other's memory.

#![allow(unsafe_code, reason = "the driver is called")]

use cudarc::driver::sys::{
    CUmemAccess_flags, CUmemAccessDesc, CUmemLocation, CUmemLocation_st__bindgen_ty_1 as Which, CUmemLocationType,
};

use crate::api::ResultCode;
use crate::err;
use crate::gpu::{Gpu, Pool};

/// Lets each of the two use the memory of the other, where the hardware can. Where it cannot, or the driver refuses,
/// nothing is lost but time.
pub(crate) fn connect(one: &Gpu, other: &Gpu) {
    if one.ordinal != other.ordinal {
        allow(one, other);
        allow(other, one);
    }
}

/// Lets `user` use the memory of `owner`.
fn allow(user: &Gpu, owner: &Gpu) {
    let Some(peers) = user.api().peers else { return };
    let (Ok(_current), mut can) = (user.enter(), 0) else { return };
    // SAFETY: the driver writes a number.
    let code = unsafe { (peers.can_access)(&mut can, user.device(), owner.device()) };
    if code != 0 || can == 0 {
        return;
    }
    // SAFETY: the context is retained. It is never disabled: others in this process may have come to use it.
    match unsafe { (peers.enable)(owner.context(), 0) } {
        0 | err::PEER_ALREADY_ENABLED => {}
        // A code that stays breaks the GPU; any other means that copies go through the host.
        code => {
            user.failed(code, &format!("opening the memory of GPU {} to it", owner.ordinal));
            return;
        }
    }
    if let Some(pool) = owner.pool {
        let code = allow_pool(user, pool);
        if code != 0 {
            owner.failed(code, &format!("opening its pool to GPU {}", user.ordinal));
        }
    }
}

/// Memory of a pool has an access of its own.
fn allow_pool(user: &Gpu, pool: Pool) -> ResultCode {
    let which = Which { id: user.device() };
    let location = CUmemLocation { type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, __bindgen_anon_1: which };
    let access = CUmemAccessDesc { location, flags: CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
    // SAFETY: the handle is the driver's, and there is one description.
    unsafe { (pool.api.set_access)(pool.handle, &access, 1) }
}

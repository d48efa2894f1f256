//! What a staging pool takes from the system. A process of its own, because it looks at the whole process's memory.

use std::sync::Arc;

use purlin_device::{Client, ClientOptions, StagingOptions, StagingPool};
use purlin_host::HostBackend;

/// Bytes of this process that are in memory.
fn resident_bytes() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").expect("Linux has it");
    let pages: usize = pages.split(' ').nth(1).and_then(|text| text.parse().ok()).expect("the second number");
    pages * 4096
}

#[test]
fn a_pool_touches_only_what_was_lent_at_the_same_time() {
    const LEASE_BYTES: usize = 4 << 20;
    let options = ClientOptions { worker_count: 1, ..Default::default() };
    let client = Client::new(&options, Arc::new(HostBackend::new())).unwrap();
    let space = client.devices()[0].memory_space("pinned_host").unwrap();
    let options = StagingOptions { lease_bytes: LEASE_BYTES, lease_count: 128, ..Default::default() };
    let before = resident_bytes();
    let pool = StagingPool::new(&space, &options).unwrap();
    for _round in 0..10 {
        let leases = [(); 3].map(|()| pool.try_acquire().unwrap());
        assert!(leases.iter().all(|lease| lease.bytes().iter().step_by(4096).all(|&byte| byte == 0)));
    }
    let grown = resident_bytes().saturating_sub(before);
    // Huge pages and the allocator's own habits are more than three leases, and far less than all.
    assert!((3 * LEASE_BYTES..32 * LEASE_BYTES).contains(&grown), "{grown} bytes");
    // Each has its own bytes, also when all are lent.
    let mut leases: Vec<_> = (0..128).map(|_| pool.try_acquire().unwrap()).collect();
    for (number, lease) in (0_u8..).zip(&mut leases) {
        lease.bytes_mut()[..16].fill(number);
    }
    assert!((0_u8..).zip(&leases).all(|(number, lease)| lease.bytes()[..16] == [number; 16]));
    assert!(pool.try_acquire().is_err());
}

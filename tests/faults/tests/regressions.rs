//! What the walk has found, by name. A test here needs a system that refuses something; others stand beside the code.

#![cfg(purlin_faults)]

use purlin_base::Error;
use purlin_base::fault::{self, Plan, Site};
use purlin_device::RawBuffer;
use purlin_faults::run::{On, Run};
use purlin_faults::walk::Alone;

/// Once, each refused thread asked for the next, until the stack was full.
#[test]
fn idle_memory_without_a_thread_for_timers_stays_warm() -> Result<(), Error> {
    let _alone = Alone::new();
    fault::arm(Plan { site: Some(Site::SpawnTimers), nth: 1, and_all_after: true });
    let run = Run::new(On::Host);
    let space = run.space()?;
    for _ in 0..2 {
        drop(RawBuffer::allocate(&space, 4 << 20)?);
    }
    assert!(fault::disarm().failed >= 2, "each free asks for a timer once");
    assert!(space.stats().pool_bytes >= 4 << 20);
    space.trim();
    assert_eq!(space.stats().pool_bytes, 0);
    Ok(())
}

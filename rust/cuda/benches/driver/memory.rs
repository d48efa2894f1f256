//! Memory that is given and taken back.

use crate::bench::Bench;
use crate::column::Column;
use crate::row::Row;

/// Where both sides have memory at hand.
pub(crate) fn rows(bench: &Bench, add: &mut dyn FnMut(Row<'_>)) {
    const COUNT: u32 = 16;
    let Some(pools) = bench.bare.pools() else { return };
    let size = 1 << 20;
    let ours = Column::of_many("purlin", COUNT, || drop(bench.block("device", size)));
    let mut pool = std::ptr::null_mut();
    // SAFETY: the driver writes a handle; the context is that of its first device.
    assert_eq!(unsafe { (pools.default_of)(&mut pool, 0) }, 0, "CUDA's driver has no pool");
    let driver = Column::of_many("driver, in a stream's order", COUNT, || {
        let (mut at, stream) = (0, bench.bare.stream());
        // SAFETY: the driver writes an address to a place of this frame, and nobody uses the memory.
        let codes = unsafe { ((pools.allocate)(&mut at, size, pool, stream), (pools.free)(at, stream)) };
        assert_eq!(codes, (0, 0), "CUDA's driver has no memory");
    });
    add(Row::new("allocate and free 1 MiB", ours).goal(0.2).beside(driver));
    bench.bare.synchronize();
}

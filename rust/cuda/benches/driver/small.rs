//! Copies of eight bytes, of which only what surrounds them takes time.

use crate::bench::{Bench, address, bytes, copy, done, pattern, write};
use crate::column::Column;
use crate::row::Row;

const SIZE: usize = 8;

/// Each is waited for.
pub(crate) fn rows(bench: &Bench, add: &mut dyn FnMut(Row<'_>)) {
    let (bare, data) = (&bench.bare, pattern(SIZE));
    let (host, device) = (bench.block("pinned_host", SIZE), bench.block("device", SIZE));
    let (at, first) = (address(&device), host.host_pointer().expect("memory of the host").as_ptr());
    write(&host, &data);
    // SAFETY: the blocks are these rows', and turns wait.
    let driver = || unsafe { bare.to_device(at, first, SIZE) };
    let row = |name: &str, ours| {
        // SAFETY: as above.
        unsafe { Row::new(name, ours).goal(1.3).fills(bare, at, &data) }.beside_all(bare.waited(driver))
    };
    add(row("pinned to device, 8 B", Column::new("purlin", || done(&copy(&host, &device)))));
    // SAFETY: as above.
    let ours = || done(&unsafe { device.copy_from_host(data.as_ptr(), 0, SIZE, &[]) });
    add(row("any memory to device, 8 B, beside pinned", Column::new("purlin", ours)));

    done(&copy(&host, &device));
    // SAFETY: as above.
    let driver = || unsafe { bare.to_host(first, at, SIZE, false) };
    let (clear, check) = (|| write(&host, &[0; SIZE]), || bytes(&host) == data);
    let row = Row::new("device to pinned, 8 B", Column::new("purlin", || done(&copy(&device, &host))));
    add(row.checked(clear, check).beside_all(bare.waited(driver)));
}

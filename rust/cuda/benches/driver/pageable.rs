//! Large copies of memory that nothing has pinned, beside our own of pinned memory and beside the driver's.

use crate::bench::{Bench, address, bytes, copy, done, pattern, write};
use crate::column::Column;
use crate::row::Row;

/// Two rows each way, because there are two goals.
pub(crate) fn rows(bench: &Bench, add: &mut dyn FnMut(Row<'_>)) {
    to_device(bench, 64, add);
    to_host(bench, 64, add);
}

fn to_device(bench: &Bench, mib: usize, add: &mut dyn FnMut(Row<'_>)) {
    let (bare, size) = (&bench.bare, bench.mib(mib));
    let (pinned, to, data) = (bench.block("pinned_host", size), bench.block("device", size), pattern(size));
    write(&pinned, &data);
    let at = address(&to);
    // SAFETY: the blocks and bytes are this row's, and turns wait.
    let ours = || Column::new("purlin", || done(&unsafe { to.copy_from_host(data.as_ptr(), 0, size, &[]) }));
    // SAFETY: as above.
    let driver = || unsafe { bare.to_device(at, data.as_ptr(), size) };
    let row = |beside: &str| {
        let name = format!("pageable to device, {mib} MiB, beside {beside}");
        // SAFETY: as above.
        unsafe { Row::new(name, ours()).bytes(size).fills(bare, at, &data) }
    };
    add(row("pinned").goal(1.3).beside(Column::new("purlin, pinned", || done(&copy(&pinned, &to)))));
    add(row("the driver").goal(0.5).beside_all(bare.waited(driver)));
}

fn to_host(bench: &Bench, mib: usize, add: &mut dyn FnMut(Row<'_>)) {
    let (bare, size) = (&bench.bare, bench.mib(mib));
    let (pinned, from, data) = (bench.block("pinned_host", size), bench.block("device", size), pattern(size));
    write(&pinned, &data);
    done(&copy(&pinned, &from));
    let mut memory = vec![0_u8; size];
    let (at, first) = (address(&from), memory.as_mut_ptr());
    // SAFETY: the blocks and bytes are this row's, and turns wait.
    let ours = || Column::new("purlin", || done(&unsafe { from.copy_to_host(first, 0, size, &[]) }));
    // SAFETY: as above.
    let driver = || unsafe { bare.to_host(first, at, size, false) };
    let clear = || {
        write(&pinned, &vec![0; size]);
        // SAFETY: as above.
        unsafe { first.write_bytes(0, size) };
    };
    // Each column writes one of the two.
    // SAFETY: as above.
    let check = || unsafe { std::slice::from_raw_parts(first, size) } == data || bytes(&pinned) == data;
    let row = |beside: &str| {
        let name = format!("device to pageable, {mib} MiB, beside {beside}");
        Row::new(name, ours()).bytes(size).checked(clear, check)
    };
    add(row("pinned").goal(1.3).beside(Column::new("purlin, pinned", || done(&copy(&from, &pinned)))));
    add(row("the driver").goal(0.5).beside_all(bare.waited(driver)));
}

//! Large copies of memory that the GPU reaches by itself: pinned memory, and its own.

use crate::bench::{Bench, address, bytes, copy, done, pattern, write};
use crate::column::Column;
use crate::row::Row;

/// All rows of copies that take longer than what surrounds them.
pub(crate) fn rows(bench: &Bench, add: &mut dyn FnMut(Row<'_>)) {
    for mib in [16, 64] {
        to_device(bench, mib, add);
        to_host(bench, mib, add);
    }
    within(bench, 64, add);
    both_ways(bench, 64, add);
}

fn to_device(bench: &Bench, mib: usize, add: &mut dyn FnMut(Row<'_>)) {
    let (bare, size) = (&bench.bare, bench.mib(mib));
    let (from, to, data) = (bench.block("pinned_host", size), bench.block("device", size), pattern(size));
    write(&from, &data);
    let at = address(&to);
    // SAFETY: the blocks are this row's, and turns wait.
    let driver = || unsafe { bare.to_device(at, bytes(&from).as_ptr(), size) };
    let ours = Column::new("purlin", || done(&copy(&from, &to)));
    let row = Row::new(format!("pinned to device, {mib} MiB"), ours).bytes(size).goal(1.02);
    // SAFETY: as above.
    let row = unsafe { row.fills(bare, at, &data) };
    add(row.beside_all(bare.waited(driver)));
}

fn to_host(bench: &Bench, mib: usize, add: &mut dyn FnMut(Row<'_>)) {
    let (bare, size) = (&bench.bare, bench.mib(mib));
    let (from, to, data) = (bench.block("device", size), bench.block("pinned_host", size), pattern(size));
    write(&to, &data);
    done(&copy(&to, &from));
    let (at, first) = (address(&from), to.host_pointer().expect("memory of the host").as_ptr());
    // SAFETY: the blocks are this row's, and turns wait.
    let driver = || unsafe { bare.to_host(first, at, size, false) };
    let ours = Column::new("purlin", || done(&copy(&from, &to)));
    let (clear, check) = (|| write(&to, &vec![0; size]), || bytes(&to) == data);
    let row = Row::new(format!("device to pinned, {mib} MiB"), ours).bytes(size).goal(1.02).checked(clear, check);
    add(row.beside_all(bare.waited(driver)));
}

fn within(bench: &Bench, mib: usize, add: &mut dyn FnMut(Row<'_>)) {
    let (bare, size) = (&bench.bare, bench.mib(mib));
    let (from, to, data) = (bench.block("device", size), bench.block("device", size), pattern(size));
    let host = bench.block("pinned_host", size);
    write(&host, &data);
    done(&copy(&host, &from));
    let (source, at) = (address(&from), address(&to));
    // SAFETY: the blocks are this row's, and turns wait.
    let driver = || unsafe { bare.within(at, source, size) };
    let ours = Column::new("purlin", || done(&copy(&from, &to)));
    let row = Row::new(format!("device to itself, {mib} MiB"), ours).bytes(size).goal(1.02);
    // SAFETY: as above.
    let row = unsafe { row.fills(bare, at, &data) };
    add(row.beside_all(bare.waited(driver)));
}

fn both_ways(bench: &Bench, mib: usize, add: &mut dyn FnMut(Row<'_>)) {
    let (bare, size) = (&bench.bare, bench.mib(mib));
    let host = [bench.block("pinned_host", size), bench.block("pinned_host", size)];
    let device = [bench.block("device", size), bench.block("device", size)];
    let data = pattern(size);
    write(&host[0], &data);
    done(&copy(&host[0], &device[1]));
    let at = [address(&device[0]), address(&device[1])];
    let first = host[1].host_pointer().expect("memory of the host").as_ptr();
    let ours = Column::new("purlin", || {
        let there = [copy(&host[0], &device[0]), copy(&device[1], &host[1])];
        there.iter().for_each(done);
    });
    let driver = Column::new("driver, two streams waited", || {
        // SAFETY: the blocks are this row's, and turns wait.
        unsafe {
            bare.to_device(at[0], bytes(&host[0]).as_ptr(), size);
            bare.to_host(first, at[1], size, true);
        }
        bare.synchronize();
    });
    let clear = || {
        // SAFETY: as above.
        unsafe { bare.clear(at[0], size) };
        write(&host[1], &vec![0; size]);
    };
    // SAFETY: as above.
    let check = || unsafe { bare.read(at[0], size) } == data && bytes(&host[1]) == data;
    let name = format!("both ways at once, pinned, {mib} MiB each");
    add(Row::new(name, ours).bytes(2 * size).beside(driver).checked(clear, check));
}

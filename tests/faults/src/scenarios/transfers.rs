//! Transfer managers.

#![allow(unsafe_code, reason = "host memory is read by address")]

use std::sync::Arc;

use purlin_array::{DType, HostArray, Layout, Shape};
use purlin_async::EventPromise;
use purlin_base::Error;
use purlin_device::{AllocOptions, AsyncHostToDeviceTransferManager, TransferSpec};

use crate::run::Run;

const HALF: usize = 70_000;

fn spec(size_bytes: usize) -> Result<TransferSpec, Error> {
    Ok(TransferSpec { shape: Shape::new(DType::U8, &[i64::try_from(size_bytes).unwrap_or(1)])?, layout: None })
}

fn send(run: &Arc<Run>, manager: &AsyncHostToDeviceTransferManager, index: usize) {
    for (offset_bytes, is_last) in [(HALF, false), (0, true)] {
        let (data, on_done) = (run.bytes(HALF), Some(run.on_done("on_done of a piece")));
        // SAFETY: the run keeps the bytes until its end, after all its events, and nothing writes them.
        let sent =
            unsafe { manager.transfer_raw_data_to_sub_buffer(index, data, offset_bytes, HALF, is_last, on_done) };
        run.see("transfer of a piece", sent);
    }
}

pub(super) fn pieces(run: &Arc<Run>) -> Result<(), Error> {
    let space = run.space()?;
    let specs = [spec(2 * HALF)?, spec(2 * HALF)?, spec(100)?];
    let manager = AsyncHostToDeviceTransferManager::new(&specs, &space, &AllocOptions::default())?;
    let buffers = [manager.retrieve_buffer(0)?, manager.retrieve_buffer(1)?, manager.retrieve_buffer(2)?];
    let copy = run.see("copy of what is on its way", buffers[0].copy_to_memory_space(&space));
    send(run, &manager, 0);
    send(run, &manager, 1);
    let (data, on_done) = (run.bytes(100), Some(run.on_done("on_done of a buffer")));
    // SAFETY: as in send().
    run.see("transfer of a buffer", unsafe { manager.transfer_raw_data_to_buffer(2, data, 100, on_done) });
    run.watch("all", &manager.ready_event());
    for buffer in &buffers {
        run.watch("ready", &buffer.ready_event());
        run.waiter(&buffer.ready_event());
    }
    if let Some(copy) = copy {
        run.watch("copied", &copy.ready_event());
    }
    drop(manager);
    Ok(())
}

pub(super) fn whole_arrays(run: &Arc<Run>) -> Result<(), Error> {
    let space = run.space()?;
    let shape = Shape::new(DType::F32, &[200, 100])?;
    let specs = [TransferSpec { shape: shape.clone(), layout: Some(Layout::new(&[0, 1])?) }];
    let manager = AsyncHostToDeviceTransferManager::new(&specs, &space, &AllocOptions::default())?;
    let buffer = manager.retrieve_buffer(0)?;
    let array = HostArray::new(&shape, None)?;
    let data = run.bytes(shape.size_bytes());
    // SAFETY: the run keeps the bytes until its end, after all its events, and nothing writes them. On the null backend
    // there is nothing to write them to.
    run.see("transfer_array", unsafe { manager.transfer_array(0, data, &array, Some(run.on_done("on_done"))) });
    run.watch("ready", &buffer.ready_event());
    Ok(())
}

pub(super) fn memory_later(run: &Arc<Run>) -> Result<(), Error> {
    let space = run.space()?;
    let gate = EventPromise::new(c"gate");
    let options = AllocOptions { after: Some(gate.event()), ..Default::default() };
    let manager = AsyncHostToDeviceTransferManager::new(&[spec(2 * HALF)?], &space, &options)?;
    let buffer = manager.retrieve_buffer(0)?;
    send(run, &manager, 0);
    gate.set_ready();
    run.watch("ready", &buffer.ready_event());
    Ok(())
}

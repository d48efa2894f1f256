//! Arrays.

#![allow(unsafe_code, reason = "host memory is read and written by address")]

use std::sync::Arc;

use purlin_array::{DType, HostArray, Layout, Shape};
use purlin_async::EventPromise;
use purlin_base::Error;
use purlin_device::{AllocOptions, Buffer, ClientOptions, FromHostOptions, HostBufferSemantics, HostShard};

use crate::run::Run;

/// More than any backend copies inside the call.
const LARGE: usize = 40_000;

fn floats(count: usize) -> Result<(Shape, HostArray), Error> {
    let shape = Shape::new(DType::F32, &[i64::try_from(count).unwrap_or(1)])?;
    let array = HostArray::new(&shape, None)?;
    Ok((shape, array))
}

fn from_host(run: &Arc<Run>, semantics: HostBufferSemantics, options: ClientOptions) -> Result<(), Error> {
    let client = run.client_with(options, run.on.backend())?;
    let space = client.devices()[0].default_memory_space();
    for count in [100, LARGE] {
        let (_, array) = floats(count)?;
        let data = run.bytes(count * 4);
        let options = FromHostOptions { semantics, on_done: Some(run.on_done("on_done")), ..Default::default() };
        // SAFETY: the run keeps the bytes until its end, after all its events, and nothing writes them.
        let made = unsafe { Buffer::from_host_array(data, &array, &space, options) };
        let Some((buffer, _)) = run.see("from_host_array", made) else { continue };
        run.watch("ready", &buffer.ready_event());
        run.waiter(&buffer.ready_event());
        if run.on.has_bytes() {
            run.see("to_vec", buffer.to_vec::<f32>());
        }
    }
    Ok(())
}

pub(super) fn only_during_call(run: &Arc<Run>) -> Result<(), Error> {
    from_host(run, HostBufferSemantics::ImmutableOnlyDuringCall, ClientOptions::default())
}

pub(super) fn until_transfer_completes(run: &Arc<Run>) -> Result<(), Error> {
    from_host(run, HostBufferSemantics::ImmutableUntilTransferCompletes, ClientOptions::default())
}

pub(super) fn immutable_zero_copy(run: &Arc<Run>) -> Result<(), Error> {
    from_host(run, HostBufferSemantics::ImmutableZeroCopy, ClientOptions::default())
}

pub(super) fn mutable_zero_copy(run: &Arc<Run>) -> Result<(), Error> {
    from_host(run, HostBufferSemantics::MutableZeroCopy, ClientOptions::default())
}

pub(super) fn frozen(run: &Arc<Run>) -> Result<(), Error> {
    let options = ClientOptions { check_frozen_memory: true, ..Default::default() };
    from_host(run, HostBufferSemantics::ImmutableUntilTransferCompletes, options)
}

pub(super) fn large(run: &Arc<Run>) -> Result<(), Error> {
    let space = run.space()?;
    let values = vec![1.5_f32; LARGE];
    let buffer = Buffer::from_slice(&values, &[LARGE as i64], &space)?;
    let back = run.bytes(LARGE * 4);
    // SAFETY: the run keeps the bytes until its end, after all its events.
    run.watch("copy_to_host", &unsafe { buffer.copy_to_host(back, LARGE * 4) });
    run.see("to_vec", buffer.to_vec::<f32>());
    Ok(())
}

pub(super) fn without_bytes(run: &Arc<Run>) -> Result<(), Error> {
    let space = run.space()?;
    let (shape, _) = floats(10)?;
    let gate = EventPromise::new(c"gate");
    let token = run.see("token", Buffer::token(&space, &gate.event()));
    let empty = run.see("uninitialized", Buffer::uninitialized(&shape, None, &space, &AllocOptions::default()));
    for buffer in token.iter().chain(&empty) {
        run.watch("ready", &buffer.ready_event());
        if let Some(copy) = run.see("copy", buffer.copy_to_memory_space(&space)) {
            run.watch("copied", &copy.ready_event());
        }
    }
    // What is made of a failed array fails like it: that is no fault's.
    let failed = Buffer::error(Error::aborted("planned"), &shape, &space);
    if let Some(copy) = run.see("copy of a failed array", failed.copy_to_memory_space(&space)) {
        let error = copy.ready_event().wait().expect_err("it has failed");
        assert_eq!(error.message(), "planned");
    }
    gate.set_ready();
    Ok(())
}

pub(super) fn strided(run: &Arc<Run>) -> Result<(), Error> {
    each_strided(run, |buffer, array| {
        let back = run.bytes(buffer.size_bytes());
        // SAFETY: the run keeps the bytes until its end, after all its events.
        run.watch("copy_to_host_array", &unsafe { buffer.copy_to_host_array(back, array) });
        run.see("to_vec", buffer.to_vec::<f32>());
    })
}

/// Where the backend takes no strided arrays; this one has no bytes to read, either.
pub(super) fn strided_through_a_block(run: &Arc<Run>) -> Result<(), Error> {
    each_strided(run, |_buffer, _array| ())
}

fn each_strided(run: &Arc<Run>, then: impl Fn(&Buffer, &HostArray)) -> Result<(), Error> {
    let client = run.client()?;
    let space = client.devices()[0].default_memory_space();
    for rows in [8_i64, 200] {
        let shape = Shape::new(DType::F32, &[rows, 100])?;
        // Transposed on the host.
        let array = HostArray::new(&shape, Some(&[4, rows * 4]))?;
        let data = run.bytes(shape.size_bytes());
        for semantics in
            [HostBufferSemantics::ImmutableOnlyDuringCall, HostBufferSemantics::ImmutableUntilTransferCompletes]
        {
            let layout = Some(Layout::new(&[1, 0])?);
            let options =
                FromHostOptions { semantics, layout, on_done: Some(run.on_done("on_done")), ..Default::default() };
            // SAFETY: the run keeps the bytes until its end, after all its events, and nothing writes them.
            let made = unsafe { Buffer::from_host_array(data, &array, &space, options) };
            let Some((buffer, _)) = run.see("from_host_array", made) else { continue };
            run.watch("ready", &buffer.ready_event());
            then(&buffer, &array);
        }
    }
    Ok(())
}

pub(super) fn raw_reads(run: &Arc<Run>) -> Result<(), Error> {
    let space = run.space()?;
    let buffer = Buffer::from_slice(&[1_i32, 2, 3, 4], &[4], &space)?;
    let back = run.bytes(16);
    // SAFETY: the run keeps the bytes until its end, after all its events.
    run.watch("copy_raw_to_host", &unsafe { buffer.copy_raw_to_host(back, 4, 8) });
    let sizes = Buffer::from_slice(&[7_i32, 8, 2], &[3], &space)?;
    let dynamic = Shape::with_dynamic(DType::S32, &[2], &[true])?;
    let memory = sizes.release().ok_or_else(|| Error::internal("it was there"))?.0;
    let buffer = Buffer::from_raw(memory, &dynamic, None, &sizes.ready_event())?;
    assert!(run.see("logical_dims", buffer.logical_dims()).is_none_or(|dims| dims == [2]));
    Ok(())
}

pub(super) fn shards(run: &Arc<Run>) -> Result<(), Error> {
    let client = run.client()?;
    let spaces: Vec<_> = client.devices().iter().map(purlin_device::Device::default_memory_space).collect();
    let (_, array) = floats(LARGE)?;
    for semantics in
        [HostBufferSemantics::ImmutableOnlyDuringCall, HostBufferSemantics::ImmutableUntilTransferCompletes]
    {
        let data = run.bytes(LARGE * 4);
        let shard = |memory_space| HostShard { data, array: &array, layout: None, memory_space };
        let shards: Vec<HostShard<'_>> = spaces.iter().map(shard).collect();
        let (options, on_done) = (AllocOptions::default(), Some(run.on_done("on_done of shards")));
        // SAFETY: the run keeps the bytes until its end, after all its events, and nothing writes them.
        let made = unsafe { Buffer::from_host_shards(&shards, semantics, &options, on_done) };
        for buffer in run.see("from_host_shards", made).into_iter().flatten() {
            run.watch("ready", &buffer.ready_event());
        }
    }
    Ok(())
}

pub(super) fn copies(run: &Arc<Run>) -> Result<(), Error> {
    let client = run.client()?;
    let devices = client.devices();
    for count in [10, LARGE] {
        let (shape, _) = floats(count)?;
        let source = Buffer::from_slice(&vec![1.0_f32; count], shape.dims(), &devices[0].default_memory_space())?;
        let pinned = devices[0].memory_space("pinned_host")?;
        let there = run.see("copy_to_memory_space", source.copy_to_memory_space(&pinned));
        let other = there.and_then(|there| run.see("copy_to_device", there.copy_to_device(&devices[1])));
        if let Some(other) = other {
            run.watch("copied", &other.ready_event());
        }
        run.watch("ready", &source.ready_event());
    }
    Ok(())
}

pub(super) fn copy_into(run: &Arc<Run>) -> Result<(), Error> {
    let space = run.space()?;
    for count in [10, LARGE] {
        let (shape, _) = floats(count)?;
        let source = Buffer::from_slice(&vec![1.0_f32; count], shape.dims(), &space)?;
        let given = Buffer::uninitialized(&shape, None, &space, &AllocOptions::default())?;
        if let Some(copy) = run.see("copy_into", source.copy_into(&given)) {
            run.watch("copied", &copy.ready_event());
        }
    }
    Ok(())
}

pub(super) fn provided_later(run: &Arc<Run>) -> Result<(), Error> {
    let space = run.space()?;
    let (shape, _) = floats(LARGE)?;
    let (buffer, promise) = Buffer::channel(&shape, None, &space)?;
    let copy = run.see("copy of what is not there", buffer.copy_to_memory_space(&space));
    let source = run.see("source", Buffer::from_slice(&vec![1.0_f32; LARGE], shape.dims(), &space));
    match source {
        Some(source) => {
            if let Err((error, promise)) = promise.fulfil(&source) {
                run.meet("fulfil", error.clone());
                promise.fail(error);
            }
        }
        None => promise.fail(Error::aborted("no source")),
    }
    run.watch("ready", &buffer.ready_event());
    if let Some(copy) = copy {
        run.watch("copied", &copy.ready_event());
    }
    Ok(())
}

pub(super) fn donation(run: &Arc<Run>) -> Result<(), Error> {
    let space = run.space()?;
    let (shape, _) = floats(LARGE)?;
    let buffer = Buffer::from_slice(&vec![1.0_f32; LARGE], shape.dims(), &space)?;
    drop(run.see("donate", buffer.donate(c"given back")));
    let copy = run.see("copy", buffer.copy_to_memory_space(&space));
    let gate = EventPromise::new(c"gate");
    let after = run.see("donate_after", buffer.donate_after(&gate.event()));
    gate.set_ready();
    let other = Shape::new(DType::S32, shape.dims())?;
    if let Some(cast) = after.and_then(|after| run.see("bitcast", after.bitcast(&other, None))) {
        run.watch("ready", &cast.ready_event());
        if let Some(donation) = run.see("donate", cast.donate(c"confirmed")) {
            run.watch("free", &donation.free_event());
            drop(donation.confirm());
        }
    }
    if let Some(copy) = copy {
        run.watch("copied", &copy.ready_event());
    }
    Ok(())
}

pub(super) fn holds(run: &Arc<Run>) -> Result<(), Error> {
    let space = run.space()?;
    let buffer = Buffer::from_slice(&vec![1.0_f32; LARGE], &[LARGE as i64], &space)?;
    let gate = EventPromise::new(c"use");
    if let Some(hold) = run.see("usage_hold", buffer.usage_hold()) {
        hold.release_after(gate.event());
    }
    let reference = run.see("external_reference", buffer.external_reference());
    let copy = run.see("copy", buffer.copy_to_memory_space(&space));
    buffer.delete();
    drop(reference);
    gate.set_ready();
    if let Some(copy) = copy {
        run.watch("copied", &copy.ready_event());
        run.watch("released", &copy.release().ok_or_else(|| Error::internal("it was there"))?.1);
    }
    Ok(())
}

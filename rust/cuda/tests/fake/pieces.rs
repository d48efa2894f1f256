//! The part of the scenario under faults that goes by pieces: up by a transfer whose pieces are in flight together, and
//! down through leases of pinned memory.

#![allow(unsafe_code, reason = "memory is read by address")]

use std::sync::mpsc::{self, RecvTimeoutError};

use purlin::{
    AllocOptions, AsyncHostToDeviceTransferManager, Client, DType, Error, OnDone, Shape, StagingCopier, StagingOptions,
    StagingPool, TransferSpec,
};

use crate::support::*;

/// Up and down. What was wrong with the bytes.
pub(crate) fn work(client: &Client, bytes: usize) -> Result<Option<String>, Error> {
    let device = &client.devices()[0];
    let data = pattern(bytes, 11);
    let spec = TransferSpec { shape: Shape::new(DType::U8, &[bytes as i64])?, layout: None };
    let manager =
        AsyncHostToDeviceTransferManager::new(&[spec], &device.default_memory_space(), &AllocOptions::default())?;
    let array = manager.retrieve_buffer(0)?;
    let (told, outcomes) = mpsc::channel();
    let half = bytes / 2;
    let sent = [(0, half, false), (half, bytes, true)].map(|(begin, end, is_last)| {
        let (told, piece) = (told.clone(), &data[begin..end]);
        let on_done: OnDone = Box::new(move |outcome| told.send(outcome).expect("the pieces are waited for"));
        // SAFETY: the bytes stay until each piece was told, or its closure dropped.
        unsafe {
            manager.transfer_raw_data_to_sub_buffer(0, piece.as_ptr(), begin, piece.len(), is_last, Some(on_done))
        }
    });
    drop((told, manager));
    let outcomes: Vec<_> = std::iter::from_fn(|| match outcomes.recv_timeout(LIMIT) {
        Err(RecvTimeoutError::Timeout) => panic!("a piece was not told"),
        outcome => outcome.ok(),
    })
    .collect();
    let arrived = outcome(&array.ready_event());
    if sent.iter().chain(&outcomes).all(Result::is_ok) && arrived.is_err() {
        return Ok(Some(format!("no error of a piece, and one of their array: {arrived:?}")));
    }
    arrived?;
    if array.to_vec::<u8>()? != data {
        return Ok(Some("no error, and wrong bytes, of an array in pieces".to_owned()));
    }

    let there = block(client, 0, "device", bytes)?;
    write(&there, &data)?;
    let options = StagingOptions { lease_bytes: bytes / 3, lease_count: 2, ..Default::default() };
    let copier = StagingCopier::new(&StagingPool::new(&device.memory_space("pinned_host")?, &options)?);
    let (told, pieces) = mpsc::channel();
    // SAFETY: nothing writes the block any more.
    let read = unsafe {
        copier.read(&there, &[], move |piece| {
            told.send(piece.map(|piece| piece.bytes().to_vec())).expect("the pieces are waited for");
        })
    };
    outcome(&read)?;
    let pieces = pieces.into_iter().collect::<Result<Vec<_>, _>>()?;
    Ok((pieces.concat() != data).then(|| "no error, and wrong bytes, of pieces that were read".to_owned()))
}

//! Clients, and their end.

#![allow(unsafe_code, reason = "host memory is read by address")]

use std::sync::Arc;
use std::time::Duration;

use purlin_async::{Event, ShutdownMode, ShutdownOptions};
use purlin_base::{Error, StatusCode};
use purlin_device::{Client, ClientOptions, RawBuffer};

use crate::run::Run;

const LARGE: usize = 100_000;

pub(super) fn come_and_go(run: &Arc<Run>) -> Result<(), Error> {
    for worker_count in 1..4 {
        let options = ClientOptions { device_count: 3, worker_count, ..Default::default() };
        let Some(client) = run.see("Client::new", Client::new(&options, run.on.backend())) else { continue };
        let space = client.devices()[2].default_memory_space();
        drop(client);
        drop(run.see("allocate", RawBuffer::allocate(&space, 100)));
    }
    Ok(())
}

fn large_copies(run: &Arc<Run>, client: &Client) -> Result<Vec<Event>, Error> {
    let space = client.devices()[0].default_memory_space();
    let mut copies = Vec::new();
    for _ in 0..4 {
        let buffer = RawBuffer::allocate(&space, LARGE)?;
        let data = run.bytes(LARGE);
        // SAFETY: the run keeps the bytes until its end, after all its events, and nothing writes them.
        copies.push(unsafe { buffer.copy_from_host(data, 0, LARGE, &[]) });
    }
    Ok(copies)
}

pub(super) fn goes_while_it_works(run: &Arc<Run>) -> Result<(), Error> {
    let options = ClientOptions { worker_count: 2, ..Default::default() };
    let client = Client::new(&options, run.on.backend())?;
    let copies = large_copies(run, &client);
    drop(client);
    for copy in copies? {
        run.watch("copy", &copy);
    }
    Ok(())
}

pub(super) fn shutdown(run: &Arc<Run>) -> Result<(), Error> {
    let mode = ShutdownMode::CancelPending;
    for options in [
        ShutdownOptions::default(),
        ShutdownOptions { mode, timeout: None },
        ShutdownOptions { mode, timeout: Some(Duration::from_secs(60)) },
    ] {
        let client = Client::new(&ClientOptions { worker_count: 2, ..Default::default() }, run.on.backend())?;
        let copies = large_copies(run, &client);
        run.see("shutdown", client.shutdown(options));
        for copy in copies? {
            // What is cancelled by the shutdown is no fault's.
            match copy.wait_for(Duration::from_secs(30)) {
                Err(error) if error.code() != StatusCode::Cancelled => run.meet("copy", error),
                _ => run.watch("copy", &Event::ready()),
            }
            assert!(copy.is_ready(), "a copy that a shutdown forgot");
        }
    }
    Ok(())
}

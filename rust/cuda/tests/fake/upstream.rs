//! Defects that neighbouring systems had on their streams (`tests/behaviours/cuda.md`), each as it would show here.

use std::sync::Arc;
use std::thread;

use purlin::{RawBuffer, StatusCode};
use purlin_fakecuda::{Options, process};

use crate::stranger::{Stranger, Told, import};
use crate::support::*;

const BYTES: usize = 4096;

#[test]
fn a_copy_that_fails_is_over_when_nothing_of_it_runs() {
    process::run("upstream::a_copy_that_fails_is_over_when_nothing_of_it_runs", &Options::default(), || {
        Session::with(1, |session| {
            // Three parts, of which the last is refused while none of the others has begun.
            let (bytes, device) = (12 << 20, session.block(0, "device", 12 << 20));
            let source = session.block(0, "unpinned_host", bytes);
            write(&source, &pattern(bytes, 1)).unwrap();
            session.driver.control.reset_calls();
            session.driver.control.set_faults("cuMemcpyHtoDAsync_v2:3:1");
            let held = Held::new(&session.driver);
            let up = copy(&source, &device, &[]);
            until(
                || "nothing waits for the parts that go on".to_owned(),
                || session.driver.control.calls("cuStreamSynchronize") > 0,
            );
            assert!(!up.is_ready(), "parts of it are still to come");
            drop(held);
            assert_eq!(outcome(&up).unwrap_err().code(), StatusCode::InvalidArgument);
            session.driver.control.set_faults("");
            // Its memory may be freed, or written, at once: the detector would tell.
            write(&device, &pattern(bytes, 2)).unwrap();
            assert_eq!(read(&device).unwrap(), pattern(bytes, 2));
        });
    });
}

#[test]
fn an_error_that_does_not_stay_is_told_to_one_copy_alone() {
    process::run("upstream::an_error_that_does_not_stay_is_told_to_one_copy_alone", &Options::default(), || {
        Session::with(1, |session| {
            let block = |kind| session.block(0, kind, BYTES);
            let (from, failing, well) = (block("pinned_host"), block("device"), block("device"));
            write(&from, &pattern(BYTES, 3)).unwrap();
            for code in [1, 2, 400, 9999] {
                for entry in ["cuMemcpyHtoDAsync_v2", "cuEventRecord"] {
                    session.driver.control.reset_calls();
                    session.driver.control.set_faults(&format!("{entry}:1:{code}"));
                    // Both on one stream, in this order; the second waits for what the first waits for, not for it.
                    let held = purlin::EventPromise::new(c"gate");
                    let gate = held.event();
                    let first = copy(&from, &failing, std::slice::from_ref(&gate));
                    let second = copy(&from, &well, std::slice::from_ref(&gate));
                    let third = copy(&failing, &well, &[first.clone(), second.clone()]);
                    held.set_ready();
                    let error = outcome(&first).unwrap_err();
                    assert!(error.message().contains(&code.to_string()), "{error}");
                    outcome(&second).unwrap();
                    assert_eq!(read(&well).unwrap(), pattern(BYTES, 3));
                    assert_eq!(outcome(&third).unwrap_err(), error, "what needs its bytes has its error");
                    outcome(&copy(&from, &failing, &[])).unwrap();
                    session.driver.control.set_faults("");
                }
            }
        });
    });
}

#[test]
fn what_is_refused_is_told_once_and_lets_go() {
    process::run("upstream::what_is_refused_is_told_once_and_lets_go", &Options::default(), || {
        for fault in [
            "cuMemcpyDtoDAsync_v2:1:1",
            "cuMemcpyDtoDAsync_v2:1:9999",
            "cuEventRecord:1:1",
            "cuStreamWaitEvent:1:1",
            "cuMemcpyDtoDAsync_v2:1:700:sticky",
        ] {
            forked(fault, || {
                let session = Session::new(1);
                let (stranger, told) = (Stranger::on(0), Told::default());
                let memory = stranger.allocate(BYTES);
                let (from, first) = (session.block(0, "pinned_host", BYTES), session.block(0, "device", BYTES));
                write(&from, &pattern(BYTES, 4)).unwrap();
                let to: RawBuffer = import(&session, (0, "device"), memory, BYTES, &told).unwrap();
                let held = Held::new(&session.driver);
                let up = copy(&from, &first, &[]);
                session.driver.control.reset_calls();
                session.driver.control.set_faults(fault);
                let entry = fault.split(':').next().unwrap();
                // A caller that is refused waits for what its stream has, and so for the upload.
                let refused = thread::scope(|scope| {
                    let call = scope.spawn(|| copy(&first, &to, std::slice::from_ref(&up)));
                    until(|| format!("{entry} is not called"), || session.driver.control.calls(entry) > 0);
                    drop(held);
                    call.join().unwrap()
                });
                let ends = Arc::new(std::sync::atomic::AtomicUsize::new(0));
                let count = Arc::clone(&ends);
                refused.on_ready(move |_| _ = count.fetch_add(1, std::sync::atomic::Ordering::AcqRel));
                drop(to);
                outcome(&refused).unwrap_err();
                assert_eq!(told.count(), 1, "{fault}");
                _ = outcome(&up);
                session.driver.control.set_faults("");
                // Its accounting has no operation too many, and none too few.
                shut_down(&session.client).unwrap();
                assert_eq!((ends.load(std::sync::atomic::Ordering::Acquire), told.count()), (1, 1), "{fault}");
                drop((from, first, refused, up));
                let Session { driver, client } = session;
                drop(client);
                until(|| format!("{fault}: threads are left: {:?}", threads()), || threads().is_empty());
                if fault.ends_with(":sticky") {
                    only_what_broke_is_reported(fault, &driver);
                }
            });
        }
    });
}

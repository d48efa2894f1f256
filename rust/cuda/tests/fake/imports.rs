//! Memory that others own: what each space takes, what it says of the rest, and when owners are told.

use purlin::StatusCode;
use purlin_fakecuda::{Options, process};

use crate::stranger::{Stranger, Told, import};
use crate::support::*;

const BYTES: usize = 4096;

/// It is refused, with words and the address; nobody is told, and nothing is kept.
#[track_caller]
fn is_refused(session: &Session, space: (usize, &str), address: *mut u8, bytes: usize, words: &[&str]) {
    let told = Told::default();
    let error = import(session, space, address, bytes, &told).unwrap_err();
    assert_eq!(error.code(), StatusCode::InvalidArgument, "{error}");
    for words in words.iter().copied().chain([format!("{:#x}", address.addr()).as_str(), &bytes.to_string()]) {
        assert!(error.message().contains(words), "'{words}' in: {error}");
    }
    assert_eq!((told.count(), told.is_forgotten()), (0, true));
}

fn two() -> Options {
    Options { devices: 2, ..Options::default() }
}

/// A page of ordinary memory.
#[repr(align(4096))]
struct Page([u8; BYTES]);

#[test]
fn what_is_no_memory_of_the_gpu_is_refused_with_what_it_is() {
    process::run("imports::what_is_no_memory_of_the_gpu_is_refused_with_what_it_is", &two(), || {
        Session::with(2, |session| {
            let stranger = Stranger::on(0);
            let here = stranger.allocate(BYTES);
            let (pinned, mut page) = (stranger.allocate_host(BYTES), Box::new(Page([0; BYTES])));
            let device = (0, "device");
            let unknown = "memory that CUDA's driver does not know: the host's, or freed";
            for (address, words) in [
                (page.0.as_mut_ptr(), unknown),
                (pinned, "page-locked memory of the host"),
                (std::ptr::null_mut(), "not null"),
                (std::ptr::without_provenance_mut(0x1000), unknown),
            ] {
                is_refused(session, device, address, 64, &[words]);
            }
            is_refused(session, device, here, BYTES + 1, &["the last is", unknown]);
            if gpus() > 1 {
                let other = Stranger::on(1);
                let there = other.allocate(BYTES);
                is_refused(session, device, there, 64, &["memory of GPU 1"]);
                is_refused(session, (1, "device"), here, 64, &["memory of GPU 0", "of GPU 1"]);
                other.free(there);
            }
            stranger.free(here);
            is_refused(session, device, here, 64, &["this is", unknown]);
            stranger.free_host(pinned);
        });
    });
}

#[test]
fn memory_of_a_gpu_is_refused_by_spaces_of_the_host() {
    process::run("imports::memory_of_a_gpu_is_refused_by_spaces_of_the_host", &two(), || {
        Session::with(2, |session| {
            let strangers: Vec<_> = (0..gpus().min(2) as i32).map(Stranger::on).collect();
            let (pinned, mut page) = (strangers[0].allocate_host(BYTES), Box::new(Page([0; BYTES])));
            let of_client = session.block(0, "pinned_host", BYTES).host_pointer().unwrap().as_ptr();
            for (stranger, gpu) in strangers.iter().zip(["memory of GPU 0", "memory of GPU 1"]) {
                let address = stranger.allocate(BYTES);
                for space in [(0, "pinned_host"), (0, "unpinned_host"), (1, "pinned_host"), (1, "unpinned_host")] {
                    is_refused(session, space, address, BYTES, &[gpu, &format!("'{}'", space.1)]);
                    // What the host reaches is taken.
                    for address in [pinned, page.0.as_mut_ptr(), of_client] {
                        let told = Told::default();
                        let buffer = import(session, space, address, BYTES, &told).unwrap();
                        write(&buffer, &pattern(BYTES, space.0)).unwrap();
                        assert_eq!(buffer.host_pointer().unwrap().as_ptr(), address);
                        assert_eq!(read(&buffer).unwrap(), pattern(BYTES, space.0));
                        drop(buffer);
                        assert_eq!(told.count(), 1);
                    }
                }
                stranger.free(address);
            }
            strangers[0].free_host(pinned);
        });
    });
}

#[test]
fn an_import_asks_what_the_memory_is_and_its_end_asks_nothing() {
    process::run("imports::an_import_asks_what_the_memory_is_and_its_end_asks_nothing", &two(), || {
        Session::with(1, |session| {
            let (stranger, told) = (Stranger::on(0), Told::default());
            let (address, own) = (stranger.allocate(BYTES), session.block(0, "pinned_host", BYTES));
            let context = ["cuCtxGetCurrent", "cuCtxSetCurrent"];
            session.driver.control.reset_calls();
            let buffer = import(session, (0, "device"), address, BYTES, &told).unwrap();
            assert_eq!(session.calls(&context), [("cuPointerGetAttributes", 2)].into());
            session.driver.control.reset_calls();
            drop(buffer);
            // Pinned memory of this client is known.
            let own = own.host_pointer().unwrap().as_ptr();
            drop(import(session, (0, "pinned_host"), own, BYTES, &told).unwrap());
            assert_eq!((session.calls(&[]), told.count()), ([].into(), 2));
            stranger.free(address);
        });
    });
}

#[test]
fn an_owner_is_told_when_the_gpu_has_left_its_memory() {
    process::run("imports::an_owner_is_told_when_the_gpu_has_left_its_memory", &two(), || {
        Session::with(2, |session| {
            let (stranger, told) = (Stranger::on(0), Told::default());
            let address = stranger.allocate(BYTES);
            let [from, ours, there] = [(0, "pinned_host"), (0, "device"), (1, "device")]
                .map(|(device, kind)| session.block(device, kind, BYTES));
            let back = session.block(1, "pinned_host", BYTES);
            write(&from, &pattern(BYTES, 3)).unwrap();
            let buffer = import(session, (0, "device"), address, BYTES, &told).unwrap();
            let held = Held::new(&session.driver);
            let up = copy(&from, &buffer, &[]);
            let within = copy(&buffer, &ours, std::slice::from_ref(&up));
            let across = copy(&buffer, &there, std::slice::from_ref(&up));
            let down = copy(&there, &back, std::slice::from_ref(&across));
            drop(buffer);
            assert!(told.count() == 0 || !session.driver.control.is_fake(), "the GPU has not begun");
            drop(held);
            for event in [&within, &across, &down] {
                outcome(event).unwrap();
            }
            assert_eq!(told.count(), 1);
            // The driver's detector would tell of a free that some copy is not behind.
            stranger.free(address);
            assert_eq!(read(&back).unwrap(), pattern(BYTES, 3));
        });
    });
}

#[test]
fn a_gpu_that_breaks_tells_owners_once_and_stops_no_import_of_the_host() {
    let name = "imports::a_gpu_that_breaks_tells_owners_once_and_stops_no_import_of_the_host";
    process::run(name, &Options::default(), || {
        let session = Session::new(1);
        let (stranger, told, mut page) = (Stranger::on(0), Told::default(), Box::new(Page([0; BYTES])));
        let address = stranger.allocate(BYTES);
        let from = session.block(0, "pinned_host", BYTES);
        let buffer = import(&session, (0, "device"), address, BYTES, &told).unwrap();
        write(&from, &pattern(BYTES, 4)).unwrap();
        let held = Held::new(&session.driver);
        let up = copy(&from, &buffer, &[]);
        drop(buffer);
        session.driver.control.break_device(0, 719);
        drop(held);
        let reason = outcome(&up).unwrap_err();
        assert!(reason.message().contains("GPU 0 is broken"), "{reason}");
        assert_eq!(told.count(), 1);
        session.driver.control.reset_calls();
        assert_eq!(import(&session, (0, "device"), address, BYTES, &told).unwrap_err(), reason);
        for kind in ["pinned_host", "unpinned_host"] {
            let taken = import(&session, (0, kind), page.0.as_mut_ptr(), BYTES, &told).unwrap();
            write(&taken, &pattern(BYTES, 5)).unwrap();
        }
        assert_eq!((session.calls(&[]), told.count()), ([].into(), 3));
        assert_eq!(page.0[..], pattern(BYTES, 5));
        drop((from, up));
        stranger.gives_up(address);
        session.end_broken();
    });
}

#[test]
fn a_child_of_fork_imports_no_memory_of_a_gpu() {
    process::run("imports::a_child_of_fork_imports_no_memory_of_a_gpu", &Options::default(), || {
        Session::with(1, |session| {
            let (stranger, told) = (Stranger::on(0), Told::default());
            let address = stranger.allocate(BYTES);
            forked("a child that imports", || {
                session.driver.control.reset_calls();
                let error = import(session, (0, "device"), address, BYTES, &told).unwrap_err();
                assert_eq!(error.code(), StatusCode::FailedPrecondition, "{error}");
                session.called(&[("cuPointerGetAttributes", 0), ("cuCtxSetCurrent", 0)], "a child");
            });
            stranger.free(address);
        });
    });
}

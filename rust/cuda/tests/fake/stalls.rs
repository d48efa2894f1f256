//! Stall reports: what is in flight on a GPU, on which stream, and behind what.

#![allow(unsafe_code, reason = "copies are made by address")]

use std::time::Duration;

use purlin::{LaunchOptions, dump_stalls, stalls};
use purlin_fakecuda::{Options, process};

use crate::launches::{fill, start};
use crate::support::*;

const BYTES: usize = 256;

/// What a report says of a device's GPU.
fn of_gpu(device: usize) -> Option<String> {
    let begin = format!("cuda:{device} (GPU ");
    stalls(Duration::ZERO).executors.into_iter().find(|text| text.starts_with(&begin))
}

/// A line of that, by its beginning.
#[track_caller]
fn line<'a>(text: &'a str, begin: &str) -> &'a str {
    text.lines().find(|line| line.trim_start().starts_with(begin)).unwrap_or_else(|| panic!("{begin}: {text}"))
}

#[test]
fn a_report_names_streams_their_oldest_work_and_what_it_is_behind() {
    process::run("stalls::a_report_names_streams_their_oldest_work_and_what_it_is_behind", &Options::default(), || {
        Session::with(1, |session| {
            let kernel = fill(&session.client.devices()[0], 7, BYTES).unwrap();
            let host = session.block(0, "pinned_host", BYTES);
            let [block, other] = [(); 2].map(|()| session.block(0, "device", BYTES));
            assert!(of_gpu(0).unwrap().ends_with("its streams have nothing in flight"));
            let held = Held::new(&session.driver);
            let up = copy(&host, &block, &[]);
            let options = LaunchOptions { dependencies: &[up], ..LaunchOptions::default() };
            let filled: Vec<_> = (0..3).map(|_| start(&kernel, &[&block], &options).unwrap()).collect();
            let across = copy(&block, &other, &filled[2..]);
            let text = of_gpu(0).unwrap();
            let [up_line, launches, within] =
                ["'host to device'", "'launches'", "'within the device'"].map(|stream| line(&text, stream));
            let place = |line: &str| line.contains("stalls.rs");
            assert!(
                up_line.contains(": 1 in flight") && up_line.contains("copy of 256 bytes from cuda:0/pinned_host"),
                "{text}"
            );
            assert!(!up_line.contains("behind"), "{text}");
            assert!(launches.contains(": 3 in flight") && launches.contains("'fill_32'"), "{text}");
            assert!(launches.contains("; behind number 1 of 'host to device'") && place(launches), "{text}");
            assert!(within.contains("; behind number 3 of 'launches'"), "{text}");
            assert!(
                text.contains("cuda:0 (GPU 0): its streams have") && dump_stalls(Duration::ZERO).contains(&text),
                "{text}"
            );
            drop(held);
            outcome(&across).unwrap();
            let is_over = || of_gpu(0).unwrap().ends_with("nothing in flight");
            until(|| format!("{:?}", of_gpu(0)), is_over);
        });
        assert_eq!(of_gpu(0), None, "it is closed");
    });
}

#[test]
fn a_report_names_work_of_other_devices_and_what_broke() {
    process::run(
        "stalls::a_report_names_work_of_other_devices_and_what_broke",
        &Options { devices: 2, ..Options::default() },
        || {
            let session = Session::new(2);
            let [here, there] = [0, 1].map(|device| session.block(device, "device", BYTES));
            let back = session.block(1, "device", BYTES);
            let held = Held::new(&session.driver);
            let sent = copy(&here, &there, &[]);
            let copied = copy(&there, &back, &[sent]);
            let (of_here, of_there) = (of_gpu(0).unwrap(), of_gpu(1).unwrap());
            assert!(line(&of_here, "'to other devices'").contains("to cuda:1/device"), "{of_here}");
            assert!(
                line(&of_there, "'within the device'").contains("; behind number 1 of 'to other devices' of cuda:0"),
                "{of_there}"
            );
            drop(held);
            outcome(&copied).unwrap();
            session.driver.control.reset_calls();
            session.driver.control.set_faults("cuMemcpyDtoDAsync_v2:1:700:sticky");
            outcome(&copy(&there, &back, &[])).unwrap_err();
            let (of_here, of_there) = (of_gpu(0).unwrap(), of_gpu(1).unwrap());
            assert!(of_there.contains("is broken until this process ends") && of_there.contains("700"), "{of_there}");
            assert!(!of_here.contains("broken"), "{of_here}");
            drop((here, there, back));
            session.end_broken();
        },
    );
}

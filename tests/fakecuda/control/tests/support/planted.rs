//! Planted defects: each is found each time, whatever the timing, and its mended twin never.
//!
//! A case does the same with and without the defect. It runs 100 times in each way, under delays by seeds.

use std::env;

use super::{NON_BLOCKING, Options, Session, process};

pub(crate) const SIZE: usize = 4096;

/// How often, if the environment does not say.
pub(crate) fn rounds(otherwise: u64) -> u64 {
    env::var("PURLIN_FAKECUDA_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(otherwise)
}

/// Whether the case, with or without its defect, was reported: with it as `expected` begins, without it not at all.
fn is_found(gpu: &Session, is_planted: bool, expected: &[&str]) -> bool {
    let reports = gpu.control.take_reports();
    let is_it = |report: &String| expected.iter().any(|begin| report.starts_with(begin));
    assert!(reports.iter().all(|report| is_planted && is_it(report)), "planted: {is_planted}: {reports:#?}");
    !reports.is_empty()
}

/// Runs the case with and without its defect. `expected` is how its report begins.
pub(crate) fn planted(name: &str, options: &Options, expected: &[&str], case: impl Fn(&Session, bool)) {
    process::run(name, options, || {
        let gpu = Session::new();
        let mut found = 0;
        let rounds = rounds(100);
        for seed in 0..rounds {
            for is_planted in [true, false] {
                gpu.control.set_delays(seed, 50);
                gpu.make_current(0);
                case(&gpu, is_planted);
                found += u64::from(is_found(&gpu, is_planted, expected));
            }
        }
        println!("{name}: planted {rounds}, found {found}");
        assert_eq!(found, rounds);
    });
}

/// As [`planted`], for a defect that breaks its device: each of a hundred devices has the mended twin first. The case
/// says whether the device has broken.
pub(crate) fn planted_and_breaks(name: &str, expected: &[&str], case: impl Fn(&Session, bool) -> bool) {
    const DEVICES: usize = 100;
    let options = Options { devices: DEVICES, address_bytes: 1 << 24, ..Options::default() };
    process::run(name, &options, || {
        let gpu = Session::new();
        let mut found = 0;
        for device in 0..DEVICES {
            for is_planted in [false, true] {
                gpu.control.set_delays(device as u64, 50);
                gpu.make_current(device);
                assert_eq!(case(&gpu, is_planted), is_planted, "device {device}");
                found += usize::from(is_found(&gpu, is_planted, expected));
            }
        }
        println!("{name}: planted {DEVICES}, found {found}");
        assert_eq!(found, DEVICES);
    });
}

/// Two streams that go when the case is over.
pub(crate) fn with_streams(gpu: &Session, body: impl FnOnce(usize, usize)) {
    let (first, second) = (gpu.stream(NON_BLOCKING), gpu.stream(NON_BLOCKING));
    body(first, second);
    gpu.sync(first);
    gpu.sync(second);
    [first, second].into_iter().for_each(|stream| ok!(gpu, cuStreamDestroy_v2(stream)));
}

//! Planted defects: each is found each time, whatever the timing, and its mended twin never.
//!
//! A case does the same with and without the defect. It runs 100 times in each way, under delays by a seed of its own.

use std::env;

use super::{NON_BLOCKING, Options, Session, process};

pub(crate) const SIZE: usize = 4096;

/// How often, if the environment does not say.
pub(crate) fn rounds(otherwise: u64) -> u64 {
    env::var("PURLIN_FAKECUDA_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(otherwise)
}

/// For defects that break a device: a new one each time.
pub(crate) fn many_devices() -> Options {
    Options { devices: 100, address_bytes: 1 << 24, ..Options::default() }
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
                let reports = gpu.control.take_reports();
                if is_planted {
                    let is_it = |report: &String| expected.iter().any(|begin| report.starts_with(begin));
                    assert!(reports.iter().all(is_it), "{reports:#?}");
                    found += u64::from(!reports.is_empty());
                } else {
                    assert_eq!(reports, [""; 0]);
                }
            }
        }
        println!("{name}: planted {rounds}, found {found}");
        assert_eq!(found, rounds);
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

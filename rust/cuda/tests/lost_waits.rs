//! The suite `streams` notices when waits between streams are lost: run over a driver that ignores them, its cases
//! fail, by the fake's detector or by the bytes that they find.

#![allow(unsafe_code, reason = "the fake driver is told by the environment")]

use std::panic;
use std::sync::Arc;

use purlin::program::KernelPayload;
use purlin_conformance::ledger::Ledger;
use purlin_conformance::{Backend, Given, cases_of, passes};
use purlin_cuda::CudaBackend;
use purlin_fakecuda::{Driver, Options, process};

fn cuda() -> Arc<dyn Backend> {
    Arc::new(CudaBackend::new().expect("the fake driver is there"))
}

fn momentum() -> KernelPayload {
    KernelPayload::Ptx(include_str!("../../../tests/ptx/kernels/momentum.ptx").into())
}

const LEAST_CASES: usize = 40;
const LEAST_FAILURES: usize = 30;

/// How a case ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Passes,
    /// Other bytes.
    Fails,
    /// The right bytes, by luck.
    IsReported,
}

fn end_of(case: &str, driver: &Driver) -> End {
    let (given, before) = (Given { momentum, ..Given::default() }, Ledger::now());
    let passed = passes(case, cuda, given);
    // A case that fails leaves work behind, which has its reports, too.
    let settled = before.settles();
    let reports = driver.control.report_count();
    driver.control.clear_reports();
    // Printed, because the test tells nothing of panics.
    if let Err(left) = settled {
        println!("{case} does not end:\n{left}");
        panic!("{left}");
    }
    match (passed, reports) {
        (false, _) => End::Fails,
        (true, 0) => End::Passes,
        (true, _) => End::IsReported,
    }
}

#[test]
fn cases_fail_when_no_stream_waits_for_another() {
    let options = Options { devices: 4, memory_bytes: 64 << 30, ..Options::default() };
    process::run("cases_fail_when_no_stream_waits_for_another", &options, || {
        let driver = Driver::open();
        // Long enough that what a case asks for is asked for before the first of it is over.
        driver.control.set_delays(1, 500);
        // What fails is expected to.
        panic::set_hook(Box::new(|_| ()));
        let cases: Vec<&str> = cases_of("streams").collect();
        let broken: Vec<&str> = cases.iter().copied().filter(|case| end_of(case, &driver) != End::Passes).collect();
        let graphs = driver.control.calls("cuGraphLaunch");
        driver.control.ignore_waits("all");
        let ends: Vec<(&str, End)> = cases.iter().map(|&case| (case, end_of(case, &driver))).collect();
        let _ = panic::take_hook();
        let these = |wanted: End| ends.iter().filter(move |(_, end)| *end == wanted);
        let blind: Vec<&str> = these(End::Passes).map(|(case, _)| *case).collect();
        let (fail, are_reported) = (these(End::Fails).count(), these(End::IsReported).count());
        let noticed = fail + are_reported;
        println!(
            "{noticed} of {} cases notice lost waits, {fail} by their bytes; these do not: {blind:?}",
            cases.len()
        );
        assert!(broken.is_empty(), "these fail although no wait is lost: {broken:?}");
        assert!(graphs > 0, "no case launches a graph");
        assert!(cases.len() >= LEAST_CASES && noticed >= LEAST_FAILURES, "only {noticed} of {} notice", cases.len());
    });
}

//! The suite `streams` notices when waits are lost: run on a simulation that loses them, most of its cases fail by the
//! bytes that they find, whatever a detector would say.

use std::panic;
use std::sync::Arc;

use purlin_conformance::{Backend, Given, cases_of, passes};
use purlin_sim::{SimBackend, SimOptions};

fn losing<const SEED: u64>() -> Arc<dyn Backend> {
    Arc::new(SimBackend::new(SimOptions { seed: SEED, lose_waits: true, ..Default::default() }))
}

fn keeping() -> Arc<dyn Backend> {
    Arc::new(SimBackend::new(SimOptions { seed: 1, ..Default::default() }))
}

const LEAST_CASES: usize = 40;
const LEAST_FAILURES: usize = 30;

#[test]
fn cases_fail_when_the_simulation_loses_waits() {
    // What fails is expected to.
    panic::set_hook(Box::new(|_| ()));
    let cases: Vec<&str> = cases_of("streams").collect();
    let blind: Vec<&str> = cases
        .iter()
        .copied()
        .filter(|case| [losing::<1>, losing::<2>, losing::<3>].iter().all(|&make| passes(case, make, Given::default())))
        .collect();
    let broken: Vec<&str> = cases.iter().copied().filter(|case| !passes(case, keeping, Given::default())).collect();
    let _ = panic::take_hook();
    assert!(broken.is_empty(), "these fail although no wait is lost: {broken:?}");
    let noticed = cases.len() - blind.len();
    println!("{noticed} of {} cases notice lost waits; these do not: {blind:?}", cases.len());
    assert!(cases.len() >= LEAST_CASES && noticed >= LEAST_FAILURES, "only {noticed} of {} notice", cases.len());
}

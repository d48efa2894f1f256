//! The walk can fail: each kind of defect, planted in a scenario, is found. One test, because the ledger is the
//! process's.

#![cfg(purlin_faults)]

use std::sync::Arc;

use purlin_base::Error;
use purlin_base::fault::{self, Site};
use purlin_faults::run::{On, Run};
use purlin_faults::walk::{Alone, Failing, Scenario, walk};

#[test]
fn planted_defects_are_found() {
    let _alone = Alone::new();
    an_error_that_is_swallowed_is_found();
    an_error_that_does_not_name_its_place_is_found();
    a_callback_that_is_forgotten_or_called_twice_is_found();
    a_panic_that_comes_through_is_found();
    a_failure_without_a_fault_is_found();
}

/// What is said of a scenario that does something wrong when a fail point fails.
fn complaint(scenario: Scenario) -> String {
    walk("a planted defect", On::Null, scenario, Failing::OnceAndAllAfter).complaints.concat()
}

fn an_error_that_is_swallowed_is_found() {
    let swallows = |_run: &Arc<Run>| {
        let _ = fault::point(Site::MapDma);
        Ok(())
    };
    assert!(complaint(swallows).contains("fail point 'backend.dma_map' failed, and nobody was told"));
}

fn an_error_that_does_not_name_its_place_is_found() {
    let renames = |_run: &Arc<Run>| fault::point(Site::MapDma).map_err(|_| Error::internal("something"));
    assert!(complaint(renames).contains("no error names fail point 'backend.dma_map'"));
}

fn a_callback_that_is_forgotten_or_called_twice_is_found() {
    let forgets = |run: &Arc<Run>| {
        let token = run.token("owed");
        token.called();
        if let Err(error) = fault::point(Site::MapDma) {
            std::mem::forget(token);
            return Err(error);
        }
        Ok(())
    };
    assert!(complaint(forgets).contains("'owed' was called 1 times and destroyed 0 times"));
    let repeats = |run: &Arc<Run>| {
        let token = run.token("owed");
        token.called();
        fault::point(Site::MapDma).inspect_err(|_| token.called())
    };
    assert!(complaint(repeats).contains("'owed' was called 2 times and destroyed 1 times"));
}

fn a_panic_that_comes_through_is_found() {
    let panics = |_run: &Arc<Run>| {
        fault::callback(Site::Waiter.name());
        Ok(())
    };
    assert!(complaint(panics).contains("a panic of a callback came through to the caller"));
}

fn a_failure_without_a_fault_is_found() {
    assert!(complaint(|_run| Err(Error::aborted("of itself"))).contains("nothing was to: ABORTED: of itself"));
}

//! The quick part of the fuzz, the corpus, and the proof that it can fail. `scripts/reference` has the long part, and
//! C++.

use std::time::Duration;

use purlin_fakecuda::{Driver, Options, process};
use purlin_reference::model::{ALL_WRONGS, Wrong};
use purlin_reference::op::OP_BYTES;
use purlin_reference::{Backend, Corpus, Fuzz, PairFuzz, Random, RustSubject, Subject, compare};

const PATIENCE: Duration = Duration::from_secs(30);
/// Where a difference is hoped for, waiting longer proves nothing.
const SHORT_PATIENCE: Duration = Duration::from_millis(50);

fn fuzz(backend: Backend, seed: u64, operations: u64, least: usize) {
    let mut subject = RustSubject::new();
    let report = Fuzz { subject: &mut subject, backend, seed, operations, grow: false, corpus: &Corpus::here() }.run();
    let report = report.unwrap_or_else(|difference| panic!("{difference}"));
    println!("{backend}: {report}");
    assert!(report.coverage.len() >= least, "the sequences met too little: {report}");
}

#[test]
fn the_library_does_what_the_model_does_on_the_host() {
    fuzz(Backend::Host, 1, 25_000, 400);
}

#[test]
fn the_library_does_what_the_model_does_on_simulated_streams() {
    fuzz(Backend::Sim(1), 2, 15_000, 400);
}

#[test]
fn the_library_does_what_the_model_does_on_cuda_over_the_fake_driver() {
    let name = "the_library_does_what_the_model_does_on_cuda_over_the_fake_driver";
    process::run(name, &Options::default(), || {
        fuzz(Backend::Cuda(1), 4, 25_000, 400);
        let calls = ["cuLaunchKernel", "cuGraphLaunch"].map(|entry| Driver::open().control.calls(entry));
        println!("kernels, graphs: {calls:?}");
        assert!(calls[0] >= 50 && calls[1] >= 10, "the sequences ran too little on the GPU: {calls:?}");
    });
}

fn pair_fuzz(backend: Backend, seed: u64, operations: u64) {
    let mut subject = RustSubject::new();
    let run = PairFuzz { subject: &mut subject, backend, seed, operations, wrong: None }.run();
    let (report, unclear) = run.unwrap_or_else(|story| panic!("{story}"));
    println!("{report}, {unclear} undecided");
    assert!(report.coverage.len() >= 60, "the sequences met too little: {report}");
    assert!(unclear * 100 <= report.sequences, "{unclear} of {} have too many interleavings", report.sequences);
}

#[test]
fn what_two_threads_see_is_some_interleaving_of_the_model() {
    pair_fuzz(Backend::Host, 3, 8_000);
}

#[test]
fn what_two_threads_see_on_cuda_is_some_interleaving_of_the_model() {
    let name = "what_two_threads_see_on_cuda_is_some_interleaving_of_the_model";
    process::run(name, &Options::default(), || pair_fuzz(Backend::Cuda(1), 5, 12_000));
}

#[test]
fn the_fuzz_notices_waits_between_streams_that_are_lost() {
    process::run("the_fuzz_notices_waits_between_streams_that_are_lost", &Options::default(), || {
        let mut subject = RustSubject::new();
        let backend = Backend::Cuda(1);
        subject.begin(backend);
        Driver::open().control.ignore_waits("all");
        let difference =
            Fuzz { subject: &mut subject, backend, seed: 4, operations: 40_000, grow: false, corpus: &Corpus::here() }
                .run()
                .unwrap_err();
        println!("{difference}");
        assert!(difference.answer.contains("the detector says"), "{difference}");
        // It was to say so.
        Driver::open().control.clear_reports();
    });
}

/// Whether some sequence shows that the library does not follow the wrong rule.
fn is_noticed(wrong: Wrong) -> bool {
    let mut subject = RustSubject::new();
    let mut differs = |bytes: &[u8]| compare(&mut subject, Backend::Host, bytes, Some(wrong), SHORT_PATIENCE).is_err();
    let kept = Corpus::here().load().expect("the corpus can be read");
    let mut random = Random::new(7);
    kept.iter().any(|(_, bytes)| differs(bytes)) || (0..400).any(|_| differs(&random.bytes(100 * OP_BYTES)))
}

#[test]
fn the_fuzz_notices_a_model_with_a_wrong_rule() {
    let missed: Vec<Wrong> = ALL_WRONGS.into_iter().filter(|&wrong| !is_noticed(wrong)).collect();
    println!("wrong rules noticed: {}/{}", ALL_WRONGS.len() - missed.len(), ALL_WRONGS.len());
    assert!(missed.is_empty(), "not noticed: {missed:?}");
}

#[test]
fn two_threads_notice_a_model_with_a_wrong_rule() {
    let wrongs = [
        Wrong::UsageAllowsDonation,
        Wrong::ExternalAllowsDonation,
        Wrong::DonationAllowsUsage,
        Wrong::ConfirmedDonationLeavesTheBuffer,
        Wrong::DonationGivenBackIsLost,
        Wrong::SecondSetWins,
        Wrong::BitcastLeavesItsSource,
    ];
    // What one thread does before the two is compared, too: only a story of two counts.
    let is_noticed = |wrong: Wrong| {
        (0..60).any(|seed| {
            let mut subject = RustSubject::new();
            let wrong = Some(wrong);
            let run = PairFuzz { subject: &mut subject, backend: Backend::Host, seed, operations: 600, wrong }.run();
            run.is_err_and(|story| story.contains("no interleaving"))
        })
    };
    let missed: Vec<Wrong> = wrongs.into_iter().filter(|&wrong| !is_noticed(wrong)).collect();
    println!("wrong rules noticed by two threads: {}/{}", wrongs.len() - missed.len(), wrongs.len());
    assert!(missed.is_empty(), "not noticed: {missed:?}");
}

#[test]
fn the_corpus_passes_on_simulated_streams_of_many_seeds() {
    let mut subject = RustSubject::new();
    for (name, bytes) in Corpus::here().load().expect("the corpus can be read") {
        for seed in 0..2 {
            let outcome = compare(&mut subject, Backend::Sim(seed), &bytes, None, PATIENCE);
            outcome.unwrap_or_else(|difference| panic!("{name}: {difference}"));
        }
    }
}

//! The scenarios, divided among processes: fail points and the ledger are the process's, and a run spends most of its
//! time in waiting.
//!
//! A part without complaints writes its results as lines: `scenario NAME RUNS`, followed by `site NAME FAILED REPORTED`
//! for each site that it reached, with tabs between the words. A part with complaints tells them, and fails.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io, thread};

use purlin_base::fault::Site;

use crate::walk::Walked;

/// Names the part that a process walks, of how many, and the file for its results.
const PART: &str = "PURLIN_FAULTS_PART";

/// What one process walks.
#[derive(Debug)]
pub struct Part {
    number: usize,
    of: usize,
    results: PathBuf,
}

impl Part {
    /// The part that this process was started for, if it was.
    #[must_use]
    pub fn of_this_process() -> Option<Self> {
        let said = env::var(PART).ok()?;
        let mut words = said.splitn(3, ' ');
        let mut number = || words.next()?.parse().ok();
        let (number, of) = (number()?, number()?);
        Some(Self { number, of, results: words.next()?.into() })
    }

    /// Whether the part has this scenario.
    #[must_use]
    pub fn has(&self, scenario: usize) -> bool {
        scenario % self.of == self.number
    }

    /// Writes what the part's scenarios came to.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn write(&self, walks: &[(String, Walked)]) -> io::Result<()> {
        let mut text = String::new();
        for (name, walked) in walks {
            _ = writeln!(text, "scenario\t{name}\t{}", walked.runs);
            for (site, (failed, reported)) in &walked.sites {
                _ = writeln!(text, "site\t{}\t{failed}\t{reported}", site.name());
            }
        }
        fs::write(&self.results, text)
    }
}

/// Has as many processes as help walk a part each by the test `name` of this program, and gathers their results in the
/// order of the parts.
///
/// # Panics
/// A process that fails, or results that cannot be read.
#[must_use]
pub fn walk_in_processes(name: &str, folder: &Path) -> Vec<(String, Walked)> {
    // As many jobs as libtest would have; half of a run is waiting.
    let jobs = env::var("RUST_TEST_THREADS").ok().and_then(|jobs| jobs.parse().ok());
    let of = 2 * jobs.unwrap_or_else(|| thread::available_parallelism().map_or(2, usize::from));
    let program = env::current_exe().expect("a program knows where it is");
    let start = |number: usize| {
        let results = folder.join(format!("faults-{}-{number}.txt", std::process::id()));
        let mut command = Command::new(&program);
        command.args(["--exact", name, "--nocapture"]).env(PART, format!("{number} {of} {}", results.display()));
        (command.spawn().expect("this program can be started"), results)
    };
    let started: Vec<_> = (0..of).map(start).collect();
    // All of them end before one is judged, so that none is left behind.
    let ended: Vec<_> =
        started.into_iter().map(|(mut process, results)| (process.wait().expect("it was started"), results)).collect();
    let failed: Vec<_> = ended.iter().map(|(status, _)| status).filter(|status| !status.success()).collect();
    assert!(failed.is_empty(), "{} processes of the walk ended with {failed:?}; what they say is above", failed.len());
    let texts = ended.into_iter().map(|(_, results)| {
        let text = fs::read_to_string(&results).expect("a process that ends well has written its results");
        fs::remove_file(&results).expect("it was there");
        text
    });
    texts.flat_map(|text| read(&text)).collect()
}

fn read(text: &str) -> Vec<(String, Walked)> {
    let mut walks: Vec<(String, Walked)> = Vec::new();
    let number = |word: &str| word.parse().expect("a part writes numbers");
    for line in text.lines() {
        let words: Vec<&str> = line.split('\t').collect();
        match words[..] {
            ["scenario", name, runs] => {
                walks.push((name.to_owned(), Walked { runs: number(runs), ..Walked::default() }));
            }
            ["site", name, failed, reported] => {
                let site = Site::ALL.iter().find(|site| site.name() == name).expect("a part writes names of sites");
                let (_, walked) = walks.last_mut().expect("a site comes after its scenario");
                walked.sites.insert(*site, (number(failed), number(reported)));
            }
            _ => panic!("a part wrote: {line}"),
        }
    }
    walks
}

//! Purlin's operations on a GPU beside the bare driver's, in one process: see docs/testing.md, "On a GPU".
//!
//! ```text
//! driver [--quick] [--rows TEXT]... [--tsv FILE] [--list]
//! ```
//!
//! Each row has a column of Purlin's and one or more of the driver's. Their turns alternate, so that noise meets all
//! alike, and the ratio is that of the minima, to the best column of the driver. Both sides use the same memory, so
//! what differs is how it is asked for. What each column did is looked at before it is measured; a wrong byte ends the
//! program. A goal that is missed does not: `--quick` makes a few turns of each, on less memory, where only that
//! counts.

#![allow(unsafe_code, reason = "the driver is called, and memory is reached by address")]

mod bare;
mod bench;
mod column;
mod copies;
mod events;
mod kernels;
mod memory;
mod pageable;
mod report;
mod row;
mod small;

use std::process::ExitCode;
use std::{env, io};

use purlin_cuda::CudaBackend;

use bench::Bench;
use report::Report;
use row::{Limits, Row};

#[derive(Default)]
struct Arguments {
    is_quick: bool,
    only_lists: bool,
    /// Texts of which a row's name has one; none: all rows.
    rows: Vec<String>,
    tsv: Option<String>,
}

impl Arguments {
    fn of(arguments: impl Iterator<Item = String>) -> Result<Self, String> {
        let (mut found, mut arguments) = (Self::default(), arguments);
        while let Some(argument) = arguments.next() {
            let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
            match argument.as_str() {
                "--quick" => found.is_quick = true,
                "--list" => found.only_lists = true,
                "--rows" => found.rows.push(value()?),
                "--tsv" => found.tsv = Some(value()?),
                // Of `cargo bench`.
                "--bench" => {}
                _ => return Err(format!("no such argument: '{argument}'")),
            }
        }
        Ok(found)
    }
}

fn main() -> ExitCode {
    let arguments = match Arguments::of(env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(why) => {
            eprintln!("driver: {why}\n  driver [--quick] [--rows TEXT]... [--tsv FILE] [--list]");
            return ExitCode::from(2);
        }
    };
    let backend = match CudaBackend::new() {
        Ok(backend) => backend,
        Err(error) => {
            println!("gpu: skipped: {}", error.message());
            return ExitCode::SUCCESS;
        }
    };
    match measure(backend, &arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("driver: {}: {why}", arguments.tsv.unwrap_or_default());
            ExitCode::FAILURE
        }
    }
}

/// # Errors
/// A file cannot be written.
fn measure(backend: CudaBackend, arguments: &Arguments) -> io::Result<()> {
    let limits = if arguments.is_quick { Limits::QUICK } else { Limits::FULL };
    let (mut report, mut written) = (Report::new(arguments.tsv.as_deref())?, Ok(()));
    let bench = Bench::new(backend, arguments.is_quick);
    let mut add = |row: Row<'_>| {
        let is_wanted = arguments.rows.is_empty() || arguments.rows.iter().any(|text| row.name.contains(text));
        match (is_wanted && written.is_ok(), arguments.only_lists) {
            (false, _) => {}
            (true, true) => println!("{}", row.name),
            (true, false) => written = report.add(row.measured(limits)),
        }
    };
    for rows in [copies::rows, pageable::rows, small::rows, kernels::rows, memory::rows, events::rows] {
        rows(&bench, &mut add);
    }
    bench.end();
    if !arguments.only_lists {
        report.print();
    }
    written
}

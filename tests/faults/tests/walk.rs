//! The walk of all scenarios, its table in `build/faults.txt`.

#![cfg(purlin_faults)]

use std::env;
use std::path::Path;

use purlin_base::fault::Site;
use purlin_faults::parts::{Part, walk_in_processes};
use purlin_faults::scenarios::SCENARIOS;
use purlin_faults::walk::{Alone, Failing, Walked, table, unreached, walk};

#[test]
fn every_site_fails_at_every_reach_in_every_scenario() {
    let only = env::var("PURLIN_FAULTS_ONLY").unwrap_or_default();
    if let Some(part) = Part::of_this_process() {
        let walks = walk_part(&part, &only);
        assert!(walks.iter().all(|(_, walked)| walked.complaints.is_empty()), "see above");
        part.write(&walks).expect("the results can be written");
        return;
    }
    let walks = walk_in_processes("every_site_fails_at_every_reach_in_every_scenario", &env::temp_dir());
    let text = table(&walks);
    println!("{text}");
    if let Some(path) = env::var_os("PURLIN_FAULTS_TABLE") {
        std::fs::write(Path::new(&path), &text).expect("the table can be written");
    }
    if only.is_empty() {
        assert_eq!(unreached(&walks), Vec::<&str>::new(), "no scenario reaches these sites");
        let expected: usize = SCENARIOS.iter().map(|(_, backends, _)| backends.len()).sum();
        assert!(walks.len() == expected && SCENARIOS.len() >= 20 && Site::ALL.len() >= 20);
    }
}

fn walk_part(part: &Part, only: &str) -> Vec<(String, Walked)> {
    let _alone = Alone::new();
    let failing = match env::var_os("PURLIN_FAULTS_FAST") {
        Some(_) => Failing::Once,
        None => Failing::OnceAndAllAfter,
    };
    let all =
        SCENARIOS.iter().flat_map(|(name, backends, scenario)| backends.iter().map(move |on| (name, on, scenario)));
    let mut walks = Vec::new();
    for (number, (name, on, scenario)) in all.enumerate() {
        let name = format!("{name} [{on:?}]").to_lowercase();
        if !part.has(number) || !name.contains(only) {
            continue;
        }
        let began = std::time::Instant::now();
        let walked = walk(&name, *on, *scenario, failing);
        for complaint in &walked.complaints {
            eprintln!("---- {name}\n{complaint}");
        }
        println!("{name}: {} runs, {} complaints, {:?}", walked.runs, walked.complaints.len(), began.elapsed());
        walks.push((name, walked));
    }
    walks
}

//! The walk of all scenarios, its table in `build/faults.txt`.

#![cfg(purlin_faults)]

use std::path::Path;

use purlin_base::fault::Site;
use purlin_faults::scenarios::SCENARIOS;
use purlin_faults::walk::{Alone, Walked, table, unreached, walk};

#[test]
fn every_site_fails_at_every_reach_in_every_scenario() {
    let _alone = Alone::new();
    let only = std::env::var("PURLIN_FAULTS_ONLY").unwrap_or_default();
    let mut walks: Vec<(String, Walked)> = Vec::new();
    for (name, backends, scenario) in SCENARIOS {
        for on in *backends {
            let name = format!("{name} [{on:?}]").to_lowercase();
            if name.contains(&only) {
                let began = std::time::Instant::now();
                let walked = walk(&name, *on, *scenario);
                for complaint in &walked.complaints {
                    eprintln!("---- {name}\n{complaint}");
                }
                println!("{name}: {} runs, {} complaints, {:?}", walked.runs, walked.complaints.len(), began.elapsed());
                walks.push((name, walked));
            }
        }
    }
    let text = table(&walks);
    println!("{text}");
    if let Some(path) = std::env::var_os("PURLIN_FAULTS_TABLE") {
        std::fs::write(Path::new(&path), &text).expect("the table can be written");
    }
    let complaints: usize = walks.iter().map(|(_, walked)| walked.complaints.len()).sum();
    assert_eq!(complaints, 0, "see above");
    if only.is_empty() {
        assert_eq!(unreached(&walks), Vec::<&str>::new(), "no scenario reaches these sites");
        assert!(SCENARIOS.len() >= 20 && Site::ALL.len() >= 20);
    }
}

//! Dovetail's feasible sets, and its reasons, against kube-scheduler's own filter plugins.
//!
//! A mismatch is shrunk to a small world and kept in `tests/worlds`, where it is a test from then
//! on.

mod asked;
mod compared;
mod devices;
mod filters;
mod layouts;
mod profiles;
mod selectors;

use std::path::{Path, PathBuf};
use std::sync::mpsc;

use dovetail_testkit::world::{
    Coverage, GeneratedCluster, Oracle, OracleAnswer, Release, documented, generate, shrink,
};

use asked::Asked;
use compared::{Mismatch, compare};
use filters::{FILTERS, Filter};

/// How many random worlds are looked at; each has six pods.
const WORLDS: &str = "DOVETAIL_WORLDS";

fn worlds() -> u64 {
    std::env::var(WORLDS).ok().map_or(1000, |text| text.parse().expect("a number of worlds"))
}

fn kept() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/worlds")
}

/// Mismatches of one world, as if dovetail had no such filter.
fn mismatches(
    world: &GeneratedCluster,
    answer: &OracleAnswer,
    without: Option<&Filter>,
) -> Vec<Mismatch> {
    compare(answer, &Asked::about(world).answers(without))
}

/// A world of a mismatch, made small and kept.
fn keep(oracle: &mut Oracle, world: &GeneratedCluster, found: &Mismatch) -> PathBuf {
    let shows = |candidate: &GeneratedCluster| {
        let Ok(answer) = oracle.judge(candidate) else { return false };
        let same = |other: &Mismatch| other.sort == found.sort;
        mismatches(candidate, &answer, None).iter().any(same)
    };
    let small = shrink(world, shows);
    let text = serde_json::to_string_pretty(&small).expect("JSON values always print");
    let name: String =
        found.sort.chars().map(|c| if c.is_alphanumeric() { c } else { '-' }).collect();
    let path = kept().join(format!("{name}.json"));
    std::fs::create_dir_all(kept()).and_then(|()| std::fs::write(&path, text + "\n")).unwrap();
    path
}

/// Random worlds, as they are generated from a seed, with the answers of kube-scheduler of a
/// release, which come from a thread of their own.
fn judged(
    release: Release,
    count: u64,
    generate: fn(u64) -> GeneratedCluster,
) -> mpsc::Receiver<(u64, GeneratedCluster, OracleAnswer)> {
    let (sender, receiver) = mpsc::sync_channel(32);
    std::thread::spawn(move || {
        let mut oracle = Oracle::start(release).unwrap();
        for seed in 0..count {
            let world = generate(seed).known_to(release);
            let answer = oracle.judge(&world).unwrap_or_else(|error| panic!("{seed}: {error}"));
            if sender.send((seed, world, answer)).is_err() {
                return;
            }
        }
    });
    receiver
}

#[test]
#[allow(clippy::print_stderr, reason = "what was compared is worth a look: --nocapture shows it")]
fn the_nodes_that_a_pod_may_use_are_those_of_kube_scheduler() {
    let mut coverage = Coverage::default();
    let mut left_by_design = 0;
    let mut kinds: Vec<Mismatch> = Vec::new();
    let mut unnoticed: Vec<&Filter> = FILTERS.iter().collect();
    let mut oracle = Oracle::start(Release::V1_37).unwrap();
    let count = worlds();
    for (seed, world, answer) in judged(Release::V1_37, count, generate) {
        coverage.add(&answer);
        let mut asked = Asked::about(&world);
        let ours = asked.answers(None);
        left_by_design += ours.iter().filter(|pod| pod.is_left_by_design()).count();
        unnoticed.retain(|filter| compare(&answer, &asked.answers(Some(filter))).is_empty());
        for found in compare(&answer, &ours) {
            if !kinds.iter().any(|known| known.sort == found.sort) {
                let path = keep(&mut oracle, &world, &found);
                eprintln!("world {seed}: {found}\n    made small in {}", path.display());
                kinds.push(found);
            }
        }
    }
    eprintln!("{coverage}left to later by design: {left_by_design} pods");
    assert!(kinds.is_empty(), "{} sorts of mismatches, see above", kinds.len());
    assert!(left_by_design * 50 < coverage.pods as usize, "{left_by_design} of {}", coverage.pods);
    let unnoticed: Vec<&str> = unnoticed.iter().map(|filter| filter.name).collect();
    assert!(unnoticed.is_empty(), "without {unnoticed:?} nothing would be different");
    assert!(coverage.pods >= 5 * count);
}

/// A fifth of the worlds: what the releases have in common was compared above.
#[test]
#[allow(clippy::print_stderr, reason = "what was compared is worth a look: --nocapture shows it")]
fn the_oldest_release_that_is_run_agrees_too() {
    let mut oracle = Oracle::start(Release::V1_35).unwrap();
    let mut pods = 0;
    let mut kinds: Vec<Mismatch> = Vec::new();
    for (seed, world, answer) in judged(Release::V1_35, worlds().div_ceil(5), generate) {
        pods += answer.pods.len();
        for found in mismatches(&world, &answer, None) {
            // Of two filters that both reject, that release named the other one.
            let is_order = found.sort == "NodeUnschedulable and NodeName";
            if !is_order && !kinds.iter().any(|known| known.sort == found.sort) {
                let path = keep(&mut oracle, &world, &found);
                eprintln!("world {seed}: {found}\n    made small in {}", path.display());
                kinds.push(found);
            }
        }
    }
    assert!(kinds.is_empty(), "{} sorts of mismatches, see above", kinds.len());
    assert!(pods > 0);
}

#[test]
fn the_worlds_of_the_documentation_and_of_former_mismatches_agree() {
    let mut oracle = Oracle::start(Release::V1_37).unwrap();
    let mut worlds: Vec<(String, GeneratedCluster)> =
        documented().into_iter().map(|shown| (shown.name.to_owned(), shown.world)).collect();
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(kept()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let world = serde_json::from_str(&text).unwrap();
        worlds.push((file.display().to_string(), world));
    }
    for (name, world) in worlds {
        let answer = oracle.judge(&world).unwrap();
        let found: Vec<String> =
            mismatches(&world, &answer, None).iter().map(ToString::to_string).collect();
        assert!(found.is_empty(), "{name}: {}", found.join("\n"));
    }
}

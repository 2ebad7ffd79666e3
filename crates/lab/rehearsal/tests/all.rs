//! The whole scheduler by seed.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use dovetail_recording::{Texts, replay};
use dovetail_rehearsal::{Recipe, play, play_recorded, shrink};
use mimalloc::MiMalloc;

/// As the program does: objects are millions of small pieces.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Seeds of one run: `DOVETAIL_SEEDS` as `FIRST..END`.
fn seeds() -> (u64, u64) {
    let Ok(text) = std::env::var("DOVETAIL_SEEDS") else { return (0, 10_000) };
    let range = text.split_once("..");
    let range = range.and_then(|(first, end)| Some((first.parse().ok()?, end.parse().ok()?)));
    range.unwrap_or_else(|| panic!("DOVETAIL_SEEDS is `{text}`: it must be FIRST..END"))
}

#[test]
fn no_seed_breaks_a_promise() {
    let (first, end) = seeds();
    let next = AtomicU64::new(first);
    let search = || {
        let mut failed = Vec::new();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= end || failed.len() >= 5 {
                return failed;
            }
            if let Some(failure) = play(&Recipe::all_of(seed)).failure {
                failed.push((seed, failure.problem));
            }
        }
    };
    let failed: Vec<(u64, String)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..2).map(|_| scope.spawn(search)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("a thread")).collect()
    });
    let Some((seed, problem)) = failed.first() else { return };
    let short = shrink(&Recipe::all_of(*seed)).map(|(recipe, failure)| {
        keep(&recipe, &failure.problem);
        let log = play(&recipe).log;
        format!("{}\n{recipe}\n{log}", failure.problem)
    });
    panic!("seed {seed}: {problem}\nof {failed:#?}\nshort: {}", short.unwrap_or_default());
}

/// Keeps a short history, so that it fails again until what goes wrong in it is fixed.
fn keep(recipe: &Recipe, problem: &str) {
    let path = histories().join(format!("seed-{}.txt", recipe.seed));
    std::fs::write(path, format!("# {problem}\n{recipe}")).expect("a place for the history");
}

fn histories() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/histories")
}

#[test]
fn the_same_seed_gives_the_same_log() {
    for seed in 0..50 {
        let recipe = Recipe::all_of(seed);
        let (one, other) = (play(&recipe).log, play(&recipe).log);
        assert!(one.lines().count() > 5, "seed {seed}: {one}");
        assert_eq!(one, other, "seed {seed}");
    }
}

/// Seeds whose leaderships are replayed; `make soak` replays more.
fn leaderships() -> u64 {
    if std::env::var_os("DOVETAIL_SOAK").is_some() { 600 } else { 60 }
}

/// What was recorded of each leadership leads to the same decisions and requests, to the byte, also
/// of one that was killed; and recording changes nothing.
#[test]
fn every_leadership_replays_from_its_recording() {
    let (mut requests, mut killed) = (0, 0);
    for seed in 0..leaderships() {
        let (recipe, texts) = (Recipe::all_of(seed), Texts::default());
        let played = play_recorded(&recipe, &|| texts.recording());
        assert_eq!(played, play(&recipe), "seed {seed}");
        for text in texts.read() {
            let report = replay("recording", text.as_slice()).expect("a recording");
            assert_eq!(report.divergence, None, "seed {seed}");
            killed += u64::from(report.cut_off_after_line.is_some());
            requests += String::from_utf8_lossy(&text).matches("\"method\":").count();
        }
    }
    assert!(killed > 4 && requests > 400, "{killed} were killed, {requests} requests");
}

/// One seed, or one kept history, with its log: `DOVETAIL_HISTORY=8` or a file.
#[test]
fn a_history_is_told() {
    let Ok(which) = std::env::var("DOVETAIL_HISTORY") else { return };
    let text = std::fs::read_to_string(&which).unwrap_or_else(|_| format!("seed {which}"));
    let played = play(&text.parse().expect("a recipe"));
    panic!("{}\n{:#?}", played.log, played.failure);
}

/// Short histories in which something went wrong once.
#[test]
fn what_was_fixed_stays_fixed() {
    let mut files: Vec<_> = std::fs::read_dir(histories()).expect("the histories").collect();
    files.sort_by_key(|file| file.as_ref().map(|file| file.path()).ok());
    for file in files {
        let path = file.expect("a file").path();
        let text = std::fs::read_to_string(&path).expect("a history");
        let recipe: Recipe = text.parse().expect("a recipe");
        assert_eq!(play(&recipe).failure, None, "{}", path.display());
    }
}

//! An audit of a large cluster, from what `dovetail collect` writes and from a full dump.

use std::path::Path;

use crate::timed::{Timed, timed};

const NODES: &str = "5000";

/// The moment of generated clusters.
const AT: &str = "2026-11-20T12:00:00Z";

/// So often collections are read.
const TURNS: usize = 5;

/// Prints how long the audit takes and how much memory it needs.
pub(crate) fn print() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (full, kept, packed) = (path("full"), path("kept.json"), path("kept.json.gz"));
    timed(&["trace", "synth", "--nodes", NODES, "--dump", &full]);
    let Timed { took_s: collect_s, .. } =
        timed(&["collect", "--from", &full, "--at", AT, "--to", &kept]);
    timed(&["collect", "--from", &full, "--at", AT, "--to", &packed]);
    println!("5,000 nodes, 100,000 pods; collected from the full dump in {collect_s:.1} s\n");
    println!(
        "| read | size of the files | turns | seconds: median (least to most; target 5) | memory at most (target 1 GB) |"
    );
    println!("|---|---|---|---|---|");
    for (name, from, turns) in [
        ("collection", &kept, TURNS),
        ("collection, gzip", &packed, TURNS),
        ("full dump of kubectl", &full, 1),
    ] {
        let mib = size_bytes(Path::new(from)) >> 20;
        let mut turns: Vec<(f64, u64)> = (0..turns).map(|_| audited(from)).collect();
        turns.sort_by(|one, other| one.0.total_cmp(&other.0));
        let (least_s, most_s) = (turns[0].0, turns[turns.len() - 1].0);
        let median_s = turns[turns.len() / 2].0;
        let peak_mib = turns.iter().map(|turn| turn.1).max().unwrap_or_default();
        let count = turns.len();
        println!(
            "| {name} | {mib} MiB | {count} | {median_s:.2} ({least_s:.2} to {most_s:.2}) | {peak_mib} MiB |"
        );
    }
}

/// Seconds of one audit, and its memory at most.
fn audited(from: &str) -> (f64, u64) {
    let Timed { took_s, peak_mib, .. } =
        timed(&["audit", "--from", from, "--at", AT, "--fail-on", "never", "--output", "json"]);
    (took_s, peak_mib.expect("the report is larger than a pipe"))
}

/// Of a file, or of all files of a folder.
fn size_bytes(path: &Path) -> u64 {
    match std::fs::read_dir(path) {
        Err(_) => path.metadata().map_or(0, |file| file.len()),
        Ok(entries) => {
            entries.filter_map(|entry| entry.ok()?.metadata().ok()).map(|m| m.len()).sum()
        }
    }
}

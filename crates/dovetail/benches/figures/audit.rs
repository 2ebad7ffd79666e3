//! An audit of a large cluster, from what `dovetail collect` writes and from a full dump.

use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

const NODES: &str = "5000";

/// The moment of generated clusters.
const AT: &str = "2026-11-20T12:00:00Z";

/// Prints how long the audit takes and how much memory it needs.
pub(crate) fn print() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (full, kept, packed) = (path("full"), path("kept.json"), path("kept.json.gz"));
    timed(&["trace", "synth", "--nodes", NODES, "--dump", &full]);
    let (collect_s, _) = timed(&["collect", "--from", &full, "--at", AT, "--to", &kept]);
    timed(&["collect", "--from", &full, "--at", AT, "--to", &packed]);
    println!("5,000 nodes, 100,000 pods; collected from the full dump in {collect_s:.1} s\n");
    println!("| read | size of the files | seconds (target 5) | memory at most (target 1 GB) |");
    println!("|---|---|---|---|");
    for (name, from) in
        [("collection", &kept), ("collection, gzip", &packed), ("full dump of kubectl", &full)]
    {
        let mib = size_bytes(Path::new(from)) >> 20;
        let (took_s, peak_mib) =
            timed(&["audit", "--from", from, "--at", AT, "--fail-on", "never", "--output", "json"]);
        let peak_mib = peak_mib.expect("the report is larger than a pipe");
        println!("| {name} | {mib} MiB | {took_s:.2} | {peak_mib} MiB |");
    }
}

/// Seconds, and the most memory in MiB as the kernel counts it when the first of the output comes: the
/// program has then done its work, and waits until somebody reads what does not fit into a pipe.
fn timed(arguments: &[&str]) -> (f64, Option<u64>) {
    let start = Instant::now();
    let mut child = Command::new(env!("CARGO_BIN_EXE_dovetail"))
        .args(arguments)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut output = child.stdout.take().expect("a pipe");
    let mut read = vec![0; 1];
    // Nothing, if it prints nothing.
    let _ = output.read(&mut read).expect("what it prints");
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id()));
    let status = status.unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = peak.and_then(|peak| peak.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    output.read_to_end(&mut read).expect("what it prints");
    let ended = child.wait().expect("it ends");
    assert!(ended.success(), "{arguments:?}");
    (start.elapsed().as_secs_f64(), kib.map(|kib| kib >> 10))
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

//! `dovetail usage idle` on the published duty cycles.

use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use crate::duty_cycles;

pub(crate) fn print() {
    let Some(traces) = std::env::var_os("DOVETAIL_TRACES").map(PathBuf::from) else {
        println!("skipped: set DOVETAIL_TRACES");
        return;
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("duty.csv");
    std::fs::write(&file, duty_cycles::as_usage_file(&traces)).expect("a file");
    println!("| minutes of run and grace | measured, start of the program included | target |");
    println!("|---|---|---|");
    for minutes in ["10m", "30m", "60m", "180m"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dovetail"));
        command.args(["usage", "idle", "--threshold-percent", "5", "--output", "json"]);
        command.args(["--min-run", minutes, "--grace", minutes, "--usage"]).arg(&file);
        let start = Instant::now();
        let output = command.output().expect("the program starts");
        let took_s = start.elapsed().as_secs_f64();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        println!("| {minutes} | {took_s:.3} s | 2 s |");
    }
}

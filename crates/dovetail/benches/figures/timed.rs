//! The program as its users start it, with a watch.

use std::io::Read;
use std::process::{Command, Stdio};
use std::time::Instant;

/// What a call took.
pub(crate) struct Timed {
    pub(crate) took_s: f64,
    /// The most memory as the kernel counts it when the first of the output comes: the program has
    /// then done its work, and waits until somebody reads what does not fit into a pipe. None if it
    /// was over by then.
    pub(crate) peak_mib: Option<u64>,
    pub(crate) output: Vec<u8>,
}

/// Runs the program to its end.
pub(crate) fn timed(arguments: &[&str]) -> Timed {
    let start = Instant::now();
    let mut child = Command::new(env!("CARGO_BIN_EXE_dovetail"))
        .args(arguments)
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut pipe = child.stdout.take().expect("a pipe");
    let mut output = vec![0; 1];
    // Nothing, if it prints nothing.
    let count = pipe.read(&mut output).expect("what it prints");
    output.truncate(count);
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id()));
    let status = status.unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = peak.and_then(|peak| peak.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    pipe.read_to_end(&mut output).expect("what it prints");
    let ended = child.wait().expect("it ends");
    assert!(ended.success(), "{arguments:?}");
    let peak_mib = kib.map(|kib| kib >> 10);
    Timed { took_s: start.elapsed().as_secs_f64(), peak_mib, output }
}

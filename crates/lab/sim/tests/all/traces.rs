//! Where the real traces are, if they are.

use std::io::Write;
use std::path::PathBuf;

/// The folder of traces, or a line that says that the test was skipped and why.
pub(crate) fn folder(test: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("DOVETAIL_TRACES").map(PathBuf::from);
    if folder.is_none() {
        let mut out = std::io::stderr().lock();
        writeln!(out, "skipped: {test}: set DOVETAIL_TRACES to the folder of real traces").ok();
    }
    folder
}

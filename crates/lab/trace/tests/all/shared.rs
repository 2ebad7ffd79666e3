//! What several tests use.

use std::io::Cursor;
use std::path::PathBuf;

use dovetail_trace::{
    ReadOptions, Trace, TraceCluster, TraceError, read_cluster_from, read_trace_from,
};

/// The folder of public traces, or `None` with a line that says that the test was skipped.
pub(crate) fn traces(test: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("DOVETAIL_TRACES").map(PathBuf::from);
    if folder.is_none() {
        // Straight to the descriptor: the harness would hide the output of a passing test.
        use std::io::Write;
        let _ = writeln!(std::io::stderr().lock(), "skipped: {test}: set DOVETAIL_TRACES");
    }
    folder
}

pub(crate) fn jobs(text: &[u8], options: &ReadOptions) -> Result<Trace, TraceError> {
    read_trace_from(Cursor::new(text.to_vec()), "jobs.csv", options)
}

pub(crate) fn nodes(text: &[u8], options: &ReadOptions) -> Result<TraceCluster, TraceError> {
    read_cluster_from(Cursor::new(text.to_vec()), "nodes.csv", options)
}

pub(crate) fn skipping() -> ReadOptions {
    ReadOptions { skip_bad_rows: true, ..ReadOptions::default() }
}

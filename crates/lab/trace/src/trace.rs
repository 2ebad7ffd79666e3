//! A whole job stream.

use serde::Serialize;

use crate::error::SkippedRow;
use crate::job::TraceJob;

/// The jobs of one source, in the order of the source, which need not be the order of submission.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Trace {
    /// The jobs.
    pub jobs: Vec<TraceJob>,
    /// Where they come from: a file, or the generator and its seed.
    pub source: String,
    /// What the source states at all.
    pub known: Known,
    /// Rows that were left out, with reasons; empty unless asked for.
    pub skipped: Vec<SkippedRow>,
    /// What else the reader wants known, for example columns it does not use.
    pub notes: Vec<String>,
}

/// Which of the values that every [`TraceJob`] carries come from the source.
///
/// Where a flag is false the value in the jobs is 0 and means "not stated".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Known {
    /// `submit_ms` is known; without it the trace has an order but no time.
    pub submit_times: bool,
    /// `cpu_milli` is known.
    pub cpu: bool,
    /// `memory_bytes` is known.
    pub memory: bool,
    /// `gpu_models` is known; where it is not, an empty list does not mean "any".
    pub gpu_models: bool,
}

impl Default for Known {
    fn default() -> Self {
        Self { submit_times: true, cpu: true, memory: true, gpu_models: true }
    }
}

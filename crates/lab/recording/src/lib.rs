//! Recordings: of a simulation's engine (`dovetail-sim`), and of a live scheduler.
//!
//! A live scheduler's recording starts with its settings and the build. Every line after that is
//! one step: what happened, when, how much it might send, what was decided, and the requests that
//! it sent. [`replay`] steps a scheduler that knows nothing with the same and compares decisions
//! and requests, so it covers everything that the scheduler does, and not only its engine. The last
//! line is the end mark of every recording.

mod live;
mod memory;
mod recorder;

use std::io::BufRead;

use dovetail_plan::PolicySpec;
use dovetail_sim::record::{
    JsonLines, RecordError, ReplayReport, WhatIf, replay_lines, what_if_lines,
};

pub use memory::Texts;
pub use recorder::LiveRecorder;

/// Replays a recording up to its end or its first divergence; one that was cut off, up to its last
/// whole line.
///
/// # Errors
/// [`RecordError`] names the line that cannot be read or replayed, or says that the recording was
/// cut off within its first line.
pub fn replay(file: &str, input: impl BufRead) -> Result<ReplayReport, RecordError> {
    let lines = JsonLines::of(file, input)?;
    match lines.is_live() {
        true => live::replay(lines),
        false => replay_lines(lines),
    }
}

/// Asks another policy at each decision of a recording.
///
/// # Errors
/// As [`replay`].
pub fn what_if(file: &str, input: impl BufRead, policy: PolicySpec) -> Result<WhatIf, RecordError> {
    let lines = JsonLines::of(file, input)?;
    match lines.is_live() {
        true => live::what_if(lines, policy),
        false => what_if_lines(lines, policy),
    }
}

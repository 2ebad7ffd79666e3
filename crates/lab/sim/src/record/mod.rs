//! Recordings: everything the engine was told and everything it answered, line by line.
//!
//! A recording starts with the snapshot, the configuration (with what the policy had learnt) and
//! the build. [`replay`] tells a fresh engine the same and compares the answers. The last line is
//! an end mark, so that a recording that was cut off is told from a whole one.

mod amounts;
mod checkpoint;
mod recorder;
mod replay;
mod what_if;

use dovetail_model::{Action, Event, Snapshot};
use dovetail_plan::EngineConfig;
use dovetail_units::place::FilePosition;
use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use checkpoint::{Checkpoint, CheckpointError};
pub use recorder::{LineWriter, Recorder};
pub use replay::{
    ComparedDecision, Divergence, JsonLines, RecordLine, ReplayReport, first_difference, replay,
    replay_lines,
};
pub use what_if::{ComparedPolicy, Difference, WhatIf, what_if, what_if_lines};

/// Version of the recording of an engine. Form 1 had no end mark, in form 2 every step decided.
pub const FORMAT: u32 = 3;
/// Version of the recording of a live scheduler, which holds what happened to the scheduler, and
/// not only to its engine.
pub const LIVE_FORMAT: u32 = 4;
/// The oldest form that can be replayed.
const OLDEST_FORMAT: u32 = 2;

/// First line of a recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// [`FORMAT`].
    pub dovetail_recording: u32,
    /// Version of the program that wrote it.
    pub build: String,
    /// Configuration of the engine, with what its policy had learnt.
    pub engine: EngineConfig,
    /// The world at the beginning.
    pub snapshot: Snapshot,
}

impl Header {
    /// What no policy could have learned, or no simulation has, if anything of it: sums of such
    /// numbers may overflow.
    fn problem(&self) -> Option<String> {
        let learnt = self.engine.policy.learnt.as_ref().and_then(|learnt| learnt.check().err());
        if let Some(error) = learnt {
            return Some(error.to_string());
        }
        amounts::check_snapshot(&self.snapshot).err().map(|error| error.to_string())
    }
}

/// Every line between the first and the last: what happened at one instant, and what was decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedStep {
    pub now_ms: u64,
    /// What the engine was told, in order.
    pub events: Vec<Event>,
    pub actions: Vec<Action>,
    /// Whether it decided then. A live engine is told things at more than one time before it
    /// decides.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub decides: bool,
}

impl RecordedStep {
    /// What no simulation has, if anything of it.
    fn problem(&self) -> Option<String> {
        amounts::check_step(&self.events, &self.actions).err().map(|error| error.to_string())
    }
}

fn yes() -> bool {
    true
}

// The form that serde asks for.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_yes(decides: &bool) -> bool {
    *decides
}

/// Last line of a recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndMark {
    /// Lines of [`RecordedStep`]s before it.
    pub end_of_steps: u64,
    /// Hash of everything that happened and was decided in them.
    pub event_log_hash: String,
}

/// Why a recording cannot be written or replayed.
#[derive(Debug, Error)]
pub enum RecordError {
    /// The file cannot be read or written.
    #[error("{file}: {source}")]
    Io {
        file: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// A line is not what belongs there.
    #[error("{}: {problem}", FilePosition::line(.file, *.line))]
    Line {
        file: String,
        /// Line, from 1.
        line: u64,
        problem: String,
    },
    /// A line is no JSON, or not that of what belongs there: a sentence that begins with the place.
    #[error("{0}")]
    Json(String),
    /// It stops within its first line: nothing can be replayed.
    #[error(
        "{file}: the recording stops after line {whole_lines}, before the first decision: it was truncated while it was \
         written or copied; copy it again, or record the run again"
    )]
    CutOff { file: String, whole_lines: u64 },
}

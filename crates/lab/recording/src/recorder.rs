//! Writing the recording of a live scheduler.

use std::io::Write;

use dovetail_control::control::Settings;
use dovetail_control::record::{EngineEntry, RecordEntry};
use dovetail_sim::event_log::EventLog;
use dovetail_sim::record::{LIVE_FORMAT, LineWriter, RecordError};
use serde::{Deserialize, Serialize};

/// First line.
#[derive(Serialize, Deserialize)]
pub(crate) struct Header {
    dovetail_recording: u32,
    /// Version of the program that wrote it.
    pub(crate) build: String,
    /// How the scheduler decides.
    pub(crate) scheduler: Settings,
}

/// Writes a recording; the first error stops it and is kept for [`LiveRecorder::finish`].
#[derive(Debug)]
pub struct LiveRecorder<W> {
    lines: LineWriter<W>,
    log: EventLog,
}

impl<W: Write> LiveRecorder<W> {
    /// Starts the recording of a leadership.
    pub fn start(file: &str, output: W, build: &str, settings: &Settings) -> Self {
        let mut lines = LineWriter::of(file, output);
        lines.write(&Header {
            dovetail_recording: LIVE_FORMAT,
            build: build.to_owned(),
            scheduler: settings.clone(),
        });
        Self { lines, log: EventLog::default() }
    }

    /// Adds a step.
    pub fn step(&mut self, entry: &RecordEntry, engines: &[EngineEntry]) {
        note(&mut self.log, engines);
        if entry.lost > 0 {
            let text = format!("{} inputs came without the JSON of their objects", entry.lost);
            self.lines.fail(std::io::Error::other(text));
        }
        self.lines.step(entry);
    }

    /// What kept a line from being written; nothing is written after it.
    pub fn problem(&self) -> Option<&std::io::Error> {
        self.lines.problem()
    }

    /// Writes the end mark and gives the output back.
    ///
    /// # Errors
    /// The first error of writing.
    pub fn finish(self) -> Result<W, RecordError> {
        self.lines.finish(&self.log)
    }
}

/// What happened to engines, and what they decided.
pub(crate) fn note(log: &mut EventLog, engines: &[EngineEntry]) {
    for engine in engines {
        if let EngineEntry::Steps { now_ms, events, .. } = engine {
            events.iter().for_each(|event| log.happened(*now_ms, event));
        }
        engine.actions().iter().for_each(|action| log.decided(action));
    }
}

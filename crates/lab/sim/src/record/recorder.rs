//! Writing a recording.

use std::io::Write;

use dovetail_model::{Event, Plan};
use dovetail_plan::{Engine, EngineConfig};
use serde::Serialize;

use crate::event_log::EventLog;
use crate::record::{EndMark, FORMAT, Header, RecordError, RecordedStep};
use crate::timed::Observer;

/// Writes a recording; the first error stops it and is kept for [`Recorder::finish`].
#[derive(Debug)]
pub struct Recorder<W> {
    lines: LineWriter<W>,
    log: EventLog,
}

impl<W: Write> Recorder<W> {
    /// Starts a recording of an engine as it stands. `config` must hold what its policy has learnt.
    pub fn start(
        file: &str,
        output: W,
        build: &str,
        config: &EngineConfig,
        engine: &Engine,
    ) -> Self {
        let mut config = config.clone();
        config.policy.learnt = engine.policy().learnt().cloned();
        let mut lines = LineWriter::of(file, output);
        lines.write(&Header {
            dovetail_recording: FORMAT,
            build: build.to_owned(),
            engine: config,
            snapshot: engine.snapshot(),
        });
        Self { lines, log: EventLog::default() }
    }

    /// Adds one instant.
    pub fn step(&mut self, now_ms: u64, events: &[Event], plan: &Plan) {
        events.iter().for_each(|event| self.log.happened(now_ms, event));
        plan.actions.iter().for_each(|action| self.log.decided(action));
        self.lines.step(&RecordedStep {
            now_ms,
            events: events.to_vec(),
            actions: plan.actions.clone(),
            decides: true,
        });
    }

    /// Writes the end mark and gives the output back.
    ///
    /// # Errors
    /// The first error of writing.
    pub fn finish(self) -> Result<W, RecordError> {
        self.lines.finish(&self.log)
    }
}

/// The lines of a recording as they are written; after an error no more of them.
#[derive(Debug)]
pub struct LineWriter<W> {
    file: String,
    output: W,
    failed: Option<std::io::Error>,
    steps: u64,
}

impl<W: Write> LineWriter<W> {
    /// Writes nothing yet.
    pub fn of(file: &str, output: W) -> Self {
        Self { file: file.to_owned(), output, failed: None, steps: 0 }
    }

    /// Writes a line that is not a step.
    pub fn write(&mut self, value: &impl Serialize) {
        if self.failed.is_some() {
            return;
        }
        let text = serde_json::to_string(value).expect("recordings hold nothing that JSON lacks");
        self.failed = writeln!(self.output, "{text}").err();
    }

    /// Writes the line of a step.
    pub fn step(&mut self, step: &impl Serialize) {
        self.steps += 1;
        self.write(step);
    }

    /// What comes next cannot be written down: nothing is.
    pub fn fail(&mut self, error: std::io::Error) {
        self.failed.get_or_insert(error);
    }

    /// What kept a line from being written; nothing is written after it.
    pub fn problem(&self) -> Option<&std::io::Error> {
        self.failed.as_ref()
    }

    /// Writes the end mark and gives the output back.
    ///
    /// # Errors
    /// The first error of writing.
    pub fn finish(mut self, log: &EventLog) -> Result<W, RecordError> {
        self.write(&EndMark { end_of_steps: self.steps, event_log_hash: log.hash() });
        let flushed = self.output.flush();
        match self.failed.or(flushed.err()) {
            Some(source) => Err(RecordError::Io { file: self.file, source }),
            None => Ok(self.output),
        }
    }
}

impl<W: Write> Observer for Recorder<W> {
    fn stepped(&mut self, _engine: &mut Engine, now_ms: u64, events: &[Event], plan: &Plan) {
        self.step(now_ms, events, plan);
    }
}

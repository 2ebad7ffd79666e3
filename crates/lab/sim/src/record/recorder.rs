//! Writing a recording.

use std::io::Write;

use dovetail_model::{Action, Event, Plan};
use dovetail_plan::{Engine, EngineConfig};

use crate::event_log::EventLog;
use crate::record::{EndMark, FORMAT, Header, RecordError, Step};
use crate::timed::Observer;

/// Writes a recording; the first error stops it and is kept for [`Recorder::finish`].
#[derive(Debug)]
pub struct Recorder<W> {
    file: String,
    output: W,
    failed: Option<std::io::Error>,
    steps: u64,
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
        let mut recorder = Self {
            file: file.to_owned(),
            output,
            failed: None,
            steps: 0,
            log: EventLog::default(),
        };
        let mut config = config.clone();
        config.policy.learnt = engine.policy().learnt().cloned();
        let header = Header {
            dovetail_recording: FORMAT,
            build: build.to_owned(),
            engine: config,
            snapshot: engine.snapshot(),
        };
        recorder.line(&header);
        recorder
    }

    /// Adds one instant.
    pub fn step(&mut self, now_ms: u64, events: &[Event], plan: &Plan) {
        self.add(Step {
            now_ms,
            events: events.to_vec(),
            actions: plan.actions.clone(),
            decides: true,
        });
    }

    /// Adds what the engine was told at one instant, with what it answered at once, if it does not
    /// decide yet.
    pub fn told(&mut self, now_ms: u64, events: Vec<Event>, actions: Vec<Action>) {
        self.add(Step { now_ms, events, actions, decides: false });
    }

    fn add(&mut self, step: Step) {
        let now_ms = step.now_ms;
        self.steps += 1;
        step.events.iter().for_each(|event| self.log.happened(now_ms, event));
        step.actions.iter().for_each(|action| self.log.decided(action));
        self.line(&step);
    }

    /// What kept a line from being written; nothing is written after it.
    pub fn problem(&self) -> Option<&std::io::Error> {
        self.failed.as_ref()
    }

    /// Writes the end mark and gives the output back.
    ///
    /// # Errors
    /// The first error of writing.
    pub fn finish(mut self) -> Result<W, RecordError> {
        let end = EndMark { end_of_steps: self.steps, event_log_hash: self.log.hash() };
        self.line(&end);
        let flushed = self.output.flush();
        match self.failed.or(flushed.err()) {
            Some(source) => Err(RecordError::Io { file: self.file, source }),
            None => Ok(self.output),
        }
    }

    fn line(&mut self, value: &impl serde::Serialize) {
        if self.failed.is_some() {
            return;
        }
        let text = serde_json::to_string(value).expect("recordings hold nothing that JSON lacks");
        self.failed = writeln!(self.output, "{text}").err();
    }
}

impl<W: Write> Observer for Recorder<W> {
    fn stepped(&mut self, _engine: &mut Engine, now_ms: u64, events: &[Event], plan: &Plan) {
        self.step(now_ms, events, plan);
    }
}

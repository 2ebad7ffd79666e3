//! Replaying a recording and comparing every answer.

use std::io::BufRead;

use dovetail_model::{Action, Plan};
use dovetail_plan::Engine;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::event_log::EventLog;
use crate::record::{FORMAT, Header, RecordError, Step};

/// What a replay found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ReplayReport {
    /// Version of the program that wrote the recording.
    pub recorded_by: String,
    /// Instants replayed.
    pub steps: u64,
    /// Decisions compared.
    pub actions: u64,
    /// The first difference; `None` if there is none.
    pub divergence: Option<Divergence>,
    /// Hash of everything that happened in the replay.
    pub event_log_hash: String,
}

/// The first place where a replay decided otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Divergence {
    /// Line of the recording, from 1.
    pub line: u64,
    /// Virtual time.
    pub now_ms: u64,
    /// What was recorded, from the first difference on; `None`: nothing more.
    pub recorded: Option<Action>,
    /// What the replay decided.
    pub replayed: Option<Action>,
}

/// Replays a recording up to its end or its first divergence.
///
/// # Errors
/// [`RecordError`] names the line that cannot be read or that the engine refuses.
pub fn replay(file: &str, input: impl BufRead) -> Result<ReplayReport, RecordError> {
    let mut lines = Lines { file, input, line: 0, text: String::new() };
    let header: Header = lines
        .next()?
        .ok_or_else(|| lines.problem("the file is empty: expected the header of a recording"))?;
    if header.dovetail_recording != FORMAT {
        let found = header.dovetail_recording;
        return Err(
            lines.problem(&format!("recording of form {found}: this program reads {FORMAT}"))
        );
    }
    let mut engine = Engine::new(header.engine, &header.snapshot)
        .map_err(|error| lines.problem(&error.to_string()))?;
    let mut log = EventLog::default();
    let mut report = ReplayReport {
        recorded_by: header.build,
        steps: 0,
        actions: 0,
        divergence: None,
        event_log_hash: String::new(),
    };
    while let Some(step) = lines.next::<Step>()? {
        let mut plan = Plan::default();
        for event in step.events {
            log.happened(step.now_ms, &event);
            let applied = engine.apply(event, step.now_ms);
            let applied = applied.map_err(|error| lines.problem(&error.to_string()))?;
            plan.actions.extend(applied.actions);
        }
        engine.cycle(&mut plan);
        plan.actions.iter().for_each(|action| log.decided(action));
        report.steps += 1;
        report.actions += plan.actions.len() as u64;
        report.divergence = first_difference(lines.line, step.now_ms, &step.actions, &plan.actions);
        if report.divergence.is_some() {
            break;
        }
    }
    report.event_log_hash = log.hash();
    Ok(report)
}

fn first_difference(
    line: u64,
    now_ms: u64,
    recorded: &[Action],
    replayed: &[Action],
) -> Option<Divergence> {
    let longest = recorded.len().max(replayed.len());
    let place = (0..longest).find(|place| recorded.get(*place) != replayed.get(*place))?;
    Some(Divergence {
        line,
        now_ms,
        recorded: recorded.get(place).cloned(),
        replayed: replayed.get(place).cloned(),
    })
}

/// Lines of JSON, counted.
struct Lines<'f, R> {
    file: &'f str,
    input: R,
    line: u64,
    text: String,
}

impl<R: BufRead> Lines<'_, R> {
    fn next<T: DeserializeOwned>(&mut self) -> Result<Option<T>, RecordError> {
        self.text.clear();
        self.line += 1;
        let io_error = |source| RecordError::Io { file: self.file.to_owned(), source };
        if self.input.read_line(&mut self.text).map_err(io_error)? == 0 {
            return Ok(None);
        }
        let read = serde_json::from_str(&self.text);
        read.map(Some).map_err(|error| self.problem(&format!("not a line of a recording: {error}")))
    }

    fn problem(&self, problem: &str) -> RecordError {
        RecordError::Line {
            file: self.file.to_owned(),
            line: self.line,
            problem: problem.to_owned(),
        }
    }
}

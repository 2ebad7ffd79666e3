//! Replaying a recording and comparing every answer.

use std::io::{BufRead, ErrorKind, Read};

use dovetail_model::{Action, Plan};
use dovetail_plan::Engine;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::event_log::EventLog;
use crate::record::{EndMark, FORMAT, Header, OLDEST_FORMAT, RecordError, Step};

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
    /// The last whole line of a recording without its end mark: who wrote it was killed, or the
    /// file was cut off.
    pub cut_off_after_line: Option<u64>,
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

/// Replays a recording up to its end or its first divergence; one that was cut off, up to its last
/// whole line.
///
/// # Errors
/// [`RecordError`] names the line that cannot be read or that the engine refuses, or says that the
/// recording was cut off within its first line.
pub fn replay(file: &str, input: impl BufRead) -> Result<ReplayReport, RecordError> {
    let mut lines = Lines::of(file, input);
    let header = lines.header()?;
    let mut engine = Engine::new(header.engine, &header.snapshot)
        .map_err(|error| lines.problem(&error.to_string()))?;
    let mut log = EventLog::default();
    let mut report = ReplayReport {
        recorded_by: header.build,
        steps: 0,
        actions: 0,
        divergence: None,
        cut_off_after_line: None,
        event_log_hash: String::new(),
    };
    let end = loop {
        let step = match lines.step_or_end()? {
            Line::Step(step) => step,
            Line::End(end) => break Some(end),
            Line::CutOff => {
                report.cut_off_after_line = Some(lines.line - 1);
                break None;
            }
        };
        let mut plan = Plan::default();
        for event in step.events {
            log.happened(step.now_ms, &event);
            let applied = engine.apply(event, step.now_ms);
            let applied = applied.map_err(|error| lines.problem(&error.to_string()))?;
            plan.actions.extend(applied.actions);
        }
        if step.decides {
            engine.cycle(&mut plan);
        }
        plan.actions.iter().for_each(|action| log.decided(action));
        report.steps += 1;
        report.actions += plan.actions.len() as u64;
        report.divergence = first_difference(lines.line, step.now_ms, &step.actions, &plan.actions);
        if report.divergence.is_some() {
            break None;
        }
    };
    report.event_log_hash = log.hash();
    if let Some(end) = end {
        lines.check_end(&end, &report)?;
    }
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
pub(super) struct Lines<'f, R> {
    file: &'f str,
    input: R,
    line: u64,
    text: String,
}

/// A line after the first.
pub(super) enum Line {
    Step(Step),
    End(EndMark),
    /// There is none, or half of one.
    CutOff,
}

/// Longest line that is read: a snapshot of a million pods is shorter, and a longer line is damage.
const LONGEST_LINE_BYTES: u64 = 1 << 30;

/// How a header begins.
const HEADER: &str = "{\"dovetail_recording\"";
/// How the end mark begins, and no step does.
const END: &str = "{\"end_of_steps\"";

impl<'f, R: BufRead> Lines<'f, R> {
    pub(super) fn of(file: &'f str, input: R) -> Self {
        Self { file, input, line: 0, text: String::new() }
    }

    /// Number of the line that was read last.
    pub(super) fn line(&self) -> u64 {
        self.line
    }

    pub(super) fn header(&mut self) -> Result<Header, RecordError> {
        if !self.advance()? {
            return Err(self.problem("the file is empty: expected the header of a recording"));
        }
        if self.text.starts_with(HEADER) && !self.text.ends_with('\n') {
            return Err(self.cut_off());
        }
        let header: Header = self.parsed()?;
        match header.dovetail_recording {
            OLDEST_FORMAT..=FORMAT => Ok(header),
            found => {
                let problem = format!(
                    "recording of form {found}, and this program reads forms {OLDEST_FORMAT} to {FORMAT}: \
                     record the run again"
                );
                Err(self.problem(&problem))
            }
        }
    }

    pub(super) fn step_or_end(&mut self) -> Result<Line, RecordError> {
        match self.advance() {
            Ok(true) => {}
            Ok(false) | Err(RecordError::CutOff { .. }) => return Ok(Line::CutOff),
            Err(error) => return Err(error),
        }
        match self.text.starts_with(END) {
            true => self.parsed().map(Line::End),
            false => self.parsed().map(Line::Step),
        }
    }

    /// Whether the end mark says what was there, and nothing follows it.
    fn check_end(&mut self, end: &EndMark, report: &ReplayReport) -> Result<(), RecordError> {
        if end.end_of_steps != report.steps {
            let (recorded, found) = (end.end_of_steps, report.steps);
            let problem = format!("{recorded} instants were recorded and {found} are here");
            return Err(self.problem(&problem));
        }
        if end.event_log_hash != report.event_log_hash {
            return Err(self.problem("the events are not the ones that were recorded"));
        }
        match self.advance()? {
            true => Err(self.problem("something follows the end mark of the recording")),
            false => Ok(()),
        }
    }

    /// Reads a line; false at the end of the file.
    fn advance(&mut self) -> Result<bool, RecordError> {
        self.text.clear();
        self.line += 1;
        match (&mut self.input).take(LONGEST_LINE_BYTES).read_line(&mut self.text) {
            Ok(0) => Ok(false),
            // A line without its end is the last one, and half of it is missing.
            Ok(_) if !self.text.ends_with('\n') && self.line > 1 => Err(self.cut_off()),
            Ok(_) => Ok(true),
            // A compressed file that was cut.
            Err(source) if source.kind() == ErrorKind::UnexpectedEof => Err(self.cut_off()),
            Err(source) => Err(RecordError::Io { file: self.file.to_owned(), source }),
        }
    }

    fn parsed<T: DeserializeOwned>(&self) -> Result<T, RecordError> {
        let read = serde_json::from_str(&self.text);
        read.map_err(|error| self.problem(&format!("not a line of a recording: {error}")))
    }

    fn cut_off(&self) -> RecordError {
        RecordError::CutOff { file: self.file.to_owned(), whole_lines: self.line - 1 }
    }

    pub(super) fn problem(&self, problem: &str) -> RecordError {
        RecordError::Line {
            file: self.file.to_owned(),
            line: self.line,
            problem: problem.to_owned(),
        }
    }
}

//! Replaying a recording and comparing every answer.

use std::io::{BufRead, ErrorKind, Read};

use dovetail_model::Action;
use dovetail_plan::{Batch, Engine};
use dovetail_units::place::{CARRIAGE_RETURNS, bad_json};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::event_log::EventLog;
use crate::record::{
    EndMark, FORMAT, Header, LIVE_FORMAT, OLDEST_FORMAT, RecordError, RecordedStep,
};

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
    pub recorded: Option<ComparedDecision>,
    /// What the replay decided.
    pub replayed: Option<ComparedDecision>,
}

/// What is compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum ComparedDecision {
    /// What an engine decided.
    Action(Action),
    /// A request to the API server, as its recording has it.
    Request(serde_json::Value),
}

/// Replays a recording up to its end or its first divergence; one that was cut off, up to its last
/// whole line.
///
/// # Errors
/// [`RecordError`] names the line that cannot be read or that the engine refuses, or says that the
/// recording was cut off within its first line.
pub fn replay(file: &str, input: impl BufRead) -> Result<ReplayReport, RecordError> {
    replay_lines(JsonLines::of(file, input)?)
}

/// Replays the recording of an engine, of which the first line has been read.
///
/// # Errors
/// As [`replay`].
pub fn replay_lines(mut lines: JsonLines<'_, impl BufRead>) -> Result<ReplayReport, RecordError> {
    let header = lines.engine_header()?;
    let mut engine = Engine::new(header.engine, &header.snapshot)
        .map_err(|error| lines.problem(&error.to_string()))?;
    let mut log = EventLog::default();
    let mut report = ReplayReport::of(header.build);
    let end = loop {
        let step = match lines.next_step()? {
            RecordLine::Step(step) => step,
            RecordLine::End(end) => break Some(end),
            RecordLine::CutOff => {
                report.cut_off_after_line = Some(lines.line - 1);
                break None;
            }
        };
        step.events.iter().for_each(|event| log.happened(step.now_ms, event));
        let batch = Batch::of(step.events);
        let batch = if step.decides { batch } else { batch.undecided() };
        let plan = engine.step(batch, step.now_ms);
        let plan = plan.map_err(|error| lines.problem(&error.to_string()))?;
        plan.actions.iter().for_each(|action| log.decided(action));
        report.steps += 1;
        report.actions += plan.actions.len() as u64;
        let both =
            [step.actions, plan.actions].map(|all| all.into_iter().map(ComparedDecision::Action));
        report.divergence = first_difference(lines.line, step.now_ms, both);
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

impl ReplayReport {
    /// That of a recording of which nothing was replayed yet.
    pub fn of(recorded_by: String) -> Self {
        Self {
            recorded_by,
            steps: 0,
            actions: 0,
            divergence: None,
            cut_off_after_line: None,
            event_log_hash: String::new(),
        }
    }
}

/// The first of what was recorded and what the replay decided in which the two differ.
pub fn first_difference(
    line: u64,
    now_ms: u64,
    [mut recorded, mut replayed]: [impl Iterator<Item = ComparedDecision>; 2],
) -> Option<Divergence> {
    loop {
        match (recorded.next(), replayed.next()) {
            (None, None) => return None,
            (recorded, replayed) if recorded == replayed => {}
            (recorded, replayed) => return Some(Divergence { line, now_ms, recorded, replayed }),
        }
    }
}

/// Lines of JSON, counted.
pub struct JsonLines<'f, R> {
    file: &'f str,
    input: R,
    line: u64,
    text: String,
}

/// A line after the first.
pub enum RecordLine<S> {
    /// What happened in one step.
    Step(S),
    /// The recording is whole.
    End(EndMark),
    /// There is none, or half of one.
    CutOff,
}

/// The form of a recording, as its first line says.
#[derive(Deserialize)]
struct Form {
    dovetail_recording: u32,
}

/// Longest line that is read: a snapshot of a million pods is shorter, and a longer line is damage.
const LONGEST_LINE_BYTES: u64 = 1 << 30;

/// How a header begins.
const HEADER: &str = "{\"dovetail_recording\"";
/// How the end mark begins, and no step does.
const END: &str = "{\"end_of_steps\"";

impl<'f, R: BufRead> JsonLines<'f, R> {
    /// A recording whose first line is read.
    ///
    /// # Errors
    /// When there is none, or only half of it.
    pub fn of(file: &'f str, input: R) -> Result<Self, RecordError> {
        let mut lines = Self { file, input, line: 0, text: String::new() };
        if !lines.advance()? {
            return Err(lines.problem("the file is empty: expected the header of a recording"));
        }
        if lines.text.trim_end().contains('\r') {
            return Err(lines.problem(CARRIAGE_RETURNS));
        }
        if lines.text.starts_with(HEADER) && !lines.text.ends_with('\n') {
            return Err(lines.cut_off());
        }
        Ok(lines)
    }

    /// Number of the line that was read last.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Whether the first line is that of a live scheduler's recording.
    pub fn is_live(&self) -> bool {
        self.form().is_ok_and(|form| form == LIVE_FORMAT)
    }

    /// The first line of a recording of this form or an older one.
    ///
    /// # Errors
    /// When it is of another form, or of none.
    pub fn header<H: DeserializeOwned>(&mut self, newest: u32) -> Result<H, RecordError> {
        match self.form()? {
            found if (OLDEST_FORMAT..=newest).contains(&found) => self.parsed(),
            found => {
                let problem = format!(
                    "unsupported recording format {found} (this version reads {OLDEST_FORMAT} to \
                     {LIVE_FORMAT}): record the run again"
                );
                Err(self.problem(&problem))
            }
        }
    }

    /// The first line of the recording of an engine.
    ///
    /// # Errors
    /// As [`JsonLines::header`], and when numbers of it are beyond their limits.
    pub(super) fn engine_header(&mut self) -> Result<Header, RecordError> {
        let header: Header = self.header(FORMAT)?;
        match header.problem() {
            Some(problem) => Err(self.problem(&problem)),
            None => Ok(header),
        }
    }

    fn form(&self) -> Result<u32, RecordError> {
        self.parsed::<Form>().map(|form| form.dovetail_recording)
    }

    /// The next line.
    ///
    /// # Errors
    /// When it is none of a recording.
    pub fn next_line<S: DeserializeOwned>(&mut self) -> Result<RecordLine<S>, RecordError> {
        match self.advance() {
            Ok(true) => {}
            Ok(false) | Err(RecordError::CutOff { .. }) => return Ok(RecordLine::CutOff),
            Err(error) => return Err(error),
        }
        match self.text.starts_with(END) {
            true => self.parsed().map(RecordLine::End),
            false => self.parsed().map(RecordLine::Step),
        }
    }

    /// The next line of the recording of an engine.
    ///
    /// # Errors
    /// As [`JsonLines::next_line`], and when amounts of it are beyond their limits.
    pub(super) fn next_step(&mut self) -> Result<RecordLine<RecordedStep>, RecordError> {
        let line: RecordLine<RecordedStep> = self.next_line()?;
        if let RecordLine::Step(step) = &line
            && let Some(problem) = step.problem()
        {
            return Err(self.problem(&problem));
        }
        Ok(line)
    }

    /// Whether the end mark says what was there, and nothing follows it.
    ///
    /// # Errors
    /// When it does not, or something does.
    pub fn check_end(&mut self, end: &EndMark, report: &ReplayReport) -> Result<(), RecordError> {
        if end.end_of_steps != report.steps {
            let (recorded, found) = (end.end_of_steps, report.steps);
            let problem = format!("the end mark counts {recorded} steps, but the file has {found}");
            return Err(self.problem(&problem));
        }
        if end.event_log_hash != report.event_log_hash {
            return Err(self.problem("the events are not the ones that were recorded"));
        }
        match self.advance() {
            Ok(false) => Ok(()),
            // Of a compressed file only the checksum is cut off: the end mark has one of its own.
            Err(RecordError::CutOff { .. }) if self.text.is_empty() => Ok(()),
            Ok(true) | Err(RecordError::CutOff { .. }) => {
                Err(self.problem("the recording continues after its end mark"))
            }
            Err(error) => Err(error),
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
        let what = "not a line of a recording";
        read.map_err(|error: serde_json::Error| match self.line {
            1 if !self.text.starts_with('{') => {
                self.problem("not a recording; pass a file that --record wrote")
            }
            _ => RecordError::Json(bad_json(self.file, self.line, what, &error.to_string())),
        })
    }

    fn cut_off(&self) -> RecordError {
        RecordError::CutOff { file: self.file.to_owned(), whole_lines: self.line - 1 }
    }

    /// Something is wrong with this line.
    pub fn problem(&self, problem: &str) -> RecordError {
        RecordError::Line {
            file: self.file.to_owned(),
            line: self.line,
            problem: problem.to_owned(),
        }
    }
}

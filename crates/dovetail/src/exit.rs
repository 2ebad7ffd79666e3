//! Exit codes, and how an error is told.

use std::io;
use std::process::ExitCode;

use anyhow::Error;
use dovetail_comparison::ReportError;
use dovetail_console::plain::plain_lines;
use dovetail_console::style::{OutputStream, Style};
use dovetail_exact::BoundError;
use dovetail_metrics::file::UsageFileError;
use dovetail_plan::{EngineError, UnknownPolicy};
use dovetail_price::PriceError;
use dovetail_settings::errors::{BadInput, Diverged, FailingFindings, UsageError, Violated};
use dovetail_settings::form::Color;
use dovetail_sim::baseline::BaselineError;
use dovetail_sim::record::{CheckpointError, RecordError};
use dovetail_sim::timed::TimedError;
use dovetail_sim::timeline::TimelineError;
use dovetail_trace::TraceError;

/// The promise of the help texts.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  any other failure, such as a file that cannot be read or a server that does not answer
  2  invalid usage: an unknown flag, an invalid value, an invalid setting
  3  invalid input data; the message names the file and, if known, the line
  4  an internal check failed (a bug; report it), or a replay of a recording diverged
  5  an audit has a finding at least as severe as --fail-on
130  interrupted with Ctrl-C; no partial file remains";

const FAILURE: u8 = 1;
const USAGE: u8 = 2;
const BAD_INPUT: u8 = 3;
const VIOLATED: u8 = 4;
const FOUND: u8 = 5;

/// Tells an error, if there is one, and turns the outcome into the exit code.
pub(crate) fn of(outcome: anyhow::Result<()>, color: Color) -> ExitCode {
    let Err(error) = outcome else { return ExitCode::SUCCESS };
    // Who closes the pipe has read enough.
    if is_closed_pipe(&error) {
        return ExitCode::SUCCESS;
    }
    let style = Style::new(color, OutputStream::Error);
    dovetail_console::app::to_stderr(&format!("{} {}", style.alarm("error:"), told(&error)));
    ExitCode::from(code(&error))
}

/// The error with its causes, outermost first; a cause that the text above has quoted is left out.
/// What it quotes may be anybody's.
fn told(error: &Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1) {
        let cause = cause.to_string();
        if !text.contains(&cause) {
            text += &format!("\n  caused by: {cause}");
        }
    }
    plain_lines(&text)
}

fn is_closed_pipe(error: &Error) -> bool {
    let closed = |cause: &(dyn std::error::Error + 'static)| {
        cause.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
    };
    error.chain().any(closed)
}

fn code(error: &Error) -> u8 {
    error.chain().find_map(code_of_cause).unwrap_or(FAILURE)
}

fn code_of_cause(cause: &(dyn std::error::Error + 'static)) -> Option<u8> {
    if cause.is::<UsageError>() {
        return Some(USAGE);
    }
    if cause.is::<BadInput>() || cause.is::<BaselineError>() {
        return Some(BAD_INPUT);
    }
    if cause.is::<FailingFindings>() {
        return Some(FOUND);
    }
    // The program alone decides what goes into a report.
    if cause.is::<Violated>() || cause.is::<Diverged>() || cause.is::<ReportError>() {
        return Some(VIOLATED);
    }
    if let Some(error) = cause.downcast_ref::<TraceError>() {
        return match error {
            TraceError::Synth { .. } => Some(USAGE),
            error if error.is_bad_input() => Some(BAD_INPUT),
            _ => None,
        };
    }
    if let Some(error) = cause.downcast_ref::<UsageFileError>() {
        return error.is_bad_input().then_some(BAD_INPUT);
    }
    if cause.is::<BoundError>() || cause.is::<PriceError>() {
        return Some(BAD_INPUT);
    }
    if let Some(error) = cause.downcast_ref::<TimelineError>() {
        let is_input = matches!(error, TimelineError::Money { .. });
        return Some(if is_input { BAD_INPUT } else { VIOLATED });
    }
    if let Some(error) = cause.downcast_ref::<RecordError>() {
        return code_of_recording(error);
    }
    match cause.downcast_ref::<CheckpointError>() {
        Some(CheckpointError::Simulation(error)) => return code_of_simulation(error),
        Some(_) => return Some(BAD_INPUT),
        None => {}
    }
    if let Some(error) = cause.downcast_ref::<TimedError>() {
        return code_of_simulation(error);
    }
    cause.downcast_ref::<EngineError>().and_then(code_of_engine)
}

fn code_of_recording(error: &RecordError) -> Option<u8> {
    use io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
    match error {
        RecordError::Line { .. } | RecordError::Json(_) | RecordError::CutOff { .. } => {
            Some(BAD_INPUT)
        }
        // What is no text, or no whole gzip stream.
        RecordError::Io { source, .. } => {
            matches!(source.kind(), InvalidData | InvalidInput | UnexpectedEof).then_some(BAD_INPUT)
        }
    }
}

fn code_of_simulation(error: &TimedError) -> Option<u8> {
    match error {
        TimedError::Engine(error) => code_of_engine(error),
        _ => Some(BAD_INPUT),
    }
}

fn code_of_engine(error: &EngineError) -> Option<u8> {
    match error {
        EngineError::UnknownPolicy(UnknownPolicy::Name { .. }) => Some(USAGE),
        EngineError::EmptyJob { .. } => Some(BAD_INPUT),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;

    use super::*;

    #[test]
    fn every_kind_of_error_has_its_code_also_under_a_context() {
        let usage = Error::from(UsageError("x".into()));
        let violated = Error::from(Violated("x".into()));
        let job = Err::<(), _>(BaselineError::NoJobs).context("replay").unwrap_err();
        let missing = Error::from(io::Error::from(io::ErrorKind::NotFound));
        let codes = [&usage, &violated, &job, &missing].map(code);
        assert_eq!(codes, [USAGE, VIOLATED, BAD_INPUT, FAILURE]);
    }

    #[test]
    fn a_cause_that_is_quoted_already_is_not_told_twice() {
        let inner = io::Error::other("disk on fire");
        let outer = Error::from(inner).context("cannot write: disk on fire").context("report");
        assert_eq!(told(&outer), "report\n  caused by: cannot write: disk on fire");
        let hostile = anyhow::anyhow!("bill.csv:2: `\u{1b}[31mred\u{202e}` is no amount");
        assert_eq!(told(&hostile), "bill.csv:2: `[31mred` is no amount");
    }
}

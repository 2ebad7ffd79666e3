//! Periods as people write them: `14d` until now, a day, a month, or from one moment to another.

use std::str::FromStr;

use dovetail_account::device_time::Span;
use dovetail_settings::duration::DurationFlag;
use dovetail_settings::errors::UsageError;
use dovetail_units::time::exact_time;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

/// A time of the command line.
///
/// # Errors
/// Names the format.
pub fn timestamp(text: &str) -> Result<Timestamp, String> {
    text.parse().map_err(|_| "expected an RFC 3339 time such as 2026-11-20T12:00:00Z".to_owned())
}

/// Which time is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeriodFlag {
    /// So long, until whatever is the end by itself: now, or when objects were read.
    Last { ms: u64 },
    /// From one moment to another, whenever it is asked for.
    Between(Span),
}

impl PeriodFlag {
    /// How long it is, as far as it is over.
    pub fn length_ms(self, now_ms: u64) -> u64 {
        match self {
            Self::Last { ms } => ms,
            Self::Between(span) => span.to_ms.min(now_ms).saturating_sub(span.from_ms),
        }
    }

    /// What of it is over, in whole steps: two questions within one step are for the same moments.
    ///
    /// # Errors
    /// A begin that lies ahead or within a step, and an end within one.
    pub fn span(self, now_ms: u64, step_ms: u64) -> Result<Span, UsageError> {
        let until_ms = now_ms / step_ms * step_ms;
        let span = match self {
            Self::Last { ms } => {
                let length_ms = ms.div_ceil(step_ms) * step_ms;
                return Ok(Span { from_ms: until_ms.saturating_sub(length_ms), to_ms: until_ms });
            }
            Self::Between(span) => span,
        };
        if span.from_ms >= until_ms {
            let text = format!(
                "--period: it starts at {}, which is in the future",
                exact_time(span.from_ms)
            );
            return Err(UsageError(text));
        }
        let to_ms = span.to_ms.min(until_ms);
        let within = [span.from_ms, to_ms].into_iter().find(|at_ms| at_ms % step_ms != 0);
        match within {
            None => Ok(Span { to_ms, ..span }),
            Some(at_ms) => Err(UsageError(format!(
                "--period: {} is not a multiple of the step of {} s: use another --step, or times \
                 that are multiples of the step",
                exact_time(at_ms),
                step_ms as f64 / 1e3
            ))),
        }
    }
}

impl FromStr for PeriodFlag {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = match text.split_once("..") {
            Some((from, to)) => stretch(from).zip(stretch(to)),
            None => calendar(text).map(|span| (span, span)),
        };
        match parts {
            Some((from, to)) if from.from_ms < to.to_ms => {
                Ok(Self::Between(Span { from_ms: from.from_ms, to_ms: to.to_ms }))
            }
            Some(_) => Err(format!("`{text}` ends before it starts")),
            None => match text.parse::<DurationFlag>() {
                Ok(DurationFlag { ms }) => Ok(Self::Last { ms }),
                // A number with something: a length was meant.
                Err(problem)
                    if text.starts_with(|first: char| first.is_ascii_digit())
                        && !text.contains('-') =>
                {
                    Err(problem)
                }
                Err(_) => Err(format!(
                    "`{text}` is not a period: use a duration such as 24h or 14d, a day (2026-10-14), a month (2026-10), \
                     or START..END of days, months or times (2026-10-01..2026-10-14, \
                     2026-10-01T08:00:00Z..2026-10-01T20:00:00Z), in UTC"
                )),
            },
        }
    }
}

/// A moment, or a day or month as a whole.
fn stretch(text: &str) -> Option<Span> {
    let moment = || {
        let at = text.parse::<Timestamp>().ok()?;
        let at_ms = u64::try_from(at.as_millisecond()).ok()?;
        Some(Span { from_ms: at_ms, to_ms: at_ms })
    };
    calendar(text).or_else(moment)
}

/// A day or a month, UTC.
fn calendar(text: &str) -> Option<Span> {
    let (first, next) = match text.len() {
        7 => {
            let first: Date = format!("{text}-01").parse().ok()?;
            (first, first.checked_add(1.month()).ok()?)
        }
        10 => {
            let day: Date = text.parse().ok()?;
            (day, day.tomorrow().ok()?)
        }
        _ => return None,
    };
    let begin_ms = |day: Date| {
        let at = day.to_zoned(TimeZone::UTC).ok()?.timestamp();
        u64::try_from(at.as_millisecond()).ok()
    };
    Some(Span { from_ms: begin_ms(first)?, to_ms: begin_ms(next)? })
}

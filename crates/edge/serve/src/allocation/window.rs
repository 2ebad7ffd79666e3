//! Windows and steps as people write them, in whole hours (UTC).

use dovetail_account::device_time::Span;
use dovetail_account::rollup::{DAY_MS, HOUR_MS};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};

/// No window is longer: a ledger has no more to tell, and sums must fit.
const LONGEST_MS: u64 = 10 * 366 * DAY_MS;

/// A window, as far as anything of it can be known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct QueryWindow {
    pub(super) span: Span,
    /// The end that was asked for, where that is a moment after the hour that is running, with
    /// which the span ends.
    pub(super) asked_until_ms: Option<u64>,
}

/// The time that a text means.
///
/// A number of days or weeks ends with the day that is running, as OpenCost has it; a number of
/// hours with the hour that is running. Two times end with that hour at the latest.
pub(super) fn window(text: &str, now_ms: u64) -> Result<QueryWindow, String> {
    let found = match text.split_once(',') {
        Some((from, to)) => Span { from_ms: moment(from)?, to_ms: moment(to)? },
        None => match named(text, now_ms) {
            Some(span) => span,
            None => latest(text, now_ms)?,
        },
    };
    let Span { from_ms, to_ms } = found;
    if from_ms >= to_ms {
        return Err(format!("window={text}: it ends before it starts"));
    }
    if from_ms % HOUR_MS != 0 || to_ms % HOUR_MS != 0 {
        return Err(format!(
            "window={text}: a ledger stores whole hours: start and end on a full hour"
        ));
    }
    if to_ms - from_ms > LONGEST_MS {
        return Err(format!("window={text}: it is longer than ten years"));
    }
    if from_ms >= now_ms {
        return Err(format!(
            "window={text}: it starts in the future; it is {} now",
            in_words(now_ms)
        ));
    }
    let running_ms = (now_ms / HOUR_MS + 1) * HOUR_MS;
    let is_ahead = text.contains(',') && to_ms > running_ms;
    Ok(QueryWindow {
        span: if is_ahead { Span { from_ms, to_ms: running_ms } } else { found },
        asked_until_ms: is_ahead.then_some(to_ms),
    })
}

/// A moment as RFC 3339.
pub(super) fn in_words(at_ms: u64) -> String {
    let at = i64::try_from(at_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    at.map_or_else(|| format!("{at_ms} ms"), |at| at.to_string())
}

/// So many hours, days or weeks, in ms.
pub(super) fn duration(text: &str) -> Result<u64, String> {
    let bad = || format!("`{text}` is not a duration: write one such as 24h, 7d or 1w");
    let unit_ms = match text.chars().last().ok_or_else(bad)? {
        'm' => 60_000,
        'h' => HOUR_MS,
        'd' => DAY_MS,
        'w' => 7 * DAY_MS,
        _ => return Err(bad()),
    };
    let digits = &text[..text.len() - 1];
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let count: u64 = digits.parse().ok().filter(|_| is_number).ok_or_else(bad)?;
    let ms = count.checked_mul(unit_ms).filter(|ms| *ms <= LONGEST_MS).ok_or_else(bad)?;
    match ms {
        0 => Err(bad()),
        ms if ms % HOUR_MS != 0 => Err(format!("`{text}`: a ledger stores whole hours")),
        ms => Ok(ms),
    }
}

fn latest(text: &str, now_ms: u64) -> Result<Span, String> {
    let ms = duration(text).map_err(|problem| {
        format!("window: {problem}, today, week, month, yesterday, lastweek, lastmonth, or two times with a comma")
    })?;
    let grain_ms = if text.ends_with(['d', 'w']) { DAY_MS } else { HOUR_MS };
    let to_ms = (now_ms / grain_ms + 1) * grain_ms;
    Ok(Span { from_ms: to_ms.saturating_sub(ms), to_ms })
}

fn named(text: &str, now_ms: u64) -> Option<Span> {
    let now = Timestamp::from_millisecond(i64::try_from(now_ms).ok()?).ok()?;
    let today = now.to_zoned(TimeZone::UTC).date();
    let sunday =
        today.checked_sub(i64::from(today.weekday().to_sunday_zero_offset()).days()).ok()?;
    let month = today.first_of_month();
    let (from, to) = match text {
        "today" => (today, today.tomorrow().ok()?),
        "yesterday" => (today.yesterday().ok()?, today),
        "week" => (sunday, sunday.checked_add(7.days()).ok()?),
        "lastweek" => (sunday.checked_sub(7.days()).ok()?, sunday),
        "month" => (month, month.checked_add(1.month()).ok()?),
        "lastmonth" => (month.checked_sub(1.month()).ok()?, month),
        _ => return None,
    };
    Some(Span { from_ms: midnight(from)?, to_ms: midnight(to)? })
}

fn midnight(date: Date) -> Option<u64> {
    let begin = date.to_zoned(TimeZone::UTC).ok()?;
    u64::try_from(begin.timestamp().as_millisecond()).ok()
}

/// RFC 3339, or seconds since 1970.
fn moment(text: &str) -> Result<u64, String> {
    let bad = || {
        format!(
            "window: `{text}` is not a time: write one such as 2026-11-01T00:00:00Z, or seconds \
             since 1970"
        )
    };
    let text = text.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        let seconds: u64 = text.parse().map_err(|_| bad())?;
        return seconds.checked_mul(1000).filter(|ms| *ms < 1 << 48).ok_or_else(bad);
    }
    let time: Timestamp = text.parse().map_err(|_| bad())?;
    u64::try_from(time.as_millisecond()).map_err(|_| bad())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A Wednesday.
    const NOW: &str = "2026-11-18T10:20:30Z";

    fn ms(text: &str) -> u64 {
        text.parse::<Timestamp>().unwrap().as_millisecond() as u64
    }

    #[test]
    fn windows_mean_what_opencost_means_by_them() {
        for (text, from, to) in [
            ("today", "2026-11-18T00:00:00Z", "2026-11-19T00:00:00Z"),
            ("yesterday", "2026-11-17T00:00:00Z", "2026-11-18T00:00:00Z"),
            ("week", "2026-11-15T00:00:00Z", "2026-11-22T00:00:00Z"),
            ("lastweek", "2026-11-08T00:00:00Z", "2026-11-15T00:00:00Z"),
            ("month", "2026-11-01T00:00:00Z", "2026-12-01T00:00:00Z"),
            ("lastmonth", "2026-10-01T00:00:00Z", "2026-11-01T00:00:00Z"),
            ("3h", "2026-11-18T08:00:00Z", "2026-11-18T11:00:00Z"),
            ("120m", "2026-11-18T09:00:00Z", "2026-11-18T11:00:00Z"),
            ("1d", "2026-11-18T00:00:00Z", "2026-11-19T00:00:00Z"),
            ("7d", "2026-11-12T00:00:00Z", "2026-11-19T00:00:00Z"),
            ("1w", "2026-11-12T00:00:00Z", "2026-11-19T00:00:00Z"),
            (
                "2026-11-01T00:00:00Z,2026-11-02T01:00:00+01:00",
                "2026-11-01T00:00:00Z",
                "2026-11-02T00:00:00Z",
            ),
            ("1762300800,1762304400", "2025-11-05T00:00:00Z", "2025-11-05T01:00:00Z"),
        ] {
            let found = window(text, ms(NOW));
            let span = Span { from_ms: ms(from), to_ms: ms(to) };
            assert_eq!(found, Ok(QueryWindow { span, asked_until_ms: None }), "{text}");
        }
    }

    /// At 10:20 the hour until 11:00 is running.
    #[test]
    fn two_times_end_with_the_hour_that_is_running() {
        let from = "2026-11-18T00:00:00Z";
        for (to, ahead) in [
            ("2026-11-18T11:00:00Z", false),
            ("2026-11-18T12:00:00Z", true),
            ("2026-12-18T00:00:00Z", true),
        ] {
            let span = Span { from_ms: ms(from), to_ms: ms("2026-11-18T11:00:00Z") };
            let asked_until_ms = ahead.then(|| ms(to));
            let found = window(&format!("{from},{to}"), ms(NOW));
            assert_eq!(found, Ok(QueryWindow { span, asked_until_ms }), "{to}");
        }
    }

    #[test]
    fn what_is_no_window_is_refused_with_what_would_be_one() {
        for (text, told) in [
            ("", "not a duration"),
            ("d", "not a duration"),
            ("0d", "not a duration"),
            ("-1d", "not a duration"),
            ("+1d", "not a duration"),
            ("1y", "not a duration"),
            ("99999999999999999999w", "not a duration"),
            ("7ä", "not a duration"),
            ("30m", "whole hours"),
            ("a,b", "not a time"),
            ("1762300800,", "not a time"),
            ("1762300801,1762304400", "whole hours"),
            ("1762304400,1762300800", "ends before it starts"),
            ("0,1762300800", "ten years"),
            ("2026-11-18T11:00:00Z,2026-11-18T12:00:00Z", "future"),
            ("2030-01-01T00:00:00Z,2030-01-02T00:00:00Z", "it is 2026-11-18T10:20:30Z now"),
            ("99999999999999999,999999999999999999", "not a time"),
        ] {
            let error = window(text, ms(NOW)).unwrap_err();
            assert!(error.contains(told), "{text}: {error}");
        }
    }
}

//! Equal periods before an audit and before a later one.

use dovetail_account::device_time::Span;
use dovetail_account::rollup::{DAY_MS, HOUR_MS};

/// What is longer says little about how things are now: four weeks.
const MOST_DAYS: u64 = 28;

/// The last time before `then_ms` and the last before `now_ms`, equally long, and not overlapping:
/// whole weeks, else whole days (UTC), up to four weeks; of audits on one day whole hours. `None`
/// if there is not one hour between them.
pub fn equal_periods(then_ms: u64, now_ms: u64) -> Option<(Span, Span)> {
    let of = |unit_ms: u64| {
        let (then_end, now_end) = (then_ms / unit_ms, now_ms / unit_ms);
        // It begins when the earlier audit was over.
        let count = now_end.saturating_sub(then_ms.div_ceil(unit_ms)).min(then_end);
        (then_end, now_end, count)
    };
    let span = |end: u64, count: u64, unit_ms: u64| Span {
        from_ms: (end - count) * unit_ms,
        to_ms: end * unit_ms,
    };
    let (then_end, now_end, days) = of(DAY_MS);
    if days > 0 {
        let days = days.min(MOST_DAYS);
        let days = if days < 7 { days } else { days / 7 * 7 };
        return Some((span(then_end, days, DAY_MS), span(now_end, days, DAY_MS)));
    }
    let (then_end, now_end, hours) = of(HOUR_MS);
    (hours > 0).then(|| (span(then_end, hours, HOUR_MS), span(now_end, hours, HOUR_MS)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_are_equal_and_end_before_each_audit() {
        let day = 20_000 * DAY_MS;
        let noon = |days: u64| day + days * DAY_MS + 12 * HOUR_MS;
        let of = |then_ms, now_ms| {
            let (before, after) = equal_periods(then_ms, now_ms)?;
            assert_eq!(before.to_ms - before.from_ms, after.to_ms - after.from_ms);
            assert!(before.to_ms <= then_ms && then_ms <= after.from_ms && after.to_ms <= now_ms);
            let unit = |ms: u64| (ms.abs_diff(day) / HOUR_MS) as i64;
            Some((unit(before.to_ms), unit(after.to_ms), (after.to_ms - after.from_ms) / HOUR_MS))
        };
        // Two weeks less half a day at each end: one week. A year: four weeks.
        assert_eq!(of(noon(0), noon(14)), Some((0, 14 * 24, 7 * 24)));
        assert_eq!(of(noon(0), noon(365)), Some((0, 365 * 24, 28 * 24)));
        assert_eq!(of(noon(0), noon(3)), Some((0, 72, 48)));
        // From noon to the next, and within a day: whole hours.
        assert_eq!(of(noon(0), noon(1)), Some((12, 36, 24)));
        assert_eq!(of(noon(0), noon(0) + 3 * HOUR_MS + 1), Some((12, 15, 3)));
        assert_eq!(of(noon(0), noon(0) + HOUR_MS - 1), None);
        // A clock that went back.
        assert_eq!(of(noon(1), noon(0)), None);
        assert_eq!(of(0, 10), None);
    }
}

//! When a team's weekly digest is due.

use crate::device_time::Span;
use crate::rollup::DAY_MS;

/// Samples come late, and a ledger is filled in rounds.
const SETTLED_MS: u64 = 6 * 3_600_000;

/// Who was away for longer is not told of a week that is nearly another.
const LATEST_MS: u64 = 3 * DAY_MS;

/// The week (Monday to Monday, UTC) whose digest is due at a moment: the last whole one, from six
/// hours to three days after its end, unless it was told; `told_ms` is when a digest was told last.
/// A digest that was told while its week was another's does not count, wherever the clock stood.
pub fn week_due(now_ms: u64, told_ms: Option<u64>) -> Option<Span> {
    // 1970-01-01 was a Thursday: the first Monday is the fifth.
    const FIRST_MONDAY_MS: u64 = 4 * DAY_MS;
    const WEEK_MS: u64 = 7 * DAY_MS;
    let weeks = now_ms.checked_sub(FIRST_MONDAY_MS)? / WEEK_MS;
    let to_ms = FIRST_MONDAY_MS + weeks * WEEK_MS;
    let from_ms = to_ms.checked_sub(WEEK_MS)?;
    let since_ms = now_ms - to_ms;
    let is_time = (SETTLED_MS..LATEST_MS).contains(&since_ms);
    let is_told = told_ms.is_some_and(|told_ms| told_ms >= to_ms);
    (is_time && !is_told).then_some(Span { from_ms, to_ms })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_MS: u64 = 3_600_000;
    /// Monday, 2026-11-16.
    const MONDAY_MS: u64 = 1_794_787_200_000;

    #[test]
    fn a_week_is_told_once_and_not_too_late() {
        let week = Span { from_ms: MONDAY_MS - 7 * DAY_MS, to_ms: MONDAY_MS };
        let at = |hours: u64| MONDAY_MS + hours * HOUR_MS;
        assert_eq!(week_due(at(5), None), None);
        assert_eq!(week_due(at(6), None), Some(week));
        assert_eq!(week_due(at(71), Some(at(0) - 1)), Some(week));
        assert_eq!(week_due(at(71), Some(at(6))), None);
        assert_eq!(week_due(at(72), None), None);
        // The same hour of the next week: the next one.
        let next = Span { from_ms: week.to_ms, to_ms: week.to_ms + 7 * DAY_MS };
        assert_eq!(week_due(at(7 * 24 + 6), Some(at(71))), Some(next));
        assert_eq!([week_due(0, None), week_due(6 * DAY_MS, None)], [None, None]);
    }

    #[test]
    fn every_round_of_a_year_tells_each_of_its_weeks_once() {
        let (mut told_ms, mut weeks) = (None, Vec::new());
        for minute in (0..365 * 24 * 60).step_by(5) {
            let now_ms = MONDAY_MS + minute * 60_000;
            if let Some(week) = week_due(now_ms, told_ms) {
                told_ms = Some(now_ms);
                weeks.push(week);
            }
        }
        assert_eq!(weeks.len(), 53);
        assert!(weeks.windows(2).all(|pair| pair[0].to_ms == pair[1].from_ms));
        assert!(weeks.iter().all(|week| week.to_ms - week.from_ms == 7 * DAY_MS));
    }
}

//! What a period is made of: whole days, hours beside them, and hours of these days that are not in
//! it.

use std::ops::Range;

const HOURS_PER_DAY: u64 = 24;

/// A period, so that few rows are read: a day has about as many as one of its hours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PeriodParts {
    /// Days, counted since 1970.
    pub(crate) days: Range<u64>,
    pub(crate) hours: Vec<Hours>,
}

/// Hours beside the days, or of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hours {
    /// Counted since 1970.
    pub(crate) range: Range<u64>,
    /// Of the days: what they have is taken away again.
    pub(crate) is_taken_away: bool,
}

impl PeriodParts {
    /// The parts of some hours; from the hour `end` on there are none.
    pub(crate) fn of(period: Range<u64>, end: u64) -> Self {
        if period.is_empty() {
            return Self { days: 0..0, hours: Vec::new() };
        }
        let (first, last) = (period.start / HOURS_PER_DAY, (period.end - 1) / HOURS_PER_DAY);
        let mut parts = Self { days: first..last + 1, hours: Vec::new() };
        if !parts.cut(first, &period, end) {
            parts.days.start = first + 1;
        }
        if last > first && !parts.cut(last, &period, end) {
            parts.days.end = last;
        }
        parts
    }

    /// The parts of some hours where no days can be used.
    pub(crate) fn of_hours(period: Range<u64>) -> Self {
        let hours = Hours { range: period, is_taken_away: false };
        let hours = Some(hours).filter(|hours| !hours.range.is_empty());
        Self { days: 0..0, hours: hours.into_iter().collect() }
    }

    /// The first hour that is read as one.
    pub(crate) fn first_hour(&self) -> Option<u64> {
        self.hours.iter().map(|hours| hours.range.start).min()
    }

    /// Adds the hours of a day at an edge of the period, or takes away those beyond it; whether the
    /// day is among the days.
    fn cut(&mut self, day: u64, period: &Range<u64>, end: u64) -> bool {
        let (from, to) = (day * HOURS_PER_DAY, (day + 1) * HOURS_PER_DAY);
        let inside = period.start.max(from)..period.end.min(to);
        let outside = [from..inside.start, inside.end..to.min(end.max(inside.end))];
        let count: u64 = outside.iter().map(|hours| hours.end - hours.start).sum();
        let is_whole = inside == (from..to);
        let is_day = is_whole || count < inside.end.min(end).saturating_sub(inside.start);
        let hours = if is_day { outside.to_vec() } else { vec![inside] };
        let hours = hours.into_iter().filter(|range| !range.is_empty());
        self.hours.extend(hours.map(|range| Hours { range, is_taken_away: is_day }));
        is_day
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 1000 * HOURS_PER_DAY;

    fn hours(range: Range<u64>, is_taken_away: bool) -> Hours {
        Hours { range: DAY + range.start..DAY + range.end, is_taken_away }
    }

    /// Every part of up to three days, at every end of what is known: each hour once, none that is
    /// not asked for, and never more than half a day of hours at an edge.
    #[test]
    fn parts_are_the_hours_that_were_asked_for() {
        for (from, to) in (0..72).flat_map(|from| (from..=72).map(move |to| (from, to))) {
            for end in (0..=80).step_by(4) {
                let parts = PeriodParts::of(DAY + from..DAY + to, DAY + end);
                let mut times = [0; 72];
                let days = parts.days.start * 24..parts.days.end * 24;
                days.for_each(|hour| times[(hour - DAY) as usize] += 1);
                for Hours { range, is_taken_away } in &parts.hours {
                    let by = if *is_taken_away { -1 } else { 1 };
                    range.clone().for_each(|hour| times[(hour - DAY) as usize] += by);
                }
                for (hour, times) in (0..).zip(times).filter(|(hour, _)| *hour < end) {
                    assert_eq!(times == 1, (from..to).contains(&hour), "{from} {to} {end} {hour}");
                    assert!((0..=1).contains(&times), "{from} {to} {end} {hour}");
                }
                let read = parts.hours.iter().flat_map(|hours| hours.range.clone());
                let read = read.filter(|hour| *hour < DAY + end).count();
                assert!(read <= 24, "{from} {to} {end}: {read} hours are read");
            }
        }
    }

    #[test]
    fn the_day_that_runs_is_a_day_and_nothing_is_taken_away() {
        let day = DAY / 24;
        let parts = PeriodParts::of(DAY + 15..DAY + 63, DAY + 63);
        assert_eq!(
            parts,
            PeriodParts { days: day + 1..day + 3, hours: vec![hours(15..24, false)] }
        );
        let parts = PeriodParts::of(DAY + 5..DAY + 53, DAY + 72);
        let expected = vec![hours(0..5, true), hours(48..53, false)];
        assert_eq!(parts, PeriodParts { days: day..day + 2, hours: expected });
        assert_eq!(PeriodParts::of(DAY..DAY + 48, 0).days, day..day + 2, "days are kept for ever");
        let within = PeriodParts::of(DAY + 2..DAY + 20, DAY + 48);
        assert_eq!(within.hours, [hours(0..2, true), hours(20..24, true)]);
        assert_eq!(PeriodParts::of(DAY + 2..DAY + 8, DAY + 48).hours, [hours(2..8, false)]);
        assert_eq!(PeriodParts::of(DAY + 2..DAY + 2, DAY + 48).hours, []);
    }
}

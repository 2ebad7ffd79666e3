//! What each day of a bill rests on: how far apart its samples were.

use dovetail_console::plain::plain;
use serde::Serialize;

use super::account::DayOf;

/// A day, as JSON has it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DayOut {
    pub cluster: String,
    /// The day (UTC).
    pub day: String,
    /// Hours of the day, within the period, of which something was read.
    pub hours_read: u32,
    /// Those of them of which nobody knows how far apart their samples were.
    pub(crate) hours_unknown: u32,
    /// Shortest distance of two samples in the others; null where there are no others.
    pub(crate) finest_s: Option<f64>,
    /// Longest distance.
    pub(crate) coarsest_s: Option<f64>,
}

impl DayOut {
    /// A day with how far apart its samples were.
    pub fn of(day: &DayOf) -> Self {
        let seconds = |ms: u64| ms as f64 / 1e3;
        let ms = i64::try_from(day.day).ok().and_then(|day| day.checked_mul(86_400_000));
        let begin = ms.and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
        let date = begin.map(|begin| begin.to_zoned(jiff::tz::TimeZone::UTC).date().to_string());
        Self {
            cluster: plain(&day.cluster),
            day: date.unwrap_or_else(|| "unknown".to_owned()),
            hours_read: day.hours_read,
            hours_unknown: day.hours_unknown,
            finest_s: day.step_ms.map(|(finest, _)| seconds(finest)),
            coarsest_s: day.step_ms.map(|(_, coarsest)| seconds(coarsest)),
        }
    }

    /// What it rests on, in words.
    fn words(&self) -> String {
        let steps = match (self.finest_s, self.coarsest_s) {
            (Some(finest), Some(coarsest)) if finest == coarsest => format!("{finest} s"),
            (Some(finest), Some(coarsest)) => format!("{finest} to {coarsest} s"),
            _ => return "unknown".to_owned(),
        };
        match self.hours_unknown {
            0 => steps,
            hours => format!("{steps}, of {hours} h unknown"),
        }
    }
}

/// One sentence for each cluster: days in a row that rest on the same stand together.
pub fn sentences(days: &[DayOut]) -> Vec<String> {
    let names: std::collections::BTreeSet<&str> =
        days.iter().map(|day| day.cluster.as_str()).collect();
    let sentence = |cluster: &str| {
        let mut runs: Vec<(&DayOut, &DayOut)> = Vec::new();
        for day in days.iter().filter(|day| day.cluster == cluster) {
            match runs.last_mut() {
                Some((first, last)) if first.words() == day.words() => *last = day,
                _ => runs.push((day, day)),
            }
        }
        let run = |(first, last): &(&DayOut, &DayOut)| match first.day == last.day {
            true => format!("{} {}", first.day, first.words()),
            false => format!("{} to {} {}", first.day, last.day, first.words()),
        };
        let of = if names.len() > 1 { format!(" of {cluster}") } else { String::new() };
        let runs: Vec<String> = runs.iter().map(run).collect();
        format!("Sample interval{of}, by day (UTC): {}", runs.join("; "))
    };
    names.iter().map(|cluster| sentence(cluster)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_that_rest_on_the_same_stand_together() {
        let day = |cluster: &str, day, hours_unknown, step_ms| DayOf {
            cluster: cluster.to_owned(),
            day,
            hours_read: 24,
            hours_unknown,
            step_ms,
        };
        let minute = Some((60_000, 60_000));
        let days = [
            day("west", 20_000, 0, minute),
            day("west", 20_001, 0, minute),
            day("west", 20_002, 3, Some((60_000, 300_000))),
            day("west", 20_003, 24, None),
        ];
        let out: Vec<DayOut> = days.iter().map(DayOut::of).collect();
        assert_eq!(
            sentences(&out),
            [
                "Sample interval, by day (UTC): 2024-10-04 to 2024-10-05 60 s; 2024-10-06 60 to 300 s, of 3 h \
                 unknown; 2024-10-07 unknown"
            ]
        );
        let two = [out[0].clone(), DayOut::of(&day("east", 20_000, 0, minute))];
        assert_eq!(sentences(&two).len(), 2);
        assert!(sentences(&[]).is_empty());
    }
}

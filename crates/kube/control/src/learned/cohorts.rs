//! How long jobs run that came together, as text of a bounded size.

use std::cmp::Reverse;

use dovetail_model::cohort::{CohortTable, Cohorts};
use dovetail_plan::{RunTimesError, check_cohorts};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The key of the ConfigMap.
pub(super) const COHORTS: &str = "cohorts.json";
/// Marks the form; another number is another form.
const FORMAT: &str = "dovetail-cohorts-1";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CohortsFile {
    format: String,
    cohorts: Cohorts,
}

/// The text is of no use.
#[derive(Debug, Error)]
pub(super) enum BadCohorts {
    #[error("{0}")]
    Json(serde_json::Error),
    #[error("format {found}, expected {FORMAT}")]
    Format { found: String },
    #[error("{0}")]
    Cohorts(RunTimesError),
}

/// Cohorts in at most so many bytes. Where all would be too much, older ones lack what was computed
/// of them, which the next engine computes again; then the oldest are left out.
///
/// # Errors
/// When they cannot be expressed, with the reason.
pub(super) fn write(cohorts: &Cohorts, most_bytes: usize) -> Result<String, String> {
    let mut cohorts = cohorts.clone();
    // Kinds, which have no time, come first.
    let newest = |table: &CohortTable| table.submitted_ms.map_or(u64::MAX, |(_, last_ms)| last_ms);
    cohorts.tables.sort_by_key(|table| Reverse(newest(table)));
    let mut computed = cohorts.tables.len();
    loop {
        let mut sorted = cohorts.clone();
        sorted.tables.sort_by_key(|table| table.number);
        let file = CohortsFile { format: FORMAT.to_owned(), cohorts: sorted };
        let text = serde_json::to_string(&file).map_err(|error| error.to_string())?;
        if text.len() <= most_bytes || cohorts.tables.is_empty() {
            return Ok(text);
        }
        // A tenth more goes than would have to, so that few rounds are needed.
        let share = most_bytes as f64 / text.len() as f64 * 0.9;
        match computed {
            0 => shorten(&mut cohorts, share),
            _ => computed = (computed as f64 * share) as usize,
        }
        cohorts.tables.iter_mut().skip(computed).for_each(|table| table.inverse_index_ms.clear());
    }
}

/// Leaves out the oldest cohorts.
fn shorten(cohorts: &mut Cohorts, share: f64) {
    cohorts.tables.truncate((cohorts.tables.len() as f64 * share) as usize);
    let is_there = |number: u32| cohorts.tables.iter().any(|table| table.number == number);
    cohorts.kinds.retain(|(_, number)| is_there(*number));
    cohorts.open.retain(|(_, number, _)| is_there(*number));
    cohorts.stale.retain(|number| is_there(*number));
}

/// The cohorts that a text says.
///
/// # Errors
/// When it has another form than is written here, or a number that no engine learns.
pub(super) fn read(text: &str) -> Result<Cohorts, BadCohorts> {
    let file: CohortsFile = serde_json::from_str(text).map_err(BadCohorts::Json)?;
    if file.format != FORMAT {
        return Err(BadCohorts::Format { found: file.format });
    }
    check_cohorts(&file.cohorts).map_err(BadCohorts::Cohorts)?;
    Ok(file.cohorts)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All jobs, two kinds, and this many cohorts of each, of which the later ones are newer.
    fn cohorts(of_each: u32) -> Cohorts {
        let table = |number: u32, parent: Option<u32>| CohortTable {
            number,
            parent,
            ended: vec![(7, 1_000_000), (9, 3_000_000)],
            ..CohortTable::default()
        };
        let kinds = [table(0, None), table(1, Some(0)), table(2, Some(0))];
        let of_kinds = (0..of_each).flat_map(|at| [1, 2].map(|kind| (2 * at + kind + 2, kind, at)));
        let of_kinds = of_kinds.map(|(number, kind, at)| CohortTable {
            inverse_index_ms: (0..80).map(|length| 1_000_000 + length).collect(),
            submitted_ms: Some((u64::from(at) * 7_200_000, u64::from(number) * 3_600_000)),
            ..table(number, Some(kind))
        });
        Cohorts {
            tables: kinds.into_iter().chain(of_kinds).collect(),
            kinds: vec![(0, 1), (3, 2)],
            open: vec![(0, 2 * of_each + 1, 7), (3, 2 * of_each + 2, 7)],
            ..Cohorts::default()
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let cohorts = cohorts(20);
        let text = write(&cohorts, 250_000).expect("text");
        assert_eq!(read(&text).expect("what was written"), cohorts);
    }

    #[test]
    fn of_too_many_the_newest_remain_with_all_that_is_known_of_them() {
        let all = cohorts(500);
        let text = write(&all, 250_000).expect("text");
        assert!((150_000..=250_000).contains(&text.len()), "{}", text.len());
        let kept = read(&text).expect("what was written");
        assert_eq!(kept.tables.len(), all.tables.len());
        let computed = |table: &&CohortTable| !table.inverse_index_ms.is_empty();
        let oldest = kept.tables.iter().find(computed).expect("one").number;
        let newer = kept.tables.iter().filter(|table| table.number >= oldest);
        assert!(newer.clone().count() > 100 && newer.clone().all(|table| computed(&table)));
        let text = write(&all, 100_000).expect("text");
        let kept = read(&text).expect("what was written");
        assert_eq!((&kept.kinds, &kept.open), (&all.kinds, &all.open));
        let left = kept.tables.iter().filter(|table| table.parent.is_some_and(|kind| kind > 0));
        let oldest = left.clone().map(|table| table.number).min().expect("some are left");
        assert_eq!(left.count(), all.tables.iter().filter(|t| t.number >= oldest).count());
        assert!(oldest > 3, "all are there");
    }

    #[test]
    fn text_of_another_form_or_of_other_numbers_says_what_is_wrong() {
        let bad = |cohorts: &str| {
            let text = format!(r#"{{"format": "{FORMAT}", "cohorts": {cohorts}}}"#);
            read(&text).expect_err(&text).to_string()
        };
        let problem = read("{").expect_err("no JSON").to_string();
        assert!(problem.starts_with("EOF while parsing"), "{problem}");
        let other = read(r#"{"format": "x", "cohorts": {}}"#).expect_err("another form");
        assert_eq!(other.to_string(), "format x, expected dovetail-cohorts-1");
        assert_eq!(
            bad(r#"{"tables": [{"ended": [[80, 1]]}]}"#),
            "cohorts.tables.ended is 80, expected at most 79"
        );
        assert_eq!(
            bad(r#"{"tables": [{}, {"number": 4, "parent": 3}]}"#),
            "cohorts.tables 4 belongs to no kind"
        );
        let chain = r#"{"tables": [{}, {"number": 1, "parent": 0}, {"number": 2, "parent": 1},
            {"number": 3, "parent": 2}]}"#;
        assert_eq!(bad(chain), "cohorts.tables 3 belongs to no kind");
        assert_eq!(
            bad(r#"{"tables": [{"inverse_index_ms": [1]}]}"#),
            "cohorts.tables 0 has 1 times, expected none or 80"
        );
        assert_eq!(bad(r#"{"kinds": [[0, 1]]}"#), "cohorts.tables 1 belongs to no kind");
    }
}

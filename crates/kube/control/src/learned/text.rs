//! What was learned as the data of a ConfigMap, and back.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use dovetail_model::RunTimeTables;
use dovetail_plan::{
    Learned, LearntFile, LearntFileError, RunTimesError, StartCorrections, check_run_times,
};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::cohorts::{self, BadCohorts, COHORTS};

/// The key of what the policy learned: a file for `--learned`.
pub(super) const POLICY: &str = "learnt.json";
/// The key of how long jobs run.
pub(super) const RUN_TIMES: &str = "run-times.json";
/// The key of how much later jobs start than forecasts say.
pub(super) const STARTS: &str = "starts.json";
/// A ConfigMap holds 1 MiB; some of it is left for names and labels.
const MOST_BYTES: usize = 1_000_000;
/// So much of it may be about jobs that came together.
const MOST_COHORT_BYTES: usize = 250_000;
/// Marks the form of [`RUN_TIMES`]; another number is another form.
const FORMAT: &str = "dovetail-run-times-1";
/// Marks the form of [`STARTS`].
const STARTS_FORMAT: &str = "dovetail-starts-1";

/// The data of a ConfigMap.
pub(super) type Data = BTreeMap<String, String>;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RunTimesFile {
    format: String,
    run_times: RunTimeTables,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StartsFile {
    format: String,
    corrections: StartCorrections,
}

/// The data of a ConfigMap is of no use.
#[derive(Debug, Error)]
pub(super) enum BadText {
    #[error("{key}: {problem}")]
    Json { key: &'static str, problem: serde_json::Error },
    #[error("{POLICY}: {0}")]
    Policy(LearntFileError),
    #[error("{key}: format {found}, expected {expected}")]
    Format { key: &'static str, found: String, expected: &'static str },
    #[error("{RUN_TIMES}: {0}")]
    RunTimes(RunTimesError),
    #[error("{COHORTS}: {0}")]
    Cohorts(BadCohorts),
}

/// What was learned, as data. Of run times, the groups that nothing was added to for longest are
/// left out where all would be too much.
///
/// # Errors
/// When it cannot be expressed in that size, with the reason.
pub(super) fn write(learned: &Learned) -> Result<Data, String> {
    let mut data = Data::new();
    if let Some(policy) = &learned.policy {
        data.insert(POLICY.to_owned(), json(&LearntFile::of(policy.clone()))?);
    }
    if let Some(learned) = &learned.cohorts {
        data.insert(COHORTS.to_owned(), cohorts::write(learned, MOST_COHORT_BYTES)?);
    }
    if learned.starts != StartCorrections::default() {
        let corrections = learned.starts.clone();
        let file = StartsFile { format: STARTS_FORMAT.to_owned(), corrections };
        data.insert(STARTS.to_owned(), json(&file)?);
    }
    let size: usize = data.values().map(String::len).sum();
    if let Some(tables) = &learned.run_times {
        let text = run_times(tables, MOST_BYTES.saturating_sub(size))?;
        data.insert(RUN_TIMES.to_owned(), text);
    }
    let size: usize = data.values().map(String::len).sum();
    match size <= MOST_BYTES {
        true => Ok(data),
        false => Err(format!("it takes {size} bytes, more than {MOST_BYTES}")),
    }
}

/// What the data say was learned.
///
/// # Errors
/// When a key has another form than is written here, or a number that no engine learns.
pub(super) fn read(data: &Data) -> Result<Learned, BadText> {
    let mut learned = Learned::default();
    if let Some(text) = data.get(POLICY) {
        let file: LearntFile =
            serde_json::from_str(text).map_err(|problem| BadText::Json { key: POLICY, problem })?;
        learned.policy = Some(file.into_learnt().map_err(BadText::Policy)?);
    }
    if let Some(text) = data.get(RUN_TIMES) {
        let file: RunTimesFile = serde_json::from_str(text)
            .map_err(|problem| BadText::Json { key: RUN_TIMES, problem })?;
        if file.format != FORMAT {
            return Err(bad_format(RUN_TIMES, file.format, FORMAT));
        }
        check_run_times(&file.run_times).map_err(BadText::RunTimes)?;
        learned.run_times = Some(file.run_times);
    }
    if let Some(text) = data.get(COHORTS) {
        learned.cohorts = Some(cohorts::read(text).map_err(BadText::Cohorts)?);
    }
    if let Some(text) = data.get(STARTS) {
        let file: StartsFile =
            serde_json::from_str(text).map_err(|problem| BadText::Json { key: STARTS, problem })?;
        if file.format != STARTS_FORMAT {
            return Err(bad_format(STARTS, file.format, STARTS_FORMAT));
        }
        learned.starts = file.corrections;
    }
    Ok(learned)
}

fn bad_format(key: &'static str, found: String, expected: &'static str) -> BadText {
    BadText::Format { key, found, expected }
}

/// Tables of run times in so many bytes. What was published last follows from what is learned.
fn run_times(tables: &RunTimeTables, most: usize) -> Result<String, String> {
    let mut tables = RunTimeTables { published: Vec::new(), ..tables.clone() };
    loop {
        let file = RunTimesFile { format: FORMAT.to_owned(), run_times: tables.clone() };
        let text = json(&file)?;
        if text.len() <= most || tables.next.is_empty() {
            return Ok(text);
        }
        // A tenth more goes than would have to, so that few rounds are needed.
        let share = most as f64 / text.len() as f64 * 0.9;
        tables.next.sort_by_key(|(_, counts)| Reverse(counts.last_seen));
        tables.next.truncate((tables.next.len() as f64 * share) as usize);
        tables.next.sort_by(|(one, _), (other, _)| one.cmp(other));
    }
}

fn json(value: &impl Serialize) -> Result<String, String> {
    serde_json::to_string(value).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use dovetail_model::cohort::Cohorts;
    use dovetail_model::{RunTimeCounts, RunTimeGroup};

    use super::*;

    fn tables(groups: u64) -> RunTimeTables {
        let group = |number: u64| {
            let owner = Some(format!("team-{number:06}-{}", "x".repeat(200)));
            let buckets = vec![(40, 16, 0), (44, 32, 16)];
            let counts = RunTimeCounts { buckets, last_seen: groups - number };
            (RunTimeGroup { owner, ..RunTimeGroup::default() }, counts)
        };
        RunTimeTables {
            runs: groups,
            version: 3,
            published_ms: 7,
            published: Vec::new(),
            next: (0..groups).map(group).collect(),
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let policy = Some(dovetail_plan::Learnt::default());
        let cohorts = Some(Cohorts::default());
        let by =
            dovetail_plan::OctaveCorrection { octave: 20, p50_permille: 900, p90_permille: 4_000 };
        let starts = StartCorrections(vec![by]);
        let learned = Learned { policy, run_times: Some(tables(40)), cohorts, starts };
        let data = write(&learned).expect("a ConfigMap");
        assert_eq!(read(&data).expect("what was written"), learned);
        assert_eq!(read(&Data::new()).expect("nothing"), Learned::default());
    }

    /// 4,096 groups with long names are 1.3 MB: those that runs were seen of last remain.
    #[test]
    fn a_configmap_holds_what_was_seen_last() {
        let learned = Learned { run_times: Some(tables(4_096)), ..Learned::default() };
        let data = write(&learned).expect("a ConfigMap");
        let size: usize = data.values().map(String::len).sum();
        assert!((MOST_BYTES * 3 / 4..=MOST_BYTES).contains(&size), "{size}");
        let kept = read(&data).expect("what was written").run_times.expect("run times").next;
        let oldest = kept.iter().map(|(_, counts)| counts.last_seen).min();
        assert_eq!(oldest, Some(4_096 - kept.len() as u64 + 1));
        assert!(kept.is_sorted_by(|(one, _), (other, _)| one < other));
    }

    #[test]
    fn data_of_another_form_or_of_other_numbers_say_what_is_wrong() {
        let bad = |key: &str, text: &str| {
            let data = Data::from([(key.to_owned(), text.to_owned())]);
            read(&data).expect_err(text).to_string()
        };
        let problem = bad(POLICY, "[");
        assert!(problem.starts_with("learnt.json: EOF while parsing"), "{problem}");
        assert_eq!(
            bad(POLICY, r#"{"format": "other", "learnt": {}}"#),
            "learnt.json: format other, expected dovetail-learnt-1"
        );
        let run_times =
            |tables: &str| format!(r#"{{"format": "{FORMAT}", "run_times": {tables}}}"#);
        assert_eq!(
            bad(RUN_TIMES, &run_times(r#"{"next": [[{}, {"buckets": [[96, 1, 1]]}]]}"#)),
            "run-times.json: run_times.buckets is 96, expected at most 95"
        );
        assert_eq!(
            bad(RUN_TIMES, &run_times(r#"{"next": [[{}, {"buckets": [[2, 1, 1], [2, 1, 1]]}]]}"#)),
            "run-times.json: run_times has buckets that are not in ascending order: 2, then 2"
        );
        assert_eq!(
            bad(STARTS, r#"{"format": "other", "corrections": []}"#),
            "starts.json: format other, expected dovetail-starts-1"
        );
    }
}

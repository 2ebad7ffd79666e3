//! What numbers of written tables of run times may be, so that no sum of them overflows. Whatever
//! an engine learns is far below.

use dovetail_model::{RunTimeCounts, RunTimeTables};
use thiserror::Error;

use super::buckets::BUCKETS;
use super::{MAX_GROUPS, RUN_WEIGHT};

/// Runs, versions and times.
const MOST_COUNTED: u64 = 1 << 53;
/// The weight of all runs in one bucket, with those of jobs that ran when a version was published:
/// a million. Those of all buckets can be added up.
const MOST_WEIGHT: u32 = RUN_WEIGHT << 20;
/// Groups of a published version: also those of jobs that ran.
const MOST_GROUPS: usize = 64 * MAX_GROUPS;

/// A number of run-time tables is none that an engine learns.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RunTimesError {
    #[error("run_times.{field} is {value}, expected at most {most}")]
    Beyond { field: &'static str, value: u64, most: u64 },
    #[error("run_times has buckets that are not in ascending order: {before}, then {after}")]
    Order { before: u8, after: u8 },
}

fn within(field: &'static str, value: u64, most: u64) -> Result<(), RunTimesError> {
    match value <= most {
        true => Ok(()),
        false => Err(RunTimesError::Beyond { field, value, most }),
    }
}

/// Whether these are tables that an engine could have learned.
///
/// # Errors
/// The first number that is beyond its limits.
pub fn check(tables: &RunTimeTables) -> Result<(), RunTimesError> {
    within("runs", tables.runs, MOST_COUNTED)?;
    within("version", tables.version, MOST_COUNTED)?;
    within("published_ms", tables.published_ms, MOST_COUNTED)?;
    for (field, groups) in [("published", &tables.published), ("next", &tables.next)] {
        within(field, groups.len() as u64, MOST_GROUPS as u64)?;
        groups.iter().try_for_each(|(_, counts)| check_counts(counts, tables.runs))?;
    }
    Ok(())
}

fn check_counts(counts: &RunTimeCounts, runs: u64) -> Result<(), RunTimesError> {
    within("last_seen", counts.last_seen, runs)?;
    for (bucket, ended, running) in counts.buckets.iter().copied() {
        within("buckets", bucket.into(), BUCKETS as u64 - 1)?;
        within("the weight of a bucket", ended.max(running).into(), MOST_WEIGHT.into())?;
    }
    let pairs = counts.buckets.windows(2).map(|pair| (pair[0].0, pair[1].0));
    match pairs.into_iter().find(|(before, after)| before >= after) {
        Some((before, after)) => Err(RunTimesError::Order { before, after }),
        None => Ok(()),
    }
}

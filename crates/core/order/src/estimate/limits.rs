//! What numbers of written tables of run times may be, so that no sum of them overflows. Whatever
//! an engine learns is far below.

use std::collections::BTreeMap;

use dovetail_model::cohort::{CohortTable, Cohorts};
use dovetail_model::{RunTimeCounts, RunTimeTables};
use thiserror::Error;

use super::buckets::BUCKETS;
use super::gittins::BUCKETS as LENGTHS;
use super::{MAX_GROUPS, RUN_WEIGHT};

/// Runs, versions and times.
const MOST_COUNTED: u64 = 1 << 53;
/// The weight of all runs in one bucket, with those of jobs that ran when a version was published:
/// a million. Those of all buckets can be added up.
const MOST_WEIGHT: u32 = RUN_WEIGHT << 20;
/// Groups of a published version: also those of jobs that ran.
const MOST_GROUPS: usize = 64 * MAX_GROUPS;
/// Numbers of tables, and jobs that changed since one was computed.
const MOST_NUMBERED: u64 = 1 << 31;

/// A number of run-time tables is none that an engine learns.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RunTimesError {
    #[error("{field} is {value}, expected at most {most}")]
    Beyond { field: &'static str, value: u64, most: u64 },
    #[error("run_times has buckets that are not in ascending order: {before}, then {after}")]
    Order { before: u8, after: u8 },
    #[error("cohorts.tables {number} has {found} times, expected none or {LENGTHS}")]
    Times { number: u32, found: usize },
    #[error("cohorts.tables {number} belongs to no kind")]
    Kind { number: u32 },
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
    within("run_times.runs", tables.runs, MOST_COUNTED)?;
    within("run_times.version", tables.version, MOST_COUNTED)?;
    within("run_times.published_ms", tables.published_ms, MOST_COUNTED)?;
    for (field, groups) in
        [("run_times.published", &tables.published), ("run_times.next", &tables.next)]
    {
        within(field, groups.len() as u64, MOST_GROUPS as u64)?;
        groups.iter().try_for_each(|(_, counts)| check_counts(counts, tables.runs))?;
    }
    Ok(())
}

fn check_counts(counts: &RunTimeCounts, runs: u64) -> Result<(), RunTimesError> {
    within("run_times.last_seen", counts.last_seen, runs)?;
    for (bucket, ended, running) in counts.buckets.iter().copied() {
        within("run_times.buckets", bucket.into(), BUCKETS as u64 - 1)?;
        within("run_times: the weight of a bucket", ended.max(running).into(), MOST_WEIGHT.into())?;
    }
    let pairs = counts.buckets.windows(2).map(|pair| (pair[0].0, pair[1].0));
    match pairs.into_iter().find(|(before, after)| before >= after) {
        Some((before, after)) => Err(RunTimesError::Order { before, after }),
        None => Ok(()),
    }
}

/// Whether these are cohorts that an engine could have learned.
///
/// # Errors
/// The first number that is beyond its limits, or the first table that belongs nowhere.
pub fn check_cohorts(cohorts: &Cohorts) -> Result<(), RunTimesError> {
    let Cohorts { tables, kinds, open, .. } = cohorts;
    let parents: BTreeMap<u32, Option<u32>> =
        tables.iter().map(|table| (table.number, table.parent)).collect();
    let is_kind = |number: u32| parents.get(&number) == Some(&Some(0));
    for table in tables {
        check_cohort(table)?;
        match table.parent {
            None if table.number == 0 => {}
            Some(0) if table.number > 0 => {}
            Some(kind) if table.number > kind && is_kind(kind) => {}
            _ => return Err(RunTimesError::Kind { number: table.number }),
        }
    }
    if let Some((_, number)) = kinds.iter().find(|(_, number)| !is_kind(*number)) {
        return Err(RunTimesError::Kind { number: *number });
    }
    open.iter().try_for_each(|(.., ms)| within("cohorts.open", *ms, MOST_COUNTED))
}

fn check_cohort(table: &CohortTable) -> Result<(), RunTimesError> {
    within("cohorts.tables.number", table.number.into(), MOST_NUMBERED)?;
    within("cohorts.tables.changes", table.changes.into(), MOST_NUMBERED)?;
    for (length, ended) in table.ended.iter().copied() {
        within("cohorts.tables.ended", length.into(), LENGTHS as u64 - 1)?;
        within("cohorts.tables.ended", ended, MOST_COUNTED)?;
    }
    if let Some((first_ms, last_ms)) = table.submitted_ms {
        within("cohorts.tables.submitted_ms", first_ms.max(last_ms), MOST_COUNTED)?;
    }
    match table.inverse_index_ms.len() {
        0 | LENGTHS => Ok(()),
        found => Err(RunTimesError::Times { number: table.number, found }),
    }
}

//! When all ranks of a job ran together, by the events of their pods.

use std::collections::BTreeMap;

use dovetail_account::device_time::Span;

use super::record::{ContainerRun, JobRecord, RunEnd};

/// A time in which every rank ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Attempt {
    pub(super) span: Span,
    pub(super) end: RunEnd,
    /// It had begun before anything is known of it: its start was not seen.
    pub(super) is_underway: bool,
}

/// All attempts, ascending.
pub(super) fn attempts(record: &JobRecord) -> Vec<Attempt> {
    let mut changes: BTreeMap<u64, Vec<(usize, i64)>> = BTreeMap::new();
    for member in &record.members {
        for run in member.runs.iter().filter(|run| run.span.from_ms < run.span.to_ms) {
            let rank = member.rank as usize;
            changes.entry(run.span.from_ms).or_default().push((rank, 1));
            changes.entry(run.span.to_ms).or_default().push((rank, -1));
        }
    }
    let mut running: BTreeMap<usize, i64> = BTreeMap::new();
    let (mut attempts, mut since_ms) = (Vec::new(), None);
    for (at_ms, steps) in changes {
        for (rank, step) in steps {
            *running.entry(rank).or_default() += step;
        }
        let ranks = running.values().filter(|runs| **runs > 0).count();
        let is_complete = ranks == record.ranks as usize;
        match since_ms {
            None if is_complete => since_ms = Some(at_ms),
            Some(from_ms) if !is_complete => {
                since_ms = None;
                let span = Span { from_ms, to_ms: at_ms };
                let is_underway = is_underway(record, from_ms);
                attempts.push(Attempt { span, end: end_at(record, at_ms), is_underway });
            }
            _ => {}
        }
    }
    attempts
}

/// Whether whatever runs at a moment ran before it is known.
fn is_underway(record: &JobRecord, at_ms: u64) -> bool {
    record.members.iter().all(|member| {
        let runs = |run: &ContainerRun| (run.span.from_ms..run.span.to_ms).contains(&at_ms);
        member.runs.iter().position(runs).is_none_or(|run| run == 0 && member.ran_before)
    })
}

/// How what ended at a moment ended; what was lost counts before what was completed.
fn end_at(record: &JobRecord, at_ms: u64) -> RunEnd {
    let runs = record.members.iter().flat_map(|member| &member.runs);
    let mut ends = runs.filter(|run| run.span.to_ms == at_ms).map(|run| run.end);
    let mut end = RunEnd::Open;
    for next in ends.by_ref() {
        match next {
            RunEnd::Lost => return RunEnd::Lost,
            RunEnd::Completed => end = RunEnd::Completed,
            RunEnd::Open => {}
        }
    }
    end
}

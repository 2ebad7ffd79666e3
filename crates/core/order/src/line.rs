//! Who waits behind whom, by GPUs: a job that takes more GPUs of others than it asks for leaves the
//! rest to those behind it that ask for as many at least.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use dovetail_model::JobId;

use crate::rates::Claimant;

/// Place of a job in the order; the smallest goes first.
pub type OrderKey = (Reverse<i32>, u64, JobId);

/// All waiting jobs in the order of their places.
#[derive(Debug, Default)]
pub struct Line {
    /// By the GPUs that each asks for at least, in thousandths; whether something is kept for it.
    by_gpus: BTreeMap<i64, BTreeMap<OrderKey, bool>>,
    moved: Moved,
    latest_submit_ms: u64,
}

/// Places that jobs took or left, each with the GPUs that the job asks for, in thousandths, and its
/// class; no more of them than are looked at, and one.
#[derive(Debug, Default)]
pub struct Moved(Vec<(OrderKey, (i64, usize))>);

impl Moved {
    /// Where more places have changed, all classes are looked at.
    const MOST: usize = 16;

    fn note(&mut self, place: OrderKey, of: (i64, usize)) {
        if self.0.len() <= Self::MOST {
            self.0.push((place, of));
        }
    }

    /// The classes of the jobs.
    pub fn classes(&self) -> impl Iterator<Item = usize> {
        self.0.iter().map(|(_, (_, class))| *class)
    }
}

impl Line {
    /// A job that waits, with the GPUs that it asks for at least, in thousandths, and its class.
    pub fn enter(&mut self, place: OrderKey, of: (i64, usize), is_kept_for: bool) {
        self.by_gpus.entry(of.0).or_default().insert(place, is_kept_for);
        self.moved.note(place, of);
    }

    /// A job no longer waits.
    pub fn exit(&mut self, place: OrderKey, of: (i64, usize)) {
        if let Some(of_as_many) = self.by_gpus.get_mut(&of.0) {
            of_as_many.remove(&place);
            if of_as_many.is_empty() {
                self.by_gpus.remove(&of.0);
            }
        }
        self.moved.note(place, of);
    }

    /// When a job was submitted that waits.
    pub fn note_submission(&mut self, submit_ms: u64) {
        self.latest_submit_ms = self.latest_submit_ms.max(submit_ms);
    }

    /// When the latest of all jobs was submitted that ever waited.
    pub fn latest_submit_ms(&self) -> u64 {
        self.latest_submit_ms
    }

    /// Places that jobs took or left since the last look.
    pub fn take_moved(&mut self) -> Moved {
        std::mem::take(&mut self.moved)
    }

    /// The first jobs behind a place that ask for as many GPUs at least and have the same priority,
    /// the first in turn first, with the GPUs that each asks for, in thousandths. Those for which
    /// something is kept are not among them.
    pub fn behind(&self, place: OrderKey, gpu_milli: i64) -> Vec<(OrderKey, i64)> {
        let mut behind = Vec::new();
        for (gpu_milli, jobs) in self.by_gpus.range(gpu_milli..) {
            let jobs = jobs.range((Bound::Excluded(place), Bound::Unbounded));
            let jobs = jobs.take_while(|(other, _)| other.0 == place.0);
            let free = jobs.filter(|(_, is_kept_for)| !**is_kept_for);
            let free = free.take(Claimant::MOST_BESIDE);
            behind.extend(free.map(|(other, _)| (*other, *gpu_milli)));
        }
        // It consists of few sorted parts.
        behind.sort();
        behind.truncate(Claimant::MOST_BESIDE);
        behind
    }

    /// The jobs that have one of these places among the first behind them, and maybe some more;
    /// `None` where these are too many to look at.
    pub fn before(&self, moved: &Moved) -> Option<BTreeSet<OrderKey>> {
        if moved.0.len() > Moved::MOST {
            return None;
        }
        let mut found = BTreeSet::new();
        for (place, (gpu_milli, _)) in &moved.0 {
            for (_, jobs) in self.by_gpus.range(..=*gpu_milli) {
                // Those of as many GPUs are behind each other: there are as many between at least.
                let mut between = 0;
                let before = jobs.range(..place).rev().take_while(|(job, is_kept_for)| {
                    let is_near = job.0 == place.0 && between < Claimant::MOST_BESIDE;
                    between += usize::from(!**is_kept_for);
                    is_near
                });
                found.extend(before.map(|(job, _)| *job));
            }
        }
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Jobs of one to four GPUs in the order of their numbers.
    fn line(count: u64) -> Line {
        let mut line = Line::default();
        (0..count).for_each(|job| line.enter(place(job), of(job), job % 50 == 0));
        line.take_moved();
        line
    }

    fn place(job: u64) -> OrderKey {
        (Reverse(0), 10 * job, JobId(job))
    }

    fn of(job: u64) -> (i64, usize) {
        (1_000 << (job % 3), job as usize)
    }

    #[test]
    fn whoever_has_others_behind_it_is_found() {
        let mut line = line(600);
        for job in [0, 1, 2, 299, 300, 301, 599] {
            let behind = |line: &Line| -> Vec<Vec<(OrderKey, i64)>> {
                (0..600).map(|job| line.behind(place(job), of(job).0)).collect()
            };
            let with = behind(&line);
            line.exit(place(job), of(job));
            let without = behind(&line);
            let found = line.before(&line.moved).expect("one place");
            for other in (0..600).filter(|other| *other != job) {
                let is_same = with[other as usize] == without[other as usize];
                assert!(is_same || found.contains(&place(other)), "{other} before {job}");
            }
            assert!(found.len() <= 3 * (Claimant::MOST_BESIDE + 5), "{}", found.len());
            line.enter(place(job), of(job), job % 50 == 0);
            line.take_moved();
        }
    }

    #[test]
    fn of_many_places_all_are_before() {
        let mut line = line(40);
        (0..40).for_each(|job| line.exit(place(job), of(job)));
        assert_eq!(line.before(&line.moved), None);
    }
}

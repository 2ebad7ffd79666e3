//! Bursts: jobs of one owner and size that come one after the other, which mostly run for about as
//! long.
//!
//! A burst is known by its first job, also when that has ended: what is drawn at random for its run
//! times stays the same as long as one of its jobs is there.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_model::{Burst, Job, JobId, RunTimeGroup};

use super::RunTimes;
use super::cohorts::COHORT_GAP_MS;
use super::groups::of_owner_and_size;

/// Bursts of jobs that have not ended.
#[derive(Clone, Debug, Default)]
pub struct Bursts {
    /// By number; a later one has a higher number.
    all: BTreeMap<u64, Burst>,
    /// Bursts of each owner and size.
    of_group: BTreeMap<RunTimeGroup, BTreeSet<u64>>,
    of_job: BTreeMap<JobId, u64>,
}

impl Bursts {
    /// Those of another engine.
    pub fn of(plain: &[Burst]) -> Self {
        let mut bursts = Self::default();
        plain.iter().for_each(|burst| bursts.add(burst.clone()));
        bursts
    }

    /// As plain data.
    pub fn plain(&self) -> Vec<Burst> {
        self.all.values().cloned().collect()
    }

    /// A job came, or came back. It belongs to the burst of its owner and size with a job that was
    /// submitted within an hour of it, or begins one. Jobs of which no run time is expected are in
    /// none.
    pub fn submit(&mut self, run_times: &RunTimes, job: &Job) {
        if !run_times.learns() && job.estimate.is_none() {
            return;
        }
        let group = of_owner_and_size(job);
        if let Some(known) = self.of_job.get(&job.id) {
            if self.all[known].group == group {
                return;
            }
            self.end(job.id);
        }
        let first = (job.submit_ms, job.name.clone(), job.id);
        let Some(number) = self.submitted_within(&group, job.submit_ms) else {
            let (last_ms, jobs) = (job.submit_ms, BTreeSet::from([job.id]));
            return self.add(Burst { group, first, last_ms, jobs });
        };
        let burst = self.all.get_mut(&number).expect("bursts of groups are there");
        burst.last_ms = burst.last_ms.max(job.submit_ms);
        // By name before the number: the next leader knows the same jobs by other numbers.
        if first < burst.first {
            burst.first = first;
        }
        burst.jobs.insert(job.id);
        self.of_job.insert(job.id, number);
    }

    /// A job is over; with its last one a burst is.
    pub fn end(&mut self, job: JobId) {
        let Some(number) = self.of_job.remove(&job) else { return };
        let Some(burst) = self.all.get_mut(&number) else { return };
        burst.jobs.remove(&job);
        if !burst.jobs.is_empty() {
            return;
        }
        let Some(burst) = self.all.remove(&number) else { return };
        if let Some(numbers) = self.of_group.get_mut(&burst.group) {
            numbers.remove(&number);
            if numbers.is_empty() {
                self.of_group.remove(&burst.group);
            }
        }
    }

    /// The burst of a group with a job that was submitted within [`COHORT_GAP_MS`] of a time; the
    /// newest one where there are several.
    fn submitted_within(&self, group: &RunTimeGroup, submit_ms: u64) -> Option<u64> {
        let numbers = self.of_group.get(group)?.iter();
        let near = numbers.filter(|number| {
            let Burst { first: (first_ms, ..), last_ms, .. } = &self.all[*number];
            submit_ms < last_ms.saturating_add(COHORT_GAP_MS)
                && *first_ms < submit_ms.saturating_add(COHORT_GAP_MS)
        });
        near.max_by_key(|number| (self.all[*number].last_ms, **number)).copied()
    }

    fn add(&mut self, burst: Burst) {
        let number = self.all.last_key_value().map_or(0, |(last, _)| last + 1);
        self.of_group.entry(burst.group.clone()).or_default().insert(number);
        self.of_job.extend(burst.jobs.iter().map(|job| (*job, number)));
        self.all.insert(number, burst);
    }
}

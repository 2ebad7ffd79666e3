//! The numbers that are drawn for the run times of jobs.
//!
//! Users submit in bursts: jobs of one owner and size that come one after the other mostly run for
//! about as long. If each of them got a number of its own, long and short runs would cancel each
//! other out, and the starts of the plays would differ too little. So all jobs of a burst get the
//! number of its first job, also when that has ended.

use std::collections::BTreeMap;

use dovetail_model::{Burst, JobId, Snapshot};

use super::{Foresight, chance};

/// What is drawn in each of the plays.
pub(super) struct Shares {
    seed: u64,
    plays: u64,
    /// The number of the burst of each job.
    bursts: BTreeMap<JobId, u64>,
}

impl Shares {
    pub(super) fn of(foresight: &Foresight, world: &Snapshot) -> Self {
        let number = |burst: &Burst| {
            let (_, name, first) = &burst.first;
            match foresight.by_name {
                true => chance::number_of(name),
                false => first.0,
            }
        };
        let mut bursts = BTreeMap::new();
        for burst in &world.bursts {
            let number = number(burst);
            bursts.extend(burst.jobs.iter().map(|job| (*job, number)));
        }
        Self { seed: foresight.seed, plays: u64::from(foresight.draws), bursts }
    }

    /// The number of a job in one of the plays, between 0 and 1.
    pub(super) fn of_job(&self, job: JobId, play: u64) -> f64 {
        let number = self.bursts.get(&job).copied().unwrap_or(job.0);
        chance::share(self.seed, (play, self.plays), number)
    }
}

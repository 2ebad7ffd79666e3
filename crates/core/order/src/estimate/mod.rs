//! How long jobs run: what engines learn from runs that ended.
//!
//! A run of a job counts for five groups, from all jobs to those of the same owner, size and work.
//! The estimate of a job starts from a prior and goes through its groups, the widest first: in
//! each, the chance to end in a bucket of run times is that of the wider group, moved by what the
//! runs of this one say ([`survival`]). A group with few runs thus says nearly what the wider one
//! says.
//!
//! Estimates are read from a published version and stay as they are until the next one; a version
//! follows an event, never a clock ([`RunTimes::publish`]), so that a trace that is cut off decides
//! the same up to the cut.
//!
//! Where a job brings no estimate, or has outlived it, order `dovetail` asks for more than
//! quantiles: which time is best spent on it. That is learnt from jobs that came together and,
//! unlike estimates, moves with everything that happens to them ([`Cohorts`]).
//!
//! | file | what |
//! |---|---|
//! | `buckets` | run times in steps of a quarter of an octave |
//! | `chances` | chances to end, from those who ended and those who have not yet |
//! | `groups` | which groups a job belongs to |
//! | `limits` | what numbers of written tables may be |
//! | `survival` | chances to end of a job, and quantiles of them |
//! | `stated` | stated run times, corrected by how earlier ones came true |
//! | `cohorts` | jobs that came together, and their chances |
//! | `bursts` | jobs that came together, by the first of them |
//! | `gittins` | the best of all times to spend on a job, from the chances to end at each length |
//! | `overdue` | expected ends that have passed |
//! | `running` | jobs that run, by how long they have so far |

mod buckets;
mod bursts;
mod chances;
mod cohorts;
mod gittins;
mod groups;
mod limits;
mod overdue;
mod running;
mod stated;
mod survival;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use dovetail_model::job::EstimateSource;
use dovetail_model::{Estimate, Job, JobId, RunTimeCounts, RunTimeGroup, RunTimeTables};
use serde::{Deserialize, Serialize};

pub use bursts::Bursts;
pub use cohorts::Cohorts;
pub use limits::{RunTimesError, check, check_cohorts};
pub use overdue::raised_ms;
use running::Running;
use stated::Ratios;
pub use survival::Survival;

/// A run time rounded up, by a sixteenth at most: jobs with the same are treated alike. A learned
/// one is the end of its bucket, and stays as it is.
pub fn bucket_ms(run_ms: u64) -> u64 {
    let step_ms = (1_u64 << run_ms.checked_ilog2().unwrap_or(0)).max(16) / 16;
    let rounded_ms = run_ms.div_ceil(step_ms).saturating_mul(step_ms);
    rounded_ms.min(buckets::upper_ms(buckets::of(run_ms)).max(run_ms))
}

/// Whether and how run times are learned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EstimatesConfig {
    /// Whether jobs that come without an estimate get a learned one, and those that state a run
    /// time one that is corrected by how such statements came true.
    pub learn: bool,
    /// Whether jobs get none before enough runs have ended, in the place of a guess.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub only_learned: bool,
}

impl EstimatesConfig {
    /// Whether nothing differs from what an engine does by default.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// A version is published this long after the one before, at the first run that ends.
const PUBLISH_EVERY_MS: u64 = 10 * 60 * 1_000;
/// Until so many runs have ended, each of them publishes a version.
const PUBLISH_EACH_BELOW: u64 = 64;
/// Estimates are called learned once so many runs have ended; before, they are the prior's.
const LEARNED_FROM: u64 = 8;
/// What one run weighs in the counts of its groups.
const RUN_WEIGHT: u32 = 16;
/// Runs that a group remembers, about: beyond twice as many, older ones weigh half.
const REMEMBERED_RUNS: u32 = 256;
/// Groups that are remembered; of more, those are forgotten that nothing was added to for longest.
const MAX_GROUPS: usize = 4_096;

type Table = BTreeMap<RunTimeGroup, RunTimeCounts>;

/// What has been learned about run times.
#[derive(Debug, Default)]
pub struct RunTimes {
    config: EstimatesConfig,
    runs: u64,
    version: u64,
    published_ms: u64,
    published: Table,
    next: Table,
    /// Jobs that run, from the first version on that is published here.
    running: Option<Running>,
}

impl RunTimes {
    /// What an earlier engine had learned, or nothing yet. Tables without a published version are
    /// one: of what the next would have been made of.
    pub fn new(config: EstimatesConfig, tables: Option<&RunTimeTables>) -> Self {
        let mut tables = tables.cloned().unwrap_or_default();
        if tables.published.is_empty() {
            tables.published.clone_from(&tables.next);
        }
        Self {
            config,
            runs: tables.runs,
            version: tables.version,
            published_ms: tables.published_ms,
            published: tables.published.into_iter().collect(),
            next: tables.next.into_iter().collect(),
            running: None,
        }
    }

    /// All of it as plain data; `None` where nothing is learned.
    pub fn tables(&self) -> Option<RunTimeTables> {
        let list = |table: &Table| table.iter().map(|(g, c)| (g.clone(), c.clone())).collect();
        self.learns().then(|| RunTimeTables {
            runs: self.runs,
            version: self.version,
            published_ms: self.published_ms,
            published: list(&self.published),
            next: list(&self.next),
        })
    }

    /// Whether anything is learned.
    pub fn learns(&self) -> bool {
        self.config.learn
    }

    /// Whether enough runs have ended to say more than a guess.
    fn is_learned(&self) -> bool {
        self.published.get(&RunTimeGroup::default()).is_some_and(|all| {
            let runs: u32 = all.buckets.iter().map(|(_, ended, _)| ended / RUN_WEIGHT).sum();
            u64::from(runs) >= LEARNED_FROM
        })
    }

    /// Sets what is expected of a job from now on, and what its declared costs weigh.
    pub fn assess(&self, job: &mut Job, before: Option<&Job>) {
        job.estimate = self.expected(job, before);
        job.interruption.weighed_restart_ms = self.weighed_restart_ms(job);
    }

    /// A declared restart cost, times how many times as long as stated the median job of its user
    /// runs. It never counts for more than was declared: whoever understates run times is not
    /// rewarded. `None` where nothing is declared or learned.
    fn weighed_restart_ms(&self, job: &Job) -> Option<u64> {
        let declared_ms = job.interruption.restart_cost_ms.filter(|_| self.learns())?;
        let weighed_ms = self.ratios(job).corrected(declared_ms).p50_ms;
        (weighed_ms < declared_ms).then_some(weighed_ms)
    }

    /// What is expected of a job from now on: what it brings; corrected, if it states a run time;
    /// learned, if it brings nothing; never more than its time limit. A job that is described again
    /// keeps what was expected `before`, unless it states something else.
    pub fn expected(&self, job: &Job, before: Option<&Job>) -> Option<Estimate> {
        if !self.learns() {
            return job.profile.within_limit(job.estimate);
        }
        let said = |of: &Job| (of.profile.stated_ms, of.profile.limit_ms);
        let before = before.filter(|before| said(before) == said(job));
        let before = before.and_then(|before| before.estimate);
        // A limit holds the place of what is not learned yet.
        let is_said = |estimate: &Estimate| estimate.source != EstimateSource::Limit;
        let before = before.filter(is_said);
        let expected = match (job.profile.stated_ms, job.estimate.filter(is_said)) {
            (None, Some(brought)) => Some(brought),
            (None, None) => before.or_else(|| self.estimate(job)),
            (Some(stated_ms), _) => before.or_else(|| Some(self.ratios(job).corrected(stated_ms))),
        };
        job.profile.within_limit(expected)
    }

    /// The estimate of a job that brings none; `None` where nothing is learned.
    pub fn estimate(&self, job: &Job) -> Option<Estimate> {
        let survival = self.survival(job)?;
        let (p50_ms, p90_ms) = (survival.quantile_ms(0.5, 0), survival.quantile_ms(0.9, 0));
        let source = match self.is_learned() {
            true => EstimateSource::History,
            false => EstimateSource::Default,
        };
        Some(Estimate { p50_ms, p90_ms, source })
    }

    /// The chances of a job to run for how long; `None` where nothing is learned.
    pub fn survival(&self, job: &Job) -> Option<Survival> {
        let is_known = self.learns() && (!self.config.only_learned || self.is_learned());
        is_known.then(|| self.narrowed(Survival::prior(), &groups::of(job)))
    }

    /// How many times the stated run time such a job takes.
    fn ratios(&self, job: &Job) -> Ratios {
        Ratios(self.narrowed(Ratios::as_stated(), &groups::of_stated(job)))
    }

    fn narrowed(&self, widest: Survival, groups: &[RunTimeGroup]) -> Survival {
        groups.iter().fold(widest, |wider, group| match self.published.get(group) {
            Some(counts) => wider.narrowed(counts),
            None => wider,
        })
    }

    /// A run is over. It says how long such jobs run if it completed; otherwise only that they run
    /// for longer.
    pub fn observe(&mut self, job: &Job, ran_ms: u64, completed: bool) {
        if !self.learns() {
            return;
        }
        self.runs += 1;
        for (group, ran_ms) in counted(job, ran_ms) {
            self.note_changed(&group);
            let counts = self.next.entry(group).or_default();
            add(counts, (ran_ms, RUN_WEIGHT), completed);
            counts.last_seen = self.runs;
            forget_older(counts);
        }
        while self.next.len() > MAX_GROUPS {
            let oldest = self.next.iter().min_by_key(|(_, counts)| counts.last_seen);
            let Some(oldest) = oldest.map(|(group, _)| group.clone()) else { break };
            self.note_changed(&oldest);
            self.next.remove(&oldest);
        }
    }

    fn note_changed(&mut self, group: &RunTimeGroup) {
        if let Some(running) = &mut self.running {
            running.note_changed(group.clone());
        }
    }

    /// A job came, started, was described again or waits again. The next version counts it if it
    /// has started.
    pub fn note_job(&mut self, job: &Job) {
        if let Some(running) = &mut self.running {
            running.note(job);
        }
    }

    /// A job is gone: no later version counts it.
    pub fn forget_job(&mut self, job: JobId) {
        if let Some(running) = &mut self.running {
            running.forget(job);
        }
    }

    /// Whether the next version is to be published.
    pub fn is_due(&self, now_ms: u64) -> bool {
        let next_ms = self.published_ms.saturating_add(PUBLISH_EVERY_MS);
        self.learns() && (now_ms >= next_ms || self.runs <= PUBLISH_EACH_BELOW)
    }

    /// Publishes a version, at a time that is no earlier than those before. Jobs that run count:
    /// such jobs run for longer than they have so far. The first version that is published here
    /// finds them among `jobs`, which are all that there are; later ones know them from
    /// [`Self::note_job`] and [`Self::forget_job`].
    pub fn publish<'j>(&mut self, now_ms: u64, jobs: impl Iterator<Item = &'j Job>) {
        self.version += 1;
        self.published_ms = now_ms;
        let Self { published, next, running, .. } = self;
        let running = running.get_or_insert_with(|| {
            // Another engine may have written it, beside other jobs.
            published.clear();
            let mut running = Running::of(jobs);
            next.keys().for_each(|group| running.note_changed(group.clone()));
            running
        });
        for group in running.take_changed(now_ms) {
            let mut counts = next.get(&*group).cloned();
            for (bucket, jobs) in running.in_group(&group).into_iter().flatten() {
                let weight = jobs * RUN_WEIGHT;
                add_in(counts.get_or_insert_default(), (*bucket, weight), false);
            }
            let Some(counts) = counts else {
                published.remove(&*group);
                continue;
            };
            match published.get_mut(&*group) {
                Some(known) => *known = counts,
                None => drop(published.insert((*group).clone(), counts)),
            }
        }
    }
}

/// The groups of a run, each with what it counts as there.
fn counted(job: &Job, ran_ms: u64) -> impl Iterator<Item = (RunTimeGroup, u64)> {
    let of_stated = job.profile.stated_ms.map(|stated_ms| {
        let ratio = stated::ratio(ran_ms, stated_ms);
        groups::of_stated(job).map(|group| (group, ratio))
    });
    let by_time = groups::of(job).map(|group| (group, ran_ms));
    by_time.into_iter().chain(of_stated.into_iter().flatten())
}

/// Counts runs of one length, which together have this weight.
fn add(counts: &mut RunTimeCounts, (ran_ms, weight): (u64, u32), completed: bool) {
    add_in(counts, (buckets::of(ran_ms) as u8, weight), completed);
}

fn add_in(counts: &mut RunTimeCounts, (bucket, weight): (u8, u32), completed: bool) {
    let place = counts.buckets.partition_point(|(other, ..)| *other < bucket);
    if counts.buckets.get(place).is_none_or(|(other, ..)| *other != bucket) {
        counts.buckets.insert(place, (bucket, 0, 0));
    }
    let (_, ended, running) = &mut counts.buckets[place];
    *if completed { ended } else { running } += weight;
}

/// Halves the weight of what is known once there is enough of it.
fn forget_older(counts: &mut RunTimeCounts) {
    let sum: u32 = counts.buckets.iter().map(|(_, ended, running)| ended + running).sum();
    if sum >= 2 * REMEMBERED_RUNS * RUN_WEIGHT {
        counts.buckets.iter_mut().for_each(|(_, ended, running)| {
            (*ended, *running) = (*ended / 2, *running / 2);
        });
        counts.buckets.retain(|(_, ended, running)| ended + running > 0);
    }
}

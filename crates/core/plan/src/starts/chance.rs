//! What is known of a run time, and draws from it.

use std::collections::BTreeMap;

use dovetail_model::job::EstimateSource;
use dovetail_model::{Job, JobId, Snapshot};

use dovetail_order::estimate::{RunTimes, Survival};

/// What is known of how long a job runs in all.
enum Chance {
    /// What its user said: a log-logistic distribution through both quantiles, a single time where
    /// they are one.
    Said {
        p50_ms: u64,
        spread: f64,
    },
    Learned(Box<Survival>),
}

/// What is known of the run times of all jobs of a world.
pub(super) struct Chances<'w> {
    of: BTreeMap<JobId, (&'w Job, u64, Chance)>,
}

impl<'w> Chances<'w> {
    pub(super) fn of(world: &'w Snapshot, run_times: &RunTimes) -> Self {
        let known = |job: &'w Job| {
            let did = job.attempt_at(world.now_ms);
            let done_ms = job.history.saved_ms + did.saved_ms + did.unsaved_ms;
            Some((job.id, (job, done_ms, Chance::of(job, run_times)?)))
        };
        Self { of: world.jobs.iter().filter_map(known).collect() }
    }

    /// Whether no run time is drawn at random.
    pub(super) fn are_certain(&self) -> bool {
        let is_exact =
            |chance: &Chance| matches!(chance, Chance::Said { spread, .. } if *spread == 0.0);
        self.of.values().all(|(.., chance)| is_exact(chance))
    }

    /// How long a job runs in all that is shorter than a share of the others which got as far as it
    /// did; `None` is unknown.
    pub(super) fn run_ms(&self, job: JobId, share: f64) -> Option<u64> {
        let (job, done_ms, chance) = self.of.get(&job)?;
        let run_ms = chance.run_ms(share, *done_ms);
        // One that outlives its limit is about to be ended.
        let limit_ms = job.profile.limit_ms.map(|ms| ms.max(done_ms.saturating_add(1)));
        Some(limit_ms.map_or(run_ms, |limit_ms| run_ms.min(limit_ms)))
    }
}

/// ln(0.9 / 0.1): how far the 90th percentile of a logistic distribution is from its median.
const LOGIT_90: f64 = 2.197_224_577_336_219_6;

impl Chance {
    fn of(job: &Job, run_times: &RunTimes) -> Option<Self> {
        let said = job.estimate.filter(|estimate| estimate.source == EstimateSource::User);
        let learned = || run_times.survival(job).map(|survival| Self::Learned(Box::new(survival)));
        let expected = |estimate: dovetail_model::Estimate| {
            let ratio = estimate.p90_ms.max(1) as f64 / estimate.p50_ms.max(1) as f64;
            let spread = f64::max(libm::log(ratio), 0.0) / LOGIT_90;
            Self::Said { p50_ms: estimate.p50_ms, spread }
        };
        said.map(expected).or_else(learned).or_else(|| job.estimate.map(expected))
    }

    /// The run time that a share of those have ended by that have run for `age_ms`.
    fn run_ms(&self, share: f64, age_ms: u64) -> u64 {
        match self {
            Self::Learned(survival) => survival.drawn_ms(share, age_ms),
            Self::Said { p50_ms, spread } if *spread == 0.0 => match *p50_ms > age_ms {
                true => *p50_ms,
                // Longer than it can be: as the engine raises such ends.
                false => age_ms.saturating_add((age_ms / 2).max(60_000)),
            },
            Self::Said { p50_ms, spread } => {
                let median = (*p50_ms).max(1) as f64;
                let odds = libm::pow(age_ms as f64 / median, 1.0 / spread);
                let left = (1.0 - share) / (1.0 + odds);
                let run_ms = median * libm::pow((1.0 - left) / left, *spread);
                (run_ms as u64).max(age_ms.saturating_add(1))
            }
        }
    }
}

/// The start of a series of random numbers.
fn mixed(seed: u64, number: u64) -> u64 {
    // SplitMix64 (Steele, Lea, Flood 2014).
    let mut mixed = seed.wrapping_add(number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

/// A number between 0 and 1 for the job of a number, in one of so many plays. Over all plays these
/// numbers are spread evenly, for each job in an order of its own (Latin hypercube sampling: McKay,
/// Beckman, Conover, Technometrics 1979): where few jobs decide, as in one large burst, quantiles
/// over a few plays would else be those of the luck of the draw.
pub(super) fn share(seed: u64, (play, plays): (u64, u64), number: u64) -> f64 {
    let place = |play: u64| (mixed(mixed(seed, play), number), play);
    let own = place(play);
    let before = (0..plays).filter(|other| place(*other) < own).count();
    (before as f64 + 0.5) / plays.max(1) as f64
}

/// A number for a name (FNV-1a).
pub(super) fn number_of(name: &str) -> u64 {
    let mixed = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    name.bytes().fold(0xcbf2_9ce4_8422_2325, mixed)
}

//! When pending jobs are expected to start, and what they wait for.
//!
//! The engine plays forward a copy of itself, made from its own snapshot: running jobs end when
//! their run times say, and the copy decides as the engine would, with its order, reservations and
//! preemptions. One play takes the median run time of every job; it says which nodes a job is given
//! and which jobs leave them before. Further plays draw run times at random from what is known of
//! them, with one number for all jobs of a burst; the 50th and 90th percentile of a job's start
//! over these are its expected start.
//!
//! Nobody is submitted in a play, no node fails and nothing is learned from it: what comes later
//! and goes first is not in these figures. Where every run time is exact and nobody goes first, a
//! start comes true to the millisecond.
//!
//! Plays count their steps and end at a limit. A start that a play does not reach is later than
//! those that it does: if more than half (or a tenth) of the plays do not reach it, its median (or
//! 90th percentile) is unknown.
//!
//! | file | what |
//! |---|---|
//! | `shares` | what is drawn for run times, one number for the jobs of a burst |
//! | `chance` | what is known of a run time, and draws from it |
//! | `play` | one play |
//! | `corrections` | factors by which expected starts are corrected |
//! | `past` | what earlier forecasts say of new ones |

mod chance;
mod corrections;
mod past;
mod play;
mod shares;

use std::collections::BTreeMap;

use dovetail_model::{JobId, NodeName};

pub use corrections::{ExpectedWait, OctaveCorrection, StartCorrections};
pub use past::PastForecasts;

use crate::engine::Engine;
use crate::engine::snapshot::copy_of;
use chance::Chances;
use play::{Play, Played};
use shares::Shares;

/// How far and how often an engine plays itself forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Foresight {
    /// Plays with run times drawn at random.
    pub draws: u32,
    /// Events and decisions of all plays together.
    pub max_steps: u64,
    /// Where the random numbers start.
    pub seed: u64,
    /// They follow the names of jobs: an engine that knows the same jobs by other numbers forecasts
    /// the same.
    pub by_name: bool,
}

impl Default for Foresight {
    fn default() -> Self {
        Self { draws: 19, max_steps: 200_000, seed: 0, by_name: false }
    }
}

/// When a pending job is expected to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedStart {
    pub job: JobId,
    /// Half of the plays start it by then; `None` is unknown.
    pub p50_ms: Option<u64>,
    /// Nine of ten plays start it by then; `None` is unknown.
    pub p90_ms: Option<u64>,
    /// Running and pending jobs that leave its nodes before it starts, the last first, in the play
    /// of medians.
    pub after: Vec<JobId>,
    /// Its nodes in that play; empty where it does not start in it.
    pub nodes: Vec<NodeName>,
}

/// So many of the jobs that a start waits for are named.
const MOST_NAMED: usize = 8;

impl Foresight {
    /// When each pending job of an engine is expected to start, by job. Nothing changes.
    pub fn expected_starts(&self, engine: &Engine) -> Vec<ExpectedStart> {
        let world = engine.snapshot();
        let waiting: Vec<JobId> =
            world.jobs.iter().filter(|job| job.start_ms.is_none()).map(|job| job.id).collect();
        if waiting.is_empty() {
            return Vec::new();
        }
        let chances = Chances::of(&world, &engine.books.run_times);
        let draws = if chances.are_certain() { 0 } else { u64::from(self.draws) };
        let most_steps = self.max_steps / (draws + 1);
        let play = |shares: &dyn Fn(JobId) -> f64| {
            let run_ms = |job: JobId| chances.run_ms(job, shares(job));
            match copy_of(engine, &world) {
                Some(engine) => Play::new(engine, &world, &run_ms, most_steps).run(),
                None => Played::default(),
            }
        };
        let medians = play(&|_| 0.5);
        let mut starts: BTreeMap<JobId, Vec<u64>> = BTreeMap::new();
        let mut take = |played: &Played| {
            for (job, start) in &played.starts {
                starts.entry(*job).or_default().push(start.at_ms);
            }
        };
        match draws {
            0 => take(&medians),
            _ => {
                let shares = Shares::of(self, &world);
                (0..draws).for_each(|draw| take(&play(&|job| shares.of_job(job, draw))));
            }
        }
        let plays = draws.max(1);
        let expected = |job: JobId| {
            let mut of = starts.remove(&job).unwrap_or_default();
            of.sort_unstable();
            let (nodes, after) = match medians.starts.get(&job) {
                Some(start) => (start.nodes.clone(), start.after.clone()),
                None => (Vec::new(), Vec::new()),
            };
            ExpectedStart {
                job,
                p50_ms: reached(&of, plays, 50),
                p90_ms: reached(&of, plays, 90),
                after,
                nodes,
            }
        };
        waiting.into_iter().map(expected).collect()
    }
}

/// The starts of one play.
#[derive(Clone, Debug, Default)]
pub struct OnePlay {
    /// When each job starts that it reaches.
    pub starts: Vec<(JobId, u64)>,
    /// No run time is drawn at random: another play comes to the same.
    pub is_certain: bool,
}

impl Foresight {
    /// One of the plays with run times drawn at random, for whoever makes them one at a time. It
    /// may take all steps.
    pub fn play_once(&self, engine: &Engine, draw: u64) -> OnePlay {
        let world = engine.snapshot();
        let chances = Chances::of(&world, &engine.books.run_times);
        let is_certain = chances.are_certain();
        let shares = (!is_certain).then(|| Shares::of(self, &world));
        let share = |job| shares.as_ref().map_or(0.5, |shares| shares.of_job(job, draw));
        let run_ms = |job: JobId| chances.run_ms(job, share(job));
        let Some(copy) = copy_of(engine, &world) else { return OnePlay::default() };
        let played = Play::new(copy, &world, &run_ms, self.max_steps).run();
        let starts = played.starts.into_iter().map(|(job, start)| (job, start.at_ms));
        OnePlay { starts: starts.collect(), is_certain }
    }
}

/// The time by which a percentage of the plays have started a job, of its sorted starts; `None` is
/// unknown.
pub fn reached(starts: &[u64], plays: u64, percent: u64) -> Option<u64> {
    let needed = (plays * percent).div_ceil(100).max(1);
    starts.get(needed as usize - 1).copied()
}

//! What a regime is made of: the recipe of a world, and the world that it gives for one seed and
//! one order of the machines.

use dovetail_model::Queue;
use dovetail_order::Turns;
use dovetail_plan::{
    EngineConfig, EngineError, EstimatesConfig, Order, PreemptionConfig, ReserveConfig,
};
use dovetail_trace::synth::{Purpose, Random, SynthConfig, SynthProfile, synth};
use dovetail_trace::{TraceError, TraceJob, TraceNode};
use thiserror::Error;

use crate::arena::arrivals::ArrivalRecipe;
use crate::arena::data::{ArenaData, DataError, Outside};
use crate::arena::figures::MeasuredWindow;
use crate::arena::machines::{self, MachinePool};
use crate::arena::streams::{self, Tide, Unfillable};
use crate::arena::transform::drawn;
use crate::timed::{Estimates, FaultModel, TimedConfig, TimedError, TimedWorld};

const DAY_MS: u64 = 86_400_000;
const HOUR_MS: u64 = 3_600_000;
/// The list whose pods get run times.
const OPENB_TIMED: &str = "default";
/// Part of a stream for warming up, in percent: jobs submitted in it are in no wait.
pub const WARM_UP_PERCENT: u64 = 20;
/// Racks of the regimes with gangs have so many machines.
const RACK_NODES: usize = 8;
/// Failing machines: mean time to failure of each, and to repair.
const TIME_BETWEEN_FAILURES_MS: u64 = 5 * DAY_MS;
const REPAIR_TIME_MS: u64 = 4 * HOUR_MS;
/// Reservations for pending jobs, where run times are learned.
const RESERVED_HEADS: u32 = 8;
/// The three queues of the regime with weights.
const WEIGHTS: [(&str, u32); 3] = [("gold", 4), ("silver", 2), ("bronze", 1)];

/// How the worlds of a regime are made.
#[derive(Clone, Debug, PartialEq)]
pub enum Recipe {
    /// Pods arrive until 130% of the GPUs have been asked for; none leaves.
    Arrivals(ArrivalRecipe),
    /// Jobs are submitted, wait, run and end.
    Timed(TimedRecipe),
}

/// Jobs that end.
#[derive(Clone, Debug, PartialEq)]
pub struct TimedRecipe {
    /// Where jobs and machines come from.
    pub work: WorkSource,
    /// GPU-time that the jobs can use inside the stream, over that of the machines.
    pub load: f64,
    /// Length of the stream.
    pub days: u32,
    /// In which order waiting jobs start.
    pub order: Order,
    /// Whose waits count.
    pub counted: CountedJobs,
    /// What else is special.
    pub twist: Twist,
}

/// Whose waits count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountedJobs {
    /// Jobs submitted after the warm-up.
    AfterWarmUp,
    /// So many jobs of the beginning, when nothing is known.
    First(usize),
    /// So many jobs from the middle of the stream on, where the mix changes.
    FromMiddle(usize),
}

/// Where jobs and machines come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkSource {
    /// A generated stream on its generated cluster.
    Profile(SynthProfile, u32),
    /// Shapes and run times of a generated stream that come at other times.
    Tide(SynthProfile, u32, Tide),
    /// Jobs of `sharing` in the first half of the stream, of `training` in the second.
    MixChange(u32),
    /// A window of Philly, with CPU and memory drawn, on as many machines as give the load.
    Philly(MachinePool),
    /// A window of ITP, likewise.
    Itp(MachinePool),
    /// Pods of openb's default list with run times of Philly, on openb machines drawn by seed.
    OpenbPods(usize),
}

/// What else is special about a regime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Twist {
    None,
    /// All pods of a job in one rack of eight machines.
    GangsInOneRack,
    /// Jobs of a higher priority stop others.
    Preemption,
    /// Two of five machines are there only while they are used: ten minutes after jobs wait for
    /// them, until they were empty for ten minutes.
    AutoscaledPool,
    /// Machines fail every five days and are repaired after four hours, on average.
    FailingNodes,
    /// Users state the true run times.
    RightEstimates,
    /// Nobody states a run time.
    NoEstimates,
    /// Estimates are off by a lognormal factor, σ = 1.
    WrongEstimates,
    /// Three queues of weights 4, 2 and 1.
    WeightedQueues,
}

/// Why a world cannot be made or run.
#[derive(Debug, Error)]
pub enum ArenaError {
    /// It cannot be made of an outside trace.
    #[error(transparent)]
    Data(#[from] DataError),
    /// No stream of its jobs has its load.
    #[error(transparent)]
    Stream(#[from] Unfillable),
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The simulation refused the world.
    #[error(transparent)]
    Timed(#[from] TimedError),
    /// The engine refused the world or the policy.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// One world: what every policy is given alike.
#[derive(Clone, Debug)]
pub enum RegimeInput {
    /// Pods that stay.
    Arrivals {
        nodes: Vec<TraceNode>,
        pods: Vec<TraceJob>,
        /// Rows of pods in order of arrival.
        arrivals: Vec<u32>,
        /// Rows of machines in tie-break order.
        node_order: Vec<u32>,
    },
    /// Jobs that end.
    Timed {
        /// Machines, jobs and queues.
        world: Box<TimedWorld>,
        /// The engine's configuration but for the policy.
        config: Box<TimedConfig>,
        /// The part that counts.
        window: MeasuredWindow,
    },
}

impl Recipe {
    /// What the data lacks that the recipe needs.
    pub fn lacks(&self, data: &ArenaData) -> Option<String> {
        let is_absent = |trace: &Outside| !data.has(trace);
        if let Some(trace) = self.traces().into_iter().find(is_absent) {
            return Some(format!("{} does not exist", trace.file()));
        }
        match self {
            Self::Arrivals(recipe) => recipe.lacks(data),
            Self::Timed(TimedRecipe { work: WorkSource::OpenbPods(count), .. }) => {
                data.lacks_nodes(*count)
            }
            Self::Timed(_) => None,
        }
    }

    /// The outside traces that it needs.
    pub fn traces(&self) -> Vec<Outside> {
        let pods = |list: &str| Outside::Pods(list.to_owned());
        match self {
            Self::Arrivals(recipe) => std::iter::once(Outside::Nodes)
                .chain(recipe.lists().into_iter().map(pods))
                .collect(),
            Self::Timed(recipe) => match recipe.work {
                WorkSource::Profile(..) | WorkSource::Tide(..) | WorkSource::MixChange(_) => {
                    Vec::new()
                }
                WorkSource::Philly(_) => vec![Outside::Philly],
                WorkSource::Itp(_) => vec![Outside::Itp],
                WorkSource::OpenbPods(_) => {
                    vec![Outside::Nodes, pods(OPENB_TIMED), Outside::Philly]
                }
            },
        }
    }

    /// The world of a seed with its machines in the given order: 0 is their own, each other number
    /// a random one.
    ///
    /// # Errors
    /// [`ArenaError`] if the trace cannot be made.
    pub fn world(
        &self,
        data: &ArenaData,
        seed: u64,
        order: u64,
    ) -> Result<RegimeInput, ArenaError> {
        match self {
            Self::Arrivals(recipe) => recipe.world(data, seed, order),
            Self::Timed(recipe) => recipe.world(data, seed, order),
        }
    }
}

/// The preset `fair` with run times that the engine learns, and reservations that rest on them.
fn learning(engine: EngineConfig) -> EngineConfig {
    let turns = Turns::preset("fair").unwrap_or_default();
    EngineConfig {
        preemption: PreemptionConfig::of_turns(&turns),
        estimates: EstimatesConfig { learn: true, ..EstimatesConfig::default() },
        reserve: ReserveConfig { heads: RESERVED_HEADS, ..ReserveConfig::default() },
        turns,
        ..engine
    }
}

/// Order 0 leaves a list as it is; every other order is random.
pub(crate) fn shuffle_by<T>(items: &mut [T], seed: u64, order: u64) {
    if order > 0 {
        Random::new(seed ^ order << 32, Purpose::Machines).shuffle(items);
    }
}

impl CountedJobs {
    /// The part of a stream of jobs, in order of submission, that counts.
    fn window(self, jobs: &[TraceJob], end_ms: u64) -> MeasuredWindow {
        let (from_ms, count) = match self {
            Self::AfterWarmUp => (end_ms * WARM_UP_PERCENT / 100, usize::MAX),
            Self::First(count) => (0, count),
            Self::FromMiddle(count) => (end_ms / 2, count),
        };
        let mut later = jobs.iter().skip_while(|job| job.submit_ms < from_ms);
        let until_ms = later.nth(count).map_or(end_ms, |job| job.submit_ms);
        MeasuredWindow { from_ms, until_ms, end_ms }
    }
}

impl TimedRecipe {
    /// In order of submission with passing over, after a warm-up, with nothing special.
    pub fn new(work: WorkSource, load: f64, days: u32) -> Self {
        let (counted, twist) = (CountedJobs::AfterWarmUp, Twist::None);
        Self { work, load, days, order: Order::FifoSkip, counted, twist }
    }

    fn world(&self, data: &ArenaData, seed: u64, order: u64) -> Result<RegimeInput, ArenaError> {
        let end_ms = u64::from(self.days) * DAY_MS;
        let (mut nodes, jobs) = self.work(data, seed)?;
        let (jobs, queues) = self.twisted(seed, &mut nodes, jobs);
        let mut jobs = streams::in_order(jobs);
        // A job that no node could ever hold says nothing about a policy, and blocks `fifo` for
        // good.
        machines::keep_possible(&mut jobs, &nodes)?;
        let autoscaler = (self.twist == Twist::AutoscaledPool).then(|| machines::pool(&nodes));
        shuffle_by(&mut nodes, seed, order);
        let gang_level = (self.twist == Twist::GangsInOneRack).then(|| "rack".to_owned());
        let window = self.counted.window(&jobs, end_ms);
        let world =
            TimedWorld { nodes, jobs, queues, gang_level, autoscaler, ..TimedWorld::default() };
        Ok(RegimeInput::Timed {
            world: Box::new(world),
            config: Box::new(self.config(seed)),
            window,
        })
    }

    fn config(&self, seed: u64) -> TimedConfig {
        let faults = FaultModel {
            mean_time_between_failures_ms: TIME_BETWEEN_FAILURES_MS,
            mean_time_to_repair_ms: REPAIR_TIME_MS,
            seed,
        };
        let enabled = self.twist == Twist::Preemption;
        let preemption = PreemptionConfig { enabled, ..PreemptionConfig::default() };
        let engine = EngineConfig { order: self.order, preemption, ..EngineConfig::default() };
        let (engine, estimates) = match (self.order, self.twist) {
            (Order::Dovetail, _) => (learning(engine), Estimates::Learned),
            (_, Twist::RightEstimates) => (engine, Estimates::Truth),
            _ => (engine, Estimates::Trace),
        };
        TimedConfig {
            engine,
            estimates,
            faults: (self.twist == Twist::FailingNodes).then_some(faults),
            ..TimedConfig::default()
        }
    }

    /// Machines, and jobs in any order.
    fn work(
        &self,
        data: &ArenaData,
        seed: u64,
    ) -> Result<(Vec<TraceNode>, Vec<TraceJob>), ArenaError> {
        let (days, load) = (self.days, self.load);
        let generated = |profile, nodes| -> Result<_, ArenaError> {
            let made = synth(&SynthConfig { seed, nodes, days, load, profile })?;
            Ok((made.cluster.nodes, made.trace.jobs))
        };
        let end_ms = u64::from(days) * DAY_MS;
        let asked = |nodes: &[TraceNode], span_ms: u64| {
            (load * (streams::cluster_milli(nodes) * u128::from(span_ms)) as f64) as u128
        };
        let mut random = Random::new(seed, Purpose::Arrivals);
        Ok(match self.work {
            WorkSource::Profile(profile, nodes) => generated(profile, nodes)?,
            WorkSource::Tide(profile, nodes, tide) => {
                let (nodes, pool) = generated(profile, nodes)?;
                let milli_ms = asked(&nodes, end_ms);
                (nodes, streams::fill(&mut random, &pool, tide, (0, end_ms), (milli_ms, end_ms))?)
            }
            WorkSource::MixChange(nodes) => {
                let (_, mut first) = generated(SynthProfile::Sharing, nodes)?;
                let (_, mut second) = generated(SynthProfile::Training, nodes)?;
                let (nodes, _) = generated(SynthProfile::Mixed, nodes)?;
                for pool in [&mut first, &mut second] {
                    machines::keep_possible(pool, &nodes)?;
                }
                // What the first half leaves running counts as work of the second.
                let half_ms = end_ms / 2;
                let half = (asked(&nodes, half_ms), end_ms);
                let (even, later) = (Tide::Even, (half_ms, end_ms));
                let mut jobs = streams::fill(&mut random, &first, even, (0, half_ms), half)?;
                jobs.extend(streams::fill(&mut random, &second, even, later, half)?);
                (nodes, jobs)
            }
            WorkSource::Philly(pool) => {
                self.published(seed, &mut random, (Outside::Philly, &data.philly), pool)?
            }
            WorkSource::Itp(pool) => {
                self.published(seed, &mut random, (Outside::Itp, &data.itp), pool)?
            }
            WorkSource::OpenbPods(count) => {
                let nodes = drawn(&data.openb_nodes, count, seed);
                let pods = &data.openb_pods[OPENB_TIMED];
                let mut pool = streams::with_run_times(seed, pods, &data.philly)
                    .map_err(|problem| Outside::Philly.bad(problem))?;
                machines::keep_possible(&mut pool, &nodes)?;
                let target = (asked(&nodes, end_ms), end_ms);
                let jobs = streams::fill(&mut random, &pool, Tide::Even, (0, end_ms), target)
                    .map_err(|error| {
                        let (file, drawn) = (Outside::Philly.file(), nodes.len());
                        Outside::Pods(OPENB_TIMED.to_owned()).bad(format!(
                            "its pods that fit one of {drawn} nodes, drawn for seed {seed}, with run \
                             times of {file}: {error}"
                        ))
                    })?;
                (nodes, jobs)
            }
        })
    }

    /// A window of a table of jobs, and as many machines as give the load. Jobs that no machine of
    /// the pool can hold are no load: they are gone before the machines are counted.
    fn published(
        &self,
        seed: u64,
        random: &mut Random,
        (trace, jobs): (Outside, &[TraceJob]),
        pool: MachinePool,
    ) -> Result<(Vec<TraceNode>, Vec<TraceJob>), ArenaError> {
        let jobs = streams::window(random, jobs, self.days);
        let mut jobs = streams::with_requests(seed, jobs);
        let end_ms = u64::from(self.days) * DAY_MS;
        let machines = |jobs: &[TraceJob]| {
            let demand_milli = streams::demand_inside(jobs, end_ms) as f64 / end_ms as f64;
            pool.with_milli((demand_milli / self.load) as u128)
        };
        let refused = |problem: &str| {
            trace.bad(format!("its jobs of the {} days of seed {seed} {problem}", self.days))
        };
        let plenty = machines(&jobs).ok_or_else(|| refused("request more than a million GPUs"))?;
        machines::keep_possible(&mut jobs, &plenty)?;
        if streams::demand_inside(&jobs, end_ms) == 0 {
            return Err(refused("that fit a node request no GPU time").into());
        }
        Ok((machines(&jobs).unwrap_or(plenty), jobs))
    }

    /// What the twist changes of machines, jobs and queues.
    fn twisted(
        &self,
        seed: u64,
        nodes: &mut [TraceNode],
        mut jobs: Vec<TraceJob>,
    ) -> (Vec<TraceJob>, Vec<Queue>) {
        match self.twist {
            Twist::GangsInOneRack => {
                machines::rack(nodes, RACK_NODES);
                jobs.retain(|job| job.pod_count as usize <= RACK_NODES);
            }
            Twist::NoEstimates => jobs.iter_mut().for_each(|job| job.estimate_ms = None),
            Twist::WrongEstimates => jobs = streams::with_wrong_estimates(seed, jobs),
            Twist::WeightedQueues => {
                let mut random = Random::new(seed, Purpose::People);
                for job in &mut jobs {
                    job.queue = Some(WEIGHTS[random.below(WEIGHTS.len())].0.to_owned());
                }
                let queue = |(name, weight): (&str, u32)| Queue { weight, ..Queue::named(name) };
                return (jobs, WEIGHTS.map(queue).to_vec());
            }
            Twist::None
            | Twist::Preemption
            | Twist::AutoscaledPool
            | Twist::FailingNodes
            | Twist::RightEstimates => {}
        }
        let queues = match self.order {
            Order::DominantShare | Order::Dovetail => TimedWorld::named_queues(&jobs),
            _ => Vec::new(),
        };
        (jobs, queues)
    }
}

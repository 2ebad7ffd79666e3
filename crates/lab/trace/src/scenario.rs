//! Scenarios: a few lines that describe a cluster, a stream of jobs and what is laid over it.
//!
//! Jobs are drawn until they ask for a stated load: their GPU-time over the GPU-time of the
//! machines until the stream ends. They are submitted at any time of the stream, each time as
//! likely as another. `docs/reference/trace-formats.md` describes the file.

use serde::{Deserialize, Deserializer, de::Error};

use crate::job::{StopCosts, TraceJob};
use crate::limits::MAX_GPUS;
use crate::synth::{Purpose, Random};
use dovetail_units::duration::parse_duration;

/// A scenario file.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    pub world: ScenarioWorld,
    pub stream: Stream,
    /// In order; of two that say the same of a job, the later counts.
    #[serde(default)]
    pub overlays: Vec<Overlay>,
}

/// The machines.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScenarioWorld {
    /// As `--nodes` of the command line says it.
    pub nodes: String,
}

/// The jobs.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stream {
    /// GPU-time of all jobs over the GPU-time of the machines until the stream ends.
    pub load: f64,
    /// Jobs are submitted for so long.
    pub length: Duration,
    pub jobs: Vec<Kind>,
}

/// Jobs of one kind.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kind {
    /// How often, relative to the other kinds.
    #[serde(default = "one")]
    pub weight: f64,
    /// GPUs of a job, each as likely as another.
    pub gpus: Vec<u32>,
    pub run_time: Range,
    #[serde(default)]
    pub priority: i32,
    #[serde(default)]
    pub queue: Option<String>,
}

/// What is laid over a share of the jobs.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Overlay {
    /// Of the jobs, drawn for each.
    #[serde(default = "one")]
    pub share: f64,
    #[serde(default)]
    pub checkpoint_interval: Option<Range>,
    #[serde(default)]
    pub checkpoint_cost: Option<Range>,
    #[serde(default)]
    pub restart_cost: Option<Range>,
    #[serde(default)]
    pub save_on_notice: Option<Range>,
}

/// A duration, in ms; written `10m` or `1h30m`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Duration(pub u64);

/// From the one duration to the other, log-uniform; one alone is always the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    pub from_ms: u64,
    pub to_ms: u64,
}

fn one() -> f64 {
    1.0
}

impl<'de> Deserialize<'de> for Duration {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let text = String::deserialize(input)?;
        parse_duration(&text).map(Self).map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for Range {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            One(String),
            Two([String; 2]),
        }
        let expected = "expected a duration such as \"10m\", or two such as [\"10m\", \"8h\"]";
        let written = Written::deserialize(input).map_err(|_| D::Error::custom(expected))?;
        let read = |text: &str| parse_duration(text).map_err(D::Error::custom);
        let (from_ms, to_ms) = match &written {
            Written::One(text) => (read(text)?, read(text)?),
            Written::Two([from, to]) => (read(from)?, read(to)?),
        };
        match from_ms <= to_ms && (from_ms > 0 || to_ms == 0) {
            true => Ok(Self { from_ms, to_ms }),
            false => Err(D::Error::custom("the first duration must be above 0 and not the longer")),
        }
    }
}

impl Range {
    fn draw_ms(self, random: &mut Random) -> u64 {
        if self.from_ms == self.to_ms {
            return self.from_ms;
        }
        let (from, to) = (self.from_ms as f64, self.to_ms as f64);
        libm::round(from * libm::pow(to / from, random.uniform())) as u64
    }
}

/// A stream of more jobs than this is taken for a mistake.
const MOST_JOBS: usize = 1_000_000;
/// What a stream of more than [`MOST_JOBS`] is told.
const TOO_MANY_JOBS: &str = "more than 1000000 jobs would make up the load: let them run longer, \
                             or shorten the stream";
/// What numbers of GPUs may be: up to [`MAX_GPUS`].
const GPU_COUNTS: &str = "expected numbers of GPUs from 1 to 1000000";

/// What is wrong with a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScenarioProblem {
    pub field: &'static str,
    /// Of several tables of one name, which, from 0.
    pub table: usize,
    pub what: &'static str,
}

impl Scenario {
    /// What no stream can be drawn from, if anything.
    pub fn problem(&self) -> Option<ScenarioProblem> {
        let Stream { load, length, jobs } = &self.stream;
        let at = |field, table, what| Some(ScenarioProblem { field, table, what });
        if !(load.is_finite() && *load > 0.0) {
            return at("stream.load", 0, "expected a number above 0");
        }
        if length.0 == 0 {
            return at("stream.length", 0, "expected a duration above 0");
        }
        if jobs.is_empty() {
            return at("stream.jobs", 0, "expected at least one kind of jobs");
        }
        for (table, kind) in jobs.iter().enumerate() {
            if !(kind.weight.is_finite() && kind.weight > 0.0) {
                return at("stream.jobs.weight", table, "expected a number above 0");
            }
            let is_count = |gpus: &u32| (1..=MAX_GPUS).contains(gpus);
            if kind.gpus.is_empty() || !kind.gpus.iter().all(is_count) {
                return at("stream.jobs.gpus", table, GPU_COUNTS);
            }
            if kind.run_time.from_ms == 0 {
                return at("stream.jobs.run_time", table, "expected a duration above 0");
            }
        }
        let is_share = |share: f64| (0.0..=1.0).contains(&share);
        let table = self.overlays.iter().position(|overlay| !is_share(overlay.share))?;
        at("overlays.share", table, "expected a number from 0 to 1")
    }

    /// The jobs of a seed on so many GPUs, in order of submission.
    ///
    /// # Errors
    /// Why there is no such stream.
    pub fn jobs(&self, seed: u64, cluster_gpus: u64) -> Result<Vec<TraceJob>, ScenarioProblem> {
        if let Some(problem) = self.problem() {
            return Err(problem);
        }
        let too_many = ScenarioProblem { field: "stream.load", table: 0, what: TOO_MANY_JOBS };
        let length_ms = self.stream.length.0;
        let wanted = self.stream.load * cluster_gpus as f64 * length_ms as f64;
        // Drawing a million jobs takes a second: what no such number makes up is refused at once.
        if wanted > MOST_JOBS as f64 * self.stream.largest_job_gpu_ms() {
            return Err(too_many);
        }
        let mut shapes = Random::new(seed, Purpose::Shapes);
        let mut run_times = Random::new(seed, Purpose::RunTimes);
        let mut arrivals = Random::new(seed, Purpose::Arrivals);
        let mut asked = 0.0;
        let mut jobs = Vec::new();
        while asked < wanted {
            if jobs.len() == MOST_JOBS {
                return Err(too_many);
            }
            let kind = shapes.weighted(&self.stream.jobs, |kind| kind.weight);
            let gpu_count = kind.gpus[shapes.below(kind.gpus.len())];
            let run_ms = kind.run_time.draw_ms(&mut run_times);
            asked += f64::from(gpu_count) * run_ms as f64;
            jobs.push(TraceJob {
                submit_ms: ((1.0 - arrivals.uniform()) * length_ms as f64) as u64,
                duration_ms: Some(run_ms),
                pod_count: 1,
                gpu_count,
                gpu_milli: 1_000,
                priority: kind.priority,
                queue: kind.queue.clone(),
                ..TraceJob::default()
            });
        }
        jobs.sort_by_key(|job| job.submit_ms);
        for (number, job) in jobs.iter_mut().enumerate() {
            job.id = format!("job-{number:06}");
        }
        let mut random = Random::new(seed, Purpose::Objects);
        for overlay in &self.overlays {
            jobs.iter_mut().for_each(|job| overlay.lay_over(job, &mut random));
        }
        Ok(jobs)
    }
}

impl Stream {
    /// GPU-time of the largest job that can be drawn, in GPU-ms.
    fn largest_job_gpu_ms(&self) -> f64 {
        let of = |kind: &Kind| {
            let gpus = kind.gpus.iter().max().copied().unwrap_or(0);
            f64::from(gpus) * kind.run_time.to_ms as f64
        };
        self.jobs.iter().map(of).fold(0.0, f64::max)
    }
}

impl Overlay {
    fn lay_over(&self, job: &mut TraceJob, random: &mut Random) {
        if !random.chance(self.share) {
            return;
        }
        let mut draw = |range: Option<Range>| range.map(|range| range.draw_ms(random));
        let costs = StopCosts {
            checkpoint_interval_ms: draw(self.checkpoint_interval),
            checkpoint_cost_ms: draw(self.checkpoint_cost),
            restart_cost_ms: draw(self.restart_cost),
            save_on_notice_ms: draw(self.save_on_notice),
        };
        job.stop_costs = costs.or(job.stop_costs);
    }
}

//! Seeded clusters and job streams that look like real ones.
//!
//! The parameters are fitted to published statistics; `profile.rs` states each with its source.
//! The same settings give the same bytes on every platform: only integer operations, IEEE
//! arithmetic and the portable functions of `libm` are used, and times are whole seconds.

mod arrivals;
mod estimate;
mod inside;
mod job_maker;
mod machines;
mod model;
pub mod objects;
mod people;
mod profile;
mod random;
mod run_time;

use serde::Serialize;

pub use model::{SizeModel, SynthModel};
pub use profile::{PROFILES, SynthProfile};
pub use random::{Purpose, Random};

use crate::error::TraceError;
use crate::node::TraceCluster;
use crate::trace::{KnownFields, Trace};
use job_maker::JobMaker;

/// Most jobs that a stream may be expected to have.
pub const MAX_EXPECTED_JOBS: f64 = 5_000_000.0;

/// What to generate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SynthConfig {
    /// Start of all randomness.
    pub seed: u64,
    /// Number of machines, 1 to 100,000.
    pub nodes: u32,
    /// Length of the stream in days, 1 to 3,650.
    pub days: u32,
    /// Mean GPU time that the jobs can use before the end of the stream, if each started when it
    /// was submitted, over the GPU time of the cluster; above 0 to 10.
    pub load: f64,
    /// Which kind of cluster and work.
    pub profile: SynthProfile,
}

/// A generated world.
#[derive(Debug, Clone, PartialEq)]
pub struct Synthetic {
    pub cluster: TraceCluster,
    /// The jobs, by submission.
    pub trace: Trace,
    /// What the figures of the trace are drawn around.
    pub model: SynthModel,
}

impl Default for SynthConfig {
    /// A month of a cluster of 1,200 machines at 80% load.
    fn default() -> Self {
        Self { seed: 1, nodes: 1200, days: 30, load: 0.8, profile: SynthProfile::Mixed }
    }
}

/// Generates machines and jobs.
///
/// # Errors
/// [`TraceError::Synth`] for a setting out of its limits, or when so many jobs would be expected
/// that they are certainly not wanted ([`MAX_EXPECTED_JOBS`]), or none came.
pub fn synth(config: &SynthConfig) -> Result<Synthetic, TraceError> {
    check(config)?;
    let profile = config.profile.parameters();
    let cluster = machines::cluster(config, profile);
    let model = SynthModel::of(config, profile, &cluster);
    if model.expected_jobs > MAX_EXPECTED_JOBS {
        let problem = format!("would give about {:.0} jobs", model.expected_jobs);
        let expected = format!("at most {MAX_EXPECTED_JOBS:.0}; reduce --nodes, --days or --load");
        return Err(bad("load", config.load, problem, expected));
    }
    let mut maker = JobMaker::new(config.seed, profile, &cluster);
    let times = arrivals::times(
        Random::new(config.seed, Purpose::Arrivals),
        profile,
        config.days,
        model.expected_jobs,
    );
    if times.is_empty() {
        let expected = "more nodes, days or load, or another seed".to_owned();
        return Err(bad("days", config.days, "produced no jobs".into(), expected));
    }
    let width = times.len().to_string().len();
    let jobs = times.iter().enumerate().map(|(index, time)| {
        let id = format!("job-{:0width$}", index + 1);
        maker.job(id, *time)
    });
    let trace = Trace {
        jobs: jobs.collect(),
        source: cluster.source.clone(),
        known: KnownFields::default(),
        ..Trace::default()
    };
    Ok(Synthetic { cluster, trace, model })
}

fn check(config: &SynthConfig) -> Result<(), TraceError> {
    let out = |setting, value: &dyn std::fmt::Display, expected: &str| {
        Err(bad(setting, value, "out of range".into(), expected.to_owned()))
    };
    if !(1..=100_000).contains(&config.nodes) {
        return out("nodes", &config.nodes, "1 to 100000");
    }
    if !(1..=3650).contains(&config.days) {
        return out("days", &config.days, "1 to 3650");
    }
    if !(config.load > 0.0 && config.load <= 10.0) {
        return out("load", &config.load, "a number above 0, at most 10");
    }
    Ok(())
}

fn bad(
    setting: &'static str,
    value: impl std::fmt::Display,
    problem: String,
    expected: String,
) -> TraceError {
    TraceError::Synth { setting, value: value.to_string(), problem, expected }
}

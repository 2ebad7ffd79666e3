//! `dovetail trace synth`.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use clap::builder::PossibleValuesParser;
use dovetail_trace::synth::{PROFILES, SynthConfig, SynthModel, SynthProfile, synth};
use dovetail_trace::{write_cluster, write_trace};
use serde::Serialize;

use crate::app::App;
use crate::output::Output;
use crate::output::file::write_whole;
use crate::output::places::refuse_shared;
use crate::output::table::{facts, whole};

/// Flags as written.
#[derive(Debug, Args)]
pub(crate) struct SynthFlags {
    /// File to write the jobs to
    #[arg(long, value_name = "FILE")]
    to_jobs: PathBuf,
    /// File to write the machines to
    #[arg(long, value_name = "FILE")]
    to_nodes: PathBuf,
    /// Number of machines
    #[arg(long, value_name = "N", default_value_t = SynthConfig::default().nodes)]
    nodes: u32,
    /// Length of the stream
    #[arg(long, value_name = "N", default_value_t = SynthConfig::default().days)]
    days: u32,
    /// GPU time of the jobs over GPU time of the cluster
    #[arg(long, value_name = "RATIO", default_value_t = SynthConfig::default().load)]
    load: f64,
    /// Kind of cluster and work: mixed (CPU jobs, GPU shares, training), training (whole GPUs, up to
    /// gangs of 512), sharing (services and small jobs)
    #[arg(long, value_name = "NAME", default_value = SynthConfig::default().profile.name())]
    #[arg(value_parser = PossibleValuesParser::new(PROFILES.map(SynthProfile::name)))]
    profile: String,
}

/// The result, as JSON.
#[derive(Debug, Serialize)]
struct Report {
    settings: SynthConfig,
    nodes: usize,
    gpus: u64,
    jobs: usize,
    gpu_hours: f64,
    model: SynthModel,
}

/// Generates files.
pub(crate) fn run(app: &App, flags: &SynthFlags) -> Result<()> {
    let output = app.output("trace synth", &[Output::Table, Output::Json])?;
    let settings = SynthConfig {
        seed: app.settings.seed.value,
        nodes: flags.nodes,
        days: flags.days,
        load: flags.load,
        profile: SynthProfile::from_name(&flags.profile).context("profiles are checked by name")?,
    };
    let outputs =
        [("--to-jobs", Some(flags.to_jobs.as_path())), ("--to-nodes", Some(&*flags.to_nodes))];
    refuse_shared(&[], &outputs)?;
    let made = synth(&settings)?;
    write_whole(&flags.to_nodes, |file| write_cluster(&made.cluster, file))?;
    write_whole(&flags.to_jobs, |file| write_trace(&made.trace, file))?;
    let milli_ms: u128 = made.trace.jobs.iter().filter_map(|job| job.gpu_milli_ms()).sum();
    let report = Report {
        settings,
        nodes: made.cluster.nodes.len(),
        gpus: made.cluster.total_gpus(),
        jobs: made.trace.jobs.len(),
        gpu_hours: milli_ms as f64 / 3.6e9,
        model: made.model,
    };
    match output {
        Output::Json => app.print_json(&report),
        _ => app.print(&report.text(flags)),
    }
}

impl Report {
    fn text(&self, flags: &SynthFlags) -> String {
        let model = &self.model;
        let of = |got: f64, expected: f64| {
            format!("{} (expected {})", whole(got.round() as u64), whole(expected.round() as u64))
        };
        facts(vec![
            ("seed", self.settings.seed.to_string()),
            ("machines", format!("{}, with {} GPUs", whole(self.nodes as u64), whole(self.gpus))),
            ("jobs", of(self.jobs as f64, model.expected_jobs)),
            ("GPU-hours", of(self.gpu_hours, model.expected_gpu_hours)),
            ("machines written", flags.to_nodes.display().to_string()),
            ("jobs written", flags.to_jobs.display().to_string()),
        ])
    }
}

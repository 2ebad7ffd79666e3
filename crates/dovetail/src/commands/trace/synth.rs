//! `dovetail trace synth`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use clap::builder::PossibleValuesParser;
use dovetail_console::app::App;
use dovetail_console::file::write_whole;
use dovetail_console::places::refuse_shared;
use dovetail_console::table::{facts, whole};
use dovetail_settings::form::Output;
use dovetail_trace::synth::{PROFILES, SynthConfig, SynthModel, SynthProfile, synth};
use dovetail_trace::{write_cluster, write_trace};
use dovetail_traces::synth_objects;
use serde::Serialize;

/// Flags as written.
#[derive(Debug, Args)]
pub(crate) struct SynthFlags {
    /// File for the jobs [required without --dump]
    #[arg(long, value_name = "FILE", required_unless_present = "dump")]
    to_jobs: Option<PathBuf>,
    /// File for the nodes [required without --dump]
    #[arg(long, value_name = "FILE", required_unless_present = "dump")]
    to_nodes: Option<PathBuf>,
    /// Write Kubernetes objects to this folder instead, as `kubectl get -A -o json` prints them,
    /// with 20 pods per node
    #[arg(long, value_name = "FOLDER")]
    #[arg(conflicts_with_all = ["to_jobs", "to_nodes", "days", "load", "profile"])]
    dump: Option<PathBuf>,
    /// With --dump, a usage file for the GPU activity of the last day
    #[arg(long, value_name = "FILE", requires = "dump")]
    #[arg(conflicts_with_all = ["to_jobs", "to_nodes"])]
    usage: Option<PathBuf>,
    /// Number of nodes
    #[arg(long, value_name = "N", default_value_t = SynthConfig::default().nodes)]
    nodes: u32,
    /// Length of the stream, in days
    #[arg(long, value_name = "N", default_value_t = SynthConfig::default().days)]
    days: u32,
    /// GPU time that the jobs can use within --days, as a fraction of the cluster's GPU time
    #[arg(long, value_name = "RATIO", default_value_t = SynthConfig::default().load)]
    load: f64,
    /// Kind of cluster and work: mixed (CPU jobs, GPU shares, training), training (whole GPUs,
    /// gangs of up to 512 GPUs), sharing (services and small jobs)
    #[arg(long, value_name = "NAME", default_value = SynthConfig::default().profile.name())]
    #[arg(value_parser = PossibleValuesParser::new(PROFILES.map(SynthProfile::name)))]
    profile: String,
}

/// The result, as JSON.
#[derive(Debug, Serialize)]
struct TraceWritten {
    settings: SynthConfig,
    nodes: usize,
    gpus: u64,
    jobs: usize,
    gpu_hours: f64,
    model: SynthModel,
}

/// Generates files.
pub(crate) fn run(app: &App, flags: &SynthFlags) -> Result<()> {
    if let Some(folder) = &flags.dump {
        return synth_objects::run(app, flags.nodes, folder, flags.usage.as_deref());
    }
    let (Some(to_jobs), Some(to_nodes)) = (flags.to_jobs.as_deref(), flags.to_nodes.as_deref())
    else {
        bail!("--to-jobs and --to-nodes are required without --dump");
    };
    let output = app.output("trace synth")?;
    let settings = SynthConfig {
        seed: app.settings.seed.value,
        nodes: flags.nodes,
        days: flags.days,
        load: flags.load,
        profile: SynthProfile::from_name(&flags.profile).context("profiles are checked by name")?,
    };
    refuse_shared(&[], &[("--to-jobs", Some(to_jobs)), ("--to-nodes", Some(to_nodes))])?;
    let made = synth(&settings)?;
    write_whole(to_nodes, |file| write_cluster(&made.cluster, file))?;
    write_whole(to_jobs, |file| write_trace(&made.trace, file))?;
    let milli_ms: u128 = made.trace.jobs.iter().filter_map(|job| job.gpu_milli_ms()).sum();
    let report = TraceWritten {
        settings,
        nodes: made.cluster.nodes.len(),
        gpus: made.cluster.total_gpus(),
        jobs: made.trace.jobs.len(),
        gpu_hours: milli_ms as f64 / 3.6e9,
        model: made.model,
    };
    match output {
        Output::Json => app.print_json(&report),
        _ => app.print(&report.text(to_jobs, to_nodes)),
    }
}

impl TraceWritten {
    fn text(&self, to_jobs: &Path, to_nodes: &Path) -> String {
        let model = &self.model;
        let of = |got: f64, expected: f64| {
            format!("{} (expected {})", whole(got.round() as u64), whole(expected.round() as u64))
        };
        facts(vec![
            ("seed", self.settings.seed.to_string()),
            ("nodes", format!("{}, with {} GPUs", whole(self.nodes as u64), whole(self.gpus))),
            ("jobs", of(self.jobs as f64, model.expected_jobs)),
            ("GPU-hours", of(self.gpu_hours, model.expected_gpu_hours)),
            ("nodes written", to_nodes.display().to_string()),
            ("jobs written", to_jobs.display().to_string()),
        ])
    }
}

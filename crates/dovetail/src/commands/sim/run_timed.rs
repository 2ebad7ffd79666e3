//! `dovetail sim run --protocol timed`.

use std::path::Path;

use anyhow::{Context, Result};
use clap::ValueEnum;
use dovetail_console::app::App;
use dovetail_console::progress::Progress;
use dovetail_console::style::OutputStream;
use dovetail_console::table::{counted, facts, percent, whole};
use dovetail_settings::errors::UsageError;
use dovetail_settings::form::Output;
use dovetail_sim::baseline::StartOverheads;
use dovetail_sim::timed::{Calibration, Estimates, StartEstimate, TimedMetrics};
use dovetail_sim::timeline::UsageReport;
use dovetail_trace::fgd::trace_name;
use dovetail_trace::{Trace, TraceCluster};
use dovetail_units::amount::tenths;
use dovetail_units::duration::{duration, duration_of_seconds};
use serde::Serialize;

use crate::commands::sim::page::{Section, page};
use crate::commands::sim::run::RunFlags;
use dovetail_replays::figures::{Figures, ReplayResult};
use dovetail_replays::impossible;
use dovetail_replays::input::scenario::ScenarioFile;
use dovetail_replays::input::{baseline, trace_file};
use dovetail_replays::pause::Pause;
use dovetail_replays::timed_replay::{Files, OrderName, TimedFigures, TimedPlan, replay};
use dovetail_replays::{limits, money, reservations};
use dovetail_sim::timed::Impossible;

/// The policy where none is named.
const DEFAULT_POLICY: &str = "first-fit";

/// What the engine is told about run times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EstimatesName {
    /// Nothing
    None,
    /// The run times that users estimated, as recorded in the trace
    Trace,
    /// What the engine learns from finished runs
    Learned,
    /// The true run times
    Truth,
}

impl From<EstimatesName> for Estimates {
    fn from(name: EstimatesName) -> Self {
        match name {
            EstimatesName::None => Self::None,
            EstimatesName::Trace => Self::Trace,
            EstimatesName::Learned => Self::Learned,
            EstimatesName::Truth => Self::Truth,
        }
    }
}

/// The result, as JSON.
#[derive(Debug, Serialize)]
struct TimedDocument {
    protocol: &'static str,
    order: OrderName,
    policy: Option<String>,
    trace: String,
    seed: u64,
    nodes: usize,
    gpus: u64,
    #[serde(flatten)]
    figures: TimedFigures,
    #[serde(flatten)]
    impossible: Impossible,
    learning_started_from: Option<String>,
    /// Absent for published orders, which keep no account of GPU-time.
    usage: Option<UsageReport>,
}

/// Replays the jobs of one file.
pub(crate) fn run(app: &App, flags: &RunFlags) -> Result<()> {
    let pause = flags.pause.pause()?;
    let output = match pause {
        Some(_) => app.output_of("sim run --pause-at", &[Output::Table, Output::Json])?,
        None => app.output("sim run")?,
    };
    refuse_unknown(flags)?;
    tell_needless(app, flags);
    let (cluster, trace, path) = world(app, flags)?;
    let plan = plan(app, flags, &cluster)?;
    let prices = flags.prices.of(&cluster, &app.settings)?;
    // Published orders know one pool of GPUs, and refuse what is larger.
    let impossible = match plan.order.is_preemptive() {
        true => Impossible::default(),
        false => Impossible::of(&cluster.nodes, &trace.jobs)?,
    };
    impossible::tell(&impossible, app, &trace);
    plan.queues.tell_unused(app, &trace.jobs)?;
    plan.without_jobs(&trace.jobs).iter().for_each(|note| app.note(note));
    let progress = Progress::new("jobs", trace.jobs.len() as u64);
    let files = Files {
        record: flags.record.as_deref(),
        pause,
        from_checkpoint: flags.pause.from_checkpoint.as_deref(),
    };
    let figures = replay(&trace, &cluster, &plan, files, &progress)?;
    drop(progress);
    flags.learning.save(figures.learnt.as_ref())?;
    if let Some(pause) = pause {
        if figures.is_paused {
            return tell_pause(app, output, &trace_name(path), pause, &figures);
        }
        app.note("the simulation ended before the pause: no checkpoint was written");
    }
    let usage = figures.usage.as_ref().map(|usage| money::priced(&trace, usage, &prices));
    let usage = usage.transpose()?;
    let policy = (!plan.order.is_preemptive()).then(|| plan.policy.name.clone());
    let report = TimedDocument {
        protocol: "timed",
        order: plan.order,
        trace: trace_name(path),
        seed: app.settings.seed.value,
        nodes: cluster.nodes.len(),
        gpus: cluster.total_gpus(),
        figures,
        impossible,
        learning_started_from: policy.as_deref().and_then(|name| flags.learning.started_from(name)),
        policy,
        usage,
    };
    match output {
        Output::Json => app.print_json(&report),
        Output::Html => {
            let limit =
                limits::times(&trace, &cluster, &report.impossible)?.map(limits::PolicyBound::from);
            app.print(&report.page(limit)?)
        }
        _ => app.print(&report.text(app)),
    }
}

/// The machines, the jobs, and the file that these come from.
fn world<'f>(app: &App, flags: &'f RunFlags) -> Result<(TraceCluster, Trace, &'f Path)> {
    if let Some(path) = flags.scenario.as_deref() {
        let scenario = ScenarioFile::read(path)?;
        let cluster = scenario.nodes()?.cluster(app, flags.rows)?;
        let trace = scenario.trace(app.settings.seed.value, cluster.total_gpus())?;
        return Ok((cluster, trace, path));
    }
    let nodes = flags.nodes.as_ref().context("--nodes is required")?;
    let cluster = nodes.cluster(app, flags.rows)?;
    let Some(path) = flags.jobs.as_deref() else {
        let text = "no jobs: pass --jobs FILE, or --scenario FILE instead of --nodes";
        return Err(UsageError(text.to_owned()).into());
    };
    let trace = trace_file::jobs_with_times(app, path, flags.rows, baseline::TIMED)?;
    Ok((cluster, trace, path))
}

/// A simulation that was paused, as JSON.
#[derive(Debug, Serialize)]
struct Paused<'f> {
    protocol: &'static str,
    trace: &'f str,
    paused_at_ms: u64,
    checkpoint: &'f std::path::Path,
    jobs: u64,
    unfinished_jobs: u64,
    /// Of everything up to the pause.
    event_log_hash: &'f str,
}

fn tell_pause(
    app: &App,
    output: Output,
    trace: &str,
    pause: Pause<'_>,
    figures: &TimedFigures,
) -> Result<()> {
    let paused = Paused {
        protocol: "timed",
        trace,
        paused_at_ms: pause.at_ms,
        checkpoint: pause.path,
        jobs: figures.metrics.jobs,
        unfinished_jobs: figures.metrics.unfinished_jobs,
        event_log_hash: &figures.event_log_hash,
    };
    if output == Output::Json {
        return app.print_json(&paused);
    }
    let title = app.style(OutputStream::Result).strong(&format!("{trace}, paused"));
    let file = pause.path.display();
    let rows = vec![
        ("paused at", duration(pause.at_ms)),
        ("jobs", whole(paused.jobs)),
        ("jobs that have not finished", whole(paused.unfinished_jobs)),
        ("checkpoint", file.to_string()),
        ("event log", paused.event_log_hash.to_owned()),
    ];
    let how = format!(
        "To resume, run the same command with --from-checkpoint {file}\n\
         instead of --pause-at and --checkpoint.\n"
    );
    app.print(&format!("{title}\n\n{}\n{how}", facts(rows)))
}

/// Refuses flags that the order does not know.
fn refuse_unknown(flags: &RunFlags) -> Result<()> {
    let order = flags.order.context("--order is required")?;
    let (flag, problem) = if order.is_preemptive() {
        let estimates = flags.estimates.map(|_| "--estimates");
        let policy = flags.policy.as_ref().map(|_| "--policy");
        let record = flags.record.as_ref().map(|_| "--record");
        let preemption = flags.preemption.then_some("--preemption");
        let starts = flags.start_estimates.map(|_| "--start-estimates");
        let files = record.or(flags.pause.given()).or(preemption).or(flags.reserve.given());
        let files = files.or(starts).or(flags.queues.given());
        (
            policy.or(estimates).or(files).or(flags.faults.given()).or(flags.prices.given()),
            "which follows its published rules and does not use the engine",
        )
    } else {
        let overhead = flags.start_overhead.as_ref().map(|_| "--start-overhead");
        (overhead, "which starts jobs without overhead (use srtf, srsf, las or las-placed)")
    };
    if let Some(flag) = flags.weights.given().filter(|_| order != OrderName::Dovetail) {
        let name = order.name();
        let text = format!("{flag}: --order {name} has no presets and no weights; omit it");
        return Err(UsageError(text).into());
    }
    if flags.queues.history.is_some() && order != OrderName::Dovetail {
        let name = order.name();
        let text = format!("--history: --order {name} does not count the usage of queues; omit it");
        return Err(UsageError(text).into());
    }
    let is_charged = order == OrderName::LasPlaced || flags.stops.charges_baselines();
    let uncharged = flags.stops.given().filter(|_| order.is_preemptive() && !is_charged);
    if let Some(flag) = uncharged {
        let name = order.name();
        let text = format!(
            "{flag}: --order {name} preempts jobs at no cost, as published: add --charge-baselines"
        );
        return Err(UsageError(text).into());
    }
    if let Some(flag) = flag {
        let text =
            format!("{flag}: not supported with --order {}, {problem}; omit it", order.name());
        return Err(UsageError(text).into());
    }
    Ok(())
}

/// Tells of a flag without effect: all orders but those that preempt as published charge stops
/// anyway.
fn tell_needless(app: &App, flags: &RunFlags) {
    let is_charged =
        |order: &OrderName| !matches!(order, OrderName::Las | OrderName::Srtf | OrderName::Srsf);
    if let Some(order) = flags.order.filter(is_charged)
        && flags.stops.charges_baselines()
    {
        let name = order.name();
        app.note(&format!(
            "--charge-baselines: no effect with --order {name}, which always charges the costs of \
             checkpoints and restarts"
        ));
    }
}

/// The flags as one plan, with the files that they name.
fn plan(app: &App, flags: &RunFlags, cluster: &TraceCluster) -> Result<TimedPlan> {
    let order = flags.order.context("--order is required")?;
    let seed = app.settings.seed.value;
    let (turns, model_weights) = flags.weights.turns()?;
    let name = flags.policy.as_deref().unwrap_or(DEFAULT_POLICY);
    Ok(TimedPlan {
        order,
        policy: flags.learning.policy(name, seed)?,
        estimates: flags.estimates.map(Estimates::from),
        overheads: flags.start_overhead.as_deref().map(StartOverheads::open).transpose()?,
        cluster_events: flags.faults.events(cluster)?,
        faults: flags.faults.model(seed),
        preemption: flags.preemption,
        turns,
        model_weights,
        queues: flags.queues.clone(),
        stop_costs: flags.stops.costs(),
        charges_baselines: flags.stops.charges_baselines(),
        reserve: flags.reserve.config(),
        bookings: flags.reserve.bookings()?,
        forecast_every_ms: flags.start_estimates,
        check: flags.check,
    })
}

impl TimedDocument {
    /// One file with plots.
    fn page(self, limit: Option<limits::PolicyBound>) -> Result<String> {
        let variant = match &self.policy {
            Some(policy) => format!("{}/{policy}", self.order.name()),
            None => self.order.name().to_owned(),
        };
        let title = format!("{variant} on {}", self.trace);
        let row = ReplayResult {
            trace: self.trace,
            variant,
            seed: self.seed,
            figures: Figures::Timed(Box::new(self.figures)),
            bill: None,
            limit,
            usage: self.usage,
            learning_started_from: self.learning_started_from,
        };
        let (nodes, gpus) = (self.nodes, self.gpus);
        let impossible = &self.impossible;
        page(&title, &[Section { nodes, gpus, rows: &[row], seeds: 1, against: "", impossible }])
    }

    /// What a person wants to see.
    fn text(&self, app: &App) -> String {
        let figures = &self.figures;
        let policy = self.policy.as_ref().map(|name| format!(" with {name}")).unwrap_or_default();
        let title = format!("{}{policy} on {}", self.order.name(), self.trace);
        let time =
            |seconds: Option<f64>| seconds.map_or_else(|| "-".to_owned(), duration_of_seconds);
        let mut rows = vec![
            (
                "cluster",
                format!("{}, {}", counted(self.nodes, "node"), counted(self.gpus as usize, "GPU")),
            ),
            ("jobs", whole(figures.metrics.jobs)),
            ("submission to end", {
                let metrics = &figures.metrics;
                let (ended, jobs) = (metrics.jobs - metrics.unfinished_jobs, metrics.jobs);
                spread(metrics.average_jct_s, metrics.p99_jct_s) + &covered(ended, jobs, "finished")
            }),
            ("submission to start", {
                let metrics = &figures.metrics;
                let (started, jobs) = (metrics.started_jobs, metrics.jobs);
                spread(metrics.average_queue_s, metrics.p99_queue_s)
                    + &covered(started, jobs, "started")
            }),
            ("end of the last job", time(figures.metrics.makespan_s)),
            ("GPU time used", percent(figures.metrics.gpu_occupancy.map(|share| share * 100.0))),
        ];
        if figures.metrics.unfinished_jobs > 0 {
            rows.insert(2, ("unfinished jobs", whole(figures.metrics.unfinished_jobs)));
        }
        if self.impossible.impossible_jobs > 0 {
            let count = whole(self.impossible.impossible_jobs);
            rows.insert(3, ("  of these can never start", count));
        }
        if figures.metrics.restarts > 0 {
            rows.push(("restarts", whole(figures.metrics.restarts)));
            rows.push(("GPU-hours recomputed", tenths(figures.metrics.repeated_gpu_hours)));
        }
        if figures.metrics.preemptions > 0 {
            rows.push(("preemptions", whole(figures.metrics.preemptions)));
            rows.push(("lost to preemption", lost(&figures.metrics)));
        }
        rows.extend(figures.estimates.iter().map(|(source, of)| (source_row(source), held(of))));
        rows.extend(figures.start_estimate.map(|starts| ("expected starts", came_true(&starts))));
        let resumed = figures.resumed_at_ms.map(duration);
        rows.extend(resumed.map(|at| ("resumed from a pause at", at)));
        rows.extend(self.learning_started_from.clone().map(|from| ("learning started from", from)));
        rows.push(("event log", figures.event_log_hash.clone()));
        let money = self.usage.as_ref().map(|usage| format!("\n{}", money::text(usage)));
        let title = app.style(OutputStream::Result).strong(&title);
        let never = impossible::text(&self.impossible);
        let refused = reservations::refused(&figures.reservations);
        format!("{title}\n\n{}{never}{refused}{}", facts(rows), money.unwrap_or_default())
    }
}

/// The row of the expected run times of a source.
fn source_row(source: &str) -> &'static str {
    match source {
        "given" => "run times given by users",
        "limit" => "run times from time limits",
        "learned" => "run times learned",
        _ => "run times assumed",
    }
}

/// How often jobs ran no longer than expected.
fn held(of: &Calibration) -> String {
    let by = |share: f64| percent(Some(share * 100.0));
    format!(
        "{} of {} within the median, {} within the 90th percentile",
        by(of.within_p50),
        counted(of.jobs as usize, "job"),
        by(of.within_p90)
    )
}

/// How often jobs started by the time that was expected.
fn came_true(starts: &StartEstimate) -> String {
    let by = |share: Option<f64>| percent(share.map(|share| share * 100.0));
    format!(
        "{} of {} by the median, {} by the 90th percentile",
        by(starts.within_p50),
        counted(starts.jobs as usize, "job"),
        by(starts.within_p90)
    )
}

/// GPU-time of work done again and of restarts.
fn lost(metrics: &TimedMetrics) -> String {
    let hours = tenths(metrics.lost_gpu_s / 3_600.0);
    format!("{hours} GPU-hours, {} of the GPU time used", percent(metrics.lost_percent))
}

fn spread(mean_s: Option<f64>, p99_s: Option<f64>) -> String {
    match (mean_s, p99_s) {
        (Some(mean_s), Some(p99_s)) => {
            format!("mean {}, p99 {}", duration_of_seconds(mean_s), duration_of_seconds(p99_s))
        }
        _ => "-".to_owned(),
    }
}

/// What a mean covers, where that is not all.
fn covered(some: u64, all: u64, did: &str) -> String {
    match some < all {
        true => format!(", of the {} that {did}", counted(some as usize, "job")),
        false => String::new(),
    }
}

//! `dovetail usage idle`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Error, Result};
use clap::Args;
use dovetail_account::{IdleRule, IdleRuns, IdleTime, idle_runs};
use dovetail_console::app::App;
use dovetail_console::clock::now_ms;
use dovetail_console::open as file;
use dovetail_console::plain::plain;
use dovetail_console::table::{facts, table, whole, wrapped};
use dovetail_metrics::file::{UsageFileError, UsageFileOptions, UsageSamples, read_usage_file};
use dovetail_settings::duration::DurationFlag;
use dovetail_settings::form::Output;
use dovetail_sources::namespace::NamespaceFlags;
use dovetail_units::amount::{hundredths, percent};
use dovetail_units::duration::duration_of_seconds;
use dovetail_units::number::{Number, Rest};
use serde::Serialize;

/// Clocks differ, and so do time zones of those who write files.
const CLOCK_SKEW_MS: u64 = 86_400_000;

/// Flags as written.
#[derive(Debug, Args)]
pub(crate) struct IdleFlags {
    /// CSV file with samples:
    /// timestamp_s,pod,gpu,activity_percent[,memory_bytes][,namespace][,node][,gpu_share]
    #[arg(long, value_name = "FILE")]
    usage: PathBuf,
    /// Activity (0 to 100%) below which a sample is idle
    #[arg(long, value_name = "PERCENT", default_value = "5")]
    threshold_percent: ThresholdFlag,
    /// Shortest idle period that counts, such as 90s, 10m or 1h30m
    #[arg(long, value_name = "DURATION", default_value = "15m")]
    min_run: DurationFlag,
    /// Part of each idle period that is not reclaimable, such as 10m [default: same as
    /// --min-run]
    #[arg(long, value_name = "DURATION")]
    grace: Option<DurationFlag>,
    /// Skip bad rows and list them on standard error
    #[arg(long)]
    skip_bad_rows: bool,
    #[command(flatten)]
    namespace: NamespaceFlags,
}

/// Percent with at most six decimals, as millionths.
#[derive(Clone, Copy, Debug)]
struct ThresholdFlag(u32);

impl FromStr for ThresholdFlag {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = Number::read(text).map_err(|problem| format!("`{text}` {problem}"))?;
        let micro = number.units(6, Rest::CutOff).and_then(|micro| u32::try_from(micro).ok());
        match micro.filter(|micro| *micro <= 100_000_000) {
            Some(micro) if number.decimals() <= 6 => Ok(Self(micro)),
            _ => Err(format!(
                "`{text}` is not a percentage: write 0 to 100 with at most six decimal places"
            )),
        }
    }
}

/// Finds the runs of a file.
pub(crate) fn run(app: &App, flags: &IdleFlags) -> Result<()> {
    let output = app.output("usage idle")?;
    let samples = read(app, flags)?;
    let rule = IdleRule {
        threshold_micro_percent: flags.threshold_percent.0,
        min_run_ms: flags.min_run.ms,
        grace_ms: flags.grace.unwrap_or(flags.min_run).ms,
    };
    let mut report = IdleReport::of(&samples, &rule, &idle_runs(samples.of_pods(), &rule));
    report.idle_pods.retain(|pod| flags.namespace.shows(pod.namespace.as_deref().unwrap_or("")));
    match output {
        Output::Json => app.print_json(&report),
        _ => app.print(&report.table()),
    }
}

fn read(app: &App, flags: &IdleFlags) -> Result<UsageSamples> {
    let name = flags.usage.display().to_string();
    let latest_ms = now_ms().saturating_add(CLOCK_SKEW_MS);
    let options = UsageFileOptions { skip_bad_rows: flags.skip_bad_rows, latest_ms };
    let read = read_usage_file(file::open(&flags.usage)?, &name, &options);
    let samples = read.map_err(|error| match &error {
        UsageFileError::Row(_) => {
            let text = format!("{error}; to skip and list such rows, pass --skip-bad-rows");
            Error::new(error).context(text)
        }
        _ => error.into(),
    })?;
    samples.skipped.iter().for_each(|row| app.note(&format!("ignored {row}")));
    if samples.skipped_rows > 0 {
        app.note(&format!("{name}: {} bad rows ignored", samples.skipped_rows));
    }
    if samples.duplicate_rows > 0 {
        app.note(&format!("{name}: {} duplicate rows ignored", samples.duplicate_rows));
    }
    Ok(samples)
}

/// The answer; keys as in docs/reference/json.md.
#[derive(Debug, Serialize)]
struct IdleReport {
    method: &'static str,
    threshold_percent: f64,
    min_run_s: f64,
    grace_s: f64,
    pods: usize,
    samples: u64,
    sample_step_s: Option<f64>,
    gpu_hours: Option<f64>,
    idle_gpu_hours: Option<f64>,
    idle_share: f64,
    runs: Option<u64>,
    gpu_hours_in_runs: Option<f64>,
    reclaimable_gpu_hours: Option<f64>,
    /// Those with idle runs, the most reclaimable first.
    idle_pods: Vec<IdlePod>,
    skipped_rows: u64,
    duplicate_rows: u64,
}

/// A pod that was idle for long.
#[derive(Debug, Serialize)]
struct IdlePod {
    namespace: Option<String>,
    pod: String,
    gpu_hours: f64,
    idle_gpu_hours: f64,
    idle_share: f64,
    runs: u64,
    gpu_hours_in_runs: f64,
    reclaimable_gpu_hours: f64,
}

/// Pods that the table names.
const MOST_PODS: usize = 10;

impl IdleReport {
    fn of(samples: &UsageSamples, rule: &IdleRule, found: &IdleRuns) -> Self {
        let mut pods: Vec<_> = samples.series.iter().map(|s| (&s.namespace, &s.pod)).collect();
        pods.dedup();
        let (total, step_us) = (found.total(), found.in_time.as_ref().map(|(step_us, _)| *step_us));
        let by_samples = half_up(u128::from(found.idle_samples), u128::from(found.samples), 10_000);
        Self {
            method: "sampled-idle-runs",
            threshold_percent: f64::from(rule.threshold_micro_percent) / 1e6,
            min_run_s: rule.min_run_ms as f64 / 1e3,
            grace_s: rule.grace_ms as f64 / 1e3,
            pods: pods.len(),
            samples: found.samples,
            sample_step_s: step_us.map(|step_us| step_us as f64 / 1e6),
            gpu_hours: total.map(|time| hours(time.gpu_milli_us)),
            idle_gpu_hours: total.map(|time| hours(time.idle_gpu_milli_us)),
            idle_share: total.map_or(by_samples, idle_share),
            runs: total.map(|time| time.runs),
            gpu_hours_in_runs: total.map(|time| hours(time.in_runs_gpu_milli_us)),
            reclaimable_gpu_hours: total.map(|time| hours(time.reclaimable_gpu_milli_us)),
            idle_pods: IdlePod::all_of(samples, found),
            skipped_rows: samples.skipped_rows,
            duplicate_rows: samples.duplicate_rows,
        }
    }

    fn table(&self) -> String {
        let hours = |hours: Option<f64>| hours.map_or_else(|| "-".to_owned(), hundredths);
        let at_least =
            |what: &str| format!("{what} of at least {}", duration_of_seconds(self.min_run_s));
        let share = percent(self.idle_share);
        let rows = [
            ("pods", whole(self.pods as u64)),
            ("samples", whole(self.samples)),
            (
                "sample interval",
                self.sample_step_s.map_or_else(|| "-".to_owned(), duration_of_seconds),
            ),
            ("GPU-hours", hours(self.gpu_hours)),
            ("  below the threshold", format!("{} ({share})", hours(self.idle_gpu_hours))),
            ("idle periods", self.runs.map_or_else(|| "-".to_owned(), whole)),
            ("  GPU-hours in them", hours(self.gpu_hours_in_runs)),
            ("  reclaimable GPU-hours", hours(self.reclaimable_gpu_hours)),
        ];
        let method = format!(
            "Idle: activity below {}%. {}; a missing sample ends a period. Reclaimable: the part of a \
             period beyond {}.",
            self.threshold_percent,
            at_least("Periods"),
            duration_of_seconds(self.grace_s),
        );
        format!("{}{}\n{}", facts(rows.into()), self.pods_table(), wrapped(&method, 0))
    }

    /// The pods with the most reclaimable GPU-hours.
    fn pods_table(&self) -> String {
        if self.idle_pods.is_empty() {
            return String::new();
        }
        let row = |pod: &IdlePod| {
            let name = match &pod.namespace {
                Some(namespace) => format!("{namespace}/{}", pod.pod),
                None => pod.pod.clone(),
            };
            vec![
                plain(&name),
                hundredths(pod.gpu_hours),
                hundredths(pod.idle_gpu_hours),
                percent(pod.idle_share),
                whole(pod.runs),
                hundredths(pod.reclaimable_gpu_hours),
            ]
        };
        let rows = self.idle_pods.iter().take(MOST_PODS).map(row).collect();
        let header = ["pod", "GPU-hours", "idle", "idle share", "periods", "reclaimable"];
        let more = match self.idle_pods.len().saturating_sub(MOST_PODS) {
            0 => String::new(),
            more => {
                let pods = if more == 1 { "pod" } else { "pods" };
                format!(
                    "{} more {pods} with idle periods: -o json lists them.\n",
                    whole(more as u64)
                )
            }
        };
        format!("\n{}{more}", table(&header, rows))
    }
}

impl IdlePod {
    fn all_of(samples: &UsageSamples, found: &IdleRuns) -> Vec<Self> {
        let mut of_pods: BTreeMap<(&Option<String>, &str), IdleTime> = BTreeMap::new();
        let times = found.in_time.iter().flat_map(|(_, of_series)| of_series);
        for (series, time) in samples.series.iter().zip(times) {
            *of_pods.entry((&series.namespace, &series.pod)).or_default() += *time;
        }
        let mut pods: Vec<_> = of_pods.into_iter().filter(|(_, time)| time.runs > 0).collect();
        pods.sort_by_key(|(_, time)| {
            std::cmp::Reverse((time.reclaimable_gpu_milli_us, time.in_runs_gpu_milli_us))
        });
        let pod = |((namespace, pod), time): ((&Option<String>, &str), IdleTime)| Self {
            namespace: namespace.clone(),
            pod: pod.to_owned(),
            gpu_hours: hours(time.gpu_milli_us),
            idle_gpu_hours: hours(time.idle_gpu_milli_us),
            idle_share: idle_share(time),
            runs: time.runs,
            gpu_hours_in_runs: hours(time.in_runs_gpu_milli_us),
            reclaimable_gpu_hours: hours(time.reclaimable_gpu_milli_us),
        };
        pods.into_iter().map(pod).collect()
    }
}

/// Idle GPU-time of all.
fn idle_share(time: IdleTime) -> f64 {
    half_up(time.idle_gpu_milli_us, time.gpu_milli_us, 10_000)
}

/// `part / whole` in units of 1 / `unit`, half rounded up; 0 of nothing.
fn half_up(part: u128, whole: u128, unit: u128) -> f64 {
    if whole == 0 {
        return 0.0;
    }
    let units = (2 * part * unit + whole) / (2 * whole);
    units as f64 / unit as f64
}

/// Hours of milli-GPU × µs, half up to two decimals.
fn hours(gpu_milli_us: u128) -> f64 {
    half_up(gpu_milli_us, 3_600_000_000_000, 100)
}

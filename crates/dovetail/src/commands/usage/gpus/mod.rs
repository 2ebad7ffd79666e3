//! `dovetail usage gpus`.

mod grouping;
mod report;

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use clap::{ArgAction, Args};
use dovetail_ledger::device_time::Span;
use dovetail_ledger::signal::ActivityRule;
use dovetail_metrics::exporter::{Observation, PodLabels, mean_over_steps, measures};
use dovetail_metrics::prometheus::{
    Direct, DirectOptions, Limits, PrometheusClient, RangeQuery, Series,
};

use crate::app::App;
use crate::exit::UsageError;
use crate::input::duration::DurationFlag;
use crate::input::prices::PriceFlags;
use crate::output::Output;
use grouping::Grouping;
use report::{Report, Source};

/// An answer may take this long.
const ANSWER_WITHIN: Duration = Duration::from_secs(120);

/// Flags as written.
#[derive(Debug, Args)]
pub(crate) struct GpusFlags {
    /// Address of Prometheus, Thanos, Mimir or VictoriaMetrics, without /api/v1
    #[arg(long, value_name = "URL")]
    prometheus: String,
    /// File with a bearer token for it
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Certificates (PEM) of who vouches for it, instead of the system's
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// One more header, such as X-Scope-OrgID=team-a; can be given several times
    #[arg(long, value_name = "NAME=VALUE", action = ArgAction::Append)]
    header: Vec<String>,
    /// How far back, such as 24h or 14d
    #[arg(long, value_name = "DURATION", default_value = "24h")]
    period: DurationFlag,
    /// Distance of two looks; each is the mean over it [default: 1m, and 5m for more than 3d]
    #[arg(long, value_name = "DURATION")]
    step: Option<DurationFlag>,
    /// One row for each of these
    #[arg(long, value_enum, default_value = "namespace")]
    by: Grouping,
    #[command(flatten)]
    prices: PriceFlags,
}

/// Reads a period and prints what every device did.
pub(crate) fn run(app: &App, flags: &GpusFlags) -> Result<()> {
    let output = app.output("usage gpus", &[Output::Table, Output::Json])?;
    let step_ms = step_ms(flags)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // Whole steps: two runs within one step ask for the same moments.
    let to_ms = now.as_millis() as u64 / step_ms * step_ms;
    let steps = flags.period.ms.div_ceil(step_ms);
    let period = Span { from_ms: to_ms.saturating_sub(steps * step_ms), to_ms };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("cannot start a thread for the connection")?;
    let mut client = PrometheusClient::new(connection(flags)?, Limits::default());
    let observation = runtime.block_on(observe(&mut client, period, step_ms))?;
    client.notes().warnings.iter().for_each(|text| {
        app.note(&format!("{} warns, so data may be missing: {text}", client.server()));
    });
    let time = observation.histories(period, step_ms, &ActivityRule::default());
    let models = time.devices.iter().map(|device| device.model.clone()).collect();
    let prices = flags.prices.of_models(models)?;
    let source = Source { server: client.server().to_owned(), period, step_ms };
    let report = Report::of(&source, flags.by, &time, observation.refused(), &prices)?;
    match output {
        Output::Json => app.print_json(&report),
        _ => app.print(&report.table()),
    }
}

fn step_ms(flags: &GpusFlags) -> Result<u64> {
    const SHORT_MS: u64 = 3 * 86_400_000;
    let default_ms = if flags.period.ms <= SHORT_MS { 60_000 } else { 300_000 };
    let step_ms = flags.step.map_or(default_ms, |step| step.ms);
    match step_ms {
        step_ms if step_ms < 1_000 => {
            Err(UsageError("--step: at least 1s: exporters are not read more often".into()).into())
        }
        step_ms if step_ms > flags.period.ms => {
            Err(UsageError("--step is longer than --period: shorten it".into()).into())
        }
        step_ms => Ok(step_ms),
    }
}

fn connection(flags: &GpusFlags) -> Result<Direct> {
    let mut headers = Vec::new();
    for header in &flags.header {
        let pair = header.split_once('=').ok_or_else(|| {
            UsageError(format!("--header {header}: write NAME=VALUE, such as X-Scope-OrgID=team-a"))
        })?;
        headers.push((pair.0.to_owned(), pair.1.to_owned()));
    }
    let options = DirectOptions {
        url: flags.prometheus.clone(),
        token_file: flags.token_file.clone(),
        authority_file: flags.ca_file.clone(),
        headers,
        timeout: ANSWER_WITHIN,
    };
    Direct::new(&options).map_err(|error| UsageError(format!("--prometheus: {error}")).into())
}

/// Reads every series that a device may have. What `pod` means is decided over all of them.
async fn observe(
    client: &mut PrometheusClient<Direct>,
    period: Span,
    step_ms: u64,
) -> Result<Observation> {
    let mut read: Vec<Vec<Series>> = Vec::new();
    for (name, _, _) in measures() {
        let range = RangeQuery {
            query: mean_over_steps(name, step_ms),
            from_ms: period.from_ms as i64,
            to_ms: period.to_ms as i64 - 1,
            step_ms: step_ms as i64,
        };
        let mut all = Vec::new();
        client.range(&range, |series| all.extend(series)).await?;
        read.push(all);
    }
    let pods = PodLabels::of(read.iter().flatten().map(|series| &series.labels));
    let mut observation = Observation::default();
    for ((_, measure, scale), series) in measures().zip(read) {
        observation.take(measure, scale, pods, series);
    }
    Ok(observation)
}

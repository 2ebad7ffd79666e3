//! Where the GPU-time of a replay went, as a table, and in four figures.

use anyhow::Result;
use dovetail_capacity::Usage;
use dovetail_console::table::{table, wrapped};
use dovetail_model::FreeCause;
use dovetail_settings::errors::BadInput;
use dovetail_sim::timeline::{AmountReport, TimelineConfig, UsageReport};
use dovetail_sources::prices::Prices;
use dovetail_trace::{Trace, TraceJob};
use dovetail_units::amount::{fine_percent, hundredths, percent, unit_usd, usd};
use dovetail_units::duration::duration;
use serde::Serialize;

/// Free GPUs are held against waiting jobs at least so often, in virtual time.
const MAX_CAUSE_PERIOD_MS: u64 = 600_000;
/// And about so often in a short trace.
const CAUSE_SAMPLES: u64 = 1_000;

/// What is accounted for: the time from the first to the last submission.
///
/// It is the same time under every policy, and free of the days in which a trace that has ended
/// runs dry. Where all jobs come at once, it goes to the last end.
pub fn period(trace: &Trace) -> TimelineConfig {
    let submits = trace.jobs.iter().map(|job| job.submit_ms);
    let (first, last) = (submits.clone().min().unwrap_or(0), submits.max().unwrap_or(0));
    TimelineConfig {
        cause_period_ms: ((last - first) / CAUSE_SAMPLES).min(MAX_CAUSE_PERIOD_MS),
        until_ms: (first < last).then_some(last),
    }
}

/// The account of a trace in money.
///
/// # Errors
/// GPU-time that costs more than can be counted, with the place of the job that ends the account.
pub fn priced(trace: &Trace, usage: &Usage, prices: &Prices) -> Result<UsageReport> {
    UsageReport::new(usage, prices).map_err(|error| {
        // The account ends with the last submission, or with the end of jobs that come at once.
        let time = |job: &TraceJob| (job.submit_ms, job.duration_ms);
        let last = (0..trace.jobs.len()).max_by_key(|row| time(&trace.jobs[*row]));
        let place = last.map_or_else(|| trace.source.clone(), |row| trace.place(row));
        BadInput(format!("{place}: {error}")).into()
    })
}

/// The figures that policies are compared by.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct BriefBill {
    pub allocated_gpu_hours: f64,
    pub free_gpu_hours: f64,
    /// Free although something waited.
    pub wasted_gpu_hours: f64,
    pub wasted_usd_micros_per_month: Option<i64>,
    /// Share of the wasted GPU-time that the dollars are of, 0 to 1; unknown where nothing was
    /// wasted.
    pub wasted_priced_share: Option<f64>,
}

impl BriefBill {
    /// The figures of an account.
    pub fn of(usage: &UsageReport) -> Self {
        let wasted = usage.free_while_work_waited();
        let is_nothing = wasted.gpu_milli_ms == 0;
        Self {
            allocated_gpu_hours: usage.total.allocated.gpu_hours,
            free_gpu_hours: usage.total.free.gpu_hours,
            wasted_gpu_hours: wasted.gpu_hours,
            wasted_usd_micros_per_month: match is_nothing {
                true => Some(0),
                false => wasted.estimated_usd_micros_per_month,
            },
            wasted_priced_share: wasted.priced_share,
        }
    }
}

/// What a person wants to see: GPU-hours and money by state, free ones by cause, and the prices.
pub fn text(usage: &UsageReport) -> String {
    let total = &usage.total;
    let line = |what: &str, amount: &AmountReport| {
        let share = amount.gpu_milli_ms as f64 * 100.0 / total.installed.gpu_milli_ms as f64;
        // Of no time at all nothing is a share.
        let share = (total.installed.gpu_milli_ms > 0).then_some(share);
        vec![
            what.to_owned(),
            hundredths(amount.gpu_hours),
            share.map_or_else(|| "-".to_owned(), fine_percent),
            usd(amount.usd_micros),
            usd(amount.estimated_usd_micros_per_month),
        ]
    };
    let mut rows = vec![line("allocated", &total.allocated)];
    if total.unavailable.gpu_milli_ms > 0 {
        rows.push(line("unavailable", &total.unavailable));
    }
    let free = |cause: &FreeCause| format!("free: {}", cause.name().replace('_', " "));
    let causes = total.free_by_cause.iter().filter(|(_, amount)| amount.gpu_milli_ms > 0);
    rows.extend(causes.map(|(cause, amount)| line(&free(cause), amount)));
    rows.push(line("installed", &total.installed));
    let month = format!("cost in {} days", usage.month_days);
    let table = table(&["GPUs", "GPU-hours", "share", "cost", &month], rows);
    let covered = duration(usage.to_ms - usage.from_ms);
    format!("{table}over {covered} from the first submission on\n{}", evidence(usage))
}

/// What the money rests on.
fn evidence(usage: &UsageReport) -> String {
    let mut text = String::new();
    for model in &usage.models {
        let name = model.model.as_deref().unwrap_or("GPUs without a model");
        let line = match (model.usd_micros_per_gpu_hour, &model.price_source) {
            (Some(micros), Some(source)) => {
                let assumed = if model.price_is_assumed { ", assumed" } else { "" };
                format!("{name}: {} per GPU-hour{assumed} ({source})", unit_usd(micros))
            }
            _ => format!("{name}: price unknown; set one with --gpu-price"),
        };
        text += &wrapped(&line, 0);
    }
    match usage.total.installed.priced_share {
        Some(share) => format!("{text}{} of the GPU time has a price\n", percent(share)),
        None => text,
    }
}

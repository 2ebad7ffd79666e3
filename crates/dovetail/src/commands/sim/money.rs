//! Where the GPU-time of a replay went, and what it costs.

use anyhow::Result;
use dovetail_ledger::{Amount, FreeCause, Priced, PricedUsage, Usage, UsageIntegral, price};
use dovetail_model::Event;
use dovetail_plan::Engine;
use dovetail_price::format_usd_micros;
use dovetail_trace::Trace;
use serde::Serialize;

use crate::exit::Violated;
use crate::input::prices::Prices;
use crate::output::table::{duration, number, table};

/// Free GPUs are held against waiting jobs at least so often.
const MAX_CAUSE_PERIOD_MS: u64 = 3_600_000;
/// And about so often in a short trace.
const CAUSE_SAMPLES: u64 = 1_000;
/// Milli-GPU x ms of a GPU-hour.
const MILLI_MS_PER_GPU_HOUR: f64 = 3.6e9;
/// A month of money is this long.
const MONTH_MS: f64 = 30.0 * 24.0 * 3.6e6;

/// The account of a replay that is going on.
///
/// It covers the time from the first to the last submission: the same time under every policy, and free of
/// the days in which a trace that has ended runs dry. Where all jobs come at once, it goes to the last end.
#[derive(Debug)]
pub(crate) struct Account {
    last_ms: u64,
    integral: Option<UsageIntegral>,
    cause_period_ms: u64,
    problem: Option<String>,
}

impl Account {
    /// An account of the jobs of a trace.
    pub(crate) fn new(trace: &Trace) -> Self {
        let submits = trace.jobs.iter().map(|job| job.submit_ms);
        let (first, last) = (submits.clone().min().unwrap_or(0), submits.max().unwrap_or(0));
        let cause_period_ms = ((last - first) / CAUSE_SAMPLES).min(MAX_CAUSE_PERIOD_MS);
        let last_ms = if first == last { u64::MAX } else { last };
        Self { last_ms, integral: None, cause_period_ms, problem: None }
    }

    /// Nothing changes up to a time.
    pub(crate) fn advance(&mut self, engine: &mut Engine, to_ms: u64) {
        if to_ms > self.last_ms {
            return;
        }
        let advanced =
            self.integral.as_mut().map_or(Ok(()), |account| account.advance(engine, to_ms));
        self.note(advanced);
    }

    /// What happened at a time has been answered.
    pub(crate) fn step(&mut self, engine: &mut Engine, now_ms: u64, events: &[Event]) {
        let is_first = || events.iter().any(|event| matches!(event, Event::Submitted(_)));
        if self.integral.is_none() && is_first() {
            match UsageIntegral::new(engine, now_ms, self.cause_period_ms) {
                Ok(integral) => self.integral = Some(integral),
                Err(error) => self.note(Err(error)),
            }
        }
    }

    /// The finished account, checked.
    ///
    /// # Errors
    /// [`Violated`] if the parts do not add up to the whole.
    pub(crate) fn usage(self) -> Result<Option<Usage>, Violated> {
        if let Some(problem) = self.problem {
            return Err(Violated(problem));
        }
        let Some(mut integral) = self.integral else { return Ok(None) };
        let usage = integral.usage();
        usage.check().map_err(|error| Violated(error.to_string()))?;
        Ok(Some(usage))
    }

    fn note(&mut self, outcome: Result<(), dovetail_ledger::ClockError>) {
        if let Err(error) = outcome {
            self.problem.get_or_insert(error.to_string());
        }
    }
}

/// GPU-time and money of a replay, as JSON.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Bill {
    /// Longest time between two judgements of why GPUs are free.
    cause_period_ms: u64,
    /// Free while something waits that could not use it, per 30 days.
    pub(crate) wasted_usd_micros_per_30_days: Option<i64>,
    pub(crate) wasted_gpu_hours: f64,
    #[serde(flatten)]
    priced: PricedUsageParts,
}

/// The ledger's own report; a type of its own, because 128-bit figures pass through no other way.
#[derive(Clone, Debug, Serialize)]
struct PricedUsageParts {
    usage: PricedUsage,
}

/// The same in four figures.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct BriefBill {
    pub(crate) allocated_gpu_hours: f64,
    pub(crate) free_gpu_hours: f64,
    pub(crate) wasted_gpu_hours: f64,
    pub(crate) wasted_usd_micros_per_30_days: Option<i64>,
}

impl Bill {
    /// Prices an account.
    ///
    /// # Errors
    /// [`Violated`] if money is not capacity x time x price to the micro-dollar.
    pub(crate) fn new(usage: &Usage, prices: &Prices) -> Result<Self, Violated> {
        let priced = price(usage, prices);
        let sums = priced.total.check(|amount| i128::from(amount.usd_micros().unwrap_or(0)));
        sums.map_err(|error| Violated(format!("money: {error}")))?;
        let wasted = FreeCause::ALL
            .into_iter()
            .filter(|cause| cause.is_waste() && !matches!(cause, FreeCause::NoDemand));
        let mut sum = Amount::default();
        wasted.for_each(|cause| sum += priced.total.free_by(cause));
        Ok(Self {
            cause_period_ms: usage.cause_period_ms,
            wasted_usd_micros_per_30_days: sum.usd_micros().map(|usd| per_30_days(usd, &priced)),
            wasted_gpu_hours: hours(sum),
            priced: PricedUsageParts { usage: priced },
        })
    }

    /// The figures that policies are compared by.
    pub(crate) fn brief(&self) -> BriefBill {
        let total = &self.priced.usage.total;
        BriefBill {
            allocated_gpu_hours: hours(total.allocated),
            free_gpu_hours: hours(total.free),
            wasted_gpu_hours: self.wasted_gpu_hours,
            wasted_usd_micros_per_30_days: self.wasted_usd_micros_per_30_days,
        }
    }

    /// What a person wants to see: GPU-hours and money by state, free ones by cause.
    pub(crate) fn text(&self) -> String {
        let usage = &self.priced.usage;
        let total = &usage.total;
        let line = |what: &str, amount: Amount| {
            let share = amount.gpu_milli_ms as f64 * 100.0 / total.installed.gpu_milli_ms as f64;
            let known = |micros: Option<i64>| micros.map_or_else(|| "-".to_owned(), usd);
            let month = amount.usd_micros().map(|micros| per_30_days(micros, usage));
            vec![
                what.to_owned(),
                number(Some(hours(amount))),
                format!("{share:.2} %"),
                known(amount.usd_micros()),
                known(month),
            ]
        };
        let mut rows = vec![line("allocated", total.allocated)];
        if total.unavailable.gpu_milli_ms > 0 {
            rows.push(line("unavailable", total.unavailable));
        }
        for (cause, amount) in &total.free_by_cause {
            if amount.gpu_milli_ms > 0 {
                rows.push(line(&format!("free: {}", cause.name().replace('_', " ")), *amount));
            }
        }
        rows.push(line("installed", total.installed));
        let header = ["GPUs", "GPU-hours", "share", "USD", "USD in 30 days"];
        let period = duration((usage.to_ms - usage.from_ms) as f64 / 1e3);
        let period = format!("over {period} from the first submission on\n");
        format!("{}{period}{}", table(&header, rows), self.evidence())
    }

    /// What the money rests on.
    fn evidence(&self) -> String {
        let usage = &self.priced.usage;
        let mut text = String::new();
        for (model, bill) in &usage.models {
            let name = if model.is_empty() { "GPUs without a model" } else { model };
            text += &match &bill.price {
                Priced::Unknown => format!("{name}: price unknown; set one with --gpu-price\n"),
                Priced::Known(price) => {
                    let assumed = if price.assumed { ", assumed" } else { "" };
                    let usd = format_usd_micros(price.usd_micros_per_gpu_hour);
                    format!("{name}: {usd} USD per GPU-hour{assumed} ({})\n", price.source)
                }
            };
        }
        match usage.total.installed.priced_share() {
            Some(share) if share < 1.0 => {
                format!("{text}{:.1} % of the GPU-time has a price\n", share * 100.0)
            }
            _ => text,
        }
    }
}

fn hours(amount: Amount) -> f64 {
    amount.gpu_milli_ms as f64 / MILLI_MS_PER_GPU_HOUR
}

fn per_30_days(usd_micros: i64, usage: &PricedUsage) -> i64 {
    let period_ms = (usage.to_ms - usage.from_ms).max(1) as f64;
    (usd_micros as f64 * MONTH_MS / period_ms).round() as i64
}

/// Dollars, for tables.
fn usd(usd_micros: i64) -> String {
    number(Some(usd_micros as f64 / 1e6))
}

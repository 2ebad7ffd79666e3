//! The result of an account in GPU-hours and money, with its method.

use std::collections::BTreeMap;

use dovetail_account::{Amount, Priced, price};
use dovetail_capacity::{States, Usage};
use dovetail_model::FreeCause;
use dovetail_model::money::MS_PER_HOUR;
use dovetail_units::amount::{hundredths, percent};
use serde::{Deserialize, Serialize};

use crate::timeline::observer::TimelineError;

/// Days of the month that costs are stated for.
const MONTH_DAYS: u32 = 30;

const MS_PER_DAY: i128 = 86_400_000;

/// Where the GPU-time of a period went and what it costs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct UsageReport {
    /// Begin of the period, on the trace's clock.
    pub from_ms: u64,
    /// End of the period.
    pub to_ms: u64,
    /// Causes that rest on demand were judged at least once in so much virtual time; 0: at every
    /// change.
    pub cause_period_ms: u64,
    /// How often they were judged.
    pub cause_samples: u64,
    /// Days of the month that the estimates per month are for.
    pub month_days: u32,
    /// Of the whole cluster.
    pub total: StatesReport,
    pub models: Vec<ModelReport>,
    /// Models whose price nobody knows (null is GPUs without a model): in no total of money.
    pub unknown_price_models: Vec<Option<String>>,
    /// How the figures came about and how far they can be trusted, in sentences.
    pub method: Vec<String>,
}

/// One GPU model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ModelReport {
    /// Its name; null if the model is not known.
    pub model: Option<String>,
    /// Micro-USD per GPU and hour; null if nobody knows.
    pub usd_micros_per_gpu_hour: Option<i64>,
    /// Who says so, and when.
    pub price_source: Option<String>,
    /// The price is a stand-in that the user gave.
    pub price_is_assumed: bool,
    /// Where its GPU-time went.
    pub states: StatesReport,
}

/// GPU-time and money by state: installed = unavailable + allocated + free, exactly.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatesReport {
    /// All there is.
    pub installed: AmountReport,
    /// Lost GPUs, and those not held on nodes that are not ready.
    pub unavailable: AmountReport,
    /// Held by pods.
    pub allocated: AmountReport,
    /// Held by pods of jobs, by queue; the default queue has the empty name.
    pub allocated_by_queue: BTreeMap<String, AmountReport>,
    /// Held by pods of no job.
    pub allocated_by_others: AmountReport,
    pub free: AmountReport,
    /// The same by cause; every cause is listed.
    pub free_by_cause: BTreeMap<FreeCause, AmountReport>,
}

/// Some GPU-time and what the priced part of it costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AmountReport {
    pub gpu_hours: f64,
    /// The same in milli-GPU × ms, exactly.
    pub gpu_milli_ms: i128,
    /// Cost of the priced part in micro-USD; null if there is GPU-time and none of it has a price.
    pub usd_micros: Option<i64>,
    /// Share of the GPU-time that has a price, 0 to 1; null if there is no GPU-time.
    pub priced_share: Option<f64>,
    /// An estimate, not a bill: the cost per month if the period is typical of it.
    pub estimated_usd_micros_per_month: Option<i64>,
}

impl UsageReport {
    /// Prices a period. The key of a price is the model, `None` for GPUs without one.
    ///
    /// # Errors
    /// [`TimelineError::Money`] for more than can be counted.
    pub fn new(
        usage: &Usage,
        prices: &BTreeMap<Option<String>, Priced>,
    ) -> Result<Self, TimelineError> {
        refuse_too_much(usage, prices)?;
        let priced = price(usage, prices);
        let period_ms = usage.to_ms - usage.from_ms;
        let states = |amounts: &States<Amount>| StatesReport::of(amounts, period_ms);
        let named = |model: &String| (!model.is_empty()).then(|| model.clone());
        let model = |(model, bill): (&String, &dovetail_account::ModelBill)| {
            let known = match &bill.price {
                Priced::Known(known) => Some(known),
                Priced::Unknown => None,
            };
            ModelReport {
                model: named(model),
                usd_micros_per_gpu_hour: known.map(|known| known.usd_micros_per_gpu_hour),
                price_source: known.map(|known| known.source.clone()),
                price_is_assumed: known.is_some_and(|known| known.assumed),
                states: states(&bill.amounts),
            }
        };
        let mut report = Self {
            from_ms: usage.from_ms,
            to_ms: usage.to_ms,
            cause_period_ms: usage.cause_period_ms,
            cause_samples: usage.cause_samples,
            month_days: MONTH_DAYS,
            total: states(&priced.total),
            models: priced.models.iter().map(model).collect(),
            unknown_price_models: priced.unknown_models.iter().map(named).collect(),
            method: Vec::new(),
        };
        report.method = report.method();
        Ok(report)
    }

    /// GPU-time of all causes but the lack of demand, starting nodes and nodes taken out of
    /// service: free although work waited for it.
    pub fn free_while_work_waited(&self) -> AmountReport {
        // No GPU-time costs nothing, whatever its price.
        let nothing = Some(0);
        let mut sum = AmountReport {
            usd_micros: nothing,
            estimated_usd_micros_per_month: nothing,
            ..AmountReport::default()
        };
        for (cause, amount) in &self.total.free_by_cause {
            let other = [FreeCause::NoDemand, FreeCause::Starting, FreeCause::DrainingOrCordoned];
            if !other.contains(cause) && amount.gpu_milli_ms > 0 {
                sum.add(amount);
            }
        }
        sum
    }

    fn method(&self) -> Vec<String> {
        let days = (self.to_ms - self.from_ms) as f64 / MS_PER_DAY as f64;
        let judged = match self.cause_period_ms {
            0 => "The causes that depend on pending jobs were evaluated at every change".to_owned(),
            ms => format!(
                "The causes that depend on pending jobs were evaluated at least every {} s of virtual time",
                ms as f64 / 1e3
            ),
        };
        let times = if self.cause_samples == 1 { "time" } else { "times" };
        let money = match self.total.installed.priced_share {
            Some(share) if share < 1.0 => format!(
                "Money is GPU time times the stated price per GPU-hour, exact to the micro-dollar for the \
                 {} of the GPU time that has a price; the rest is not included in any amount.",
                percent(share)
            ),
            _ => {
                "Money is GPU time times the stated price per GPU-hour, exact to the micro-dollar. \
                  Prices are list prices, not yours, unless a source says otherwise."
                    .to_owned()
            }
        };
        vec![
            format!(
                "The period is {} days, from {} s to {} s on the trace's clock; it starts with the \
                 first submission.",
                hundredths(days),
                (self.from_ms + 500) / 1_000,
                (self.to_ms + 500) / 1_000
            ),
            "GPU time is integrated exactly at every event; installed = unavailable + allocated + free by \
             cause was checked for every model and holds exactly."
                .to_owned(),
            format!(
                "{judged} ({} {times}); free time between two evaluations is split as in the \
                 earlier one.",
                self.cause_samples
            ),
            money,
            format!(
                "Amounts per month are estimates: the period scaled to {} days as if it were typical.",
                self.month_days
            ),
        ]
    }
}

/// Refuses GPU-time whose cost, or cost per month, an amount of money cannot hold. All parts are of
/// what is installed, so nothing else can be more.
fn refuse_too_much(
    usage: &Usage,
    prices: &BTreeMap<Option<String>, Priced>,
) -> Result<(), TimelineError> {
    let mut micros = 0_i128;
    for (model, states) in &usage.models_gpu_milli_ms {
        let key = (!model.is_empty()).then(|| model.clone());
        if let Some(Priced::Known(known)) = prices.get(&key) {
            // Below 2^127: a million GPUs, 31,700 years, a million USD an hour.
            let product = states.installed * i128::from(known.usd_micros_per_gpu_hour);
            micros += product / (1000 * MS_PER_HOUR) + 1;
        }
    }
    let (from_ms, to_ms) = (usage.from_ms, usage.to_ms);
    let period_ms = i128::from((to_ms - from_ms).max(1));
    let month_ms = i128::from(MONTH_DAYS) * MS_PER_DAY;
    // Sums of rounded parts exceed the whole by less than the number of parts.
    let most = i128::from(i64::MAX - (1 << 20));
    let per_month = micros.checked_mul(month_ms).map(|product| product / period_ms);
    match micros <= most && per_month.is_some_and(|micros| micros <= most) {
        true => Ok(()),
        false => Err(TimelineError::Money { from_ms, to_ms }),
    }
}

impl StatesReport {
    fn of(amounts: &States<Amount>, period_ms: u64) -> Self {
        let amount = |amount: Amount| AmountReport::of(amount, period_ms);
        let queues = amounts.allocated_by_queue.iter();
        let causes = amounts.free_by_cause.iter();
        Self {
            installed: amount(amounts.installed),
            unavailable: amount(amounts.unavailable),
            allocated: amount(amounts.allocated),
            allocated_by_queue: queues.map(|(queue, of)| (queue.clone(), amount(*of))).collect(),
            allocated_by_others: amount(amounts.allocated_by_others),
            free: amount(amounts.free),
            free_by_cause: causes.map(|(cause, of)| (*cause, amount(*of))).collect(),
        }
    }
}

impl AmountReport {
    fn of(amount: Amount, period_ms: u64) -> Self {
        let usd_micros = amount.usd_micros();
        let month_ms = i128::from(MONTH_DAYS) * MS_PER_DAY;
        let per_month = |micros: i64| {
            let (product, period) = (i128::from(micros) * month_ms, i128::from(period_ms));
            // Half up; an estimate needs no finer rule.
            (period > 0).then(|| ((product + period / 2).div_euclid(period)) as i64)
        };
        Self {
            gpu_hours: amount.gpu_milli_ms as f64 / 3.6e9,
            gpu_milli_ms: amount.gpu_milli_ms,
            usd_micros,
            priced_share: amount.priced_share(),
            estimated_usd_micros_per_month: usd_micros.and_then(per_month),
        }
    }

    /// Adds an amount that is not nothing; what is known of the money adds up, the rest stays
    /// unknown.
    fn add(&mut self, other: &Self) {
        let priced =
            |amount: &Self| amount.priced_share.unwrap_or(0.0) * amount.gpu_milli_ms as f64;
        let sum = |a: Option<i64>, b: Option<i64>| match (a, b) {
            (None, b) => b,
            (a, None) => a,
            (Some(a), Some(b)) => Some(a + b),
        };
        let priced = priced(self) + priced(other);
        let had_none = self.gpu_milli_ms == 0;
        self.gpu_milli_ms += other.gpu_milli_ms;
        self.gpu_hours = self.gpu_milli_ms as f64 / 3.6e9;
        self.priced_share = Some(priced / self.gpu_milli_ms as f64);
        let own = |own: Option<i64>| if had_none { None } else { own };
        self.usd_micros = sum(own(self.usd_micros), other.usd_micros);
        self.estimated_usd_micros_per_month =
            sum(own(self.estimated_usd_micros_per_month), other.estimated_usd_micros_per_month);
    }
}

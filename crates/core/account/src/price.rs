//! GPU-time in money.
//!
//! A model's total is its installed GPU-time × its price, rounded once to the micro-dollar; the
//! parts are that total split by GPU-time with largest remainders. So every total equals capacity ×
//! time × price, and the parts of every total add up to it. The price is that of a GPU-hour; what
//! else a node has is in it or not, as the source of the price says.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use dovetail_model::money::split;
use dovetail_model::{FreeCause, Money};
use serde::Serialize;

use dovetail_capacity::{States, Usage, gpu_hours};

/// Prices a period. The key of a price is the model; `None` is for GPUs whose model is unknown. A
/// model without an entry has an unknown price: its GPU-time is reported, its money is not.
pub fn price(usage: &Usage, prices: &BTreeMap<Option<String>, Priced>) -> PricedUsage {
    let mut models = BTreeMap::new();
    let mut total = States::zero();
    let mut unknown_models = Vec::new();
    let mut assumed_prices = Vec::new();
    for (model, gpu_milli_ms) in &usage.models_gpu_milli_ms {
        let key = (!model.is_empty()).then(|| model.clone());
        let price = prices.get(&key).cloned().unwrap_or(Priced::Unknown);
        match &price {
            Priced::Unknown => unknown_models.push(model.clone()),
            Priced::Known(known) if known.assumed => assumed_prices.push(AssumedPrice {
                model: model.clone(),
                usd_micros_per_gpu_hour: known.usd_micros_per_gpu_hour,
                source: known.source.clone(),
            }),
            Priced::Known(_) => {}
        }
        let amounts = bill(gpu_milli_ms, &price);
        total.add(&amounts);
        models.insert(model.clone(), ModelBill { price, amounts });
    }
    let (from_ms, to_ms) = (usage.from_ms, usage.to_ms);
    PricedUsage { from_ms, to_ms, total, models, unknown_models, assumed_prices }
}

/// Price of a GPU model.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Priced {
    /// There is none; never taken for zero.
    Unknown,
    /// There is one.
    Known(GpuPrice),
}

/// A price with where it comes from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct GpuPrice {
    pub usd_micros_per_gpu_hour: i64,
    /// Who says so, and when.
    pub source: String,
    /// A stand-in that the user gave instead of a price known for this model.
    pub assumed: bool,
}

/// A stand-in that figures rest on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AssumedPrice {
    /// The model; empty is an unknown model.
    pub model: String,
    pub usd_micros_per_gpu_hour: i64,
    /// Who says so.
    pub source: String,
}

/// A period in GPU-time and money.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PricedUsage {
    /// Begin of the period.
    pub from_ms: u64,
    /// End of the period.
    pub to_ms: u64,
    /// Of the whole cluster.
    pub total: States<Amount>,
    /// By GPU model; the empty name is an unknown model.
    pub models: BTreeMap<String, ModelBill>,
    pub unknown_models: Vec<String>,
    /// Prices that are stand-ins.
    pub assumed_prices: Vec<AssumedPrice>,
}

/// One model in GPU-time and money.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ModelBill {
    pub price: Priced,
    /// What it comes to.
    pub amounts: States<Amount>,
}

/// Some GPU-time and what the priced part of it costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// GPU-time in milli-GPU × milliseconds.
    pub gpu_milli_ms: i128,
    /// The part of it that has a price.
    pub priced_gpu_milli_ms: i128,
    /// What that part costs; see [`Amount::usd_micros`] for what is known.
    money: Money,
}

impl Amount {
    /// GPU-time with what it costs, if its price is known.
    pub(crate) fn of(gpu_milli_ms: i128, money: Money, is_priced: bool) -> Self {
        let priced_gpu_milli_ms = if is_priced { gpu_milli_ms } else { 0 };
        Self { gpu_milli_ms, priced_gpu_milli_ms, money }
    }

    /// Cost of the priced part in micro-USD; `None` if there is GPU-time and none of it has a
    /// price.
    pub fn usd_micros(self) -> Option<i64> {
        let unknown = self.gpu_milli_ms > 0 && self.priced_gpu_milli_ms == 0;
        (!unknown).then_some(self.money.usd_micros)
    }

    /// Share of the GPU-time that has a price, 0 to 1; `None` if there is no GPU-time.
    pub fn priced_share(self) -> Option<f64> {
        let share = self.priced_gpu_milli_ms as f64 / self.gpu_milli_ms as f64;
        (self.gpu_milli_ms > 0).then_some(share)
    }
}

impl AddAssign for Amount {
    fn add_assign(&mut self, other: Self) {
        self.gpu_milli_ms += other.gpu_milli_ms;
        self.priced_gpu_milli_ms += other.priced_gpu_milli_ms;
        self.money += other.money;
    }
}

/// As people and programs read it: exact money, hours as a fraction, unknown as null.
impl Serialize for Amount {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Shown {
            gpu_hours: f64,
            gpu_milli_ms: i128,
            usd_micros: Option<i64>,
            priced_share: Option<f64>,
        }
        let shown = Shown {
            gpu_hours: gpu_hours(self.gpu_milli_ms),
            gpu_milli_ms: self.gpu_milli_ms,
            usd_micros: self.usd_micros(),
            priced_share: self.priced_share(),
        };
        shown.serialize(serializer)
    }
}

/// Prices one model: the total once, its parts by largest remainders.
fn bill(usage: &States<i128>, price: &Priced) -> States<Amount> {
    let mut weights = vec![usage.unavailable, usage.allocated_by_others];
    weights.extend(FreeCause::ALL.iter().map(|cause| usage.free_by(*cause)));
    weights.extend(usage.allocated_by_queue.values());
    let (total, parts) = match price {
        Priced::Unknown => (Money::ZERO, vec![Money::ZERO; weights.len()]),
        Priced::Known(known) => {
            let total = Money::of_gpu_time(usage.installed, known.usd_micros_per_gpu_hour);
            (total, split(total, &weights))
        }
    };
    let is_priced = matches!(price, Priced::Known(_));
    let amount = |gpu_milli_ms: i128, money: Money| Amount::of(gpu_milli_ms, money, is_priced);
    let mut amounts = weights.iter().zip(parts).map(|(time, money)| amount(*time, money));
    let mut next = || amounts.next().expect("a part for every weight");
    let mut states = States::zero();
    states.installed = amount(usage.installed, total);
    states.unavailable = next();
    states.add_allocated(None, next());
    for cause in FreeCause::ALL {
        states.add_free(cause, next());
    }
    for queue in usage.allocated_by_queue.keys() {
        states.add_allocated(Some(queue), next());
    }
    states
}

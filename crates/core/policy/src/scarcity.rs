//! The price of a GPU model: what taking one costs the pods that can use no other.
//!
//! Where nothing ends: pressure = (the model's part of the demand that names models) / (its part of
//! the supply), where the demand of a pod that names several is split by their supply; plus, before
//! much is learnt, a prior from supply alone: rare models cost more, in proportion to the share of
//! demand that names models at all.
//!
//! Where jobs come and go: pressure in GPU-time, at most one, times the share of the model that is
//! in use. Pods that may use any model go to the one of which most is free, and those that name a
//! model wait less for it. Where no pod names a model all prices are zero.

use std::collections::BTreeMap;

use crate::learn::histogram::Shares;
use crate::learn::{Learnt, ONE, PodKind, STEADY};

/// Price in milli-GPU of a whole GPU of a model under a pressure of one, where nothing ends.
const PRESSURE_MILLI: i64 = 400;
/// Price in milli-GPU of a whole GPU of a rare model if all demand names models, likewise.
const RARITY_MILLI: i64 = 4_000;
/// Price in milli-GPU of a whole GPU under a pressure of one if the model is fully in use, where
/// jobs come and go.
const IN_USE_MILLI: i64 = 4_000;
/// Up to this share of the supply a model is rare: 3%.
const RARE_SHARE: i64 = ONE * 3 / 100;

/// Price of a whole GPU by model, in milli-GPU · 2^20.
pub(crate) fn prices(learnt: &Learnt, percent: i64) -> BTreeMap<String, i64> {
    let still = (STEADY - learnt.turnover) * percent;
    let moving = learnt.turnover * percent;
    let weight = |milli: i64, part: i64| i128::from(milli * part / (100 * STEADY));
    let arrived = ModelDemand::of(learnt, &learnt.shares, PodKind::total_milli);
    let running = ModelDemand::of(learnt, &learnt.gpu_time, |_| 1);
    let price = |(model, milli): (&String, &i64)| {
        let used = i128::from(learnt.in_use.get(model).copied().unwrap_or(0));
        let in_use = (running.pressure(model, *milli).min(i128::from(ONE)) * used) >> 20;
        let price = weight(PRESSURE_MILLI, still) * arrived.pressure(model, *milli)
            + weight(RARITY_MILLI, still) * arrived.prior(*milli)
            + weight(IN_USE_MILLI, moving) * in_use;
        (model.clone(), price as i64)
    };
    learnt.supply.milli_by_model.iter().map(price).collect()
}

/// What pods ask for of GPU models.
struct ModelDemand<'l> {
    by_model: BTreeMap<&'l str, i128>,
    naming_models: i128,
    all: i128,
    /// Milli-GPU of all models.
    supply: i128,
}

impl<'l> ModelDemand<'l> {
    /// Shares of kinds, each times its weight.
    fn of(learnt: &'l Learnt, shares: &'l Shares, weight: impl Fn(&PodKind) -> i64) -> Self {
        let supply = &learnt.supply.milli_by_model;
        let total = supply.values().map(|milli| i128::from(*milli)).sum();
        let mut demand =
            Self { by_model: BTreeMap::new(), naming_models: 0, all: 0, supply: total };
        for (kind, share) in shares {
            let gpu = i128::from(weight(kind) * share);
            demand.all += gpu;
            if kind.gpu_models.is_empty() || gpu == 0 {
                continue;
            }
            demand.naming_models += gpu;
            let of = |model: &String| i128::from(supply.get(model).copied().unwrap_or(0));
            let open: i128 = kind.gpu_models.iter().map(of).sum();
            for model in kind.gpu_models.iter().filter(|_| open > 0) {
                *demand.by_model.entry(model).or_default() += gpu * of(model) / open;
            }
        }
        demand
    }

    /// A model's part of the demand over its part of the supply, in 2^-20.
    fn pressure(&self, model: &str, supply_milli: i64) -> i128 {
        let wanted = self.by_model.get(model).copied().unwrap_or(0);
        let supplied = (self.all * i128::from(supply_milli.max(1))).max(1);
        wanted * self.supply * i128::from(ONE) / supplied
    }

    /// How rare a model is, times the share of demand that names models, in 2^-20.
    fn prior(&self, supply_milli: i64) -> i128 {
        let one = i128::from(ONE);
        let rarity = i128::from(RARE_SHARE) * self.supply / i128::from(supply_milli.max(1));
        (self.naming_models * one / self.all.max(1) * rarity.min(one)) >> 20
    }
}

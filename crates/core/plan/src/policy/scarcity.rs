//! GPU-type scarcity: what taking a GPU of a model costs those who can use no other.
//!
//! Per model: pressure = (its part of the demand that names models) / (its part of the supply),
//! where the demand of a pod that names several is split by their supply; plus, before much is
//! learnt, a prior from supply alone: rare models cost more, in proportion to the share of demand
//! that names models at all. Where jobs come and go it counts nothing: there the mix of expected
//! pods says enough.

use std::collections::BTreeMap;

use crate::learn::{Learnt, ONE, STEADY};

/// Price in milli-GPU of a whole GPU of a model under a pressure of one, where nothing ends.
const PRESSURE_MILLI: i64 = 400;
/// Price in milli-GPU of a whole GPU of a rare model if all demand names models, likewise.
const RARITY_MILLI: i64 = 4_000;
/// Up to this share of the supply a model is rare: 3 %.
const RARE_SHARE: i64 = ONE * 3 / 100;

/// Price of a whole GPU by model, in milli-GPU · 2^20.
pub(crate) fn prices(learnt: &Learnt, percent: i64) -> BTreeMap<String, i64> {
    let supply = &learnt.supply.milli_by_model;
    let mut demand: BTreeMap<&str, i128> = BTreeMap::new();
    let (mut all_demand, mut choosy) = (0i128, 0i128);
    for (kind, share) in &learnt.shares {
        let gpu = i128::from(kind.total_milli() * share);
        all_demand += gpu;
        if kind.gpu_models.is_empty() || gpu == 0 {
            continue;
        }
        choosy += gpu;
        let of = |model: &String| i128::from(supply.get(model).copied().unwrap_or(0));
        let open: i128 = kind.gpu_models.iter().map(of).sum();
        for model in kind.gpu_models.iter().filter(|_| open > 0) {
            *demand.entry(model).or_default() += gpu * of(model) / open;
        }
    }
    if all_demand == 0 {
        return BTreeMap::new();
    }
    let one = i128::from(ONE);
    let all_supply: i128 = supply.values().map(|milli| i128::from(*milli)).sum();
    let choosy_share = choosy * one / all_demand;
    let still =
        |milli: i64| i128::from(milli * (STEADY - learnt.turnover) * percent / (100 * STEADY));
    let (by_pressure, by_rarity) = (still(PRESSURE_MILLI), still(RARITY_MILLI));
    let price = |(model, milli): (&String, &i64)| {
        let milli = i128::from(*milli).max(1);
        let wanted = demand.get(model.as_str()).copied().unwrap_or(0);
        let pressure = wanted * all_supply * one / (all_demand * milli);
        let rarity = (i128::from(RARE_SHARE) * all_supply / milli).min(one);
        let prior = (choosy_share * rarity) >> 20;
        let price = by_pressure * pressure + by_rarity * prior;
        (model.clone(), price as i64)
    };
    supply.iter().map(price).collect()
}

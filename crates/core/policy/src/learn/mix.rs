//! The mix of pods that are expected: the common kinds that were seen, and some that were not.
//!
//! Where nothing ends, each pod that arrives counts alike: what it cannot use is lost for good.
//! Where jobs come and go, a kind counts by the GPU-time it asks for: so much of the cluster is in
//! its use. Between the two the weights are mixed by [`Learnt::turnover`].
//!
//! Whole pods of 1, 2, 4, ... GPUs that were never seen keep a part ([`UNSEEN`]) of the weight: who
//! arrives last, or for the first time, finds room.

use std::collections::BTreeMap;

use crate::learn::histogram::Shares;
use crate::learn::supply::PLENTY;
use crate::learn::{Learnt, ONE, PodKind, STEADY};
use crate::weights::Weights;

/// The mix holds the most common kinds until they cover this share: 97%.
const COVERED: i64 = ONE * 97 / 100;
/// Most kinds in the mix that were seen.
const MOST_KINDS: usize = 64;
/// Weight of the kinds that nobody may have asked for yet: 5%.
const UNSEEN: i64 = ONE / 20;
/// Each of them has at least this, however rare the kinds are that were seen: 1.1%, which is more
/// than one in a hundred of all weights together.
const LEAST_UNSEEN: i64 = ONE * 11 / 1000;
/// They ask for this part of the CPU and memory that the cluster has for each GPU, in quarters.
const UNSEEN_QUARTERS: i64 = 3;

impl Learnt {
    /// The common kinds of the published version with weights in 2^-20 that sum to about one, the
    /// most common first.
    pub(crate) fn common_kinds(&self) -> Vec<(PodKind, i64)> {
        common_kinds(&self.shares, &self.order)
    }

    /// Profiles of MIG slices by their share of the slices that arrived, in 2^-20; empty where none
    /// did.
    pub(crate) fn slice_shares(&self) -> BTreeMap<String, i64> {
        let mut shares: BTreeMap<String, i64> = BTreeMap::new();
        for (kind, share) in &self.shares {
            if let Some(profile) = &kind.slice {
                *shares.entry(profile.clone()).or_default() += share;
            }
        }
        let sum = shares.values().sum::<i64>().max(1);
        shares.values_mut().for_each(|share| *share = *share * ONE / sum);
        shares
    }

    /// Kinds with GPUs that are expected, seen and unseen, with weights in 2^-20 that sum to about
    /// one.
    pub(crate) fn expected_kinds(&self, weights: &Weights) -> Vec<(PodKind, i64)> {
        let with_gpu = |shares: &Shares, eighths: i64| -> Shares {
            let wanted = shares.iter().filter(|(kind, _)| kind.gpu_count > 0);
            let sum = wanted.clone().map(|(_, share)| share).sum::<i64>().max(1);
            wanted
                .map(|(kind, share)| (kind.clone(), share * ONE / sum * eighths / STEADY))
                .collect()
        };
        let mut shares = with_gpu(&self.shares, STEADY - self.turnover);
        for (kind, weight) in with_gpu(&self.gpu_time, self.turnover) {
            *shares.entry(kind).or_default() += weight;
        }
        let mut kinds = common_kinds(&shares, &self.order);
        let seen = kinds.len();
        let unseen = self.unseen_kinds();
        if !unseen.is_empty() {
            let share = UNSEEN * weights.unseen / 100;
            for (_, weight) in &mut kinds {
                *weight = *weight * (ONE - share) / ONE;
            }
            let each = share / unseen.len() as i64;
            kinds.extend(unseen.into_iter().map(|kind| (kind, each)));
        }
        self.weigh_by_scarcity(&mut kinds, weights.rare_kinds);
        for (_, weight) in &mut kinds[seen..] {
            *weight = (*weight).max(LEAST_UNSEEN * weights.unseen / 100);
        }
        for (_, weight) in &mut kinds {
            *weight = *weight * weights.fragmentation / 100;
        }
        kinds
    }

    /// Room is the more worth keeping the fewer nodes have it: a kind counts as many times more as
    /// fewer GPUs are open to it.
    fn weigh_by_scarcity(&self, kinds: &mut [(PodKind, i64)], percent: i64) {
        for (kind, weight) in kinds.iter_mut() {
            let over = (self.supply.scarcity(kind) - PLENTY) * percent / 100;
            *weight = *weight * (PLENTY + over) / PLENTY;
        }
        let sum = kinds.iter().map(|(_, weight)| weight).sum::<i64>().max(1);
        for (_, weight) in kinds {
            *weight = *weight * ONE / sum;
        }
    }

    /// Whole pods of every power of two of GPUs that a node of the cluster has.
    fn unseen_kinds(&self) -> Vec<PodKind> {
        let sizes = (0..u16::BITS).map(|bit| 1i64 << bit);
        let sizes = sizes.take_while(|size| *size <= self.supply.largest_gpu_count);
        let kind = |gpus: i64| PodKind {
            cpu_milli: self.supply.cpu_milli_per_gpu / 4 * UNSEEN_QUARTERS * gpus,
            memory_bytes: self.supply.memory_bytes_per_gpu / 4 * UNSEEN_QUARTERS * gpus,
            gpu_count: gpus as u16,
            gpu_milli: 1000,
            ..PodKind::default()
        };
        sizes.map(kind).collect()
    }
}

/// The most common kinds with weights that sum to about one, ties by first arrival.
fn common_kinds(shares: &Shares, order: &[PodKind]) -> Vec<(PodKind, i64)> {
    let mut kinds: Vec<(&PodKind, i64)> =
        order.iter().filter_map(|kind| Some((kind, *shares.get(kind)?))).collect();
    kinds.sort_by_key(|(_, share)| std::cmp::Reverse(*share));
    let mut covered = 0;
    let common: Vec<_> = kinds
        .into_iter()
        .take(MOST_KINDS)
        .take_while(|(_, share)| {
            let before = covered;
            covered += share;
            before < COVERED
        })
        .collect();
    let sum = common.iter().map(|(_, share)| share).sum::<i64>().max(1);
    common.into_iter().map(|(kind, share)| (kind.clone(), share * ONE / sum)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learn::supply::LearnedSupply;

    #[test]
    fn sizes_that_nobody_asks_for_keep_a_hundredth_each() {
        // All that ever came, long ago and now, is a pod that only one node in nine can hold: rare,
        // so that it counts four times.
        let kind = |cpu_milli: i64, gpu_count: u16| PodKind {
            cpu_milli,
            memory_bytes: 0,
            gpu_count,
            gpu_milli: 1000,
            ..PodKind::default()
        };
        let only = kind(100_000, 1);
        for turnover in [0, STEADY] {
            let shares = Shares::from([(only.clone(), ONE)]);
            let supply = LearnedSupply::of_nodes(&[(64_000, 16, 8), (128_000, 16, 1)]);
            let order = vec![only.clone()];
            let gpu_time = shares.clone();
            let learnt = Learnt {
                version: 9,
                shares,
                gpu_time,
                turnover,
                order,
                supply,
                ..Learnt::default()
            };
            let kinds = learnt.expected_kinds(&Weights::default());
            let unseen: Vec<i64> =
                kinds.iter().filter(|(kind, _)| *kind != only).map(|(_, weight)| *weight).collect();
            assert_eq!(unseen.len(), 5, "1, 2, 4, 8 and 16 GPUs");
            let sum: i64 = kinds.iter().map(|(_, weight)| weight).sum();
            for weight in &unseen {
                assert!(*weight * 100 >= sum, "turnover {turnover}: {unseen:?} of {sum}");
            }
        }
    }
}

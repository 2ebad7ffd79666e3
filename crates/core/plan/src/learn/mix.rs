//! The mix of pods that are expected: the common kinds that were seen, and some that were not.
//!
//! Where nothing ends, each pod that arrives counts alike: what it cannot use is lost for good. Where jobs come
//! and go, a kind counts by the GPU-time it asks for: so much of the cluster is in its use. Between the two the
//! weights are mixed by [`Learnt::turnover`].
//!
//! Whole pods of 1, 2, 4, ... GPUs that were never seen keep a part ([`UNSEEN`]) of the weight: who arrives last, or for the
//! first time, finds room.

use crate::learn::histogram::Shares;
use crate::learn::supply::PLENTY;
use crate::learn::{Learnt, ONE, PodKind, STEADY};

/// The mix holds the most common kinds until they cover this share: 97 %.
const COVERED: i64 = ONE * 97 / 100;
/// Most kinds in the mix that were seen.
const MOST_KINDS: usize = 64;
/// Weight of the kinds that nobody may have asked for yet where nothing ends (5 %), and where jobs come and go (2 %):
/// there room for them comes back.
const UNSEEN: [i64; 2] = [ONE / 20, ONE / 50];
/// They ask for this part of the CPU and memory that the cluster has for each GPU, in quarters, likewise.
const UNSEEN_QUARTERS: [i64; 2] = [3, 1];

impl Learnt {
    /// The common kinds of the published version with weights in 2^-20 that sum to about one, the most common first.
    pub(crate) fn common_kinds(&self) -> Vec<(PodKind, i64)> {
        common_kinds(&self.shares, &self.order)
    }

    /// Kinds with GPUs that are expected, seen and unseen, with weights in 2^-20 that sum to about one.
    pub(crate) fn expected_kinds(&self) -> Vec<(PodKind, i64)> {
        let with_gpu = |shares: &Shares, eighths: i64| -> Shares {
            let wanted = shares.iter().filter(|(kind, _)| kind.gpu_count > 0);
            let sum = wanted.clone().map(|(_, share)| share).sum::<i64>().max(1);
            wanted
                .map(|(kind, share)| (kind.clone(), share * ONE / sum * eighths / STEADY))
                .collect()
        };
        let mut weights = with_gpu(&self.shares, STEADY - self.turnover);
        for (kind, weight) in with_gpu(&self.gpu_time, self.turnover) {
            *weights.entry(kind).or_default() += weight;
        }
        let mut kinds = common_kinds(&weights, &self.order);
        let unseen = self.unseen_kinds();
        if !unseen.is_empty() {
            let share = self.between(UNSEEN);
            for (_, weight) in &mut kinds {
                *weight = *weight * (ONE - share) / ONE;
            }
            let each = share / unseen.len() as i64;
            kinds.extend(unseen.into_iter().map(|kind| (kind, each)));
        }
        self.weigh_by_scarcity(&mut kinds);
        kinds
    }

    /// Between what holds where nothing ends, and what holds where jobs come and go.
    fn between(&self, [still, steady]: [i64; 2]) -> i64 {
        (still * (STEADY - self.turnover) + steady * self.turnover) / STEADY
    }

    /// Where nothing ends, room is lost for good that few nodes have: a kind counts as many times more as
    /// fewer GPUs are open to it.
    fn weigh_by_scarcity(&self, kinds: &mut [(PodKind, i64)]) {
        let still = STEADY - self.turnover;
        if still == 0 {
            return;
        }
        for (kind, weight) in kinds.iter_mut() {
            let over = self.supply.scarcity(kind) - PLENTY;
            *weight = *weight * (PLENTY * STEADY + over * still) / (PLENTY * STEADY);
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
        // Of thirty-two parts.
        let part = self.between(UNSEEN_QUARTERS.map(|quarters| quarters * STEADY));
        let kind = |gpus: i64| PodKind {
            cpu_milli: self.supply.cpu_milli_per_gpu / (4 * STEADY) * part * gpus,
            memory_bytes: self.supply.memory_bytes_per_gpu / (4 * STEADY) * part * gpus,
            gpu_count: gpus as u16,
            gpu_milli: 1000,
            gpu_models: Vec::new(),
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

//! The arrival histogram: which kinds of pods arrive, faded so that the mix can change.
//!
//! Every arriving pod adds one, whether it starts or not. At every check all masses fade so that an arrival
//! counts half after [`HALF_LIFE_ARRIVALS`]; the engine has no clock, arrivals stand for time. A check
//! publishes the shares if they moved by more than [`PUBLISH_ABOVE`] in L1 (Σ of absolute differences).

use std::collections::BTreeMap;
use std::fmt;

use dovetail_model::{DeviceRequest, Requirement};
use serde::{Deserialize, Serialize};

use crate::learn::ONE;

/// Arrivals between two checks, after the first ones at 16, 32, 64 and 128.
pub const CHECK_EVERY: u64 = 256;
const FIRST_CHECK: u64 = 16;
/// Arrivals after which one counts half.
pub const HALF_LIFE_ARRIVALS: u64 = 65_536;
/// Movement of the shares that makes a new version: 2 %.
pub(crate) const PUBLISH_ABOVE: i64 = ONE / 50;
/// The mix holds the most common kinds until they cover this share: 97 %.
const COVERED: i64 = ONE * 97 / 100;
/// Most kinds in the mix.
const MOST_KINDS: usize = 64;
/// Mass of one arrival: 20 fractional bits and 12 more, so that fading loses nothing that counts.
const ARRIVAL: u64 = 1 << 32;
/// 2^32 · 2^(−[`CHECK_EVERY`] / [`HALF_LIFE_ARRIVALS`]).
const FADE: u64 = 4_283_353_945;

/// What scores look at in an expected pod. Memory is left out, as in the FGD paper.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PodKind {
    /// CPU in thousandths of a core.
    pub cpu_milli: i64,
    /// Devices; 0 for a pod without.
    pub gpu_count: u16,
    /// Compute per device in thousandths; 0 without devices.
    pub gpu_milli: i64,
    /// Models it may use; empty is any.
    pub gpu_models: Vec<String>,
}

impl PodKind {
    pub(crate) fn of(requirement: &Requirement) -> Self {
        let (gpu_count, gpu_milli) = match requirement.device {
            DeviceRequest::Whole { count, .. } => (count, 1000),
            DeviceRequest::Share { compute_milli, .. } => (1, compute_milli),
            _ => (0, 0),
        };
        let gpu_models = match gpu_count {
            0 => Vec::new(),
            _ => requirement.gpu_models.iter().cloned().collect(),
        };
        Self { cpu_milli: requirement.resources.cpu_milli, gpu_count, gpu_milli, gpu_models }
    }

    /// Milli-GPU of all its devices.
    pub(crate) fn total_milli(&self) -> i64 {
        i64::from(self.gpu_count) * self.gpu_milli
    }
}

impl fmt::Display for PodKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let models = self.gpu_models.join("|");
        write!(out, "pod {}m {}x{}m {models}", self.cpu_milli, self.gpu_count, self.gpu_milli)
    }
}

/// Masses of arrivals by kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Histogram {
    arrivals: u64,
    checked: u64,
    /// Kinds in the order of their first arrival, with their mass.
    masses: Vec<(PodKind, u64)>,
    #[serde(skip)]
    places: BTreeMap<PodKind, usize>,
}

impl Histogram {
    pub(crate) fn add(&mut self, kind: PodKind, pods: u32) {
        if self.places.len() != self.masses.len() {
            self.places =
                self.masses.iter().enumerate().map(|(i, (kind, _))| (kind.clone(), i)).collect();
        }
        let next = self.masses.len();
        let place = *self.places.entry(kind).or_insert_with_key(|kind| {
            self.masses.push((kind.clone(), 0));
            next
        });
        self.masses[place].1 += ARRIVAL * u64::from(pods);
        self.arrivals += u64::from(pods);
    }

    /// Kinds in the order of their first arrival.
    pub(crate) fn order(&self) -> Vec<PodKind> {
        self.masses.iter().map(|(kind, _)| kind.clone()).collect()
    }

    /// The shares, if a check is due and they moved enough from the published ones.
    pub(crate) fn shares_to_publish(
        &mut self,
        published: &BTreeMap<PodKind, i64>,
    ) -> Option<BTreeMap<PodKind, i64>> {
        if !self.is_check_due() {
            return None;
        }
        for _ in self.checked / CHECK_EVERY..self.arrivals / CHECK_EVERY {
            self.masses.iter_mut().for_each(|(_, mass)| *mass = fade(*mass));
        }
        self.checked = self.arrivals;
        let shares = self.shares();
        (distance(&shares, published) > PUBLISH_ABOVE).then_some(shares)
    }

    /// A check is due when the arrivals passed 16, 32, 64, 128 or a multiple of 256.
    fn is_check_due(&self) -> bool {
        let stage = |arrivals: u64| match arrivals {
            0..FIRST_CHECK => 0,
            FIRST_CHECK..CHECK_EVERY => u64::from(arrivals.ilog2()),
            _ => CHECK_EVERY.ilog2() as u64 + arrivals / CHECK_EVERY,
        };
        stage(self.arrivals) > stage(self.checked)
    }

    fn shares(&self) -> BTreeMap<PodKind, i64> {
        let total: u128 = self.masses.iter().map(|(_, mass)| u128::from(*mass)).sum();
        let share = |mass: u64| (u128::from(mass) * ONE as u128 / total.max(1)) as i64;
        let shares = self.masses.iter().map(|(kind, mass)| (kind.clone(), share(*mass)));
        shares.filter(|(_, share)| *share > 0).collect()
    }
}

/// The most common kinds with weights that sum to about one, ties by first arrival.
pub(crate) fn common_kinds(
    shares: &BTreeMap<PodKind, i64>,
    order: &[PodKind],
) -> Vec<(PodKind, i64)> {
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
    let sum: i64 = common.iter().map(|(_, share)| share).sum();
    common.into_iter().map(|(kind, share)| (kind.clone(), share * ONE / sum)).collect()
}

fn fade(mass: u64) -> u64 {
    ((u128::from(mass) * u128::from(FADE)) >> 32) as u64
}

fn distance(a: &BTreeMap<PodKind, i64>, b: &BTreeMap<PodKind, i64>) -> i64 {
    let here: i64 =
        a.iter().map(|(kind, share)| (share - b.get(kind).copied().unwrap_or(0)).abs()).sum();
    let gone: i64 = b.iter().filter(|(kind, _)| !a.contains_key(*kind)).map(|(_, s)| s).sum();
    here + gone
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_arrival_counts_half_after_the_half_life() {
        let mut mass = ARRIVAL;
        for _ in 0..HALF_LIFE_ARRIVALS / CHECK_EVERY {
            mass = fade(mass);
        }
        let half = ARRIVAL / 2;
        assert!(mass.abs_diff(half) < half / 100_000, "{mass} against {half}");
    }
}

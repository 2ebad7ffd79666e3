//! The arrival histogram: which kinds of pods arrive, and how long they run, faded so that the mix
//! can change.
//!
//! Every arriving pod adds one, whether it starts or not; every pod that ends adds one end and its
//! run time. At every check all masses fade so that an arrival counts half after
//! [`HALF_LIFE_ARRIVALS`]; the engine has no clock, arrivals stand for time.

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
/// Mass of one arrival: 20 fractional bits and 12 more, so that fading loses nothing that counts.
const ARRIVAL: u64 = 1 << 32;
/// 2^32 · 2^(−[`CHECK_EVERY`] / [`HALF_LIFE_ARRIVALS`]).
const FADE: u64 = 4_283_353_945;
/// Ends of unknown kinds that are taken to have had the mean run time, so that one early end says
/// little.
const ENDS_ASSUMED: u64 = 3 * ARRIVAL;
/// A kind is taken to run at most this many times as long as the mean.
const LONGEST: i128 = 1 << 10;

/// Of one job no more pods are counted.
pub(super) const MOST_AT_ONCE: u32 = 1 << 16;

/// What scores look at in an expected pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PodKind {
    /// CPU in thousandths of a core.
    pub cpu_milli: i64,
    #[serde(default)]
    pub memory_bytes: i64,
    /// Devices; 0 for a pod without.
    pub gpu_count: u16,
    /// Compute per device in thousandths; 0 without devices.
    pub gpu_milli: i64,
    /// Models it may use; empty is any.
    pub gpu_models: Vec<String>,
    /// Memory that it takes of a device, in bytes, if it takes a part of one.
    #[serde(default)]
    pub device_memory_bytes: i64,
    /// Least memory of its devices, in bytes.
    #[serde(default)]
    pub min_device_memory_bytes: i64,
    /// Ephemeral storage in bytes.
    #[serde(default)]
    pub ephemeral_bytes: i64,
    #[serde(default)]
    pub extended: BTreeMap<String, i64>,
    /// Profile of the MIG slice that it takes, if it takes one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slice: Option<String>,
}

impl PodKind {
    pub(crate) fn of(requirement: &Requirement) -> Self {
        let (gpu_count, gpu_milli, device_memory_bytes) = match requirement.device {
            DeviceRequest::Whole { count, .. } => (count, 1000, 0),
            DeviceRequest::Share { compute_milli, memory_bytes } => {
                (1, compute_milli, memory_bytes)
            }
            _ => (0, 0, 0),
        };
        let resources = &requirement.resources;
        let of_devices = |amount: i64| if gpu_count > 0 { amount } else { 0 };
        let gpu_models = match gpu_count {
            0 => Vec::new(),
            _ => requirement.gpu_models.iter().cloned().collect(),
        };
        Self {
            cpu_milli: resources.cpu_milli,
            memory_bytes: resources.memory_bytes,
            gpu_count,
            gpu_milli,
            gpu_models,
            device_memory_bytes,
            min_device_memory_bytes: of_devices(requirement.min_device_memory_bytes),
            ephemeral_bytes: resources.ephemeral_bytes,
            extended: resources.extended.clone(),
            slice: match &requirement.device {
                DeviceRequest::Slice { profile } => Some(profile.clone()),
                _ => None,
            },
        }
    }

    /// Milli-GPU of all its devices.
    pub(crate) fn total_milli(&self) -> i64 {
        i64::from(self.gpu_count) * self.gpu_milli
    }
}

impl fmt::Display for PodKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cpu_milli, memory_bytes, gpu_count, gpu_milli, gpu_models, .. } = self;
        let models = gpu_models.join("|");
        write!(out, "pod {cpu_milli}m {memory_bytes} {gpu_count}x{gpu_milli}m {models}")?;
        if let Some(profile) = &self.slice {
            write!(out, " slice {profile}")?;
        }
        let others = [
            ("device memory", self.device_memory_bytes),
            ("of devices with", self.min_device_memory_bytes),
            ("ephemeral storage", self.ephemeral_bytes),
        ];
        let extended = self.extended.iter().map(|(name, amount)| (name.as_str(), *amount));
        let mut all = others.into_iter().chain(extended).filter(|(_, amount)| *amount > 0);
        all.try_for_each(|(name, amount)| write!(out, " {name} {amount}"))
    }
}

/// What is counted of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Ends {
    /// Mass of the pods that ended.
    mass: u64,
    /// Their run times in ms, added up; as the masses, it fades.
    ran_ms: u64,
}

/// Shares of kinds among what arrived, in 2^-20.
pub(crate) type Shares = BTreeMap<PodKind, i64>;

/// Masses of arrivals and of ends by kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Histogram {
    arrivals: u64,
    checked: u64,
    /// Kinds in the order of their first arrival, with their mass.
    masses: Vec<(PodKind, u64)>,
    /// What ended, by place in `masses`; shorter where the last kinds had no end yet.
    ends: Vec<Ends>,
    #[serde(skip)]
    places: BTreeMap<PodKind, usize>,
}

impl Histogram {
    pub(crate) fn add(&mut self, kind: PodKind, pods: u32) {
        self.index();
        let next = self.masses.len();
        let place = *self.places.entry(kind).or_insert_with_key(|kind| {
            self.masses.push((kind.clone(), 0));
            next
        });
        let pods = u64::from(pods.min(MOST_AT_ONCE));
        self.masses[place].1 += ARRIVAL * pods;
        self.arrivals += pods;
    }

    /// Counts a pod that ended. One of a kind that never arrived here says nothing.
    pub(crate) fn add_end(&mut self, kind: &PodKind, ran_ms: u64) {
        self.index();
        let Some(place) = self.places.get(kind).copied() else { return };
        if self.ends.len() <= place {
            self.ends.resize(place + 1, Ends::default());
        }
        let ends = &mut self.ends[place];
        ends.mass = ends.mass.saturating_add(ARRIVAL);
        ends.ran_ms = ends.ran_ms.saturating_add(ran_ms);
    }

    /// Arrivals so far, and at the last check.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.arrivals, self.checked)
    }

    /// Kinds with their masses.
    pub(super) fn masses(&self) -> impl Iterator<Item = (&PodKind, u64)> {
        self.masses.iter().map(|(kind, mass)| (kind, *mass))
    }

    /// Masses of ends, with their run times in ms.
    pub(super) fn ends(&self) -> impl Iterator<Item = (u64, u64)> {
        self.ends.iter().map(|ends| (ends.mass, ends.ran_ms))
    }

    fn index(&mut self) {
        if self.places.len() != self.masses.len() {
            self.places =
                self.masses.iter().enumerate().map(|(i, (kind, _))| (kind.clone(), i)).collect();
        }
    }

    /// Kinds in the order of their first arrival.
    pub(crate) fn order(&self) -> Vec<PodKind> {
        self.masses.iter().map(|(kind, _)| kind.clone()).collect()
    }

    /// Fades everything if a check is due; true if one is.
    pub(crate) fn check(&mut self) -> bool {
        if !self.is_check_due() {
            return false;
        }
        for _ in self.checked / CHECK_EVERY..self.arrivals / CHECK_EVERY {
            self.masses.iter_mut().for_each(|(_, mass)| *mass = fade(*mass));
            for ends in &mut self.ends {
                (ends.mass, ends.ran_ms) = (fade(ends.mass), fade(ends.ran_ms));
            }
        }
        self.checked = self.arrivals;
        true
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

    /// Shares of the kinds among the arrivals.
    pub(crate) fn shares(&self) -> Shares {
        normalised(self.masses.iter().map(|(kind, mass)| (kind, i128::from(*mass))))
    }

    /// Shares of the kinds in the GPU-time asked for, as far as their ends tell how long they run.
    pub(crate) fn gpu_time_shares(&self) -> Shares {
        // Pods in 2^-16, so that products with times fit.
        let pods = |ends: &Ends| i128::from(ends.mass >> 16);
        let ended: i128 = self.ends.iter().map(pods).sum();
        let ran_ms: i128 = self.ends.iter().map(|ends| i128::from(ends.ran_ms)).sum();
        let assumed = i128::from(ENDS_ASSUMED >> 16);
        let gpu_time = |(place, (kind, mass)): (usize, &(PodKind, u64))| {
            let ends = self.ends.get(place).copied().unwrap_or_default();
            let assumed_ms = ran_ms * assumed / ended.max(1);
            // Its mean run time over the mean of all, in 2^-10, of which no kind has less than one.
            let own = (i128::from(ends.ran_ms) + assumed_ms) * (ended << 10);
            let mean = (ran_ms * (pods(&ends) + assumed)).max(1);
            let relative = if ended == 0 { 1 << 10 } else { (own / mean).clamp(1, LONGEST << 10) };
            (i128::from(*mass) >> 12) * i128::from(kind.total_milli()) * relative
        };
        let kinds = self.masses.iter().enumerate();
        normalised(kinds.map(|entry| (&entry.1.0, gpu_time(entry))))
    }

    /// How much of what arrived has ended, in 2^-20, at most one.
    pub(crate) fn ended(&self) -> i64 {
        let arrived: u128 = self.masses.iter().map(|(_, mass)| u128::from(*mass)).sum();
        let ended: u128 = self.ends.iter().map(|ends| u128::from(ends.mass)).sum();
        (ended * ONE as u128 / arrived.max(1)).min(ONE as u128) as i64
    }
}

fn normalised<'k>(amounts: impl Iterator<Item = (&'k PodKind, i128)>) -> Shares {
    let amounts: Vec<_> = amounts.collect();
    let total = amounts.iter().map(|(_, amount)| amount).sum::<i128>().max(1);
    let share = |amount: i128| ((amount >> 20) * i128::from(ONE) / (total >> 20).max(1)) as i64;
    let shares = amounts.into_iter().map(|(kind, amount)| (kind.clone(), share(amount)));
    shares.filter(|(_, share)| *share > 0).collect()
}

fn fade(mass: u64) -> u64 {
    ((u128::from(mass) * u128::from(FADE)) >> 32) as u64
}

/// Σ of absolute differences.
pub(crate) fn distance(a: &Shares, b: &Shares) -> i64 {
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

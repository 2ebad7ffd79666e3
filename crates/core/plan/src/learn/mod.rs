//! The arrival mix: which pods arrive, learnt while they do.
//!
//! A histogram over what fragmentation looks at (CPU, devices, models). Every arrival adds one; at every
//! check, after [`CHECK_EVERY`] arrivals, all masses fade so that one counts half after
//! [`HALF_LIFE_ARRIVALS`]. A check publishes the common kinds as the next version if the shares moved by
//! more than [`PUBLISH_ABOVE_PPM`] in L1 since the last one. All integers: masses in fixed point, shares in
//! millionths.

use std::collections::BTreeMap;

use dovetail_model::DeviceRequest;
use serde::{Deserialize, Serialize};

use crate::policy::named::UnknownPolicy;
use crate::policy::target::TargetPod;
use crate::state::State;
use crate::state::shapes::ShapeId;

/// Arrivals between two checks.
pub(crate) const CHECK_EVERY: u64 = 256;
/// Arrivals after which one counts half. There is no clock in the engine; arrivals stand for time.
pub(crate) const HALF_LIFE_ARRIVALS: u64 = 65_536;
/// Least movement of the shares, in millionths (Σ of absolute differences), that makes a new version.
pub(crate) const PUBLISH_ABOVE_PPM: u64 = 20_000;
/// Kinds are published from the most common down until they cover this share, in millionths.
const COVERED_PPM: u64 = 950_000;
/// Mass of one arrival.
const ONE: u64 = 1 << 20;
/// 2^32 · 2^(−[`CHECK_EVERY`] / [`HALF_LIFE_ARRIVALS`]): how all masses fade at a check.
const FADE: u64 = 4_283_354_914;
const PPM: u64 = 1_000_000;

/// What fragmentation looks at in a pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Kind {
    pub(crate) cpu_milli: i64,
    pub(crate) gpu_count: u16,
    pub(crate) gpu_milli: i64,
    pub(crate) gpu_models: Vec<String>,
}

/// The histogram and its newest published version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ArrivalMix {
    version: u64,
    since_check: u64,
    #[serde(with = "as_pairs")]
    masses: BTreeMap<Kind, u64>,
    #[serde(with = "as_pairs")]
    published_ppm: BTreeMap<Kind, u64>,
}

impl ArrivalMix {
    /// Reads what [`ArrivalMix::to_learnt`] wrote; `None` knows nothing.
    pub(crate) fn from_learnt(
        policy: &'static str,
        learnt: Option<&str>,
    ) -> Result<Self, UnknownPolicy> {
        let Some(text) = learnt else { return Ok(Self::default()) };
        serde_json::from_str(text)
            .map_err(|error| UnknownPolicy::Learnt { policy, problem: error.to_string() })
    }

    /// Everything learnt, as JSON.
    pub(crate) fn to_learnt(&self) -> String {
        serde_json::to_string(self).expect("a histogram has no value that JSON lacks")
    }

    /// Number of the published version; 0 before the first.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// Counts arriving pods of a shape.
    pub(crate) fn observe(&mut self, state: &State, shape: ShapeId, pods: u32) {
        let requirement = &state.shapes.get(shape).requirement;
        let (gpu_count, gpu_milli) = match requirement.device {
            DeviceRequest::Whole { count, .. } => (count, 1000),
            DeviceRequest::Share { compute_milli, .. } => (1, compute_milli),
            _ => (0, 0),
        };
        let gpu_models = match gpu_count {
            0 => Vec::new(),
            _ => requirement.gpu_models.iter().cloned().collect(),
        };
        let cpu_milli = requirement.resources.cpu_milli;
        let kind = Kind { cpu_milli, gpu_count, gpu_milli, gpu_models };
        *self.masses.entry(kind).or_default() += ONE * u64::from(pods);
        self.since_check += u64::from(pods);
    }

    /// Checks if it is time to, and publishes a version if the shares moved enough.
    pub(crate) fn publish(&mut self) -> bool {
        if self.since_check < CHECK_EVERY {
            return false;
        }
        for _ in 0..self.since_check / CHECK_EVERY {
            self.masses.values_mut().for_each(|mass| *mass = fade(*mass));
        }
        self.masses.retain(|_, mass| *mass > 0);
        self.since_check %= CHECK_EVERY;
        let shares = self.shares_ppm();
        if distance_ppm(&shares, &self.published_ppm) <= PUBLISH_ABOVE_PPM {
            return false;
        }
        self.published_ppm = shares;
        self.version += 1;
        true
    }

    /// Published shares in millionths, by kind.
    pub(crate) fn published_ppm(&self) -> &BTreeMap<Kind, u64> {
        &self.published_ppm
    }

    /// The published version as a target mix, the most common kind first.
    pub(crate) fn target(&self) -> Vec<TargetPod> {
        let total: u64 = self.published_ppm.values().sum();
        let mut kinds: Vec<(&Kind, u64)> =
            self.published_ppm.iter().map(|(kind, ppm)| (kind, *ppm)).collect();
        kinds.sort_by(|a, b| (b.1, b.0).cmp(&(a.1, a.0)));
        let pod = |(kind, ppm): (&Kind, u64)| TargetPod {
            cpu_milli: kind.cpu_milli,
            gpu_count: kind.gpu_count,
            gpu_milli: kind.gpu_milli,
            gpu_models: kind.gpu_models.iter().cloned().collect(),
            weight: ppm as f64 / total as f64,
        };
        kinds.into_iter().map(pod).collect()
    }

    fn shares_ppm(&self) -> BTreeMap<Kind, u64> {
        let total: u128 = self.masses.values().map(|mass| u128::from(*mass)).sum();
        let mut kinds: Vec<(&Kind, u64)> = self
            .masses
            .iter()
            .map(|(kind, mass)| (kind, (u128::from(*mass) * u128::from(PPM) / total) as u64))
            .collect();
        kinds.sort_by(|a, b| (b.1, b.0).cmp(&(a.1, a.0)));
        let mut covered = 0;
        let common = kinds.into_iter().take_while(|(_, ppm)| {
            let before = covered;
            covered += ppm;
            before < COVERED_PPM
        });
        common.map(|(kind, ppm)| (kind.clone(), ppm)).collect()
    }
}

fn fade(mass: u64) -> u64 {
    ((u128::from(mass) * u128::from(FADE)) >> 32) as u64
}

fn distance_ppm(a: &BTreeMap<Kind, u64>, b: &BTreeMap<Kind, u64>) -> u64 {
    let of = |map: &BTreeMap<Kind, u64>, kind: &Kind| map.get(kind).copied().unwrap_or(0);
    let here: u64 = a.iter().map(|(kind, ppm)| ppm.abs_diff(of(b, kind))).sum();
    let gone: u64 = b.iter().filter(|(kind, _)| !a.contains_key(*kind)).map(|(_, ppm)| ppm).sum();
    here + gone
}

/// Maps with keys that are no text, as lists of pairs.
mod as_pairs {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Kind;

    pub(super) fn serialize<S: Serializer>(
        map: &BTreeMap<Kind, u64>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        map.iter().collect::<Vec<_>>().serialize(serializer)
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(
        deserializer: D,
    ) -> Result<BTreeMap<Kind, u64>, D::Error> {
        Ok(Vec::<(Kind, u64)>::deserialize(deserializer)?.into_iter().collect())
    }
}

//! Where the time went: stretches of each member, and sums.

use std::collections::BTreeMap;

use dovetail_account::device_time::Span;
use serde::Serialize;

use super::phase::Phase;

/// Name of the method, which is part of every figure.
pub const METHOD: &str = "job-phases-1";

/// A job's allocated time, split.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobPhases {
    /// In the order of [`super::JobRecord::members`].
    pub members: Vec<MemberPhases>,
}

/// One member's time, split.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemberPhases {
    /// How much of the device it held.
    pub gpu_milli: i64,
    /// Ascending, without gaps, over the time it was held.
    pub stretches: Vec<Stretch>,
}

/// Some time of one member in which nothing changed as far as the samples tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    pub span: Span,
    /// How long each phase was, most first; all parts together are the stretch.
    pub parts: Vec<PhasePart>,
    /// Means of what was read.
    pub evidence: Evidence,
}

/// One phase of a stretch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PhasePart {
    pub phase: Phase,
    pub length_ms: u64,
    pub confidence: Confidence,
    /// It filled the stretch, and that is at least two samples long or bounded by events; otherwise
    /// it is a share of the stretch and has no place in it.
    pub is_place: bool,
}

/// How sure a part is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Confidence {
    /// A share shorter than two samples, or a boundary that nobody saw.
    Low,
    /// One signal says so, or it is a share by two.
    Medium,
    /// Events say so, or two signals that are read apart.
    High,
}

/// Means of what was read over a stretch; `None` where nothing was. Units as in
/// [`super::DeviceSample`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// Samples that were read.
    pub samples: u64,
    /// Compute engine, or any kernel where that is not read.
    pub busy_micro_percent: Option<u64>,
    /// Multiprocessors with work.
    pub sm_micro_percent: Option<u64>,
    /// Tensor cores.
    pub tensor_micro_percent: Option<u64>,
    /// Memory traffic.
    pub dram_micro_percent: Option<u64>,
    pub nvlink_bytes_per_s: Option<u64>,
    pub power_milliwatts: Option<u64>,
    pub cpu_milli: Option<u64>,
    /// Disks of its host, where the host is its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_busy_micro_percent: Option<u64>,
    /// Disk and network, inwards.
    pub in_bytes_per_s: Option<u64>,
    /// Disk and network, outwards.
    pub out_bytes_per_s: Option<u64>,
}

impl MemberPhases {
    /// Time by phase, in ms.
    pub fn by_phase(&self) -> BTreeMap<Phase, u64> {
        let mut sums = BTreeMap::new();
        for part in self.stretches.iter().flat_map(|stretch| &stretch.parts) {
            *sums.entry(part.phase).or_default() += part.length_ms;
        }
        sums
    }
}

impl JobPhases {
    /// Device-time by phase, in milli-GPU × ms.
    pub fn by_phase(&self) -> BTreeMap<Phase, i128> {
        let mut sums = BTreeMap::new();
        for member in &self.members {
            for (phase, length_ms) in member.by_phase() {
                let time = i128::from(length_ms) * i128::from(member.gpu_milli);
                *sums.entry(phase).or_default() += time;
            }
        }
        sums
    }
}

//! The signals, as data.

use serde::{Deserialize, Serialize};

use super::dcgm;

pub(crate) const SIGNALS: usize = 6;

/// What a signal's numbers mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// 0 to 1.
    Ratio,
    /// 0 to 100.
    Percent,
}

/// How busy a device is, by one way of measuring it. Best first: the order is the order of
/// preference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Signal {
    /// Share of the streaming multiprocessors with at least one warp, over the window (NVIDIA
    /// DCGM). Not among dcgm-exporter's default metrics.
    SmActive,
    /// The same of AMD's compute units.
    AmdSmActive,
    /// Share of time in which the graphics or compute engine was active (NVIDIA DCGM). A kernel
    /// that waits in a collective spins and counts.
    GrEngineActive,
    /// Share of time in which the graphics engine was active (AMD).
    AmdGfxActivity,
    /// Share of time in which an engine was active (Intel).
    IntelEngineRatio,
    /// Share of time in which any kernel ran, however small (NVIDIA NVML). Of low quality; says
    /// nothing on a MIG slice.
    GpuUtil,
}

impl Signal {
    /// All signals, best first.
    pub const ALL: [Self; SIGNALS] = [
        Self::SmActive,
        Self::AmdSmActive,
        Self::GrEngineActive,
        Self::AmdGfxActivity,
        Self::IntelEngineRatio,
        Self::GpuUtil,
    ];

    /// Name in every output.
    pub fn name(self) -> &'static str {
        match self {
            Self::SmActive => "sm_active",
            Self::AmdSmActive => "amd_sm_active",
            Self::GrEngineActive => "gr_engine_active",
            Self::AmdGfxActivity => "amd_gfx_activity",
            Self::IntelEngineRatio => "intel_engine_ratio",
            Self::GpuUtil => "gpu_util",
        }
    }

    /// Names of the series that carry it, with the scale of each. Newer DCGM has new names for the
    /// same.
    pub fn series(self) -> &'static [(&'static str, Scale)] {
        match self {
            Self::SmActive => &[(dcgm::SM_ACTIVE, Scale::Ratio)],
            Self::AmdSmActive => &[("gpu_prof_sm_active", Scale::Percent)],
            Self::GrEngineActive => &[
                (dcgm::GR_ENGINE_ACTIVE, Scale::Ratio),
                (dcgm::GR_ENGINE_UTIL_RATIO, Scale::Ratio),
            ],
            Self::AmdGfxActivity => &[("gpu_gfx_activity", Scale::Percent)],
            Self::IntelEngineRatio => &[("xpum_engine_ratio", Scale::Ratio)],
            Self::GpuUtil => {
                &[(dcgm::GPU_UTIL, Scale::Percent), (dcgm::GPU_UTIL_RATIO, Scale::Ratio)]
            }
        }
    }

    /// The signal of a series, with its scale.
    pub fn of_series(name: &str) -> Option<(Self, Scale)> {
        Self::ALL.into_iter().find_map(|signal| {
            let found = signal.series().iter().find(|(series, _)| *series == name)?;
            Some((signal, found.1))
        })
    }

    /// Whether it is read for each MIG slice; otherwise its value there is that of something else.
    pub fn works_on_mig_slices(self) -> bool {
        matches!(self, Self::SmActive | Self::GrEngineActive)
    }
}

/// Compute slices of a MIG profile. Only the number before `g` counts: drivers and operators
/// disagree about the gigabytes (`7g.79gb` and `7g.80gb` are one profile).
pub fn mig_compute_slices(profile: &str) -> Option<u32> {
    let profile = profile.strip_prefix("MIG ").unwrap_or(profile);
    let profile = profile.strip_prefix("mig-").unwrap_or(profile);
    // `1c.3g.40gb` is one compute instance of a slice of three.
    let compute = match profile.split_once("c.") {
        Some((instances, _)) => instances,
        None => profile.split_once("g.")?.0,
    };
    let plain = !compute.is_empty() && compute.bytes().all(|byte| byte.is_ascii_digit());
    compute.parse().ok().filter(|slices| plain && (1..=7).contains(slices))
}

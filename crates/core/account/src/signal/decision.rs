//! One device at one moment: active, idle or unknown, and by which signal.

use serde::{Deserialize, Serialize};

use super::kind::{SIGNALS, Signal};

/// From when on a device counts as active.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActivityRule {
    /// More than this is active, in millionths of a percent. 1% leaves out the heartbeat of a
    /// loaded model that serves nobody.
    pub threshold_micro_percent: u32,
    /// A sample holds until the next, if that comes within so many sampling intervals; else it
    /// holds for one and the rest is unknown.
    pub max_gap_intervals: u32,
}

impl Default for ActivityRule {
    fn default() -> Self {
        Self { threshold_micro_percent: 1_000_000, max_gap_intervals: 3 }
    }
}

/// What is known of one device, or one slice of one, at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceMoment {
    /// Readings by place in [`Signal::ALL`], in millionths of a percent; `None` where there is
    /// none.
    pub readings: [Option<u32>; SIGNALS],
    /// Share of time in which memory was read or written: work that a low compute signal hides.
    pub dram_active_micro_percent: Option<u32>,
    pub power_milliwatts: Option<u32>,
    /// What the device draws when nothing runs, where known.
    pub idle_power_milliwatts: Option<u32>,
    pub is_mig_slice: bool,
    /// Pods that hold the device together (time-slicing, MPS, fractions); the readings are of all
    /// of them unless `is_per_process`.
    pub holders: u32,
    /// GPU_UTIL was read for the processes of one holder alone.
    pub is_per_process: bool,
    /// The labels name another holder, node or device than the API server does.
    pub contradicts_placement: bool,
}

impl DeviceMoment {
    /// A moment with one reading.
    pub fn with(mut self, signal: Signal, micro_percent: u32) -> Self {
        self.readings[signal as usize] = Some(micro_percent);
        self
    }
}

/// What a device did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activity {
    Active,
    /// It did not.
    Idle,
    /// Nobody knows.
    Unknown,
}

/// Why nobody knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnknownReason {
    /// No usable reading.
    NoSignal,
    /// The readings cannot all be true.
    SignalsContradict,
    /// The series belongs to something else than the API server says.
    PlacementContradicts,
    /// The device was active, and nobody knows for which of its holders.
    SharedDevice,
    /// No sample for too long.
    Gap,
}

/// The answer for one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActivityVerdict {
    pub activity: Activity,
    /// The signal the answer rests on.
    pub signal: Option<Signal>,
    /// How busy it was by that signal, in millionths of a percent; `None` if unknown.
    pub intensity_micro_percent: Option<u32>,
    pub reason: Option<UnknownReason>,
}

impl ActivityVerdict {
    pub(crate) fn unknown(signal: Option<Signal>, reason: UnknownReason) -> Self {
        let activity = Activity::Unknown;
        Self { activity, signal, intensity_micro_percent: None, reason: Some(reason) }
    }

    /// What it says of each holder of a device that several have, where it is of all of them
    /// together: an idle device is idle for each, an active one is not active for each, and nobody
    /// knows for which.
    #[must_use]
    pub fn of_each_holder(self) -> Self {
        match self.activity {
            Activity::Active => Self::unknown(self.signal, UnknownReason::SharedDevice),
            Activity::Idle | Activity::Unknown => self,
        }
    }
}

/// Decides what a device did.
pub fn judge(moment: &DeviceMoment, rule: &ActivityRule) -> ActivityVerdict {
    let best = Signal::ALL.into_iter().find_map(|signal| {
        let usable = !moment.is_mig_slice || signal.works_on_mig_slices();
        let reading = moment.readings[signal as usize].filter(|_| usable)?;
        Some((signal, reading))
    });
    let Some((signal, reading)) = for_one_holder(moment).or(best) else {
        return ActivityVerdict::unknown(None, UnknownReason::NoSignal);
    };
    if moment.contradicts_placement {
        return ActivityVerdict::unknown(Some(signal), UnknownReason::PlacementContradicts);
    }
    let is_above = |reading: u32| reading > rule.threshold_micro_percent;
    if !is_above(reading) && is_doubtful(moment, signal, reading) {
        return ActivityVerdict::unknown(Some(signal), UnknownReason::SignalsContradict);
    }
    // Memory traffic is that of the whole device, also where the signal is of one holder's
    // processes.
    let is_own = for_one_holder(moment).is_some();
    let dram = moment.dram_active_micro_percent.filter(|_| !is_own);
    let is_active = is_above(reading) || dram.is_some_and(is_above);
    let of_one = moment.holders <= 1 || is_own;
    let activity = if is_active { Activity::Active } else { Activity::Idle };
    let intensity_micro_percent = Some(reading);
    let verdict =
        ActivityVerdict { activity, signal: Some(signal), intensity_micro_percent, reason: None };
    if of_one { verdict } else { verdict.of_each_holder() }
}

/// On a device with several holders the coarse signal of one holder says more than a fine one of
/// all.
fn for_one_holder(moment: &DeviceMoment) -> Option<(Signal, u32)> {
    let applies = moment.holders > 1 && moment.is_per_process && !moment.is_mig_slice;
    let reading = moment.readings[Signal::GpuUtil as usize].filter(|_| applies)?;
    Some((Signal::GpuUtil, reading))
}

/// Whether a low reading may be a dead counter: profiling counters have been seen to stay at zero
/// after weeks of running, while kernels ran and power was drawn.
fn is_doubtful(moment: &DeviceMoment, signal: Signal, reading: u32) -> bool {
    const HALF: u32 = 50_000_000;
    let is_profiling = matches!(signal, Signal::SmActive | Signal::GrEngineActive);
    // Kernels that leave the multiprocessors all but empty are seen; kernels that leave no trace
    // are not.
    let is_dead = is_profiling && reading == 0;
    let util = moment.readings[Signal::GpuUtil as usize].filter(|_| !moment.is_mig_slice);
    let kernels_ran = util.is_some_and(|util| util > HALF);
    // The power is that of the whole device, which another slice may draw.
    let power = moment.power_milliwatts.zip(moment.idle_power_milliwatts);
    let draws_power = !moment.is_mig_slice
        && power.is_some_and(|(power, idle)| u64::from(power) > 2 * u64::from(idle));
    let engine = moment.readings[Signal::GrEngineActive as usize];
    let engine_ran = signal == Signal::SmActive && engine.is_some_and(|engine| engine > HALF);
    is_dead && (kernels_ran || draws_power || engine_ran) || !is_profiling && draws_power
}

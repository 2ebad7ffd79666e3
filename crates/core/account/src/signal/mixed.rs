//! A step in which a device was active for some of its samples only.

use super::decision::{
    Activity, ActivityRule, ActivityVerdict, DeviceMoment, UnknownReason, judge,
};
use super::kind::{SIGNALS, Signal};

/// The highest samples of a step of which others were not above the threshold; in millionths of a
/// percent. `None` where all samples were on one side of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Peaks {
    /// By place in [`Signal::ALL`].
    pub readings: [Option<u32>; SIGNALS],
    /// Of memory traffic.
    pub dram_active_micro_percent: Option<u32>,
}

/// What a device did in such a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mixed {
    /// In the part in which it was active.
    pub above: ActivityVerdict,
    /// In the rest.
    pub below: ActivityVerdict,
    /// How large that part is.
    pub share: ActiveShare,
}

/// How many of the samples of a step were above the threshold, in millionths of all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ActiveShare {
    pub least: u32,
    /// An estimate: as if the signal were either nothing or at its peak.
    pub likely: u32,
    pub most: u32,
}

/// All samples.
const ALL: u64 = 1_000_000;
/// All of a device.
const FULL: u64 = 100_000_000;

/// Tells the parts of a step apart whose readings are means over it. `None` where it was one thing
/// throughout, or nobody knows.
///
/// With the mean m of a step, its highest sample M and the threshold t, the share a of the samples
/// above t has bounds that hold whatever the samples were: those above are at most M and the others
/// at most t, so m ≤ a·M + (1 − a)·t; and those above are more than t, so m > a·t.
pub fn mixed(moment: &DeviceMoment, peaks: &Peaks, rule: &ActivityRule) -> Option<Mixed> {
    let whole = judge(moment, rule);
    if !matches!(whole.reason, None | Some(UnknownReason::SharedDevice)) {
        return None;
    }
    let signal = whole.signal?;
    let mean = moment.readings[signal as usize]?;
    let share = of_samples(mean, peaks.readings[signal as usize], rule);
    let of_one = signal == Signal::GpuUtil && moment.is_per_process;
    let is_own = moment.holders > 1 && of_one && !moment.is_mig_slice;
    let share = match moment.dram_active_micro_percent {
        Some(dram) if !is_own => share.or(of_samples(dram, peaks.dram_active_micro_percent, rule)),
        _ => share,
    };
    if share.least == share.most {
        return None;
    }
    // The mean over both parts stays what it was.
    let within = (u64::from(mean) * ALL).checked_div(u64::from(share.likely)).unwrap_or(0);
    let known = |activity, micro_percent: u64| ActivityVerdict {
        activity,
        signal: Some(signal),
        intensity_micro_percent: Some(micro_percent.min(FULL) as u32),
        reason: None,
    };
    let above = known(Activity::Active, within);
    let above = if moment.holders > 1 && !is_own { above.of_each_holder() } else { above };
    Some(Mixed { above, below: known(Activity::Idle, 0), share })
}

/// The share of one signal.
fn of_samples(mean: u32, peak: Option<u32>, rule: &ActivityRule) -> ActiveShare {
    let threshold = u64::from(rule.threshold_micro_percent);
    let mean = u64::from(mean);
    let is_above = mean > threshold;
    let Some(peak) = peak.map(u64::from).filter(|peak| *peak > threshold) else {
        let all = if is_above { ALL as u32 } else { 0 };
        return ActiveShare { least: all, likely: all, most: all };
    };
    let least = (mean.saturating_sub(threshold) * ALL / (peak - threshold)).min(ALL);
    let most = if is_above { ALL } else { (mean * ALL).div_ceil(threshold.max(1)).min(ALL) };
    let likely = (mean * ALL / peak).clamp(least, most);
    ActiveShare { least: least as u32, likely: likely as u32, most: most as u32 }
}

impl ActiveShare {
    /// Of samples that are above by one signal or by another.
    fn or(self, other: Self) -> Self {
        Self {
            least: self.least.max(other.least),
            likely: self.likely.max(other.likely),
            most: self.most.saturating_add(other.most).min(ALL as u32),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dovetail_cases::cases;
    use proptest::prelude::*;

    /// Samples as an exporter has them: nothing, a heartbeat, little or much.
    fn sample() -> impl Strategy<Value = u32> {
        prop_oneof![Just(0), 0u32..1_000_001, 1_000_001u32..4_000_000, 1_000_001u32..=100_000_000]
    }

    /// Mean and, where samples are on both sides of the threshold, the highest.
    fn aggregates(samples: &[u32], rule: &ActivityRule) -> (u32, Option<u32>) {
        let sum: u64 = samples.iter().map(|sample| u64::from(*sample)).sum();
        let above = samples.iter().filter(|sample| **sample > rule.threshold_micro_percent).count();
        let peak = samples.iter().copied().max().filter(|_| 0 < above && above < samples.len());
        ((sum / samples.len() as u64) as u32, peak)
    }

    proptest! {
        #![proptest_config(cases(256))]

        /// The samples themselves, counted one by one.
        #[test]
        fn bounds_hold_whatever_the_samples_were(
            samples in prop::collection::vec((sample(), prop::option::of(sample())), 1..12),
            has_dram: bool,
        ) {
            let rule = ActivityRule::default();
            let of_signal: Vec<u32> = samples.iter().map(|(signal, _)| *signal).collect();
            let of_dram: Vec<u32> = samples.iter().map(|(_, dram)| dram.unwrap_or(0)).collect();
            let mut peaks = Peaks::default();
            let mut moment = DeviceMoment { holders: 1, ..DeviceMoment::default() };
            let signal = Signal::GrEngineActive as usize;
            let (mean, peak) = aggregates(&of_signal, &rule);
            (moment.readings[signal], peaks.readings[signal]) = (Some(mean), peak);
            if has_dram {
                let (mean, peak) = aggregates(&of_dram, &rule);
                (moment.dram_active_micro_percent, peaks.dram_active_micro_percent) = (Some(mean), peak);
            }
            let is_above = |reading: u32| reading > rule.threshold_micro_percent;
            let is_active = |(signal, dram): (&u32, &u32)| is_above(*signal) || has_dram && is_above(*dram);
            let active = of_signal.iter().zip(&of_dram).filter(|pair| is_active(*pair)).count() as u64;
            let truth = active * ALL / samples.len() as u64;
            match mixed(&moment, &peaks, &rule) {
                Some(Mixed { share, .. }) => {
                    // A mean is cut off to a millionth of a percent.
                    prop_assert!(u64::from(share.least) <= truth + 1, "{share:?}, {truth}");
                    prop_assert!(truth <= u64::from(share.most) + 2, "{share:?}, {truth}");
                    prop_assert!(share.least <= share.likely && share.likely <= share.most);
                }
                None => {
                    let whole = judge(&moment, &rule).activity == Activity::Active;
                    prop_assert_eq!(truth, if whole { ALL } else { 0 });
                }
            }
        }
    }

    #[test]
    fn a_signal_that_is_on_or_off_is_split_where_it_was() {
        let rule = ActivityRule::default();
        let mut peaks = Peaks::default();
        peaks.readings[Signal::GrEngineActive as usize] = Some(80_000_000);
        let moment = DeviceMoment { holders: 1, ..DeviceMoment::default() };
        let moment = moment.with(Signal::GrEngineActive, 16_000_000);
        let Mixed { above, below, share } = mixed(&moment, &peaks, &rule).expect("two parts");
        assert_eq!(share, ActiveShare { least: 189_873, likely: 200_000, most: 1_000_000 });
        assert_eq!((above.activity, below.activity), (Activity::Active, Activity::Idle));
        assert_eq!(above.intensity_micro_percent, Some(80_000_000));
        // Of several holders nobody knows whose it was, but idle is idle for each.
        let shared =
            mixed(&DeviceMoment { holders: 2, ..moment }, &peaks, &rule).expect("two parts");
        assert_eq!(shared.above.reason, Some(UnknownReason::SharedDevice));
        assert_eq!(shared.below.activity, Activity::Idle);
        // What cannot be true is not split either.
        let false_label = DeviceMoment { contradicts_placement: true, ..moment };
        assert_eq!(mixed(&false_label, &peaks, &rule), None);
    }
}

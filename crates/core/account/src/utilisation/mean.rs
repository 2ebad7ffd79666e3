//! Means over devices and time.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use crate::device_time::Span;

/// How busy something was for some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusyLevel {
    pub span: Span,
    /// In millionths of a percent; `None` if nobody knows.
    pub micro_percent: Option<u32>,
}

/// How busy devices were while they were held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Utilisation {
    /// Time for which they were held, in milli-GPU × ms.
    pub held_gpu_milli_ms: i128,
    /// The part of it of which somebody knows how busy they were.
    pub known_gpu_milli_ms: i128,
    /// That time × how busy they were, in millionths of a percent.
    busy: i128,
}

/// All of a device.
const FULL: i128 = 100_000_000;

impl Utilisation {
    /// Adds a holding of so much of a device; its levels do not overlap.
    pub fn add(&mut self, gpu_milli: i64, levels: &[BusyLevel]) {
        for BusyLevel { span, micro_percent } in levels {
            let time = i128::from(gpu_milli) * i128::from(span.to_ms.saturating_sub(span.from_ms));
            self.held_gpu_milli_ms += time;
            if let Some(level) = micro_percent {
                self.known_gpu_milli_ms += time;
                self.busy += time * i128::from(*level);
            }
        }
    }

    /// The mean of what is known, in millionths of a percent; `None` if nothing is.
    pub fn mean_micro_percent(&self) -> Option<u32> {
        share(self.busy, self.known_gpu_milli_ms)
    }

    /// The least and the most that the mean of all the time can be; `None` if there is no time.
    pub fn bounds_micro_percent(&self) -> Option<(u32, u32)> {
        let unknown = self.held_gpu_milli_ms - self.known_gpu_milli_ms;
        let least = share(self.busy, self.held_gpu_milli_ms)?;
        let most = share(self.busy + unknown * FULL, self.held_gpu_milli_ms)?;
        Some((least, most))
    }
}

fn share(part: i128, whole: i128) -> Option<u32> {
    u32::try_from(part.checked_div(whole)?).ok()
}

impl AddAssign for Utilisation {
    fn add_assign(&mut self, other: Self) {
        self.held_gpu_milli_ms += other.held_gpu_milli_ms;
        self.known_gpu_milli_ms += other.known_gpu_milli_ms;
        self.busy += other.busy;
    }
}

/// How busy several devices were together: their mean at every moment at which any of them was
/// held, unknown where one of those is. The levels of each ascend and do not overlap.
pub fn mean_of(devices: &[Vec<BusyLevel>]) -> Vec<BusyLevel> {
    // At each moment: how many more or fewer are held, how many of these are not known, and how
    // busy they are.
    let mut changes: BTreeMap<u64, (i64, i64, i64)> = BTreeMap::new();
    for BusyLevel { span, micro_percent } in devices.iter().flatten() {
        let unknown = i64::from(micro_percent.is_none());
        let busy = i64::from(micro_percent.unwrap_or(0));
        for (at_ms, sign) in [(span.from_ms, 1), (span.to_ms, -1)] {
            let change = changes.entry(at_ms).or_default();
            *change = (change.0 + sign, change.1 + sign * unknown, change.2 + sign * busy);
        }
    }
    let (mut held, mut unknown, mut busy, mut from_ms) = (0, 0, 0, 0);
    let mut levels: Vec<BusyLevel> = Vec::new();
    for (at_ms, change) in changes {
        if held > 0 {
            let mean = (unknown == 0).then(|| u32::try_from(busy / held).unwrap_or(u32::MAX));
            let span = Span { from_ms, to_ms: at_ms };
            match levels.last_mut() {
                Some(last) if last.micro_percent == mean && last.span.to_ms == from_ms => {
                    last.span.to_ms = at_ms;
                }
                _ => levels.push(BusyLevel { span, micro_percent: mean }),
            }
        }
        held += change.0;
        unknown += change.1;
        busy += change.2;
        from_ms = at_ms;
    }
    levels
}

#[cfg(test)]
mod tests {
    use super::*;
    use dovetail_cases::cases;
    use proptest::prelude::*;

    fn levels() -> impl Strategy<Value = Vec<BusyLevel>> {
        let one = (0u64..5, 1u64..20, prop::option::of(0u32..=100));
        prop::collection::vec(one, 0..8).prop_map(|parts| {
            let mut at_ms = 0;
            let level = |(gap, length, percent): (u64, u64, Option<u32>)| {
                let from_ms = at_ms + gap;
                at_ms = from_ms + length;
                let span = Span { from_ms, to_ms: at_ms };
                BusyLevel { span, micro_percent: percent.map(|percent| percent * 1_000_000) }
            };
            parts.into_iter().map(level).collect()
        })
    }

    fn at(levels: &[BusyLevel], at_ms: u64) -> Option<Option<u32>> {
        let holds = |level: &&BusyLevel| (level.span.from_ms..level.span.to_ms).contains(&at_ms);
        levels.iter().find(holds).map(|level| level.micro_percent)
    }

    proptest! {
        #![proptest_config(cases(256))]

        /// Millisecond by millisecond.
        #[test]
        fn a_mean_is_that_of_every_moment(devices in prop::collection::vec(levels(), 1..4)) {
            let mean = mean_of(&devices);
            for at_ms in 0..200 {
                let held: Vec<Option<u32>> = devices.iter().filter_map(|of| at(of, at_ms)).collect();
                let all: Option<Vec<u32>> = held.iter().copied().collect();
                let wanted = (!held.is_empty()).then(|| {
                    all.map(|all| all.iter().sum::<u32>() / all.len() as u32)
                });
                prop_assert_eq!(at(&mean, at_ms), wanted);
            }
        }

        #[test]
        fn bounds_hold_the_mean_and_meet_where_everything_is_known(
            devices in prop::collection::vec((levels(), 1i64..1000), 1..4),
        ) {
            let mut all = Utilisation::default();
            devices.iter().for_each(|(levels, milli)| all.add(*milli, levels));
            let moments = |known: bool| -> i128 {
                let of = |(levels, milli): &(Vec<BusyLevel>, i64)| {
                    let held = (0..200).filter_map(|at_ms| at(levels, at_ms));
                    held.filter(|level| level.is_some() || !known).count() as i128 * i128::from(*milli)
                };
                devices.iter().map(of).sum()
            };
            prop_assert_eq!(all.held_gpu_milli_ms, moments(false));
            prop_assert_eq!(all.known_gpu_milli_ms, moments(true));
            if let (Some((least, most)), Some(mean)) = (all.bounds_micro_percent(), all.mean_micro_percent()) {
                prop_assert!(least <= mean && mean <= most);
                prop_assert_eq!(least == most, all.held_gpu_milli_ms == all.known_gpu_milli_ms);
            }
        }
    }
}

//! The method `sampled-idle-runs`: how much GPU-time passes in long runs of low activity.
//!
//! A protocol of its own, defined over samples alone so that anybody can repeat it, and apart from
//! the ledger's integration over time:
//!
//! 1. The *step* is the median distance of consecutive samples of one pod and GPU, over all of
//!    them.
//! 2. A sample counts for one step, whatever its distance to the next.
//! 3. A *run* is a row of consecutive samples of one pod and GPU below the threshold. It breaks
//!    where two samples are more than 1.5 steps apart.
//! 4. The length of a run is its samples × the step.
//! 5. Reclaimable is what lies after the grace: Σ (length − grace) over the runs of at least the
//!    minimum length; a run no longer than the grace gives nothing back.
//! 6. A pod that has a part of a GPU counts with that part.
//!
//! Everything is a whole number: times in ms, the step in µs (the median of an even number of
//! distances may end in half a millisecond), GPUs in thousandths, activity in millionths of a
//! percent.

use std::ops::AddAssign;

/// One reading of how busy a GPU is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActivitySample {
    /// When, in ms since 1970.
    pub at_ms: u64,
    /// How busy, in millionths of a percent: 100,000,000 is fully.
    pub activity_micro_percent: u32,
}

/// What counts as a run worth something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdleRule {
    /// A sample below this is idle, in millionths of a percent.
    pub threshold_micro_percent: u32,
    /// Shorter runs are left alone.
    pub min_run_ms: u64,
    /// Begin of each run that stays with its holder.
    pub grace_ms: u64,
}

/// Samples of one pod on one GPU, ascending in time without doubles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PodSamples<'a> {
    /// How much of the GPU the pod has, in milli-GPU.
    pub gpu_milli: u32,
    /// How busy that is.
    pub samples: &'a [ActivitySample],
}

/// What the method finds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdleRuns {
    pub samples: u64,
    /// Samples below the threshold.
    pub idle_samples: u64,
    /// What one sample stands for, in µs, and the same in time for each series, in their order;
    /// `None` where no pod and GPU has two samples, so that nobody knows the step.
    pub in_time: Option<(u64, Vec<IdleTime>)>,
}

/// What the method finds of a series, in milli-GPU × µs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IdleTime {
    /// Of all samples.
    pub gpu_milli_us: u128,
    /// Of the samples below the threshold.
    pub idle_gpu_milli_us: u128,
    /// Runs of at least the minimum length.
    pub runs: u64,
    /// In these runs.
    pub in_runs_gpu_milli_us: u128,
    /// Of that, after the grace.
    pub reclaimable_gpu_milli_us: u128,
}

impl AddAssign for IdleTime {
    fn add_assign(&mut self, other: Self) {
        self.gpu_milli_us += other.gpu_milli_us;
        self.idle_gpu_milli_us += other.idle_gpu_milli_us;
        self.runs += other.runs;
        self.in_runs_gpu_milli_us += other.in_runs_gpu_milli_us;
        self.reclaimable_gpu_milli_us += other.reclaimable_gpu_milli_us;
    }
}

/// Applies the method; see the module for the definitions.
pub fn idle_runs<'a>(
    series: impl Iterator<Item = PodSamples<'a>> + Clone,
    rule: &IdleRule,
) -> IdleRuns {
    let is_idle =
        |sample: &ActivitySample| sample.activity_micro_percent < rule.threshold_micro_percent;
    let samples = series.clone().map(|of| of.samples.len() as u64).sum();
    let idle_of = |samples: &[ActivitySample]| samples.iter().filter(|s| is_idle(s)).count();
    let idle_samples = series.clone().map(|of| idle_of(of.samples) as u64).sum();
    let in_time = median_distance_us(series.clone().map(|of| of.samples)).map(|step_us| {
        let step = u128::from(step_us);
        let (min_run_us, grace_us) = (us(rule.min_run_ms), us(rule.grace_ms));
        let of_series = series.map(|PodSamples { gpu_milli, samples }| {
            let milli = u128::from(gpu_milli);
            let mut found = IdleTime {
                gpu_milli_us: milli * samples.len() as u128 * step,
                idle_gpu_milli_us: milli * idle_of(samples) as u128 * step,
                ..IdleTime::default()
            };
            for_each_run(samples, step_us, is_idle, |length| {
                let length_us = u128::from(length) * step;
                if length_us >= min_run_us {
                    found.runs += 1;
                    found.in_runs_gpu_milli_us += milli * length_us;
                    found.reclaimable_gpu_milli_us += milli * length_us.saturating_sub(grace_us);
                }
            });
            found
        });
        (step_us, of_series.collect())
    });
    IdleRuns { samples, idle_samples, in_time }
}

impl IdleRuns {
    /// All series together.
    pub fn total(&self) -> Option<IdleTime> {
        let (_, of_series) = self.in_time.as_ref()?;
        let mut total = IdleTime::default();
        of_series.iter().for_each(|time| total += *time);
        Some(total)
    }
}

fn us(ms: u64) -> u128 {
    u128::from(ms) * 1000
}

/// The step; the mean of the two in the middle where their number is even.
fn median_distance_us<'a>(series: impl Iterator<Item = &'a [ActivitySample]>) -> Option<u64> {
    let distances = series.flat_map(|samples| samples.windows(2));
    let mut distances: Vec<u64> = distances.map(|pair| pair[1].at_ms - pair[0].at_ms).collect();
    let middle = distances.len() / 2;
    let is_even = distances.len().is_multiple_of(2);
    if distances.is_empty() {
        return None;
    }
    let (below, upper, _) = distances.select_nth_unstable(middle);
    let upper = *upper;
    let lower = below.iter().copied().max().filter(|_| is_even).unwrap_or(upper);
    Some((lower + upper) * 500)
}

/// Calls `end` with the number of samples of each run.
fn for_each_run(
    samples: &[ActivitySample],
    step_us: u64,
    is_idle: impl Fn(&ActivitySample) -> bool,
    mut end: impl FnMut(u64),
) {
    let (mut length, mut last_ms) = (0, 0);
    for sample in samples {
        // More than 1.5 steps, without a fraction.
        let is_apart = |since_ms| 2 * us(sample.at_ms - since_ms) > 3 * u128::from(step_us);
        if length > 0 && (is_apart(last_ms) || !is_idle(sample)) {
            end(std::mem::take(&mut length));
        }
        if is_idle(sample) {
            length += 1;
        }
        last_ms = sample.at_ms;
    }
    if length > 0 {
        end(length);
    }
}

#[cfg(test)]
mod tests {
    use dovetail_cases::cases;
    use proptest::prelude::*;

    use super::*;

    const RULE: IdleRule =
        IdleRule { threshold_micro_percent: 5_000_000, min_run_ms: 3_000, grace_ms: 2_000 };

    fn sample(at_ms: u64, activity_micro_percent: u32) -> ActivitySample {
        ActivitySample { at_ms, activity_micro_percent }
    }

    fn of(series: &[Vec<ActivitySample>], rule: &IdleRule) -> IdleRuns {
        idle_runs(series.iter().map(|samples| PodSamples { gpu_milli: 1000, samples }), rule)
    }

    #[test]
    fn nobody_knows_the_step_of_a_single_sample() {
        let found = of(&[vec![sample(0, 0)], vec![sample(9, 0)], vec![]], &RULE);
        assert_eq!(found, IdleRuns { samples: 2, idle_samples: 2, in_time: None });
    }

    #[test]
    fn a_run_breaks_past_one_and_a_half_steps_and_not_at_them() {
        // Distances 1.0, 1.5, 1.0, 1.0, 1.501 seconds: the step is 1 s.
        let times = [0, 1_000, 2_500, 3_500, 4_500, 6_001];
        let series = [times.map(|at_ms| sample(at_ms, 4_999_999)).to_vec()];
        let found = of(&series, &RULE);
        let second = 1000 * 1_000_000;
        let expected = IdleTime {
            gpu_milli_us: 6 * second,
            idle_gpu_milli_us: 6 * second,
            runs: 1,
            in_runs_gpu_milli_us: 5 * second,
            reclaimable_gpu_milli_us: 3 * second,
        };
        assert_eq!(found.in_time, Some((1_000_000, vec![expected])));
        // A seventh of a GPU is a seventh of its time.
        let slice = PodSamples { gpu_milli: 143, samples: &series[0] };
        let whole = PodSamples { gpu_milli: 1000, samples: &series[0] };
        let found = idle_runs([slice, whole].into_iter(), &RULE).total().unwrap();
        assert_eq!(found.gpu_milli_us, 6 * 1143 * 1_000_000);
        assert_eq!(found.reclaimable_gpu_milli_us, 3 * 1143 * 1_000_000);
        assert_eq!(found.runs, 2);
        // At the threshold is not below it.
        let busy = [times.map(|at_ms| sample(at_ms, 5_000_000)).to_vec()];
        assert_eq!(of(&busy, &RULE).idle_samples, 0);
    }

    /// The definitions once more, as slow as they read: every stretch of samples is looked at, and
    /// those that are runs and cannot be made longer are kept. In doubled µs, so that nothing is
    /// rounded.
    fn naive(series: &[Vec<ActivitySample>], rule: &IdleRule) -> (u128, u64, u128, u128) {
        let mut distances = Vec::new();
        for samples in series {
            for second in 1..samples.len() {
                distances.push(u128::from(samples[second].at_ms - samples[second - 1].at_ms));
            }
        }
        distances.sort_unstable();
        let twice_step_ms = distances[(distances.len() - 1) / 2] + distances[distances.len() / 2];
        let is_run = |stretch: &[ActivitySample]| {
            let low = stretch
                .iter()
                .all(|sample| sample.activity_micro_percent < rule.threshold_micro_percent);
            let near = (1..stretch.len()).all(|second| {
                let apart_ms = u128::from(stretch[second].at_ms - stretch[second - 1].at_ms);
                4 * apart_ms <= 3 * twice_step_ms
            });
            low && near
        };
        let (mut runs, mut twice_in_runs_ms, mut twice_reclaimable_ms) = (0, 0, 0);
        for samples in series {
            for from in 0..samples.len() {
                for to in from + 1..=samples.len() {
                    let grows = from > 0 && is_run(&samples[from - 1..to])
                        || to < samples.len() && is_run(&samples[from..to + 1]);
                    let twice_ms = (to - from) as u128 * twice_step_ms;
                    let long = twice_ms >= 2 * u128::from(rule.min_run_ms);
                    if is_run(&samples[from..to]) && !grows && long {
                        runs += 1;
                        twice_in_runs_ms += twice_ms;
                        let grace = 2 * u128::from(rule.grace_ms);
                        twice_reclaimable_ms += twice_ms.saturating_sub(grace);
                    }
                }
            }
        }
        (twice_step_ms * 500, runs, twice_in_runs_ms * 500, twice_reclaimable_ms * 500)
    }

    fn some_series() -> impl Strategy<Value = Vec<ActivitySample>> {
        let gap = prop_oneof![6 => Just(1_000u64), 2 => 1u64..4_000, 1 => Just(1_500)];
        let activity =
            prop_oneof![3 => 0u32..5_000_000, 1 => Just(5_000_000), 2 => 0u32..100_000_000];
        prop::collection::vec((gap, activity), 0..25).prop_map(|pairs| {
            let mut at_ms = 0;
            let next = |(gap, activity)| {
                at_ms += gap;
                sample(at_ms, activity)
            };
            pairs.into_iter().map(next).collect()
        })
    }

    proptest! {
        #![proptest_config(cases(256))]

        #[test]
        fn it_finds_what_the_definitions_say(
            series in prop::collection::vec(some_series(), 0..5),
            min_run_ms in 0u64..8_000,
            grace_ms in 0u64..8_000,
        ) {
            let rule = IdleRule { min_run_ms, grace_ms, ..RULE };
            let found = of(&series, &rule);
            prop_assert_eq!(found.in_time.is_some(), series.iter().any(|samples| samples.len() > 1));
            if let Some((time, (step_us, _))) = found.total().zip(found.in_time.as_ref()) {
                let (in_runs, after) = (time.in_runs_gpu_milli_us, time.reclaimable_gpu_milli_us);
                prop_assert_eq!((in_runs % 1000, after % 1000), (0, 0));
                let got = (u128::from(*step_us), time.runs, in_runs / 1000, after / 1000);
                prop_assert_eq!(got, naive(&series, &rule));
                prop_assert!(in_runs <= time.idle_gpu_milli_us);
                prop_assert!(time.idle_gpu_milli_us <= time.gpu_milli_us);
            }
        }
    }
}

//! Windows in which something was hardly busy.

use super::mean::BusyLevel;
use crate::device_time::Span;

/// What hardly busy is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LowRule {
    /// The mean is below this, in millionths of a percent.
    pub below_micro_percent: u32,
    /// For so long.
    pub window_ms: u64,
}

impl Default for LowRule {
    /// Below 30% for 6 hours: what FinOps practice queries for waste.
    fn default() -> Self {
        Self { below_micro_percent: 30_000_000, window_ms: 6 * 3_600_000 }
    }
}

/// How long something was hardly busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LowTime {
    /// The least mean of a window, cut off.
    pub lowest_micro_percent: u32,
    /// Time that lies in a window with a mean below the threshold, cut off to whole ms at each end.
    pub low_ms: u64,
}

/// Looks at every window in which the level is known throughout. `None` if no window's mean is
/// below the threshold. Levels ascend and do not overlap.
///
/// The sum over a window is linear between moments at which its begin or its end meets a change, so
/// these are all that has to be looked at, and where it crosses the threshold can be computed.
pub fn low_time(levels: &[BusyLevel], rule: &LowRule) -> Option<LowTime> {
    let mut found: Option<LowTime> = None;
    for run in known_runs(levels) {
        let Some(of_run) = low_in(&run, rule) else { continue };
        found = Some(found.map_or(of_run, |sum| LowTime {
            lowest_micro_percent: sum.lowest_micro_percent.min(of_run.lowest_micro_percent),
            low_ms: sum.low_ms + of_run.low_ms,
        }));
    }
    found
}

/// Stretches without a gap and without anything unknown, as spans with levels.
fn known_runs(levels: &[BusyLevel]) -> Vec<Vec<(Span, u64)>> {
    let mut runs: Vec<Vec<(Span, u64)>> = Vec::new();
    for level in levels.iter().filter(|level| level.span.from_ms < level.span.to_ms) {
        let Some(value) = level.micro_percent else {
            runs.push(Vec::new());
            continue;
        };
        let follows = |run: &Vec<(Span, u64)>| {
            run.last().is_none_or(|(span, _)| span.to_ms == level.span.from_ms)
        };
        match runs.last_mut().filter(|run| follows(run)) {
            Some(run) => run.push((level.span, u64::from(value))),
            None => runs.push(vec![(level.span, u64::from(value))]),
        }
    }
    runs.retain(|run| !run.is_empty());
    runs
}

fn low_in(run: &[(Span, u64)], rule: &LowRule) -> Option<LowTime> {
    let (from_ms, to_ms) = (run.first()?.0.from_ms, run.last()?.0.to_ms);
    let last_ms = to_ms.checked_sub(rule.window_ms).filter(|last_ms| *last_ms >= from_ms)?;
    let window = i128::from(rule.window_ms.max(1));
    let limit = i128::from(rule.below_micro_percent) * window;
    // Begins of windows at which the sum may bend.
    let mut begins: Vec<u64> = vec![from_ms, last_ms];
    for (span, _) in run {
        for at_ms in [Some(span.from_ms), span.from_ms.checked_sub(rule.window_ms)] {
            begins.extend(at_ms.filter(|at_ms| (from_ms..=last_ms).contains(at_ms)));
        }
    }
    begins.sort_unstable();
    begins.dedup();
    let sums = LevelSums::new(run);
    let excess = |at_ms: u64| sums.between(at_ms, at_ms + rule.window_ms) - limit;
    let mut low_ms = 0;
    let mut covered_ms = from_ms;
    let mut cover = |first_ms: u64, last_ms: u64| {
        let from_ms = first_ms.max(covered_ms);
        let to_ms = last_ms + rule.window_ms;
        low_ms += to_ms.saturating_sub(from_ms);
        covered_ms = covered_ms.max(to_ms);
    };
    let mut least = i128::MAX;
    let mut before: Option<(u64, i128)> = None;
    for at_ms in begins {
        let now = excess(at_ms);
        least = least.min(now);
        match before {
            Some((then_ms, then)) if then < 0 || now < 0 => {
                // Where the line between them is zero, inwards to whole ms that are below.
                let length = i128::from(at_ms - then_ms);
                let first = if then < 0 { 0 } else { then * length / (then - now) + 1 };
                let last =
                    if now < 0 { length } else { (-then * length - 1).max(0) / (now - then) };
                cover(then_ms + first as u64, then_ms + last as u64);
            }
            None if now < 0 => cover(at_ms, at_ms),
            _ => {}
        }
        before = Some((at_ms, now));
    }
    let lowest = u32::try_from((least + limit) / window).unwrap_or(u32::MAX);
    (least < 0).then_some(LowTime { lowest_micro_percent: lowest, low_ms })
}

/// Sums of levels × ms from the begin of a run.
struct LevelSums<'r> {
    run: &'r [(Span, u64)],
    before: Vec<i128>,
}

impl<'r> LevelSums<'r> {
    fn new(run: &'r [(Span, u64)]) -> Self {
        let mut sum = 0;
        let add = |(span, level): &(Span, u64)| {
            let before = sum;
            sum += i128::from(span.to_ms - span.from_ms) * i128::from(*level);
            before
        };
        Self { run, before: run.iter().map(add).collect() }
    }

    fn until(&self, at_ms: u64) -> i128 {
        let place = self.run.partition_point(|(span, _)| span.from_ms <= at_ms).saturating_sub(1);
        let (span, level) = self.run[place];
        let within = at_ms.min(span.to_ms).saturating_sub(span.from_ms);
        self.before[place] + i128::from(within) * i128::from(level)
    }

    fn between(&self, from_ms: u64, to_ms: u64) -> i128 {
        self.until(to_ms) - self.until(from_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dovetail_cases::cases;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(cases(256))]

        /// Every window that begins at a whole millisecond, summed up one millisecond after the
        /// other.
        #[test]
        fn it_is_what_looking_at_every_window_finds(
            parts in prop::collection::vec((prop::bool::weighted(0.2), 1u64..12, prop::option::weighted(0.9, 0u32..10)), 1..10),
            window_ms in 1u64..20,
            below in 1u32..9,
        ) {
            let mut at_ms = 100;
            let mut levels = Vec::new();
            for (has_gap, length, level) in parts {
                let gap = u64::from(has_gap);
                let span = Span { from_ms: at_ms + gap, to_ms: at_ms + gap + length };
                at_ms = span.to_ms;
                levels.push(BusyLevel { span, micro_percent: level });
            }
            let value = |ms: u64| {
                let holds =
                    |level: &&BusyLevel| (level.span.from_ms..level.span.to_ms).contains(&ms);
                levels.iter().find(holds).and_then(|level| level.micro_percent)
            };
            let mut low = std::collections::BTreeSet::new();
            let mut lowest = None;
            for from_ms in 90..300_u64 {
                let all: Option<Vec<u32>> = (from_ms..from_ms + window_ms).map(value).collect();
                let Some(all) = all else { continue };
                let sum: u64 = all.iter().map(|level| u64::from(*level)).sum();
                if sum < u64::from(below) * window_ms {
                    low.extend(from_ms..from_ms + window_ms);
                    let mean = sum / window_ms;
                    lowest = Some(lowest.unwrap_or(u64::MAX).min(mean));
                }
            }
            let rule = LowRule { below_micro_percent: below, window_ms };
            let found = low_time(&levels, &rule);
            prop_assert_eq!(found.map(|low| low.low_ms), lowest.map(|_| low.len() as u64));
            prop_assert_eq!(found.map(|low| u64::from(low.lowest_micro_percent)), lowest);
        }
    }
}

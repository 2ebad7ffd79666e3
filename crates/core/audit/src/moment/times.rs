//! What the GPUs of a node were over a span of time, by who had them: what a bill splits.

use std::collections::BTreeMap;

use dovetail_account::device_time::{DeviceState, Span};

use super::{Moment, Part};
use crate::facts::Facts;

/// Time in milli-GPU × ms, by the number of the pod that had it and by state.
pub type GpuTimes = BTreeMap<(Option<u32>, DeviceState), i128>;

/// The time of the parts of one node; `holder` has the number of a pod by its place in
/// [`Moment::held`].
pub fn gpu_times(
    parts: &[Part<'_>],
    span: Span,
    holder: impl Fn(usize) -> Option<u32>,
) -> GpuTimes {
    times_of(parts, holder, |part| part.over(span).collect())
}

/// The same as far as it can be taken for a span that is yet to come.
pub(super) fn expected_times(
    parts: &[Part<'_>],
    span: Span,
    holder: impl Fn(usize) -> Option<u32>,
) -> GpuTimes {
    times_of(parts, holder, |part| part.expected(span).collect())
}

fn times_of(
    parts: &[Part<'_>],
    holder: impl Fn(usize) -> Option<u32>,
    states: impl Fn(&Part<'_>) -> Vec<(DeviceState, Span)>,
) -> GpuTimes {
    let mut times = GpuTimes::new();
    for part in parts {
        let holder = part.held.and_then(&holder);
        for (state, span) in states(part) {
            let time = i128::from(part.gpu_milli) * i128::from(span.to_ms - span.from_ms);
            *times.entry((holder, state)).or_default() += time;
        }
    }
    times
}

/// The number of the pod of each holding. Pods have numbers in the order in which they hold, as
/// they have in a bill: among shares of equal size the first are rounded up.
pub(super) fn numbers_of_pods(facts: &Facts, moment: &Moment) -> Vec<u32> {
    let mut numbers: BTreeMap<(&str, &str), u32> = BTreeMap::new();
    let held = moment.held.iter().map(|held| {
        let namespace = &facts.workloads[held.workload].owner.namespace;
        let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
        *numbers.entry((namespace, &held.pod)).or_insert(next)
    });
    held.collect()
}

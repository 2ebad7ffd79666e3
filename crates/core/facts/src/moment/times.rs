//! What the GPUs of a node are taken for over a span of time, by who has them: what a bill splits.
//!
//! Here, and in [`Lasting`](super::Lasting), is the one rule of what may be extrapolated: the
//! audit, the bill and the answers about it follow it.

use std::collections::BTreeMap;

use dovetail_account::device_time::{DeviceState, Span};
use rustc_hash::FxHashMap;

use super::lasting::LEAST_MS;
use super::{Moment, NodePart};
use crate::cluster::Facts;
use crate::waste::PricedTime;

/// Time in milli-GPU × ms, by the number of the pod that had it and by state.
pub type GpuTimes = BTreeMap<(Option<u32>, DeviceState), i128>;

/// The time of the parts of one node over a span that is yet to come; `holder` has the number of a
/// pod by its place in [`Moment::held`]. The present is taken to last for an hour; of a longer span
/// only what goes on is known, and the rest is [`DeviceState::Unknown`] or free for an unknown
/// cause.
pub fn gpu_times(
    parts: &[NodePart<'_>],
    span: Span,
    holder: impl Fn(usize) -> Option<u32>,
) -> GpuTimes {
    match is_present(span) {
        true => present_times(parts, span, holder),
        false => times_of(parts, holder, |part| part.expected(span).collect()),
    }
}

/// Whether the present is taken to last for all of a span.
fn is_present(span: Span) -> bool {
    span.to_ms - span.from_ms <= LEAST_MS
}

/// The same as if the present lasted.
pub(super) fn present_times(
    parts: &[NodePart<'_>],
    span: Span,
    holder: impl Fn(usize) -> Option<u32>,
) -> GpuTimes {
    times_of(parts, holder, |part| part.over(span).collect())
}

/// A part of a node's GPUs whose state is too recent, or of a kind that ends by itself: nothing is
/// known of the month to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recent {
    /// Place in [`Moment::held`] of who holds it.
    pub held: Option<usize>,
    pub gpu_milli: i64,
    /// What it wasted until now.
    pub wasted: Option<(DeviceState, PricedTime)>,
}

/// What [`gpu_times`] leaves open of a span, of one node whose GPUs cost so much an hour.
pub fn recent(
    parts: &[NodePart<'_>],
    (span, now_ms): (Span, u64),
    usd_micros_per_gpu_hour: Option<i64>,
) -> Vec<Recent> {
    let of_part = |part: &NodePart<'_>| {
        let so_far = part.so_far(now_ms).filter(|(state, _)| state.is_waste());
        let wasted = so_far.map(|(state, span)| {
            let mut time = PricedTime::default();
            time.add_part(part.gpu_milli, span, usd_micros_per_gpu_hour);
            (state, time)
        });
        Recent { held: part.held, gpu_milli: part.gpu_milli, wasted }
    };
    let open = parts.iter().filter(|part| !part.lasting.goes_on && !is_present(span));
    open.map(of_part).collect()
}

fn times_of(
    parts: &[NodePart<'_>],
    holder: impl Fn(usize) -> Option<u32>,
    states: impl Fn(&NodePart<'_>) -> Vec<(DeviceState, Span)>,
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
    let mut numbers: FxHashMap<(&str, &str), u32> = FxHashMap::default();
    let held = moment.held.iter().map(|held| {
        let namespace = &facts.workloads[held.workload].owner.namespace;
        let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
        *numbers.entry((namespace, &held.pod)).or_insert(next)
    });
    held.collect()
}

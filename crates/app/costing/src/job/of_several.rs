//! GPUs that several pods have: for whom one computed nobody knows, and its job is not told to have
//! done it.

use dovetail_account::device_time::Span;
use dovetail_account::signal::UnknownReason;
use dovetail_metrics::exporter::DeviceHolder;
use dovetail_metrics::job::{DeviceHolding, Grid};
use dovetail_phases::job_phases::DeviceSample;

/// When the device of a holding computed for one of several pods that had it, as the bill has it.
pub(crate) fn for_any_holder(holding: &DeviceHolding<'_>, holders: &[DeviceHolder]) -> Vec<Span> {
    let is_ours = |number: u32| {
        let holder = holders.get(number as usize);
        holder.is_some_and(|holder| {
            holder.namespace == holding.namespace && holder.pod == holding.pod
        })
    };
    let of_pod = holding.device.history.holdings.iter().filter(|time| is_ours(time.holder));
    let segments = of_pod.flat_map(|time| &time.activity);
    let shared = segments.filter(|part| part.verdict.reason == Some(UnknownReason::SharedDevice));
    let within = shared.map(|part| Span {
        from_ms: part.from_ms.max(holding.held.from_ms),
        to_ms: part.to_ms.min(holding.held.to_ms),
    });
    within.filter(|span| span.from_ms < span.to_ms).collect()
}

/// Marks samples of these spans: what the device did in them is not known to be the pod's.
pub fn mark(samples: &mut [DeviceSample], grid: Grid, spans: &[Span]) {
    let step_ms = grid.step_ms.max(1);
    let place = |at_ms: u64| {
        let place = at_ms.saturating_sub(grid.from_ms) / step_ms;
        usize::try_from(place).unwrap_or(usize::MAX).min(samples.len())
    };
    let places: Vec<(usize, usize)> = spans
        .iter()
        .map(|span| (place(span.from_ms), place(span.to_ms.saturating_add(step_ms - 1))))
        .collect();
    for (from, to) in places {
        samples[from..to].iter_mut().for_each(|sample| sample.is_of_several = true);
    }
}

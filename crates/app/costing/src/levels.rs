//! How busy the GPUs of pods were, from the series of exporters.

use std::collections::BTreeMap;

use dovetail_account::device_time::{DeviceHistory, DeviceInterval, Span, device_intervals};
use dovetail_account::signal::UnknownReason;
use dovetail_account::utilisation::BusyLevel;
use dovetail_metrics::exporter::ObservedTime;
use dovetail_store::{ReadUsed, USED_SLOT_MS};

use anyhow::Result;

use crate::from_prometheus::{Machine, Pods};

/// Levels of what one holder has of a device in an interval, without gaps; and whether some of it
/// is unknown because several pods share the device.
pub(crate) fn levels(history: &DeviceHistory, interval: &DeviceInterval) -> (Vec<BusyLevel>, bool) {
    let holdings = history.holdings.iter().filter(|of| Some(of.holder) == interval.holder);
    let (mut levels, mut is_shared) = (Vec::new(), false);
    let mut at_ms = interval.span.from_ms;
    for segment in holdings.flat_map(|holding| &holding.activity) {
        let from_ms = segment.from_ms.max(at_ms);
        let to_ms = segment.to_ms.min(interval.span.to_ms);
        if from_ms >= to_ms {
            continue;
        }
        if from_ms > at_ms {
            let span = Span { from_ms: at_ms, to_ms: from_ms };
            levels.push(BusyLevel { span, micro_percent: None });
        }
        is_shared |= segment.verdict.reason == Some(UnknownReason::SharedDevice);
        let micro_percent = segment.verdict.intensity_micro_percent;
        levels.push(BusyLevel { span: Span { from_ms, to_ms }, micro_percent });
        at_ms = to_ms;
    }
    if at_ms < interval.span.to_ms {
        let span = Span { from_ms: at_ms, to_ms: interval.span.to_ms };
        levels.push(BusyLevel { span, micro_percent: None });
    }
    (levels, is_shared)
}

/// What a ledger keeps of it: measured and used time by node, pod and slot.
pub(crate) fn used(
    time: &ObservedTime,
    period: Span,
    machines: &[Machine],
    pods: &mut Pods<'_>,
) -> Result<Vec<ReadUsed>> {
    /// All of a device.
    const FULL: i128 = 100_000_000;
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for machine in machines {
        let next = places.len();
        places.entry(machine.name.as_str()).or_insert(next);
    }
    let mut sums: BTreeMap<(usize, u32, u64), (i64, i128)> = BTreeMap::new();
    for device in &time.devices {
        let Some(node) = places.get(device.node.as_str()) else { continue };
        for interval in device_intervals(&device.history, period)? {
            let holder = interval.holder.and_then(|number| time.holders.get(number as usize));
            let Some(holder) = holder else { continue };
            let pod = pods.number(&holder.namespace, &holder.pod, holder.turn);
            for BusyLevel { span, micro_percent } in levels(&device.history, &interval).0 {
                let Some(level) = micro_percent else { continue };
                let mut from_ms = span.from_ms;
                while from_ms < span.to_ms {
                    let slot_ms = from_ms / USED_SLOT_MS * USED_SLOT_MS;
                    let to_ms = span.to_ms.min(slot_ms + USED_SLOT_MS);
                    let time = interval.gpu_milli * (to_ms - from_ms).cast_signed();
                    let sum = sums.entry((*node, pod, slot_ms)).or_default();
                    sum.0 += time;
                    sum.1 += i128::from(time) * i128::from(level);
                    from_ms = to_ms;
                }
            }
        }
    }
    let read =
        |((node, pod, slot_ms), (measured, busy)): ((usize, u32, u64), (i64, i128))| ReadUsed {
            node,
            pod: pod as usize,
            slot_ms,
            measured_gpu_milli_ms: measured,
            used_gpu_milli_ms: i64::try_from(busy / FULL).unwrap_or(i64::MAX),
        };
    Ok(sums.into_iter().map(read).collect())
}

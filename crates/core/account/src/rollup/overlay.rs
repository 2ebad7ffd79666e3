//! A device read again.

use crate::device_time::{DeviceInterval, Span, joined};

/// What a device was, by an earlier and a later reading. Within `seen`, the time in which the later
/// reading saw the device, the later one counts alone; outside of it the earlier one. Joined where
/// nothing changes but the time, in one order, so that the same history gives the same list however
/// it was cut.
pub fn overlay(
    before: &[DeviceInterval],
    later: &[DeviceInterval],
    seen: Span,
) -> Vec<DeviceInterval> {
    let start = Span { from_ms: 0, to_ms: seen.from_ms };
    let end = Span { from_ms: seen.to_ms, to_ms: u64::MAX };
    let kept = before.iter().flat_map(|interval| {
        // Nothing was seen: nothing is replaced.
        let parts = if seen.from_ms < seen.to_ms {
            [within(interval, start), within(interval, end)]
        } else {
            [Some(*interval), None]
        };
        parts.into_iter().flatten()
    });
    joined(kept.chain(later.iter().filter_map(|interval| within(interval, seen))).collect())
}

/// The part of an interval that lies in a span.
fn within(interval: &DeviceInterval, span: Span) -> Option<DeviceInterval> {
    let from_ms = interval.span.from_ms.max(span.from_ms);
    let to_ms = interval.span.to_ms.min(span.to_ms);
    (from_ms < to_ms).then_some(DeviceInterval { span: Span { from_ms, to_ms }, ..*interval })
}

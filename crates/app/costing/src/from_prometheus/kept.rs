//! What pods kept of CPU and memory, from kube-state-metrics.

use dovetail_account::cost::HeldTime;
use dovetail_account::device_time::Span;
use dovetail_metrics::kube_state::{PodSum, kept_over};
use dovetail_sources::prometheus::Asker;

/// Asks what pods kept of CPU and memory in a span, and hands over each pod with its time. `false`,
/// and a note, where the server does not answer; what came before has been handed over.
pub fn ask_kept(
    asker: &mut Asker,
    span: Span,
    notes: &mut Vec<String>,
    mut take: impl FnMut(&PodSum, HeldTime),
) -> bool {
    let window_ms = span.to_ms - span.from_ms;
    let step_ms = asker.step_ms.min(window_ms);
    for resource in ["cpu", "memory"] {
        let query = kept_over(resource, window_ms, step_ms);
        let series = match asker.instant(&query, span.to_ms.saturating_sub(1)) {
            Ok(series) => series,
            Err(error) => {
                notes.push(format!("allocations of {resource} could not be read: {error}"));
                return false;
            }
        };
        for kept in PodSum::read(series) {
            take(&kept, time(resource, kept.sum, step_ms));
        }
    }
    true
}

/// A sum over steps as amount × time.
fn time(resource: &str, sum: f64, step_ms: u64) -> HeldTime {
    let time = |scale: f64| ((sum * scale * step_ms as f64) as i128).min(i128::MAX >> 40);
    match resource {
        "cpu" => HeldTime { cpu_milli_ms: time(1000.0), memory_byte_ms: 0 },
        _ => HeldTime { cpu_milli_ms: 0, memory_byte_ms: time(1.0) },
    }
}

/// More of the same.
pub fn add(held: &mut HeldTime, more: HeldTime) {
    held.cpu_milli_ms += more.cpu_milli_ms;
    held.memory_byte_ms += more.memory_byte_ms;
}

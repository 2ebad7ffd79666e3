//! What the GPUs of pods did, from whatever answers Prometheus' query API.

use std::collections::BTreeMap;

use anyhow::Result;
use dovetail_account::device_time::HoldingTime;
use dovetail_account::signal::{Activity, ActivitySegment, ActivityVerdict};
use dovetail_console::app::App;
use dovetail_console::plain::plain;
use dovetail_facts::{GpuUse, UsagePeriod, UsesOfPods};
use dovetail_inventory::facts::Gathered;
use dovetail_metrics::exporter::ObservedTime;

use crate::own_time::OwnTime;
use crate::placement::{Placements, misplaced_in_words};
use crate::prometheus::Asker;
use crate::uses::Uses;
use crate::{hangs, serving};

/// Asks a server about the asker's period, which ends when the objects were read, and notes on the
/// workloads what it knows of them beside: requests, and time in which they hung.
///
/// # Errors
/// A server that does not answer, or answers with something else.
pub fn read(app: &App, asker: &mut Asker, gathered: &mut Gathered) -> Result<Uses> {
    asker.end_by(gathered.facts.now_ms)?;
    let mut seen = asker.observe()?;
    let source = asker.client.server().to_owned();
    let left_out = OwnTime::of(gathered, 0).keep_time(&mut seen.time, &source);
    let placements = Placements::of(Some(gathered), None);
    let misplaced = seen.time.distrust(|node, holder, held| placements.doubt(node, holder, held));
    misplaced_in_words(&misplaced).iter().for_each(|text| app.note(text));
    let mut notes = Vec::new();
    hangs::mark(asker, &seen, gathered, &mut notes);
    serving::mark(asker, gathered, &mut notes);
    notes.iter().for_each(|text| app.note(&plain(text)));
    asker.tell_warnings(app);
    let time = seen.time;
    let period = UsagePeriod { span: asker.period, step_ms: asker.step_ms };
    if time.devices.is_empty() {
        app.note(&format!("{source} has no GPU exporter series in this period"));
    }
    let mut of_pods = of_pods(&time, period.span.to_ms);
    for one in misplaced {
        let key = (one.holder.namespace, one.holder.pod);
        let used = GpuUse {
            gpu: format!("{} of {}", one.device, one.node),
            unknown_ms: one.held.to_ms - one.held.from_ms,
            ..GpuUse::default()
        };
        of_pods.entry(key).or_default().push(used.misplaced());
    }
    Ok(Uses { period, of_pods, series: Vec::new(), source, left_out })
}

/// What each pod's devices did until the end of the period.
pub fn of_pods(time: &ObservedTime, end_ms: u64) -> UsesOfPods {
    let mut uses = UsesOfPods::new();
    for device in &time.devices {
        // A pod may have held the device in several stretches, or a slice of it.
        let mut of_holder: BTreeMap<u32, Vec<&HoldingTime>> = BTreeMap::new();
        for holding in &device.history.holdings {
            of_holder.entry(holding.holder).or_default().push(holding);
        }
        for (holder, mut stretches) in of_holder {
            let Some(holder) = time.holders.get(holder as usize) else { continue };
            stretches.sort_by_key(|holding| holding.held.from_ms);
            let segments = joined(&stretches, end_ms);
            let key = (holder.namespace.clone(), holder.pod.clone());
            let used = GpuUse::of_segments(device.device.clone(), &segments);
            uses.entry(key).or_default().push(used);
        }
    }
    uses
}

/// All stretches with what lies between them, and behind them until the end of the period: nobody
/// knows.
fn joined(stretches: &[&HoldingTime], end_ms: u64) -> Vec<ActivitySegment> {
    let unknown = |from_ms, to_ms| ActivitySegment {
        from_ms,
        to_ms,
        verdict: ActivityVerdict {
            activity: Activity::Unknown,
            signal: None,
            intensity_micro_percent: None,
            reason: None,
        },
    };
    let mut all: Vec<ActivitySegment> = Vec::new();
    let mut at_ms = stretches.first().map_or(end_ms, |first| first.held.from_ms);
    for segment in stretches.iter().flat_map(|holding| &holding.activity) {
        if segment.from_ms > at_ms {
            all.push(unknown(at_ms, segment.from_ms));
        }
        // Two slices of one device at one time count once.
        if segment.to_ms > at_ms {
            let from_ms = segment.from_ms.max(at_ms);
            all.push(ActivitySegment { from_ms, ..*segment });
            at_ms = segment.to_ms;
        }
    }
    if at_ms < end_ms {
        all.push(unknown(at_ms, end_ms));
    }
    all
}

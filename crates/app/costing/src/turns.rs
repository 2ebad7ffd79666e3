//! Nodes whose name went to another machine, in a ledger: it keeps a node by its name and hour, so
//! an hour has the facts of the machine that had the name when it ended.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_account::device_time::Span;
use dovetail_account::rollup::HOUR_MS;
use dovetail_store::{ReadDevice, ReadNode, Reading};

use super::from_prometheus::Machine;

/// What a node was in the hours before one.
#[derive(Clone, Debug)]
pub struct Turn {
    /// Place of the node in the reading.
    node: usize,
    /// Begin of the hour in which the next machine got the name.
    until_ms: u64,
    before: ReadNode,
}

impl Turn {
    /// Nodes of a reading, each as its last machine, and what they were before. `read` has what
    /// each machine is; those of one name stand beside each other, ascending in time.
    pub fn of(read: Vec<ReadNode>, machines: &[Machine]) -> (Vec<ReadNode>, Vec<Self>) {
        let mut nodes: Vec<ReadNode> = Vec::new();
        let mut turns = Vec::new();
        for (node, machine) in read.into_iter().zip(machines) {
            let number = nodes.len();
            match nodes.last_mut() {
                Some(last) if last.name == node.name => {
                    let until_ms = machine.span.from_ms / HOUR_MS * HOUR_MS;
                    let before = std::mem::replace(last, node);
                    turns.push(Self { node: number - 1, until_ms, before });
                }
                _ => nodes.push(node),
            }
        }
        (nodes, turns)
    }
}

/// A reading in parts, in each of which every node is one machine.
pub(crate) fn in_parts(reading: Reading, turns: &[Turn]) -> Vec<Reading> {
    if turns.is_empty() {
        return vec![reading];
    }
    let Span { from_ms, to_ms } = reading.span;
    let cuts: BTreeSet<u64> = turns.iter().map(|turn| turn.until_ms).collect();
    let cuts = cuts.range(from_ms + 1..to_ms.max(from_ms + 1)).copied();
    let mut ends: Vec<u64> = cuts.collect();
    ends.push(to_ms);
    let mut begin_ms = from_ms;
    let part = |end_ms: u64| {
        let span = Span { from_ms: begin_ms, to_ms: end_ms };
        begin_ms = end_ms;
        part_of(&reading, turns, span)
    };
    ends.into_iter().map(part).collect()
}

fn part_of(reading: &Reading, turns: &[Turn], span: Span) -> Reading {
    let mut nodes = reading.nodes.clone();
    // The first machine that still had the name when the part ended.
    let mut of_part: BTreeMap<usize, &Turn> = BTreeMap::new();
    for turn in turns.iter().filter(|turn| turn.until_ms >= span.to_ms) {
        let first = of_part.entry(turn.node).or_insert(turn);
        if turn.until_ms < first.until_ms {
            *first = turn;
        }
    }
    for (node, turn) in of_part {
        nodes[node] = turn.before.clone();
    }
    let is_whole = |hour_ms: u64| (span.from_ms / HOUR_MS * HOUR_MS..span.to_ms).contains(&hour_ms);
    let kept = reading
        .kept
        .as_ref()
        .map(|kept| kept.iter().copied().filter(|kept| is_whole(kept.hour_ms)).collect());
    let mut free = reading.free.clone();
    free.iter_mut().for_each(|free| {
        free.look.span.to_ms = free.look.span.to_ms.min(span.to_ms);
    });
    free.retain(|free| free.look.span.from_ms < free.look.span.to_ms);
    let devices = reading.devices.iter().map(|device| clipped(device, span));
    Reading {
        cluster: reading.cluster.clone(),
        source: reading.source.clone(),
        span,
        step_ms: reading.step_ms,
        nodes,
        pods: reading.pods.clone(),
        devices: devices.filter(|device| !device.intervals.is_empty()).collect(),
        kept,
        free,
        used: reading
            .used
            .iter()
            .filter(|used| {
                (span.from_ms..span.to_ms).contains(&used.slot_ms.max(reading.span.from_ms))
            })
            .copied()
            .collect(),
    }
}

/// A device within a span.
pub(crate) fn clipped(device: &ReadDevice, span: Span) -> ReadDevice {
    let mut device = device.clone();
    for interval in &mut device.intervals {
        interval.span.from_ms = interval.span.from_ms.max(span.from_ms);
        interval.span.to_ms = interval.span.to_ms.min(span.to_ms);
    }
    device.intervals.retain(|interval| interval.span.from_ms < interval.span.to_ms);
    device
}

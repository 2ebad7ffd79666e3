//! What mending a finding brings: money, where a node can then go or waiting work then fits, else
//! GPU-hours that somebody has to use.
//!
//! It is decided for all findings together, as they are mended together: a node can go once nothing
//! holds it that no finding explains and no pod has moved there, and waiting work takes room once.
//! What somebody ignores is not mended.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_account::device_time::DeviceState;
use dovetail_facts::{DeviceStates, DeviceWaste, Facts, Moment, PricedTime};
use dovetail_model::FreeCause;

use super::amounts::Times;
use super::moved::Moved;
use super::room::Freed;
use super::starting::{Starting, Takes};
use crate::attribution::Taken;
use crate::catalogue::Worth;
use crate::finding::Finding;

/// What mending one finding brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Brought {
    /// Money if any part of what it claims comes back at once.
    pub worth: Worth,
    /// That part.
    pub returned: PricedTime,
    /// What of it leaves the bill, with nodes that can go; pending pods take the rest.
    pub removed: PricedTime,
    /// Returned with nodes that can go.
    pub(super) gone_gpu_milli_ms: i128,
    /// The part of it that was held.
    pub(super) left_gpu_milli_ms: i128,
    /// Was free, and waiting work takes it.
    pub(super) filled_gpu_milli_ms: i128,
}

impl Brought {
    fn nothing_yet(finding: &Finding) -> Self {
        Self {
            worth: finding.check.worth,
            returned: PricedTime::default(),
            removed: PricedTime::default(),
            gone_gpu_milli_ms: 0,
            left_gpu_milli_ms: 0,
            filled_gpu_milli_ms: 0,
        }
    }
}

/// What mending brings.
pub(super) struct AllBrought {
    /// In the order of the findings.
    pub(super) of_findings: Vec<Brought>,
    /// All that is returned, by place of the node and state.
    pub(super) returned: Times,
}

/// What each finding brings.
pub(super) fn brought(
    facts: &Facts,
    moment: &Moment,
    states: &DeviceStates,
    findings: &[Finding],
    taken: &[Taken],
) -> AllBrought {
    let mut brought: Vec<Brought> = findings.iter().map(Brought::nothing_yet).collect();
    let mended = taken.iter().filter(|taken| is_mended(&findings[taken.finding]));
    let mended: Vec<&Taken> = mended.collect();
    let node_of = |waste: &DeviceWaste| states.node_of[waste.device as usize];
    let unexplained = unexplained(states, &mended);
    let freed = freed(states, &mended, &unexplained);
    let mut starting = Starting::new(facts, moment, &freed);
    let mut opened = opened(moment, states, &mended, &mut starting);
    let needed = opened.keys().map(|(_, node)| *node).chain(wanted_nodes(states, &mended));
    let needed: BTreeSet<usize> = needed.collect();
    let mut room = room(&freed, &mut starting);
    let mut all_returned = Times::new();
    let stays = stays(facts, findings);
    // Pending pods get a node that they need, and it stays.
    let is_kept = |node: usize| needed.contains(&node) || stays.contains(&*moment.nodes[node].node);
    let moving = findings.iter().enumerate().filter(|(_, finding)| is_mended(finding));
    let moved = Moved::of(moving, moment, |node| unexplained.is_empty(node), is_kept);
    for taken in mended {
        let waste = &taken.waste;
        let (node, holder) = (node_of(waste), waste.interval.holder);
        let of = &mut brought[taken.finding];
        let time = waste.time();
        let name = &moment.nodes[node].node;
        // The engine checked all of them together: the node goes, what it held stays held.
        let is_verified = moved.is_by(taken.finding, name);
        let is_reused = moved.is_host(name) || holder.is_some() && moved.is_left(name);
        let goes = unexplained.is_empty(node) && !is_kept(node) && !is_reused;
        let wanted = wanted_by_pending_pods(waste);
        let is_wanted = holder.is_none() && wanted > 0;
        let is_removed = is_verified || goes && !is_wanted;
        let returned = if is_verified {
            of.gone_gpu_milli_ms += time;
            time
        } else if is_wanted {
            of.filled_gpu_milli_ms += wanted;
            wanted
        } else if let (None, Some(left)) = (holder, opened.get_mut(&(taken.finding, node))) {
            let time = time.min(*left);
            *left -= time;
            of.filled_gpu_milli_ms += time;
            time
        } else if goes {
            of.gone_gpu_milli_ms += time;
            of.left_gpu_milli_ms += if holder.is_some() { time } else { 0 };
            time
        } else if freed.contains_key(&(holder, node)) && !is_reused {
            let left = room.entry(node).or_default();
            let time = time.min(*left);
            *left -= time;
            time
        } else {
            0
        };
        of.returned.add_time(returned, waste.usd_micros_per_gpu_hour);
        if is_removed {
            of.removed.add_time(returned, waste.usd_micros_per_gpu_hour);
        }
        *all_returned.entry((node, waste.interval.state)).or_default() += returned;
    }
    settle_worth(&mut brought, findings);
    AllBrought { of_findings: brought, returned: all_returned }
}

/// Whether a finding is fixed and wasted time ends by that.
fn is_mended(finding: &Finding) -> bool {
    finding.suppressed.is_none() && finding.check.worth != Worth::Risk && !finding.is_undone
}

/// Money if any part of a claim comes back at once.
fn settle_worth(brought: &mut [Brought], findings: &[Finding]) {
    for (of, finding) in brought.iter_mut().zip(findings) {
        of.worth = match of.returned.gpu_milli_ms {
            0 => finding.check.worth,
            _ => Worth::Returned,
        };
    }
}

/// What pending pods take of nodes that accept none now, by the finding whose fix lets them in and
/// place of the node: one finding after the other, beside what starts without any fix.
fn opened<'m>(
    moment: &'m Moment,
    states: &DeviceStates,
    mended: &[&Taken],
    starting: &mut Starting<'m>,
) -> BTreeMap<(usize, usize), i128> {
    let mut closed: BTreeMap<usize, BTreeSet<&'m str>> = BTreeMap::new();
    for taken in mended.iter().filter(|taken| taken.waste.interval.holder.is_none()) {
        let node = &*moment.nodes[states.node_of[taken.waste.device as usize]].node;
        if starting.is_closed(node) {
            closed.entry(taken.finding).or_default().insert(node);
        }
    }
    let mut opened = BTreeMap::new();
    for (finding, nodes) in closed {
        let takes: Takes = starting.open(&nodes);
        opened.extend(takes.into_iter().map(|(node, time)| ((finding, node), time)));
    }
    opened
}

/// What pending pods take of what holders leave, by place of the node.
fn room(freed: &Freed, starting: &mut Starting<'_>) -> Takes {
    let mut room = starting.leave();
    let mut left = Takes::new();
    for ((_, node), time) in freed {
        *left.entry(*node).or_default() += time;
    }
    for (node, room) in &mut room {
        *room = (*room).min(left.get(node).copied().unwrap_or(0));
    }
    room
}

/// Nodes that stay on the bill: pods cannot leave them, or they are paid for in advance.
fn stays<'f>(facts: &'f Facts, findings: &'f [Finding]) -> BTreeSet<&'f str> {
    let prepaid = facts.nodes.iter().filter(|node| node.is_prepaid);
    let prepaid = prepaid.map(|node| &*node.node.name);
    prepaid.chain(findings.iter().flat_map(|finding| &finding.stays).map(String::as_str)).collect()
}

/// Nodes of which pending pods would use a free part, at once or with other nodes or moves beside.
fn wanted_nodes(states: &DeviceStates, mended: &[&Taken]) -> BTreeSet<usize> {
    let is_of_demand = |waste: &&DeviceWaste| match waste.interval.state {
        DeviceState::Free(Some(cause)) => cause.is_of_demand(),
        _ => false,
    };
    let wanted = mended.iter().map(|taken| &taken.waste).filter(is_of_demand);
    wanted.map(|waste| states.node_of[waste.device as usize]).collect()
}

/// Free time that waiting work would use, were the cause out of its way; else nothing. Pieces that
/// are too small, and gangs that lack nodes, need other pods to move, or more nodes.
fn wanted_by_pending_pods(waste: &DeviceWaste) -> i128 {
    let is_at_once = |cause: FreeCause| {
        cause.is_of_demand() && !matches!(cause, FreeCause::Fragmented | FreeCause::GangShort)
    };
    match waste.interval.state {
        DeviceState::Free(Some(cause)) if is_at_once(cause) => waste.time(),
        _ => 0,
    }
}

/// Held time that no mended finding explains.
#[derive(Default)]
struct Unexplained {
    nodes: BTreeMap<usize, i128>,
    devices: BTreeMap<(Option<u32>, u32), i128>,
}

impl Unexplained {
    fn is_empty(&self, node: usize) -> bool {
        self.nodes.get(&node).is_none_or(|left| *left == 0)
    }
}

fn unexplained(states: &DeviceStates, mended: &[&Taken]) -> Unexplained {
    let mut left = Unexplained::default();
    let mut add = |waste: &DeviceWaste, sign: i128| {
        if waste.interval.state.is_allocated() {
            let time = sign * waste.time();
            let node = states.node_of[waste.device as usize];
            *left.nodes.entry(node).or_default() += time;
            *left.devices.entry((waste.interval.holder, waste.device)).or_default() += time;
        }
    };
    states.intervals.iter().for_each(|waste| add(waste, 1));
    // Who starts or waits for the rest of its gang stays: mended, it computes sooner.
    let leaves = |taken: &&&Taken| taken.waste.interval.state == DeviceState::Idle;
    mended.iter().filter(leaves).for_each(|taken| add(&taken.waste, -1));
    left
}

/// How much of each node a holder would leave altogether: devices of which every moment is
/// explained.
fn freed(states: &DeviceStates, mended: &[&Taken], left: &Unexplained) -> Freed {
    let mut freed = Freed::new();
    for taken in mended {
        let (waste, holder) = (&taken.waste, taken.waste.interval.holder);
        if holder.is_some() && left.devices.get(&(holder, waste.device)) == Some(&0) {
            let node = states.node_of[waste.device as usize];
            *freed.entry((holder, node)).or_default() += waste.time();
        }
    }
    freed
}

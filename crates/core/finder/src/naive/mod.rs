//! The naive judge: the same answers as the index, by looking at everything each time.
//!
//! It keeps nothing between questions. Free amounts are added up from the holdings, device states
//! are replayed from an empty node, rules are counted pod by pod. It is slow on purpose and lives
//! here so that a test can hold every decision of the index against it.

mod preferences;
mod room;
mod rules;
mod volumes;

use std::collections::BTreeMap;

use dovetail_model::{
    ConditionCause, Node, NodeAvailability, NodeId, Requirement, RuleCause, Taint, TaintEffect,
};

use crate::finder::Finder;
use dovetail_policy::random::RandomSequence;
use dovetail_policy::{Pick, Policy, whole_score};
use dovetail_state::State;
use dovetail_state::cause::{CAUSES, Cause, CauseCounts};
use dovetail_state::device::cell::DeviceCell;
use dovetail_state::device::choice::{self, LOST};
use dovetail_state::scope::Scope;
use dovetail_state::shapes::ShapeId;

/// Answers by exhaustive search.
#[derive(Debug, Default)]
pub struct Naive {
    random: RandomSequence,
}

/// A node with what is free on it, added up from its holdings.
pub(crate) struct FreeOnNode<'s> {
    pub(crate) node: &'s Node,
    pub(crate) cpu_milli: i64,
    pub(crate) memory_bytes: i64,
    pub(crate) ephemeral_bytes: i64,
    pub(crate) pod_slots: i64,
    pub(crate) extended: BTreeMap<u32, i64>,
    /// Device cells by index.
    pub(crate) cells: Vec<u32>,
    pub(crate) devices_overcommitted: bool,
}

impl Finder for Naive {
    fn best(
        &mut self,
        state: &mut State,
        policy: &mut dyn Policy,
        shape: ShapeId,
        scope: Scope,
    ) -> Option<NodeId> {
        let mut fitting: Vec<NodeId> = members(state, scope)
            .into_iter()
            .filter(|node| obstacle(state, shape, *node) == Cause::None)
            .collect();
        fitting.sort_by_key(|node| state.nodes.hot(*node).rank);
        if fitting.is_empty() {
            return None;
        }
        if let (Pick::Random { seed }, true) = (policy.pick(), !matches!(scope, Scope::Node(_))) {
            return Some(fitting[self.random.below(seed, fitting.len())]);
        }
        let mut best = None;
        for node in fitting {
            let requirement = std::sync::Arc::clone(&state.shapes.get(shape).requirement);
            let points = preferences::points(state, &requirement, node);
            let score = whole_score(policy, state, shape, points, node);
            if best.is_none_or(|(highest, _)| score > highest) {
                best = Some((score, node));
            }
        }
        best.map(|(_, node)| node)
    }

    fn room(&mut self, state: &mut State, shape: ShapeId, scope: Scope) -> u64 {
        members(state, scope).into_iter().map(|node| room::of(state, shape, node)).sum()
    }

    fn obstacles(
        &mut self,
        state: &mut State,
        _policy: &mut dyn Policy,
        shape: ShapeId,
    ) -> CauseCounts {
        let mut counts = [0; CAUSES];
        for node in members(state, Scope::Everywhere) {
            counts[obstacle(state, shape, node) as usize] += 1;
        }
        counts
    }

    fn draws(&self) -> u64 {
        self.random.drawn
    }

    fn set_draws(&mut self, draws: u64) {
        self.random.drawn = draws;
    }
}

fn members(state: &State, scope: Scope) -> Vec<NodeId> {
    let path_of = |node: &Node| -> Vec<String> {
        let labels = state.topology.levels.iter().map(|level| node.labels.get(&level.label));
        labels.take_while(Option::is_some).flatten().cloned().collect()
    };
    let inside = |slot: NodeId, node: &Node| match scope {
        Scope::Everywhere => true,
        Scope::Node(only) => only == slot,
        Scope::Domain(domain) => path_of(node).starts_with(state.domains.name(domain)),
    };
    state.nodes.present().filter(|(slot, node)| inside(*slot, node)).map(|(slot, _)| slot).collect()
}

/// The first thing that keeps a pod off a node.
pub(crate) fn obstacle(state: &State, shape: ShapeId, slot: NodeId) -> Cause {
    let requirement = &state.shapes.get(shape).requirement;
    let free = FreeOnNode::of(state, slot);
    let broken = |causes: &[RuleCause]| rules::broken(state, requirement, causes, slot);
    let lacks = |cause| !conditions_hold(requirement, free.node, cause);
    let steps: [&dyn Fn() -> Option<Cause>; 20] = [
        &|| early_obstacle(requirement, free.node),
        &|| broken(&[RuleCause::HostPort]),
        &|| Some(free.obstacle(state, shape)).filter(|cause| *cause != Cause::None),
        &|| broken(&[RuleCause::DiskConflict]),
        &|| broken(&[RuleCause::ReadWriteOncePod]),
        &|| lacks(ConditionCause::VolumeDriver).then_some(Cause::VolumeDriver),
        &|| volumes::exceed(state, requirement, slot).then_some(Cause::VolumeLimit),
        &|| lacks(ConditionCause::VolumeNodeAffinity).then_some(Cause::VolumeNodeAffinity),
        &|| lacks(ConditionCause::StorageTopology).then_some(Cause::StorageTopology),
        &|| lacks(ConditionCause::StorageCapacity).then_some(Cause::StorageCapacity),
        &|| lacks(ConditionCause::VolumeZone).then_some(Cause::VolumeZone),
        &|| broken(&[RuleCause::Spread]),
        &|| broken(&[RuleCause::Affinity]),
        &|| broken(&[RuleCause::AntiAffinity]),
        &|| broken(&[RuleCause::ExistingAntiAffinity]),
        &|| broken(&[RuleCause::DeviceClaims]),
        &|| broken(&[RuleCause::SharedGpus]),
        &|| lacks(ConditionCause::DeviceClaims).then_some(Cause::DeviceClaims),
        &|| lacks(ConditionCause::DeclaredFeatures).then_some(Cause::DeclaredFeatures),
        &|| lacks(ConditionCause::SharedGpus).then_some(Cause::SharedGpus),
    ];
    steps.iter().find_map(|step| step()).unwrap_or(Cause::None)
}

/// Condition, name, taints and node affinity.
fn early_obstacle(requirement: &Requirement, node: &Node) -> Option<Cause> {
    match node.condition {
        NodeAvailability::NotReady => return Some(Cause::NotReady),
        NodeAvailability::Starting => return Some(Cause::Starting),
        NodeAvailability::Cordoned => return Some(Cause::Cordoned),
        NodeAvailability::Ready => {}
    }
    if !named(requirement, node) {
        return Some(Cause::NodeName);
    }
    let mark = Taint {
        key: dovetail_model::node::UNSCHEDULABLE.to_owned(),
        value: String::new(),
        effect: TaintEffect::NoSchedule,
    };
    if node.unschedulable && !tolerated(requirement, &mark) {
        return Some(Cause::Unschedulable);
    }
    if !node.taints.iter().all(|taint| tolerated(requirement, taint)) {
        return Some(Cause::Taint);
    }
    let selected = conditions_hold(requirement, node, ConditionCause::NodeAffinity);
    (!selected).then_some(Cause::NodeAffinity)
}

fn named(requirement: &Requirement, node: &Node) -> bool {
    requirement.node_names.is_empty() || requirement.node_names.iter().any(|n| **n == *node.name)
}

fn tolerated(requirement: &Requirement, taint: &Taint) -> bool {
    taint.effect == TaintEffect::PreferNoSchedule
        || requirement.tolerations.iter().any(|toleration| toleration.accepts(taint))
}

/// Whether a node satisfies the conditions that come from there.
fn conditions_hold(requirement: &Requirement, node: &Node, cause: ConditionCause) -> bool {
    for condition in &requirement.node_conditions {
        if condition.cause != cause {
            continue;
        }
        let mut any = false;
        for terms in &condition.any_of {
            let mut all = true;
            for term in terms {
                all &= term.accepts(label(node, &term.key));
            }
            any |= all;
        }
        if !any {
            return false;
        }
    }
    true
}

/// The node's labels, and those that every node has without carrying them.
fn label<'n>(node: &'n Node, key: &str) -> Option<&'n str> {
    match key {
        "metadata.name" => Some(&*node.name),
        dovetail_model::node::CLUSTER_LABEL => Some(""),
        _ => node.labels.get(key).map(String::as_str),
    }
}

/// Whether more is asked than there is; who asks for nothing gets it, however little there is.
pub(crate) fn beyond(asked: i64, left: i64) -> bool {
    asked != 0 && asked > left
}

impl<'s> FreeOnNode<'s> {
    pub(crate) fn of(state: &'s State, slot: NodeId) -> Self {
        let cold = state.nodes.cold(slot);
        let node: &Node = &cold.node;
        let mut free = Self {
            node,
            cpu_milli: node.allocatable.cpu_milli,
            memory_bytes: node.allocatable.memory_bytes,
            ephemeral_bytes: node.allocatable.ephemeral_bytes,
            pod_slots: node.allocatable.pod_slots,
            extended: BTreeMap::new(),
            cells: cold.cells.clone(),
            devices_overcommitted: false,
        };
        for (name, amount) in &node.allocatable.extended {
            if let Some(number) = state.names.extended.find(name) {
                *free.extended.entry(number).or_default() += amount;
            }
        }
        for (_, record) in state.holdings.iter().filter(|(_, record)| record.node == slot) {
            free.cpu_milli -= record.amounts.cpu_milli;
            free.memory_bytes -= record.amounts.memory_bytes;
            free.ephemeral_bytes -= record.amounts.ephemeral_bytes;
            free.pod_slots -= record.amounts.pod_slots;
            for (name, amount) in &record.amounts.extended {
                *free.extended.entry(*name).or_default() -= amount;
            }
        }
        free.devices_overcommitted = free.has_overcommitted_devices(state, slot);
        free
    }

    /// Replays the holdings on empty devices and compares with the cells the state keeps.
    fn has_overcommitted_devices(&self, state: &State, slot: NodeId) -> bool {
        let mut cells: BTreeMap<u16, DeviceCell> = BTreeMap::new();
        for (index, number) in self.cells.iter().enumerate().filter(|(_, n)| **n != LOST) {
            let kind = state.devices.cell(*number).kind;
            let empty =
                DeviceCell::empty(kind, state.devices.kind(kind), &state.devices.mig_tables);
            cells.insert(index as u16, empty);
        }
        let mut lost = false;
        let mut records: Vec<_> = state.holdings.iter().collect();
        records.retain(|(_, record)| record.node == slot);
        for (index, amount) in records.iter().flat_map(|(_, record)| &record.devices) {
            match cells.get_mut(index) {
                Some(cell) => *cell = cell.hold(amount),
                None => lost = true,
            }
        }
        for (index, cell) in &cells {
            let kept = state.devices.cell(self.cells[usize::from(*index)]);
            assert_eq!(kept, cell, "device {index} of node {}", self.node.name);
        }
        lost || cells.values().any(|cell| {
            cell.compute_left_milli < 0
                || cell.memory_left_bytes < 0
                || cell.replicas_left < 0
                || cell.compute_slices_left < 0
                || cell.counters_left.iter().any(|left| *left < 0)
        })
    }

    fn obstacle(&self, state: &State, shape: ShapeId) -> Cause {
        let demand = &state.shapes.get(shape).demand;
        let need = state.devices.need(demand.need);
        let asked = &demand.amounts;
        let wants_device = need.request != dovetail_state::device::need::InternedRequest::None;
        let kinds = self.cells.iter().filter(|number| **number != LOST);
        let right_kind = kinds
            .map(|number| state.devices.kind(state.devices.cell(*number).kind))
            .any(|kind| need.accepts_kind(kind));
        let left = |name: &u32| self.extended.get(name).copied().unwrap_or(0);
        let checks = [
            (wants_device && self.devices_overcommitted, Cause::Overcommitted),
            (wants_device && !right_kind, Cause::Model),
            (beyond(asked.pod_slots, self.pod_slots), Cause::PodSlots),
            (beyond(asked.cpu_milli, self.cpu_milli), Cause::Cpu),
            (beyond(asked.memory_bytes, self.memory_bytes), Cause::Memory),
            (beyond(asked.ephemeral_bytes, self.ephemeral_bytes), Cause::Ephemeral),
            (asked.extended.iter().any(|(n, amount)| beyond(*amount, left(n))), Cause::Extended),
            (choice::choose(need, &self.cells, &state.devices).is_none(), Cause::Device),
        ];
        checks.iter().find(|(fails, _)| *fails).map_or(Cause::None, |(_, cause)| *cause)
    }
}

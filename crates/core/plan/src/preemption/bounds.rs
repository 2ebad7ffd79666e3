//! Bounds that prove, before any search, that a gang does not fit whoever goes.

use std::collections::BTreeSet;

use dovetail_model::device::WHOLE_DEVICE_MILLI;
use dovetail_model::{DeviceAmount, DeviceRequest, HoldingId, HoldingPhase, NodeId, Owner};

use super::prey::Prey;
use crate::engine::{NodeSearch, Placement};
use crate::gang::Gang;
use dovetail_policy::Pick;
use dovetail_state::State;
use dovetail_state::device::need::InternedRequest;
use dovetail_state::holdings::HoldingRecord;
use dovetail_state::scope::Scope;
use dovetail_state::shapes::ShapeId;

/// Whether the nodes, of each domain that the gang could be in, take fewer pods than it has even if
/// everybody goes who may. Never wrong when it says yes. A gang of one pod is not looked at: the
/// search does that as fast.
pub(super) fn is_refuted(gang: &Gang, prey: &Prey<'_>, state: &mut State) -> bool {
    let pods = gang.min_pods();
    if pods < 2 {
        return false;
    }
    let domains = match gang.required {
        None => vec![Scope::Everywhere],
        Some(depth) => Scope::Everywhere.domains(state, depth),
    };
    !domains.into_iter().any(|domain| {
        let nodes = domain.nodes(state);
        gang.sets.iter().all(|set| {
            let mut room = 0_u32;
            nodes.iter().any(|node| {
                room = room.saturating_add(most_pods(set.shape, *node, prey, state));
                room >= set.min
            }) || set.min == 0
        })
    })
}

/// Whether a gang that does not fit might if these holdings were gone: the nodes on which they are
/// are asked how much they would have then. Never wrong when it says no. The exhaustive search does
/// not ask, nor do gangs for which random numbers are drawn before one of their pods does not fit.
pub(crate) fn might_fit_without(
    gang: &Gang,
    gone: &[HoldingId],
    placement: &mut Placement,
) -> bool {
    let Placement { state, policy, finder, .. } = placement;
    let NodeSearch::Indexed(_) = finder else { return true };
    let only = gang.only_pod();
    if only.is_none() && !matches!(policy.pick(), Pick::Best) {
        return true;
    }
    let nodes: BTreeSet<NodeId> = gone.iter().map(|id| state.holdings.get(*id).node).collect();
    let gone: BTreeSet<HoldingId> = gone.iter().copied().collect();
    gang.sets.iter().filter(|set| set.min > 0).all(|set| {
        let demand = &state.shapes.get(set.shape).demand;
        // How many slices a GPU has room for depends on which start each of them gets.
        let is_slice =
            matches!(state.devices.need(demand.need).request, InternedRequest::Slice { .. });
        if !demand.is_plain() || only.is_none() && is_slice {
            return true;
        }
        let mut room = match only {
            Some(_) => 0,
            None => finder.finder().room(state, set.shape, Scope::Everywhere),
        };
        let mut is_enough = |more: u32| {
            room = room.saturating_add(u64::from(more));
            room >= u64::from(set.min)
        };
        is_enough(0)
            || nodes.iter().any(|node| {
                let left = left_without(set.shape, *node, state, |id, _| gone.contains(&id));
                is_enough(left.map_or(0, |left| left.pods(set.shape, state)))
            })
    })
}

/// The most pods of a shape that a node takes if everybody goes who may.
fn most_pods(shape: ShapeId, node: NodeId, prey: &Prey<'_>, state: &mut State) -> u32 {
    let left = left_without(shape, node, state, |_, record| may_go(prey, record));
    left.map_or(0, |left| left.pods(shape, state))
}

/// What a node has for pods, counted rather high.
#[derive(Clone, Copy, Debug)]
pub(super) struct NodeLeft {
    cpu_milli: i64,
    memory_bytes: i64,
    devices: i64,
}

/// What a node has for pods of a shape when these holdings are gone; `None` if it takes none
/// whoever goes.
pub(super) fn left_without(
    shape: ShapeId,
    node: NodeId,
    state: &mut State,
    goes: impl Fn(HoldingId, &HoldingRecord) -> bool,
) -> Option<NodeLeft> {
    let demand = state.shapes.get(shape).demand.clone();
    // What nobody's going changes.
    let obstacle = demand.obstacle_aside_rules(state, node);
    if obstacle.outlasts_everybody() || !state.nodes.hot(node).is_present() {
        return None;
    }
    let (cold, hot) = (state.nodes.cold(node), state.nodes.hot(node));
    let mut left = NodeLeft {
        cpu_milli: hot.cpu_left_milli,
        memory_bytes: hot.memory_left_bytes,
        devices: cold.node.devices.len() as i64,
    };
    for id in &cold.holdings {
        let record = state.holdings.get(*id);
        if goes(*id, record) {
            left.cpu_milli += record.amounts.cpu_milli;
            left.memory_bytes += record.amounts.memory_bytes;
        } else {
            left.devices -= whole_devices(record);
        }
    }
    Some(left)
}

impl NodeLeft {
    /// Something that was counted as gone stays.
    pub(super) fn without(&mut self, record: &HoldingRecord) {
        self.cpu_milli -= record.amounts.cpu_milli;
        self.memory_bytes -= record.amounts.memory_bytes;
        self.devices -= whole_devices(record);
    }

    /// At most so many pods of a shape.
    pub(super) fn pods(&self, shape: ShapeId, state: &State) -> u32 {
        let shape = state.shapes.get(shape);
        let times = |left: i64, asked: i64| match asked > 0 {
            true => u32::try_from((left / asked).max(0)).unwrap_or(u32::MAX),
            false => u32::MAX,
        };
        let by_devices = match &shape.requirement.device {
            DeviceRequest::Whole { count, .. } => times(self.devices, i64::from(*count)),
            _ => u32::MAX,
        };
        let by_cpu = times(self.cpu_milli, shape.demand.amounts.cpu_milli);
        let by_memory = times(self.memory_bytes, shape.demand.amounts.memory_bytes);
        by_devices.min(by_cpu).min(by_memory)
    }
}

fn whole_devices(record: &HoldingRecord) -> i64 {
    let is_whole = |amount: &DeviceAmount| amount.compute_milli == WHOLE_DEVICE_MILLI;
    record.devices.iter().filter(|(_, amount)| is_whole(amount)).count() as i64
}

fn may_go(prey: &Prey<'_>, record: &HoldingRecord) -> bool {
    match &record.owner {
        _ if matches!(record.phase, HoldingPhase::Releasing { .. }) => true,
        Owner::Pod(pod) => prey.may_stop(pod.job).is_some(),
        Owner::Foreign(_) => false,
        Owner::Reservation => true,
    }
}

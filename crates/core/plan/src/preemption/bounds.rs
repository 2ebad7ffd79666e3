//! Bounds that prove, before any search, that a gang does not fit whoever goes.

use dovetail_model::device::WHOLE_DEVICE_MILLI;
use dovetail_model::{DeviceAmount, DeviceRequest, HoldingPhase, NodeId, Owner};

use super::prey::Prey;
use crate::gang::Gang;
use dovetail_state::State;
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

/// The most pods of a shape that a node takes if everybody goes who may.
fn most_pods(shape: ShapeId, node: NodeId, prey: &Prey<'_>, state: &mut State) -> u32 {
    let demand = state.shapes.get(shape).demand.clone();
    // What nobody's going changes.
    let obstacle = demand.obstacle_aside_rules(state, node);
    if obstacle.outlasts_everybody() || !state.nodes.hot(node).is_present() {
        return 0;
    }
    let (cold, hot) = (state.nodes.cold(node), state.nodes.hot(node));
    let (mut cpu_milli, mut memory_bytes) = (hot.cpu_left_milli, hot.memory_left_bytes);
    let mut devices = cold.node.devices.len();
    for record in cold.holdings.iter().map(|id| state.holdings.get(*id)) {
        if may_go(prey, record) {
            cpu_milli += record.amounts.cpu_milli;
            memory_bytes += record.amounts.memory_bytes;
        } else {
            let is_whole = |amount: &DeviceAmount| amount.compute_milli == WHOLE_DEVICE_MILLI;
            let whole = record.devices.iter().filter(|(_, amount)| is_whole(amount)).count();
            devices = devices.saturating_sub(whole);
        }
    }
    let times = |left: i64, asked: i64| match asked > 0 {
        true => u32::try_from((left / asked).max(0)).unwrap_or(u32::MAX),
        false => u32::MAX,
    };
    let by_devices = match &state.shapes.get(shape).requirement.device {
        DeviceRequest::Whole { count, .. } => times(devices as i64, i64::from(*count)),
        _ => u32::MAX,
    };
    let by_cpu = times(cpu_milli, demand.amounts.cpu_milli);
    by_devices.min(by_cpu).min(times(memory_bytes, demand.amounts.memory_bytes))
}

fn may_go(prey: &Prey<'_>, record: &HoldingRecord) -> bool {
    match &record.owner {
        _ if matches!(record.phase, HoldingPhase::Releasing { .. }) => true,
        Owner::Pod(pod) => prey.may_stop(pod.job).is_some(),
        Owner::Foreign(_) => false,
        Owner::Reservation => true,
    }
}

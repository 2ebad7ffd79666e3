//! Everything that one step of the placement check has against a node, as kube-scheduler lists it.

use std::sync::Arc;

use dovetail_model::Requirement;
use serde::Serialize;

use crate::engine::Questions;
use dovetail_state::State;
use dovetail_state::cause::Cause;
use dovetail_state::device::table::DeviceFit;
use dovetail_state::shapes::Demand;

/// One thing that keeps a pod off a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refusal {
    pub cause: Cause,
    /// Name of the extended resource, for [`Cause::Extended`].
    pub resource: Option<String>,
}

impl Questions<'_> {
    /// What keeps one more such pod off a node at this moment: empty if it fits, `None` if there is
    /// no such node. The first entry is what placement stops at. Where kube-scheduler names several
    /// reasons of the same filter (amounts; volumes that are bound, and those that are to be), the
    /// others of it follow.
    pub fn refusals(&mut self, pod: &Arc<Requirement>, node: &str) -> Option<Vec<Refusal>> {
        let state = &mut self.books.placement.state;
        let slot = state.nodes.find(node)?;
        let shape = state.intern_shape(pod);
        let demand = state.shapes.get(shape).demand.clone();
        let first = demand.obstacle(state, slot);
        let more = match first {
            Cause::None => return Some(Vec::new()),
            Cause::Overcommitted
            | Cause::Model
            | Cause::PodSlots
            | Cause::Cpu
            | Cause::Memory
            | Cause::Ephemeral
            | Cause::Extended
            | Cause::Device => short(state, &demand, slot),
            Cause::VolumeNodeAffinity | Cause::StorageTopology => {
                let hot = *state.nodes.hot(slot);
                let masks = &mut state.masks;
                let verdict = masks.verdict(demand.mask, slot, hot.static_version, &state.nodes);
                let of_claims = |cause: &Cause| {
                    matches!(cause, Cause::StorageTopology | Cause::StorageCapacity)
                };
                verdict.late().find(of_claims).map(Refusal::of).into_iter().collect()
            }
            _ => Vec::new(),
        };
        let named = more.iter().any(|refusal| refusal.cause == first);
        let first = (!named).then(|| Refusal::of(first));
        Some(first.into_iter().chain(more).collect())
    }
}

impl Refusal {
    fn of(cause: Cause) -> Self {
        Self { cause, resource: None }
    }
}

/// Every amount that the demand asks for and the node has too little of.
fn short(state: &mut State, demand: &Demand, node: dovetail_model::NodeId) -> Vec<Refusal> {
    let devices = state.devices.fit(demand.need, state.nodes.hot(node).set);
    let (hot, cold, asked) = (state.nodes.hot(node), state.nodes.cold(node), &demand.amounts);
    let plain = [
        (i64::from(hot.slots_left), asked.pod_slots, Cause::PodSlots),
        (hot.cpu_left_milli, asked.cpu_milli, Cause::Cpu),
        (hot.memory_left_bytes, asked.memory_bytes, Cause::Memory),
        (cold.ephemeral_left_bytes, asked.ephemeral_bytes, Cause::Ephemeral),
    ];
    let is_short = |left: i64, asked: i64| asked > 0 && left < asked;
    let plain = plain.into_iter().filter(|(left, asked, _)| is_short(*left, *asked));
    let mut short: Vec<Refusal> = plain.map(|(.., cause)| Refusal::of(cause)).collect();
    for (name, asked) in &asked.extended {
        if is_short(cold.extended_left(*name), *asked) {
            let resource = Some(state.names.extended.get(*name).clone());
            short.push(Refusal { cause: Cause::Extended, resource });
        }
    }
    short.extend(match devices {
        DeviceFit::WrongKind => Some(Refusal::of(Cause::Model)),
        DeviceFit::Pods(0) => Some(Refusal::of(Cause::Device)),
        DeviceFit::Pods(_) => None,
    });
    short
}

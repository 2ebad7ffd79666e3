//! What keeps a pod off a node, for whoever accounts for capacity: the engine's own placement
//! check, asked shape by shape.

use dovetail_model::NodeId;

use super::Engine;
use dovetail_state::cause::Cause;
use dovetail_state::device::need::InternedRequest;
use dovetail_state::device::slices;
use dovetail_state::device::table::DeviceFit;
use dovetail_state::log::Cursor;
use dovetail_state::rules::RuleVerdicts;
use dovetail_state::shapes::{Demand, ShapeId};

/// A shape made ready for many questions of the same moment.
#[derive(Clone, Debug)]
pub struct PodProbe {
    demand: Demand,
    verdicts: RuleVerdicts,
    seen: Option<(Cursor, u64)>,
}

impl PodProbe {
    /// Questions about a shape.
    pub fn new(engine: &Engine, shape: ShapeId) -> Self {
        let demand = engine.books.placement.state.shapes.get(shape).demand.clone();
        Self { demand, verdicts: RuleVerdicts::default(), seen: None }
    }

    /// Looks at spread and affinity again; true if earlier answers may be void on any node. Answers
    /// otherwise change only on nodes that [`super::supply::Supply::changed_nodes`] names.
    pub fn refresh(&mut self, engine: &Engine) -> bool {
        let state = &engine.books.placement.state;
        let here = (state.log.end(), state.nodes.static_versions());
        if self.demand.rules.is_empty() || self.seen == Some(here) {
            return false;
        }
        let known = self.seen.filter(|(_, versions)| *versions == here.1);
        let moved = known.and_then(|(cursor, _)| state.log.moved_since(cursor));
        self.seen = Some(here);
        let mut moves = false;
        self.verdicts.refresh(&self.demand.rules, &state.counters, moved, |_, _| moves = true);
        moves
    }

    /// The first thing that keeps a pod off a node in the order of an account: the node itself
    /// (condition, name, taint, every kind of label), model, rules, other amounts and
    /// over-commitment, devices.
    ///
    /// Placement looks at the same things in another order, which only matters where several are
    /// short.
    pub fn obstacle(&self, engine: &mut Engine, node: NodeId) -> Cause {
        let (state, demand) = (&mut engine.books.placement.state, &self.demand);
        let hot = *state.nodes.hot(node);
        if !hot.is_present() {
            return Cause::NotReady;
        }
        let verdict = state.masks.verdict(demand.mask, node, hot.static_version, &state.nodes);
        let by_node = Some(verdict.early).filter(|cause| *cause != Cause::None);
        if let Some(cause) = by_node.or_else(|| verdict.late().next()) {
            return cause;
        }
        if state.devices.fit(demand.need, hot.set) == DeviceFit::WrongKind {
            return Cause::Model;
        }
        let broken = state.counters.obstacle(&demand.rules, &demand.rules, node);
        if broken != Cause::None {
            return broken;
        }
        // A node with too few devices is not short of what would stand beside them: more of that
        // would not help.
        let lacks_devices = state.devices.fit(demand.need, hot.set) == DeviceFit::Pods(0);
        let short = |left: i64, asked: i64| left < asked && asked > 0;
        match demand.obstacle_aside_rules(state, node) {
            Cause::Overcommitted
            | Cause::PodSlots
            | Cause::Cpu
            | Cause::Memory
            | Cause::Ephemeral
            | Cause::Extended
                if lacks_devices =>
            {
                Cause::Device
            }
            Cause::Overcommitted | Cause::PodSlots
                if short(hot.cpu_left_milli, demand.amounts.cpu_milli) =>
            {
                Cause::Cpu
            }
            Cause::Overcommitted | Cause::PodSlots
                if short(hot.memory_left_bytes, demand.amounts.memory_bytes) =>
            {
                Cause::Memory
            }
            cause => cause,
        }
    }

    /// Whether a device in this state could give (part of) what a pod asks of devices:
    /// [`Cause::Model`] if it is of the wrong kind, [`Cause::Device`] if too little is free, else
    /// [`Cause::None`].
    pub fn device_obstacle(&self, engine: &Engine, device: u32) -> Cause {
        let table = &engine.books.placement.state.devices;
        let need = table.need(self.demand.need);
        let cell = table.cell(device);
        let kind = table.kind(cell.kind);
        if !need.accepts_kind(kind) {
            return Cause::Model;
        }
        let gives = match &need.request {
            InternedRequest::Slice { profile } => {
                slices::best_slice(profile, cell, kind, &table.mig_tables, slices::alike).is_some()
            }
            _ => need.fits_cell(cell, kind),
        };
        if gives { Cause::None } else { Cause::Device }
    }
}

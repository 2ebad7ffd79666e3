//! Where pending jobs start as findings are fixed one after the other: the engine is asked, and a
//! job that has started takes nothing else.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_facts::{Facts, MONTH_MS, Moment, PendingDemand, devices_by_node};
use dovetail_model::{Event, Holding, Node, NodeAvailability, Owner};

use super::room::{Freed, leaving, units_milli};
use crate::health::repair_marks;
use crate::trial::Changing;

/// Keys of taints that Kubernetes sets by the state of a node.
const OF_STATES: &str = "node.kubernetes.io/";

/// Time that pending jobs take, in milli-GPU × ms of a month, by place of the node.
pub(super) type Takes = BTreeMap<usize, i128>;

/// The cluster as findings are fixed one after the other.
pub(super) struct Starting<'m> {
    facts: &'m Facts,
    moment: &'m Moment,
    worlds: Vec<StartScenario<'m>>,
}

impl<'m> Starting<'m> {
    /// The cluster as it is: what starts without any fix has started. `freed` is what holders leave
    /// once everything else is fixed.
    pub(super) fn new(facts: &'m Facts, moment: &'m Moment, freed: &Freed) -> Self {
        let pending = moment.demand.iter().filter(|demand| !demand.world.jobs.is_empty());
        let worlds = pending.filter_map(|demand| StartScenario::new(facts, moment, freed, demand));
        Self { facts, moment, worlds: worlds.collect() }
    }

    /// Whether a node accepts no pods, so that pending ones may need it.
    pub(super) fn is_closed(&self, node: &str) -> bool {
        self.worlds.iter().any(|world| world.closed.contains_key(node))
    }

    /// Lets nodes accept pods; answers with what pending jobs then take there.
    pub(super) fn open(&mut self, nodes: &BTreeSet<&'m str>) -> Takes {
        let open = |world: &mut StartScenario<'m>| {
            let opened = nodes.iter().filter_map(|node| world.closed.remove(node));
            let events: Vec<Event> =
                opened.map(|node| Event::NodeChanged(Box::new(node))).collect();
            let mut started = world.step(events);
            started.retain(|node, _| nodes.contains(&**node));
            (world.demand, started)
        };
        let started: Vec<_> = self.worlds.iter_mut().map(open).collect();
        self.takes(started)
    }

    /// Lets holders leave what findings free; answers with what pending jobs then take.
    pub(super) fn leave(&mut self) -> Takes {
        let leave = |world: &mut StartScenario<'m>| {
            let events = std::mem::take(&mut world.leaving);
            (world.demand, world.step(events))
        };
        let started: Vec<_> = self.worlds.iter_mut().map(leave).collect();
        self.takes(started)
    }

    /// Units that pending jobs got, by node, as time of GPUs.
    fn takes(&self, started: Vec<(&PendingDemand, BTreeMap<String, i64>)>) -> Takes {
        let mut takes = Takes::new();
        for (demand, units) in started.iter().filter(|(_, units)| !units.is_empty()) {
            for (place, node) in self.moment.nodes.iter().enumerate() {
                let Some(count) = units.get(&node.node) else { continue };
                let milli = units_milli(self.facts, node, &demand.resource, *count);
                *takes.entry(place).or_default() += i128::from(milli) * i128::from(MONTH_MS);
            }
        }
        takes
    }
}

/// What pending jobs of one resource do.
struct StartScenario<'m> {
    demand: &'m PendingDemand,
    changing: Changing,
    /// Nodes that accept no pods, as they are once they do.
    closed: BTreeMap<&'m str, Node>,
    /// What happens as holders leave.
    leaving: Vec<Event>,
}

impl<'m> StartScenario<'m> {
    /// `None` if no fix changes what starts, or if the engine does not take the world: then nothing
    /// is known of it.
    fn new(
        facts: &Facts,
        moment: &Moment,
        freed: &Freed,
        demand: &'m PendingDemand,
    ) -> Option<Self> {
        let world = &demand.world;
        // Nodes that are cordoned for a repair are offered to no pod before it.
        let repaired = facts
            .nodes
            .iter()
            .filter(|node| node.cordoned_since_ms.is_some() && !repair_marks(node).is_empty());
        let repaired: BTreeSet<&str> = repaired.map(|node| &*node.node.name).collect();
        let closed = world.nodes.iter().filter(|node| !repaired.contains(&*node.name));
        let closed: BTreeMap<&str, Node> =
            closed.filter_map(|node| Some((&*node.name, opened(node)?))).collect();
        let left = leaving(facts, moment, freed, world);
        if closed.is_empty() && left.is_empty() {
            return None;
        }
        let stays = |holding: &Holding| {
            let Owner::Foreign(name) = &holding.owner else { return holding.devices.len() };
            let left = left.get(&(name.clone(), holding.node.to_string()));
            let left = left.map_or(0, |units| usize::try_from(*units).unwrap_or(0));
            holding.devices.len().saturating_sub(left)
        };
        let changing = Changing::once_left(world, stays)?;
        let changed =
            world.holdings.iter().filter(|holding| stays(holding) < holding.devices.len());
        let leaving = changed.map(|holding| without(holding, stays(holding))).collect();
        Some(Self { demand, changing, closed, leaving })
    }

    /// Units that newly started jobs get, by node.
    fn step(&mut self, events: Vec<Event>) -> BTreeMap<String, i64> {
        match events.is_empty() {
            true => BTreeMap::new(),
            false => devices_by_node(&self.changing.after(events)),
        }
    }
}

/// A node that is cordoned or not ready, as it is once it accepts pods.
fn opened(node: &Node) -> Option<Node> {
    if !node.unschedulable && node.condition == NodeAvailability::Ready {
        return None;
    }
    let mut node = node.clone();
    (node.unschedulable, node.condition) = (false, NodeAvailability::Ready);
    node.taints.retain(|taint| !taint.key.starts_with(OF_STATES));
    Some(node)
}

/// That a pod leaves all of its devices but the first ones; one that leaves all of them is gone.
fn without(holding: &Holding, stays: usize) -> Event {
    match &holding.owner {
        Owner::Foreign(name) if stays == 0 => Event::ForeignReleased { name: name.clone() },
        _ => {
            let mut holding = holding.clone();
            holding.devices.truncate(stays);
            Event::ForeignHeld(Box::new(holding))
        }
    }
}

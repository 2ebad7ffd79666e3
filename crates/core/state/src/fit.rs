//! Whether a pod fits on a node, and what keeps it off.

use dovetail_model::NodeId;

use crate::State;
use crate::cause::Cause;
use crate::device::need::InternedRequest;
use crate::device::table::DeviceFit;
use crate::holdings::Amounts;
use crate::masks::MaskVerdict;
use crate::nodes::{Hot, Nodes};
use crate::shapes::{Demand, Rule, ShapeId};

impl Demand {
    /// The first thing that keeps a pod off a node; [`Cause::None`] if it fits.
    #[inline]
    pub fn obstacle(&self, state: &mut State, node: NodeId) -> Cause {
        self.first_obstacle(state, &self.rules, node)
    }

    /// As [`Demand::obstacle`], as if it had no rules.
    pub fn obstacle_aside_rules(&self, state: &mut State, node: NodeId) -> Cause {
        self.first_obstacle(state, &[], node)
    }

    #[inline]
    fn first_obstacle(&self, state: &mut State, rules: &[Rule], node: NodeId) -> Cause {
        let hot = *state.nodes.hot(node);
        if !hot.is_present() {
            return Cause::NotReady;
        }
        let verdict = state.masks.verdict(self.mask, node, hot.static_version, &state.nodes);
        if verdict.early != Cause::None {
            return verdict.early;
        }
        match self.is_plain() && verdict.is_late_clear() {
            true => self.lack_of_amounts(state, &hot, node),
            false => self.rare_obstacle(state, rules, verdict, &hot, node),
        }
    }

    /// Amounts with all that is looked at before and behind them.
    fn rare_obstacle(
        &self,
        state: &mut State,
        rules: &[Rule],
        verdict: MaskVerdict,
        hot: &Hot,
        node: NodeId,
    ) -> Cause {
        let up_to = |cause: Cause| rules.partition_point(|rule| rule.cause <= cause);
        let (ports, volumes) = (up_to(Cause::HostPort), up_to(Cause::ReadWriteOncePod));
        let broken = |state: &State, some: &[Rule]| {
            state.counters.obstacle(some, &self.rules, node).into_option()
        };
        let first = broken(state, &rules[..ports])
            .or_else(|| self.lack_of_amounts(state, hot, node).into_option())
            .or_else(|| broken(state, &rules[ports..volumes]))
            .or_else(|| self.volume_obstacle(state, verdict, node))
            .or_else(|| broken(state, &rules[volumes..]))
            .or_else(|| verdict.late().next());
        first.unwrap_or(Cause::None)
    }

    /// What volumes, their drivers and their limits have against the node.
    fn volume_obstacle(&self, state: &State, verdict: MaskVerdict, node: NodeId) -> Option<Cause> {
        let is_of_volumes = |cause: &Cause| *cause < Cause::SpreadLabel;
        let first = verdict.late().find(is_of_volumes);
        let attached = &state.nodes.cold(node).attached;
        match first {
            Some(Cause::VolumeDriver) => first,
            _ if attached.allows(&self.attachments, &state.names.limit_of) => first,
            _ => Some(Cause::VolumeLimit),
        }
    }

    /// What the node has too little of.
    #[inline]
    fn lack_of_amounts(&self, state: &mut State, hot: &Hot, node: NodeId) -> Cause {
        let amounts = &self.amounts;
        if hot.overcommitted && state.devices.need(self.need).request != InternedRequest::None {
            return Cause::Overcommitted;
        }
        let fit = state.devices.fit(self.need, hot.set);
        if fit == DeviceFit::WrongKind {
            return Cause::Model;
        }
        // Of what it does not ask for there may be less than nothing left.
        let short = |left: i64, asked: i64| left < asked && asked > 0;
        if short(i64::from(hot.slots_left), amounts.pod_slots) {
            return Cause::PodSlots;
        }
        if short(hot.cpu_left_milli, amounts.cpu_milli) {
            return Cause::Cpu;
        }
        if short(hot.memory_left_bytes, amounts.memory_bytes) {
            return Cause::Memory;
        }
        if amounts.ephemeral_bytes > 0
            && state.nodes.cold(node).ephemeral_left_bytes < amounts.ephemeral_bytes
        {
            return Cause::Ephemeral;
        }
        let lacks = |(name, amount): &(u32, i64)| {
            short(state.nodes.cold(node).extended_left(*name), *amount)
        };
        if amounts.extended.iter().any(lacks) {
            return Cause::Extended;
        }
        if fit == DeviceFit::Pods(0) {
            return Cause::Device;
        }
        Cause::None
    }

    /// How many such pods the node could take one after another, rules aside.
    fn capacity(&self, state: &mut State, node: NodeId) -> u32 {
        if self.obstacle_aside_rules(state, node) != Cause::None {
            return 0;
        }
        let room = times_left(&state.nodes, &self.amounts, node);
        match state.devices.fit(self.need, state.nodes.hot(node).set) {
            DeviceFit::WrongKind => 0,
            DeviceFit::Pods(pods) => room.min(i64::from(pods)) as u32,
        }
    }
}

/// How many times the node has these amounts left, at most `u32::MAX`; devices and rules aside.
pub fn times_left(nodes: &Nodes, amounts: &Amounts, node: NodeId) -> i64 {
    let (hot, cold) = (nodes.hot(node), nodes.cold(node));
    let pairs = [
        (hot.cpu_left_milli, amounts.cpu_milli),
        (hot.memory_left_bytes, amounts.memory_bytes),
        (cold.ephemeral_left_bytes, amounts.ephemeral_bytes),
        (i64::from(hot.slots_left), amounts.pod_slots),
    ];
    let extended =
        amounts.extended.iter().map(|(name, amount)| (cold.extended_left(*name), *amount));
    let asked = pairs.into_iter().chain(extended).filter(|(_, asked)| *asked > 0);
    asked.map(|(left, asked)| left / asked).min().unwrap_or(i64::MAX).min(i64::from(u32::MAX))
}

impl ShapeId {
    /// Whether a node has too little left of CPU, memory or devices, at a glance; never wrong when
    /// it says so.
    pub fn plainly_lacks(self, state: &mut State, node: NodeId) -> bool {
        let demand = &state.shapes.get(self).demand;
        let (need, amounts) = (demand.need, &demand.amounts);
        let hot = state.nodes.hot(node);
        let short = |left: i64, asked: i64| left < asked && asked > 0;
        !hot.is_present()
            || short(hot.cpu_left_milli, amounts.cpu_milli)
            || short(hot.memory_left_bytes, amounts.memory_bytes)
            || matches!(state.devices.fit(need, hot.set), DeviceFit::WrongKind | DeviceFit::Pods(0))
    }

    /// Whether one such pod fits on a node, rules included, judged from scratch.
    pub fn fits(self, state: &mut State, node: NodeId) -> bool {
        let demand = state.shapes.get(self).demand.clone();
        demand.obstacle(state, node) == Cause::None
    }

    /// How many such pods a node could take, rules aside.
    pub fn capacity(self, state: &mut State, node: NodeId) -> u64 {
        let demand = state.shapes.get(self).demand.clone();
        u64::from(demand.capacity(state, node))
    }
}

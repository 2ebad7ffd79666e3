//! Whether a pod fits on a node, and what keeps it off.

use dovetail_model::{NodeId, RuleKind};
use smallvec::SmallVec;

use crate::cause::Cause;
use crate::device::table::DeviceFit;
use crate::state::State;
use crate::state::counters::Counters;
use crate::state::shapes::{Demand, Rule};

/// What the rules of a demand allow at this moment, per label value; see [`RuleVerdicts::of`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RuleVerdicts {
    per_rule: SmallVec<[Vec<bool>; 1]>,
}

impl RuleVerdicts {
    /// Judges every value of every rule's label.
    ///
    /// `eligible[r][v]` is the number of nodes with value `v` that the demand's labels and names allow;
    /// only such values count for the emptiest domain of a spread rule.
    pub(crate) fn of(rules: &[Rule], counters: &Counters, eligible: &[Vec<u32>]) -> Self {
        let judge = |(rule, eligible): (&Rule, &Vec<u32>)| {
            let counter = counters.get(rule.counter);
            let values = counters.key_of(rule.counter).values();
            let own = i64::from(rule.counts_itself);
            let emptiest = (0..values as u32)
                .filter(|value| eligible.get(*value as usize).is_some_and(|nodes| *nodes > 0))
                .map(|value| counter.count(value))
                .min();
            let allowed = |value: u32| match rule.kind {
                RuleKind::Spread { max_skew, .. } => emptiest.is_some_and(|emptiest| {
                    counter.count(value) + own - emptiest <= i64::from(max_skew)
                }),
                RuleKind::Affinity => {
                    counter.count(value) > 0 || (counter.total == 0 && rule.counts_itself)
                }
                RuleKind::AntiAffinity => counter.count(value) == 0,
            };
            (0..values as u32).map(allowed).collect()
        };
        Self { per_rule: rules.iter().zip(eligible).map(judge).collect() }
    }

    /// Whether a rule allows a value.
    pub(crate) fn allows(&self, rule: usize, value: u32) -> bool {
        self.per_rule[rule].get(value as usize).copied().unwrap_or(false)
    }

    fn allow_node(&self, rules: &[Rule], counters: &Counters, node: NodeId) -> bool {
        rules.iter().enumerate().all(|(index, rule)| {
            let value = counters.key_of(rule.counter).value(node);
            value.is_some_and(|value| self.allows(index, value))
        })
    }
}

/// Nodes per value of each rule's label that the demand's labels and names allow.
pub(crate) fn eligible_values(state: &State, demand: &Demand) -> Vec<Vec<u32>> {
    let tally = |rule: &Rule| {
        let table = state.counters.key_of(rule.counter);
        let allowed =
            |node: &&NodeId| state.masks.selects(demand.mask, &state.nodes.cold(**node).node);
        table.nodes.iter().map(|nodes| nodes.iter().filter(allowed).count() as u32).collect()
    };
    demand.rules.iter().map(tally).collect()
}

impl State {
    /// The first thing that keeps a pod off a node; [`Cause::None`] if it fits.
    #[inline]
    pub(crate) fn obstacle(
        &mut self,
        demand: &Demand,
        verdicts: &RuleVerdicts,
        node: NodeId,
    ) -> Cause {
        let hot = *self.nodes.hot(node);
        if !hot.is_present() {
            return Cause::NotReady;
        }
        let nodes = &self.nodes;
        let verdict = self.masks.verdict(demand.mask, node, hot.static_version, nodes);
        if verdict != Cause::None {
            return verdict;
        }
        let amounts = &demand.amounts;
        if hot.overcommitted {
            return Cause::Overcommitted;
        }
        let fit = self.devices.fit(demand.need, hot.set);
        if fit == DeviceFit::WrongKind {
            return Cause::Model;
        }
        if hot.cpu_left_milli < amounts.cpu_milli {
            return Cause::Cpu;
        }
        if hot.memory_left_bytes < amounts.memory_bytes {
            return Cause::Memory;
        }
        if amounts.ephemeral_bytes > 0
            && nodes.cold(node).ephemeral_left_bytes < amounts.ephemeral_bytes
        {
            return Cause::Ephemeral;
        }
        if i64::from(hot.slots_left) < amounts.pod_slots {
            return Cause::PodSlots;
        }
        let lacks = |(name, amount): &(u32, i64)| nodes.cold(node).extended_left(*name) < *amount;
        if amounts.extended.iter().any(lacks) {
            return Cause::Extended;
        }
        if fit == DeviceFit::Pods(0) {
            return Cause::Device;
        }
        if !verdicts.allow_node(&demand.rules, &self.counters, node) {
            return Cause::Rule;
        }
        Cause::None
    }

    /// How many pods of the demand the node could take one after another, rules aside.
    pub(crate) fn node_capacity(&mut self, demand: &Demand, node: NodeId) -> u32 {
        let no_rules = RuleVerdicts::default();
        let without_rules = Demand { rules: SmallVec::new(), ..demand.clone() };
        if self.obstacle(&without_rules, &no_rules, node) != Cause::None {
            return 0;
        }
        let hot = *self.nodes.hot(node);
        let cold = self.nodes.cold(node);
        let amounts = &demand.amounts;
        let mut room = i64::from(u32::MAX);
        let pairs = [
            (hot.cpu_left_milli, amounts.cpu_milli),
            (hot.memory_left_bytes, amounts.memory_bytes),
            (cold.ephemeral_left_bytes, amounts.ephemeral_bytes),
            (i64::from(hot.slots_left), amounts.pod_slots),
        ];
        let extended =
            amounts.extended.iter().map(|(name, amount)| (cold.extended_left(*name), *amount));
        for (left, asked) in pairs.into_iter().chain(extended) {
            if asked > 0 {
                room = room.min(left / asked);
            }
        }
        match self.devices.fit(demand.need, hot.set) {
            DeviceFit::WrongKind => 0,
            DeviceFit::Pods(pods) => room.min(i64::from(pods)) as u32,
        }
    }
}

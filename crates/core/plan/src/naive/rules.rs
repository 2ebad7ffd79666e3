//! Spread and affinity by counting every pod.

use std::collections::BTreeMap;

use dovetail_model::{CounterRule, NodeId, Requirement, RuleKind};

use crate::naive::selected;
use crate::state::State;

/// Whether every rule allows one more such pod on the node.
pub(super) fn allow(state: &State, requirement: &Requirement, slot: NodeId) -> bool {
    requirement.rules.iter().all(|rule| allows(state, requirement, rule, slot))
}

fn allows(state: &State, requirement: &Requirement, rule: &CounterRule, slot: NodeId) -> bool {
    let value_of = |slot: NodeId| state.nodes.cold(slot).node.labels.get(&rule.label);
    let Some(here) = value_of(slot) else { return false };
    let mut counts: BTreeMap<&String, i64> = BTreeMap::new();
    for (_, record) in state.holdings.iter() {
        let mut names = record.counts_into.iter().map(|n| state.counters.selector_name(*n));
        if names.any(|name| name == rule.selector)
            && let Some(value) = value_of(record.node)
        {
            *counts.entry(value).or_default() += 1;
        }
    }
    let count = |value: &String| counts.get(value).copied().unwrap_or(0);
    let counts_itself = requirement.counts_into.contains(&rule.selector);
    match rule.kind {
        RuleKind::AntiAffinity => count(here) == 0,
        RuleKind::Affinity => {
            count(here) > 0 || (counts_itself && counts.values().sum::<i64>() == 0)
        }
        RuleKind::Spread { max_skew, .. } => {
            let eligible = state.nodes.present().filter(|(_, node)| selected(requirement, node));
            let emptiest =
                eligible.filter_map(|(_, node)| node.labels.get(&rule.label)).map(count).min();
            emptiest.is_some_and(|emptiest| {
                count(here) + i64::from(counts_itself) - emptiest <= i64::from(max_skew)
            })
        }
    }
}

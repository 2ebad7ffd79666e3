//! Rules over the pods that are already there, by counting every pod.

use std::collections::BTreeMap;

use dovetail_model::{
    ConditionCause, CounterRule, CounterScope, Node, NodeId, Requirement, RuleCause, RuleKind,
};

use crate::naive::{conditions_hold, label, named, tolerated};
use dovetail_state::State;
use dovetail_state::cause::Cause;

/// The first rule from there that does not allow one more such pod on the node.
pub(super) fn broken(
    state: &State,
    requirement: &Requirement,
    causes: &[RuleCause],
    slot: NodeId,
) -> Option<Cause> {
    let mut rules = requirement.rules.iter().filter(|rule| causes.contains(&of_rule(rule)));
    rules.find_map(|rule| breaks(state, requirement, rule, slot))
}

/// What a rule is known by: what it asks goes before what it says it comes from.
fn of_rule(rule: &CounterRule) -> RuleCause {
    match &rule.kind {
        RuleKind::Spread { .. } => RuleCause::Spread,
        RuleKind::Affinity => RuleCause::Affinity,
        RuleKind::AntiAffinity => match rule.cause {
            RuleCause::Spread | RuleCause::Affinity => RuleCause::AntiAffinity,
            cause => cause,
        },
        RuleKind::AtMost { .. } => RuleCause::DeviceClaims,
    }
}

fn breaks(
    state: &State,
    requirement: &Requirement,
    rule: &CounterRule,
    slot: NodeId,
) -> Option<Cause> {
    let counts = pods_per_domain(state, requirement, counter_of(rule));
    let here = label(&state.nodes.cold(slot).node, &rule.label);
    let count = here.and_then(|here| counts.get(here)).copied().unwrap_or(0);
    let counts_itself = i64::from(requirement.counts_into.times(&rule.selector));
    match (&rule.kind, here) {
        (RuleKind::AntiAffinity, None) => None,
        (RuleKind::Spread { .. }, None) => Some(Cause::SpreadLabel),
        (RuleKind::Affinity, None) => Some(Cause::Affinity),
        (RuleKind::AtMost { .. }, None) => Some(Cause::DeviceClaims),
        (RuleKind::AtMost { most }, Some(here)) => {
            let most = most.get(here).copied().unwrap_or(0);
            (count + counts_itself > i64::from(most)).then_some(Cause::DeviceClaims)
        }
        (RuleKind::AntiAffinity, Some(_)) => (count > 0).then_some(match of_rule(rule) {
            RuleCause::HostPort => Cause::HostPort,
            RuleCause::DiskConflict => Cause::DiskConflict,
            RuleCause::ReadWriteOncePod => Cause::ReadWriteOncePod,
            RuleCause::ExistingAntiAffinity => Cause::ExistingAntiAffinity,
            RuleCause::SharedGpus => Cause::SharedGpus,
            _ => Cause::AntiAffinity,
        }),
        (RuleKind::Affinity, Some(_)) => {
            (count == 0 && !is_first(state, requirement)).then_some(Cause::Affinity)
        }
        (RuleKind::Spread { max_skew, min_domains }, Some(_)) => {
            let mut emptiest = counts.values().min().copied().unwrap_or(0);
            if counts.len() < min_domains.unwrap_or(1) as usize {
                emptiest = 0;
            }
            let skew = count + counts_itself - emptiest;
            (skew > i64::from(*max_skew)).then_some(Cause::Spread)
        }
    }
}

/// Whether the pod counts itself into all of its affinity rules, and no pod is counted by any.
fn is_first(state: &State, requirement: &Requirement) -> bool {
    requirement.rules.iter().filter(|rule| rule.kind == RuleKind::Affinity).all(|rule| {
        requirement.counts_into.contains(&rule.selector)
            && pods_per_domain(state, requirement, counter_of(rule)).values().all(|n| *n == 0)
    })
}

/// Selector, label and scope.
type CounterOf<'r> = (&'r str, &'r str, CounterScope);

fn counter_of(rule: &CounterRule) -> CounterOf<'_> {
    (&rule.selector, &rule.label, rule.scope)
}

/// Pods that a counter has in the domain of a label value.
pub(super) fn pods_in(
    state: &State,
    requirement: &Requirement,
    counter: CounterOf<'_>,
    value: &str,
) -> i64 {
    pods_per_domain(state, requirement, counter).get(value).copied().unwrap_or(0)
}

/// Pods per domain that has a node which counts.
fn pods_per_domain<'s>(
    state: &'s State,
    requirement: &Requirement,
    (selector, key, scope): CounterOf<'_>,
) -> BTreeMap<&'s str, i64> {
    let mut counts: BTreeMap<&str, i64> = BTreeMap::new();
    for (slot, node) in state.nodes.present() {
        let Some(value) = label(node, key) else { continue };
        if !counts_at_all(requirement, scope, node) {
            continue;
        }
        let pods = counts.entry(value).or_default();
        for (_, record) in state.holdings.iter().filter(|(_, record)| record.node == slot) {
            let names = record.counts_into.iter().map(|n| state.counters.selector_name(*n));
            *pods += names.filter(|name| *name == selector).count() as i64;
        }
    }
    counts
}

fn counts_at_all(requirement: &Requirement, scope: CounterScope, node: &Node) -> bool {
    let CounterScope::Eligible { honor_affinity, honor_taints } = scope else { return true };
    for rule in &requirement.rules {
        if matches!(rule.kind, RuleKind::Spread { .. }) && label(node, &rule.label).is_none() {
            return false;
        }
    }
    let wanted = || {
        named(requirement, node) && conditions_hold(requirement, node, ConditionCause::NodeAffinity)
    };
    let open = || node.taints.iter().all(|taint| tolerated(requirement, taint));
    (!honor_affinity || wanted()) && (!honor_taints || open())
}

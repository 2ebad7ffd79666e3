//! Spread, affinity, ports and disks: counted pod by pod at the moment of placing.

use std::collections::BTreeMap;

use dovetail_model::{ConditionCause, CounterRule, CounterScope, Node, RuleKind};

use crate::placing::{Placing, holds, is_named, label, tolerates};
use crate::violation::Violation;

impl Placing<'_> {
    pub(crate) fn judge_rules(&self, found: &mut Vec<Violation>) {
        for rule in &self.requirement.rules {
            if let Some(counts) = self.breaks(rule) {
                let rule = format!(
                    "{:?} ({:?}) of `{}` over `{}`",
                    rule.kind, rule.cause, rule.selector, rule.label
                );
                let node = self.name.clone();
                found.push(Violation::Rule { pod: self.pod, node, rule, counts });
            }
        }
    }

    /// The counts by which a rule is broken; `None` if it is kept.
    fn breaks(&self, rule: &CounterRule) -> Option<String> {
        let here = label(&self.books.node, &rule.label);
        let needs_label = rule.kind != RuleKind::AntiAffinity;
        let Some(here) = here else {
            return needs_label.then(|| "the node has no such label".to_owned());
        };
        let counts = self.counts_of(rule);
        let pods = counts.get(here).copied().unwrap_or(0);
        let kept = match &rule.kind {
            RuleKind::AntiAffinity => pods == 0,
            RuleKind::Affinity => pods > 0 || self.is_first_of_its_kind(),
            RuleKind::Spread { max_skew, min_domains } => {
                let domains = counts.len() as u64;
                let enough = domains > 0 && domains >= u64::from(min_domains.unwrap_or(0));
                let emptiest = counts.values().copied().min().filter(|_| enough).unwrap_or(0);
                pods + self.counts_itself(rule) <= emptiest + i64::from(*max_skew)
            }
            RuleKind::AtMost { most } => {
                let most = most.get(here).copied().unwrap_or(0);
                pods + self.counts_itself(rule) <= i64::from(most)
            }
        };
        (!kept).then(|| format!("{counts:?} before, placed in `{here}`"))
    }

    fn counts_itself(&self, rule: &CounterRule) -> i64 {
        i64::from(self.requirement.counts_into.times(&rule.selector))
    }

    fn is_first_of_its_kind(&self) -> bool {
        let mut affinity =
            self.requirement.rules.iter().filter(|rule| rule.kind == RuleKind::Affinity);
        affinity.all(|rule| {
            let counted: i64 = self.counts_of(rule).values().sum();
            counted == 0 && self.counts_itself(rule) > 0
        })
    }

    /// Pods that the rule's selector counts, for each value of its label that a node which counts
    /// has.
    fn counts_of(&self, rule: &CounterRule) -> BTreeMap<&str, i64> {
        let pods = self.world.counts.get(&rule.selector);
        let mut counts: BTreeMap<&str, i64> = BTreeMap::new();
        for (name, books) in &self.world.nodes {
            if let Some(value) = label(&books.node, &rule.label)
                && self.counts_there(rule.scope, &books.node)
            {
                let here = pods.and_then(|pods| pods.get(name)).copied().unwrap_or(0);
                *counts.entry(value).or_default() += here;
            }
        }
        counts
    }

    fn counts_there(&self, scope: CounterScope, node: &Node) -> bool {
        let CounterScope::Eligible { honor_affinity, honor_taints } = scope else { return true };
        let pod = self.requirement;
        let spread = pod.rules.iter().filter(|rule| matches!(rule.kind, RuleKind::Spread { .. }));
        let mut affinity =
            pod.node_conditions.iter().filter(|c| c.cause == ConditionCause::NodeAffinity);
        let labelled = spread.map(|rule| &rule.label).all(|key| label(node, key).is_some());
        let wanted = is_named(pod, node) && affinity.all(|condition| holds(condition, node));
        let open = node.taints.iter().all(|taint| tolerates(pod, taint));
        labelled && (wanted || !honor_affinity) && (open || !honor_taints)
    }
}

//! Spread and affinity, counted pod by pod at the moment of placing.

use std::collections::BTreeMap;

use dovetail_model::{CounterRule, RuleKind};

use crate::placing::{Placing, selects};
use crate::violation::Violation;

impl Placing<'_> {
    pub(crate) fn judge_rules(&self, found: &mut Vec<Violation>) {
        for rule in &self.requirement.rules {
            if let Some(counts) = self.breaks(rule) {
                let rule = format!("{:?} of `{}` over `{}`", rule.kind, rule.selector, rule.label);
                let node = self.name.clone();
                found.push(Violation::Rule { pod: self.pod, node, rule, counts });
            }
        }
    }

    /// The counts by which a rule is broken; `None` if it is kept.
    fn breaks(&self, rule: &CounterRule) -> Option<String> {
        let Some(here) = self.books.node.labels.get(&rule.label) else {
            return Some("the node has no such label".to_owned());
        };
        let counts = self.counts_of(rule);
        let count = |value: &str| counts.get(value).copied().unwrap_or(0);
        let counts_itself = self.requirement.counts_into.contains(&rule.selector);
        let kept = match rule.kind {
            RuleKind::AntiAffinity => count(here) == 0,
            RuleKind::Affinity => {
                count(here) > 0 || (counts_itself && counts.values().all(|pods| *pods == 0))
            }
            RuleKind::Spread { max_skew, .. } => {
                let emptiest = self
                    .world
                    .nodes
                    .values()
                    .filter(|books| selects(self.requirement, &books.node))
                    .filter_map(|books| books.node.labels.get(&rule.label))
                    .map(|value| count(value))
                    .min();
                let with = count(here) + i64::from(counts_itself);
                emptiest.is_some_and(|emptiest| with - emptiest <= i64::from(max_skew))
            }
        };
        (!kept).then(|| format!("{counts:?} before, placed in `{here}`"))
    }

    /// Pods that the rule's selector counts, by value of its label.
    fn counts_of(&self, rule: &CounterRule) -> BTreeMap<&str, i64> {
        let mut counts: BTreeMap<&str, i64> = BTreeMap::new();
        for (node, pods) in self.world.counts.get(&rule.selector).into_iter().flatten() {
            let labels = self.world.nodes.get(node).map(|books| &books.node.labels);
            if let Some(value) = labels.and_then(|labels| labels.get(&rule.label)) {
                *counts.entry(value).or_default() += pods;
            }
        }
        counts
    }
}

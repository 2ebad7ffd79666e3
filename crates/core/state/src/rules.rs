//! What the rules of a demand allow: of one node at a time, and which label values turned since
//! last asked.

use dovetail_model::{NodeId, RuleKind};
use smallvec::SmallVec;

use crate::cause::Cause;
use crate::counters::Counters;
use crate::shapes::Rule;

impl Counters {
    /// The first rule that keeps a pod off a node, as its cause; `all` are the rules of its demand,
    /// of which `rules` are looked at.
    #[inline]
    pub fn obstacle(&self, rules: &[Rule], all: &[Rule], node: NodeId) -> Cause {
        for rule in rules {
            let cause = match (self.key_of(rule.counter).value(node), &rule.kind) {
                (None, RuleKind::AntiAffinity) => continue,
                (None, RuleKind::Affinity | RuleKind::AtMost { .. }) => rule.cause,
                (None, RuleKind::Spread { .. }) => Cause::SpreadLabel,
                (Some(value), _) if self.allows(rule, all, value) => continue,
                (Some(_), _) => rule.cause,
            };
            return cause;
        }
        Cause::None
    }

    /// Whether a rule allows nodes with this value of its label.
    #[inline]
    fn allows(&self, rule: &Rule, all: &[Rule], value: u32) -> bool {
        let pods = self.get(rule.counter).count(value);
        match &rule.kind {
            RuleKind::AntiAffinity => pods == 0,
            RuleKind::Affinity => pods > 0 || self.is_first_of_its_kind(all),
            RuleKind::Spread { max_skew, .. } => {
                let with = pods + i64::from(rule.counts_itself);
                with - self.emptiest_of(rule) <= i64::from(*max_skew)
            }
            RuleKind::AtMost { most } => {
                let name = self.key_of(rule.counter).value_name(value);
                let with = pods + i64::from(rule.counts_itself);
                with <= most.get(name).copied().map_or(0, i64::from)
            }
        }
    }

    /// Whether no affinity rule counts a pod yet, and the pod counts itself into all of them.
    fn is_first_of_its_kind(&self, rules: &[Rule]) -> bool {
        let mut affinity = rules.iter().filter(|rule| rule.kind == RuleKind::Affinity);
        affinity.all(|rule| rule.counts_itself > 0 && self.get(rule.counter).total == 0)
    }

    /// Pods in the domain that a spread rule compares with; 0 for other rules.
    fn emptiest_of(&self, rule: &Rule) -> i64 {
        match rule.kind {
            RuleKind::Spread { min_domains, .. } => {
                self.emptiest(rule.counter, min_domains.unwrap_or(1).max(1))
            }
            _ => 0,
        }
    }
}

/// Which label values the rules of a demand allowed when last looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleVerdicts {
    per_rule: SmallVec<[OfRule; 1]>,
    first_of_its_kind: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct OfRule {
    /// Per value of the rule's label.
    allowed: Vec<bool>,
    emptiest: i64,
}

impl RuleVerdicts {
    /// Looks again, and calls `turned` with each rule and value of which the verdict is another
    /// one. `moved` are the counters and values that moved since the last time; `None`: anything
    /// may have changed.
    pub fn refresh(
        &mut self,
        rules: &[Rule],
        counters: &Counters,
        moved: Option<&[(u32, u32)]>,
        mut turned: impl FnMut(&Rule, u32),
    ) {
        self.per_rule.resize_with(rules.len(), OfRule::default);
        let reads = |(counter, _): &&(u32, u32)| rules.iter().any(|r| r.counter == *counter);
        if moved.is_some_and(|moved| !moved.iter().any(|entry| reads(&entry))) {
            return;
        }
        let first_of_its_kind = counters.is_first_of_its_kind(rules);
        let first_turned = first_of_its_kind != self.first_of_its_kind;
        self.first_of_its_kind = first_of_its_kind;
        for (rule, known) in rules.iter().zip(&mut self.per_rule) {
            let emptiest = counters.emptiest_of(rule);
            let all_turn =
                emptiest != known.emptiest || (first_turned && rule.kind == RuleKind::Affinity);
            known.emptiest = emptiest;
            let values = counters.key_of(rule.counter).values();
            known.allowed.resize(values, false);
            let mut look = |value: u32| {
                let allowed = counters.allows(rule, rules, value);
                if std::mem::replace(&mut known.allowed[value as usize], allowed) != allowed {
                    turned(rule, value);
                }
            };
            match moved.filter(|_| !all_turn) {
                Some(moved) => {
                    let own = moved.iter().filter(|(counter, _)| *counter == rule.counter);
                    own.for_each(|(_, value)| look(*value));
                }
                None => (0..values as u32).for_each(look),
            }
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.per_rule.iter().map(|of_rule| of_rule.allowed.capacity()).sum()
    }
}

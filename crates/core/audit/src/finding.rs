//! A check that triggered.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_account::device_time::{DeviceState, Span};
use dovetail_facts::{ObjectRef, Workload};
use dovetail_model::Resources;

use crate::catalogue::Check;
use crate::example::{Example, named};
use crate::remedy::{PatchChange, Remedy};
use crate::suppress::Suppression;

/// One check on one object that a person edits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub check: &'static Check,
    /// The top owner, node pool, namespace or budget.
    pub object: ObjectRef,
    /// What it rests on.
    pub evidence: Vec<Evidence>,
    /// Pods or nodes concerned, ascending.
    pub affected: Vec<ObjectRef>,
    /// Wasted time it explains.
    pub claims: Vec<Attribution>,
    /// So much of the claims at most, in milli-GPU: what pending pods ask for, where more is free.
    /// `None` is all of them.
    pub most_milli: Option<i64>,
    /// Free GPUs of other nodes that its moves use. They come from removed nodes, so they count at
    /// the price of these where it is lower: the bill falls by no more.
    pub fills: Vec<Attribution>,
    /// So much of them, in milli-GPU.
    pub fills_milli: i64,
    /// Whether it is true only of time that is wasted: without any it is none.
    pub(crate) needs_waste: bool,
    /// Nodes on whose free GPUs pending pods would start once it is fixed, or to which its moves
    /// lead while no pod uses their GPUs: these are not removed.
    pub(crate) starts_on: BTreeSet<String>,
    /// What nodes give to pending pods by other MIG layouts, by their names.
    pub(crate) recuts: BTreeMap<String, Recut>,
    /// Whether something undoes a change of its object alone: no time comes back by that.
    pub(crate) is_undone: bool,
    /// Since when what it is about is so, where the check knows it better than its claims and the
    /// objects concerned.
    pub(crate) since_ms: Option<u64>,
    /// Whether nobody knows since when it is so: neither its claims nor the objects concerned tell.
    pub(crate) is_undated: bool,
    /// What would mend it, as far as a check can say that of one object.
    pub remedies: Vec<Remedy>,
    /// Edits that would mend it, by example, where those of the check say less; each once.
    pub examples: Vec<Example>,
    /// Pods that would move, and where the engine puts them, with the moves of all findings made.
    /// What a finding brings takes all of its own.
    pub moves: Vec<Move>,
    /// Nodes that are not removed: the engine finds no place for a pod that would move, or waiting
    /// work may need them.
    pub stays: BTreeSet<String>,
    /// Who ignores it, if somebody does. It leaves the list, not the total.
    pub suppressed: Option<Suppression>,
}

/// Wasted time that a finding explains. Claims of one finding do not overlap: what it asks for
/// twice would be contested by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribution {
    /// Number of the device.
    pub device: u32,
    /// The holder whose time it is; `None` is time that nobody held.
    pub holder: Option<u32>,
    pub states: BTreeSet<DeviceState>,
    /// When.
    pub span: Span,
    /// At most so much at any moment.
    pub gpu_milli: i64,
}

/// What a node gives to pending pods by other MIG layouts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Recut {
    /// GPUs that get another layout.
    pub(crate) gpus: i64,
    /// What the pods request beside GPUs.
    pub(crate) resources: Resources,
}

/// A pod that would move.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Move {
    pub pod: ObjectRef,
    /// Its node.
    pub from: String,
    /// The node that the engine finds for it.
    pub to: String,
}

/// A value that a finding rests on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Evidence {
    /// What was looked at.
    pub what: &'static str,
    /// What was there.
    pub value: String,
}

impl Finding {
    /// A check on an object, with nothing else.
    pub fn new(check: &'static Check, object: &ObjectRef) -> Self {
        Self {
            check,
            object: object.clone(),
            evidence: Vec::new(),
            affected: Vec::new(),
            claims: Vec::new(),
            most_milli: None,
            fills: Vec::new(),
            fills_milli: 0,
            needs_waste: false,
            starts_on: BTreeSet::new(),
            recuts: BTreeMap::new(),
            is_undone: false,
            since_ms: None,
            is_undated: false,
            remedies: Vec::new(),
            examples: Vec::new(),
            moves: Vec::new(),
            stays: BTreeSet::new(),
            suppressed: None,
        }
    }

    pub(crate) fn with(mut self, what: &'static str, value: impl ToString) -> Self {
        self.evidence.push(Evidence { what, value: value.to_string() });
        self
    }

    /// A change of what the pods of a workload are made from mends it.
    pub fn mended_in(
        mut self,
        workload: &Workload,
        changes: impl IntoIterator<Item = PatchChange>,
    ) -> Self {
        let remedies = changes.into_iter().map(|change| Remedy::of_pods(workload, change));
        self.remedies.extend(remedies);
        self
    }

    /// A change of the object itself mends it.
    pub fn mended_by(mut self, change: PatchChange) -> Self {
        self.remedies.push(Remedy::of_object(change));
        self
    }

    /// An edit for what is concerned, where the check has one for many.
    pub(crate) fn for_example(mut self, edit: impl Into<String>) -> Self {
        self.examples.push(Example::new(edit));
        self
    }

    /// The changes that would fix it.
    pub fn changes(&self) -> impl Iterator<Item = &PatchChange> {
        self.remedies.iter().map(|remedy| &remedy.change)
    }

    /// What is edited, by example; a command names the nodes or the pod that it is for.
    pub fn fix_example(&self) -> String {
        if self.examples.is_empty() {
            return named(self.check.fix_example, &self.affected);
        }
        let edits = self.examples.iter().map(|example| example.for_objects(&self.affected));
        edits.collect::<Vec<String>>().join("; ")
    }

    /// Notes what the examples with names are for: once the finding is one with others, more is
    /// concerned.
    fn tell_examples_apart(&mut self) {
        let is_open = |of: &&mut Example| of.objects.is_empty() && of.names_objects();
        for example in self.examples.iter_mut().filter(is_open) {
            example.objects.clone_from(&self.affected);
        }
    }

    /// Since when it is so, as its check knows it: not at all, if `None`.
    pub(crate) fn dated(mut self, since_ms: Option<u64>) -> Self {
        (self.since_ms, self.is_undated) = (since_ms, since_ms.is_none());
        self
    }

    /// Adds pods or nodes concerned.
    pub fn affecting(mut self, objects: impl IntoIterator<Item = ObjectRef>) -> Self {
        self.affected.extend(objects);
        self
    }
}

/// One finding for each check and object: ten thousand pods of one Deployment, or all nodes of a
/// pool, are one. Evidence that is the same is shown once. Worst first, then by check and object.
pub fn group(findings: Vec<Finding>) -> Vec<Finding> {
    let mut groups: BTreeMap<(&'static str, ObjectRef), Finding> = BTreeMap::new();
    for mut finding in findings {
        finding.tell_examples_apart();
        let key = (finding.check.id, finding.object.clone());
        match groups.get_mut(&key) {
            None => {
                groups.insert(key, finding);
            }
            Some(group) => {
                group.evidence.extend(finding.evidence);
                group.affected.extend(finding.affected);
                group.claims.extend(finding.claims);
                group.most_milli = group.most_milli.zip(finding.most_milli).map(|(a, b)| a + b);
                for fill in finding.fills {
                    // Several nodes may fill the same one.
                    if !group.fills.contains(&fill) {
                        group.fills.push(fill);
                    }
                }
                group.fills_milli += finding.fills_milli;
                group.is_undone |= finding.is_undone;
                group.since_ms = group.since_ms.into_iter().chain(finding.since_ms).min();
                group.is_undated |= finding.is_undated;
                group.moves.extend(finding.moves);
                group.stays.extend(finding.stays);
                for example in finding.examples {
                    let same = group.examples.iter_mut().find(|of| of.edit == example.edit);
                    match same {
                        Some(same) => same.objects.extend(example.objects),
                        None => group.examples.push(example),
                    }
                }
                for remedy in finding.remedies {
                    if !group.remedies.contains(&remedy) {
                        group.remedies.push(remedy);
                    }
                }
                group.suppressed = group.suppressed.take().or(finding.suppressed);
            }
        }
    }
    let mut grouped: Vec<Finding> = groups.into_values().collect();
    for finding in &mut grouped {
        finding.affected.sort();
        finding.affected.dedup();
        for Example { objects, .. } in &mut finding.examples {
            objects.sort();
            objects.dedup();
        }
        let mut seen = BTreeSet::new();
        finding.evidence.retain(|evidence| seen.insert(evidence.clone()));
    }
    grouped.sort_by_key(|finding| std::cmp::Reverse(finding.check.severity));
    grouped
}

//! AUT-06: nodes that stay cordoned, and what to do with each.
//!
//! A node whose pods all fit on other nodes is drained. It accepts pods again where it has pods
//! with GPUs that do not, or where pods need it that start on no other node. A node that is marked
//! for a repair is never offered to pods, nor is one that is being removed already. Any other node
//! without pods with GPUs costs the same once it is open, so only its removal lowers the bill.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_facts::{Node, ObjectRef};
use dovetail_model::FreeCause;
use dovetail_units::duration::duration_at_least;

use super::autoscaling::free_since;
use super::consolidation::removals;
use super::needed::{Needs, needs};
use super::resource_cluster::{Removal, stay_on};
use super::{View, node_ref};
use crate::catalogue::Check;
use crate::finding::Finding;
use crate::health::{is_long, repair_marks};
use crate::remedy::PatchChange;

/// Names that evidence lists for one reason.
const MOST_NAMED: usize = 3;

const REPAIR: &str = "kubectl describe node NODES  # then repair each node and uncordon it, or remove it from its pool";
const REMOVE: &str = "kubectl drain NODES --ignore-daemonsets  # then remove each node from its pool: \
                      no pending pod needs it";
const DRAIN: &str = "kubectl drain NODES --ignore-daemonsets  # the pods move as listed; then remove each node from its pool";
const WAIT: &str = "kubectl describe node NODES  # the removal has begun: find out what blocks it";
const KEEP: &str = "keep the node cordoned until these pods can run on another node";

pub(super) fn cordoned_for_long(view: &View<'_>, check: &'static Check, found: &mut Vec<Finding>) {
    let cordoned = cordoned(view);
    // One command for all nodes of a pool.
    let mut opened: BTreeMap<&ObjectRef, Vec<String>> = BTreeMap::new();
    for of in cordoned.iter().filter(|of| of.action() == Action::Uncordon) {
        opened.entry(&of.node.pool).or_default().push(of.node.node.name.to_string());
    }
    for of in &cordoned {
        let name = &*of.node.node.name;
        let length_ms = view.facts.now_ms.saturating_sub(of.since_ms);
        let told = match of.node.cordon_is_undated {
            true => format!("{name} since an unknown time: its taint has no timeAdded"),
            false => format!("{name} for {}", duration_at_least(length_ms)),
        };
        let mut finding = Finding::new(check, &of.node.pool)
            .dated((!of.node.cordon_is_undated).then_some(of.since_ms))
            .with("cordoned", told)
            .affecting([node_ref(of.node)]);
        for mark in of.marks.iter().take(MOST_NAMED) {
            finding = finding.with("probable reason", format!("{mark} on {name}"));
        }
        if of.is_empty {
            finding = finding.with("without GPU pods", name);
        }
        for (names, what) in of.kept_by() {
            for name in names.into_iter().take(MOST_NAMED) {
                finding = finding.with(what, name);
            }
            finding.stays.insert(name.to_owned());
        }
        finding = match of.action() {
            Action::Wait => finding.with("being removed", name).for_example(WAIT),
            Action::Drain => finding.for_example(DRAIN),
            Action::Uncordon => {
                let nodes = opened[&of.node.pool].clone();
                finding.mended_by(PatchChange::Uncordon { nodes })
            }
            Action::Repair => finding.for_example(REPAIR),
            Action::Keep => finding.for_example(KEEP),
            Action::Remove => finding.for_example(REMOVE),
        };
        let causes = [FreeCause::DrainingOrCordoned];
        if of.action() == Action::Wait && !(of.is_empty && of.kept_by().is_empty()) {
            // What it lets go is nobody's to use.
            finding.stays.insert(name.to_owned());
        } else {
            finding.claims = free_since(of.node, of.since_ms, view.facts.period, &causes);
        }
        found.push(match of.removal {
            Some(removal) if of.action() == Action::Drain => removal.told_by(finding, view),
            _ => finding,
        });
    }
}

/// What to do with a node.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Action {
    /// Nothing: an autoscaler or a person removes it already.
    Wait,
    Uncordon,
    Repair,
    /// All its pods fit on other nodes.
    Drain,
    /// It runs pods that cannot move.
    Keep,
    Remove,
}

/// A node that has been cordoned for long.
struct Cordoned<'f> {
    node: &'f Node,
    since_ms: u64,
    /// Why it needs a repair.
    marks: Vec<String>,
    /// Whether no pod on it has GPUs.
    is_empty: bool,
    needs: Needs,
    /// Pods without GPUs that cannot move.
    staying: BTreeSet<String>,
    /// Where its pods go, if they have GPUs and all fit on other nodes.
    removal: Option<&'f Removal>,
}

impl Cordoned<'_> {
    fn is_needed(&self) -> bool {
        !self.needs.pods.is_empty() || !self.needs.to_come.is_empty()
    }

    fn kind(&self) -> Kind {
        match () {
            () if self.node.is_being_removed => Kind::Leaving,
            () if !self.marks.is_empty() => Kind::Marked,
            () => Kind::Sound,
        }
    }

    fn action(&self) -> Action {
        match self.kind() {
            // What is being removed is not wanted back.
            Kind::Leaving => Action::Wait,
            Kind::Marked => Action::Repair,
            Kind::Sound if self.removal.is_some() => Action::Drain,
            Kind::Sound if !self.is_empty || self.is_needed() => Action::Uncordon,
            Kind::Sound if !self.staying.is_empty() => Action::Keep,
            Kind::Sound => Action::Remove,
        }
    }

    /// What keeps the node on the bill, in names, and what these are.
    fn kept_by(&self) -> Vec<(Vec<String>, &'static str)> {
        let kept: [(Vec<String>, &str); 3] = [
            (self.staying.iter().cloned().collect(), "cannot be moved from it"),
            (self.needs.pods.iter().cloned().collect(), "pending pods that may need it"),
            (self.needs.to_come.iter().cloned().collect(), "workloads that will need it"),
        ];
        kept.into_iter().filter(|(names, _)| !names.is_empty()).collect()
    }
}

fn cordoned<'v>(view: &'v View<'_>) -> Vec<Cordoned<'v>> {
    let placed = view.gpu_workloads().flat_map(|workload| &workload.pods);
    let busy: BTreeSet<&str> = placed.filter_map(|pod| pod.node.as_deref()).collect();
    let of = |node: &'v Node| {
        let since_ms = node.cordoned_since_ms?;
        let is_empty = !node.may_be_held && !busy.contains(&*node.node.name);
        is_long(view.facts, node).then(|| Cordoned {
            node,
            since_ms,
            marks: repair_marks(node),
            is_empty,
            needs: Needs::default(),
            staying: BTreeSet::new(),
            removal: None,
        })
    };
    let mut cordoned: Vec<Cordoned<'v>> = view.gpu_nodes().filter_map(of).collect();
    if cordoned.iter().any(|of| !of.is_empty) {
        let removals = removals(view);
        for of in &mut cordoned {
            of.removal = removals.get(&*of.node.node.name);
        }
    }
    // Each kind is asked about with the others closed.
    let kinds = [Kind::Sound, Kind::Marked, Kind::Leaving].map(|kind| {
        let of_kind = cordoned.iter().filter(|of| of.is_empty && of.kind() == kind);
        of_kind.map(|of| &*of.node.node.name).collect::<BTreeSet<&str>>()
    });
    if kinds.iter().all(BTreeSet::is_empty) {
        return cordoned;
    }
    let mut needs = kinds.each_ref().map(|names| needs(view, names));
    // No pod moves to a node that AUT-03 may remove.
    let unused = view.gpu_nodes().filter(|node| node.without_gpu_pods_since_ms.is_some());
    let unused = unused.map(|node| &*node.node.name);
    let gone: BTreeSet<&str> = unused.chain(kinds.into_iter().flatten()).collect();
    let mut staying = stay_on(&view.gpu_cluster(), &gone);
    for of in &mut cordoned {
        let name = &*of.node.node.name;
        let of_node = needs.iter_mut().find_map(|needs| needs.remove(name));
        of.needs = of_node.unwrap_or_default();
        if of.is_empty {
            of.staying = staying.remove(name).unwrap_or_default();
        }
    }
    cordoned
}

/// What a node was cordoned for, as far as it shows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Sound,
    Marked,
    Leaving,
}

//! What the figures of some time leave open. Parts of a period add up to the whole, so that each
//! thing is told once and with one number.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_console::plain::plain;
use dovetail_console::table::counted;
use dovetail_metrics::exporter::{Misplaced, UnmeasuredNode};
use dovetail_sources::placement::misplaced_in_words;

use super::look::NO_GPU_WAS_SEEN;

/// So many nodes are named.
const MOST_NAMED: usize = 5;

/// All of it.
#[derive(Clone, Debug, Default)]
pub struct LeftOpen {
    /// Step, and the distance of samples where one does not hold until the next, in ms.
    pub(crate) samples_apart_ms: Option<(u64, u64)>,
    /// Holders that series name and nobody believes.
    pub misplaced: Vec<Misplaced>,
    /// Nodes of which GPUs were measured; `None` where nobody looked.
    pub measured: Option<BTreeSet<String>>,
    /// GPUs that were not, by node: the most at a time.
    unmeasured: BTreeMap<String, u32>,
    /// Nodes of which only a part was measured.
    partly_measured: BTreeSet<String>,
    /// Nobody knows who holds what was not measured.
    are_holders_unknown: bool,
    /// Nodes that offer more than exporters measure, and nobody says whether that is shared.
    guessed: BTreeSet<String>,
    /// Nodes whose CPU and memory nobody knows.
    pub blind: BTreeSet<String>,
    /// GPUs of nodes that objects have and no series; `None` without objects.
    pub unseen: Option<BTreeMap<String, i64>>,
    /// Machines of each node name, as their provider knows them.
    machines: BTreeMap<String, BTreeSet<String>>,
    /// Node names that went to another machine.
    pub(crate) reused: BTreeSet<String>,
}

impl LeftOpen {
    /// Who had GPUs that series give to pods which cannot have had them.
    pub(crate) fn of_misplaced(misplaced: Vec<Misplaced>) -> Self {
        Self { misplaced, ..Self::default() }
    }

    /// With GPUs that no exporter measured.
    pub(crate) fn with_unmeasured(mut self, found: &[UnmeasuredNode], is_known: bool) -> Self {
        for node in found {
            self.unmeasured.insert(node.node.clone(), node.devices);
            if node.measured > 0 {
                self.partly_measured.insert(node.node.clone());
            }
        }
        self.are_holders_unknown = !is_known;
        self
    }

    /// With nodes of which nobody says whether their GPUs are shared.
    pub(crate) fn with_guessed(mut self, nodes: impl Iterator<Item = String>) -> Self {
        self.guessed.extend(nodes);
        self
    }

    /// Hears of a machine that had a node's name; nothing where its provider is not known.
    pub(crate) fn add_machine(&mut self, name: &str, provider_id: &str) {
        if !provider_id.is_empty() {
            let machines = self.machines.entry(name.to_owned()).or_default();
            machines.insert(provider_id.to_owned());
        }
    }

    /// Adds what another part of the period leaves open.
    pub fn add(&mut self, part: Self) {
        self.samples_apart_ms = self.samples_apart_ms.max(part.samples_apart_ms);
        self.misplaced.extend(part.misplaced);
        if let Some(measured) = part.measured {
            self.measured.get_or_insert_default().extend(measured);
        }
        for (node, devices) in part.unmeasured {
            let most = self.unmeasured.entry(node).or_default();
            *most = devices.max(*most);
        }
        self.partly_measured.extend(part.partly_measured);
        self.are_holders_unknown |= part.are_holders_unknown;
        self.guessed.extend(part.guessed);
        self.blind.extend(part.blind);
        // A node was not seen if it never was.
        self.unseen = match (self.unseen.take(), part.unseen) {
            (Some(mut one), Some(other)) => {
                one.retain(|node, _| other.contains_key(node));
                Some(one)
            }
            (one, other) => one.or(other),
        };
        for (name, machines) in part.machines {
            self.machines.entry(name).or_default().extend(machines);
        }
        self.reused.extend(part.reused);
    }

    /// Each with what follows from it. Out of a ledger prices follow a machine by the hour.
    pub fn in_words(&self, is_by_hour: bool) -> Vec<String> {
        let mut notes = Vec::new();
        notes.extend(self.samples_apart_ms.map(too_fine));
        notes.extend(misplaced_in_words(&self.misplaced));
        notes.extend(self.guessed_in_words());
        notes.extend(self.unmeasured_in_words());
        if self.measured.as_ref().is_some_and(BTreeSet::is_empty) {
            notes.push(NO_GPU_WAS_SEEN.to_owned());
        }
        if !self.blind.is_empty() {
            notes.push(format!(
                "CPU and memory of {}: unknown, so the GPUs carry the whole price with every split method",
                counted(self.blind.len(), "node")
            ));
        }
        if let Some(unseen) = self.unseen.as_ref().filter(|unseen| !unseen.is_empty()) {
            notes.push(format!(
                "{} on {} without exporter series: not included",
                counted(usize::try_from(unseen.values().sum::<i64>()).unwrap_or(0), "GPU"),
                counted(unseen.len(), "node")
            ));
        }
        notes.extend(self.reused_in_words(is_by_hour));
        notes
    }

    /// How many GPUs were not measured, and where.
    fn unmeasured_in_words(&self) -> Vec<String> {
        let held = match self.are_holders_unknown {
            false => "pod requests are counted as allocated, and their use is unmeasured",
            true => {
                "the pods that use them are unknown: Prometheus has no kube_pod_container_resource_requests \
                 (enable it in kube-state-metrics)"
            }
        };
        let told = |nodes: Vec<(&String, &u32)>, what: &str| {
            let gpus: u32 = nodes.iter().map(|(_, devices)| **devices).sum();
            let names: Vec<&str> =
                nodes.iter().take(MOST_NAMED).map(|(node, _)| node.as_str()).collect();
            let and = if nodes.len() > MOST_NAMED { ", ..." } else { "" };
            let text = format!(
                "{} of {} {what} ({}{and}): they count for as long as kube-state-metrics reports the node; {held}",
                counted(gpus as usize, "GPU"),
                counted(nodes.len(), "node"),
                plain(&names.join(", "))
            );
            (!nodes.is_empty()).then_some(text)
        };
        let is_partly = |node: &str| {
            let is_measured = self.measured.as_ref().is_some_and(|nodes| nodes.contains(node));
            is_measured || self.partly_measured.contains(node)
        };
        let (some, none): (Vec<_>, Vec<_>) =
            self.unmeasured.iter().partition(|(node, _)| is_partly(node));
        let [none, some] = [
            told(none, "that no exporter measures"),
            told(some, "that exporters measure only part of the time or not at all"),
        ];
        none.into_iter().chain(some).collect()
    }

    /// Nodes that offer more than exporters measure.
    fn guessed_in_words(&self) -> Option<String> {
        let first = self.guessed.first()?;
        Some(format!(
            "{} (such as {}) that offer a multiple of the GPUs that exporters measure: treated as shared \
             GPUs; to be certain, run kube-state-metrics with \
             --metric-labels-allowlist=nodes=[nvidia.com/gpu.replicas]",
            counted(self.guessed.len(), "node"),
            plain(first)
        ))
    }

    /// Whether a node name went to another machine.
    pub(crate) fn has_reused(&self) -> bool {
        !self.reused.is_empty() || self.machines.values().any(|machines| machines.len() > 1)
    }

    /// Names that were several machines, each of which has its own price.
    fn reused_in_words(&self, is_by_hour: bool) -> Option<String> {
        let several = self.machines.iter().filter(|(_, machines)| machines.len() > 1);
        let names: BTreeSet<&String> = several.map(|(name, _)| name).chain(&self.reused).collect();
        let first = plain(names.first()?);
        let by_hour = match is_by_hour {
            true => {
                "; an hour in which a name moved to another machine has the price of that machine"
            }
            false => "",
        };
        Some(format!(
            "{} moved to another machine within the period (such as {first}): each machine is \
             priced for the time in which it had the name{by_hour}",
            counted(names.len(), "node name")
        ))
    }
}

/// Samples that lie so far apart that one does not hold until the next.
fn too_fine((step_ms, apart_ms): (u64, u64)) -> String {
    let [step, apart] = [step_ms, apart_ms].map(|ms| ms.div_ceil(1000));
    format!(
        "samples are {apart} s apart, so with --step {step}s most use of allocated GPUs is \
         unknown: use --step {apart}s or more"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(unmeasured: &[(&str, u32)], measured: &[&str], machines: &[(&str, &str)]) -> LeftOpen {
        LeftOpen {
            unmeasured: unmeasured.iter().map(|(node, gpus)| ((*node).to_owned(), *gpus)).collect(),
            measured: Some(measured.iter().map(|node| (*node).to_owned()).collect()),
            blind: measured.iter().map(|node| (*node).to_owned()).collect(),
            machines: machines
                .iter()
                .map(|(name, machine)| ((*name).to_owned(), [(*machine).to_owned()].into()))
                .collect(),
            ..LeftOpen::default()
        }
    }

    /// Two of node a, then four: four at a time. Node b was not measured first, and then was.
    #[test]
    fn parts_of_a_period_are_told_once() {
        let mut all = LeftOpen::default();
        all.add(part(&[("a", 2), ("b", 1)], &[], &[("b", "i-1")]));
        all.add(part(&[("a", 4)], &["b", "c"], &[("b", "i-2"), ("c", "i-3")]));
        let told = all.in_words(true);
        let begins = [
            "4 GPUs of 1 node that no exporter measures (a): ",
            "1 GPU of 1 node that exporters measure only part of the time or not at all (b): ",
            "CPU and memory of 2 nodes: unknown",
            "1 node name moved to another machine within the period (such as b): ",
        ];
        assert_eq!(told.len(), begins.len(), "{told:?}");
        for (told, begin) in told.iter().zip(begins) {
            assert!(told.starts_with(begin), "{told}");
        }
        let mut silent = LeftOpen::default();
        assert_eq!(silent.in_words(true), Vec::<String>::new());
        silent.add(part(&[], &[], &[]));
        assert_eq!(silent.in_words(true), [NO_GPU_WAS_SEEN]);
    }

    #[test]
    fn a_node_of_objects_is_unseen_where_no_part_has_it() {
        let unseen = |nodes: &[&str]| LeftOpen {
            unseen: Some(nodes.iter().map(|node| ((*node).to_owned(), 8)).collect()),
            ..LeftOpen::default()
        };
        let mut all = LeftOpen::default();
        all.add(unseen(&["a", "b"]));
        all.add(unseen(&["b", "c"]));
        assert_eq!(all.in_words(false), ["8 GPUs on 1 node without exporter series: not included"]);
    }
}

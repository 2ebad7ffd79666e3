//! Nodes whose name another machine had before: what each of them was.

use std::collections::{BTreeMap, BTreeSet};

use super::read::{KubeNode, KubeState, KubeTable, text};
use crate::prometheus::{Labels, Series};
use crate::selector::chunks;

/// Series that say what a node was, moment by moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeSeries {
    /// Who it was: identity by the provider and of the machine.
    Info,
    Labels,
    /// What pods could have of CPU and memory.
    Allocatable,
}

/// Answers about nodes that were several machines.
#[derive(Clone, Debug, Default)]
pub struct MachineSeries {
    found: Vec<(NodeSeries, Series)>,
}

/// Identity by the provider, and of the machine.
type Identity = (String, String);

/// The queries for what these nodes were at each step.
pub fn node_history(series: NodeSeries, nodes: &[&str], step_ms: u64) -> Vec<String> {
    let window_ms = step_ms.saturating_sub(1).max(1);
    let name = series.table().series();
    let more = if series == NodeSeries::Allocatable { r#",resource=~"cpu|memory""# } else { "" };
    let query = |names: Vec<String>| {
        let names = names.join("|");
        let of = |label: &str| {
            format!("last_over_time({name}{{{label}=~\"{names}\"{more}}}[{window_ms}ms])")
        };
        format!("{} or {}", of("node"), of("exported_node"))
    };
    chunks(nodes).into_iter().map(query).collect()
}

impl NodeSeries {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Info, Self::Labels, Self::Allocatable];

    fn table(self) -> KubeTable {
        match self {
            Self::Info => KubeTable::NodeInfo,
            Self::Labels => KubeTable::NodeLabels,
            Self::Allocatable => KubeTable::NodeAllocatable,
        }
    }
}

impl MachineSeries {
    /// Takes an answer to one of [`node_history`].
    pub fn take(&mut self, kind: NodeSeries, series: Vec<Series>) {
        self.found.extend(series.into_iter().map(|series| (kind, series)));
    }

    /// What each node was, from when, of those that were several machines.
    pub fn of_reused(
        &self,
        nodes: &BTreeMap<String, KubeNode>,
    ) -> BTreeMap<String, Vec<(u64, KubeNode)>> {
        let mut machines = BTreeMap::new();
        for name in reused(nodes) {
            let KubeNode { has_devices, offers_devices, .. } = nodes[name];
            let of_node: Vec<(u64, KubeNode)> = self
                .machines(name)
                .into_iter()
                .map(|(from_ms, node)| (from_ms, KubeNode { has_devices, offers_devices, ..node }))
                .collect();
            if !of_node.is_empty() {
                machines.insert(name.to_owned(), of_node);
            }
        }
        machines
    }

    /// What a node was, from when.
    fn machines(&self, name: &str) -> Vec<(u64, KubeNode)> {
        let own = || self.found.iter().filter(|(_, series)| of_node(&series.labels, name));
        let infos = own().filter(|(kind, _)| *kind == NodeSeries::Info);
        let begins = begins(infos.map(|(_, series)| series));
        let ends = begins.iter().skip(1).map(|(from_ms, _)| *from_ms).chain([u64::MAX]);
        let machines =
            begins.iter().zip(ends).enumerate().map(|(place, ((from_ms, _), end_ms))| {
                // Before the first word of the first machine it was there, too.
                let from_ms = if place == 0 { 0 } else { *from_ms };
                (from_ms, machine(name, own(), from_ms..end_ms))
            });
        machines.collect()
    }
}

/// Names of nodes that were several machines.
pub fn reused(nodes: &BTreeMap<String, KubeNode>) -> BTreeSet<&str> {
    let reused = nodes.iter().filter(|(_, node)| node.identities.len() > 1);
    reused.map(|(name, _)| name.as_str()).collect()
}

fn of_node(labels: &Labels, name: &str) -> bool {
    text(labels, "node").is_some_and(|node| node == name)
}

/// When which machine began, ascending. Of several at one moment the one counts that came last.
fn begins<'s>(infos: impl Iterator<Item = &'s Series>) -> Vec<(u64, Identity)> {
    let mut of_identity: BTreeMap<Identity, BTreeSet<i64>> = BTreeMap::new();
    for Series { labels, samples } in infos {
        let part = |name: &str| text(labels, name).unwrap_or_default();
        let times = of_identity.entry((part("provider_id"), part("system_uuid"))).or_default();
        times.extend(samples.iter().map(|sample| sample.at_ms));
    }
    let mut at: BTreeMap<i64, (i64, &Identity)> = BTreeMap::new();
    for (identity, times) in &of_identity {
        let Some(first_ms) = times.first() else { continue };
        for at_ms in times {
            let last = at.entry(*at_ms).or_insert((*first_ms, identity));
            *last = (*last).max((*first_ms, identity));
        }
    }
    let mut found: Vec<(u64, Identity)> = Vec::new();
    for (at_ms, (_, identity)) in at {
        if found.last().is_none_or(|(_, last)| last != identity) {
            found.push((u64::try_from(at_ms).unwrap_or(0), identity.clone()));
        }
    }
    found
}

/// What a node was for some time: the last word of each series.
fn machine<'s>(
    name: &str,
    series: impl Iterator<Item = &'s (NodeSeries, Series)>,
    time: std::ops::Range<u64>,
) -> KubeNode {
    let mut last: Vec<(i64, &NodeSeries, &Labels, f64)> = Vec::new();
    for (kind, Series { labels, samples }) in series {
        let is_inside = |at_ms: i64| u64::try_from(at_ms).is_ok_and(|at_ms| time.contains(&at_ms));
        let inside = samples.iter().rfind(|sample| is_inside(sample.at_ms));
        last.extend(inside.map(|sample| (sample.at_ms, kind, labels, sample.value)));
    }
    last.sort_by_key(|(at_ms, ..)| *at_ms);
    let mut state = KubeState::default();
    for (_, kind, labels, value) in last {
        state.take_one(kind.table(), labels, value);
    }
    state.nodes.remove(name).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kube_state::label;
    use crate::prometheus::SeriesSample;

    fn series(pairs: &[(&str, &str)], minutes: std::ops::Range<i64>, value: f64) -> Series {
        let labels = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let samples = minutes.map(|minute| SeriesSample { at_ms: minute * 60_000, value });
        Series { labels: labels.collect(), samples: samples.collect() }
    }

    /// `n5` is an on-demand machine for ten minutes and is gone for five; then a spot machine has
    /// its name. Its label `zone` came late, `n6` was renewed and stayed who it was.
    #[test]
    fn each_machine_of_a_name_has_its_own_facts() {
        let mut state = KubeState::default();
        let info = |node, id| [("node", node), ("provider_id", id), ("system_uuid", "u")];
        let infos = [
            series(&info("n5", "a"), 0..10, 1.0),
            series(&info("n5", "b"), 15..30, 1.0),
            series(&info("n6", "c"), 0..10, 1.0),
            series(&[&info("n6", "c")[..], &[("kernel_version", "6")][..]].concat(), 10..30, 1.0),
        ];
        state.take(KubeTable::NodeInfo, infos.to_vec());
        assert_eq!(reused(&state.nodes), BTreeSet::from(["n5"]));
        let bought = |kind| [("node", "n5"), ("label_karpenter_sh_capacity_type", kind)];
        let mut found = MachineSeries::default();
        found.take(NodeSeries::Info, infos.to_vec());
        let of_labels = vec![
            series(&bought("on-demand"), 0..4, 1.0),
            series(&[&bought("on-demand")[..], &[("label_zone", "z")][..]].concat(), 4..10, 1.0),
            series(&bought("spot"), 15..30, 1.0),
        ];
        found.take(NodeSeries::Labels, of_labels);
        let cpu = [("node", "n5"), ("resource", "cpu")];
        found.take(
            NodeSeries::Allocatable,
            vec![series(&cpu, 0..10, 16.0), series(&cpu, 15..30, 32.0)],
        );
        state.machines.extend(found.of_reused(&state.nodes));
        assert_eq!(state.machines.keys().collect::<Vec<_>>(), ["n5"]);
        let told = state.machines["n5"].iter().map(|(from_ms, node)| {
            let text = |key| label(&node.labels, key).unwrap_or_default();
            let bought = text("karpenter.sh/capacity-type");
            (from_ms / 60_000, node.provider_id.clone(), bought, text("zone"), node.cpu_milli)
        });
        let expected = [
            (0, "a".to_owned(), "on-demand".to_owned(), "z".to_owned(), 16_000),
            (15, "b".to_owned(), "spot".to_owned(), String::new(), 32_000),
        ];
        assert_eq!(told.collect::<Vec<_>>(), expected);
    }
}

//! GPUs that kube-state-metrics knows and no exporter measures: they are there and cost money all
//! the same.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use dovetail_account::signal::ActivityRule;
use dovetail_console::plain::plain;
use dovetail_metrics::exporter::{ObservedTime, UnmeasuredNode};
use dovetail_metrics::kube_state::{
    DeviceAmounts, KubeState, SampleTime, any_request, devices_of_nodes, devices_of_pods,
};
use dovetail_sources::prometheus::Asker;

use super::left_open::LeftOpen;

/// Adds them to what was seen, with the pods that asked for them; answers with what that leaves
/// open.
pub fn add(
    asker: &mut Asker,
    time: &mut ObservedTime,
    kube: &KubeState,
    notes: &mut Vec<String>,
) -> LeftOpen {
    let nothing = LeftOpen::default();
    if kube.is_empty() {
        return nothing;
    }
    let mut amounts = DeviceAmounts::default();
    match asker.range(&devices_of_nodes(asker.step_ms)) {
        Ok(series) => amounts.take_nodes(series),
        Err(error) => {
            notes.push(format!("which GPUs no exporter measures could not be read: {error}"));
            return nothing;
        }
    }
    let names = ExporterNodeNames::of(time, kube);
    if let Some(address) = names.without_node.first() {
        notes.push(plain(&format!(
            "exporters report node addresses that kube-state-metrics does not have (such as \
             {address}), so nodes without an exporter cannot be identified and are not included in \
             any amount"
        )));
        return nothing;
    }
    let times = SampleTime {
        step_ms: asker.step_ms,
        longest_ms: asker.step_ms.saturating_mul(ActivityRule::default().max_gap_intervals.into()),
        until_ms: asker.period.to_ms,
    };
    let found = amounts.nodes().into_iter().map(|node| {
        time.unmeasured(node, &names.of_node(node), &amounts, kube.nodes.get(node), times)
    });
    let mut found: Vec<UnmeasuredNode> = found.collect();
    let guessed = found.iter().filter(|node| node.is_guess()).map(|node| node.node.clone());
    let left = nothing.with_guessed(guessed);
    found.retain(|node| node.devices > 0);
    if found.is_empty() {
        return left;
    }
    let is_known = ask_pods(asker, &found, &mut amounts, notes);
    for node in &found {
        let asked = amounts.of_pods(&node.node, times);
        time.add_unmeasured(node, &names.of_node(&node.node), is_known.then_some(&asked));
    }
    left.with_unmeasured(&found, is_known)
}

/// Asks what pods asked for on these nodes; `false` where nobody knows.
fn ask_pods(
    asker: &mut Asker,
    found: &[UnmeasuredNode],
    amounts: &mut DeviceAmounts,
    notes: &mut Vec<String>,
) -> bool {
    let nodes: Vec<&str> = found.iter().map(|node| node.node.as_str()).collect();
    let mut is_any = false;
    for query in devices_of_pods(&nodes, asker.step_ms) {
        match asker.range(&query) {
            Ok(series) => {
                is_any |= !series.is_empty();
                amounts.take_pods(series);
            }
            Err(error) => {
                notes.push(format!(
                    "which pods use the GPUs that no exporter measures could not be read: {error}"
                ));
                return false;
            }
        }
    }
    let window_ms = asker.period.to_ms - asker.period.from_ms;
    let mut is_kept = || {
        let answer = asker.instant(&any_request(window_ms), asker.period.to_ms.saturating_sub(1));
        answer.is_ok_and(|series| !series.is_empty())
    };
    is_any || is_kept()
}

/// Under which names exporters know the nodes of kube-state-metrics.
#[derive(Default)]
struct ExporterNodeNames {
    of_nodes: BTreeMap<String, BTreeSet<String>>,
    /// Addresses of exporters that are no node's.
    without_node: BTreeSet<String>,
}

impl ExporterNodeNames {
    /// By name, its first part, its address, and where the pods stand that hold its devices.
    fn of(time: &ObservedTime, kube: &KubeState) -> Self {
        let mut by_other: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for (name, node) in &kube.nodes {
            by_other.entry(short(name)).or_default().insert(name);
            by_other.entry(&node.internal_ip).or_default().insert(name);
        }
        let mut found = Self::default();
        let told: BTreeSet<&str> = time.devices.iter().map(|device| &*device.node).collect();
        for name in told {
            let is_address = name.parse::<IpAddr>().is_ok();
            let other = if is_address { name } else { short(name) };
            let by_other = by_other.get(other).filter(|nodes| nodes.len() == 1);
            let node = match kube.nodes.contains_key(name) {
                true => Some(name),
                false => by_other
                    .and_then(|nodes| nodes.first().copied())
                    .or_else(|| by_holders(time, kube, name)),
            };
            if let Some(node) = node {
                found.of_nodes.entry(node.to_owned()).or_default().insert(name.to_owned());
            } else if is_address {
                found.without_node.insert(name.to_owned());
            }
        }
        found
    }

    fn of_node<'a>(&'a self, node: &'a str) -> BTreeSet<&'a str> {
        let known = self.of_nodes.get(node).into_iter().flatten().map(String::as_str);
        known.chain([node]).collect()
    }
}

/// The one node on which the pods stand that hold devices under a name.
fn by_holders<'k>(time: &ObservedTime, kube: &'k KubeState, name: &str) -> Option<&'k str> {
    let devices = time.devices.iter().filter(|device| device.node == name);
    let holders = devices.flat_map(|device| &device.history.holdings);
    let holders = holders.filter_map(|holding| time.holders.get(holding.holder as usize));
    let pods =
        holders.filter_map(|holder| kube.pods.get(&(holder.namespace.clone(), holder.pod.clone())));
    let mut nodes = pods.flat_map(|pod| &pod.nodes);
    let first = nodes.next()?;
    nodes.all(|node| node == first).then_some(first.as_str())
}

fn short(name: &str) -> &str {
    name.split_once('.').map_or(name, |(first, _)| first)
}

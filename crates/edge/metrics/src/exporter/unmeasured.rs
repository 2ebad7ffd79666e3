//! Devices that a node has and no exporter speaks of: installed as long as kube-state-metrics has
//! them, held by the pods that asked for them, and nobody knows what they did.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_account::device_time::{DeviceHistory, HoldingTime, Share, Span};

use super::history::{ObservedDevice, ObservedTime};
use super::node_cut::{NodeCut, ResourceCut};
use super::origin::DeviceHolder;
use crate::kube_state::{CountedSpan, DeviceAmounts, KubeNode, PodResource, SampleTime};

/// Devices of one node that no exporter measured, for some time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnmeasuredNode {
    pub node: String,
    /// The most of its devices that were not measured at a time.
    pub devices: u32,
    /// The most that were measured at a time.
    pub measured: u32,
    cut: NodeCut,
    slots: Vec<Slot>,
}

/// A device while it was not measured.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Slot {
    name: String,
    span: Span,
}

/// What of a device a pod has.
type Held = (usize, u32);

impl ObservedTime {
    /// What of a node's devices no exporter measured, if any. `names` are those under which
    /// exporters know the node, `labels` is what kube-state-metrics has of it.
    pub fn unmeasured(
        &self,
        node: &str,
        names: &BTreeSet<&str>,
        amounts: &DeviceAmounts,
        labels: Option<&KubeNode>,
        time: SampleTime,
    ) -> UnmeasuredNode {
        let own = self.devices.iter().filter(|device| names.contains(&*device.node));
        let own: Vec<&ObservedDevice> = own.collect();
        let installed: Vec<Span> = own.iter().map(|device| device.history.installed).collect();
        let measured = most_at_a_time(&installed);
        let offered = amounts.of_node(node, time);
        let cut = NodeCut::of(labels, &offered, measured);
        let mut runs = runs(&offered, &installed, &cut);
        if measured > 0 {
            // Samples bridge what is shorter, and servers do not begin in the same second.
            runs.retain(|run| run.span.to_ms - run.span.from_ms > time.longest_ms);
        }
        let devices = runs.iter().map(|run| run.count).max().unwrap_or(0);
        let slots = slots(&runs, &own);
        UnmeasuredNode { node: node.to_owned(), devices, measured, cut, slots }
    }

    /// Adds these devices, with the pods that asked for them and are on no measured one. `None`
    /// where nobody keeps what pods ask for: who had them is unknown then.
    pub fn add_unmeasured(
        &mut self,
        unmeasured: &UnmeasuredNode,
        names: &BTreeSet<&str>,
        asked: Option<&BTreeMap<&PodResource, Vec<CountedSpan>>>,
    ) {
        let held = asked.map(|asked| self.held(unmeasured, names, asked)).unwrap_or_default();
        let mut holdings: Vec<Vec<HoldingTime>> = vec![Vec::new(); unmeasured.slots.len()];
        for ((slot, (namespace, pod), units), spans) in held {
            let holder = self.number(&namespace, &pod);
            let share = unmeasured.cut.share(units);
            holdings[slot].extend(spans.into_iter().map(|held| HoldingTime {
                holder,
                share: share.clone(),
                held,
                ready_ms: Some(held.from_ms),
                gang_ready_ms: Some(held.from_ms),
                activity: Vec::new(),
                work: Vec::new(),
            }));
        }
        for (Slot { name, span }, holdings) in unmeasured.slots.iter().zip(holdings) {
            self.devices.push(ObservedDevice {
                node: unmeasured.node.clone(),
                device: name.clone(),
                model: None,
                is_measured: false,
                history: DeviceHistory {
                    name: format!("{}/{name}", unmeasured.node),
                    installed: *span,
                    unavailable: Vec::new(),
                    free_causes: Vec::new(),
                    unseen: if asked.is_none() { vec![*span] } else { Vec::new() },
                    holdings,
                },
            });
        }
    }

    /// Who held which slot, and when: by slot, pod and units.
    fn held(
        &self,
        unmeasured: &UnmeasuredNode,
        names: &BTreeSet<&str>,
        asked: &BTreeMap<&PodResource, Vec<CountedSpan>>,
    ) -> BTreeMap<(usize, PodName, u32), Vec<Span>> {
        let measured = self.measured_holdings(names);
        let slots = &unmeasured.slots;
        let mut moments: BTreeSet<u64> = BTreeSet::new();
        let of_slots = slots.iter().map(|slot| slot.span);
        let of_pods = asked.values().flatten().map(|amount| amount.span);
        let of_measured = measured.values().flatten().copied();
        for span in of_slots.chain(of_pods).chain(of_measured) {
            moments.extend([span.from_ms, span.to_ms]);
        }
        let moments: Vec<u64> = moments.into_iter().collect();
        let mut has: BTreeMap<PodName, Vec<Held>> = BTreeMap::new();
        let mut found: BTreeMap<(usize, PodName, u32), Vec<Span>> = BTreeMap::new();
        for pair in moments.windows(2) {
            let span = Span { from_ms: pair[0], to_ms: pair[1] };
            let there: BTreeSet<usize> = slots
                .iter()
                .enumerate()
                .filter(|(_, slot)| holds_at(slot.span, span.from_ms))
                .map(|(number, _)| number)
                .collect();
            if there.is_empty() {
                has.clear();
                continue;
            }
            let wants = wants(asked, &measured, &unmeasured.cut, span.from_ms);
            has = assigned(&has, wants, &there, unmeasured.cut.units());
            for (pod, held) in &has {
                let mut of_slots: BTreeMap<usize, u32> = BTreeMap::new();
                held.iter().for_each(|(slot, units)| *of_slots.entry(*slot).or_default() += units);
                for (slot, units) in of_slots {
                    let spans = found.entry((slot, pod.clone(), units)).or_default();
                    match spans.last_mut() {
                        Some(last) if last.to_ms == span.from_ms => last.to_ms = span.to_ms,
                        _ => spans.push(span),
                    }
                }
            }
        }
        found
    }

    /// When each pod held devices that exporters measure, a span for each (slice of a) device.
    fn measured_holdings(&self, names: &BTreeSet<&str>) -> BTreeMap<PodName, Vec<Span>> {
        let mut found: BTreeMap<PodName, Vec<Span>> = BTreeMap::new();
        let own = self.devices.iter();
        for device in own.filter(|device| device.is_measured && names.contains(&*device.node)) {
            for time in &device.history.holdings {
                let Some(holder) = self.holders.get(time.holder as usize) else { continue };
                let pod = (holder.namespace.clone(), holder.pod.clone());
                found.entry(pod).or_default().push(time.held);
            }
        }
        found
    }

    fn number(&mut self, namespace: &str, pod: &str) -> u32 {
        let is_it = |holder: &DeviceHolder| holder.namespace == namespace && holder.pod == pod;
        let place = self.holders.iter().position(is_it).unwrap_or_else(|| {
            let (namespace, pod) = (namespace.to_owned(), pod.to_owned());
            self.holders.push(DeviceHolder { namespace, pod, container: String::new(), turn: 0 });
            self.holders.len() - 1
        });
        place as u32
    }
}

/// Namespace and name.
type PodName = (String, String);

fn holds_at(span: Span, at_ms: u64) -> bool {
    (span.from_ms..span.to_ms).contains(&at_ms)
}

fn most_at_a_time(spans: &[Span]) -> u32 {
    let at = |at_ms: u64| spans.iter().filter(|span| holds_at(**span, at_ms)).count();
    spans.iter().map(|span| at(span.from_ms)).max().unwrap_or(0) as u32
}

/// When how many devices were there that are not measured.
fn runs(
    offered: &BTreeMap<&str, Vec<CountedSpan>>,
    installed: &[Span],
    cut: &NodeCut,
) -> Vec<CountedSpan> {
    let of_offered = offered.values().flatten().map(|amount| amount.span);
    let spans = of_offered.chain(installed.iter().copied());
    let moments: BTreeSet<u64> = spans.flat_map(|span| [span.from_ms, span.to_ms]).collect();
    let moments: Vec<u64> = moments.into_iter().collect();
    let mut runs: Vec<CountedSpan> = Vec::new();
    for pair in moments.windows(2) {
        let span = Span { from_ms: pair[0], to_ms: pair[1] };
        let at = offered.iter().filter_map(|(resource, amounts)| {
            let amount = amounts.iter().find(|amount| holds_at(amount.span, span.from_ms))?;
            Some((*resource, amount.count))
        });
        let there = cut.devices(at);
        let measured = installed.iter().filter(|own| holds_at(**own, span.from_ms)).count() as u32;
        let count = there.saturating_sub(measured);
        match runs.last_mut() {
            Some(last) if last.span.to_ms == span.from_ms && last.count == count => {
                last.span.to_ms = span.to_ms;
            }
            _ => runs.push(CountedSpan { span, count }),
        }
    }
    runs.retain(|run| run.count > 0);
    runs
}

/// The devices of these runs. One that exporters know and do not speak of then has its own name.
fn slots(runs: &[CountedSpan], own: &[&ObservedDevice]) -> Vec<Slot> {
    let most = runs.iter().map(|run| run.count).max().unwrap_or(0);
    let mut slots: Vec<Slot> = Vec::new();
    for number in 0..most {
        let mut spans: Vec<Span> = Vec::new();
        for run in runs.iter().filter(|run| run.count > number) {
            match spans.last_mut() {
                Some(last) if last.to_ms == run.span.from_ms => last.to_ms = run.span.to_ms,
                _ => spans.push(run.span),
            }
        }
        for span in spans {
            let is_apart = |other: Span| other.to_ms <= span.from_ms || span.to_ms <= other.from_ms;
            let is_free = |name: &str| {
                let known = own.iter().filter(|device| device.device == name);
                known.map(|device| device.history.installed).all(is_apart)
                    && slots.iter().filter(|slot| slot.name == name).all(|slot| is_apart(slot.span))
            };
            let known = own.iter().map(|device| device.device.as_str()).find(|name| is_free(name));
            let name = known.map_or_else(|| format!("unmeasured-{number}"), str::to_owned);
            slots.push(Slot { name, span });
        }
    }
    slots
}

/// What each pod asks for at a moment beside what it has of measured devices, in units, largest
/// first.
fn wants(
    asked: &BTreeMap<&PodResource, Vec<CountedSpan>>,
    measured: &BTreeMap<PodName, Vec<Span>>,
    cut: &NodeCut,
    at_ms: u64,
) -> BTreeMap<PodName, Vec<u32>> {
    let mut wants: BTreeMap<PodName, Vec<u32>> = BTreeMap::new();
    for ((namespace, pod, resource), amounts) in asked {
        let Some(amount) = amounts.iter().find(|amount| holds_at(amount.span, at_ms)) else {
            continue;
        };
        let parts = wants.entry((namespace.clone(), pod.clone())).or_default();
        parts.extend((0..amount.count).map(|_| cut.units_of(resource)));
    }
    for (pod, parts) in &mut wants {
        parts.sort_unstable_by(|one, other| other.cmp(one));
        let spans = measured.get(pod).into_iter().flatten();
        let has = spans.filter(|span| holds_at(**span, at_ms)).count();
        parts.drain(..has.min(parts.len()));
    }
    wants
}

/// Who has what: pods keep what they had as far as they still want it, and take the first device
/// with room for the rest.
fn assigned(
    before: &BTreeMap<PodName, Vec<Held>>,
    mut wants: BTreeMap<PodName, Vec<u32>>,
    there: &BTreeSet<usize>,
    units_of_device: u32,
) -> BTreeMap<PodName, Vec<Held>> {
    let mut now: BTreeMap<PodName, Vec<Held>> = BTreeMap::new();
    let mut used: BTreeMap<usize, u32> = there.iter().map(|slot| (*slot, 0)).collect();
    for (pod, held) in before {
        let Some(parts) = wants.get_mut(pod) else { continue };
        for (slot, units) in held {
            let Some(place) = parts.iter().position(|part| part == units) else { continue };
            let Some(used) = used.get_mut(slot) else { continue };
            parts.remove(place);
            *used += units;
            now.entry(pod.clone()).or_default().push((*slot, *units));
        }
    }
    for (pod, parts) in wants {
        for units in parts {
            let room = used.iter_mut().find(|(_, used)| **used + units <= units_of_device);
            let Some((slot, used)) = room else { continue };
            *used += units;
            now.entry(pod.clone()).or_default().push((*slot, units));
        }
    }
    now
}

impl NodeCut {
    fn share(&self, units: u32) -> Share {
        match units >= self.units() {
            true => Share::Whole,
            false => Share::Replicas { held: units, of: self.units() },
        }
    }
}

impl UnmeasuredNode {
    /// Whether it was taken for a node whose devices are shared because it offers more than
    /// exporters measure, and nobody says that they are.
    pub fn is_guess(&self) -> bool {
        matches!(self.cut.cut, ResourceCut::Guessed(replicas) if replicas > 1)
    }
}

#[cfg(test)]
mod tests;

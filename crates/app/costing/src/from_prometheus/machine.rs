//! The machines that nodes with GPUs were. A name may be given to another machine within a period:
//! each has the time in which it had the name, its own facts, and its own price.

use dovetail_objects::labels;
use std::collections::{BTreeMap, BTreeSet};

use dovetail_account::device_time::Span;
use dovetail_facts::ObjectRef;
use dovetail_inventory::facts::POOL_LABELS;
use dovetail_metrics::exporter::{ObservedDevice, ObservedTime};
use dovetail_metrics::kube_state::{KubeNode, KubeState, label};
use dovetail_price::{PriceBook, node_place, place_labels};
use dovetail_settings::Settings;
use dovetail_sources::node_prices::NodeToPrice;

use super::look::BillInputs;
use crate::from_objects::words;
use crate::teams::Labels;

/// The label of NVIDIA's GPU feature discovery that names the model.
const PRODUCT: &str = labels::NVIDIA_PRODUCT;

/// A node with GPUs while it was one machine.
#[derive(Debug, Default)]
pub struct Machine {
    pub name: String,
    /// When it had the name.
    pub span: Span,
    pub model: Option<String>,
    pub gpus: i64,
    pub labels: Labels,
    pub provider_id: String,
    pub pool: String,
    pub cpu_milli: u64,
    pub memory_bytes: u64,
}

/// Machines by the names that they had, ascending in time; each by its place in the list.
#[derive(Debug, Default)]
pub struct Places<'m> {
    of_names: BTreeMap<&'m str, Vec<(Span, usize)>>,
}

impl Machine {
    pub(crate) fn to_price(&self) -> NodeToPrice<'_> {
        NodeToPrice {
            gpus: self.gpus,
            of_machine: None,
            model: self.model.as_deref(),
            labels: &self.labels,
            provider_id: &self.provider_id,
            // Series name models, not what pods ask for.
            resources: &[],
        }
    }
}

impl<'m> Places<'m> {
    /// Machines by the names of nodes.
    pub fn of(machines: &'m [Machine]) -> Self {
        let mut of_names: BTreeMap<&str, Vec<(Span, usize)>> = BTreeMap::new();
        for (place, machine) in machines.iter().enumerate() {
            of_names.entry(&machine.name).or_default().push((machine.span, place));
        }
        Self { of_names }
    }

    /// Which machines had a name within a span, and when.
    pub fn within(&self, name: &str, span: Span) -> impl Iterator<Item = (Span, usize)> {
        let known = self.of_names.get(name).into_iter().flatten();
        known.filter_map(move |(of_machine, place)| {
            let from_ms = span.from_ms.max(of_machine.from_ms);
            let to_ms = span.to_ms.min(of_machine.to_ms);
            (from_ms < to_ms).then_some((Span { from_ms, to_ms }, *place))
        })
    }

    /// The moments within a span at which a name went to another machine.
    pub fn changes(&self, span: Span) -> BTreeSet<u64> {
        let begins = self.of_names.values().flat_map(|known| known.iter().skip(1));
        let begins = begins.map(|(of_machine, _)| of_machine.from_ms);
        begins.filter(|at_ms| span.from_ms < *at_ms && *at_ms < span.to_ms).collect()
    }
}

/// Machines by name and time, from devices, with what objects and series say of them.
pub fn machines(time: &ObservedTime, kube: &KubeState, sources: &BillInputs<'_>) -> Vec<Machine> {
    let mut by_name: BTreeMap<&str, Vec<&ObservedDevice>> = BTreeMap::new();
    for device in &time.devices {
        by_name.entry(&device.node).or_default().push(device);
    }
    let mut machines = Vec::new();
    for (name, devices) in by_name {
        let begins = kube.machines.get(name).map_or(&[][..], Vec::as_slice);
        let mut of_name: Vec<Machine> = match begins {
            [] => {
                let span = Span { from_ms: 0, to_ms: u64::MAX };
                vec![machine(name, span, kube.node(name), &devices, sources)]
            }
            begins => {
                let ends = begins.iter().skip(1).map(|(from_ms, _)| *from_ms).chain([u64::MAX]);
                let spans = begins
                    .iter()
                    .zip(ends)
                    .map(|((from_ms, node), to_ms)| (Span { from_ms: *from_ms, to_ms }, node));
                let all =
                    spans.map(|(span, node)| machine(name, span, Some(node), &devices, sources));
                all.filter(|machine| machine.gpus > 0).collect()
            }
        };
        with_objects(name, &mut of_name, sources);
        for machine in &mut of_name {
            machine.model = machine.model.take().or_else(|| model(machine));
        }
        machines.extend(of_name);
    }
    machines
}

/// A machine by series.
fn machine(
    name: &str,
    span: Span,
    node: Option<&KubeNode>,
    devices: &[&ObservedDevice],
    sources: &BillInputs<'_>,
) -> Machine {
    let is_its = |device: &&&ObservedDevice| {
        let Span { from_ms, to_ms } = device.history.installed;
        from_ms < span.to_ms && span.from_ms < to_ms
    };
    let its = || devices.iter().filter(is_its);
    let names: BTreeSet<&str> = its().map(|device| device.device.as_str()).collect();
    let mut machine = Machine {
        name: name.to_owned(),
        span,
        gpus: names.len() as i64,
        model: its().find_map(|device| device.model.clone()),
        ..Machine::default()
    };
    let Some(node) = node else { return machine };
    machine.labels = known_labels(node, sources.settings);
    machine.provider_id.clone_from(&node.provider_id);
    (machine.cpu_milli, machine.memory_bytes) = (node.cpu_milli, node.memory_bytes);
    let pool = POOL_LABELS.iter().find_map(|(key, kind)| {
        machine.labels.get(*key).map(|name| words(&ObjectRef::new(kind, "", name)))
    });
    machine.pool = pool.unwrap_or_default();
    machine
}

/// Labels of a node that say which pool it is of, or decide its price, by their names in the API.
pub(crate) fn known_labels(node: &KubeNode, settings: &Settings) -> Labels {
    let keys = place_labels().chain(POOL_LABELS.iter().map(|(key, _)| *key)).chain([PRODUCT]);
    let own = [settings.prices.labels(), settings.cost.hardware_labels()].concat();
    let keys = keys.map(|key| -> &str { key }).chain(own.iter().map(String::as_str));
    keys.filter_map(|key| Some((key.to_owned(), label(&node.labels, key)?))).collect()
}

/// What objects say, which are of the machine that has the name now.
fn with_objects(name: &str, machines: &mut [Machine], sources: &BillInputs<'_>) {
    let Some(objects) = sources.gathered else { return };
    let mut nodes = objects.facts.nodes.iter();
    let Some(node) = nodes.find(|node| *node.node.name == *name) else { return };
    let provider_id = objects.provider_ids.get(name).cloned().unwrap_or_default();
    let is_one = machines.len() == 1;
    let Some(machine) = machines.last_mut() else { return };
    if !is_one && machine.provider_id != provider_id {
        return;
    }
    machine.labels.clone_from(&node.node.labels);
    machine.provider_id = provider_id;
    let amount = |amount: i64| u64::try_from(amount).unwrap_or(0);
    machine.cpu_milli = amount(node.node.allocatable.cpu_milli);
    machine.memory_bytes = amount(node.node.allocatable.memory_bytes);
    if node.pool.kind != "Node" {
        machine.pool = words(&node.pool);
    }
    let mut of_moment = objects.moment.nodes.iter();
    let gpus = of_moment.find(|gpus| gpus.node == name);
    machine.model = machine.model.take().or_else(|| gpus?.model.clone());
}

/// The model of GPUs that no exporter names.
fn model(machine: &Machine) -> Option<String> {
    let product = machine.labels.get(PRODUCT).filter(|product| !product.is_empty());
    let by_type = || {
        let place = node_place(&machine.labels, &machine.provider_id);
        PriceBook::model_of_instance(place.instance_type.as_deref()?).map(str::to_owned)
    };
    product.cloned().or_else(by_type)
}

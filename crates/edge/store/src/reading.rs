//! What is handed in: what a source said of one cluster over some time.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_account::cost::HeldTime;
use dovetail_account::device_time::{DeviceInterval, Span};
use dovetail_account::rollup::{FreeLook, HOUR_MS, NodeTerms};
use dovetail_model::device::WHOLE_DEVICE_MILLI;

use crate::error::StoreError;

/// A reading. Of each device it says everything from its first interval to its last, and nothing
/// outside.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// Identity of the cluster.
    pub cluster: String,
    /// Who was read; what was read is known for each source apart.
    pub source: String,
    /// The time that was asked for, whether or not anything was there.
    pub span: Span,
    /// Distance of two samples, in ms; `None` where nobody knows.
    pub step_ms: Option<u64>,
    /// Nodes of the devices, each once.
    pub nodes: Vec<ReadNode>,
    /// Holders, each once.
    pub pods: Vec<ReadPod>,
    /// Devices, each once.
    pub devices: Vec<ReadDevice>,
    /// CPU and memory that was kept, of whole hours; of a node and hour that is in it all there
    /// was. `None` where nobody asked: what an earlier reading said stays.
    pub kept: Option<Vec<ReadKept>>,
    /// Why what was free was free, of whole looks; they may begin before the reading, and later
    /// ones count. Hours that the reading does not touch are left alone.
    pub free: Vec<ReadFree>,
    /// How busy GPUs were while pods had them, as far as it was measured for each pod.
    pub used: Vec<ReadUsed>,
}

/// A node. What nobody knows is empty.
#[derive(Clone, Debug, Default)]
pub struct ReadNode {
    pub name: String,
    /// Model of its GPUs; empty where nobody knows.
    pub gpu_type: String,
    /// Its pool or group; empty where nobody knows.
    pub pool: String,
    /// How its provider knows it.
    pub provider_id: String,
    pub provider: String,
    pub region: String,
    pub instance_type: String,
    /// How it is bought.
    pub purchase: String,
    /// What it costs and offers.
    pub terms: NodeTerms,
}

/// A pod, with what names its payer. What nobody knows is `None`, or not among the labels.
#[derive(Clone, Debug, Default)]
pub struct ReadPod {
    pub namespace: String,
    pub name: String,
    /// Its top owner.
    pub job: String,
    pub queue: Option<String>,
    /// The model that it serves or trains.
    pub model: Option<String>,
    /// Labels of the namespace that may name a team.
    pub namespace_labels: BTreeMap<String, String>,
    /// Labels of the pod that may name a team.
    pub labels: BTreeMap<String, String>,
}

/// A device and what it was.
#[derive(Clone, Debug, Default)]
pub struct ReadDevice {
    /// Place of its node in the list.
    pub node: usize,
    /// Its name on the node.
    pub name: String,
    /// What it was; holders are places in the list of pods.
    pub intervals: Vec<DeviceInterval>,
}

/// What was free on a node for some time, by cause.
#[derive(Clone, Debug)]
pub struct ReadFree {
    /// Place of the node in the list.
    pub node: usize,
    /// When, and how much.
    pub look: FreeLook,
}

/// What was kept for a pod on a node in an hour.
#[derive(Clone, Copy, Debug)]
pub struct ReadKept {
    pub hour_ms: u64,
    /// Place of the node in the list.
    pub node: usize,
    /// Place of the pod in the list.
    pub pod: usize,
    /// How much, times how long.
    pub held: HeldTime,
}

/// How busy GPUs are is kept in slots of this length.
pub const USED_SLOT_MS: u64 = 300_000;

/// How busy the GPUs of a pod on a node were in one slot.
#[derive(Clone, Copy, Debug)]
pub struct ReadUsed {
    /// Place of the node in the list.
    pub node: usize,
    /// Place of the pod in the list.
    pub pod: usize,
    /// Begin of the slot, a multiple of [`USED_SLOT_MS`].
    pub slot_ms: u64,
    /// GPU-time that was measured, in milli-GPU × ms.
    pub measured_gpu_milli_ms: i64,
    /// That time × how busy the GPUs were, from 0 to 1.
    pub used_gpu_milli_ms: i64,
}

/// No name is longer: Kubernetes allows 253 bytes, an owner is three of them.
const LONGEST_NAME: usize = 1024;

/// A GPU-hour for a million dollars is a slip.
const DEAREST_USD_MICROS: i64 = 1_000_000_000_000;

impl Reading {
    /// The time in which a device was seen; nothing where it was not.
    pub(crate) fn seen(device: &ReadDevice) -> Option<Span> {
        let from_ms = device.intervals.iter().map(|interval| interval.span.from_ms).min()?;
        let to_ms = device.intervals.iter().map(|interval| interval.span.to_ms).max()?;
        Some(Span { from_ms, to_ms })
    }

    /// Refuses what cannot be.
    pub(crate) fn check(&self, now_ms: u64) -> Result<(), StoreError> {
        let fails = |what: String| {
            let cluster = shortened(&self.cluster);
            Err(StoreError::Reading { cluster, what })
        };
        let Span { from_ms, to_ms } = self.span;
        if from_ms > to_ms {
            return fails(format!("it ends at {to_ms} ms, before its start at {from_ms} ms"));
        }
        if to_ms > now_ms {
            return Err(StoreError::Future {
                cluster: shortened(&self.cluster),
                source_name: shortened(&self.source),
                ahead_s: (to_ms - now_ms).div_ceil(1000),
            });
        }
        if self.cluster.is_empty() {
            return fails("the cluster has no name: pass one with --cluster".to_owned());
        }
        let is_plain = |text: &str| !text.chars().any(char::is_control);
        if !is_plain(&self.cluster) || !is_plain(&self.source) {
            return fails("a name with control characters".to_owned());
        }
        if let Some(text) = self.texts().find(|text| text.len() > LONGEST_NAME) {
            let length = text.len();
            return fails(format!("`{}`: a name of {length} bytes", shortened(text)));
        }
        let problem = self.problem_of_nodes().or_else(|| self.problem_of_devices());
        let problem = problem.or_else(|| self.problem_of_kept());
        let problem = problem.or_else(|| self.problem_of_free());
        problem.or_else(|| self.problem_of_used()).map_or(Ok(()), fails)
    }

    fn texts(&self) -> impl Iterator<Item = &String> {
        let pods = self.pods.iter().flat_map(|pod| {
            let labels = pod.namespace_labels.iter().chain(&pod.labels);
            let labels = labels.flat_map(|(key, value)| [key, value]);
            let plain = [&pod.namespace, &pod.name, &pod.job];
            plain.into_iter().chain(&pod.queue).chain(&pod.model).chain(labels)
        });
        let nodes = self.nodes.iter().flat_map(|node| {
            let place = [&node.provider_id, &node.provider, &node.region, &node.instance_type];
            [&node.name, &node.gpu_type, &node.pool, &node.purchase].into_iter().chain(place)
        });
        let devices = self.devices.iter().map(|device| &device.name);
        [&self.cluster, &self.source].into_iter().chain(pods).chain(nodes).chain(devices)
    }

    fn problem_of_nodes(&self) -> Option<String> {
        let mut names = BTreeSet::new();
        self.nodes.iter().find_map(|node| {
            let name = shortened(&node.name);
            let price = node.terms.usd_micros_per_gpu_hour.unwrap_or(0);
            if !names.insert(&node.name) {
                return Some(format!("node `{name}` occurs twice"));
            }
            let is_price = (0..=DEAREST_USD_MICROS).contains(&price);
            (!is_price)
                .then(|| format!("node `{name}`: {price} micro-USD is not a price per GPU-hour"))
        })
    }

    fn problem_of_devices(&self) -> Option<String> {
        let mut names = BTreeSet::new();
        self.devices.iter().find_map(|device| {
            let name = shortened(&device.name);
            let Some(node) = self.nodes.get(device.node) else {
                return Some(format!("device `{name}`: its node is missing"));
            };
            let name = format!("{}/{name}", shortened(&node.name));
            if !names.insert((device.node, &device.name)) {
                return Some(format!("device `{name}` occurs twice"));
            }
            let problem = device.intervals.iter().find_map(|i| self.problem_of(i));
            problem.map(|problem| format!("device `{name}`: {problem}"))
        })
    }

    fn problem_of(&self, interval: &DeviceInterval) -> Option<String> {
        let Span { from_ms, to_ms } = interval.span;
        if from_ms >= to_ms || from_ms < self.span.from_ms || to_ms > self.span.to_ms {
            return Some(format!("an interval from {from_ms} to {to_ms} ms is outside the period"));
        }
        if !(1..=WHOLE_DEVICE_MILLI).contains(&interval.gpu_milli) {
            return Some(format!("an interval of {} milli-GPU", interval.gpu_milli));
        }
        let pods = self.pods.len();
        let holder = interval.holder.filter(|holder| *holder as usize >= pods);
        holder.map(|holder| format!("holder {holder} is not among its {pods} pods"))
    }

    fn problem_of_kept(&self) -> Option<String> {
        self.kept.iter().flatten().find_map(|kept| {
            let is_known = kept.node < self.nodes.len() && kept.pod < self.pods.len();
            let HeldTime { cpu_milli_ms, memory_byte_ms } = kept.held;
            let is_amount = |amount: i128| (0..1 << 90).contains(&amount);
            match () {
                () if !is_known => {
                    Some("CPU or memory is allocated on a node or to a pod that is missing")
                }
                () if kept.hour_ms % HOUR_MS != 0 => {
                    Some("CPU or memory is allocated for less than a whole hour")
                }
                () if !is_amount(cpu_milli_ms) || !is_amount(memory_byte_ms) => {
                    Some("an allocated amount is out of range")
                }
                () => None,
            }
            .map(str::to_owned)
        })
    }
}

impl Reading {
    fn problem_of_used(&self) -> Option<String> {
        let is_wrong = |used: &&ReadUsed| {
            used.node >= self.nodes.len()
                || used.pod >= self.pods.len()
                || !used.slot_ms.is_multiple_of(USED_SLOT_MS)
                || !(0..=used.measured_gpu_milli_ms).contains(&used.used_gpu_milli_ms)
        };
        self.used
            .iter()
            .find(is_wrong)
            .map(|used| format!("usage of a missing pod, or more than was measured: {used:?}"))
    }

    fn problem_of_free(&self) -> Option<String> {
        const MOST_MILLI: i64 = 1 << 40;
        self.free.iter().find_map(|free| {
            let Span { from_ms, to_ms } = free.look.span;
            let mut amounts = free.look.gpu_milli.iter().map(|(_, gpu_milli)| *gpu_milli);
            match () {
                () if free.node >= self.nodes.len() => {
                    Some("capacity is free on a node that is missing")
                }
                () if from_ms > to_ms || to_ms > self.span.to_ms => {
                    Some("free capacity ends before it starts, or after the period")
                }
                () if amounts.any(|amount| !(1..=MOST_MILLI).contains(&amount)) => {
                    Some("a free amount is out of range")
                }
                () => None,
            }
            .map(str::to_owned)
        })
    }
}

/// Enough of a name to know it by.
pub(crate) fn shortened(text: &str) -> String {
    let plain = text.chars().map(|letter| if letter.is_control() { '?' } else { letter });
    plain.take(80).collect()
}

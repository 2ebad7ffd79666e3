//! One node with GPUs as NVIDIA's mig-manager, device plugin and driver treat it, as plain data.
//!
//! By their published behavior: mig-manager reacts to a changed label alone, pauses the plugin
//! (nothing is allocatable then), clears every GPU whose layout differs as a whole and creates the
//! instances anew. It drains no pods: an instance in use is not destroyed, the free ones beside it
//! are, and the state becomes `failed`. The plugin comes back after the state is set, in a new pod,
//! which a taint that it does not tolerate keeps from the node.

use std::collections::{BTreeMap, VecDeque};

use serde_json::Value;

use super::plugin::{Offer, Plugin, Turn, WHOLE};

/// What goes wrong with one change of a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// mig-manager fails before it changes anything.
    Fails,
    /// `success`, but the plugin offers nothing.
    HidesInstances,
    /// The node reboots once in between.
    Reboots,
    /// mig-manager does not run.
    Ignores,
}

/// An instance, or a whole GPU, and the pod that uses it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Device {
    resource: String,
    pod: Option<String>,
    /// The plugin offers it no more; the pod keeps it.
    is_gone: bool,
}

impl Device {
    fn new(resource: String) -> Self {
        Self { resource, pod: None, is_gone: false }
    }
}

/// What the node's labels and status are to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// `nvidia.com/mig.config.state`, where mig-manager writes it now.
    pub state: Option<&'static str>,
    /// Whether the plugin is paused (`paused-for-mig-change`).
    pub is_paused: bool,
    /// GPUs and instances by resource; zero for those that were offered before.
    pub allocatable: BTreeMap<String, i64>,
    /// How pods share whole GPUs, as feature discovery writes it.
    pub strategy: &'static str,
    /// On each whole GPU.
    pub replicas: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Working,
    Rebooting,
    /// The plugin starts again.
    Starting,
}

/// A node.
#[derive(Debug)]
pub struct MigNode {
    gpus: Vec<Vec<Device>>,
    label: Option<String>,
    asked: String,
    stage: Option<(Stage, u64)>,
    fault: Option<Fault>,
    /// Of the next changes of the label, in order.
    pub faults: VecDeque<Option<Fault>>,
    /// Between two stages, in milliseconds.
    pub delay_ms: u64,
    /// Whether pods of the plugin may start on the node: it has no taint that they do not tolerate.
    pub takes_plugin: bool,
    plugin: Plugin,
    report: Report,
}

impl MigNode {
    /// A node with these instances on each GPU, by profile and count; none: a whole GPU.
    #[must_use]
    pub fn new(gpus: &[Vec<(&str, u32)>], label: Option<&str>) -> Self {
        let gpu = |instances: &Vec<(&str, u32)>| match instances.is_empty() {
            true => vec![Device::new("nvidia.com/gpu".to_owned())],
            false => instances
                .iter()
                .flat_map(|(profile, count)| {
                    (0..*count).map(move |_| Device::new(format!("nvidia.com/mig-{profile}")))
                })
                .collect(),
        };
        let mut node = Self {
            gpus: gpus.iter().map(gpu).collect(),
            label: label.map(str::to_owned),
            asked: String::new(),
            stage: None,
            fault: None,
            faults: VecDeque::new(),
            delay_ms: 0,
            takes_plugin: true,
            plugin: Plugin::new(WHOLE, None),
            report: Report { strategy: WHOLE.strategy, replicas: 1, ..Report::default() },
        };
        node.offer();
        node
    }

    /// So many whole GPUs, offered in this way.
    #[must_use]
    pub fn sharing(gpus: usize, offer: Offer, label: Option<&str>) -> Self {
        let mut node = Self::new(&vec![vec![]; gpus], None);
        node.plugin = Plugin::new(offer, label);
        node.share(offer, WHOLE);
        node
    }

    /// Time passes for the plugin: `label` is `nvidia.com/device-plugin.config` as it is now,
    /// `settings` the data of the mounted ConfigMap.
    pub fn tick_plugin(&mut self, now_ms: u64, label: Option<&str>, settings: &Value) -> &Report {
        let before = self.plugin.offer;
        match self.plugin.tick(now_ms, self.delay_ms, label, settings, &mut self.faults) {
            Turn::Nothing => {}
            Turn::Stopped => {
                self.report.allocatable.values_mut().for_each(|count| *count = 0);
            }
            Turn::Started(offer) => self.share(offer, before),
        }
        &self.report
    }

    fn share(&mut self, offer: Offer, before: Offer) {
        let ends_clients = before != offer && [before.strategy, offer.strategy].contains(&"mps");
        for gpu in &mut self.gpus {
            if gpu.iter().any(|device| device.resource.starts_with("nvidia.com/mig-")) {
                continue;
            }
            let had = std::mem::take(gpu).into_iter();
            let used = had.filter(|device| device.pod.is_some() && !ends_clients);
            let (mut kept, mut gone): (Vec<Device>, Vec<Device>) =
                used.partition(|device| device.resource == offer.resource());
            gone.iter_mut().for_each(|device| device.is_gone = true);
            let fresh = (offer.replicas as usize).saturating_sub(kept.len());
            let device = || Device::new(offer.resource().to_owned());
            kept.extend(std::iter::repeat_with(device).take(fresh));
            kept.append(&mut gone);
            *gpu = kept;
        }
        self.report.strategy = offer.strategy;
        self.report.replicas = offer.replicas;
        self.offer();
    }

    /// Time passes: `label` is `nvidia.com/mig.config` as it is now, `configs` the mounted
    /// `mig-configs`.
    pub fn tick(&mut self, now_ms: u64, label: Option<&str>, configs: &Value) -> &Report {
        self.report.state = None;
        if self.stage.is_none()
            && let Some(label) = label.filter(|label| self.label.as_deref() != Some(*label))
        {
            self.start(label, now_ms);
        }
        while let Some((stage, until_ms)) = self.stage.filter(|(_, until_ms)| *until_ms <= now_ms) {
            let at_ms = until_ms + self.delay_ms;
            self.stage = match stage {
                Stage::Working if self.fault == Some(Fault::Reboots) => {
                    self.fault = None;
                    self.report.state = Some("rebooting");
                    Some((Stage::Rebooting, at_ms))
                }
                Stage::Working | Stage::Rebooting => {
                    let is_done = self.fault != Some(Fault::Fails) && self.change(configs);
                    self.report.state = Some(if is_done { "success" } else { "failed" });
                    Some((Stage::Starting, at_ms))
                }
                Stage::Starting if !self.takes_plugin => {
                    Some((Stage::Starting, now_ms + self.delay_ms.max(1)))
                }
                Stage::Starting => {
                    self.report.is_paused = false;
                    if self.fault != Some(Fault::HidesInstances) {
                        self.offer();
                    }
                    None
                }
            };
        }
        &self.report
    }

    fn start(&mut self, label: &str, now_ms: u64) {
        self.label = Some(label.to_owned());
        self.fault = self.faults.pop_front().flatten();
        if self.fault == Some(Fault::Ignores) {
            return;
        }
        label.clone_into(&mut self.asked);
        self.report.state = Some("pending");
        self.report.is_paused = true;
        self.report.allocatable.values_mut().for_each(|count| *count = 0);
        self.stage = Some((Stage::Working, now_ms + self.delay_ms));
    }

    /// Whether every GPU has its new layout.
    fn change(&mut self, configs: &Value) -> bool {
        let Some(entries) = configs[&self.asked].as_array() else { return false };
        let mut is_done = true;
        for (number, gpu) in self.gpus.iter_mut().enumerate() {
            let of = |entry: &&Value| match &entry["devices"] {
                Value::Array(numbers) => numbers.contains(&number.into()),
                all => all == "all",
            };
            let Some(entry) = entries.iter().find(of) else { continue };
            let mut wanted = instances(entry);
            wanted.sort();
            let mut present: Vec<String> =
                gpu.iter().map(|device| device.resource.clone()).collect();
            present.sort();
            if wanted == present {
                continue;
            }
            if gpu.iter().any(|device| device.pod.is_some()) {
                gpu.retain(|device| device.pod.is_some());
                is_done = false;
                continue;
            }
            *gpu = wanted.into_iter().map(Device::new).collect();
        }
        is_done
    }

    fn offer(&mut self) {
        self.report.allocatable.values_mut().for_each(|count| *count = 0);
        let resources: Vec<String> = self.devices().map(|device| device.resource.clone()).collect();
        for resource in resources {
            *self.report.allocatable.entry(resource).or_default() += 1;
        }
    }

    fn devices(&self) -> impl Iterator<Item = &Device> {
        self.gpus.iter().flatten().filter(|device| !device.is_gone)
    }

    /// The devices of each GPU, by resource, with the pod that uses each.
    pub fn used(&self) -> Vec<Vec<(String, Option<String>)>> {
        let device = |one: &Device| (one.resource.clone(), one.pod.clone());
        self.gpus.iter().map(|gpu| gpu.iter().map(device).collect()).collect()
    }

    /// A kubelet gives a pod a device; whether there was one.
    pub fn admit(&mut self, pod: &str, resource: &str) -> bool {
        if self.report.allocatable.get(resource).is_none_or(|count| *count == 0) {
            return false;
        }
        let mut devices = self.gpus.iter_mut().flatten();
        let free = devices.find(|device| device.pod.is_none() && device.resource == resource);
        if let Some(device) = free {
            device.pod = Some(pod.to_owned());
            return true;
        }
        false
    }

    /// A pod has ended.
    pub fn release(&mut self, pod: &str) {
        let mut devices = self.gpus.iter_mut().flatten();
        if let Some(device) = devices.find(|device| device.pod.as_deref() == Some(pod)) {
            device.pod = None;
        }
        for gpu in &mut self.gpus {
            gpu.retain(|device| !device.is_gone || device.pod.is_some());
        }
    }

    /// Whether a pod still has its device.
    #[must_use]
    pub fn has(&self, pod: &str) -> bool {
        self.gpus.iter().flatten().any(|device| device.pod.as_deref() == Some(pod))
    }

    /// What is on the GPUs, whatever the plugin offers.
    #[must_use]
    pub fn instances(&self) -> BTreeMap<String, i64> {
        let mut all = BTreeMap::new();
        self.devices().for_each(|device| *all.entry(device.resource.clone()).or_default() += 1);
        all
    }

    /// Whether nothing is under way.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        self.stage.is_none() && self.plugin.is_at_rest()
    }
}

/// Resources of the devices that an entry of mig-parted makes of one GPU.
fn instances(entry: &Value) -> Vec<String> {
    if entry["mig-enabled"] != true {
        return vec!["nvidia.com/gpu".to_owned()];
    }
    let named = entry["mig-devices"].as_object().into_iter().flatten();
    let each = named.flat_map(|(profile, count)| {
        let resource = format!("nvidia.com/mig-{}", profile.replace('+', "."));
        vec![resource; count.as_u64().unwrap_or(0) as usize]
    });
    each.collect()
}

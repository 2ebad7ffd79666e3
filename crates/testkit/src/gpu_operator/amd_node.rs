//! One node with GPUs as AMD's Device Config Manager, device plugin and node labeller treat it, as
//! plain data.
//!
//! By their published behavior: Device Config Manager reacts to a changed label, and to a changed
//! ConfigMap while the node has one. It drains nothing: a GPU that a pod or a pod of the operator
//! uses is busy. It reports `failure`, and tries again every minute for half an hour unless the
//! profile itself is wrong; a profile that is there already is a `success`. Plugin and labeller
//! read the GPUs when they start alone, and they start again only because a taint evicted them. A
//! `failure` may also be about an earlier profile: it is written when that attempt is over.

use std::collections::{BTreeMap, VecDeque};

use serde_json::Value;

use super::Fault;

/// It tries again after so long, and for so long.
const RETRY_MS: u64 = 60_000;
const RETRIES_MS: u64 = 30 * 60_000;

/// What the node's labels and status are to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AmdReport {
    /// The state label, where Device Config Manager writes it now; `Some(None)`: it is deleted.
    pub state: Option<Option<&'static str>>,
    /// `amd.com/compute-memory-partition`, as the labeller found it when it started last.
    pub partition: Option<String>,
    /// Devices by resource; zero for those that were offered before.
    pub allocatable: BTreeMap<String, i64>,
}

/// A profile that is to be applied.
#[derive(Clone, Debug)]
struct Work {
    profile: String,
    at_ms: u64,
    until_ms: u64,
}

/// A node.
#[derive(Debug)]
pub struct AmdNode {
    /// The partition of each GPU, such as `spx_nps1`.
    gpus: Vec<String>,
    /// Whether resources name the partition (`resource_naming_strategy: mixed`).
    is_named: bool,
    /// The GPU of which each pod has a device.
    pods: BTreeMap<String, usize>,
    label: Option<String>,
    profiles: Value,
    work: Option<Work>,
    fault: Option<Fault>,
    /// Of the next changes of the label, in order.
    pub faults: VecDeque<Option<Fault>>,
    /// So long after each of the next changes of the label it reports a failure, whatever comes of
    /// the change, in milliseconds.
    pub failures_ms: VecDeque<u64>,
    /// When that is.
    failure_at_ms: Option<u64>,
    /// Until Device Config Manager has acted, and until pods of the operator leave or start, in
    /// milliseconds.
    pub delay_ms: u64,
    are_operands_up: bool,
    operands_turn_ms: Option<u64>,
    report: AmdReport,
}

impl AmdNode {
    /// A node with so many GPUs, each partitioned in this way.
    #[must_use]
    pub fn new(gpus: usize, partition: &str, is_named: bool, label: Option<&str>) -> Self {
        let mut node = Self {
            gpus: vec![partition.to_owned(); gpus],
            is_named,
            pods: BTreeMap::new(),
            label: label.map(str::to_owned),
            profiles: Value::Null,
            work: None,
            fault: None,
            faults: VecDeque::new(),
            failures_ms: VecDeque::new(),
            failure_at_ms: None,
            delay_ms: 0,
            are_operands_up: true,
            operands_turn_ms: None,
            report: AmdReport::default(),
        };
        node.offer();
        node
    }

    /// Time passes: `label` is `dcm.amd.com/gpu-config-profile` as it is now, `profiles` the
    /// mounted `gpu-config-profiles`, `is_barred` whether the taint `amd-dcm=up:NoExecute` is on
    /// the node.
    pub fn tick(
        &mut self,
        now_ms: u64,
        label: Option<&str>,
        profiles: &Value,
        is_barred: bool,
    ) -> &AmdReport {
        self.report.state = None;
        self.operands(now_ms, is_barred);
        let is_new_label = self.label.as_deref() != label;
        let is_new_file = self.profiles != *profiles && !self.profiles.is_null();
        self.profiles.clone_from(profiles);
        self.label = label.map(str::to_owned);
        if is_new_label {
            self.fault = self.faults.pop_front().flatten();
            self.failure_at_ms = self.failures_ms.pop_front().map(|after_ms| now_ms + after_ms);
            self.work = None;
        }
        if let Some(profile) = label.filter(|_| is_new_label || is_new_file)
            && self.fault != Some(Fault::Ignores)
        {
            let at_ms = now_ms + self.delay_ms;
            let until_ms = now_ms + RETRIES_MS;
            self.work = Some(Work { profile: profile.to_owned(), at_ms, until_ms });
        }
        if self.failure_at_ms.take_if(|at_ms| *at_ms <= now_ms).is_some() {
            self.report.state = Some(Some("failure"));
        }
        if let Some(work) = self.work.take_if(|work| work.at_ms <= now_ms) {
            self.act(work, now_ms);
        }
        &self.report
    }

    /// Pods of the operator leave a while after the taint, and start a while after it is gone.
    fn operands(&mut self, now_ms: u64, is_barred: bool) {
        if self.are_operands_up != is_barred {
            self.operands_turn_ms = None;
            return;
        }
        let turn_ms = *self.operands_turn_ms.get_or_insert(now_ms + self.delay_ms);
        if turn_ms > now_ms {
            return;
        }
        self.operands_turn_ms = None;
        self.are_operands_up = !is_barred;
        match self.are_operands_up {
            true => self.offer(),
            false => self.report.allocatable.values_mut().for_each(|count| *count = 0),
        }
    }

    fn act(&mut self, work: Work, now_ms: u64) {
        if self.fault == Some(Fault::Reboots) {
            // The manager starts again: it deletes its state, and then reads the label.
            self.fault = None;
            self.report.state = Some(None);
            self.work = Some(Work { at_ms: now_ms + self.delay_ms, ..work });
            return;
        }
        let Some(wanted) = wanted(&self.profiles[&work.profile], self.gpus.len()) else {
            self.report.state = Some(Some("failure"));
            return;
        };
        let mut is_done = self.fault != Some(Fault::Fails);
        for number in 0..self.gpus.len() {
            let is_used = self.are_operands_up || self.pods.values().any(|gpu| *gpu == number);
            // It fails after the first GPU.
            let fails = self.fault == Some(Fault::Fails) && number > 0;
            match self.gpus[number] == wanted {
                true => {}
                false if is_used || fails => is_done = false,
                false => self.gpus[number].clone_from(&wanted),
            }
        }
        self.report.state = Some(Some(if is_done { "success" } else { "failure" }));
        if !is_done && now_ms < work.until_ms {
            self.work = Some(Work { at_ms: now_ms + RETRY_MS, ..work });
        }
    }

    /// Plugin and labeller start.
    fn offer(&mut self) {
        self.report.allocatable.values_mut().for_each(|count| *count = 0);
        let is_alike = self.gpus.iter().all(|mode| *mode == self.gpus[0]);
        self.report.partition = is_alike.then(|| self.gpus[0].clone());
        // With one name for all, the plugin ends where GPUs differ.
        if self.fault != Some(Fault::HidesInstances) && (is_alike || self.is_named) {
            self.report.allocatable.extend(self.instances());
        }
    }

    /// What is on the GPUs, whatever the plugin offers.
    #[must_use]
    pub fn instances(&self) -> BTreeMap<String, i64> {
        let mut all = BTreeMap::new();
        for mode in &self.gpus {
            let name = if self.is_named { format!("amd.com/{mode}") } else { "amd.com/gpu".into() };
            *all.entry(name).or_default() += devices(mode);
        }
        all
    }

    /// The partition of each GPU.
    #[must_use]
    pub fn partitions(&self) -> &[String] {
        &self.gpus
    }

    /// A kubelet gives a pod a device; whether there was one.
    pub fn admit(&mut self, pod: &str, resource: &str) -> bool {
        let offered = self.report.allocatable.get(resource).copied().unwrap_or(0);
        if offered <= self.pods.len() as i64 {
            return false;
        }
        let used = |gpu: usize| self.pods.values().filter(|used| **used == gpu).count() as i64;
        let free = (0..self.gpus.len()).find(|gpu| used(*gpu) < devices(&self.gpus[*gpu]));
        free.map(|gpu| self.pods.insert(pod.to_owned(), gpu)).is_some()
    }

    /// A pod has ended.
    pub fn release(&mut self, pod: &str) {
        self.pods.remove(pod);
    }

    /// Whether a pod still has its device.
    #[must_use]
    pub fn has(&self, pod: &str) -> bool {
        self.pods.contains_key(pod)
    }

    /// Whether pods of the operator run.
    #[must_use]
    pub fn are_operands_up(&self) -> bool {
        self.are_operands_up
    }
}

/// Devices of a GPU.
fn devices(mode: &str) -> i64 {
    match mode.split('_').next() {
        Some("dpx") => 2,
        Some("qpx") => 4,
        Some("cpx") => 8,
        _ => 1,
    }
}

/// The partition of each GPU by a profile; `None` if the profile is wrong for so many GPUs, or for
/// an MI300X.
fn wanted(profile: &Value, gpus: usize) -> Option<String> {
    let [only] = &profile["profiles"].as_array()?[..] else { return None };
    if only["numGPUsAssigned"].as_u64()? != gpus as u64 {
        return None;
    }
    let text = |key: &str| Some(only[key].as_str()?.to_lowercase());
    let (compute, memory) = (text("computePartition")?, text("memoryPartition")?);
    let is_valid = match &*memory {
        "nps1" => ["spx", "dpx", "qpx", "cpx"].contains(&&*compute),
        "nps2" => compute == "dpx",
        "nps4" => compute == "cpx",
        _ => false,
    };
    is_valid.then(|| format!("{compute}_{memory}"))
}

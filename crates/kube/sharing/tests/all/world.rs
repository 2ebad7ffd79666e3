//! One node, its ConfigMap, a mig-manager and a device plugin or AMD's operator, a scheduler that
//! sees the taint late, and pods.

use std::collections::{BTreeMap, VecDeque};

use dovetail_objects::Pod;
use dovetail_sharing::config_map::Layouts;
use dovetail_sharing::{
    AmdDevices, Component, EvictionFacts, Method, NodeLayout, Partition, Replicas, Seen, Side,
    Timing, Write, names,
};
use dovetail_testkit::gpu_operator::{AmdNode, Fault, MigNode, Offer};
use serde_json::{Value, json};

/// One seeded stream of choices.
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        // splitmix64
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }

    pub(crate) fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

pub(crate) const TIMING: Timing =
    Timing { settle_ms: 10_000, mount_ms: 120_000, limit_ms: 15 * 60_000 };

/// What changes into what.
#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) by: Component,
    pub(crate) from: Side,
    pub(crate) to: Side,
    /// What pods ask for.
    pub(crate) resource: &'static str,
    /// Another layout of the ConfigMap.
    foreign: &'static str,
}

impl Case {
    /// A mixed MIG layout in place of a homogeneous one.
    pub(crate) fn mig() -> Self {
        let cut = |profile: &str, count: u32| Some(BTreeMap::from([(profile.to_owned(), count)]));
        let from = NodeLayout(vec![cut("1g.10gb", 7), cut("1g.10gb", 7)]);
        let to = NodeLayout(vec![cut("3g.40gb", 2), cut("1g.10gb", 7)]);
        Self {
            by: Component::MigManager,
            from: Side { config: "all-1g.10gb".to_owned(), ..Side::of(from) },
            to: Side::of(to),
            resource: "nvidia.com/mig-1g.10gb",
            foreign: "all-7g.80gb",
        }
    }

    /// Four replicas of each GPU in place of whole ones.
    pub(crate) fn time_slicing() -> Self {
        let replicas = Replicas { method: Method::TimeSlicing, count: 4 };
        Self {
            by: Component::DevicePlugin,
            from: Side::whole(2, None),
            to: Side::whole(2, Some(replicas)),
            resource: "nvidia.com/gpu",
            foreign: "any",
        }
    }

    /// MPS in place of time-slicing, with as many replicas: only feature discovery tells them
    /// apart.
    pub(crate) fn mps() -> Self {
        let replicas = |method| Some(Replicas { method, count: 4 });
        Self {
            from: Side::whole(2, replicas(Method::TimeSlicing)),
            to: Side::whole(2, replicas(Method::Mps)),
            resource: "nvidia.com/gpu.shared",
            ..Self::time_slicing()
        }
    }

    /// Eight partitions of each GPU in place of whole ones.
    pub(crate) fn amd() -> Self {
        Self::partitioned("spx_nps1", "cpx_nps4")
    }

    /// As many devices as before, of another memory mode: only the node labeller tells them apart.
    pub(crate) fn amd_memory() -> Self {
        Self::partitioned("cpx_nps1", "cpx_nps4")
    }

    fn partitioned(from: &str, to: &str) -> Self {
        let side = |name: &str| {
            let partition = Partition::named(name).expect("a partition");
            Side::partitioned(2, AmdDevices { partition, is_named: false })
        };
        Self {
            by: Component::DeviceConfigManager,
            from: side(from),
            to: side(to),
            resource: "amd.com/gpu",
            foreign: "cpx-profile",
        }
    }

    fn amd_node(&self) -> Option<AmdNode> {
        let partition = self.from.amd?.partition.to_string();
        Some(AmdNode::new(2, &partition, false, Some(&self.from.config)))
    }

    fn node(&self) -> MigNode {
        let config = Some(&*self.from.config);
        match (self.by, self.from.replicas) {
            (Component::MigManager, _) => {
                MigNode::new(&[vec![("1g.10gb", 7)], vec![("1g.10gb", 7)]], config)
            }
            (_, None) => MigNode::sharing(2, dovetail_testkit::gpu_operator::WHOLE, config),
            (_, Some(replicas)) => {
                let offer = Offer {
                    strategy: replicas.method.word(),
                    replicas: replicas.count,
                    is_renamed: true,
                };
                MigNode::sharing(2, offer, config)
            }
        }
    }

    /// The ConfigMap before anything changes.
    fn shipped(&self) -> Value {
        let layouts = "version: v1\nmig-configs:\n  all-1g.10gb:\n    - {devices: all, mig-enabled: true, \
                       mig-devices: {\"1g.10gb\": 7}}\n";
        let mut map = json!({"metadata": {}, "data": {"any": "version: v1\n"}});
        if self.by == Component::MigManager {
            map["data"] = json!({names::CONFIG_KEY: layouts});
        }
        if self.by == Component::DeviceConfigManager {
            let profile = json!({"profiles": [{"computePartition": "CPX", "memoryPartition": "NPS1",
                "numGPUsAssigned": 2}]});
            let config = json!({"gpu-config-profiles": {self.foreign: profile}});
            map["data"] = json!({names::AMD_CONFIG_KEY: config.to_string()});
        }
        map
    }
}

/// A pod of a DaemonSet of AMD's operator, with what it is.
pub(crate) fn operand(name: &str, of: &str, tolerations: &Value) -> Value {
    json!({"metadata": {"name": name, "namespace": "kube-amd-gpu",
            "labels": {"app.kubernetes.io/name": of},
            "ownerReferences": [{"kind": "DaemonSet", "apiVersion": "apps/v1",
                "name": of, "uid": "d", "controller": true}]},
        "spec": {"nodeName": "n", "containers": [], "tolerations": tolerations},
        "status": {"phase": "Running"}})
}

pub(crate) struct World {
    pub(crate) case: Case,
    pub(crate) now_ms: u64,
    pub(crate) node: Value,
    version: u64,
    pub(crate) events: BTreeMap<String, Value>,
    /// The ConfigMap on the server; what its component sees of it, with the time of each change.
    pub(crate) layouts: Layouts,
    mounts: Vec<(u64, Value)>,
    mounted: Value,
    pub(crate) mount_ms: u64,
    pub(crate) mig: MigNode,
    /// The node if its GPUs are AMD's.
    amd: Option<AmdNode>,
    /// Pods bound to the node, with the time at which they end, and whether they run on a GPU.
    pub(crate) pods: BTreeMap<String, (u64, bool)>,
    /// Those that tolerate every taint.
    tolerant: Vec<String>,
    /// Objects of other pods on the node, which never leave.
    pub(crate) more_pods: Vec<Value>,
    /// Others have tainted the node as dovetail would.
    pub(crate) is_barred_by_others: bool,
    /// When a scheduler saw the node without the taint last.
    untainted_ms: u64,
    lag_ms: u64,
    made: u32,
}

impl World {
    pub(crate) fn new(case: Case, lag_ms: u64) -> Self {
        let mut node = json!({
            "metadata": {"name": "n", "uid": "u", "resourceVersion": "1",
                "labels": {case.by.label(): case.from.config}},
            "spec": {"taints": [{"key": "other", "effect": "NoSchedule"}]},
            "status": {"allocatable": {"cpu": "8"}},
        });
        if let Some(state) = case.by.state_label() {
            node["metadata"]["labels"][state] = json!("success");
        }
        let mut layouts = Layouts::read(case.by, &case.shipped()).expect("layouts");
        if case.by != Component::MigManager {
            layouts.add(&case.from, 0);
        }
        let mut world = Self {
            mig: case.node(),
            amd: case.amd_node(),
            case,
            now_ms: 1_000_000,
            node,
            version: 1,
            events: BTreeMap::new(),
            layouts,
            mounts: Vec::new(),
            mounted: Value::Null,
            mount_ms: 60_000,
            pods: BTreeMap::new(),
            tolerant: Vec::new(),
            more_pods: Vec::new(),
            is_barred_by_others: false,
            untainted_ms: 0,
            lag_ms,
            made: 0,
        };
        world.mounted = world.configs();
        world.set_delay(20_000);
        world.one();
        world
    }

    /// How long the component takes.
    pub(crate) fn set_delay(&mut self, ms: u64) {
        self.mig.delay_ms = ms;
        self.amd.iter_mut().for_each(|amd| amd.delay_ms = ms);
    }

    /// What goes wrong with the next changes of the label.
    pub(crate) fn faults(&mut self) -> &mut VecDeque<Option<Fault>> {
        self.amd.as_mut().map_or(&mut self.mig.faults, |amd| &mut amd.faults)
    }

    /// When Device Config Manager reports failures that are about something else, after the next
    /// changes of the label.
    pub(crate) fn failures_ms(&mut self) -> &mut VecDeque<u64> {
        &mut self.amd.as_mut().expect("AMD's GPUs").failures_ms
    }

    /// What is on the GPUs, whatever the plugin offers.
    pub(crate) fn has(&self, side: &Side) -> bool {
        let Some((amd, devices)) = self.amd.as_ref().zip(side.amd) else {
            return self.mig.instances() == side.offers();
        };
        let partition = devices.partition.to_string();
        amd.instances() == side.offers() && amd.partitions().iter().all(|one| *one == partition)
    }

    fn configs(&self) -> Value {
        let object = self.layouts.object("gpu-operator", self.now_ms);
        if self.case.by == Component::DevicePlugin {
            return object["data"].clone();
        }
        if self.case.by == Component::DeviceConfigManager {
            let text = object["data"][names::AMD_CONFIG_KEY].as_str().expect("a text");
            let config: Value = serde_json::from_str(text).expect("JSON");
            return config["gpu-config-profiles"].clone();
        }
        let text = object["data"][names::CONFIG_KEY].as_str().expect("a text");
        let config: Value = serde_saphyr::from_str(text).expect("YAML");
        config["mig-configs"].clone()
    }

    pub(crate) fn write_layouts(&mut self, layouts: Layouts) {
        self.layouts = layouts;
        self.mounts.push((self.now_ms + self.mount_ms, self.configs()));
    }

    pub(crate) fn seen(&self) -> Seen {
        let pod = |name: &String, is_on_gpu: bool| -> Value {
            let limits = if is_on_gpu { json!({self.case.resource: "1"}) } else { json!({}) };
            let tolerations = match self.tolerant.contains(name) {
                true => json!([{"operator": "Exists"}]),
                false => json!([]),
            };
            json!({"metadata": {"name": name, "namespace": "team", "uid": name},
                "spec": {"nodeName": "n", "tolerations": tolerations,
                    "containers": [{"name": "c", "resources": {"limits": limits}}]},
                "status": {"phase": "Running"}})
        };
        let mut objects: Vec<Value> =
            self.pods.iter().map(|(name, (_, is_on_gpu))| pod(name, *is_on_gpu)).collect();
        if self.amd.as_ref().is_some_and(AmdNode::are_operands_up) {
            objects.push(operand("plugin", "amd-device-plugin", &json!([])));
        }
        objects.extend(self.more_pods.iter().cloned());
        let read = |object: &Value| serde_json::from_value(object.clone()).expect("a pod");
        let pods: Vec<Pod> = objects.iter().map(read).collect();
        let facts = |object: &Value| serde_json::from_value(object.clone()).expect("a pod");
        let facts: Vec<EvictionFacts> = objects.iter().map(facts).collect();
        let read = Seen::read(&self.node, &pods, None).expect("a node that can be read");
        let with_facts = pods.iter().zip(facts.iter().map(Some));
        let read = read.clearing(self.case.by, with_facts, "kube-amd-gpu");
        read.with(&self.layouts, TIMING.mount_ms)
    }

    /// The server takes a write, unless the node has changed since it was read.
    pub(crate) fn take(&mut self, write: &Write, is_event_alone: bool) -> bool {
        if let Some(event) = &write.event {
            let name = event["metadata"]["name"].as_str().expect("a name").to_owned();
            self.events.entry(name).or_insert_with(|| event.clone());
        }
        let metadata = &write.patch["metadata"];
        let is_current = metadata["resourceVersion"] == self.node["metadata"]["resourceVersion"];
        if is_event_alone || !is_current {
            return false;
        }
        let labels = metadata["labels"].as_object().cloned().unwrap_or_default();
        for (key, value) in labels {
            self.node["metadata"]["labels"][key] = value;
        }
        for (key, value) in metadata["annotations"].as_object().expect("annotations") {
            self.node["metadata"]["annotations"][key] = value.clone();
        }
        self.node["spec"]["taints"] = write.patch["spec"]["taints"].clone();
        self.changed();
        true
    }

    fn changed(&mut self) {
        self.version += 1;
        self.node["metadata"]["resourceVersion"] = json!(self.version.to_string());
    }

    pub(crate) fn label_by_others(&mut self) {
        self.node["metadata"]["labels"][self.case.by.label()] = json!(self.case.foreign);
        self.changed();
    }

    /// Others are about to partition the GPUs by hand, or have begun to.
    pub(crate) fn taint_by_others(&mut self) {
        if self.is_barred() {
            return;
        }
        self.is_barred_by_others = true;
        let taint = json!({"key": "amd-dcm", "value": "up", "effect": "NoExecute"});
        self.node["spec"]["taints"].as_array_mut().expect("taints").push(taint);
        self.changed();
    }

    /// People take taints of this key from the node.
    pub(crate) fn untaint(&mut self, key: &str) {
        let taints = self.node["spec"]["taints"].as_array_mut().expect("taints");
        taints.retain(|taint| taint["key"] != key);
        self.changed();
    }

    /// The component's label as people set it, or remove it.
    pub(crate) fn label(&mut self, name: Option<&str>) {
        let labels = self.node["metadata"]["labels"].as_object_mut().expect("labels");
        match name {
            Some(name) => drop(labels.insert(self.case.by.label().to_owned(), json!(name))),
            None => drop(labels.remove(self.case.by.label())),
        }
        self.changed();
    }

    /// Whether pods that do not tolerate it are evicted.
    pub(crate) fn is_barred(&self) -> bool {
        let taints = self.node["spec"]["taints"].as_array().expect("taints");
        taints.iter().any(|taint| taint["key"] == "amd-dcm")
    }

    pub(crate) fn is_tainted(&self) -> bool {
        let taints = self.node["spec"]["taints"].as_array().expect("taints");
        assert!(taints.iter().any(|taint| taint["key"] == "other"), "a taint of others is gone");
        taints.iter().any(|taint| taint["key"] == names::TAINT)
    }

    /// Time passes; pods end, mig-manager and plugin go on.
    pub(crate) fn pass(&mut self, ms: u64) {
        for _ in 0..ms.div_ceil(5_000).max(1) {
            self.now_ms += ms.min(5_000);
            self.one();
        }
    }

    fn one(&mut self) {
        if !self.is_tainted() {
            self.untainted_ms = self.now_ms;
        }
        let now_ms = self.now_ms;
        let over = self.pods.iter().filter(|(_, (until_ms, _))| *until_ms <= now_ms);
        let over: Vec<String> = over.map(|(name, _)| name.clone()).collect();
        for name in over {
            self.end(&name);
        }
        self.evict();
        for (name, (_, is_on_gpu)) in &self.pods {
            let has = self.amd.as_ref().map_or_else(|| self.mig.has(name), |amd| amd.has(name));
            assert!(!is_on_gpu || has, "running pod {name} was ended");
        }
        while self.mounts.first().is_some_and(|(at_ms, _)| *at_ms <= now_ms) {
            self.mounted = self.mounts.remove(0).1;
        }
        let label = self.node["metadata"]["labels"][self.case.by.label()].as_str();
        let label = label.map(str::to_owned);
        match self.case.by {
            Component::DeviceConfigManager => self.amd_acts(label.as_deref()),
            _ => self.nvidia_acts(label.as_deref()),
        }
    }

    /// The taint manager: what it evicts must have tolerated that, or others ask for it.
    fn evict(&mut self) {
        if !self.is_barred() {
            return;
        }
        let leaves = |name: &&String| !self.tolerant.contains(name);
        let leaving: Vec<String> = self.pods.keys().filter(leaves).cloned().collect();
        for name in leaving {
            assert!(self.is_barred_by_others, "running pod {name} was evicted");
            self.end(&name);
        }
    }

    fn nvidia_acts(&mut self, label: Option<&str>) {
        let now_ms = self.now_ms;
        let report = match self.case.by {
            Component::MigManager => self.mig.tick(now_ms, label, &self.mounted).clone(),
            _ => self.mig.tick_plugin(now_ms, label, &self.mounted).clone(),
        };
        let before = self.node.clone();
        if let Some(state) = report.state {
            self.node["metadata"]["labels"]["nvidia.com/mig.config.state"] = json!(state);
        }
        self.node["metadata"]["labels"][dovetail_objects::labels::NVIDIA_STRATEGY] =
            json!(report.strategy);
        self.offer(&report.allocatable, &before);
    }

    fn amd_acts(&mut self, label: Option<&str>) {
        let is_barred = self.is_barred();
        let Some(amd) = &mut self.amd else { return };
        let report = amd.tick(self.now_ms, label, &self.mounted, is_barred).clone();
        let before = self.node.clone();
        let labels = self.node["metadata"]["labels"].as_object_mut().expect("labels");
        let mut set = |key: &str, value: Option<&str>| match value {
            Some(value) => drop(labels.insert(key.to_owned(), json!(value))),
            None => drop(labels.remove(key)),
        };
        if let Some(state) = report.state {
            set("dcm.amd.com/gpu-config-profile-state", state);
        }
        set("amd.com/compute-memory-partition", report.partition.as_deref());
        self.offer(&report.allocatable, &before);
    }

    fn offer(&mut self, allocatable: &BTreeMap<String, i64>, before: &Value) {
        let amounts = allocatable.iter().map(|(name, count)| (name.clone(), count.to_string()));
        self.node["status"]["allocatable"] = json!(amounts.collect::<BTreeMap<_, _>>());
        if self.node != *before {
            self.changed();
        }
    }

    /// A pod is bound to the node, if a scheduler may think that it can be.
    pub(crate) fn bind(&mut self, runs_ms: u64) {
        if self.is_tainted() && self.now_ms >= self.untainted_ms + self.lag_ms {
            return;
        }
        self.bound(runs_ms);
    }

    /// A pod is evicted, or is over.
    pub(crate) fn end(&mut self, name: &str) {
        self.pods.remove(name);
        self.mig.release(name);
        self.amd.iter_mut().for_each(|amd| amd.release(name));
    }

    /// A pod that asks for no GPU runs on the node, and does not tolerate any taint.
    pub(crate) fn run_without_gpu(&mut self, runs_ms: u64) {
        self.made += 1;
        self.pods.insert(format!("p{}", self.made), (self.now_ms + runs_ms, false));
    }

    /// A pod that asks for no GPU is bound to the node, if a scheduler may think that it can be.
    pub(crate) fn bind_without_gpu(&mut self, runs_ms: u64) {
        if self.is_tainted() && self.now_ms >= self.untainted_ms + self.lag_ms {
            return;
        }
        self.run_without_gpu(runs_ms);
    }

    /// A pod is bound whatever taints the node has: it tolerates every one of AMD's node, where
    /// that matters.
    pub(crate) fn bind_whatever(&mut self, runs_ms: u64) {
        let name = self.bound(runs_ms);
        self.tolerant.push(name);
    }

    fn bound(&mut self, runs_ms: u64) -> String {
        self.made += 1;
        let name = format!("p{}", self.made);
        let resource = self.case.resource;
        let is_running = match &mut self.amd {
            Some(amd) => amd.admit(&name, resource),
            None => self.mig.admit(&name, resource),
        };
        // A pod that the kubelet rejects has failed: it holds nothing.
        if is_running {
            self.pods.insert(name.clone(), (self.now_ms + runs_ms, true));
        }
        name
    }
}

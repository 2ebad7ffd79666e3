//! What is known of a cluster, as plain data. A field that nobody could read is `None` or empty,
//! and no check takes that for a fault.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use dovetail_account::device_time::Span;
use dovetail_model::{CounterRule, NodeCondition, Resources, Toleration, is_gpu_resource, labels};

use crate::hang::Hang;
use crate::node_removal::RemovalRule;
use crate::served_model::ServedModel;
use crate::thresholds::Thresholds;
use crate::usage::{GpuUse, UsagePeriod};

/// A cluster at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The moment, in ms since 1970.
    pub now_ms: u64,
    /// The period that wasted device-time was counted over.
    pub period: Span,
    pub nodes: Vec<Node>,
    /// Whatever runs pods, by its top owner; a pod without owner is its own.
    pub workloads: Vec<Workload>,
    /// Pods with GPUs that are yet to be made.
    pub to_come: Vec<ToCome>,
    /// Whether there are pods that were not read: where they run and what they need is unknown.
    pub lacks_pods: bool,
    /// Namespaces with pods.
    pub namespaces: Vec<Namespace>,
    /// Disruption budgets.
    pub budgets: Vec<Budget>,
    /// What changes the number of replicas by load.
    pub autoscalers: Vec<Autoscaler>,
    /// When Karpenter removes empty nodes, by NodePool, as far as these were read.
    pub removal_rules: BTreeMap<ObjectRef, RemovalRule>,
    /// Whether a Cluster Autoscaler is among the pods.
    pub has_cluster_autoscaler: bool,
    /// How the scheduler of the GPU pods scores nodes; `None` if its configuration cannot be read.
    pub scoring: Option<Scoring>,
    /// Whether an admission policy looks at requests for GPUs; `None` if policies cannot be read.
    pub has_gpu_admission_policy: Option<bool>,
    /// Labels that name the team, on a pod or its namespace; any of them is enough.
    pub team_labels: BTreeSet<String>,
    /// What a recommender (VerticalPodAutoscaler) says of workloads, by owner; `None` if its
    /// objects cannot be read.
    pub advice: Option<BTreeMap<ObjectRef, Advice>>,
    /// The period over which the use of GPUs was measured; `None` if nobody did.
    pub usage: Option<UsagePeriod>,
    /// From where on something is a finding.
    pub thresholds: Thresholds,
}

impl Facts {
    /// How many nodes a pool has once so many are gone.
    pub fn pool_size_without(&self, pool: &ObjectRef, gone: usize) -> usize {
        self.nodes.iter().filter(|node| node.pool == *pool).count().saturating_sub(gone)
    }
}

/// An object, as people name it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectRef {
    /// Kind, for example `Deployment` or `Node`.
    pub kind: String,
    /// Namespace; empty for objects of the cluster.
    pub namespace: String,
    pub name: String,
}

impl ObjectRef {
    /// An object by kind, namespace and name.
    pub fn new(kind: &str, namespace: &str, name: &str) -> Self {
        Self { kind: kind.into(), namespace: namespace.into(), name: name.into() }
    }

    /// As people write it: `Deployment prod/serve`, or `Node a` where it has no namespace.
    pub fn in_words(&self) -> String {
        let slash = if self.namespace.is_empty() { "" } else { "/" };
        format!("{} {}{slash}{}", self.kind, self.namespace, self.name)
    }
}

/// A node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Name, labels, taints, what pods may hold.
    pub node: dovetail_model::Node,
    /// Its node pool or group, which a person edits; itself where there is none.
    pub pool: ObjectRef,
    /// GPUs by resource name, for example `nvidia.com/gpu`.
    pub gpus: BTreeMap<String, Gpus>,
    /// The annotation that keeps an autoscaler from removing it, if it has one.
    pub scale_down_held_by: Option<String>,
    /// Since when it takes no new pods; `None` if it does.
    pub cordoned_since_ms: Option<u64>,
    /// Whether nobody knows since when it is cordoned: then that is the time at which it joined.
    pub cordon_is_undated: bool,
    /// Why it needs a repair, or has one in progress, as its conditions and annotations report:
    /// what its taints tell is not repeated here.
    pub repair_marks: Vec<String>,
    /// Whether it is being removed: its deletion has begun, or an autoscaler has marked it.
    pub is_being_removed: bool,
    /// Whether its provider may take it back at any time; `None` if nobody knows.
    pub is_spot: Option<bool>,
    /// Whether it is of capacity that is paid for whether it is used or not.
    pub is_prepaid: bool,
    /// Since when no pod on it holds GPUs, as far as anybody can see; `None` if one does, or if
    /// nobody knows.
    pub without_gpu_pods_since_ms: Option<u64>,
    /// Whether pods that were not read may hold GPUs of it: nobody knows what of it is free.
    pub may_be_held: bool,
    /// How much of its GPUs the MIG layouts leave over, in milli-GPU: no pod can ask for it.
    pub layout_rest_milli: i64,
    /// How many pods share each of its GPUs by time-slicing; 0 where none do, or nobody knows.
    pub time_slices: u32,
    /// When it joined the cluster; `None` if nobody knows.
    pub joined_ms: Option<u64>,
    /// Since when it is not ready, if so and if it says.
    pub not_ready_since_ms: Option<u64>,
    /// Since when what is free of its GPUs is, as far as anybody can see: since it joined, or since
    /// the last pod with GPUs that is still listed ended. It may be less long.
    pub free_since_ms: Option<u64>,
    /// GPUs that its label counts and no device plugin does.
    pub uncounted_gpus: i64,
    /// Whether no plan changes its GPU layout because pods share its GPUs or instances, or because
    /// its instances need more GPUs than labels or its instance type count.
    pub has_unclear_layout: bool,
    /// Since when a change of its GPU layout is stuck: neither the new nor the old layout came, and
    /// the node stays tainted. `None` if none is.
    pub stuck_since_ms: Option<u64>,
    /// How its kubelet puts CPUs, memory and devices of one pod together (`topologyManagerPolicy`);
    /// `None` if nobody said.
    pub numa_policy: Option<NumaPolicy>,
    /// Where its provider asks least for the same GPU, bought the same way; `None` if it is here,
    /// or if nobody knows.
    pub cheapest_region: Option<CheapestRegion>,
    /// Numbers of its devices in [`crate::DeviceWaste`].
    pub devices: Vec<u32>,
}

/// What a GPU costs here, and where its provider asks least for it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CheapestRegion {
    /// The region of the node.
    pub here: String,
    pub here_usd_micros_per_gpu_hour: i64,
    pub there: String,
    pub there_usd_micros_per_gpu_hour: i64,
    /// Day of the prices as `YYYY-MM-DD`, where their source states one.
    pub as_of: Option<String>,
}

/// How a kubelet puts CPUs, memory and devices of one pod together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NumaPolicy {
    /// Not at all, the kubelet's default.
    None,
    /// As near as can be, and anyhow.
    BestEffort,
    /// On as few NUMA nodes as can be, or not.
    Restricted,
    /// On one NUMA node, or not.
    SingleNumaNode,
}

impl Node {
    /// A node of which nothing is known but what schedulers see.
    pub fn new(node: dovetail_model::Node, pool: ObjectRef) -> Self {
        Self {
            node,
            pool,
            gpus: BTreeMap::new(),
            scale_down_held_by: None,
            cordoned_since_ms: None,
            cordon_is_undated: false,
            repair_marks: Vec::new(),
            is_being_removed: false,
            is_spot: None,
            is_prepaid: false,
            without_gpu_pods_since_ms: None,
            may_be_held: false,
            layout_rest_milli: 0,
            time_slices: 0,
            joined_ms: None,
            not_ready_since_ms: None,
            free_since_ms: None,
            uncounted_gpus: 0,
            has_unclear_layout: false,
            stuck_since_ms: None,
            numa_policy: None,
            cheapest_region: None,
            devices: Vec::new(),
        }
    }

    /// Whether pods can ask for GPUs here.
    pub fn has_gpus(&self) -> bool {
        self.gpus.values().any(|gpus| gpus.allocatable > 0)
    }

    /// Whether it offers MIG instances by names of their own.
    pub fn has_mig_instances(&self) -> bool {
        self.gpus.keys().any(|name| name.starts_with(labels::NVIDIA_MIG))
    }

    /// Whether GPUs that it has and no plugin offers are in MIG mode, as far as it says: by MIG
    /// instances beside them, or by a layout that mig-manager has applied.
    pub fn lacks_instances(&self) -> bool {
        let layout = self.node.label(labels::NVIDIA_MIG_CONFIG);
        let has_layout = self.node.label(labels::NVIDIA_MIG_STATE) == Some("success")
            && layout.is_some_and(|layout| layout != "all-disabled");
        self.uncounted_gpus > 0 && (self.has_mig_instances() || has_layout)
    }

    /// How many units a plugin makes of each GPU, by its label; 1 where it makes none.
    pub fn replicas(&self) -> u32 {
        let label = self.node.label(labels::NVIDIA_REPLICAS).and_then(|text| text.parse().ok());
        label.unwrap_or(1)
    }

    /// Whether the name of whole GPUs is that of MIG instances here.
    pub fn offers_instances_as_gpus(&self) -> bool {
        let product = self.node.label(labels::NVIDIA_PRODUCT);
        product.is_some_and(|product| product.contains("-MIG-"))
            || self.node.label(labels::GKE_PARTITION).is_some()
    }

    /// Whether its MIG layout is being changed, as mig-manager's label says: its GPUs offer nothing
    /// meanwhile, and that ends by itself. A change that is stuck does not.
    pub fn is_changing_layout(&self) -> bool {
        let state = self.node.label(labels::NVIDIA_MIG_STATE);
        matches!(state, Some("pending" | "rebooting")) && self.stuck_since_ms.is_none()
    }

    /// Whether the requested MIG layout is not there, for whatever reason: then no GPU that offers
    /// nothing is the fault of a device plugin.
    pub fn is_between_layouts(&self) -> bool {
        self.is_changing_layout() || self.has_failed_layout()
    }

    /// Whether a change of its layout failed or is stuck.
    pub fn has_failed_layout(&self) -> bool {
        let state = self.node.label(labels::NVIDIA_MIG_STATE);
        state == Some("failed") || self.stuck_since_ms.is_some()
    }
}

/// GPUs of one resource name on a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Gpus {
    /// Model, where known.
    pub model: Option<String>,
    /// What a unit is where it is no whole GPU of its own (a replica, an instance, a partition), in
    /// words that are equal for units that are the same part of a GPU. `None` if it is a whole GPU,
    /// as far as anybody can see.
    pub part: Option<String>,
    /// What is there, also what pods cannot ask for because it is broken.
    pub built_in: i64,
    /// What pods can ask for.
    pub allocatable: i64,
    /// Whether pods get them by resource claims (dynamic resource allocation) and no device plugin
    /// offers them: then no container can ask for the resource, which is the name that the vendor's
    /// plugin would give them.
    pub by_claims: bool,
    /// Whether pods can get them by resource claims, alone or beside a device plugin.
    pub claimable: bool,
    /// GPUs that are no units of it now, because pods share them, hold parts of them, or were given
    /// them unseen: pods could have been given them as whole ones.
    pub set_apart: i64,
}

impl Gpus {
    /// Whether pods that ask for them by resource claims, or else in a container, can get them.
    pub fn serves(&self, by_claim: bool) -> bool {
        if by_claim { self.claimable } else { !self.by_claims }
    }
}

/// How often containers were killed for memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryKills {
    /// Kills that objects prove.
    pub proven: u32,
    /// Whether containers were started again after ends that nobody tells of any more: each of
    /// these may have been a kill.
    pub may_be_more: bool,
}

impl MemoryKills {
    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            proven: self.proven.saturating_add(other.proven),
            may_be_more: self.may_be_more || other.may_be_more,
        }
    }
}

impl fmt::Display for MemoryKills {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let least = if self.may_be_more { "at least " } else { "" };
        write!(out, "{least}{}", self.proven)
    }
}

/// Pods of one owner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Workload {
    /// The top owner.
    pub owner: ObjectRef,
    /// The owners below it, up to those of its pods: the ReplicaSets of a Deployment.
    pub made_by: BTreeSet<ObjectRef>,
    /// What its pods are made from.
    pub template: PodTemplate,
    /// Its pods that have not ended.
    pub pods: Vec<Pod>,
    /// What it does, where known.
    pub class: Option<WorkloadClass>,
    /// How many pods it wants.
    pub replicas: u32,
    /// Whether its pods are scheduled all or none: a pod group, a queue that admits as a whole, a
    /// gang label.
    pub is_gang: bool,
    /// Whether a scheduler made it to take a GPU off the device plugin for the pods that share it:
    /// no person edits it.
    pub reserves_for_others: bool,
    /// Whether it reports what GPUs do: dcgm-exporter and its like.
    pub exports_gpu_metrics: bool,
    /// Why the API server would reject new pods like those that are there: a LimitRange or a quota
    /// that may be younger, in words. A pod that is evicted then has no successor.
    pub rejected_by: Option<String>,
    /// Whether a template of its owner names the node (`spec.nodeName`): no scheduler places its
    /// pods, and a pod that is evicted has a successor on that node.
    pub is_bound_by_name: bool,
    /// Whether the claims that its owner made for a replica are deleted, with their volumes, when
    /// fewer replicas remove it (a StatefulSet's `persistentVolumeClaimRetentionPolicy`).
    pub scale_down_deletes_volumes: bool,
    /// How often its containers were killed for memory in the last seven days, those of pods that
    /// have ended included; `None` if nobody knows.
    pub memory_kills: Option<MemoryKills>,
    /// Requests that its servers answer in a day; `None` if nobody counts them.
    pub requests_per_day: Option<u64>,
    /// The longest time for which it hung while it was measured; `None` if it did not, or if nobody
    /// can tell.
    pub hang: Option<Hang>,
    /// Checks that the owner asks to ignore (`dovetail.dev/ignore`).
    pub ignores: BTreeSet<String>,
}

impl Workload {
    /// Whether an object is an owner of its pods, at the top or below.
    pub fn is_made_by(&self, object: &ObjectRef) -> bool {
        self.owner == *object || self.made_by.contains(object)
    }

    /// Whether the labels of a node are what its pods ask for.
    pub fn accepts_labels(&self, node: &Node) -> bool {
        self.template.node_conditions.iter().all(|condition| condition.accepts(&node.node))
    }

    /// Whether its pods can get GPUs that a node offers as a resource.
    pub fn can_get(&self, resource: &str, gpus: &Gpus) -> bool {
        gpus.serves(self.template.claimed_gpus.contains_key(resource))
    }

    /// GPUs by resource name that one pod holds: the sum over its containers, or what the largest
    /// init container needs, and what it gets by resource claims.
    pub fn gpus_per_pod(&self) -> BTreeMap<&str, i64> {
        self.gpus_without(None)
    }

    /// The same if its pods lacked one of their containers, by its place.
    pub fn gpus_without(&self, lacked: Option<usize>) -> BTreeMap<&str, i64> {
        let mut needs: BTreeMap<&str, i64> = BTreeMap::new();
        let containers = self.template.containers.iter().enumerate();
        let containers = containers.filter(|(place, _)| Some(*place) != lacked).map(|(_, of)| of);
        for container in containers.clone().filter(|c| c.kind != ContainerKind::Init) {
            for (resource, count) in container.gpu_limits() {
                let need = needs.entry(resource).or_default();
                *need = need.saturating_add(count);
            }
        }
        for container in containers.filter(|c| c.kind == ContainerKind::Init) {
            for (resource, count) in container.gpu_limits() {
                let need = needs.entry(resource).or_default();
                *need = count.max(*need);
            }
        }
        for (resource, count) in &self.template.claimed_gpus {
            let need = needs.entry(resource).or_default();
            *need = need.saturating_add(*count);
        }
        needs
    }

    /// Whether a pod of it holds GPUs, or a part of one.
    pub fn has_gpus(&self) -> bool {
        self.template.shares_gpus_by.is_some()
            || !self.template.claimed_gpus.is_empty()
            || self
                .template
                .containers
                .iter()
                .any(|container| container.gpu_limits().next().is_some())
    }

    /// Whether its containers use GPUs that they do not request, as far as its template tells: how
    /// many, nobody knows. Exporters watch GPUs, and pods that belong to nodes manage them.
    pub fn uses_unrequested_gpus(&self) -> bool {
        let sees = |container: &Container| container.sees_gpus_by.is_some();
        let is_of_the_system = self.belongs_to_nodes() || self.exports_gpu_metrics;
        !self.has_gpus() && !is_of_the_system && self.template.containers.iter().any(sees)
    }

    /// Whether each of its pods belongs to one node: it is not moved from it, and ends with it.
    pub fn belongs_to_nodes(&self) -> bool {
        self.owner.kind == "DaemonSet" || self.is_static()
    }

    /// Whether the kubelet of a node runs its pods from files: neither taints nor drains touch
    /// them.
    pub fn is_static(&self) -> bool {
        self.owner.kind == "Node"
    }
}

/// Work that has no pods now: a CronJob between its runs, a Job that is suspended, a Deployment at
/// zero replicas; or fewer than it wants: a StatefulSet whose first pods are not ready.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToCome {
    /// What it makes, with the pods that it is going to make, which have no node.
    pub workload: Workload,
    /// When it last made pods; `None` if nobody knows.
    pub last_ms: Option<u64>,
}

/// What somebody says or shows a workload does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WorkloadClass {
    /// Runs to an end and may start again.
    Training,
    /// Answers requests.
    Inference,
    /// Somebody works with it.
    Interactive,
    /// Runs to an end, nobody waits.
    Batch,
}

/// A pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pod {
    pub name: String,
    /// When it was made; `None` if nobody knows.
    pub created_ms: Option<u64>,
    /// The node it is bound to.
    pub node: Option<String>,
    /// Since when it has its node; `None` if nobody knows.
    pub placed_since_ms: Option<u64>,
    /// Since when it is ready, or is not; `None` if nobody knows.
    pub ready_since_ms: Option<u64>,
    /// Whether it has its node and was never ready.
    pub is_starting: bool,
    /// Whether nothing uses its GPUs until the next try after a crash: a container that has them
    /// waits for it, or one that runs before.
    pub crash_loops: bool,
    /// Whether every container that holds GPUs is over while another one runs.
    pub is_done_but_for_helpers: bool,
    /// When the last of those containers ended, if they are all over; `None` if they are not, or if
    /// nobody knows.
    pub work_ended_ms: Option<u64>,
    /// When its grace period was over, if it was deleted.
    pub should_be_gone_ms: Option<u64>,
    /// The disruption budgets that select it, by name, if they are several: the eviction API
    /// refuses such a pod for good. Else none.
    pub unevictable_by: Vec<String>,
    /// Which revision of its owner's template it was made from, where its labels say.
    pub revision: Option<String>,
    /// What its GPUs did; empty if nobody measured.
    pub uses: Vec<GpuUse>,
    /// For each unit that it holds, the devices that it is on and how much of them, in milli-GPU.
    pub devices: Vec<Vec<(u32, i64)>>,
}

impl Pod {
    /// Whether it waits for a node.
    pub fn is_pending(&self) -> bool {
        self.node.is_none() && self.should_be_gone_ms.is_none()
    }
}

/// What pods of a workload are made from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodTemplate {
    pub labels: BTreeMap<String, String>,
    /// Its containers, init containers and sidecars.
    pub containers: Vec<Container>,
    /// What a scheduler reserves for one pod: its containers, init containers, overhead and the
    /// requests of the pod as a whole. The only amounts that tell whether a pod fits on a node.
    pub requests: Resources,
    /// GPUs that a pod gets by resource claims (dynamic resource allocation), by the name that the
    /// vendor's device plugin would give them; its containers do not ask for these.
    pub claimed_gpus: BTreeMap<String, i64>,
    /// What a pod gets devices from, GPUs or others, as written: `ResourceClaim NAME` or
    /// `ResourceClaimTemplate NAME`.
    pub resource_claims: Vec<String>,
    /// The annotation by which a pod asks another scheduler for a part of a GPU, if it does: then
    /// its containers ask for none.
    pub shares_gpus_by: Option<&'static str>,
    /// The annotation by which it chooses GPU models or devices, if it does (HAMi): node labels say
    /// nothing of that choice.
    pub chooses_gpus_by: Option<&'static str>,
    /// Taints it accepts, as written by a person (not those that Kubernetes adds).
    pub tolerations: Vec<Toleration>,
    /// What nodes must satisfy: node selector and required node affinity.
    pub node_conditions: Vec<NodeCondition>,
    pub priority_class: Option<String>,
    /// Size of what is mounted at `/dev/shm`; `None` is the container runtime's 64 MiB.
    pub shared_memory: Option<SharedMemory>,
    /// Why no two of its pods may share a node, if so: the rule as written.
    pub keeps_apart_by: Option<String>,
    /// Whether other pods decide where it may go: required affinity between pods, spread
    /// constraints that must hold.
    pub depends_on_pods: bool,
    /// The topology keys of its required anti-affinity to pods of other owners: it keeps these off
    /// nodes with the same values of these labels.
    pub keeps_others_off: BTreeSet<String>,
    /// Ports of its node that it takes.
    pub host_ports: HostPorts,
    /// Annotations that keep its pods from being moved, as `key: value`. Each of them is enough.
    pub eviction_held_by: Vec<String>,
    /// Whether it has a volume that lives and dies with its node.
    pub has_local_data: bool,
    /// Whether one of these is a directory of the node (hostPath): what is in it outlives the pod,
    /// and only there.
    pub has_host_path: bool,
    /// Whether it has a volume that outlives the pod.
    pub has_lasting_volume: bool,
    /// Whether it says how it saves its progress (`dovetail.dev/checkpoint-interval`).
    pub saves_progress: bool,
    /// Seconds from the wish that it ends to the kill; Kubernetes' own default is 30.
    pub grace_s: i64,
    /// The model that its pods serve, as far as its name or its arguments tell.
    pub model: Option<ServedModel>,
}

/// Ports of its node that a pod takes, in the words of the engine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostPorts {
    /// Selectors that count the pod.
    pub taken: BTreeSet<String>,
    /// What they ask of a node.
    pub rules: Vec<CounterRule>,
}

/// Memory mounted at `/dev/shm`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedMemory {
    /// Limit in bytes; `None` is no limit but the pod's.
    pub limit_bytes: Option<i64>,
}

/// A container of a pod.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Container {
    pub name: String,
    /// When it runs.
    pub kind: ContainerKind,
    /// Requests by resource: CPU in thousandths, memory in bytes, devices in pieces.
    pub requests: BTreeMap<String, i64>,
    /// Limits, as requests.
    pub limits: BTreeMap<String, i64>,
    /// It sees GPUs without asking for them, by this: `NVIDIA_VISIBLE_DEVICES=all`, a mounted
    /// device.
    pub sees_gpus_by: Option<String>,
    /// The argument by which its command says how many processes it starts on its GPUs, if it does:
    /// `--nproc_per_node`.
    pub processes_by: Option<&'static str>,
}

impl Container {
    /// Its limits that are GPUs.
    pub fn gpu_limits(&self) -> impl Iterator<Item = (&str, i64)> {
        let gpus = self.limits.iter().filter(|(resource, _)| is_gpu_resource(resource));
        gpus.map(|(resource, count)| (resource.as_str(), *count)).filter(|(_, count)| *count > 0)
    }
}

/// When a container runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ContainerKind {
    /// The pod's work.
    #[default]
    Main,
    /// Before the work.
    Init,
    /// Beside the work from before it begins (an init container that restarts).
    Sidecar,
}

/// A namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Namespace {
    pub name: String,
    pub labels: BTreeMap<String, String>,
    /// Resources that a quota of it limits, as written: `requests.nvidia.com/gpu`; `None` if quotas
    /// cannot be read.
    pub quota_resources: Option<BTreeSet<String>>,
    /// How much of GPU resources quotas give it, by resource name.
    pub gpu_quota: BTreeMap<String, i64>,
}

/// A disruption budget with the workload it protects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Budget {
    pub object: ObjectRef,
    /// The top owner of the pods it selects.
    pub protects: ObjectRef,
    /// What it allows.
    pub limit: BudgetLimit,
}

/// What a disruption budget allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BudgetLimit {
    /// So many pods must stay.
    MinAvailable(u32),
    /// In percent of the replicas, rounded up.
    MinAvailablePercent(u32),
    /// So many pods may go.
    MaxUnavailable(u32),
    /// In percent of the replicas, rounded up.
    MaxUnavailablePercent(u32),
}

impl BudgetLimit {
    /// Whether no pod of so many replicas may be evicted.
    pub fn lets_nothing_go(self, replicas: u32) -> bool {
        match self {
            Self::MinAvailable(pods) => pods >= replicas,
            Self::MinAvailablePercent(percent) => {
                let pods = (u64::from(replicas) * u64::from(percent)).div_ceil(100);
                pods >= u64::from(replicas)
            }
            Self::MaxUnavailable(pods) => pods == 0,
            Self::MaxUnavailablePercent(percent) => percent == 0,
        }
    }
}

/// Something that changes the number of replicas by load.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Autoscaler {
    pub object: ObjectRef,
    pub scales: ObjectRef,
    /// What it looks at, by name: `cpu`, `memory`, or the name of a metric.
    pub metrics: BTreeSet<String>,
    /// Resources of whose use it looks at the percentage of the request.
    pub by_utilization: BTreeSet<String>,
    /// Replicas up to which it scales; `None` if it does not say.
    pub most_replicas: Option<u32>,
}

impl Autoscaler {
    /// Whether it starts pods of an object at zero replicas: KEDA does, while a
    /// HorizontalPodAutoscaler leaves such an object alone.
    pub fn starts_from_zero(&self) -> bool {
        self.object.kind == "ScaledObject"
    }
}

/// What a recommender says of the pods of an owner.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Advice {
    /// The object that holds it.
    pub by: ObjectRef,
    pub containers: BTreeMap<String, Recommended>,
}

/// What a container should ask for: CPU in thousandths, memory in bytes, by resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recommended {
    /// What is enough nearly always.
    pub target: BTreeMap<String, i64>,
    /// More is wasted for certain.
    pub upper: BTreeMap<String, i64>,
}

/// How a scheduler scores nodes by what is requested of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scoring {
    /// Prefers empty nodes (the default).
    LeastAllocated,
    /// Prefers full nodes.
    MostAllocated,
    /// By a curve of its own.
    RequestedToCapacityRatio,
}

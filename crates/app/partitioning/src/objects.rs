//! Nodes, pods and what decides where pods can go, out of any source of objects.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use dovetail_apiserver::client::{PAGE, read_some_lists};
use dovetail_console::app::App;
use dovetail_console::plain::plain;
use dovetail_inventory::dump::{RawObject, Sink, Skipped};
use dovetail_model::{Taint, TaintEffect};
use dovetail_objects::{
    CsiNode, Kind, Labels, Namespace, Node, PersistentVolume, Pod, Queue, Reservation,
    ResourceSlice, StorageClass, VolumeClaim, labels, read,
};
use dovetail_sharing::names::{AMD_DRIVER, FORMER_REQUESTS, NVIDIA_DRIVER, RECORD, TAINT};
use dovetail_sharing::{
    Component, EvictionFacts, GpuUse, MoveFacts, Owner, Record, change_seconds, label_owners,
    uses_gpus,
};
use dovetail_sources::kubeconfig::ConnectionFlags;
use dovetail_translate::ReferredObjects;
use serde::Deserialize;
use serde_json::Value;

use crate::gang_objects::{self, GangDescriptions};

/// The owners of pods whose templates dovetail can change.
pub(crate) const OWNERS: [&str; 2] = ["Deployment", "StatefulSet"];

/// The kinds that are always read, besides those that describe gangs.
const KINDS: [&str; 10] = [
    "Node",
    "Namespace",
    "Pod",
    "PersistentVolumeClaim",
    "PersistentVolume",
    "StorageClass",
    "CSINode",
    "ResourceSlice",
    "Queue",
    RESERVATION,
];

const RESERVATION: &str = "Reservation";

/// Annotations of other systems that part GPUs themselves, and who writes its labels.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Annotated {
    metadata: Value,
}

/// A node with all of its annotations.
pub(crate) struct SeenNode {
    pub(crate) node: Node,
    pub(crate) annotations: BTreeMap<String, String>,
    /// Other clients that set what components are asked for, in words.
    pub(crate) label_owners: BTreeMap<Component, String>,
}

impl SeenNode {
    /// How far its change is; `None` if it never changed, or the annotation is invalid.
    pub(crate) fn record(&self) -> Option<Record> {
        Record::read(self.annotations.get(RECORD)?).ok()
    }

    /// Takes another record in place of its own, as if that had been written: a change that is
    /// under way taints the node.
    pub(crate) fn set_record(&mut self, record: &Record) {
        self.annotations.insert(RECORD.to_owned(), record.text());
        self.node.taints.retain(|taint| taint.key != TAINT);
        if !record.step.is_over() {
            let (key, effect) = (TAINT.to_owned(), TaintEffect::NoSchedule);
            self.node.taints.push(Taint { key, value: String::new(), effect });
        }
    }

    /// Why its record cannot be read, and what to do; `None` if it can be, or there is none.
    pub(crate) fn unreadable_record(&self) -> Option<String> {
        let error = Record::read(self.annotations.get(RECORD)?).err()?;
        Some(format!(
            "annotation {RECORD} is invalid ({error}); if no change is under way, remove it"
        ))
    }

    /// A node out of its object; `None` if that is invalid.
    pub(crate) fn read(object: &Value) -> Option<Self> {
        let node = Node::deserialize(object).ok()?;
        Some(Self::with(node, &object["metadata"]))
    }

    /// A node with what its metadata says besides.
    fn with(node: Node, metadata: &Value) -> Self {
        let annotations = BTreeMap::deserialize(&metadata["annotations"]).unwrap_or_default();
        Self { node, annotations, label_owners: label_owners(metadata) }
    }

    /// A node with labels, the later ones replacing the earlier, and what it offers.
    #[cfg(test)]
    pub(crate) fn example(
        name: &str,
        labels: &[serde_json::Value],
        gpus: &serde_json::Value,
    ) -> Self {
        let each = labels.iter().flat_map(|some| some.as_object().expect("labels"));
        let labels: BTreeMap<&String, &serde_json::Value> = each.collect();
        let object = serde_json::json!({"metadata": {"name": name, "labels": labels},
            "status": {"allocatable": gpus, "capacity": gpus}});
        let node = serde_json::from_value(object).expect("a node");
        Self { node, annotations: BTreeMap::new(), label_owners: BTreeMap::new() }
    }

    /// HAMi's annotation.
    pub(crate) fn hami(&self) -> Option<&str> {
        self.annotations.get(labels::HAMI_REGISTER).map(String::as_str)
    }
}

/// Whether a pod waits for a node. One that is being deleted gets none.
pub(crate) fn is_pending(pod: &Pod) -> bool {
    use dovetail_objects::PodPhase::{Pending, Unknown};
    pod.node.is_empty() && !pod.meta.is_deleting() && matches!(pod.phase, Pending | Unknown)
}

/// What is read of a cluster.
#[derive(Default)]
pub(crate) struct Objects {
    pub(crate) nodes: BTreeMap<String, SeenNode>,
    pub(crate) pods: BTreeMap<(String, String), Pod>,
    /// What decides the queue of pods that name none: labels by namespace.
    pub(crate) namespaces: BTreeMap<String, Labels>,
    pub(crate) queues: Vec<Queue>,
    pub(crate) gangs: GangDescriptions,
    /// What the pods that use GPUs say about being moved.
    pub(crate) moves: BTreeMap<(String, String), MoveFacts>,
    /// What pods say that tolerate, be it for a time, a taint by which pods make room for a change.
    pub(crate) evictions: BTreeMap<(String, String), EvictionFacts>,
    pub(crate) facts: ReferredObjects,
    pub(crate) csi: BTreeMap<String, CsiNode>,
    /// Nodes whose GPUs a DRA driver gives away, each with the driver.
    pub(crate) dra_nodes: BTreeMap<String, String>,
    /// Nodes on which capacity is reserved, each with the Reservations and when they end.
    pub(crate) reserved: BTreeMap<String, Vec<(String, u64)>>,
    /// What pods use of each GPU of a node, or why that is not known; only of nodes with such pods,
    /// and only where a Prometheus is named.
    pub(crate) gpu_use: BTreeMap<String, Result<Vec<GpuUse>, String>>,
    /// Deployments and StatefulSets that dovetail has changed.
    pub(crate) owners: Vec<Owner>,
    /// Kinds of them that the credentials may not list.
    pub(crate) unlisted: Vec<String>,
    pub(crate) skipped: Vec<Skipped>,
}

impl Objects {
    /// For how long a node cannot be used while a component changes its GPUs, in seconds, by the
    /// changes that were made; `None` if they are too few.
    pub(crate) fn change_seconds(&self, by: Component) -> Option<i64> {
        let records: Vec<Record> = self.nodes.values().filter_map(SeenNode::record).collect();
        change_seconds(&records, by).map(u64::cast_signed)
    }

    /// The objects of a cluster, with those of `more` kinds.
    ///
    /// # Errors
    /// A cluster that does not answer; credentials that may not list nodes or pods.
    pub(crate) async fn of(app: &App, cluster: &ConnectionFlags, more: &[&str]) -> Result<Self> {
        let mut objects = Self::default();
        let config = cluster.connect().await?;
        let is_of_gangs = |kind: &str| gang_objects::kinds().any(|one| one.bare_name() == kind);
        let is_wanted =
            |kind: &str| KINDS.contains(&kind) || more.contains(&kind) || is_of_gangs(kind);
        let lists = read_some_lists(&config, PAGE, is_wanted, &mut objects).await;
        let lists = lists.with_context(|| cluster.name())?;
        check(&lists.complete)?;
        note_hidden_reservations(app, &lists.refused);
        note_hidden_queues(app, &lists.refused);
        note_hidden_gangs(app, &lists.refused);
        let is_owner = |kind: &String| kind.ends_with(".apps");
        objects.unlisted = lists.refused.into_iter().filter(is_owner).collect();
        objects.tell_skipped(app);
        Ok(objects)
    }

    /// Adds the Reservations of a cluster, which are not among the objects of an audit.
    ///
    /// # Errors
    /// A cluster that does not answer.
    pub(crate) async fn add_reservations(
        &mut self,
        app: &App,
        cluster: &ConnectionFlags,
    ) -> Result<()> {
        let config = cluster.connect().await?;
        let lists = read_some_lists(&config, PAGE, |kind| kind == RESERVATION, self).await;
        let lists = lists.with_context(|| cluster.name())?;
        note_hidden_reservations(app, &lists.refused);
        Ok(())
    }

    fn reserve(&mut self, name: &str, reservation: &Reservation) {
        for node in reservation.reserved_nodes() {
            let of_node = self.reserved.entry(node.to_owned()).or_default();
            of_node.push((name.to_owned(), reservation.ends_ms()));
        }
    }

    /// A Reservation that reserves capacity on a node and has not ended.
    pub(crate) fn reservation_on(&self, node: &str, now_ms: u64) -> Option<&str> {
        let mut reservations = self.reserved.get(node)?.iter();
        reservations.find(|(_, ends_ms)| *ends_ms > now_ms).map(|(name, _)| name.as_str())
    }

    /// Names the first objects that could not be read.
    pub(crate) fn tell_skipped(&self, app: &App) {
        for skipped in self.skipped.iter().take(10) {
            app.note(&format!("skipped {}", plain(&skipped.to_string())));
        }
    }

    fn take(&mut self, raw: &RawObject<'_>) -> Result<(), Skipped> {
        let json = raw.json.as_bytes();
        let told =
            |strange: &dovetail_objects::Strange| raw.skipped(&strange.field, &strange.problem);
        match raw.kind {
            "Node" => {
                let node: Node = read("Node", json).map_err(|strange| told(&strange))?;
                let Annotated { metadata } = serde_json::from_str(raw.json).unwrap_or_default();
                self.nodes.insert(raw.name.to_owned(), SeenNode::with(node, &metadata));
            }
            "Pod" => {
                let pod: Pod = read("Pod", json).map_err(|strange| told(&strange))?;
                let key = (raw.namespace.to_owned(), raw.name.to_owned());
                if uses_gpus(&pod) {
                    let facts = serde_json::from_str(raw.json).unwrap_or_default();
                    self.moves.insert(key.clone(), facts);
                }
                let taint = Component::DeviceConfigManager.clearing_taint();
                if taint.is_some_and(|taint| pod.tolerations.iter().any(|one| one.accepts(&taint)))
                {
                    let facts = serde_json::from_str(raw.json).unwrap_or_default();
                    self.evictions.insert(key.clone(), facts);
                }
                self.pods.insert(key, pod);
            }
            "Deployment" | "StatefulSet" if raw.json.contains(FORMER_REQUESTS) => {
                let mut object: Value = serde_json::from_str(raw.json).unwrap_or_default();
                // Items of a list do not say their kind.
                object["kind"] = raw.kind.into();
                let owner = Owner::read(&object);
                self.owners.push(owner.map_err(|problem| raw.skipped("metadata", &problem))?);
            }
            "Namespace" => {
                let namespace: Namespace =
                    read("Namespace", json).map_err(|strange| told(&strange))?;
                self.namespaces.insert(raw.name.to_owned(), namespace.meta.labels);
            }
            "ResourceSlice" => {
                let slice: ResourceSlice =
                    read("ResourceSlice", json).map_err(|strange| told(&strange))?;
                let is_known = [NVIDIA_DRIVER, AMD_DRIVER].contains(&&*slice.driver);
                if is_known && !slice.node.is_empty() {
                    self.dra_nodes.insert(slice.node.to_string(), slice.driver.to_string());
                }
            }
            // Other schedulers have kinds of these names, too.
            RESERVATION if raw.api_version.starts_with("dovetail.dev/") => {
                let reservation = read(RESERVATION, json).map_err(|strange| told(&strange))?;
                self.reserve(raw.name, &reservation);
            }
            "Queue" if raw.api_version.starts_with("dovetail.dev/") => {
                let queue: Queue = read("Queue", json).map_err(|strange| told(&strange))?;
                self.queues.push(queue);
            }
            _ => {
                self.gangs.take(raw)?;
                self.take_storage(raw)?;
            }
        }
        Ok(())
    }

    /// What decides where pods with volumes can go.
    fn take_storage(&mut self, raw: &RawObject<'_>) -> Result<(), Skipped> {
        let json = raw.json.as_bytes();
        let told =
            |strange: &dovetail_objects::Strange| raw.skipped(&strange.field, &strange.problem);
        match raw.kind {
            "PersistentVolumeClaim" => {
                let claim: VolumeClaim =
                    read("PersistentVolumeClaim", json).map_err(|strange| told(&strange))?;
                self.facts.set_claim(claim);
            }
            "PersistentVolume" => {
                let volume: PersistentVolume =
                    read("PersistentVolume", json).map_err(|strange| told(&strange))?;
                self.facts.set_volume(volume);
            }
            "StorageClass" => {
                let class: StorageClass =
                    read("StorageClass", json).map_err(|strange| told(&strange))?;
                self.facts.set_class(class);
            }
            "CSINode" => {
                let csi: CsiNode = read("CSINode", json).map_err(|strange| told(&strange))?;
                self.csi.insert(raw.name.to_owned(), csi);
            }
            _ => {}
        }
        Ok(())
    }
}

/// Without Reservations, a node on which capacity is reserved would change.
fn note_hidden_reservations(app: &App, refused: &[String]) {
    if refused.contains(&Kind::Reservation.resource()) {
        app.note(
            "the credentials are not allowed to list reservations.dovetail.dev, so nodes with \
             reserved capacity can change: grant the permissions in deploy/sharing/rbac.yaml",
        );
    }
}

/// Without queues, a node would change for pods that their quotas do not let start.
fn note_hidden_queues(app: &App, refused: &[String]) {
    let kinds = [Kind::Namespace, Kind::Queue].map(Kind::resource);
    let hidden: Vec<&str> =
        kinds.iter().filter(|kind| refused.contains(kind)).map(String::as_str).collect();
    if !hidden.is_empty() {
        app.note(&format!(
            "the credentials are not allowed to list {}, so layouts can change for pods that \
             exceed the quota of their queue: grant the permissions in deploy/sharing/rbac.yaml",
            hidden.join(" and ")
        ));
    }
}

/// Without their objects, all pods of a gang are assumed to start together.
fn note_hidden_gangs(app: &App, refused: &[String]) {
    let kinds = gang_objects::kinds().map(Kind::resource);
    let mut hidden: Vec<String> = kinds.filter(|kind| refused.contains(kind)).collect();
    // Two versions of a kind are one resource.
    hidden.dedup();
    if !hidden.is_empty() {
        app.note(&format!(
            "the credentials are not allowed to list {}, so layouts change for their pods only if \
             all of them can start: grant the permissions in deploy/sharing/rbac.yaml",
            hidden.join(", ")
        ));
    }
}

/// # Errors
/// Where nodes or pods are not among the kinds that were read in full.
pub(crate) fn check(complete: &[&str]) -> Result<()> {
    match ["Node", "Pod"].iter().find(|kind| !complete.contains(*kind)) {
        Some(kind) => bail!(
            "the credentials are not allowed to list objects of kind {kind}, so which GPUs are in \
             use is unknown: grant the permissions in deploy/sharing/rbac.yaml"
        ),
        None => Ok(()),
    }
}

impl Sink for Objects {
    fn object(&mut self, object: &RawObject<'_>) {
        if let Err(skipped) = self.take(object) {
            self.skipped.push(skipped);
        }
    }

    fn skipped(&mut self, skipped: Skipped) {
        self.skipped.push(skipped);
    }

    fn begin_again(&mut self) -> bool {
        *self = Self::default();
        true
    }
}

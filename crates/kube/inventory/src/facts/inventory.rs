//! Objects as they come, and what is kept of each.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_gpus::KnownLayouts;
use dovetail_objects::json::nullable;
use dovetail_objects::{Kind, Namespace, Node, Object, Pod, read};
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use serde::Deserialize;

use super::claims::{ClaimedNodes, DeviceObjects};
use super::cluster::ClusterObjects;
use super::detail::{NodeDetail, PodDetail};
use super::lenient::lenient;
use super::node::{ReadNode, negative, read as read_node};
use super::owner::Owners;
use super::pods::Pods;
use super::read_pod::ReadPod;
use super::source::SourceTexts;
use super::unmade::UnmadeWork;
use super::unread::Unread;
use crate::dump::{COLLECTION, RawObject, Sink, Skipped};

/// Labels that name a team where nobody says which do.
pub const TEAM_LABELS: [&str; 6] =
    ["cost-center", "cost_center", "costcenter", "dovetail.dev/team", "owner", "team"];

/// What was left out is listed up to so many; beyond that it is only counted.
const MOST_SKIPPED: usize = 1000;

/// Objects are read side by side in chunks of so many.
const READ_AHEAD: usize = 256;

/// What is kept of the objects of a cluster.
#[derive(Default)]
pub struct Inventory {
    pub(super) now_ms: u64,
    pub(super) nodes: BTreeMap<String, Node>,
    /// Places of nodes in the order in which they came. Where two are alike it decides, not their
    /// names, so that an anonymized collection says what the objects say.
    pub(super) places: BTreeMap<String, usize>,
    /// What the audit reads of each node.
    pub(super) read_nodes: BTreeMap<String, ReadNode>,
    /// What is known of the MIG layouts of nodes while they are read.
    layouts: KnownLayouts,
    pub(super) namespaces: BTreeMap<String, Namespace>,
    pub(super) pods: Pods,
    pub(super) owners: Owners,
    /// What waits beside the pods that are there, once all objects are read.
    pub(super) waiting: UnmadeWork,
    pub(super) sources: SourceTexts,
    pub(super) cluster: ClusterObjects,
    /// What drivers offer and claims hold.
    pub(super) devices: DeviceObjects,
    /// Which nodes can use what claims hold, once these are counted.
    pub(super) claimed_nodes: ClaimedNodes,
    /// Volumes, claims, classes, workloads: what decides where a waiting pod can go.
    pub(super) others: BTreeMap<(Kind, Box<str>, Box<str>), Object>,
    /// How many objects of each kind were read.
    pub(super) kinds: BTreeMap<String, u64>,
    /// Kinds that were asked for and answered, with or without objects.
    pub(super) complete: BTreeSet<String>,
    /// Of those that were left out, what may be about GPUs.
    pub(super) unread: Unread,
    pub(super) skipped: Vec<Skipped>,
    pub(super) skipped_count: u64,
    /// Namespaces of objects that are no pods.
    elsewhere: BTreeSet<Box<str>>,
}

impl Inventory {
    /// Nothing yet; `now_ms` is the moment of the objects, in ms since 1970.
    pub fn new(now_ms: u64) -> Self {
        Self { now_ms, ..Self::default() }
    }

    /// Hears that all objects of a kind (`Pod`) were handed over, even if there was none.
    pub fn all_of(&mut self, kind: &str) {
        self.complete.insert(kind.to_owned());
    }

    /// Whether objects of a kind were handed over, or none is there.
    pub fn was_read(&self, kind: &str) -> bool {
        self.kinds.contains_key(kind) || self.complete.contains(kind)
    }

    /// The namespace of all pods, where there is one alone and nobody says that these are all pods:
    /// a cluster has pods of its own in another. Objects of other kinds in another namespace show
    /// that all namespaces were read.
    pub fn only_namespace(&self) -> Option<&str> {
        let mut namespaces = self.pods.namespaces.iter();
        let first = namespaces.next()?;
        let is_beside = self.elsewhere.iter().any(|namespace| namespace != first);
        let is_alone = !self.complete.contains("Pod") && namespaces.next().is_none() && !is_beside;
        (is_alone && !self.pods.list.is_empty()).then_some(&**first)
    }

    /// Nodes and pods that were created after a moment: how many, and the newest with its time.
    pub fn created_after(&self, ms: u64) -> Option<(usize, String, u64)> {
        let nodes = self.nodes.values().map(|node| ("Node", &node.meta));
        let pods = self.pods.list.iter().map(|record| ("Pod", &record.pod.meta));
        let later: Vec<_> = nodes.chain(pods).filter(|(_, meta)| meta.created_ms > ms).collect();
        let (kind, newest) = later.iter().max_by_key(|(_, meta)| meta.created_ms)?;
        let slash = if newest.namespace.is_empty() { "" } else { "/" };
        let name = format!("{kind} {}{slash}{}", newest.namespace, newest.name);
        Some((later.len(), name, newest.created_ms))
    }

    /// Whether no object could be read.
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty() && self.complete.is_empty()
    }

    /// Objects that were left out: the first of them, and how many there are.
    pub fn left_out(&self) -> (&[Skipped], u64) {
        (&self.skipped, self.skipped_count)
    }

    fn take(&mut self, raw: &RawObject<'_>) -> Result<(), Skipped> {
        let json = raw.json.as_bytes();
        match raw.kind {
            "Namespace" => {
                let namespace: Namespace =
                    read("Namespace", json).map_err(|strange| raw.strange(&strange))?;
                self.namespaces.insert(raw.name.to_owned(), namespace);
            }
            COLLECTION if raw.api_version.starts_with("dovetail.dev/") => {
                let collection: Collection = lenient(raw)?;
                self.complete.extend(collection.complete);
            }
            kind if self.devices.wants(kind, raw.api_version) => {
                self.devices.add(raw)?;
                // By a class pods may ask for devices as for an extended resource.
                if kind == Kind::DeviceClass.name() {
                    let class = Object::DeviceClass(
                        read("DeviceClass", json).map_err(|strange| raw.strange(&strange))?,
                    );
                    let key = (Kind::DeviceClass, raw.namespace.into(), raw.name.into());
                    self.others.insert(key, class);
                }
            }
            kind if self.cluster.wants(kind, raw.api_version) => {
                self.cluster.add(raw)?;
                self.sources.add(raw);
            }
            kind => match watched(kind, raw.api_version) {
                // It may own pods, too.
                Some(kind @ Kind::Workload(_)) => {
                    self.own(raw)?;
                    let object = Object::read(kind, json);
                    self.others.insert((kind, raw.namespace.into(), raw.name.into()), object);
                }
                Some(kind) => {
                    let object = Object::read(kind, json);
                    if let Object::Strange(_, problem) = object {
                        return Err(raw.strange(&problem));
                    }
                    self.others.insert((kind, raw.namespace.into(), raw.name.into()), object);
                }
                // Whatever may own pods: any kind, also those of operators.
                None => self.own(raw)?,
            },
        }
        Ok(())
    }
}

impl Inventory {
    /// Takes an object that may own pods; one at the top is what a person edits.
    fn own(&mut self, raw: &RawObject<'_>) -> Result<(), Skipped> {
        match self.owners.add(raw)? {
            true => self.sources.add(raw),
            false => self.sources.add_controlled(raw),
        }
        Ok(())
    }
}

impl Inventory {
    /// Takes what was read of an object by itself, and reads the others.
    fn note(&mut self, raw: &RawObject<'_>, by_itself: Result<ByItself, Skipped>) {
        let taken = by_itself.and_then(|read| match read {
            ByItself::Node(node) => {
                let (object, read) = *node;
                let next = self.places.len();
                self.places.entry(raw.name.to_owned()).or_insert(next);
                self.nodes.insert(raw.name.to_owned(), object);
                self.read_nodes.insert(raw.name.to_owned(), read);
                Ok(())
            }
            ByItself::Pod(pod) => {
                self.pods.add(*pod);
                Ok(())
            }
            ByItself::NotYet => {
                if !raw.namespace.is_empty() && !self.elsewhere.contains(raw.namespace) {
                    self.elsewhere.insert(raw.namespace.into());
                }
                self.take(raw)
            }
        });
        match taken {
            Ok(()) => *self.kinds.entry(raw.kind.to_owned()).or_default() += 1,
            Err(skipped) => {
                self.unread.note(raw);
                self.skipped(skipped);
            }
        }
    }
}

/// What can be read of an object whatever was read before: that of nodes and pods, which are most
/// of all.
enum ByItself {
    Node(Box<(Node, ReadNode)>),
    Pod(Box<ReadPod>),
    /// It is of another kind.
    NotYet,
}

impl ByItself {
    fn read(raw: &RawObject<'_>, layouts: &KnownLayouts, now_ms: u64) -> Result<Self, Skipped> {
        if raw.name.is_empty() {
            return Err(raw.skipped("metadata.name", "it is missing"));
        }
        let json = raw.json.as_bytes();
        match raw.kind {
            "Node" => {
                let object: Node = read("Node", json).map_err(|strange| raw.strange(&strange))?;
                if let Some((field, count)) = negative(&object) {
                    let problem = format!("{count} GPUs: expected 0 or more");
                    return Err(raw.skipped(&field, &problem));
                }
                let detail: NodeDetail<'_> = lenient(raw)?;
                let read = read_node(&object, &detail, layouts, now_ms);
                Ok(Self::Node(Box::new((object, read))))
            }
            "Pod" => {
                let pod: Pod = read("Pod", json).map_err(|strange| raw.strange(&strange))?;
                let detail: PodDetail<'_> = lenient(raw)?;
                // A server has no such pod: whatever wrote this left out what the pod requests.
                if detail.spec.containers.is_empty() && !pod.is_over() {
                    return Err(raw.skipped("spec.containers", "it is missing"));
                }
                Ok(Self::Pod(Box::new(ReadPod::of(pod, &detail, now_ms))))
            }
            _ => Ok(Self::NotYet),
        }
    }
}

impl Sink for Inventory {
    fn object(&mut self, raw: &RawObject<'_>) {
        let read = ByItself::read(raw, &self.layouts, self.now_ms);
        self.note(raw, read);
    }

    fn objects(&mut self, raws: &[RawObject<'_>]) {
        // While one thread notes what was read, which goes in order, the others read on.
        let now_ms = self.now_ms;
        let layouts = std::mem::take(&mut self.layouts);
        let read = |raws: &[RawObject<'_>]| -> Vec<Result<ByItself, Skipped>> {
            raws.par_iter().map(|raw| ByItself::read(raw, &layouts, now_ms)).collect()
        };
        let mut chunks = raws.chunks(READ_AHEAD);
        let mut noted = chunks.next().unwrap_or_default();
        let mut of_noted = read(noted);
        while !noted.is_empty() {
            let next = chunks.next().unwrap_or_default();
            let note = || noted.iter().zip(of_noted).for_each(|(raw, read)| self.note(raw, read));
            let ((), of_next) = rayon::join(note, || read(next));
            (noted, of_noted) = (next, of_next);
        }
        self.layouts = layouts;
    }

    fn begin_again(&mut self) -> bool {
        *self = Self::new(self.now_ms);
        true
    }

    fn skipped(&mut self, skipped: Skipped) {
        self.skipped_count += 1;
        if self.skipped.len() < MOST_SKIPPED {
            self.skipped.push(skipped);
        }
    }
}

/// What a collection says of itself.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Collection {
    #[serde(deserialize_with = "nullable")]
    complete: Vec<String>,
}

/// Kinds that decide where, or with which others, a waiting pod can go, besides nodes, pods and
/// namespaces.
fn watched(name: &str, api_version: &str) -> Option<Kind> {
    let known = [Kind::Node, Kind::Pod, Kind::Namespace];
    // Several schedulers and operators have kinds of one name; versions of a kind come and go.
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let is_named = |kind: &Kind| kind.bare_name() == name && !known.contains(kind);
    let of_group = || Kind::ALL.into_iter().filter(|k| is_named(k) && k.group() == group);
    of_group().find(|kind| kind.version() == version).or_else(|| of_group().next())
}

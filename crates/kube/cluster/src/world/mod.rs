//! The index: changes of objects in, engine events out.
//!
//! It keeps the objects and, for each node, pod and attached volume, what the engine was told about
//! it. A change marks what may stand differently now; what stands differently then is told. Where
//! something stands follows from the objects alone and from the decisions not yet seen on the
//! watch, so the order of changes does not matter: the engine ends where one built from the last
//! objects begins.
//!
//! Nothing is told before every kind has delivered its first list. Until then objects are only
//! kept; [`World::snapshot`] then gives the world that an engine starts from.

mod attachments;
mod budgets;
mod causes;
mod claims;
mod facts;
mod gangs;
mod half_stopped;
mod hyper_nodes;
mod image_names;
mod key;
mod listing;
mod missing_queues;
mod network;
mod nodes;
mod pods;
mod preempting;
mod queues;
mod registry;
mod report;
mod snapshot;
mod spared;
mod standing;
mod tell;
mod waiting;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dovetail_model::{Event, JobId, NodeName, PodId, Requirement};
use rustc_hash::FxHashSet;

use crate::translate::gang::{GangName, decision, decision_beside, gang_decision};
use crate::translate::levels::Levels;
use crate::translate::{Facts, NotYet, Rules};

use attachments::Attachments;
use budgets::Budgets;
pub use claims::{ClaimKey, VolumePatience};
use dovetail_objects::{Kind, Meta, Namespace, Object, Pod, Strange};
use gangs::Gangs;
pub use gangs::{GangLook, LostMembers, MemberLook, Patience, ShortLook, Unwinding};
pub use key::PodKey;
use listing::Listings;
pub use missing_queues::MissingQueue;
use network::Network;
use nodes::Nodes;
use pods::{Pause, Pods, Slot};
use queues::Queues;
use registry::Registry;
pub use report::{
    Gathering, Report, group_waits_for_volumes, how_many, waits_for_members, waits_for_volumes,
    waits_for_volumes_of_others,
};
use standing::Told;
use tell::JobsNamed;

/// What a world is told once.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Pods that name this scheduler are placed; all others are foreign.
    pub scheduler: String,
    /// How objects are translated.
    pub rules: Rules,
    /// The topology levels above the node.
    pub levels: Levels,
    /// How gangs are waited for.
    pub patience: Patience,
    /// Pods that other schedulers placed may be stopped, too.
    pub preempt_foreign: bool,
    /// Of pods of the first lists that were made at the same time the one that was told first is
    /// first, else the one whose name is. A server tells them by name; names that were made
    /// unreadable would give another order.
    pub is_told_in_order: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            scheduler: "dovetail".to_owned(),
            rules: Rules::default(),
            levels: Levels::default(),
            patience: Patience::default(),
            preempt_foreign: false,
            is_told_in_order: false,
        }
    }
}

/// A change of the objects on the server, as a watch delivers it.
#[derive(Clone, Debug)]
pub enum Change {
    /// An object is there, or is different.
    Applied(Object),
    /// An object is gone.
    Deleted(Kind, Meta),
    /// A list of all objects of a kind begins.
    Listing(Kind),
    /// It is complete: what it did not contain is gone.
    Listed(Kind),
    /// The server has no such kind, or has it no more: that counts as an empty list.
    Absent(Kind),
}

/// Annotation with the decision, written by the bind itself: after a restart the pods say which of
/// them were decided together.
pub const DECISION: &str = "dovetail.dev/decision";

/// The objects, and what the engine was told about them.
#[derive(Debug, Default)]
pub struct World {
    settings: Settings,
    is_ready: bool,
    listings: Listings,
    facts: Facts,
    namespaces: BTreeMap<Box<str>, Namespace>,
    network: Network,
    nodes: Nodes,
    pods: Pods,
    attachments: Attachments,
    registry: Registry,
    budgets: Budgets,
    /// Pods by their names in the engine.
    ids: BTreeMap<PodId, Slot>,
    jobs_named: JobsNamed,
    gangs: Gangs,
    queues: Queues,
    now_ms: u64,
    requirements: FxHashSet<Arc<Requirement>>,
    requirements_in_use: usize,
    /// Objects that cannot be read, pods apart: they count as gone.
    strange: BTreeMap<(Kind, listing::Key), Box<Strange>>,
    /// What is told first: of pods that are gone, and of budgets.
    farewell: Vec<Event>,
    dirty: Dirty,
    reports: Vec<Report>,
    /// Where nobody may be stopped.
    spared_namespaces: BTreeSet<Box<str>>,
    /// Jobs that stop nobody for the time being.
    patient: BTreeSet<JobId>,
    /// Pods that say no more that they were not let go.
    let_go: Vec<PodKey>,
}

/// What may stand differently than the engine was told.
#[derive(Debug, Default)]
struct Dirty {
    nodes: BTreeSet<Box<str>>,
    pods: BTreeSet<Slot>,
    attachments: BTreeSet<Box<str>>,
    gangs: BTreeSet<Arc<GangName>>,
}

impl World {
    /// A world without objects.
    pub fn new(settings: Settings) -> Self {
        let network = Network::new(settings.levels.clone());
        Self { settings, network, ..Self::default() }
    }

    /// Takes a change; what follows from it for the engine, in the order in which it must be told.
    pub fn apply(&mut self, change: Change) -> Vec<Event> {
        match change {
            Change::Applied(object) => self.applied(object),
            Change::Deleted(kind, meta) => {
                let mut listings = std::mem::take(&mut self.listings);
                let stored = self.stored(kind, &meta.namespace, &meta.name);
                let accepted = listings.accepts_deletion(kind, &meta, stored);
                self.listings = listings;
                if accepted {
                    self.remove(kind, &meta.namespace, &meta.name);
                }
            }
            Change::Listing(kind) => self.listings.begin(kind),
            Change::Absent(kind) => {
                let stored = self.names(kind);
                self.listings.begin(kind);
                for (namespace, name) in self.listings.complete(kind, stored) {
                    self.remove(kind, &namespace, &name);
                }
                self.note_absent(kind);
            }
            Change::Listed(kind) => {
                let stored = self.names(kind);
                for (namespace, name) in self.listings.complete(kind, stored) {
                    self.remove(kind, &namespace, &name);
                }
                self.note_present(kind);
            }
        }
        if self.is_ready {
            return self.settle();
        }
        if self.listings.are_all_complete() {
            self.is_ready = true;
            self.open();
        }
        Vec::new()
    }

    /// Whether every kind has delivered its first list, so that decisions may be taken.
    pub fn is_ready(&self) -> bool {
        self.is_ready
    }

    /// The engine has bound pods, all that it bound in one cycle: they hold their nodes until the
    /// watch or [`World::bind_failed`] says otherwise. Call it for everything the engine decides,
    /// before the next change: what follows for one job may be about another that the same cycle
    /// has started.
    pub fn assumed(&mut self, binds: &[(PodId, NodeName)]) -> Vec<Event> {
        for (pod, node) in binds {
            let Some(slot) = self.ids.get(pod).copied() else { continue };
            let entry = self.pods.get_mut(slot);
            let (Told::Waiting { requirement, .. } | Told::Member { requirement }) = &entry.told
            else {
                continue;
            };
            let requirement = Arc::clone(requirement);
            entry.assumed = Some(Arc::clone(node));
            self.pods.index(slot);
            self.note_assumed(slot, node, requirement);
            if let Some(gang) = self.pods.get(slot).gang.clone() {
                self.gangs.started(&gang, pod.job);
                self.dirty.gangs.insert(gang);
            }
            self.count_job(slot);
        }
        self.settle()
    }

    /// Binds that the engine decided were not carried out, and their pods wait again at once.
    /// Nothing follows for those that are meanwhile seen on a node, or gone.
    pub fn bind_failed(&mut self, pods: &[PodId]) -> Vec<Event> {
        let mut events = Vec::new();
        for pod in pods {
            let Some(slot) = self.ids.get(pod).copied() else { continue };
            let entry = self.pods.get_mut(slot);
            let Told::Assumed { requirement, .. } = &entry.told else { continue };
            let (requirement, priority) = (Arc::clone(requirement), entry.pod.priority);
            entry.assumed = None;
            entry.waits_for_volumes = false;
            let is_member = entry.gang.is_some();
            self.pods.index(slot);
            if !is_member {
                let queue = self.queues.counted_for(pod.job).to_owned();
                self.stop_counting(slot);
                let kept_room = BTreeSet::new();
                self.retell(slot, Told::Waiting { requirement, priority, queue, kept_room });
                events.push(Event::BindFailed { pod: *pod });
            }
            self.dirty.pods.insert(slot);
        }
        events.extend(self.settle());
        events
    }

    /// Where a pod is assumed to run: decided, and not seen on the watch yet.
    pub fn assumed_on(&self, pod: PodId) -> Option<&NodeName> {
        let slot = self.ids.get(&pod)?;
        self.pods.get(*slot).assumed.as_ref()
    }

    /// The name of a decision about one pod: it starts alone for its gang, or beside a gang that
    /// runs, or it has none.
    pub fn name_of_decision(&self, pod: PodId, epoch: u64, number: u64) -> String {
        let entry = self.ids.get(&pod).map(|slot| self.pods.get(*slot));
        match entry {
            Some(entry) if entry.is_in_job => gang_decision(epoch, number, 1),
            Some(entry) if entry.gang.is_some() && entry.beside > 0 => {
                decision_beside(epoch, number, entry.beside)
            }
            _ => decision(epoch, number),
        }
    }

    /// A bind that the engine decided was not carried out, and its pod is to be left alone until
    /// [`World::let_back`]: meanwhile it neither holds nor wants anything, and is left untouched
    /// for the reason given, if one is. Nothing follows if the pod is meanwhile seen on a node, or
    /// gone.
    pub fn hold_back(&mut self, pod: &PodKey, why: Option<NotYet>) -> Vec<Event> {
        self.set_held_back(pod, Some(Pause { why }))
    }

    /// A pod takes part again.
    pub fn let_back(&mut self, pod: &PodKey) -> Vec<Event> {
        self.set_held_back(pod, None)
    }

    fn set_held_back(&mut self, pod: &PodKey, held_back: Option<Pause>) -> Vec<Event> {
        let Some(slot) = self.find(pod) else { return Vec::new() };
        self.pods.get_mut(slot).held_back = held_back;
        self.dirty.pods.insert(slot);
        self.settle()
    }

    /// A pod that the engine knows, to be bound: its namespace, name and identity.
    pub fn pod_of(&self, pod: PodId) -> Option<&Pod> {
        let slot = self.ids.get(&pod)?;
        Some(&self.pods.get(*slot).pod)
    }

    /// All pods that the engine knows as pods of a job.
    pub fn pods_of(&self, job: JobId) -> impl Iterator<Item = &Pod> {
        self.slots_of(job).map(|slot| &*self.pods.get(slot).pod)
    }

    fn slots_of(&self, job: JobId) -> impl Iterator<Item = Slot> {
        let first = PodId { job, pod_set: 0, ordinal: 0 };
        let last = PodId { job, pod_set: u16::MAX, ordinal: u32::MAX };
        self.ids.range(first..=last).map(|(_, slot)| *slot)
    }

    /// The job of a pod that waits or runs, if the engine places it.
    pub fn job_of(&self, namespace: &str, name: &str) -> Option<JobId> {
        Some(self.pods.get(self.pods.find(namespace, name)?).id?.job)
    }

    /// The gang that a pod belongs to.
    pub fn gang_of(&self, namespace: &str, name: &str) -> Option<&GangName> {
        self.pods.get(self.pods.find(namespace, name)?).gang.as_deref()
    }

    /// Pods of ours that are left untouched, and why, by namespace and name.
    pub fn refused(&self) -> impl Iterator<Item = (&Pod, &NotYet)> {
        let all = self.pods.in_order().map(|slot| self.pods.get(slot));
        all.filter_map(|entry| Some((&*entry.pod, entry.refused.as_ref()?)))
    }

    /// What there is to tell people since the last call.
    pub fn reports(&mut self) -> Vec<Report> {
        std::mem::take(&mut self.reports)
    }

    fn applied(&mut self, object: Object) {
        let (kind, meta) = (object.kind(), object.meta());
        let mut listings = std::mem::take(&mut self.listings);
        let accepted = listings.accepts(kind, meta, self.stored(kind, &meta.namespace, &meta.name));
        self.listings = listings;
        if accepted {
            self.put(object);
        }
    }
}

//! Facts: what the objects on the server say, and the decisions that the watch does not show yet.
//! Each part owns its fields.
//!
//! | part | what |
//! |---|---|
//! | `listing` | which objects of a watch to believe |
//! | `put`, `stored` | objects put in and taken out, and what that concerns |
//! | `pods`, `reported` | pods, each with what was reported of it to the engine |
//! | `decisions` | which pods are assigned to which nodes, until the watch shows it |
//! | `nodes`, `image_names` | nodes, each in the words of the engine |
//! | `network`, `hyper_nodes` | topology levels and domains |
//! | `members`, `numbered`, `descriptions` | gangs: their pods, and what describes them |
//! | `queues`, `budgets`, `registry` | queues, disruption budgets, selectors in use |
//! | `reservations` | what is reserved from one time to another |
//! | `device_claims`, `device_changes`, `surveys` | claims of devices, what drivers offer, what is set aside, where it can be had |
//! | `claimants`, `extended_pods` | pods that wait for devices of claims |
//! | `attachments` | volumes that are attached to nodes |
//! | `receipts` | what objects remember of preemptions of their pods |
//! | `exempt`, `unreadable` | what is not to be tried; objects that cannot be read |

pub(crate) mod attachments;
pub(crate) mod budgets;
mod claimants;
pub(crate) mod decisions;
pub(crate) mod descriptions;
pub(crate) mod device_changes;
pub(crate) mod device_claims;
pub(crate) mod exempt;
mod extended_pods;
pub(crate) mod hyper_nodes;
pub(crate) mod image_names;
pub(crate) mod listing;
pub(crate) mod members;
pub(crate) mod network;
pub(crate) mod nodes;
pub(crate) mod numbered;
pub(crate) mod pods;
mod put;
pub(crate) mod queues;
pub(crate) mod receipts;
pub(crate) mod registry;
pub(crate) mod reported;
pub(crate) mod reservations;
mod stored;
pub(crate) mod surveys;
pub(crate) mod unreadable;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dovetail_model::QueueName;
use dovetail_objects::{Labels, Namespace, Pod};

use super::settings::Settings;
use crate::queues::{DEFAULT_QUEUE, admit, engine_name, queue_of};
use attachments::Attachments;
use budgets::Budgets;
use descriptions::Descriptions;
use device_claims::DeviceClaims;
use dovetail_translate::gang::GangName;
use dovetail_translate::{NotYet, ReferredObjects};
use exempt::ExemptSets;
use members::Members;
use network::Network;
use nodes::Nodes;
use pods::{PodEntry, Pods, Slot};
use queues::Queues;
use receipts::Receipts;
use registry::Registry;
use reservations::Reservations;
use unreadable::Unreadable;

/// No object can have this name.
pub(crate) const NO_QUEUE: &str = "/";

/// All that the objects say.
#[derive(Debug, Default)]
pub(crate) struct Objects {
    pub(crate) settings: Settings,
    pub(crate) now_ms: u64,
    /// Whether every kind has delivered its first list.
    pub(crate) is_ready: bool,
    /// Volumes, claims and classes.
    pub(crate) facts: ReferredObjects,
    /// Claims of devices, and what drivers offer.
    pub(crate) device_claims: DeviceClaims,
    pub(crate) namespaces: BTreeMap<Box<str>, Namespace>,
    pub(crate) network: Network,
    pub(crate) nodes: Nodes,
    pub(crate) pods: Pods,
    pub(crate) attachments: Attachments,
    pub(crate) registry: Registry,
    pub(crate) budgets: Budgets,
    pub(crate) members: Members,
    pub(crate) descriptions: Descriptions,
    pub(crate) queues: Queues,
    pub(crate) reservations: Reservations,
    pub(crate) receipts: Receipts,
    pub(crate) exempt: ExemptSets,
    pub(crate) unreadable: Unreadable,
    pub(crate) dirty: Dirty,
}

/// What may differ from what was reported to the engine.
#[derive(Debug, Default)]
pub(crate) struct Dirty {
    pub(crate) nodes: BTreeSet<Box<str>>,
    pub(crate) pods: BTreeSet<Slot>,
    pub(crate) gangs: BTreeSet<Arc<GangName>>,
}

impl Dirty {
    pub(crate) fn all_nodes(&mut self, nodes: &Nodes) {
        self.nodes.extend(nodes.names().map(Box::from));
    }
}

impl Objects {
    pub(crate) fn new(settings: Settings) -> Self {
        let network = Network::new(settings.levels.clone());
        Self { settings, network, ..Self::default() }
    }

    /// Whether a pod is ours to place, now or before.
    pub(crate) fn is_ours(&self, pod: &Pod) -> bool {
        *pod.scheduler == *self.settings.scheduler
    }

    /// Whether a pod may take part in scheduling: ours, not over, not gated, not held back, and not
    /// about to go before it has a node.
    pub(crate) fn takes_part(&self, entry: &PodEntry) -> bool {
        entry.held_back.is_none() && self.would_take_part(entry)
    }

    /// The same if it were not held back.
    pub(crate) fn would_take_part(&self, entry: &PodEntry) -> bool {
        let pod = &entry.pod;
        let goes = pod.meta.is_deleting() && pod.node.is_empty();
        let may = !entry.is_unreadable && !goes;
        may && self.is_ours(pod) && !pod.is_over() && !pod.gated
    }

    /// Whether a pod holds something that the engine does not give out: it is on a node, or one is
    /// freed for it by another scheduler.
    pub(crate) fn is_elsewhere(&self, pod: &Pod) -> bool {
        let nominated =
            !pod.nominated_node.is_empty() && !self.is_ours(pod) && !pod.meta.is_deleting();
        !pod.is_over() && (!pod.node.is_empty() || nominated)
    }

    /// Whether a pod that another scheduler placed counts as one of ours, because it may be
    /// preempted.
    pub(crate) fn may_be_preempted(&self, entry: &PodEntry) -> bool {
        let pod = &entry.pod;
        let may = self.settings.preempt_foreign && !entry.is_unreadable && entry.gang.is_none();
        may && !pod.node.is_empty() && !pod.preemption.is_protected
    }

    /// Whether a pod counts as one that may not be preempted, apart from what it says itself.
    pub(crate) fn is_exempt(&self, slot: Slot) -> bool {
        let entry = self.pods.get(slot);
        entry.is_exempt || self.exempt.namespaces.contains(&entry.pod.meta.namespace)
    }

    pub(crate) fn namespace_labels(&self, pod: &Pod) -> Option<&Labels> {
        self.namespaces.get(&pod.meta.namespace).map(|namespace| &namespace.meta.labels)
    }

    /// The queue of a pod, by its name in the engine. Pods of other schedulers are in none.
    pub(crate) fn queue_of(&self, slot: Slot) -> QueueName {
        match self.is_ours(&self.pods.get(slot).pod) {
            true => engine_name(self.queue_name(slot)),
            false => NO_QUEUE.to_owned(),
        }
    }

    fn queue_name(&self, slot: Slot) -> &str {
        if self.queues.are_absent() {
            return DEFAULT_QUEUE;
        }
        let entry = self.pods.get(slot);
        let group = entry.gang.as_ref().and_then(|gang| self.descriptions.labels(gang));
        queue_of(&entry.pod.meta.labels, group, self.namespace_labels(&entry.pod))
    }

    /// Whether its queue takes a pod.
    pub(crate) fn admission(&self, slot: Slot) -> Result<(), NotYet> {
        if self.queues.are_absent() {
            return Ok(());
        }
        let pod = &self.pods.get(slot).pod;
        let namespace = (&*pod.meta.namespace, self.namespace_labels(pod));
        admit(self.queue_name(slot), self.queues.objects(), self.queues.problems(), namespace)
    }
}

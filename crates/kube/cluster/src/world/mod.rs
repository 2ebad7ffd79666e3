//! The index: changes of objects in, engine events out.
//!
//! It keeps the objects and, for each node, pod and attached volume, what was reported of it to the
//! engine. A change marks what it concerns; then the difference to what was reported before is
//! reported. What is reported follows from the objects alone and from the decisions not yet seen on
//! the watch, so the order of changes does not matter: the engine ends where one built from the
//! last objects begins.
//!
//! Nothing is reported before every kind has delivered its first list. Until then objects are only
//! kept; [`World::snapshot`] then gives the world that an engine starts from.
//!
//! Each layer rests on those above it alone:
//!
//! | layer | what |
//! |---|---|
//! | `objects` | facts: what the objects say, and the decisions that the watch does not show yet |
//! | `readings` | what follows from them, in the words of the engine |
//! | `feed` | what was reported to the engine of pods, nodes and queues: events |
//! | `gangs` | what was reported to it of gangs as a whole |
//! | `index` | these parts: a change of an object in, what follows from it out |
//! | `mod`, `decisions` | [`World`]: changes, time, and what the scheduler decides |
//! | `views`, `snapshot` | questions, none of which changes anything |

mod aside;
mod causes;
mod decisions;
mod feed;
mod gangs;
mod index;
mod key;
mod missing_queue;
mod objects;
mod readings;
mod report;
mod settings;
mod snapshot;
mod views;
mod waits;

use dovetail_model::{Event, Snapshot};
use dovetail_objects::{Kind, Meta, Object};

pub use aside::{DevicesAside, UnservedClaim};
use dovetail_translate::Rules;
pub use gangs::{LostMembers, ShortLook, Unwinding};
use index::Index;
pub use key::{ClaimKey, PodKey};
pub use missing_queue::MissingQueue;
use objects::Objects;
pub use objects::decisions::{Bind, Decision, DecisionStage, Decisions, GangDecision};
pub use objects::exempt::Exempt;
use objects::listing::Listings;
pub use objects::receipts::{LastingOwner, RememberedBy, RunName};
pub use readings::decided::DECISION;
pub use report::{
    Gathering, ObjectReport, group_waits_for_volumes, how_many, waits_for_devices,
    waits_for_members, waits_for_volumes, waits_for_volumes_of_others,
};
pub use settings::{Patience, Settings, VolumePatience};
pub use views::{
    ClaimPart, ClaimWrite, DeviceClaimView, DevicePatience, GangLook, GangView, MemberLook,
    NodeView, PodView, PreemptionView, QueueView, ReservationView, SuspendedJob, SuspensionView,
    VolumeView,
};
pub use waits::DecidedPods;

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

/// The objects, and what was reported of them to the engine.
#[derive(Debug, Default)]
pub struct World {
    listings: Listings,
    index: Index,
}

impl World {
    /// A world without objects.
    pub fn new(settings: Settings) -> Self {
        let index = Index { objects: Objects::new(settings), ..Index::default() };
        Self { index, ..Self::default() }
    }

    /// Takes a change; what follows from it for the engine, in the order in which it must take it.
    pub fn apply(&mut self, change: Change) -> Vec<Event> {
        let Self { listings, index } = self;
        let objects = &index.objects;
        match change {
            Change::Applied(object) => {
                let (kind, meta) = (object.kind(), object.meta());
                let stored = objects.stored(kind, &meta.namespace, &meta.name);
                if listings.accepts(kind, meta, stored) {
                    index.put(object);
                }
            }
            Change::Deleted(kind, meta) => {
                let stored = objects.stored(kind, &meta.namespace, &meta.name);
                if listings.accepts_deletion(kind, &meta, stored) {
                    index.remove(kind, &meta.namespace, &meta.name);
                }
            }
            Change::Listing(kind) => listings.begin(kind),
            Change::Absent(kind) => {
                listings.begin(kind);
                index.remove_all(kind, listings.complete(kind, objects.names(kind)));
                index.note_kind(kind, true);
            }
            Change::Listed(kind) => {
                index.remove_all(kind, listings.complete(kind, objects.names(kind)));
                index.note_kind(kind, false);
            }
        }
        if !index.objects.is_ready && listings.are_all_complete() {
            index.open();
            return Vec::new();
        }
        index.settle()
    }

    /// Whether every kind has delivered its first list, so that decisions may be taken.
    pub fn is_ready(&self) -> bool {
        self.index.objects.is_ready
    }

    /// How objects are translated.
    pub fn rules(&self) -> &Rules {
        &self.index.objects.settings.rules
    }

    /// Time passes: what follows from it for the engine. Call it before every change.
    pub fn pass(&mut self, now_ms: u64) -> Vec<Event> {
        let due_ms = self.due_ms();
        let Index { objects, gangs, .. } = &mut self.index;
        let before_ms = objects.now_ms;
        objects.now_ms = before_ms.max(now_ms);
        if !objects.is_ready || due_ms.is_none_or(|due_ms| due_ms > objects.now_ms) {
            return Vec::new();
        }
        objects.dirty.pods.extend(objects.pods.late_between(before_ms, objects.now_ms));
        gangs.mark_due(objects);
        self.index.settle()
    }

    /// When time alone may change something.
    pub fn due_ms(&self) -> Option<u64> {
        let Index { objects, gangs, .. } = &self.index;
        gangs.due_ms().into_iter().chain(objects.pods.next_late_ms(objects.now_ms)).min()
    }

    /// What is new for people and for the scheduler since the last call.
    pub fn notices(&mut self) -> Notices<'_> {
        Notices { index: &mut self.index }
    }

    /// The world as it was reported to the engine, for an engine or a judge to start from.
    pub fn snapshot(&mut self, now_ms: u64) -> Snapshot {
        let rest = snapshot::without_nodes(&mut self.index, now_ms);
        let nodes = self.index.objects.nodes.reported().map(|node| (**node).clone());
        Snapshot { nodes: nodes.collect(), ..rest }
    }

    /// As [`Self::snapshot`], for a caller that needs the world no more: its nodes are not copied.
    pub fn into_snapshot(mut self, now_ms: u64) -> Snapshot {
        let rest = snapshot::without_nodes(&mut self.index, now_ms);
        let nodes = self.index.objects.nodes.into_reported().map(std::sync::Arc::unwrap_or_clone);
        Snapshot { nodes: nodes.collect(), ..rest }
    }

    /// Decisions are made in this leadership from now on.
    pub fn in_epoch(mut self, epoch: u64) -> Self {
        self.index.objects.pods.decisions.begin_epoch(epoch);
        self
    }

    /// Which pods are assigned to which nodes.
    pub fn decisions(&self) -> &Decisions {
        &self.index.objects.pods.decisions
    }

    /// The same, to note how far decisions are.
    pub fn decisions_mut(&mut self) -> &mut Decisions {
        &mut self.index.objects.pods.decisions
    }

    /// Questions about pods.
    pub fn pods(&self) -> PodView<'_> {
        PodView { objects: &self.index.objects }
    }

    /// Questions about nodes.
    pub fn nodes(&self) -> NodeView<'_> {
        NodeView { nodes: &self.index.objects.nodes }
    }

    /// Questions about gangs.
    pub fn gangs(&self) -> GangView<'_> {
        GangView { index: &self.index }
    }

    /// Questions about queues.
    pub fn queues(&self) -> QueueView<'_> {
        QueueView { index: &self.index }
    }

    /// Questions about claims and their volumes.
    pub fn volumes(&self) -> VolumeView<'_> {
        VolumeView { objects: &self.index.objects }
    }

    /// Questions about pods that are preempted, and those for which room is made.
    pub fn preemption(&self) -> PreemptionView<'_> {
        PreemptionView { index: &self.index }
    }
}

/// What is new for people and for the scheduler; each call gives what is new since the last one.
#[derive(Debug)]
pub struct Notices<'w> {
    index: &'w mut Index,
}

impl Notices<'_> {
    /// Reports for people.
    pub fn reports(self) -> Vec<ObjectReport> {
        std::mem::take(&mut self.index.feed.reports)
    }

    /// Gangs that are given up: their pods are to be deleted. A gang that is still there after some
    /// time comes again.
    pub fn unwinding(self) -> Vec<Unwinding> {
        self.index.gangs.take_unwinding()
    }

    /// Pods that say since the last call that their own scheduler is about to preempt them.
    pub fn newly_marked(self) -> Vec<PodKey> {
        std::mem::take(&mut self.index.marked)
    }

    /// Pods from which somebody has taken the condition that the server refused to evict them, and
    /// that are not about to be preempted: they may be preempted again.
    pub fn evictable_again(self) -> Vec<PodKey> {
        std::mem::take(&mut self.index.evictable_again)
    }

    /// Whether running jobs count for other queues than was reported to the engine: only a new one
    /// learns that, from the snapshot.
    pub fn are_queues_recounted(self) -> bool {
        self.index.feed.counted.take_recounted()
    }

    /// Whether other room is kept.
    pub fn are_reservations_new(self) -> bool {
        self.index.feed.rooms.take_is_kept_anew()
    }
}

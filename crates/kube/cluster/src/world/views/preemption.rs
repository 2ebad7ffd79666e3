//! Pods that are preempted, that cannot be, and those for which room is made, according to the
//! objects.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dovetail_model::{
    Event, HoldingPhase, JobId, Owner, PodId, PreemptReason, PreemptionReservation,
};
use dovetail_objects::{Kind, Meta, Pod};

use crate::world::index::Index;
use crate::world::key::PodKey;
use crate::world::objects::Objects;
use crate::world::objects::pods::{PodEntry, SLACK_MS, Slot};
use crate::world::objects::receipts::{RememberedBy, receipt, remembered_by};
use crate::world::objects::reported::Reported;
use crate::world::readings::decided::{left_of, left_without};
use crate::world::readings::standing::{PodReading, standing};
use crate::world::snapshot::waiting_job;
use crate::world::views::suspension::SuspensionView;
use dovetail_translate::Receipt;
use dovetail_translate::gang::GangName;

/// Questions about pods that are preempted, and those for which room is made.
#[derive(Clone, Copy, Debug)]
pub struct PreemptionView<'w> {
    pub(crate) index: &'w Index,
}

impl<'w> PreemptionView<'w> {
    fn objects(self) -> &'w Objects {
        &self.index.objects
    }

    /// Questions about Jobs that are suspended in place of evicting their pods.
    pub fn suspension(self) -> SuspensionView<'w> {
        SuspensionView { objects: self.objects() }
    }

    fn slots<'p>(self, pods: &'p [PodId]) -> impl Iterator<Item = Slot> + use<'p, 'w> {
        pods.iter().filter_map(move |pod| self.objects().pods.by_id(*pod))
    }

    fn ids(self, slots: impl IntoIterator<Item = Slot>) -> Vec<PodId> {
        slots.into_iter().filter_map(|slot| self.objects().pods.get(slot).id).collect()
    }

    fn gangs_of(self, slots: impl IntoIterator<Item = Slot>) -> BTreeSet<&'w Arc<GangName>> {
        let pods = &self.objects().pods;
        slots.into_iter().filter_map(|slot| pods.get(slot).gang.as_ref()).collect()
    }

    /// Namespace and name of the disruption budget that the engine knows by this name.
    pub fn budget(self, engine_name: &str) -> Option<String> {
        self.objects().budgets.shown(engine_name)
    }

    /// What remembers preemptions of a pod.
    pub fn remembered_by(self, pod: &PodKey) -> RememberedBy {
        let slot = self.objects().pods.by_key(pod);
        slot.map(|slot| remembered_by(self.objects(), slot)).unwrap_or_default()
    }

    /// What preemptions of pods of the object or the run cost that a job is of.
    pub fn receipt(self, job: JobId) -> Receipt {
        let slot = self.objects().pods.of_job(job).next();
        slot.map(|slot| receipt(self.objects(), slot)).unwrap_or_default()
    }

    /// What remembers preemptions of a job, if that is more than an object: what it inherits is to
    /// be said by the object, too.
    pub fn inherits(self, job: JobId) -> Option<RememberedBy> {
        let slot = self.objects().pods.of_job(job).next()?;
        let by = remembered_by(self.objects(), slot);
        (by.account.is_some() && by.run.is_some()).then_some(by)
    }

    /// Identity and annotations of an object that may remember preemptions.
    pub fn remembers(self, kind: Kind, namespace: &str, name: &str) -> Option<&'w Meta> {
        self.index.objects.descriptions.meta(kind, namespace, name)
    }

    /// A pod of a namespace that runs and may be preempted, according to the pod itself.
    pub fn preemptible_in(self, namespace: &str) -> Option<PodKey> {
        self.running_in(namespace).map(|(_, pod)| PodKey::of(pod)).next()
    }

    /// Pods of a namespace that run and may be preempted, according to the pods themselves, with
    /// their jobs.
    pub fn running_in(self, namespace: &str) -> impl Iterator<Item = (JobId, &'w Pod)> + use<'w> {
        let pods = &self.objects().pods;
        let entries = pods.of_namespace(namespace).map(|slot| pods.get(slot));
        entries.filter_map(|entry| {
            let runs = stays(&entry.pod) && !entry.pod.preemption.is_protected;
            Some((entry.id.filter(|_| runs)?.job, &*entry.pod))
        })
    }

    /// Pods that run and have the condition that the server refused to evict them, and since when;
    /// without those that are exempt already.
    pub fn with_refused_eviction(self) -> Vec<(PodKey, u64)> {
        let kept = self.objects().pods.entries().filter_map(|entry| {
            let pod = &entry.pod;
            let kept_ms = pod.preemption.kept_ms.filter(|_| !entry.is_exempt)?.get();
            stays(pod).then(|| (PodKey::of(pod), kept_ms))
        });
        kept.collect()
    }

    /// Whether no pods are preempted for a job for the time being, whatever its pods say.
    pub fn is_preemptor_exempt(self, job: JobId) -> bool {
        self.objects().exempt.preemptors.contains(&job)
    }

    /// A waiting job as if it were new: what is kept for it is given back.
    pub fn submit_again(self, job: JobId) -> Vec<Event> {
        let waiting = waiting_job(self.index, job);
        let submitted = waiting.map(|job| Event::Submitted(Box::new(job)));
        submitted.map_or(Vec::new(), |submitted| vec![Event::ended(job), submitted])
    }

    /// What those of these pods hold, or are about to, that are not terminating: their evictions
    /// were refused or called off.
    pub fn still_held(self, pods: &[PodId]) -> Vec<Event> {
        let there = self.slots(pods).filter(|slot| {
            let entry = self.objects().pods.get(*slot);
            let holds =
                matches!(entry.reported, Reported::Running { .. } | Reported::Assumed { .. });
            holds && !entry.pod.meta.is_deleting()
        });
        let held = there.filter_map(|slot| match standing(self.objects(), slot) {
            PodReading::Running(holding) | PodReading::Assumed(holding) => {
                Some(Event::HeldChanged(holding))
            }
            _ => None,
        });
        held.collect()
    }

    /// What these pods hold, to be released when their grace periods end.
    pub fn to_be_released(self, pods: &[PodId]) -> Vec<Event> {
        let objects = self.objects();
        let held = self.slots(pods).filter_map(|slot| match standing(objects, slot) {
            PodReading::Running(mut holding) if matches!(holding.owner, Owner::Pod(_)) => {
                let pod = &objects.pods.get(slot).pod;
                let grace_ms = 1_000 * u64::from(pod.preemption.grace_s);
                let ends_ms = objects.now_ms.saturating_add(grace_ms).saturating_add(SLACK_MS);
                holding.phase = HoldingPhase::Releasing { expected_end_ms: Some(ends_ms) };
                Some(Event::HeldChanged(holding))
            }
            _ => None,
        });
        held.collect()
    }

    /// Waiting pods of ours that name a node, of jobs without a claim: nothing is freed for them.
    pub fn stale_nominations(self, claims: &[PreemptionReservation]) -> Vec<PodKey> {
        let kept: BTreeSet<JobId> = claims.iter().map(|claim| claim.job).collect();
        let is_stale = |entry: &&PodEntry| !entry.id.is_some_and(|id| kept.contains(&id.job));
        self.nominated().filter(is_stale).map(|entry| PodKey::of(&entry.pod)).collect()
    }

    /// The most important of those that wait and name a node that is freed for them.
    pub fn first_nominated(self) -> Option<&'w Pod> {
        self.nominated().map(|entry| &*entry.pod).min_by_key(|pod| Reverse(pod.priority))
    }

    /// Waiting pods of ours that name a node.
    fn nominated(self) -> impl Iterator<Item = &'w PodEntry> + use<'w> {
        self.objects().pods.entries().filter(move |entry| {
            let pod = &entry.pod;
            entry.waits() && !pod.nominated_node.is_empty() && self.objects().is_ours(pod)
        })
    }

    /// Pods of the same gangs as those that are preempted, where too few would be left to go on.
    /// The engine knows nothing of the gangs of members that were placed by themselves.
    pub fn companions(self, stopped: &[PodId]) -> Vec<PodId> {
        let stopped: BTreeSet<Slot> = self.slots(stopped).collect();
        let gangs = self.gangs_of(stopped.iter().copied());
        self.ids(gangs.into_iter().flat_map(|gang| left_without(self.objects(), gang, &stopped)))
    }

    /// The gangs of pods.
    pub fn gangs(self, pods: &[PodId]) -> BTreeSet<GangName> {
        self.gangs_of(self.slots(pods)).into_iter().map(|gang| (**gang).clone()).collect()
    }

    /// The pods left of the gangs of these victims, some of which have been preempted, where too
    /// few are left to go on. The victims may be gone, so that their gangs are named; `has_begun`
    /// says that others of these gangs are.
    pub fn left_of_preempted(
        self,
        victims: &[PodId],
        gangs: &BTreeSet<GangName>,
        has_begun: bool,
    ) -> Vec<PodId> {
        let pods = &self.objects().pods;
        let is_going = |slot: Slot| pods.get(slot).pod.meta.is_deleting();
        let is_begun = |pod: &PodId| pods.by_id(*pod).is_none_or(is_going);
        if !has_begun && !victims.iter().any(is_begun) {
            return Vec::new();
        }
        let none = BTreeSet::new();
        self.ids(gangs.iter().flat_map(|gang| left_of(self.objects(), gang, &none)))
    }

    /// The pods left of these gangs, of which some pods are gone or (`gone`) about to be whatever
    /// the watch shows yet, where too few are left to go on.
    pub fn left_without(self, gangs: &BTreeSet<GangName>, gone: Option<PodId>) -> Vec<PodId> {
        let pods = &self.objects().pods;
        let gone: Option<Slot> = gone.and_then(|pod| pods.by_id(pod));
        self.ids(gangs.iter().flat_map(|gang| {
            let is_member = |slot: &Slot| pods.get(*slot).gang.as_deref() == Some(gang);
            left_of(self.objects(), gang, &gone.filter(is_member).into_iter().collect())
        }))
    }

    /// The pods left of gangs that were being preempted when the last leader ended, according to
    /// the pods: one is marked, the gang cannot go on without those that have gone or are
    /// `awaited`, and a pod is pending that may be their preemptor, or was placed since they were.
    /// Priorities say which, but where pods were marked for another reason.
    pub fn left_by_the_last_leader(self, awaited: &BTreeSet<PodId>) -> Vec<PodId> {
        let pods = &self.objects().pods;
        let mut gangs: BTreeMap<&Arc<GangName>, (BTreeSet<Slot>, bool)> = BTreeMap::new();
        for slot in self.marked() {
            let entry = pods.get(slot);
            let Some(name) = &entry.gang else { continue };
            let (stopped, is_by_priority) = gangs.entry(name).or_insert((BTreeSet::new(), true));
            *is_by_priority &= entry.pod.preemption.reason == PreemptReason::Priority;
            if entry.id.is_some_and(|id| awaited.contains(&id)) {
                stopped.insert(slot);
            }
        }
        let most = self.first_nominated().map(|pod| pod.priority);
        let left = gangs.into_iter().flat_map(|(name, (stopped, is_by_priority))| {
            let left = left_of(self.objects(), name, &stopped);
            let is_below = |slot: &Slot| {
                let pod = &pods.get(*slot).pod;
                Some(pod.priority) < most || self.has_since_been_outranked(pod)
            };
            match !is_by_priority || left.iter().all(is_below) {
                true => left,
                false => Vec::new(),
            }
        });
        self.ids(left)
    }

    /// Whether a more important pod of ours has got a node since a pod got its own.
    fn has_since_been_outranked(self, pod: &Pod) -> bool {
        self.objects().pods.entries().any(|entry| {
            let other = &entry.pod;
            let is_above = other.priority > pod.priority && stays(other);
            is_above && other.scheduled_ms >= pod.scheduled_ms && self.objects().is_ours(other)
        })
    }

    /// Pods that stay, or wait, and have the condition that their own scheduler is about to preempt
    /// them: one may have been marked that was decided for a node and never bound.
    pub fn marked_by_us(self) -> impl Iterator<Item = PodKey> + use<'w> {
        let objects = self.objects();
        let pods = objects.pods.in_order().map(move |slot| &*objects.pods.get(slot).pod);
        let marked = pods.filter(move |pod| pod.preemption.is_own_target && objects.is_ours(pod));
        marked.filter(|pod| !pod.meta.is_deleting() && !pod.is_over()).map(PodKey::of)
    }

    /// Pods on nodes that their own scheduler is about to preempt, or has begun to; not those of
    /// other schedulers.
    fn marked(self) -> impl Iterator<Item = Slot> + use<'w> {
        let objects = self.objects();
        objects.pods.in_order().filter(move |slot| {
            let entry = objects.pods.get(*slot);
            let is_there =
                matches!(entry.reported, Reported::Running { .. }) && !entry.pod.is_over();
            is_there && entry.pod.preemption.is_own_target && objects.is_ours(&entry.pod)
        })
    }
}

/// Whether a pod is on a node and is not about to leave it.
fn stays(pod: &Pod) -> bool {
    !pod.node.is_empty() && !pod.is_over() && !pod.meta.is_deleting()
}

//! What follows from the engine's order to preempt pods: a node named for each pod that is to
//! start, then the evictions, in this order, so that the next leader finds for whom they are.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_cluster::world::{PodKey, World};
use dovetail_model::{
    JobId, Owner, Place, PodId, PreemptReason, PreemptionCost, PreemptionReservation,
};
use dovetail_translate::gang::GangName;

use super::evictions::{Evictions, node_of};
use super::exemptions::Exemptions;
use super::known::Known;
use super::news::{News, Preempts};
use crate::announce::PodCondition;
use crate::order::{EvictionDecision, PodOrder};

/// Jobs that room is made for, and the evictions that this takes.
#[derive(Debug, Default)]
pub(super) struct Preempting {
    /// What is under way for jobs that room is made for, until they run.
    pub(super) rooms: BTreeMap<JobId, PreemptionProgress>,
    /// Evictions whose end is not known.
    pub(super) evictions: Evictions,
    pub(super) exemptions: Exemptions,
    /// Nothing is written: a pod that would be evicted counts as gone.
    pub(super) is_dry_run: bool,
}

/// What is under way for a job that room is made for.
#[derive(Debug)]
pub(super) struct PreemptionProgress {
    /// Its pods, each of which names a node.
    pub(super) nominated: Vec<PodKey>,
    pub(super) victims: Vec<PodId>,
    /// The gangs of the victims, also once these are gone.
    pub(super) gangs: BTreeSet<GangName>,
    /// Whether others of these gangs, which cannot go on without, were evicted by an earlier leader
    /// or are by decisions of their own.
    pub(super) has_begun: bool,
    /// The decision to evict them; `None` if none is left to be evicted.
    pub(super) evictions: Option<EvictionDecision>,
    pub(super) budget_violations: u64,
    /// Why they are evicted: that says how.
    pub(super) reason: PreemptReason,
    /// GPU-time that is lost with them, as far as it is known.
    pub(super) lost_gpu_milli_ms: u64,
}

impl Preempting {
    /// Room is made for a job: nodes are named for its pods. Its victims; pods of them are evicted
    /// by [`Preempting::order_evictions`].
    pub(super) fn preempt(
        &mut self,
        known: &mut Known,
        says: Vec<PodCondition>,
        job: JobId,
        victims: &[PodId],
        places: &[Place],
        (cost, reason): (PreemptionCost, PreemptReason),
    ) -> Vec<PodId> {
        let nodes: BTreeMap<PodId, &str> = places.iter().map(|p| (p.pod, &*p.node)).collect();
        let named = |pod: &PodId| {
            let key = PodKey::of(known.world.pods().pod_of(*pod)?);
            let node = node_of(&known.world, &key);
            Some((key, node))
        };
        let under_way = self.rooms.values().flat_map(|room| &room.victims);
        let gone: Vec<PodId> = victims.iter().chain(under_way).copied().collect();
        let companions = known.world.preemption().companions(&gone);
        let victims: Vec<PodId> = victims.iter().chain(&companions).copied().collect();
        let stopped: Vec<(PodKey, String)> = victims.iter().filter_map(named).collect();
        let waiting = nominations(&known.world, &nodes, &says);
        if let Some(first) = nodes.keys().next().and_then(|pod| known.world.pods().pod_of(*pod)) {
            let mut nodes: Vec<String> = nodes.values().map(|node| (*node).to_owned()).collect();
            nodes.sort();
            nodes.dedup();
            known.news.push(News::Preempts(Box::new(Preempts {
                preemptor: PodKey::of(first),
                victims: stopped,
                nodes,
                cost,
                reason,
                says,
                is_dry_run: self.is_dry_run,
            })));
        }
        if self.is_dry_run {
            let events = known.world.assume_gone(&victims);
            known.apply(events);
            return Vec::new();
        }
        let nominated: BTreeSet<PodKey> =
            waiting.iter().filter_map(PodOrder::nominated).cloned().collect();
        // A pod that names another node now need not name none before.
        known.orders.retain(|order| order.nominated().is_none_or(|pod| !nominated.contains(pod)));
        self.call_off_evictions(known, job);
        let (nominated, budget_violations) =
            (nominated.into_iter().collect(), cost.budget_violations);
        let (evictions, victims_of) = (None, victims.clone());
        let gangs = known.world.preemption().gangs(&victims);
        let lost_gpu_milli_ms = cost.work_lost_gpu_milli_ms;
        let room = PreemptionProgress {
            nominated,
            victims: victims_of,
            gangs,
            has_begun: false,
            evictions,
            budget_violations,
            reason,
            lost_gpu_milli_ms,
        };
        self.rooms.insert(job, room);
        known.orders.extend(waiting);
        victims
    }

    /// Whether room is made for a job because its queue gets its quota back.
    pub(super) fn reclaims_for(&self, job: JobId) -> bool {
        self.rooms.get(&job).is_some_and(|room| room.reason == PreemptReason::Reclaim)
    }

    /// No nodes are freed for the pods of a job any more. Autoscalers buy none for pods that name
    /// one. Victims whose eviction has not begun are not evicted, and may be for others.
    pub(super) fn unnominate(&mut self, known: &mut Known, job: JobId) {
        let Some(PreemptionProgress { nominated, victims, evictions, .. }) =
            self.rooms.remove(&job)
        else {
            return;
        };
        if let Some(decision) = evictions {
            self.call_off(known, &decision);
        }
        let waiting = nominated.into_iter().filter(|pod| known.world.pods().has(pod));
        known.orders.extend(waiting.map(PodOrder::nominate_nowhere));
        let events = known.world.preemption().still_held(&victims);
        known.apply(events);
    }

    /// Goes on where an earlier scheduler ended: evictions that were begun are finished, and pods
    /// that name a node which is not freed for them name none. Gangs of which some have gone are
    /// evicted whole; a marked pod that is not evicted is marked no more.
    pub(super) fn take_up_evictions(
        &mut self,
        known: &mut Known,
        claims: &[PreemptionReservation],
    ) {
        if self.is_dry_run {
            return;
        }
        // What an engine before this one decided and has not begun is decided again.
        for job in self.rooms.keys().copied().collect::<Vec<_>>() {
            self.call_off_evictions(known, job);
        }
        self.rooms.clear();
        let cannot_go_on = known.world.preemption().left_by_the_last_leader(&BTreeSet::new());
        for claim in claims {
            let pods = claim.places.iter().filter_map(|place| known.world.pods().pod_of(place.pod));
            let victims = claim.awaited.iter().filter_map(|owner| match owner {
                Owner::Pod(pod) => Some(*pod),
                Owner::Foreign(_) | Owner::Reservation => None,
            });
            let nominated = pods.map(PodKey::of).collect();
            let victims: Vec<PodId> = victims.collect();
            // What budgets allowed then is not known.
            let (evictions, budget_violations, lost_gpu_milli_ms) = (None, 0, 0);
            let reason = marked_for(&known.world, &victims);
            let gangs = known.world.preemption().gangs(&victims);
            let has_begun = victims.iter().any(|pod| cannot_go_on.contains(pod));
            let room = PreemptionProgress {
                nominated,
                victims,
                gangs,
                has_begun,
                evictions,
                budget_violations,
                reason,
                lost_gpu_milli_ms,
            };
            self.rooms.insert(claim.job, room);
            self.order_evictions(known, claim.job);
        }
        let awaited = self.rooms.values().flat_map(|room| &room.victims).copied().collect();
        let left = known.world.preemption().left_by_the_last_leader(&awaited);
        let preemptor = known.world.preemption().first_nominated().map(PodKey::of);
        self.evict_what_is_left(known, preemptor, &left);
        self.take_back_marks(known);
        let stale = known.world.preemption().stale_nominations(claims);
        known.orders.extend(stale.into_iter().map(PodOrder::nominate_nowhere));
    }
}

/// Why pods were to be evicted, as those that are marked say.
fn marked_for(world: &World, victims: &[PodId]) -> PreemptReason {
    let pods = victims.iter().filter_map(|pod| world.pods().pod_of(*pod));
    let mut marked = pods.filter(|pod| pod.preemption.is_target);
    marked.next().map(|pod| pod.preemption.reason).unwrap_or_default()
}

/// The orders to name these nodes, and to say this with it.
fn nominations(
    world: &World,
    nodes: &BTreeMap<PodId, &str>,
    says: &[PodCondition],
) -> Vec<PodOrder> {
    let says: BTreeMap<&str, &PodCondition> = says.iter().map(|one| (&*one.pod.uid, one)).collect();
    let order = |(pod, node): (&PodId, &&str)| {
        let pod = PodKey::of(world.pods().pod_of(*pod)?);
        let says = says.get(&*pod.uid).map(|says| Box::new((*says).clone()));
        Some(PodOrder::Nominate { pod, node: (*node).to_owned(), says })
    };
    nodes.iter().filter_map(order).collect()
}

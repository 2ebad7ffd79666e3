//! What follows from the engine's order to stop pods: a node named for each pod that is to start, then the
//! stops, in this order, so that whoever takes over finds for whom they are.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_cluster::world::PodKey;
use dovetail_model::{Claim, JobId, Owner, PendingReason, Place, PodId, PreemptionCost};
use dovetail_objects::Pod;
use dovetail_plan::Engine;

use super::news::{News, PodName, Preempts};
use super::scheduler::Scheduler;
use super::stops::preemptor;
use crate::announce::{Condition, PodIdentity};
use crate::bind::{Order, StopDecision};

/// What is under way for a job that room is made for.
#[derive(Debug)]
pub(super) struct Room {
    /// Its pods, each of which names a node.
    pub(super) nominated: Vec<PodKey>,
    pub(super) victims: Vec<PodId>,
    /// The decision to stop them; `None` if there is nobody to be stopped any more.
    pub(super) stops: Option<StopDecision>,
    pub(super) budget_violations: u64,
}

impl Scheduler {
    /// Writes nothing: whoever would be stopped counts as gone.
    pub fn only_pretend(&mut self) {
        self.is_dry_run = true;
    }

    /// The next order to carry out. It is either carried out or put back.
    pub fn next_order(&mut self) -> Option<Order> {
        self.orders.pop_front()
    }

    /// The order was not carried out.
    pub fn put_back_order(&mut self, order: Order) {
        self.orders.push_front(order);
    }

    /// Searches for pods to stop, since the last call.
    pub fn searches(&mut self) -> u64 {
        self.engine_mut().map_or(0, |engine| engine.take_search_effort().searches)
    }

    pub(super) fn preempt(
        &mut self,
        job: JobId,
        victims: &[PodId],
        places: &[Place],
        cost: PreemptionCost,
    ) {
        let nodes: BTreeMap<PodId, &str> = places.iter().map(|p| (p.pod, &*p.node)).collect();
        let named = |pod: &PodId| {
            let key = PodKey::of(self.world.pods().pod_of(*pod)?);
            let node = self.node_of(&key);
            Some((key, node))
        };
        let under_way = self.rooms.values().flat_map(|room| &room.victims);
        let gone: Vec<PodId> = victims.iter().chain(under_way).copied().collect();
        let companions = self.world.preemption().companions(&gone);
        let victims: Vec<PodId> = victims.iter().chain(&companions).copied().collect();
        let stopped: Vec<(PodKey, String)> = victims.iter().filter_map(named).collect();
        let says = self.says_for_whom_it_waits(job);
        let waiting = self.nominations(&nodes, &says);
        if let Some(first) = nodes.keys().next().and_then(|pod| self.world.pods().pod_of(*pod)) {
            let mut nodes: Vec<String> = nodes.values().map(|node| (*node).to_owned()).collect();
            nodes.sort();
            nodes.dedup();
            self.news.push(News::Preempts(Box::new(Preempts {
                preemptor: PodName::of(first),
                uid: first.meta.uid.to_string(),
                victims: stopped,
                nodes,
                cost,
                says,
                is_dry_run: self.is_dry_run,
            })));
        }
        if self.is_dry_run {
            let events = self.world.leave_out(&victims);
            return self.tell(events);
        }
        let nominated: BTreeSet<PodKey> =
            waiting.iter().filter_map(Order::nominated).cloned().collect();
        // Who names another node now need not be told before that the last one is not freed.
        self.orders.retain(|order| order.nominated().is_none_or(|pod| !nominated.contains(pod)));
        self.call_off_stops(job);
        let (nominated, budget_violations) =
            (nominated.into_iter().collect(), cost.budget_violations);
        let room = Room { nominated, victims: victims.clone(), stops: None, budget_violations };
        self.rooms.insert(job, room);
        self.orders.extend(waiting);
        self.give_up_for_others(&victims);
        self.order_stops(job);
    }

    /// No nodes are freed for the pods of a job any more. Autoscalers buy none for pods that name one. Victims
    /// that have not begun to stop are not, and may be stopped for others.
    pub(super) fn unnominate(&mut self, job: JobId) {
        let Some(Room { nominated, victims, stops, .. }) = self.rooms.remove(&job) else { return };
        if let Some(decision) = stops {
            self.call_off(&decision);
        }
        let waiting = nominated.into_iter().filter(|pod| self.world.pods().has(pod));
        self.orders.extend(waiting.map(Order::nominate_nowhere));
        let events = self.world.preemption().not_stopped(&victims);
        self.tell(events);
    }

    /// Goes on where an earlier scheduler ended: stops that were begun are finished, and pods that name a node
    /// which nobody frees for them name none. Gangs of which some have gone are stopped whole; who is marked and is stopped for
    /// nobody is marked no more.
    pub(super) fn take_up_stops(&mut self, claims: &[Claim]) {
        if self.is_dry_run {
            return;
        }
        // What an engine before this one decided and has not begun is decided anew.
        for job in self.rooms.keys().copied().collect::<Vec<_>>() {
            self.call_off_stops(job);
        }
        self.rooms.clear();
        for claim in claims {
            let pods = claim.places.iter().filter_map(|place| self.world.pods().pod_of(place.pod));
            let victims = claim.awaited.iter().filter_map(|owner| match owner {
                Owner::Pod(pod) => Some(*pod),
                Owner::Foreign(_) | Owner::Reservation => None,
            });
            let (nominated, victims) = (pods.map(PodKey::of).collect(), victims.collect());
            // What budgets allowed then is not known.
            let room = Room { nominated, victims, stops: None, budget_violations: 0 };
            self.rooms.insert(claim.job, room);
            self.order_stops(claim.job);
        }
        let awaited = self.rooms.values().flat_map(|room| &room.victims).copied().collect();
        let left = self.world.preemption().left_by_the_last_leader(&awaited);
        let preemptor = self.world.preemption().first_nominated().map(preemptor);
        self.stop_what_is_left(preemptor, &left);
        self.take_back_marks();
        let stale = self.world.preemption().stale_nominations(claims);
        self.orders.extend(stale.into_iter().map(Order::nominate_nowhere));
    }

    /// The orders to name these nodes, and to say this with it.
    fn nominations(&self, nodes: &BTreeMap<PodId, &str>, says: &[Condition]) -> Vec<Order> {
        let says: BTreeMap<&str, &Condition> =
            says.iter().map(|one| (one.pod.uid.as_str(), one)).collect();
        let order = |(pod, node): (&PodId, &&str)| {
            let pod = PodKey::of(self.world.pods().pod_of(*pod)?);
            let says = says.get(&*pod.uid).map(|says| Box::new((*says).clone()));
            Some(Order::Nominate { pod, node: (*node).to_owned(), says })
        };
        nodes.iter().filter_map(order).collect()
    }

    /// What the pods of a job say while those stop who make room for it: in the same write in which each names its
    /// node, so that the two never differ.
    fn says_for_whom_it_waits(&mut self, job: JobId) -> Vec<Condition> {
        let has_room = |engine: &Engine| engine.list().claim_of(job).is_some();
        if !self.engine().is_some_and(has_room) {
            return Vec::new();
        }
        let Some(waiting) = self.waiting(job, PendingReason::WaitingForReservation) else {
            return Vec::new();
        };
        let says = |pod: &Pod| Condition {
            pod: PodIdentity::of(pod),
            resource_version: pod.meta.resource_version.to_string(),
            waiting: waiting.clone(),
            since_ms: pod.unscheduled.is_none().then_some(self.now_ms),
        };
        self.world.pods().waiting_pods(job).into_iter().map(says).collect()
    }
}

//! Stops of pods for others, until it is known what became of each.
//!
//! All stops for one job are one decision. It is called off as a whole when one of them is not carried out, or when
//! the job needs the room no more: nobody is stopped for a room that does not come. Who was stopped in fact is told
//! once the server has taken the delete.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_cluster::world::PodKey;
use dovetail_model::{JobId, Owner, PodId};
use dovetail_objects::Pod;

use super::news::{News, PodName, Stopped};
use super::scheduler::Scheduler;
use crate::bind::{Order, OrderEnd, Stop, StopDecision};

/// Decisions to stop pods that are not settled yet, by number.
#[derive(Debug, Default)]
pub(super) struct Stops {
    made: u64,
    open: BTreeMap<u64, Stopping>,
}

/// A pod for which others are stopped, with its identity.
pub(super) type Preemptor = (PodName, String);

pub(super) fn preemptor(pod: &Pod) -> Preemptor {
    (PodName::of(pod), pod.meta.uid.to_string())
}

/// One of them.
#[derive(Debug)]
struct Stopping {
    /// The first pod of the job that they are for, with its identity.
    preemptor: Option<Preemptor>,
    /// Those whose end is not known, each with its node.
    open: BTreeMap<PodKey, String>,
    stopped: u64,
    /// Those of them beyond what budgets allow, if all are stopped.
    budget_violations: u64,
    is_called_off: bool,
}

impl Stops {
    fn begin(&mut self, stopping: Stopping, named_first: Vec<PodKey>) -> StopDecision {
        self.made += 1;
        let pods = stopping.open.keys().cloned().collect();
        self.open.insert(self.made, stopping);
        StopDecision::new(self.made, pods, named_first)
    }

    /// Whether a pod is to be stopped by a decision that holds, and it is not known yet what became of that.
    fn are_open_for(&self, pod: &PodKey) -> bool {
        let hold = self.open.values().filter(|stopping| !stopping.is_called_off);
        hold.map(|stopping| &stopping.open).any(|open| open.contains_key(pod))
    }

    /// What is to be told when a stop of a decision has ended.
    fn ended(&mut self, number: u64, victim: &PodKey, is_stopped: bool) -> Vec<News> {
        let mut told = Vec::new();
        let Some(stopping) = self.open.get_mut(&number) else { return told };
        let Some(node) = stopping.open.remove(victim) else { return told };
        if is_stopped {
            stopping.stopped += 1;
            let (victim, preemptor) = (victim.clone(), stopping.preemptor.clone());
            told.push(News::Stopped(Box::new(Stopped { victim, node, preemptor })));
        }
        if stopping.open.is_empty() {
            let Stopping { stopped, budget_violations, .. } = *stopping;
            self.open.remove(&number);
            // Of a decision that was carried out in part at most so many were beyond.
            let budget_violations = budget_violations.min(stopped);
            told.extend((stopped > 0).then_some(News::Preempted { stopped, budget_violations }));
        }
        told
    }
}

impl Scheduler {
    /// Orders the stops that a job needs for its room.
    pub(super) fn order_stops(&mut self, job: JobId) {
        let Some(room) = self.rooms.get(&job).filter(|room| room.stops.is_none()) else { return };
        let (budget_violations, named) = (room.budget_violations, room.nominated.clone());
        let victims: Vec<PodKey> = self.victims_to_stop(&room.victims);
        if victims.is_empty() {
            return;
        }
        let preemptor = self.world.pods().pods_of(job).next().map(preemptor);
        let stopping = Stopping {
            preemptor,
            open: victims.iter().map(|pod| (pod.clone(), self.node_of(pod))).collect(),
            stopped: 0,
            budget_violations,
            is_called_off: false,
        };
        let decision = self.stops.begin(stopping, named);
        let why = Stop::Preempted;
        let stop = |pod| Order::Stop { pod, why, decision: decision.clone() };
        self.orders.extend(victims.into_iter().map(stop));
        if let Some(room) = self.rooms.get_mut(&job) {
            room.stops = Some(decision);
        }
    }

    /// Pods that replaced lost ones are pods of their gang again, where nothing is under way with any of it.
    pub(super) fn rejoin_gangs(&mut self) {
        let Self { world, rooms, outbox, engine, .. } = self;
        let is_victim = |pod: PodId| rooms.values().any(|room| room.victims.contains(&pod));
        let claims = rooms.keys().filter_map(|job| engine.as_ref()?.list().claim_of(*job));
        let awaited = claims.flat_map(|claim| &claim.awaited).filter_map(|owner| match owner {
            Owner::Pod(pod) => Some(*pod),
            Owner::Foreign(_) | Owner::Reservation => None,
        });
        let awaited: BTreeSet<PodId> = awaited.collect();
        let is_busy = |pod| outbox.is_open_for(pod) || is_victim(pod) || awaited.contains(&pod);
        let events = world.rejoin(is_busy);
        self.tell(events);
    }

    /// Stops for a job that have not begun do not begin.
    pub(super) fn call_off_stops(&mut self, job: JobId) {
        let Some(room) = self.rooms.get_mut(&job) else { return };
        if let Some(decision) = room.stops.take() {
            self.call_off(&decision);
        }
    }

    /// A job is gone, or has started: nobody is stopped for it.
    pub(super) fn needs_no_room(&mut self, job: JobId) -> Vec<PodId> {
        let Some(room) = self.rooms.remove(&job) else { return Vec::new() };
        if let Some(decision) = room.stops {
            self.call_off(&decision);
        }
        room.victims
    }

    /// A job has started: nobody is stopped for it. Of gangs that lost pods by that nobody is left who cannot go on.
    pub(super) fn has_its_room(&mut self, job: JobId) {
        let victims = self.needs_no_room(job);
        let left = self.world.preemption().left_of_stopped(&victims);
        let preemptor = self.world.pods().pods_of(job).next().map(preemptor);
        self.stop_what_is_left(preemptor, &left);
    }

    /// Stops pods of gangs of which others have been stopped, whatever becomes of those for whom that was done.
    pub(super) fn stop_what_is_left(&mut self, preemptor: Option<Preemptor>, left: &[PodId]) {
        let mut victims = self.victims_to_stop(left);
        victims.retain(|pod| !self.stops.are_open_for(pod));
        if victims.is_empty() || self.is_dry_run {
            return;
        }
        let open = victims.iter().map(|pod| (pod.clone(), self.node_of(pod))).collect();
        let (budget_violations, is_called_off) = (0, false);
        let stopping = Stopping { preemptor, open, stopped: 0, budget_violations, is_called_off };
        let decision = self.stops.begin(stopping, Vec::new());
        let why = Stop::Preempted;
        let stop = |pod| Order::Stop { pod, why, decision: decision.clone() };
        self.orders.extend(victims.into_iter().map(stop));
        let events = self.world.preemption().about_to_go(left);
        self.tell(events);
    }

    /// Pods that an earlier leader marked and that nobody stops are marked no more.
    pub(super) fn take_back_marks(&mut self) {
        let marked = self.world.preemption().marked_by_us();
        let taken_back: Vec<Order> = marked.filter_map(|pod| self.take_back(&pod)).collect();
        self.orders.extend(taken_back);
    }

    pub(super) fn call_off(&mut self, decision: &StopDecision) {
        decision.call_off();
        if let Some(stopping) = self.stops.open.get_mut(&decision.number()) {
            stopping.is_called_off = true;
        }
        let mut ended = Vec::new();
        self.orders.retain(|order| match order {
            Order::Stop { pod, decision: of, .. } if of == decision => {
                ended.push(pod.clone());
                false
            }
            _ => true,
        });
        for pod in ended {
            self.stop_ended(&pod, Stop::Preempted, decision, OrderEnd::CalledOff);
        }
    }

    /// Takes what became of a stop.
    pub(super) fn stop_ended(
        &mut self,
        victim: &PodKey,
        why: Stop,
        decision: &StopDecision,
        end: OrderEnd,
    ) {
        if why == Stop::Preempted {
            let is_stopped = end == OrderEnd::Done;
            self.news.extend(self.stops.ended(decision.number(), victim, is_stopped));
            if is_stopped {
                self.may_stop_again(&victim.namespace);
                self.jobs_waiting_for(victim).into_iter().for_each(|job| self.tries.forget(job));
            }
        }
        if why == Stop::GangGivenUp && end == OrderEnd::Done {
            let gang =
                self.world.pods().gang_of(&victim.namespace, &victim.name).map(ToString::to_string);
            let given_up = gang.map(|gang| News::GangGivenUp { pod: victim.clone(), gang });
            self.news.extend(given_up);
        }
        match end {
            OrderEnd::Refused { code, message } => self.stop_refused(victim, why, code, &message),
            OrderEnd::Unanswered { problem } if why == Stop::Preempted => {
                self.stop_unanswered(victim, &problem);
            }
            OrderEnd::CalledOff => {
                self.orders.extend(self.take_back(victim));
                self.runs_on(victim);
            }
            OrderEnd::Done | OrderEnd::Gone | OrderEnd::Unanswered { .. } => {}
        }
    }

    /// A pod that an earlier leader marked and that is not to be stopped after all is marked no more.
    pub(super) fn take_back(&self, victim: &PodKey) -> Option<Order> {
        let pod = self.world.pods().pod(&victim.namespace, &victim.name)?;
        let is_marked = *pod.meta.uid == *victim.uid && pod.preemption.is_target;
        let is_wanted = self.is_to_stop(victim);
        let stays = is_marked && !is_wanted && !pod.meta.is_deleting();
        stays.then(|| Order::TakeBack { pod: victim.clone() })
    }

    /// Nobody counts on a pod to leave any more that is not stopped after all, such as when the job that it was to be
    /// stopped for has started elsewhere.
    fn runs_on(&mut self, victim: &PodKey) {
        if !self.is_to_stop(victim)
            && let Some(id) = self.world.pods().id_of(victim)
        {
            let events = self.world.preemption().not_stopped(&[id]);
            self.tell(events);
        }
    }

    fn is_to_stop(&self, pod: &PodKey) -> bool {
        !self.jobs_waiting_for(pod).is_empty() || self.stops.are_open_for(pod)
    }

    /// The jobs for which a pod is to be stopped.
    pub(super) fn jobs_waiting_for(&self, victim: &PodKey) -> Vec<JobId> {
        let Some(id) = self.world.pods().id_of(victim) else { return Vec::new() };
        let rooms = self.rooms.iter().filter(|(_, room)| room.victims.contains(&id));
        rooms.map(|(job, _)| *job).collect()
    }

    /// Those of these pods that are there, have a node or are about to, and are not stopping yet.
    pub(super) fn victims_to_stop(&self, victims: &[PodId]) -> Vec<PodKey> {
        let has_node = |id: &PodId, pod: &Pod| {
            !pod.node.is_empty() || self.world.pods().assumed_on(*id).is_some()
        };
        let pods = victims.iter().filter_map(|id| {
            let pod = self.world.pods().pod_of(*id)?;
            has_node(id, pod).then_some(pod)
        });
        let pods = pods.filter(|pod| !pod.meta.is_deleting() && !pod.is_over());
        pods.map(PodKey::of).collect()
    }

    /// Where a pod is, or is about to be.
    pub(super) fn node_of(&self, key: &PodKey) -> String {
        let pod = self.world.pods().pod(&key.namespace, &key.name);
        let node = pod.map(|pod| pod.node.to_string()).filter(|node| !node.is_empty());
        let decided =
            || Some(self.world.pods().assumed_on(self.world.pods().id_of(key)?)?.to_string());
        node.or_else(decided).unwrap_or_default()
    }
}

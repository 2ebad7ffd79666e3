//! Evictions of pods for others, until it is known what became of each.
//!
//! All evictions for one job are one decision. It is called off as a whole when one of them fails,
//! or when the job needs the room no more, so that no pod is evicted without effect. An eviction is
//! reported once the server has taken the delete.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_cluster::world::{PodKey, World};
use dovetail_model::{JobId, Owner, PodId, PreemptReason};
use dovetail_objects::Pod;
use dovetail_translate::gang::GangName;

use super::known::Known;
use super::news::{Evicted, News};
use super::preempting::Preempting;
use super::receipts::{ReceiptObjects, VictimUse};
use crate::order::{EvictionCause, EvictionDecision, OrderEnd, PodOrder};

/// Decisions to evict pods that are not settled yet, by number.
#[derive(Debug, Default)]
pub(super) struct Evictions {
    made: u64,
    open: BTreeMap<u64, OpenDecision>,
    /// Decisions that were called off, until that is passed on.
    called_off: Vec<u64>,
    /// Pods that were evicted and that the watch still shows.
    done: BTreeSet<PodKey>,
    /// Pods that the server does not let go, which their condition says already: the watch may show
    /// later that they were marked before.
    refused: BTreeSet<PodKey>,
    /// It was reported that no object remembers the preemption of some pods.
    has_no_receipt: bool,
}

#[derive(Debug)]
struct OpenDecision {
    /// The first pod of the job that they are for.
    preemptor: Option<PodKey>,
    /// Those whose end is not known, each with its node and what it costs.
    open: BTreeMap<PodKey, (String, VictimUse)>,
    counted: ReceiptObjects,
    evicted: u64,
    /// Those of them beyond what budgets allow, if all are evicted.
    budget_violations: u64,
    is_called_off: bool,
    /// The gangs of its pods, also once these are gone.
    gangs: BTreeSet<GangName>,
    reason: PreemptReason,
    /// GPU-time that was lost with them, if all are evicted.
    lost_gpu_milli_ms: u64,
}

impl Evictions {
    fn begin(&mut self, stopping: OpenDecision, named_first: Vec<PodKey>) -> EvictionDecision {
        self.made += 1;
        let pods = stopping.open.keys().cloned().collect();
        self.open.insert(self.made, stopping);
        EvictionDecision::new(self.made, pods, named_first)
    }

    /// Decisions that were called off since the last call.
    pub(super) fn take_called_off(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.called_off)
    }

    /// Whether a pod is to be evicted by a decision that holds, and it is not known yet what became
    /// of that.
    fn are_open_for(&self, pod: &PodKey) -> bool {
        let hold = self.open.values().filter(|stopping| !stopping.is_called_off);
        hold.map(|stopping| &stopping.open).any(|open| open.contains_key(pod))
    }

    /// Whether it is not known yet what becomes of an order to evict a pod.
    fn has_order(&self, pod: &PodKey) -> bool {
        self.open.values().any(|stopping| stopping.open.contains_key(pod))
    }

    /// Pods of which it is not known yet what becomes of an order to evict them.
    fn ordered(&self) -> impl Iterator<Item = &PodKey> {
        self.open.values().flat_map(|stopping| stopping.open.keys())
    }

    /// How many these are.
    pub(super) fn under_way(&self) -> usize {
        self.open.values().map(|stopping| stopping.open.len()).sum()
    }

    /// Whether a pod is evicted, or says already that it is not.
    fn is_settled(&self, pod: &PodKey) -> bool {
        self.done.contains(pod) || self.refused.contains(pod)
    }

    /// For whom a decision is of which not all has ended, the gangs of its pods, and whether it was
    /// called off.
    fn made_for(&self, number: u64) -> Option<(Option<PodKey>, BTreeSet<GangName>, bool)> {
        let stopping = self.open.get(&number)?;
        Some((stopping.preemptor.clone(), stopping.gangs.clone(), stopping.is_called_off))
    }

    /// Reports what there is to report when an eviction of a decision has ended.
    fn ended(&mut self, known: &mut Known, number: u64, victim: &PodKey, is_evicted: bool) {
        let Some(stopping) = self.open.get_mut(&number) else { return };
        let Some((node, used)) = stopping.open.remove(victim) else { return };
        if is_evicted {
            self.done.insert(victim.clone());
            stopping.evicted += 1;
            let is_remembered = stopping.counted.evicted(known, &used);
            if !is_remembered && !std::mem::replace(&mut self.has_no_receipt, true) {
                known.news.push(News::NoReceipt { pod: victim.clone() });
            }
            let (victim, preemptor) = (victim.clone(), stopping.preemptor.clone());
            let reason = stopping.reason;
            known.news.push(News::Evicted(Box::new(Evicted { victim, node, preemptor, reason })));
        }
        if stopping.open.is_empty() {
            let OpenDecision { evicted, budget_violations, reason, lost_gpu_milli_ms, .. } =
                *stopping;
            self.open.remove(&number);
            // Of a decision that was carried out in part at most so many were beyond.
            let budget_violations = budget_violations.min(evicted);
            let preempted =
                News::Preempted { evicted, budget_violations, reason, lost_gpu_milli_ms };
            known.news.extend((evicted > 0).then_some(preempted));
        }
    }
}

impl Preempting {
    /// Orders the evictions that a job needs for its room.
    pub(super) fn order_evictions(&mut self, known: &mut Known, job: JobId) {
        let Some(room) = self.rooms.get(&job).filter(|room| room.evictions.is_none()) else {
            return;
        };
        let (budget_violations, named) = (room.budget_violations, room.nominated.clone());
        let (reason, lost_gpu_milli_ms) = (room.reason, room.lost_gpu_milli_ms);
        let gangs = room.gangs.clone();
        let mut victims: Vec<PodKey> = victims_to_evict(&known.world, &room.victims);
        if victims.is_empty() {
            return;
        }
        let jobs = match reason {
            PreemptReason::Priority => BTreeMap::new(),
            PreemptReason::Order | PreemptReason::Reclaim => {
                known.world.preemption().suspension().in_place_of(&victims)
            }
        };
        if !jobs.is_empty() {
            victims.sort();
        }
        let preemptor = known.world.pods().pods_of(job).next().map(PodKey::of);
        let stopping = OpenDecision {
            preemptor,
            open: open(known, &victims),
            counted: ReceiptObjects::default(),
            evicted: 0,
            budget_violations,
            is_called_off: false,
            gangs,
            reason,
            lost_gpu_milli_ms,
        };
        let decision = self.evictions.begin(stopping, named).suspending(jobs);
        let why = EvictionCause::Preempted(reason);
        let stop = |pod| PodOrder::Evict { pod, why, decision: decision.clone() };
        known.orders.extend(victims.into_iter().map(stop));
        if let Some(room) = self.rooms.get_mut(&job) {
            room.evictions = Some(decision);
        }
    }

    /// Pods that replaced lost ones are pods of their gang again, where nothing is under way with
    /// any of it.
    pub(super) fn rejoin_gangs(&self, known: &mut Known) {
        let rooms = &self.rooms;
        let (world, engine) = known.both_mut();
        let is_victim = |pod: PodId| rooms.values().any(|room| room.victims.contains(&pod));
        let claims = rooms.keys().filter_map(|job| engine?.list().claim_of(*job));
        let awaited = claims.flat_map(|claim| &claim.awaited).filter_map(|owner| match owner {
            Owner::Pod(pod) => Some(*pod),
            Owner::Foreign(_) | Owner::Reservation => None,
        });
        let ordered = self.evictions.ordered().filter_map(|pod| world.pods().id_of(pod));
        let awaited: BTreeSet<PodId> = awaited.chain(ordered).collect();
        let is_busy = |pod| is_victim(pod) || awaited.contains(&pod);
        let events = world.rejoin(is_busy);
        known.apply(events);
    }

    /// Evictions for a job that have not begun do not begin.
    pub(super) fn call_off_evictions(&mut self, known: &mut Known, job: JobId) {
        let Some(room) = self.rooms.get_mut(&job) else { return };
        if let Some(decision) = room.evictions.take() {
            self.call_off(known, &decision);
        }
    }

    /// A job is gone, or has started: no pod is evicted for it.
    pub(super) fn forget_preemption(&mut self, known: &mut Known, job: JobId) -> Vec<PodId> {
        let Some(room) = self.rooms.remove(&job) else { return Vec::new() };
        if let Some(decision) = room.evictions {
            self.call_off(known, &decision);
        }
        // Of those of which the end of the eviction is known, some were not evicted.
        for pod in victims_to_evict(&known.world, &room.victims) {
            if !self.evictions.has_order(&pod) && !self.evictions.done.contains(&pod) {
                self.runs_on(known, &pod);
            }
        }
        room.victims
    }

    /// A job has started: no pod is evicted for it. What is left of gangs that lost pods by that
    /// and cannot go on is evicted.
    pub(super) fn preemptor_runs(&mut self, known: &mut Known, job: JobId) {
        let Some(room) = self.rooms.get(&job) else { return };
        let (gangs, has_begun) = (room.gangs.clone(), room.has_begun);
        let victims = self.forget_preemption(known, job);
        let left = known.world.preemption().left_of_preempted(&victims, &gangs, has_begun);
        let preemptor = known.world.pods().pods_of(job).next().map(PodKey::of);
        self.evict_what_is_left(known, preemptor, &left);
    }

    /// A pod is evicted: what is left of its gang and cannot go on goes, too. Others of the gang
    /// may be of a decision that was called off.
    fn finish_gang(
        &mut self,
        known: &mut Known,
        preemptor: Option<PodKey>,
        victim: &PodKey,
        gangs: &BTreeSet<GangName>,
    ) {
        let gone = known.world.pods().id_of(victim);
        let mut left = known.world.preemption().left_without(gangs, gone);
        left.retain(|pod| {
            let pod = known.world.pods().pod_of(*pod).map(PodKey::of);
            pod.is_some_and(|pod| !self.evictions.is_settled(&pod))
        });
        self.evict_what_is_left(known, preemptor, &left);
    }

    /// Evicts pods of gangs of which others have been evicted, whatever becomes of the preemptor.
    pub(super) fn evict_what_is_left(
        &mut self,
        known: &mut Known,
        preemptor: Option<PodKey>,
        left: &[PodId],
    ) {
        let mut victims = victims_to_evict(&known.world, left);
        victims.retain(|pod| !self.evictions.are_open_for(pod));
        if victims.is_empty() || self.is_dry_run {
            return;
        }
        let open = open(known, &victims);
        // What is left of a gang cannot go on: no budget helps it.
        let reason = PreemptReason::Priority;
        let (budget_violations, is_called_off, lost_gpu_milli_ms) = (0, false, 0);
        let gangs = known.world.preemption().gangs(left);
        let stopping = OpenDecision {
            preemptor,
            open,
            counted: ReceiptObjects::rest(),
            evicted: 0,
            budget_violations,
            is_called_off,
            gangs: gangs.clone(),
            reason,
            lost_gpu_milli_ms,
        };
        let decision = self.evictions.begin(stopping, Vec::new());
        let of_same = self.rooms.values_mut().filter(|room| !room.gangs.is_disjoint(&gangs));
        of_same.for_each(|room| room.has_begun = true);
        let why = EvictionCause::Preempted(reason);
        let stop = |pod| PodOrder::Evict { pod, why, decision: decision.clone() };
        known.orders.extend(victims.into_iter().map(stop));
        let events = known.world.preemption().to_be_released(left);
        known.apply(events);
    }

    /// Pods that were marked late, by an earlier leader whose write was long on its way, and that
    /// are not evicted are marked no more.
    pub(super) fn take_back_late_marks(&mut self, known: &mut Known) {
        let marked = known.world.notices().newly_marked();
        if marked.is_empty() || self.is_dry_run || known.engine().is_none() {
            return;
        }
        self.evictions.done.retain(|pod| known.world.pods().has(pod));
        self.evictions.refused.retain(|pod| known.world.pods().has(pod));
        let late = marked.into_iter().filter(|pod| !self.evictions.is_settled(pod));
        let orders: Vec<PodOrder> =
            late.filter_map(|pod| self.take_back(&known.world, &pod)).collect();
        known.orders.extend(orders);
    }

    /// Pods that an earlier leader marked and that are not evicted are marked no more.
    pub(super) fn take_back_marks(&mut self, known: &mut Known) {
        let marked = known.world.preemption().marked_by_us();
        let taken_back: Vec<PodOrder> =
            marked.filter_map(|pod| self.take_back(&known.world, &pod)).collect();
        known.orders.extend(taken_back);
    }

    pub(super) fn call_off(&mut self, known: &mut Known, decision: &EvictionDecision) {
        self.evictions.called_off.push(decision.number());
        if let Some(stopping) = self.evictions.open.get_mut(&decision.number()) {
            stopping.is_called_off = true;
        }
        let mut ended = Vec::new();
        known.orders.retain(|order| match order {
            PodOrder::Evict { pod, decision: of, why } if of == decision => {
                ended.push((pod.clone(), *why));
                false
            }
            _ => true,
        });
        for (pod, why) in ended {
            self.eviction_ended(known, &pod, why, decision, OrderEnd::CalledOff);
        }
    }

    /// Takes what became of an eviction.
    pub(super) fn eviction_ended(
        &mut self,
        known: &mut Known,
        victim: &PodKey,
        why: EvictionCause,
        decision: &EvictionDecision,
        end: OrderEnd,
    ) {
        let made_for = self.evictions.made_for(decision.number());
        if why.is_for_another() {
            let is_evicted = end == OrderEnd::Done;
            self.evictions.ended(known, decision.number(), victim, is_evicted);
            if is_evicted {
                known.news.extend(suspended(decision, victim, why));
                self.exemptions.has_right(known, &victim.namespace);
                for job in self.jobs_waiting_for(&known.world, victim) {
                    self.exemptions.forget_job(job);
                }
            }
        }
        if why == EvictionCause::GangGivenUp && end == OrderEnd::Done {
            let gang = known
                .world
                .pods()
                .gang_of(&victim.namespace, &victim.name)
                .map(ToString::to_string);
            let given_up = gang.map(|gang| News::GangGivenUp { pod: victim.clone(), gang });
            known.news.extend(given_up);
        }
        if let Some((preemptor, gangs, is_called_off)) = made_for
            && (end == OrderEnd::Done || end == OrderEnd::Gone && is_called_off)
        {
            self.finish_gang(known, preemptor, victim, &gangs);
        }
        match end {
            OrderEnd::Refused { code, message } => {
                self.evictions.refused.insert(victim.clone());
                self.eviction_failed(known, victim, why, (Some(code), &message));
            }
            OrderEnd::Unanswered { problem } if why.is_for_another() => {
                self.eviction_failed(known, victim, why, (None, &problem));
            }
            OrderEnd::CalledOff => known.orders.extend(self.take_back(&known.world, victim)),
            // The watch shows that it ends.
            OrderEnd::Done => return,
            // Of a pod that is gone the watch shows it; one that others only wrote to is there.
            OrderEnd::Gone | OrderEnd::Unanswered { .. } => {}
        }
        self.runs_on(known, victim);
    }

    /// A pod that an earlier leader marked and that is not to be evicted after all is marked no
    /// more.
    pub(super) fn take_back(&self, world: &World, victim: &PodKey) -> Option<PodOrder> {
        let pod = world.pods().pod(&victim.namespace, &victim.name)?;
        let is_marked = *pod.meta.uid == *victim.uid && pod.preemption.is_target;
        let is_wanted = self.is_to_be_evicted(world, victim);
        let stays = is_marked && !is_wanted && !pod.meta.is_deleting();
        stays.then(|| PodOrder::Unmark { pod: victim.clone() })
    }

    /// A pod that is not evicted after all, such as when its preemptor has started elsewhere,
    /// counts as held again.
    fn runs_on(&self, known: &mut Known, victim: &PodKey) {
        if !self.is_to_be_evicted(&known.world, victim)
            && let Some(id) = known.world.pods().id_of(victim)
        {
            let events = known.world.preemption().still_held(&[id]);
            known.apply(events);
        }
    }

    /// Whether a pod is to be evicted, whatever the objects say of it yet.
    pub(super) fn is_to_be_evicted(&self, world: &World, pod: &PodKey) -> bool {
        !self.jobs_waiting_for(world, pod).is_empty() || self.evictions.are_open_for(pod)
    }

    /// Whether a pod is to be evicted, or is, and the objects may not say so yet. Until it is known
    /// what became of an eviction that was called off, it may be either.
    pub(super) fn leaves(&self, world: &World, pod: &PodKey) -> bool {
        let is_in_doubt = self.evictions.has_order(pod) || self.evictions.done.contains(pod);
        is_in_doubt || !self.jobs_waiting_for(world, pod).is_empty()
    }

    /// The jobs for which a pod is to be evicted.
    pub(super) fn jobs_waiting_for(&self, world: &World, victim: &PodKey) -> Vec<JobId> {
        let Some(id) = world.pods().id_of(victim) else { return Vec::new() };
        let rooms = self.rooms.iter().filter(|(_, room)| room.victims.contains(&id));
        rooms.map(|(job, _)| *job).collect()
    }
}

/// That a Job is suspended, told with the first of its pods.
fn suspended(decision: &EvictionDecision, victim: &PodKey, why: EvictionCause) -> Option<News> {
    let EvictionCause::Preempted(reason) = why else { return None };
    let (job, is_first) = decision.suspends(victim)?;
    let job = Box::new(job.clone());
    is_first.then_some(News::JobTurned { job, suspended_for: Some(reason) })
}

/// Pods that are to be evicted, each with its node and what it costs.
fn open(known: &Known, victims: &[PodKey]) -> BTreeMap<PodKey, (String, VictimUse)> {
    let of = |pod: &PodKey| (node_of(&known.world, pod), VictimUse::of(known, pod));
    victims.iter().map(|pod| (pod.clone(), of(pod))).collect()
}

/// Those of these pods that are there, have a node or are about to, and are not terminating yet.
pub(super) fn victims_to_evict(world: &World, victims: &[PodId]) -> Vec<PodKey> {
    let has_node =
        |id: &PodId, pod: &Pod| !pod.node.is_empty() || world.pods().assumed_on(*id).is_some();
    let pods = victims.iter().filter_map(|id| {
        let pod = world.pods().pod_of(*id)?;
        has_node(id, pod).then_some(pod)
    });
    let pods = pods.filter(|pod| !pod.meta.is_deleting() && !pod.is_over());
    pods.map(PodKey::of).collect()
}

/// Where a pod is, or is about to be.
pub(super) fn node_of(world: &World, key: &PodKey) -> String {
    let pod = world.pods().pod(&key.namespace, &key.name);
    let node = pod.map(|pod| pod.node.to_string()).filter(|node| !node.is_empty());
    let decided = || Some(world.pods().assumed_on(world.pods().id_of(key)?)?.to_string());
    node.or_else(decided).unwrap_or_default()
}

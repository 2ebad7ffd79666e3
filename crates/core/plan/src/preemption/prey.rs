//! Whom a job may stop, found by node and by queue.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use dovetail_model::{
    Charge, HoldingId, HoldingPhase, JobId, NodeId, Owner, PodId, PreemptionCost,
};
use rustc_hash::FxHashMap;

use super::cost::{BudgetTally, Weighs};
use super::guarantees::{Lendable, Takes};
use super::relation::Relation;
use super::shortage::Shortage;
use super::units::Unit;
use crate::engine::JobRecord;
use crate::engine::charge::charge_there;
use dovetail_state::State;

/// Whom a job may stop.
#[derive(Clone)]
pub(super) struct Prey<'e> {
    pub(super) jobs: &'e FxHashMap<JobId, JobRecord>,
    pub(super) relation: Relation<'e>,
    /// Jobs that run and may be stopped, by priority.
    pub(super) running: &'e BTreeSet<(i32, JobId)>,
    /// What its queues must get back.
    pub(super) shortage: &'e Shortage,
    /// What other queues may lose.
    pub(super) lendable: &'e Lendable,
}

/// What it costs if a job goes that goes as a whole or not at all.
#[derive(Clone, Debug)]
pub(super) struct Toll {
    pub(super) priority: i32,
    work_lost_gpu_milli_ms: u64,
    requeue_gpu_milli_ms: u64,
    start_ms: u64,
    /// What its going takes of what queues may lose.
    pub(super) takes: Takes,
}

impl Toll {
    /// GPU-time that is lost, and that it is expected to wait.
    pub(super) fn lost_in_all(&self) -> u64 {
        self.work_lost_gpu_milli_ms.saturating_add(self.requeue_gpu_milli_ms)
    }

    /// The cost of the job alone, where work weighs most and it is in no budget.
    pub(super) fn cost(&self, now_ms: u64) -> PreemptionCost {
        PreemptionCost {
            highest_priority: i64::from(self.priority),
            work_lost_gpu_milli_ms: self.work_lost_gpu_milli_ms,
            requeue_gpu_milli_ms: self.requeue_gpu_milli_ms,
            longest_run_ms: now_ms.saturating_sub(self.start_ms),
            ..PreemptionCost::default()
        }
    }
}

impl Prey<'_> {
    /// What a job costs; `None` in `None` if it cannot be stopped, `None` where it may go in part,
    /// has pods of several kinds, or has gone in this search but for what is ending.
    pub(super) fn toll(&self, state: &State, job: JobId) -> Option<Option<Toll>> {
        let Some(record) = self.may_stop(job) else { return Some(None) };
        let [set] = record.job.pod_sets.as_slice() else { return None };
        if record.holdings.len() > set.min as usize {
            return None;
        }
        let is_held = |id: &&HoldingId| {
            let is_there = state.holdings.contains(**id);
            let owner = is_there.then(|| &state.holdings.get(**id).owner);
            matches!(owner, Some(Owner::Pod(pod)) if pod.job == job) && !ends(state, **id)
        };
        let pods = record.holdings.iter().filter(is_held).count();
        if pods == 0 {
            return None;
        }
        let shape = state.shapes.get(record.gang.sets[0].shape);
        let gpu_milli = shape.gpu_milli.unsigned_abs() * pods as u64;
        let [work_lost_gpu_milli_ms, requeue_gpu_milli_ms] = self.gpu_time(record, gpu_milli, true);
        let Relation { quota, now_ms, .. } = self.relation;
        let charges = std::iter::repeat_n(&shape.charge, pods);
        Some(Some(Toll {
            priority: record.job.priority,
            work_lost_gpu_milli_ms,
            requeue_gpu_milli_ms,
            start_ms: record.job.start_ms.unwrap_or(now_ms),
            takes: self.lendable.taken_by(quota, &record.job, charges),
        }))
    }

    /// GPU-time that is lost with so many GPUs of a job, and that it is expected to wait until it
    /// starts again: a job that only shrinks goes on running.
    fn gpu_time(&self, record: &JobRecord, gpu_milli: u64, is_rest: bool) -> [u64; 2] {
        let (job, Relation { now_ms, turns, .. }) = (&record.job, &self.relation);
        let restart_ms = if turns.is_some() { job.interruption.restart_weighs_ms() } else { 0 };
        let lost_ms = job.preempted_at(*now_ms).unsaved_ms.saturating_add(restart_ms);
        let requeue_ms = turns.filter(|_| is_rest).map_or(0, |turns| turns.requeue_ms(job));
        [gpu_milli.saturating_mul(lost_ms), gpu_milli.saturating_mul(requeue_ms)]
    }

    pub(super) fn may_stop(&self, job: JobId) -> Option<&JobRecord> {
        let record = self.jobs.get(&job)?;
        self.relation.reason(record).map(|_| record)
    }

    /// Nodes on which a job holds something.
    pub(super) fn nodes_of(&self, state: &State, job: JobId) -> Vec<NodeId> {
        let record = self.jobs.get(&job);
        let held = record.map(|record| held(state, record)).unwrap_or_default();
        held.into_iter().map(|(_, id)| state.holdings.get(id).node).collect()
    }

    /// What can be stopped that holds something on a node, in the order of jobs and pods.
    pub(super) fn on_node(&self, state: &State, tally: &BudgetTally, node: NodeId) -> Vec<Unit> {
        let mut here: BTreeMap<JobId, Vec<PodId>> = BTreeMap::new();
        for id in &state.nodes.cold(node).holdings {
            let Owner::Pod(pod) = &state.holdings.get(*id).owner else { continue };
            here.entry(pod.job).or_default().push(*pod);
        }
        let mut units = Vec::new();
        for (job, mut pods) in here {
            let Some(record) = self.may_stop(job) else { continue };
            pods.sort_unstable();
            self.of_job(state, tally, record, &pods, &mut units);
        }
        units
    }

    /// Everything that can be stopped on some nodes, each job as a whole.
    pub(super) fn on_nodes(
        &self,
        state: &State,
        tally: &BudgetTally,
        nodes: &[NodeId],
    ) -> Vec<Unit> {
        let mut jobs: BTreeSet<JobId> = BTreeSet::new();
        for node in nodes {
            for id in &state.nodes.cold(*node).holdings {
                if let Owner::Pod(pod) = &state.holdings.get(*id).owner {
                    jobs.insert(pod.job);
                }
            }
        }
        let records = jobs.iter().filter_map(|job| self.may_stop(*job));
        records
            .filter_map(|record| self.unit(state, tally, record, held(state, record), true))
            .collect()
    }

    /// Everything that can be stopped and gives back some of the shortage, in the order of jobs and
    /// pods.
    pub(super) fn that_repay(&self, state: &State, tally: &BudgetTally) -> Vec<Unit> {
        let repays =
            |record: &&JobRecord| self.shortage.is_of(self.relation.quota, &record.job.queue);
        self.stoppable().filter(repays).flat_map(|job| self.anywhere(state, tally, job)).collect()
    }

    /// Everything that can be stopped, job by job.
    pub(super) fn that_may_stop(
        &self,
        state: &State,
        tally: &BudgetTally,
    ) -> impl Iterator<Item = Vec<Unit>> {
        self.stoppable().map(|job| self.anywhere(state, tally, job))
    }

    /// Running jobs that can be stopped.
    fn stoppable(&self) -> impl Iterator<Item = &JobRecord> {
        let Relation { preemptor, turns, .. } = &self.relation;
        let highest = match (preemptor.reclaims, turns) {
            (0, None) => (preemptor.priority, JobId(0)),
            (0, Some(_)) => (preemptor.priority, JobId(u64::MAX)),
            _ => (i32::MAX, JobId(u64::MAX)),
        };
        let below = self.running.range(..highest);
        below.filter_map(|(_, job)| self.may_stop(*job))
    }

    /// The units of one job, wherever its pods are.
    fn anywhere(&self, state: &State, tally: &BudgetTally, record: &JobRecord) -> Vec<Unit> {
        let pods: Vec<PodId> = held(state, record).into_iter().map(|(pod, _)| pod).collect();
        let mut units = Vec::new();
        self.of_job(state, tally, record, &pods, &mut units);
        units
    }

    /// The units of one job of which `here` are the pods on the node in question.
    fn of_job(
        &self,
        state: &State,
        tally: &BudgetTally,
        record: &JobRecord,
        here: &[PodId],
        units: &mut Vec<Unit>,
    ) {
        let mut rest = held(state, record);
        let mut spare = Vec::new();
        for (index, set) in record.job.pod_sets.iter().enumerate() {
            let of_set = rest.iter().filter(|(pod, _)| usize::from(pod.pod_set) == index);
            if of_set.count() <= set.min as usize {
                continue;
            }
            // Who is ending keeps nobody's gang together.
            let stay: BTreeSet<PodId> = rest
                .iter()
                .filter(|(pod, id)| usize::from(pod.pod_set) == index && !ends(state, *id))
                .map(|(pod, _)| *pod)
                .collect();
            let beyond = stay.len().saturating_sub(set.min as usize);
            let mut can_go: Vec<PodId> =
                here.iter().copied().filter(|pod| stay.contains(pod)).collect();
            can_go.sort_by_key(|pod| (self.is_frozen(state, tally, &rest, *pod), Reverse(*pod)));
            spare.extend(can_go.into_iter().take(beyond));
        }
        for pod in spare {
            let Some(at) = rest.iter().position(|(held, _)| *held == pod) else { continue };
            let one = vec![rest.remove(at)];
            units.extend(self.unit(state, tally, record, one, false));
        }
        units.extend(self.unit(state, tally, record, rest, true));
    }

    /// Whether a pod can never be stopped without exceeding a budget.
    fn is_frozen(
        &self,
        state: &State,
        tally: &BudgetTally,
        held: &[(PodId, HoldingId)],
        pod: PodId,
    ) -> bool {
        let holding = held.iter().find(|(other, _)| *other == pod);
        let counts = holding.map(|(_, id)| &state.holdings.get(*id).counts_into);
        counts.into_iter().flatten().any(|selector| tally.is_exhausted(*selector))
    }

    /// The pods as a unit, without those that are ending anyway, however late they are; `None` if
    /// no others are left.
    fn unit(
        &self,
        state: &State,
        tally: &BudgetTally,
        record: &JobRecord,
        mut held: Vec<(PodId, HoldingId)>,
        is_rest: bool,
    ) -> Option<Unit> {
        held.retain(|(_, id)| !ends(state, *id));
        if held.is_empty() {
            return None;
        }
        let job = &record.job;
        let Relation { quota, now_ms, .. } = self.relation;
        let is_by_age = tally.weighs() == Weighs::Age;
        let start_ms = job.start_ms.unwrap_or(now_ms);
        let shapes = held
            .iter()
            .map(|(pod, _)| state.shapes.get(record.gang.sets[usize::from(pod.pod_set)].shape));
        let gpu_milli: i64 = shapes.clone().map(|shape| shape.gpu_milli).sum();
        let [work_lost_gpu_milli_ms, requeue_gpu_milli_ms] =
            self.gpu_time(record, gpu_milli.unsigned_abs(), is_rest);
        let charges = shapes.map(|shape| &shape.charge);
        // A pod that may have several models gives back what it counts of the one it has.
        let there = |(pod, id): &(PodId, HoldingId)| {
            let shape = record.gang.sets[usize::from(pod.pod_set)].shape;
            charge_there(state, shape, state.holdings.get(*id).node)
        };
        let by_model: Vec<Charge> = match self.shortage.names_models() {
            true => held.iter().map(there).collect(),
            false => Vec::new(),
        };
        let budgets = held.iter().flat_map(|(_, id)| &state.holdings.get(*id).counts_into);
        Some(Unit {
            job: job.id,
            is_rest,
            priority: job.priority,
            since_ms: if is_by_age { job.submit_ms } else { start_ms },
            gpu_milli: gpu_milli.unsigned_abs(),
            work_lost_gpu_milli_ms,
            requeue_gpu_milli_ms,
            repays: self.shortage.repaid_by(quota, &job.queue, charges.clone().chain(&by_model)),
            takes: self.lendable.taken_by(quota, job, charges),
            keeps_budgets: !self.relation.outranks(record),
            given: self.relation.given(record, gpu_milli.unsigned_abs()),
            budgets: budgets.copied().filter(|selector| tally.counts(*selector)).collect(),
            pods: held.iter().map(|(pod, _)| *pod).collect(),
            holdings: held.iter().map(|(_, id)| *id).collect(),
        })
    }
}

/// Whether something held is ending anyway.
pub(super) fn ends(state: &State, id: HoldingId) -> bool {
    matches!(state.holdings.get(id).phase, HoldingPhase::Releasing { .. })
}

/// What a job holds at this moment, by pod. Inside a transaction that is less than its record says.
fn held(state: &State, record: &JobRecord) -> Vec<(PodId, HoldingId)> {
    let of_this = |id: &HoldingId| {
        let known = state.holdings.contains(*id).then(|| &state.holdings.get(*id).owner);
        match known {
            Some(Owner::Pod(pod)) if pod.job == record.job.id => Some((*pod, *id)),
            _ => None,
        }
    };
    let mut held: Vec<_> = record.holdings.iter().filter_map(of_this).collect();
    held.sort_unstable();
    held
}

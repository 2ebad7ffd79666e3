//! Whether a job is worth what those give that make place for it, by the order and by the quota of
//! its queue.

use dovetail_model::{Charge, HoldingId, JobId, NodeId};
use dovetail_order::book::TurnBook;
use dovetail_order::rates::Given;
use rustc_hash::FxHashMap;

use super::covering;
use super::guarantees::exceeds_instead;
use super::relation::Relation;
use super::units::{Unit, together};
use crate::engine::JobRecord;
use crate::gang::{Gang, GangSet};
use dovetail_state::State;
use dovetail_state::shapes::ShapeId;

/// What a job is worth.
pub(super) struct Worth<'s> {
    pub(super) relation: &'s Relation<'s>,
    pub(super) jobs: &'s FxHashMap<JobId, JobRecord>,
    /// At its smallest size.
    pub(super) gang: &'s Gang,
    pub(super) state: &'s State,
}

impl Worth<'_> {
    /// Whether the gang is worth what these give for it.
    pub(super) fn is_worth(&self, units: &[Unit]) -> bool {
        let given = units.iter().map(|unit| unit.given).fold(None, together);
        self.relation.is_worth(self.gang_milli(), given) && self.keeps_own_quota(units)
    }

    /// Whether the job does not hold beyond the quota of its queue what these hold within it.
    fn keeps_own_quota(&self, units: &[Unit]) -> bool {
        let Relation { turns, quota, queue, .. } = self.relation;
        if !turns.is_some_and(TurnBook::reclaims) {
            return true;
        }
        let mut gone: Option<Charge> = None;
        for unit in units {
            let record = self.jobs.get(&unit.job).filter(|record| record.job.queue == *queue);
            let Some(record) = record else { continue };
            let gone = gone.get_or_insert_default();
            for pod in &unit.pods {
                let set = record.gang.sets.get(usize::from(pod.pod_set));
                let charge = set.map(|set| &self.state.shapes.get(set.shape).charge);
                charge.into_iter().for_each(|charge| gone.add_times(charge, 1));
            }
        }
        gone.is_none_or(|gone| {
            !exceeds_instead(quota, queue, &self.gang.smallest(self.state), &gone)
        })
    }

    /// Whether one more pod on a node is worth what these give for it.
    pub(super) fn is_worth_on<'u>(
        &self,
        (shape, node): (ShapeId, NodeId),
        units: impl Iterator<Item = &'u Unit>,
    ) -> bool {
        let given = units.map(|unit| self.given_on(node, unit)).fold(None, together);
        self.relation.is_worth(self.pod_milli(shape), given)
    }

    /// Whether one more pod on a node might be worth what is given for it: as little as those give
    /// who leave the devices that it lacks, if they could go in part, against all GPUs of those who
    /// may go. Never wrong when it says no.
    pub(super) fn might_be_worth_on(
        &self,
        (shape, node): (ShapeId, NodeId),
        units: &[Unit],
    ) -> bool {
        let given = units.iter().map(|unit| self.given_on(node, unit));
        let Some(given) = given.collect::<Option<Vec<Given>>>() else { return true };
        let rates = given.iter().map(|given| given.rate);
        let least = Given {
            rate: covering::least(self.state, (shape, node), units.iter().zip(rates)),
            gpu_milli: given.iter().map(|given| given.gpu_milli).sum(),
        };
        self.relation.is_worth(self.pod_milli(shape), Some(least))
    }

    /// The GPUs that the gang asks for, in thousandths.
    fn gang_milli(&self) -> u64 {
        let of_pod = |set: &GangSet| self.state.shapes.get(set.shape).gpu_milli.unsigned_abs();
        self.gang.sets.iter().map(|set| of_pod(set) * u64::from(set.min)).sum()
    }

    /// The GPUs that are asked for with one more pod: by a gang of several pods with each by
    /// itself, as the whole is looked at in the end.
    fn pod_milli(&self, shape: ShapeId) -> u64 {
        match self.gang.min_pods() {
            0 | 1 => self.gang_milli(),
            _ => self.state.shapes.get(shape).gpu_milli.unsigned_abs(),
        }
    }

    /// What a unit gives for one more pod on a node: for a gang of several pods what it has there.
    fn given_on(&self, node: NodeId, unit: &Unit) -> Option<Given> {
        let given = unit.given?;
        if self.gang.min_pods() <= 1 {
            return Some(given);
        }
        let is_here = |id: &&HoldingId| self.state.holdings.get(**id).node == node;
        let there = unit.holdings.iter().filter(is_here).count() as u128;
        let part = |amount: u128| amount * there / unit.holdings.len() as u128;
        let gpu_milli = part(u128::from(given.gpu_milli)) as u64;
        Some(Given { gpu_milli, rate: part(given.rate) })
    }
}

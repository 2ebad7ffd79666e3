//! What room for one more pod costs at least on a node, at a glance: there are many nodes, and few
//! of them are looked at closely.

use dovetail_model::{JobId, NodeId, Owner};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::cost::{BudgetTally, Weighs};
use super::covering;
use super::prey::{Prey, Toll, ends};
use super::survey::Outlook;
use dovetail_order::book::TurnBook;
use dovetail_state::State;
use dovetail_state::shapes::{Demand, ShapeId};

/// What a job has on a node that goes with it.
#[derive(Default)]
struct Part {
    cpu_milli: i64,
    memory_bytes: i64,
    devices: SmallVec<[u16; 8]>,
}

/// What is needed for a glance at a node.
pub(super) struct Glance<'g, 'e> {
    pub(super) state: &'g mut State,
    pub(super) prey: &'g Prey<'e>,
    /// Of jobs with several pods.
    pub(super) tolls: &'g mut FxHashMap<JobId, Option<Toll>>,
}

impl Glance<'_, '_> {
    /// What is known of a node that has no room for a pod, where nobody is in a budget and work
    /// weighs most, of whole jobs alone: what they cost is known without putting units together.
    /// `None` where that is not so.
    pub(super) fn of(
        &mut self,
        (shape, demand): (ShapeId, &Demand),
        node: NodeId,
        tally: &BudgetTally,
    ) -> Option<Outlook> {
        let compares_rates = self.prey.relation.turns.is_some_and(TurnBook::has_open);
        if tally.weighs() != Weighs::Work || tally.has_budgets() || compares_rates {
            return None;
        }
        let mut goes: SmallVec<[(JobId, Toll); 8]> = SmallVec::new();
        let mut stay: SmallVec<[JobId; 8]> = SmallVec::new();
        for at in 0..self.state.nodes.cold(node).holdings.len() {
            let id = self.state.nodes.cold(node).holdings[at];
            let Owner::Pod(pod) = self.state.holdings.get(id).owner else { continue };
            if goes.iter().any(|(job, _)| *job == pod.job) || stay.contains(&pod.job) {
                continue;
            }
            match self.toll_of(pod.job)?.filter(|toll| !tally.breaks_quota(&toll.takes)) {
                Some(toll) => goes.push((pod.job, toll)),
                None => stay.push(pod.job),
            }
        }
        if goes.is_empty() || demand.obstacle_aside_rules(self.state, node).outlasts_everybody() {
            return Some(Outlook::Hopeless);
        }
        let parts: SmallVec<[Part; 8]> =
            goes.iter().map(|(job, _)| self.part_of(*job, node)).collect();
        let hot = self.state.nodes.hot(node);
        let cpu_milli: i64 = parts.iter().map(|part| part.cpu_milli).sum();
        let memory_bytes: i64 = parts.iter().map(|part| part.memory_bytes).sum();
        let enough = |left: i64, asked: i64| asked <= 0 || asked <= left;
        if !enough(hot.cpu_left_milli + cpu_milli, demand.amounts.cpu_milli)
            || !enough(hot.memory_left_bytes + memory_bytes, demand.amounts.memory_bytes)
        {
            return Some(Outlook::Hopeless);
        }
        let now_ms = self.prey.relation.now_ms;
        let least = goes.iter().map(|(_, toll)| toll.cost(now_ms)).min()?;
        let priority = goes.iter().map(|(_, toll)| toll.priority).min()?;
        let amounts = goes.iter().map(|(_, toll)| u128::from(toll.lost_in_all()));
        let offers = amounts.zip(parts.iter().map(|part| part.devices.len()));
        let sum = covering::least_of(self.state, (shape, node), offers);
        let of_devices = covering::cost_of(priority, sum);
        Some(Outlook::AtLeast(least.max(of_devices)))
    }

    /// What a job costs that goes as a whole; `None` in `None` where it may also go in part.
    fn toll_of(&mut self, job: JobId) -> Option<Option<Toll>> {
        if let Some(known) = self.tolls.get(&job) {
            return Some(known.clone());
        }
        let toll = self.prey.toll(self.state, job)?;
        // Others are on one node, and asked about once.
        if self.prey.jobs.get(&job).is_some_and(|record| record.holdings.len() > 1) {
            self.tolls.insert(job, toll.clone());
        }
        Some(toll)
    }

    /// What a job has on a node and does not leave anyway.
    fn part_of(&self, job: JobId, node: NodeId) -> Part {
        let mut part = Part::default();
        for id in &self.state.nodes.cold(node).holdings {
            let record = self.state.holdings.get(*id);
            let is_of_job = matches!(record.owner, Owner::Pod(pod) if pod.job == job);
            if is_of_job && !ends(self.state, *id) {
                part.cpu_milli += record.amounts.cpu_milli;
                part.memory_bytes += record.amounts.memory_bytes;
                part.devices.extend(record.devices.iter().map(|(index, _)| *index));
            }
        }
        part.devices.sort_unstable();
        part.devices.dedup();
        part
    }
}

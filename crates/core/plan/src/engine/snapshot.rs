//! An engine from plain data and back.

use std::sync::Arc;

use dovetail_model::snapshot::Sleeping;
use dovetail_model::{
    Budget, Charge, Holding, HoldingId, Job, JobId, Node, NodeId, NodeName, Owner, PodSet,
    Snapshot, TopologyRequest,
};

use super::apply::Drain;
use super::{Engine, EngineError, JobRecord};
use crate::cause::Help;
use crate::gang::{Gang, GangSet};
use crate::queue::{ClassKey, Sleep};
use crate::state::State;

impl State {
    /// Takes over topology, tables and nodes of a snapshot.
    pub(crate) fn load(&mut self, snapshot: &Snapshot) {
        self.topology = snapshot.topology.clone();
        self.devices.mig_tables = snapshot.mig_tables.clone();
        for node in &snapshot.nodes {
            self.upsert_node(Arc::new(node.clone()));
        }
    }

    /// One holding as plain data.
    pub(crate) fn export(&self, id: dovetail_model::HoldingId) -> Holding {
        let record = self.holdings.get(id);
        Holding {
            id,
            node: self.nodes.cold(record.node).node.name.clone(),
            owner: record.owner.clone(),
            phase: record.phase,
            reservation: record.reservation,
            resources: self.names.resources(&record.amounts),
            devices: record.devices.clone(),
            counts_into: record
                .counts_into
                .iter()
                .map(|selector| self.counters.selector_name(*selector).to_owned())
                .collect(),
            attachments: record
                .attachments
                .iter()
                .map(|number| self.names.attachments.get(*number).clone())
                .collect(),
        }
    }
}

impl Engine {
    /// Takes over queues, jobs and holdings of a snapshot.
    pub(super) fn adopt(&mut self, snapshot: &Snapshot) -> Result<(), EngineError> {
        for node in &snapshot.nodes {
            if let Some(window) = node.drain_window.filter(|window| self.now_ms < window.to_ms) {
                let drain = Drain { window, told: node.condition };
                self.drains.insert(node.name.clone(), drain);
            }
        }
        self.advance_drains();
        for queue in &snapshot.queues {
            self.quota.set(queue.clone());
        }
        let waits = |job: &Job| job.start_ms.is_none();
        for claim in &snapshot.claims {
            if snapshot.jobs.iter().any(|job| job.id == claim.job && waits(job)) {
                self.claims.insert(claim.clone());
            }
        }
        self.budgets =
            snapshot.budgets.iter().map(|b| (b.name.clone(), b.disruptions_allowed)).collect();
        // Without a table of what was learnt, the jobs that are there are what has arrived so far.
        let is_cold = self.config.policy.learnt.is_none();
        for job in &snapshot.jobs {
            let mut unplaced = job.clone();
            if job.start_ms.is_some() {
                unplaced.pod_sets.iter_mut().for_each(|set| set.present = 0);
            }
            let gang = Arc::new(Gang::of(&mut self.state, &unplaced)?);
            for set in gang.sets.iter().filter(|_| is_cold) {
                self.policy.observe_arrival(&self.state, set.shape, set.min);
            }
            let place = job.start_ms.is_none().then(|| {
                let key = self.class_key(job, &gang);
                self.pending.push(job, key)
            });
            let record = JobRecord {
                job: job.clone(),
                gang,
                holdings: Vec::new(),
                counted: Charge::default(),
                place,
                reason: None,
            };
            self.jobs.insert(job.id, record);
            self.note_running(job.id);
        }
        let [nodes, devices] = snapshot.random_draws;
        self.finder.finder().set_draws(nodes);
        self.policy.set_draws(devices);
        for (job, reason) in &snapshot.reasons {
            if let Some(record) = self.jobs.get_mut(job).filter(|record| record.place.is_some()) {
                record.reason = Some(*reason);
            }
        }
        for holding in &snapshot.holdings {
            let id = self.state.add_unsettled(holding);
            self.note_held(holding, id);
        }
        self.state.settle_devices();
        // order-free: sums.
        let holds = self.jobs.values().map(|record| (&*record.job.queue, &record.counted));
        self.quota.recount(holds);
        self.adopt_sleep(snapshot)
    }

    fn adopt_sleep(&mut self, snapshot: &Snapshot) -> Result<(), EngineError> {
        for sleeping in &snapshot.sleeping {
            let asks = Job {
                pod_sets: sleeping.pod_sets.clone(),
                topology: sleeping.topology.clone(),
                ..Job::single(JobId(u64::MAX), "sleeping", 0, Arc::default())
            };
            let gang = Arc::new(Gang::of(&mut self.state, &asks)?);
            let class = self.pending.class(ClassKey {
                queue: sleeping.queue.clone(),
                gang,
                preempts: sleeping.preempts,
                claim: sleeping.claim,
                kept_room: sleeping.kept_room.clone(),
            });
            let (wants, reason) = (Help::from_bits(sleeping.wants), sleeping.reason);
            self.pending.sleep(class, Sleep { wants, reason });
        }
        if !snapshot.sleeping.is_empty() {
            let slot = |name: &NodeName| self.state.nodes.find(name);
            self.state.helped_nodes = snapshot.helped_nodes.iter().filter_map(slot).collect();
            self.state.helped = Help::from_bits(snapshot.helped);
        }
        Ok(())
    }

    fn sleeping(&self, key: &ClassKey, sleep: Sleep) -> Sleeping {
        let level = |depth: Option<usize>| depth.map(|d| self.state.topology.name_at(d).to_owned());
        let topology = |required, preferred| TopologyRequest {
            required: level(required),
            preferred: level(preferred),
        };
        let pod_set = |set: &GangSet| PodSet {
            name: set.pod_set.to_string(),
            requirement: Arc::clone(&self.state.shapes.get(set.shape).requirement),
            min: set.min + set.first_ordinal,
            max: set.max + set.first_ordinal,
            present: set.first_ordinal,
            topology: topology(set.required, set.preferred),
        };
        Sleeping {
            queue: key.queue.clone(),
            preempts: key.preempts,
            claim: key.claim,
            kept_room: key.kept_room.clone(),
            pod_sets: key.gang.sets.iter().map(pod_set).collect(),
            topology: topology(key.gang.required, key.gang.preferred),
            wants: sleep.wants.bits(),
            reason: sleep.reason,
        }
    }

    /// Notes whose a holding is that was added to the state, if its node is there.
    pub(super) fn note_held(&mut self, holding: &Holding, id: Option<HoldingId>) {
        if let Owner::Foreign(name) = &holding.owner {
            self.note_room(name, holding.phase);
        }
        let Some(id) = id else {
            if let Owner::Foreign(name) = &holding.owner {
                self.unplaced_foreign.insert(name.clone(), holding.clone());
            }
            return;
        };
        match &holding.owner {
            Owner::Pod(pod) => {
                if let Some(record) = self.jobs.get_mut(&pod.job) {
                    record.holdings.push(id);
                    let shape = record.gang.sets[usize::from(pod.pod_set)].shape;
                    record.counted.add_times(&self.state.shapes.get(shape).charge, 1);
                }
            }
            Owner::Foreign(name) => {
                self.foreign.insert(name.clone(), id);
            }
            Owner::Reservation => {}
        }
    }

    /// The node with the condition it has apart from its drain window.
    fn as_told(&self, node: &Node) -> Node {
        let mut node = node.clone();
        if let Some(drain) = self.drains.get(&node.name) {
            node.condition = drain.told;
        }
        node
    }

    /// The world as plain data. An engine made from it, with the same policy and what that has learnt,
    /// decides as this one.
    pub fn snapshot(&self) -> Snapshot {
        let mut ranked: Vec<_> = self.state.nodes.present().collect();
        ranked.sort_by_key(|(slot, _)| self.state.nodes.hot(*slot).rank);
        let mut jobs: Vec<_> = self.jobs.values().map(|record| record.job.clone()).collect();
        jobs.sort_by_key(|job| job.id);
        let reason_of = |job: &Job| Some((job.id, self.jobs.get(&job.id)?.reason?));
        let reasons = jobs.iter().filter_map(reason_of).collect();
        let mut holdings: Vec<Holding> =
            self.state.holdings.iter().map(|(id, _)| self.state.export(id)).collect();
        holdings.extend(self.unplaced_foreign.values().cloned());
        let name = |slot: &NodeId| {
            let is_there = self.state.nodes.hot(*slot).is_present();
            is_there.then(|| self.state.nodes.cold(*slot).node.name.clone())
        };
        let budget = |(name, allowed): (&String, &i64)| Budget {
            name: name.clone(),
            disruptions_allowed: *allowed,
        };
        Snapshot {
            now_ms: self.now_ms,
            topology: self.state.topology.clone(),
            mig_tables: self.state.devices.mig_tables.clone(),
            nodes: ranked.into_iter().map(|(_, node)| self.as_told(node)).collect(),
            queues: self.quota.queues().cloned().collect(),
            jobs,
            holdings,
            reasons,
            claims: self.claims.iter().cloned().collect(),
            budgets: self.budgets.iter().map(budget).collect(),
            random_draws: [self.finder.draws(), self.policy.draws()],
            sleeping: self
                .pending
                .sleeping()
                .map(|(key, sleep)| self.sleeping(key, sleep))
                .collect(),
            helped: self.state.helped.bits(),
            helped_nodes: self.state.helped_nodes.iter().filter_map(name).collect(),
        }
    }
}

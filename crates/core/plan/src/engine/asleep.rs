//! Classes that sleep, as plain data and back.

use std::sync::Arc;

use dovetail_model::snapshot::Sleeping;
use dovetail_model::{Job, JobId, NodeName, PodSet, Snapshot, TopologyRequest};

use crate::gang::{Gang, GangSet, UnknownLevel};
use crate::pending::{ClassKey, Pending, Sleep};
use dovetail_state::State;
use dovetail_state::cause::Help;

impl Pending {
    /// Takes over which classes of a snapshot sleep.
    pub(super) fn adopt_sleep(
        &mut self,
        state: &mut State,
        snapshot: &Snapshot,
    ) -> Result<(), UnknownLevel> {
        for sleeping in &snapshot.sleeping {
            let asks = Job {
                pod_sets: sleeping.pod_sets.clone(),
                topology: sleeping.topology.clone(),
                ..Job::single(JobId(u64::MAX), "sleeping", 0, Arc::default())
            };
            let gang = Arc::new(Gang::of(state, &asks)?);
            let class = self.class(ClassKey {
                queue: sleeping.queue.clone(),
                gang,
                preempts: sleeping.preempts,
                claim: sleeping.claim,
                p90_ms: sleeping.p90_ms,
                kept_room: sleeping.kept_room.clone(),
            });
            let (wants, reason) = (Help::from_bits(sleeping.wants), sleeping.reason);
            self.sleep(class, Sleep { wants, reason, until_ms: sleeping.until_ms });
        }
        if !snapshot.sleeping.is_empty() {
            let slot = |name: &NodeName| state.nodes.find(name);
            state.helped_nodes = snapshot.helped_nodes.iter().filter_map(slot).collect();
            state.helped = Help::from_bits(snapshot.helped);
        }
        Ok(())
    }
}

/// A sleeping class as plain data.
pub(super) fn sleeping(state: &State, key: &ClassKey, sleep: Sleep) -> Sleeping {
    let level = |depth: Option<usize>| depth.map(|d| state.topology.name_at(d).to_owned());
    let topology = |required, preferred| TopologyRequest {
        required: level(required),
        preferred: level(preferred),
    };
    let pod_set = |set: &GangSet| PodSet {
        name: set.pod_set.to_string(),
        requirement: Arc::clone(&state.shapes.get(set.shape).requirement),
        min: set.min + set.first_ordinal,
        max: set.max + set.first_ordinal,
        present: set.first_ordinal,
        topology: topology(set.required, set.preferred),
    };
    Sleeping {
        queue: key.queue.clone(),
        preempts: key.preempts,
        claim: key.claim,
        p90_ms: key.p90_ms,
        kept_room: key.kept_room.clone(),
        pod_sets: key.gang.sets.iter().map(pod_set).collect(),
        topology: topology(key.gang.required, key.gang.preferred),
        wants: sleep.wants.bits(),
        reason: sleep.reason,
        until_ms: sleep.until_ms,
    }
}

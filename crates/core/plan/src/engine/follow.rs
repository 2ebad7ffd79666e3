//! Following decisions that somebody else made about the same world, and asking before each what this engine would choose.

use std::collections::BTreeSet;
use std::sync::Arc;

use dovetail_model::{Action, Bounds, HoldingId, JobId, NodeId, Owner, Phase, Place, Plan};

use super::Engine;
use super::ask::WouldGo;
use crate::view::View;

impl Engine {
    /// Where the pods of a waiting job would go if it were its turn, with all that is kept for it and within its quota
    /// as it grows; `None` if it does not wait or does not fit. Nothing is decided.
    pub fn would_choose(&mut self, job: JobId) -> Option<Vec<WouldGo>> {
        // A decision cycle begins with this.
        self.keep_all();
        let record = self.jobs.get(&job).filter(|record| record.place.is_some())?;
        let gang = Arc::clone(&record.gang);
        let growth_limit: Bounds = self.growth_limit(job, &gang).unwrap_or_default();
        let kept = self.all_kept_for(job);
        let ask = |engine: &mut Self| engine.what_if_within(&gang, &View::Now, growth_limit);
        let placed = self.as_if_free(kept, ask);
        placed.map(|placed| self.would_go(job, placed))
    }

    /// Takes over what a recorded decision keeps, gives back or gives up. That pods were bound is told by
    /// [`dovetail_model::Event::Adopted`]; of it this takes over that room kept for the job is over.
    pub fn follow(&mut self, action: &Action) {
        let mut plan = Plan::default();
        match action {
            Action::Bind { pod, .. } => self.end_room_held_for(pod.job),
            Action::GivenBack { job } => self.give_back(*job, &mut plan),
            Action::RoomGivenUp { job, name } => {
                drop(self.give_up_room(*job, name.clone(), &mut plan));
            }
            Action::Preempt { job, victims, places, until_ms, .. } => {
                let victims: Vec<Owner> = victims.iter().copied().map(Owner::Pod).collect();
                self.follow_preemption((*job, places), victims, *until_ms);
            }
            Action::Lost { .. } | Action::Publish { .. } | Action::Wait { .. } => {}
        }
    }

    fn follow_preemption(
        &mut self,
        (job, places): (JobId, &[Place]),
        victims: Vec<Owner>,
        until_ms: u64,
    ) {
        let mut plan = Plan::default();
        let used: BTreeSet<NodeId> =
            places.iter().filter_map(|place| self.state.nodes.find(&place.node)).collect();
        let leaving: Vec<HoldingId> = self.state.holdings.leaving(self.now_ms).collect();
        let leaving = leaving.into_iter().map(|id| self.state.holdings.get(id));
        let anyway = leaving.filter(|record| used.contains(&record.node));
        let awaited: Vec<Owner> =
            victims.iter().cloned().chain(anyway.map(|record| record.owner.clone())).collect();
        for id in victims.iter().filter_map(|owner| self.held_by_owner(owner)).collect::<Vec<_>>() {
            self.state.set_phase(id, Phase::Releasing { expected_end_ms: Some(until_ms) });
        }
        self.survey.clear();
        self.keep_places(job, (places.to_vec(), awaited), until_ms, &mut plan);
    }
}

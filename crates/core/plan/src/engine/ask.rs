//! Questions about jobs that nobody submitted: where would it go, now or under another view.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

use dovetail_model::{Bounds, HeldDevices, HoldingId, Job, JobId, NodeId, NodeName, PodId};

use super::{Engine, EngineError};
use crate::gang::{Gang, PlacedPod};
use crate::policy::whole_score;
use crate::queue::quota::Beside;
use crate::view::View;

/// Where one pod of a job in question would go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WouldGo {
    /// The pod.
    pub pod: PodId,
    /// Its node.
    pub node: NodeName,
    /// Its devices; on a node with counted devices the kubelet chooses which.
    pub devices: HeldDevices,
}

impl Engine {
    /// Where the pods of a job would go under a view, quota aside; `None` if the job does not fit. Room that is held for
    /// a waiting job alone ([`Job::kept_room`]) is free to it. Nothing changes. [`EngineError::UnknownLevel`] if it asks
    /// for a topology level that does not exist.
    pub fn what_if_job(
        &mut self,
        job: &Job,
        view: &View,
    ) -> Result<Option<Vec<WouldGo>>, EngineError> {
        let gang = Gang::of(&mut self.state, job)?;
        let placed = self.as_seen_by(job.id, |engine| engine.what_if(&gang, view));
        Ok(placed.map(|placed| self.would_go(job.id, placed)))
    }

    /// Whether a job would fit, quota aside, if nothing were held under these names ([`dovetail_model::Owner::Foreign`])
    /// and everything were gone that is releasing and not late with it. Nothing changes. The error is that of
    /// [`Engine::what_if_job`].
    pub fn would_fit_without(
        &mut self,
        job: &Job,
        names: impl IntoIterator<Item = String>,
    ) -> Result<bool, EngineError> {
        let gang = Gang::of(&mut self.state, job)?;
        let held = names.into_iter().filter_map(|name| self.foreign.get(&name).copied());
        let free: BTreeSet<HoldingId> = held.chain(self.room_held_for(job.id)).collect();
        Ok(self.as_if_free(free, |engine| engine.would_fit(&gang, &View::AfterReleasing)))
    }

    /// Which of these waiting jobs would start, one after the other in this order and quota aside, once everything has
    /// gone that is releasing and not late with it: what one takes the next has not. Nothing changes.
    pub fn would_start_in_turn(&mut self, jobs: &[JobId]) -> BTreeSet<JobId> {
        let helped = self.state.helped;
        let draws = (self.finder.finder().draws(), self.policy.draws());
        let mark = self.state.open_view(&View::AfterReleasing, self.now_ms);
        // What those leave for whom room is kept is not for others.
        self.fill_all();
        let mut starts = BTreeSet::new();
        for job in jobs {
            let waiting = self.jobs.get(job).filter(|record| record.place.is_some());
            let Some(gang) = waiting.map(|record| Arc::clone(&record.gang)) else { continue };
            let before = self.state.begin();
            for own in self.room_held_for(*job) {
                self.state.release(own);
            }
            match self.place(*job, &gang, Bounds::default()) {
                Some(_) => {
                    starts.insert(*job);
                    self.state.commit(before);
                }
                None => self.state.rollback(before),
            }
        }
        self.state.rollback(mark);
        self.state.helped = helped;
        self.finder.finder().set_draws(draws.0);
        self.policy.set_draws(draws.1);
        starts
    }

    /// Where pods of a job would go now: as many of each set as there is room for and as its queue may hold, whatever
    /// its smallest size is. Nothing changes. The error is that of [`Engine::what_if_job`].
    pub fn what_fits(&mut self, job: &Job) -> Result<Vec<WouldGo>, EngineError> {
        let mut gang = Gang::of(&mut self.state, job)?;
        gang.sets.iter_mut().for_each(|set| set.min = 0);
        let limit = self.quota.headroom(&job.queue, &Beside::default());
        let placed = self.what_if_within(&gang, &View::Now, limit).unwrap_or_default();
        Ok(self.would_go(job.id, placed))
    }

    pub(super) fn would_go(&self, job: JobId, placed: Vec<PlacedPod>) -> Vec<WouldGo> {
        let would_go = placed.into_iter().map(|placed| WouldGo {
            pod: PodId { job, ..placed.pod },
            node: self.state.nodes.cold(placed.node).node.name.clone(),
            devices: placed.devices,
        });
        would_go.collect()
    }

    /// The best node for the first pod of a job, found by judging every node and without any index; `None`
    /// if none fits. The index is held against this where the naive search, which also adds up every holding
    /// anew, would take too long. For policies that pick the best; the error is that of
    /// [`Engine::what_if_job`].
    pub fn best_of_every_node(&mut self, job: &Job) -> Result<Option<NodeName>, EngineError> {
        let gang = Gang::of(&mut self.state, job)?;
        let Some(set) = gang.sets.first() else { return Ok(None) };
        let slots = (0..self.state.nodes.slots() as u32).map(NodeId);
        let fitting: Vec<NodeId> = slots.filter(|n| self.state.fits(set.shape, *n)).collect();
        let demand = self.state.shapes.get(set.shape).demand.clone();
        let images = self.state.shapes.get(set.shape).images;
        let best = fitting.into_iter().max_by_key(|node| {
            let points = self.state.points(&demand, images, *node);
            let policy = &mut *self.policy;
            let score = whole_score(policy, &mut self.state, set.shape, points, *node);
            (score, Reverse(self.state.nodes.hot(*node).rank))
        });
        Ok(best.map(|node| self.state.nodes.cold(node).node.name.clone()))
    }
}

//! Questions about jobs that nobody submitted: where would it go, now or under another view.

use std::cmp::Reverse;

use dovetail_model::{HeldDevices, Job, NodeId, NodeName, PodId};

use super::{Engine, EngineError};
use crate::gang::Gang;
use crate::policy::whole_score;
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
    /// Where the pods of a job would go under a view, quota aside; `None` if the job does not fit. Nothing
    /// changes. [`EngineError::UnknownLevel`] if it asks for a topology level that does not exist.
    pub fn what_if_job(
        &mut self,
        job: &Job,
        view: &View,
    ) -> Result<Option<Vec<WouldGo>>, EngineError> {
        let gang = Gang::of(&mut self.state, job)?;
        let Some(placed) = self.what_if(&gang, view) else { return Ok(None) };
        let would_go = placed.into_iter().map(|placed| WouldGo {
            pod: PodId { job: job.id, ..placed.pod },
            node: self.state.nodes.cold(placed.node).node.name.clone(),
            devices: placed.devices,
        });
        Ok(Some(would_go.collect()))
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

//! Questions about jobs that nobody submitted: where would it go, now or under another view.

use dovetail_model::{HeldDevices, Job, NodeName, PodId};

use super::{Engine, EngineError};
use crate::gang::Gang;
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
}

//! The engine at work: the same code that decides in a live scheduler.

use std::collections::BTreeMap;
use std::sync::Arc;

use dovetail_model::{
    Action, Device, DeviceRequest, Event, Job, JobId, MigProfile, Node, NodeName, Requirement,
    Resources, Snapshot,
};
use dovetail_plan::{Batch, Engine, EngineConfig, EngineError};

use crate::slices::{Places, SlicePosition, SlicesWorld};

/// An engine over the GPUs of a world.
pub struct ByEngine<'w> {
    world: &'w SlicesWorld,
    engine: Engine,
    /// The number of each node's first GPU.
    first: BTreeMap<NodeName, usize>,
    /// One requirement for each profile.
    requirements: Vec<Arc<Requirement>>,
}

impl<'w> ByEngine<'w> {
    /// An engine that starts with nothing placed.
    ///
    /// # Errors
    /// What the engine says of the configuration.
    pub fn new(world: &'w SlicesWorld, config: EngineConfig) -> Result<Self, EngineError> {
        let (mut nodes, mut first, mut number) = (Vec::new(), BTreeMap::new(), 0);
        for (place, gpus) in world.node_gpus.iter().enumerate() {
            let mut node = Node::plain(&format!("node-{place:06}"), 1, 1, 0, "");
            let mut device = Device::plain(&world.table.name, 0);
            device.mig_table = Some(world.table.name.clone());
            node.allocatable.pod_slots = i64::from(*gpus) * i64::from(world.table.compute_slices);
            node.devices = vec![device; *gpus as usize];
            first.insert(node.name.clone(), number);
            number += *gpus as usize;
            nodes.push(node);
        }
        let snapshot =
            Snapshot { nodes, mig_tables: vec![world.table.clone()], ..Snapshot::default() };
        let of = |profile: &MigProfile| {
            Arc::new(Requirement {
                resources: Resources::pod(0, 0),
                device: DeviceRequest::Slice { profile: profile.name.clone() },
                ..Requirement::default()
            })
        };
        let requirements = world.table.profiles.iter().map(of).collect();
        Ok(Self { world, engine: Engine::new(config, &snapshot)?, first, requirements })
    }

    /// Where a holding on a device begins.
    fn slice(&self, node: &NodeName, index: u16, mask: u16) -> SlicePosition {
        let first = self.first.get(node).copied().unwrap_or(0);
        SlicePosition { gpu: first + usize::from(index), start: mask.trailing_zeros() as u8 }
    }
}

impl Places for ByEngine<'_> {
    fn place(
        &mut self,
        pod: u64,
        profile: usize,
        now_ms: u64,
    ) -> Result<Option<SlicePosition>, EngineError> {
        let id = JobId(pod);
        let name = &self.world.table.profiles[profile].name;
        let job = Job::single(id, name, now_ms, Arc::clone(&self.requirements[profile]));
        let plan = self.engine.step(Event::Submitted(Box::new(job)), now_ms)?;
        for action in &plan.actions {
            if let Action::Bind { node, devices, .. } = action
                && let Some((index, amount)) = devices.first()
            {
                return Ok(Some(self.slice(node, *index, amount.slice_mask)));
            }
        }
        self.engine.step(Batch::pending(Event::ended(id)), now_ms)?;
        Ok(None)
    }

    fn end(&mut self, pod: u64, now_ms: u64) -> Result<(), EngineError> {
        self.engine.step(Batch::pending(Event::ended(JobId(pod))), now_ms).map(|_| ())
    }
}

//! Pods whose nodes are decided, and that start once something of theirs is ready.

use dovetail_model::PodId;

use super::World;
use super::key::ClaimKey;
use super::report::{ObjectReport, names_of};

/// Decided pods, to be told what they wait for.
#[derive(Debug)]
pub struct DecidedPods<'w> {
    world: &'w mut World,
    pods: &'w [PodId],
}

impl<'w> DecidedPods<'w> {
    /// Nodes are decided for these pods.
    pub fn of(world: &'w mut World, pods: &'w [PodId]) -> Self {
        Self { world, pods }
    }

    /// They start when these devices, of their claims or of others of their gang, are ready.
    pub fn for_devices(self, devices: &[String]) {
        self.world.index.wait_for_devices(self.pods, devices);
    }

    /// They start when these claims have their volumes there: each waits for its own, or, if it has
    /// none without, for those of the others.
    pub fn for_volumes(self, missing: &[ClaimKey]) {
        let Self { world, pods } = self;
        for pod in pods {
            let own = world.volumes().claims_without_volume(*pod);
            world.index.wait_for_volumes(*pod, &own, missing);
        }
        let group = pods.first().and_then(|first| world.gangs().group_of_job(first.job));
        let Some(meta) = group.map(|group| &group.meta) else { return };
        let (namespace, name) = (meta.namespace.to_string(), meta.name.to_string());
        let claims = names_of(missing);
        world.index.feed.reports.push(ObjectReport::GroupWaitsForVolumes {
            namespace,
            name,
            claims,
        });
    }
}

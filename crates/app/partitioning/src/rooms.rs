//! Room for pods that move: what nodes have free besides what pending pods get there.

use std::collections::BTreeMap;

use dovetail_gpus::{NodeGpus, is_of_shares, node_gpus};
use dovetail_model::device::WHOLE_DEVICE_MILLI;
use dovetail_model::labels::NVIDIA_GPU;
use dovetail_model::{Requirement, is_gpu_resource};
use dovetail_objects::Pod;

use crate::eligible::{Target, is_mig, requirement};
use crate::objects::is_pending;
use crate::objects::{Objects, SeenNode};
use crate::stays::has_vgpus;

/// What is rounded of a part of a GPU, in milli-GPU.
const ROUNDING: i64 = 1;

/// What a pod has of GPUs by units of a resource: under one name, some nodes offer whole GPUs and
/// others replicas or instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnitShare {
    /// Whether other pods may have the same devices.
    is_shared: bool,
    /// All of its units, in milli-GPU.
    pub(crate) milli: i64,
}

impl UnitShare {
    /// What a number of units counts, with whether they are shared there.
    pub(crate) fn of(gpus: &NodeGpus, resource: &str, count: i64) -> Self {
        let units = gpus.units_of(resource);
        let milli = units.map_or(WHOLE_DEVICE_MILLI * count, |units| units.parts.milli(0, count));
        Self { is_shared: units.is_some_and(|units| units.is_shared), milli }
    }

    /// What a SharingPolicy provides as one unit of a resource: a whole GPU, or a part of any size.
    pub(crate) fn named(resource: &str) -> Self {
        let milli = if resource == NVIDIA_GPU { WHOLE_DEVICE_MILLI } else { 0 };
        Self { is_shared: is_of_shares(resource), milli }
    }

    /// Whether a pod that has this of a resource can have that in its place: devices of its own
    /// remain its own, and are no smaller. Instances of one profile are alike, although what they
    /// count depends on the others of their GPU.
    fn is_met_by(self, other: Self, resource: &str) -> bool {
        let is_instance = is_mig(resource) && !self.is_shared;
        self.is_shared == other.is_shared && (is_instance || self.milli <= other.milli + ROUNDING)
    }
}

/// A node with what is free there.
struct Place<'o> {
    node: &'o str,
    target: Target,
    gpus: NodeGpus,
    /// GPUs and parts of them, by resource.
    free: BTreeMap<String, i64>,
}

/// What nodes have free.
pub(crate) struct Rooms<'o>(Vec<Place<'o>>);

impl<'o> Rooms<'o> {
    /// What is free on all nodes but one, once the pending pods that fit are placed.
    pub(crate) fn besides(
        node: &str,
        objects: &'o Objects,
        holders: &BTreeMap<&str, Vec<&Pod>>,
    ) -> Self {
        let place = |(name, seen): (&'o String, &'o SeenNode)| {
            let pods = holders.get(&**name).map_or(&[][..], Vec::as_slice);
            if name == node || has_vgpus(seen, pods) {
                return None;
            }
            let of_node = node_gpus(&seen.node, None)?;
            let allocatable = seen.node.allocatable.extended.iter();
            let gpus = allocatable.filter(|(resource, _)| is_gpu_resource(resource));
            let mut free: BTreeMap<String, i64> =
                gpus.map(|(resource, count)| (resource.clone(), *count)).collect();
            for (resource, count) in pods.iter().flat_map(|pod| &pod.holds().extended) {
                free.entry(resource.clone()).and_modify(|left| *left -= count);
            }
            let target = Target::of(seen, name, objects, pods);
            Some(Place { node: name, target, gpus: of_node, free })
        };
        let mut rooms = Self(objects.nodes.iter().filter_map(place).collect());
        let mut pending: Vec<&Pod> = objects.pods.values().filter(|pod| is_pending(pod)).collect();
        pending.sort_by_key(|pod| std::cmp::Reverse(pod.priority));
        for pod in pending {
            if let (Some((resource, count)), Ok(needs)) = (asked(pod), requirement(pod, objects)) {
                rooms.take(&needs, (resource, count), None);
            }
        }
        rooms
    }

    /// The first node that has room for a pod, which is taken. `share`: what its units must be of
    /// GPUs; `None`: whatever they are there.
    pub(crate) fn take(
        &mut self,
        needs: &Requirement,
        (resource, count): (&str, i64),
        share: Option<UnitShare>,
    ) -> Option<&'o str> {
        let fits = |place: &&mut Place<'o>| {
            let there = || UnitShare::of(&place.gpus, resource, count);
            place.free.get(resource).is_some_and(|free| *free >= count)
                && share.is_none_or(|share| share.is_met_by(there(), resource))
                && place.target.takes(needs)
        };
        let place = self.0.iter_mut().find(fits)?;
        place.free.entry(resource.to_owned()).and_modify(|free| *free -= count);
        place.target.take(needs);
        Some(place.node)
    }
}

/// The one GPU resource that a pod has or asks for.
pub(crate) fn asked(pod: &Pod) -> Option<(&str, i64)> {
    let amounts = pod.holds().extended.iter();
    let mut gpus = amounts.filter(|(name, count)| is_gpu_resource(name) && **count > 0);
    let (resource, count) = gpus.next()?;
    gpus.next().is_none().then_some((&**resource, *count))
}

//! Room for pods that move: what nodes have free besides what pending pods get there.

use std::collections::BTreeMap;

use dovetail_gpus::node_gpus;
use dovetail_model::{Requirement, is_gpu_resource};
use dovetail_objects::Pod;

use crate::cluster::is_pending;
use crate::eligible::{Target, requirement};
use crate::objects::Objects;
use crate::stays::has_vgpus;

/// A node with what is free there.
struct Place<'o> {
    node: &'o str,
    target: Target,
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
        let others = objects.nodes.iter().filter(|(name, seen)| {
            let pods = holders.get(&***name).map_or(&[][..], Vec::as_slice);
            *name != node && node_gpus(&seen.node, None).is_some() && !has_vgpus(seen, pods)
        });
        let place = |(name, seen): (&'o String, &'o crate::objects::SeenNode)| {
            let pods = holders.get(&**name).map_or(&[][..], Vec::as_slice);
            let allocatable = seen.node.allocatable.extended.iter();
            let gpus = allocatable.filter(|(resource, _)| is_gpu_resource(resource));
            let mut free: BTreeMap<String, i64> =
                gpus.map(|(resource, count)| (resource.clone(), *count)).collect();
            for (resource, count) in pods.iter().flat_map(|pod| &pod.holds().extended) {
                free.entry(resource.clone()).and_modify(|left| *left -= count);
            }
            Place { node: name, target: Target::of(seen, name, objects, pods), free }
        };
        let mut rooms = Self(others.map(place).collect());
        let mut pending: Vec<&Pod> = objects.pods.values().filter(|pod| is_pending(pod)).collect();
        pending.sort_by_key(|pod| std::cmp::Reverse(pod.priority));
        for pod in pending {
            if let (Some((resource, count)), Ok(needs)) = (asked(pod), requirement(pod, objects)) {
                rooms.take(&needs, resource, count);
            }
        }
        rooms
    }

    /// The first node that has room for a pod, which is taken.
    pub(crate) fn take(
        &mut self,
        needs: &Requirement,
        resource: &str,
        count: i64,
    ) -> Option<&'o str> {
        let fits = |place: &&mut Place<'o>| {
            place.free.get(resource).is_some_and(|free| *free >= count) && place.target.takes(needs)
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

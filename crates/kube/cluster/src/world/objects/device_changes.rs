//! Objects that decide which devices pods can have: what a change of one concerns.

use std::collections::BTreeSet;

use dovetail_devices::DeviceKey;
use dovetail_model::NodeName;
use dovetail_objects::{Kind, Object, Pod};

use super::device_claims::{DeviceClaims, SetAside};
use super::nodes::Nodes;
use super::pods::Pods;
use super::{Dirty, Objects};
use dovetail_translate::ReferredObjects;

/// The nodes that have devices of something.
#[derive(Debug)]
enum Concerned {
    Nodes(BTreeSet<Box<str>>),
    All,
}

/// What changes with devices: pods that ask for them, and nodes that have them.
#[derive(Debug)]
pub(crate) struct DeviceChanges<'o> {
    claims: &'o mut DeviceClaims,
    facts: &'o ReferredObjects,
    pods: &'o Pods,
    nodes: &'o Nodes,
    dirty: &'o mut Dirty,
}

impl<'o> DeviceChanges<'o> {
    pub(crate) fn of(objects: &'o mut Objects) -> Self {
        let Objects { device_claims: claims, facts, pods, nodes, dirty, .. } = objects;
        Self { claims, facts, pods, nodes, dirty }
    }

    /// Notes an object that is there or different.
    pub(crate) fn note(mut self, object: &Object) {
        let meta = object.meta();
        let about = (object.kind(), &*meta.namespace, &*meta.name);
        self.change(about, |claims| claims.note(object));
    }

    /// The same of one that is gone.
    pub(crate) fn note_gone(mut self, kind: Kind, namespace: &str, name: &str) {
        let about = (kind, namespace, name);
        self.change(about, |claims| claims.note_gone(kind, namespace, name));
    }

    /// Devices were set aside, or given back: what follows from it for nodes that reach devices of
    /// their pools, and for other pods with the claims, may differ.
    pub(crate) fn set_aside(self, changes: &SetAside) {
        let of_pods = changes.nodes.iter().map(|node| Box::from(&**node));
        let mut nodes: BTreeSet<Box<str>> = of_pods.collect();
        let is_known = self.reaching(&changes.devices, &mut nodes);
        match is_known && !self.claims.catalog.has_slices_of_several() {
            true => self.claims.surveys.forget(Some(&mut nodes.iter().map(|node| &**node))),
            false => self.claims.surveys.forget(None),
        }
        for (namespace, claim) in &changes.claims {
            self.dirty.pods.extend(self.pods.claimants.of(namespace, claim));
        }
        if self.serves_extended() {
            self.dirty.nodes.extend(nodes);
        }
    }

    /// Devices that seemed to be free on nodes were not: they are asked again.
    pub(crate) fn refused(self, nodes: impl Iterator<Item = NodeName>) {
        let nodes: BTreeSet<NodeName> = nodes.collect();
        self.claims.surveys.forget(Some(&mut nodes.iter().map(|node| &**node)));
    }

    /// Adds the nodes that reach pools of devices; whether all of them are known.
    fn reaching(&self, devices: &[DeviceKey], nodes: &mut BTreeSet<Box<str>>) -> bool {
        let catalog = &self.claims.catalog;
        devices.iter().all(|device| {
            let of_pool = catalog.nodes_of_pool(&device.driver, &device.pool);
            let of_pool = of_pool.map(|of_pool| nodes.extend(of_pool.map(Box::from)));
            of_pool.is_some()
        })
    }

    /// A pod came or went, or got a node: what the node has for others follows from its claim.
    pub(crate) fn pod_changed(self, pod_uid: &str, node: &str) {
        if !node.is_empty() && self.claims.extended_of(pod_uid).is_some() {
            self.dirty.nodes.insert(node.into());
        }
    }

    pub(crate) fn pod_gone(self, pod: &Pod) {
        self.claims.pod_gone(pod);
        self.pod_changed(&pod.meta.uid, &pod.node);
    }

    fn change(
        &mut self,
        about: (Kind, &str, &str),
        change: impl FnOnce(&mut DeviceClaims) -> bool,
    ) {
        let serves_extended = self.serves_extended();
        let mut concerned = vec![self.concerned(about)];
        if serves_extended {
            self.mark_owner(about);
        }
        let differs = change(self.claims);
        self.mark_users(about);
        if serves_extended {
            self.mark_owner(about);
        }
        if !differs {
            return;
        }
        concerned.push(self.concerned(about));
        for nodes in concerned {
            match nodes {
                Concerned::Nodes(names) => {
                    self.claims.surveys.forget(Some(&mut names.iter().map(|name| &**name)));
                    self.dirty.nodes.extend(names.into_iter().filter(|_| serves_extended));
                }
                Concerned::All => {
                    self.claims.surveys.forget(None);
                    if serves_extended {
                        self.dirty.all_nodes(self.nodes);
                    }
                }
            }
        }
    }

    /// Marks the pods without a node that use a claim.
    fn mark_users(&mut self, (kind, namespace, name): (Kind, &str, &str)) {
        if kind == Kind::DeviceClaim {
            let users = self.pods.claimants.of(namespace, name);
            self.dirty.pods.extend(users);
        }
    }

    /// Whether devices may serve extended resources.
    fn serves_extended(&self) -> bool {
        let mut by_class = self.pods.extended.resources_by_class();
        by_class.next().is_some() || !self.facts.resources_of_classes().is_empty()
    }

    /// The nodes on which devices are free by an object, or are not.
    fn concerned(&self, (kind, namespace, name): (Kind, &str, &str)) -> Concerned {
        let claims = &*self.claims;
        let mut nodes = BTreeSet::new();
        match kind {
            Kind::DeviceTaintRule | Kind::DeviceClass => return Concerned::All,
            Kind::Node => _ = nodes.insert(name.into()),
            Kind::ResourceSlice => {
                // Whether a pool is complete concerns all nodes that have slices of it.
                let pool =
                    claims.catalog.slice(name).map(|slice| (&slice.driver, &slice.pool.name));
                let of_pool = pool.map(|(driver, pool)| claims.catalog.nodes_of_pool(driver, pool));
                match of_pool {
                    Some(Some(of_pool)) => nodes.extend(of_pool.map(Box::from)),
                    Some(None) => return Concerned::All,
                    None => {}
                }
            }
            Kind::DeviceClaim => {
                let node = claims.pledged_node(namespace, name).map(|node| Box::from(&**node));
                nodes.extend(node);
                let claim = claims.get(namespace, name);
                let has = claim.and_then(|claim| claim.allocation.as_ref());
                let has = has.iter().flat_map(|has| &has.devices).map(DeviceKey::of);
                let devices: Vec<DeviceKey> =
                    has.chain(claims.pledged_devices(namespace, name)).collect();
                if !self.reaching(&devices, &mut nodes) {
                    return Concerned::All;
                }
            }
            _ => {}
        }
        Concerned::Nodes(nodes)
    }

    /// Marks the pod that a claim for extended resources is of.
    fn mark_owner(&mut self, (kind, namespace, name): (Kind, &str, &str)) {
        let claim = self.claims.get(namespace, name);
        let claim = claim.filter(|_| kind == Kind::DeviceClaim);
        let owner = claim.map(|claim| &*claim.meta.controller.uid);
        self.dirty.pods.extend(owner.and_then(|uid| self.pods.extended.unplaced_of(uid)));
    }
}

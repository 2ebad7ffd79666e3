//! Objects that decide which devices pods can have: what a change of one concerns.

use std::collections::BTreeSet;

use dovetail_model::NodeName;
use dovetail_objects::{Kind, Object, Reach};

use super::Objects;
use super::device_claims::DeviceClaims;

/// The nodes that have devices of something.
#[derive(Debug)]
enum Concerned {
    Nodes(BTreeSet<Box<str>>),
    All,
}

impl Objects {
    /// Notes an object that is there or different.
    pub(crate) fn note_devices(&mut self, object: &Object) {
        let meta = object.meta();
        let about = (object.kind(), &*meta.namespace, &*meta.name);
        self.devices_change(about, |claims| claims.note(object));
    }

    /// Notes that an object is gone.
    pub(crate) fn note_devices_gone(&mut self, kind: Kind, namespace: &str, name: &str) {
        let about = (kind, namespace, name);
        self.devices_change(about, |claims| claims.note_gone(kind, namespace, name));
    }

    /// Devices were set aside on nodes, or given back: what follows from it may differ.
    pub(crate) fn devices_set_aside(&mut self, nodes: impl Iterator<Item = NodeName>) {
        self.device_claims.forget_surveys();
        self.dirty.pods.extend(self.pods.unplaced_with_device_claims());
        if self.serves_extended() {
            self.dirty.nodes.extend(nodes.map(|node| Box::from(&*node)));
        }
    }

    /// Marks all nodes.
    pub(crate) fn mark_nodes(&mut self) {
        self.dirty.nodes.extend(self.nodes.names().map(Box::from));
    }

    /// Marks the node of a pod that has extended resources by a claim.
    pub(crate) fn mark_node_of_extended(&mut self, pod_uid: &str, node: &str) {
        if !node.is_empty() && self.device_claims.extended_of(pod_uid).is_some() {
            self.dirty.nodes.insert(node.into());
        }
    }

    fn devices_change(
        &mut self,
        about: (Kind, &str, &str),
        change: impl FnOnce(&mut DeviceClaims) -> bool,
    ) {
        let serves_extended = self.serves_extended();
        let mut concerned = Vec::new();
        if serves_extended {
            concerned.push(self.concerned(about));
            self.mark_owner(about);
        }
        if !change(&mut self.device_claims) {
            return;
        }
        self.dirty.pods.extend(self.pods.unplaced_with_device_claims());
        if serves_extended {
            concerned.push(self.concerned(about));
            self.mark_owner(about);
        }
        for nodes in concerned {
            match nodes {
                Concerned::Nodes(names) => self.dirty.nodes.extend(names),
                Concerned::All => self.mark_nodes(),
            }
        }
    }

    /// Whether devices may serve extended resources.
    fn serves_extended(&self) -> bool {
        let mut by_class = self.pods.resources_by_class();
        by_class.next().is_some() || !self.facts.resources_of_classes().is_empty()
    }

    /// The nodes on which devices are free by an object, or are not.
    fn concerned(&self, (kind, namespace, name): (Kind, &str, &str)) -> Concerned {
        let claims = &self.device_claims;
        let mut nodes = BTreeSet::new();
        match kind {
            Kind::DeviceTaintRule => return Concerned::All,
            Kind::ResourceSlice => match claims.catalog.slice(name).map(|slice| &slice.reach) {
                Some(Reach::Node(node)) => _ = nodes.insert(node.clone()),
                Some(_) => return Concerned::All,
                None => {}
            },
            Kind::DeviceClaim => {
                let node = claims.pledged_node(namespace, name).map(|node| Box::from(&**node));
                nodes.extend(node);
                let claim = claims.get(namespace, name);
                let has = claim.and_then(|claim| claim.allocation.as_ref());
                for device in has.iter().flat_map(|has| &has.devices) {
                    let of_pool = claims.catalog.nodes_of_pool(&device.driver, &device.pool);
                    let Some(of_pool) = of_pool else { return Concerned::All };
                    nodes.extend(of_pool.map(Box::from));
                }
            }
            _ => {}
        }
        Concerned::Nodes(nodes)
    }

    /// Marks the pod that a claim for extended resources is of.
    fn mark_owner(&mut self, (kind, namespace, name): (Kind, &str, &str)) {
        let claim = self.device_claims.get(namespace, name);
        let claim = claim.filter(|_| kind == Kind::DeviceClaim);
        let owner = claim.map(|claim| &*claim.meta.controller.uid);
        self.dirty.pods.extend(owner.and_then(|uid| self.pods.unplaced_extended_of(uid)));
    }
}

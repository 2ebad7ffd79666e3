//! What is known of every kind: a list that is complete says which of it is gone.

use dovetail_objects::{Kind, Meta};

use super::Objects;
use super::listing::Key;

impl Objects {
    pub(crate) fn stored(&self, kind: Kind, namespace: &str, name: &str) -> Option<&Meta> {
        if let Some(strange) = self.unreadable.get(kind, namespace, name) {
            return Some(&strange.meta);
        }
        match kind {
            Kind::CsiDriver => self.facts.driver(name).map(|object| &object.meta),
            Kind::CsiNode => self.nodes.csi(name).map(|object| &object.meta),
            Kind::StorageCapacity => {
                self.facts.capacity(namespace, name).map(|object| &object.meta)
            }
            Kind::DeviceClaim => self.device_claims.get(namespace, name).map(|object| &object.meta),
            Kind::DeviceClass => self.facts.device_class(name).map(|object| &object.meta),
            Kind::DeviceTaintRule => {
                self.device_claims.catalog.taint_rule(name).map(|object| &object.meta)
            }
            Kind::Namespace => self.namespaces.get(name).map(|object| &object.meta),
            Kind::Node => self.nodes.get(name).map(|object| &object.meta),
            Kind::PersistentVolume => self.facts.volume(name).map(|object| &object.meta),
            Kind::Claim => self.facts.claim(namespace, name).map(|object| &object.meta),
            Kind::Pod => {
                let slot = self.pods.find(namespace, name)?;
                Some(&self.pods.get(slot).pod.meta)
            }
            Kind::PodGroup | Kind::CoschedulingGroup | Kind::VolcanoGroup | Kind::KaiGroup => {
                self.descriptions.group(kind, namespace, name).map(|group| &group.meta)
            }
            Kind::HyperNode => self.network.hyper_nodes.get(name).map(|object| &object.meta),
            Kind::KueueTopology | Kind::KaiTopology => {
                self.network.topologies.get(&(kind, name.into())).map(|object| &object.meta)
            }
            Kind::Queue => self.queues.get(name).map(|object| &object.meta),
            Kind::Reservation => self.reservations.get(name).map(|object| &object.meta),
            Kind::ResourceSlice => self.nodes.slice(name).map(|object| &object.meta),
            Kind::StorageClass => self.facts.class(name).map(|object| &object.meta),
            Kind::VolumeAttachment => self.attachments.get(name).map(|object| &object.meta),
            Kind::Workload(kind) => {
                self.descriptions.workload(kind, namespace, name).map(|object| &object.meta)
            }
            Kind::DisruptionBudget => self.budgets.meta(namespace, name),
        }
    }

    /// Names of everything of a kind.
    pub(crate) fn names(&self, kind: Kind) -> Vec<Key> {
        let of = |meta: &Meta| (meta.namespace.clone(), meta.name.clone());
        let cluster = |name: &str| (Box::default(), name.into());
        let mut names: Vec<Key> = match kind {
            Kind::CsiDriver => self.facts.drivers().map(|object| of(&object.meta)).collect(),
            Kind::CsiNode => self.nodes.csi_names().map(cluster).collect(),
            Kind::StorageCapacity => {
                self.facts.capacities().map(|object| of(&object.meta)).collect()
            }
            Kind::DeviceClaim => self.device_claims.all().map(|object| of(&object.meta)).collect(),
            Kind::DeviceClass => {
                self.facts.device_classes().map(|object| of(&object.meta)).collect()
            }
            Kind::DeviceTaintRule => {
                self.device_claims.catalog.taint_rule_names().map(cluster).collect()
            }
            Kind::Namespace => self.namespaces.keys().map(|name| cluster(name)).collect(),
            Kind::Node => self.nodes.names().map(cluster).collect(),
            Kind::PersistentVolume => self.facts.volumes().map(|object| of(&object.meta)).collect(),
            Kind::Claim => self.facts.claims().map(|object| of(&object.meta)).collect(),
            Kind::Pod => self.pods.entries().map(|entry| of(&entry.pod.meta)).collect(),
            Kind::PodGroup | Kind::CoschedulingGroup | Kind::VolcanoGroup | Kind::KaiGroup => {
                self.descriptions.groups(kind).map(|group| of(&group.meta)).collect()
            }
            Kind::HyperNode => self.network.hyper_nodes.names().map(cluster).collect(),
            Kind::KueueTopology | Kind::KaiTopology => {
                let all = self.network.topologies.keys();
                all.filter(|(of, _)| *of == kind).map(|(_, name)| cluster(name)).collect()
            }
            Kind::Queue => self.queues.names().map(cluster).collect(),
            Kind::Reservation => self.reservations.names().map(cluster).collect(),
            Kind::ResourceSlice => self.nodes.slice_names().map(cluster).collect(),
            Kind::StorageClass => self.facts.classes().map(|object| of(&object.meta)).collect(),
            Kind::VolumeAttachment => self.attachments.names().map(cluster).collect(),
            Kind::Workload(kind) => self.descriptions.workload_names(kind).collect(),
            Kind::DisruptionBudget => self.budgets.names().collect(),
        };
        names.extend(self.unreadable.names(kind).cloned());
        names
    }
}

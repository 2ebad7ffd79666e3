//! Objects put in and taken out, and what may stand differently because of it.

use std::collections::BTreeSet;
use std::sync::Arc;

use dovetail_objects::{Kind, Meta, Object, Pod, Strange};

use super::World;
use super::listing::Key;
use super::pods::{PodEntry, Slot};
use super::registry::Use;
use super::report::Report;
use super::tell::Events;
use crate::translate::counting::{Selector, anti_affinity_terms, asked_by, is_kept_away};

impl World {
    /// Takes in an object that is there or different.
    pub(super) fn put(&mut self, object: Object) {
        let meta = object.meta();
        self.strange.remove(&(object.kind(), (meta.namespace.clone(), meta.name.clone())));
        match object {
            Object::CsiDriver(driver) => {
                self.facts.set_driver(driver);
                self.mark_unplaced_with_claims();
            }
            Object::CsiNode(csi) => {
                self.dirty.nodes.insert(csi.meta.name.clone());
                self.nodes.set_csi(csi);
            }
            Object::StorageCapacity(capacity) => {
                self.facts.set_capacity(capacity);
                self.mark_unplaced_with_claims();
            }
            Object::DeviceClass(class) => {
                self.facts.set_device_class(class);
                self.mark_unplaced();
            }
            Object::Namespace(namespace) => {
                let name = namespace.meta.name.clone();
                let before = self.namespaces.insert(name.clone(), namespace);
                let labels = self.namespaces[&name].meta.labels.clone();
                if before.is_none_or(|before| before.meta.labels != labels) {
                    self.dirty.pods.extend(self.pods.of_namespace(&name));
                }
            }
            Object::Node(node) => {
                let name = node.meta.name.clone();
                self.put_node(&name, Some(node));
            }
            Object::PersistentVolume(volume) => {
                let name = volume.meta.name.clone();
                self.facts.set_volume(*volume);
                self.mark_volume(&name);
            }
            Object::Claim(claim) => {
                self.mark_claim(&claim.meta.namespace, &claim.meta.name);
                self.facts.set_claim(*claim);
            }
            Object::Pod(pod) => self.put_pod(pod, false),
            Object::PodGroup(kind, group) => self.put_group(kind, *group),
            Object::HyperNode(hyper_node) => {
                let name = hyper_node.meta.name.clone();
                self.set_hyper_node(&name, Some(hyper_node));
            }
            Object::Topology(kind, topology) => {
                let name = topology.meta.name.clone();
                self.set_topology(kind, &name, Some(topology));
            }
            Object::Queue(queue) => self.put_queue(*queue),
            Object::ResourceSlice(slice) => {
                let name = slice.meta.name.clone();
                self.dirty.nodes.extend(self.nodes.set_slice(&name, Some(slice)));
            }
            Object::StorageClass(class) => {
                self.facts.set_class(class);
                self.dirty.pods.extend(self.pods.with_claims());
            }
            Object::VolumeAttachment(attachment) => self.put_attachment(attachment),
            Object::Workload(kind, workload) => self.put_workload(kind, *workload),
            Object::DisruptionBudget(budget) => self.put_budget(budget),
            Object::Strange(kind, strange) => self.put_strange(kind, strange),
        }
    }

    /// Takes out an object that is gone.
    pub(super) fn remove(&mut self, kind: Kind, namespace: &str, name: &str) {
        self.strange.remove(&(kind, (namespace.into(), name.into())));
        match kind {
            Kind::CsiDriver => {
                self.facts.remove_driver(name);
                self.mark_unplaced_with_claims();
            }
            Kind::CsiNode => {
                self.nodes.remove_csi(name);
                self.dirty.nodes.insert(name.into());
            }
            Kind::StorageCapacity => {
                self.facts.remove_capacity(namespace, name);
                self.mark_unplaced_with_claims();
            }
            Kind::DeviceClass => {
                self.facts.remove_device_class(name);
                self.mark_unplaced();
            }
            Kind::Namespace => {
                self.namespaces.remove(name);
                self.dirty.pods.extend(self.pods.of_namespace(name));
            }
            Kind::Node => {
                if self.nodes.get(name).is_some() {
                    self.put_node(name, None);
                }
            }
            Kind::PersistentVolume => {
                self.facts.remove_volume(name);
                self.mark_volume(name);
            }
            Kind::Claim => {
                self.facts.remove_claim(namespace, name);
                self.mark_claim(namespace, name);
            }
            Kind::Pod => {
                if let Some(slot) = self.pods.find(namespace, name) {
                    self.drop_pod(slot);
                }
            }
            Kind::PodGroup | Kind::CoschedulingGroup | Kind::VolcanoGroup | Kind::KaiGroup => {
                self.remove_group(kind, namespace, name);
            }
            Kind::HyperNode => self.set_hyper_node(name, None),
            Kind::KueueTopology | Kind::KaiTopology => self.set_topology(kind, name, None),
            Kind::Queue => self.remove_queue(name),
            Kind::ResourceSlice => {
                self.dirty.nodes.extend(self.nodes.set_slice(name, None));
            }
            Kind::StorageClass => {
                self.facts.remove_class(name);
                self.dirty.pods.extend(self.pods.with_claims());
            }
            Kind::VolumeAttachment => self.remove_attachment(name),
            Kind::Workload(kind) => self.remove_workload(kind, namespace, name),
            Kind::DisruptionBudget => self.remove_budget(namespace, name),
        }
    }

    /// What is kept of an object.
    pub(super) fn stored(&self, kind: Kind, namespace: &str, name: &str) -> Option<&Meta> {
        if !self.strange.is_empty() {
            let key = (kind, (Box::from(namespace), Box::from(name)));
            if let Some(strange) = self.strange.get(&key) {
                return Some(&strange.meta);
            }
        }
        match kind {
            Kind::CsiDriver => self.facts.driver(name).map(|object| &object.meta),
            Kind::CsiNode => self.nodes.csi(name).map(|object| &object.meta),
            Kind::StorageCapacity => {
                self.facts.capacity(namespace, name).map(|object| &object.meta)
            }
            Kind::DeviceClass => self.facts.device_class(name).map(|object| &object.meta),
            Kind::Namespace => self.namespaces.get(name).map(|object| &object.meta),
            Kind::Node => self.nodes.get(name).map(|object| &object.meta),
            Kind::PersistentVolume => self.facts.volume(name).map(|object| &object.meta),
            Kind::Claim => self.facts.claim(namespace, name).map(|object| &object.meta),
            Kind::Pod => {
                let slot = self.pods.find(namespace, name)?;
                Some(&self.pods.get(slot).pod.meta)
            }
            Kind::PodGroup | Kind::CoschedulingGroup | Kind::VolcanoGroup | Kind::KaiGroup => {
                self.gangs.group(kind, namespace, name).map(|group| &group.meta)
            }
            Kind::HyperNode => self.network.hyper_nodes.get(name).map(|object| &object.meta),
            Kind::KueueTopology | Kind::KaiTopology => {
                self.network.topologies.get(&(kind, name.into())).map(|object| &object.meta)
            }
            Kind::Queue => self.queues.get(name).map(|object| &object.meta),
            Kind::ResourceSlice => self.nodes.slice(name).map(|object| &object.meta),
            Kind::StorageClass => self.facts.class(name).map(|object| &object.meta),
            Kind::VolumeAttachment => self.attachments.get(name).map(|object| &object.meta),
            Kind::Workload(kind) => {
                self.gangs.workload(kind, namespace, name).map(|object| &object.meta)
            }
            Kind::DisruptionBudget => self.budgets.meta(namespace, name),
        }
    }

    /// Names of everything of a kind.
    pub(super) fn names(&self, kind: Kind) -> Vec<Key> {
        let of = |meta: &Meta| (meta.namespace.clone(), meta.name.clone());
        let cluster = |name: &str| (Box::default(), name.into());
        let mut names: Vec<Key> = match kind {
            Kind::CsiDriver => self.facts.drivers().map(|object| of(&object.meta)).collect(),
            Kind::CsiNode => self.nodes.csi_names().map(cluster).collect(),
            Kind::StorageCapacity => {
                self.facts.capacities().map(|object| of(&object.meta)).collect()
            }
            Kind::DeviceClass => {
                self.facts.device_classes().map(|object| of(&object.meta)).collect()
            }
            Kind::Namespace => self.namespaces.keys().map(|name| cluster(name)).collect(),
            Kind::Node => self.nodes.names().map(cluster).collect(),
            Kind::PersistentVolume => self.facts.volumes().map(|object| of(&object.meta)).collect(),
            Kind::Claim => self.facts.claims().map(|object| of(&object.meta)).collect(),
            Kind::Pod => {
                self.pods.in_order().map(|slot| of(&self.pods.get(slot).pod.meta)).collect()
            }
            Kind::PodGroup | Kind::CoschedulingGroup | Kind::VolcanoGroup | Kind::KaiGroup => {
                self.gangs.groups(kind).map(|group| of(&group.meta)).collect()
            }
            Kind::HyperNode => self.network.hyper_nodes.names().map(cluster).collect(),
            Kind::KueueTopology | Kind::KaiTopology => {
                let all = self.network.topologies.keys();
                all.filter(|(of, _)| *of == kind).map(|(_, name)| cluster(name)).collect()
            }
            Kind::Queue => self.queues.names().map(cluster).collect(),
            Kind::ResourceSlice => self.nodes.slice_names().map(cluster).collect(),
            Kind::StorageClass => self.facts.classes().map(|object| of(&object.meta)).collect(),
            Kind::VolumeAttachment => self.attachments.names().map(cluster).collect(),
            Kind::Workload(kind) => self.gangs.workload_names(kind).collect(),
            Kind::DisruptionBudget => self.budgets.names().collect(),
        };
        let strange = self.strange.keys().filter(|(of, _)| *of == kind);
        names.extend(strange.map(|(_, key)| key.clone()));
        names
    }

    /// An object that cannot be read counts as gone; of a pod its name and node are kept.
    fn put_strange(&mut self, kind: Kind, strange: Box<Strange>) {
        let meta = strange.meta.clone();
        if kind == Kind::Pod {
            let pod = Pod { meta, node: strange.node.clone(), ..Pod::default() };
            self.put_pod(Arc::new(pod), true);
        } else {
            self.remove(kind, &meta.namespace, &meta.name);
            let key = (meta.namespace.clone(), meta.name.clone());
            self.strange.insert((kind, key), strange.clone());
        }
        self.reports.push(Report::Strange(strange));
    }

    fn put_pod(&mut self, pod: Arc<Pod>, strange: bool) {
        let (namespace, name) = (&pod.meta.namespace, &pod.meta.name);
        let mut known = self.pods.find(namespace, name);
        if let Some(slot) = known
            && self.pods.get(slot).pod.meta.uid != pod.meta.uid
        {
            self.drop_pod(slot);
            known = None;
        }
        let was_strange = known.is_some_and(|slot| self.pods.get(slot).strange);
        let node = pod.node.clone();
        let slot = match known {
            Some(slot) => {
                let before = self.pods.replace(slot, pod, strange);
                self.note_let_go(&before, slot);
                slot
            }
            None => self.pods.insert(PodEntry::new(pod, strange)),
        };
        if (strange || was_strange) && !node.is_empty() {
            self.dirty.nodes.insert(node);
        }
        self.use_selectors(slot);
        self.join_gang(slot);
        self.dirty.pods.insert(slot);
    }

    /// Forgets a pod; what the engine was told of it is taken back first.
    fn drop_pod(&mut self, slot: Slot) {
        let mut events = Events::default();
        self.tell_nothing(slot, &mut events);
        self.farewell.append(&mut events.freed);
        self.release_selectors(slot, BTreeSet::new());
        self.leave_gang(slot);
        self.dirty.pods.remove(&slot);
        self.set_id(slot, None, false);
        let entry = self.pods.remove(slot);
        if entry.strange && !entry.pod.node.is_empty() {
            self.dirty.nodes.insert(entry.pod.node.clone());
        }
    }

    /// Notes the selectors that are in use because of a pod.
    fn use_selectors(&mut self, slot: Slot) {
        let entry = self.pods.get(slot);
        let takes_part = self.takes_part(entry);
        let mut wanted: BTreeSet<Selector> = BTreeSet::new();
        if takes_part {
            wanted.extend(asked_by(&entry.pod));
        }
        if takes_part || (self.is_elsewhere(&entry.pod) && !entry.strange) {
            let terms = anti_affinity_terms(&entry.pod).iter();
            wanted.extend(terms.map(|term| Selector::Carriers(term.clone())));
        }
        self.release_selectors(slot, wanted);
    }

    /// Replaces the selectors in use because of a pod; whoever a new one, or one that is gone, is
    /// about may stand differently.
    fn release_selectors(&mut self, slot: Slot, wanted: BTreeSet<Selector>) {
        let before = std::mem::take(&mut self.pods.get_mut(slot).uses);
        let same = before.len() == wanted.len()
            && before.iter().all(|number| wanted.contains(&**self.registry.selector(*number)));
        if same {
            self.pods.get_mut(slot).uses = before;
            return;
        }
        let mut now: Vec<Use> = Vec::with_capacity(wanted.len());
        for selector in wanted {
            let (number, is_first) = self.registry.add(selector);
            now.push(number);
            if is_first {
                let selector = self.registry.selector(number).clone();
                self.mark_about(&selector);
            }
        }
        for number in before {
            if let Some(selector) = self.registry.release(number) {
                self.mark_about(&selector);
            }
        }
        self.pods.get_mut(slot).uses = now.into();
    }

    /// Marks the pods that a selector is about.
    pub(super) fn mark_about(&mut self, selector: &Selector) {
        if !self.is_ready {
            return;
        }
        let pods = &self.pods;
        let namespaces = match selector {
            Selector::Carriers(term) => term.pods.only_namespaces(),
            _ => selector.namespaces(),
        };
        let mut candidates: Vec<Slot> = match namespaces {
            Some(names) => names.iter().flat_map(|name| pods.of_namespace(name)).collect(),
            None => pods.in_order().collect(),
        };
        candidates.retain(|slot| {
            let entry = pods.get(*slot);
            let namespace = self.namespaces.get(&entry.pod.meta.namespace);
            let labels = namespace.map(|namespace| &namespace.meta.labels);
            match selector {
                Selector::Carriers(term) => {
                    entry.pod.node.is_empty() && is_kept_away(term, &entry.pod, labels)
                }
                _ => selector.counts(&entry.pod, labels),
            }
        });
        self.dirty.pods.extend(candidates);
    }

    /// Marks pods of ours without a node.
    pub(super) fn mark_unplaced(&mut self) {
        let unplaced = self.pods.in_order().filter(|slot| self.is_unplaced(*slot));
        let unplaced: Vec<Slot> = unplaced.collect();
        self.dirty.pods.extend(unplaced);
    }

    fn mark_unplaced_with_claims(&mut self) {
        self.dirty.pods.extend(self.pods.unplaced_with_claims());
    }

    fn is_unplaced(&self, slot: Slot) -> bool {
        let pod = &self.pods.get(slot).pod;
        pod.node.is_empty() && self.is_ours(pod)
    }

    fn mark_claim(&mut self, namespace: &str, name: &str) {
        self.dirty.pods.extend(self.pods.with_claim(namespace, name));
    }

    /// Marks the pods whose claims are bound to a volume, those that could take it, and attachments
    /// of it.
    fn mark_volume(&mut self, name: &str) {
        let claims = self.facts.claims_of(name);
        let users: Vec<Slot> = claims
            .flat_map(|claim| self.pods.with_claim(&claim.meta.namespace, &claim.meta.name))
            .collect();
        self.dirty.pods.extend(users);
        self.dirty.attachments.extend(self.attachments.of_volume(name).cloned());
        self.mark_unplaced_with_claims();
    }
}

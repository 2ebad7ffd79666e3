//! Objects put in and taken out, and which pods, nodes and gangs it concerns. Pods are not here:
//! what the engine knows of them changes with them.

use std::collections::BTreeSet;
use std::sync::Arc;

use dovetail_objects::{Kind, Namespace, Node, Object, WorkloadKind};

use super::Objects;
use super::descriptions::{WorkloadNoted, job_of};
use super::pods::Slot;
use super::registry::Use;
use dovetail_translate::counting::{CounterSelector, anti_affinity_terms, asked_by, is_kept_away};
use dovetail_translate::gang::{GangName, made_by};
use dovetail_translate::{REPLICAS_AS_GPUS, SharedAs};

impl Objects {
    /// Takes in an object that is there or different.
    pub(crate) fn put(&mut self, object: Object) {
        let rules = &self.settings.rules;
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
                self.dirty.all_nodes(&self.nodes);
            }
            Object::Namespace(namespace) => self.put_namespace(namespace),
            Object::Node(node) => self.put_node(&node.meta.name.clone(), Some(node)),
            Object::PersistentVolume(volume) => {
                let name = volume.meta.name.clone();
                self.facts.set_volume(*volume);
                self.mark_volume(&name);
            }
            Object::Claim(claim) => {
                let (namespace, name) = (&claim.meta.namespace, &claim.meta.name);
                self.dirty.pods.extend(self.pods.with_claim(namespace, name));
                self.facts.set_claim(*claim);
            }
            Object::PodGroup(kind, group) => {
                let noted = self.descriptions.put_group(kind, *group);
                self.mark_gang(noted);
            }
            Object::HyperNode(hyper_node) => {
                let name = hyper_node.meta.name.clone();
                self.network.hyper_nodes.set(&name, Some(hyper_node));
                self.place_nodes();
            }
            Object::Topology(kind, topology) => {
                let name = topology.meta.name.clone();
                let has_turned = self.network.set_topology(kind, &name, Some(topology));
                self.note_levels(has_turned);
            }
            Object::Queue(queue) => self.queues.put(*queue),
            Object::Reservation(object) => self.reservations.put(*object, &self.facts, rules),
            Object::ResourceSlice(slice) => {
                let name = slice.meta.name.clone();
                self.dirty.nodes.extend(self.nodes.set_slice(&name, Some(*slice)));
            }
            Object::StorageClass(class) => {
                self.facts.set_class(class);
                self.dirty.pods.extend(self.pods.with_claims());
            }
            Object::VolumeAttachment(attachment) => self.attachments.put(attachment),
            Object::Workload(kind, workload) => {
                let meta = workload.meta.clone();
                let noted = self.descriptions.put_workload(kind, *workload);
                self.mark_workload(kind, &meta.namespace, &meta.name, &noted);
            }
            Object::DisruptionBudget(budget) => {
                let turned = self.budgets.put(budget, &mut self.registry);
                turned.iter().for_each(|selector| self.mark_about(selector));
            }
            // With pods, device claims and taint rules more changes than objects.
            _ => {}
        }
    }

    /// Takes out an object that is gone.
    pub(crate) fn remove(&mut self, kind: Kind, namespace: &str, name: &str) {
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
                self.dirty.all_nodes(&self.nodes);
            }
            Kind::Namespace => {
                self.namespaces.remove(name);
                self.dirty.pods.extend(self.pods.of_namespace(name));
            }
            Kind::Node if self.nodes.get(name).is_some() => self.put_node(name, None),
            Kind::PersistentVolume => {
                self.facts.remove_volume(name);
                self.mark_volume(name);
            }
            Kind::Claim => {
                self.facts.remove_claim(namespace, name);
                self.dirty.pods.extend(self.pods.with_claim(namespace, name));
            }
            Kind::PodGroup | Kind::CoschedulingGroup | Kind::VolcanoGroup | Kind::KaiGroup => {
                self.receipts.forget(kind, namespace, name);
                let noted = self.descriptions.remove_group(kind, namespace, name);
                self.mark_gang(noted.map(|gang| (gang, true)));
            }
            Kind::HyperNode => {
                self.network.hyper_nodes.set(name, None);
                self.place_nodes();
            }
            Kind::KueueTopology | Kind::KaiTopology => {
                let has_turned = self.network.set_topology(kind, name, None);
                self.note_levels(has_turned);
            }
            Kind::Queue => self.queues.remove(name),
            Kind::Reservation => self.reservations.remove(name),
            Kind::ResourceSlice => {
                self.dirty.nodes.extend(self.nodes.set_slice(name, None));
            }
            Kind::StorageClass => {
                self.facts.remove_class(name);
                self.dirty.pods.extend(self.pods.with_claims());
            }
            Kind::VolumeAttachment => self.attachments.remove(name),
            Kind::Workload(kind) => {
                self.receipts.forget(Kind::Workload(kind), namespace, name);
                let noted = self.descriptions.remove_workload(kind, namespace, name);
                self.mark_workload(kind, namespace, name, &noted);
            }
            Kind::DisruptionBudget => {
                let turned = self.budgets.remove(namespace, name, &mut self.registry);
                turned.iter().for_each(|selector| self.mark_about(selector));
            }
            // More than objects change with it, or something else.
            Kind::Node | Kind::Pod | Kind::DeviceClaim | Kind::DeviceTaintRule => {}
        }
    }

    fn put_namespace(&mut self, namespace: Namespace) {
        let name = namespace.meta.name.clone();
        let before = self.namespaces.insert(name.clone(), namespace);
        let labels = &self.namespaces[&name].meta.labels;
        if before.is_none_or(|before| before.meta.labels != *labels) {
            self.dirty.pods.extend(self.pods.of_namespace(&name));
        }
    }

    fn put_node(&mut self, name: &str, object: Option<Box<Node>>) {
        let offers = self.nodes.put(name, object);
        if self.is_ready {
            self.place_node(name);
        }
        let known = &mut self.facts.offers;
        let mut turned: Vec<&str> = Vec::new();
        turned.extend(offers.now.iter().map(|name| &**name).filter(|name| known.add(name)));
        turned.extend(offers.before.iter().map(|name| &**name).filter(|name| known.remove(name)));
        if turned.iter().any(|name| self.facts.device_class_for(name).is_some()) {
            self.mark_unplaced();
        }
        if turned.contains(&REPLICAS_AS_GPUS) {
            // Who shares GPUs concerns all pods that request some, from now on or no longer.
            let requests_gpus =
                |slot: &Slot| SharedAs::Gpus.is_requested(&self.pods.get(*slot).pod);
            let concerned: Vec<Slot> = self.pods.in_order().filter(requests_gpus).collect();
            for slot in concerned {
                self.use_selectors(slot);
                self.dirty.pods.insert(slot);
            }
        }
        self.dirty.nodes.insert(name.into());
    }

    /// Notes where a node is that is new, different or gone.
    fn place_node(&mut self, name: &str) {
        let placed = self.network.place_node(name, &mut self.nodes);
        if placed.is_elsewhere {
            self.dirty.nodes.insert(name.into());
        }
        if placed.concerns_gangs {
            self.mark_gangs();
        }
    }

    /// Notes where all nodes are, once all are known: what says it has changed.
    pub(crate) fn place_nodes(&mut self) {
        if self.is_ready {
            let names: Vec<Box<str>> = self.nodes.names().map(Box::from).collect();
            names.iter().for_each(|name| self.place_node(name));
        }
    }

    /// Other levels concern all nodes and gangs.
    fn note_levels(&mut self, has_turned: bool) {
        if has_turned {
            self.mark_gangs();
            self.place_nodes();
        }
    }

    /// Notes the selectors that are in use because of a pod.
    pub(crate) fn use_selectors(&mut self, slot: Slot) {
        let entry = self.pods.get(slot);
        let takes_part = self.takes_part(entry);
        let mut wanted: BTreeSet<CounterSelector> = BTreeSet::new();
        if takes_part {
            wanted.extend(asked_by(&entry.pod, &self.facts, &self.settings.rules));
        }
        if takes_part || (self.is_elsewhere(&entry.pod) && !entry.is_unreadable) {
            let terms = anti_affinity_terms(&entry.pod).iter();
            wanted.extend(terms.map(|term| CounterSelector::Carriers(term.clone())));
        }
        self.replace_selectors(slot, wanted);
    }

    /// Replaces the selectors in use because of a pod; what a new one, or one that is gone, is
    /// about is marked.
    pub(crate) fn replace_selectors(&mut self, slot: Slot, wanted: BTreeSet<CounterSelector>) {
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
                let selector = Arc::clone(self.registry.selector(number));
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

    /// A pod is no member of its gang any more.
    pub(crate) fn leave_gang(&mut self, slot: Slot) {
        let entry = self.pods.get_mut(slot);
        entry.wish = None;
        let Some(name) = entry.gang.take() else { return };
        self.members.leave(&name, slot);
        self.dirty.gangs.insert(name);
    }

    /// Marks the pods that a selector is about.
    fn mark_about(&mut self, selector: &CounterSelector) {
        if !self.is_ready {
            return;
        }
        let pods = &self.pods;
        let namespaces = match selector {
            CounterSelector::Carriers(term) => term.pods.only_namespaces(),
            _ => selector.namespaces(),
        };
        let mut candidates: Vec<Slot> = match namespaces {
            Some(names) => names.iter().flat_map(|name| pods.of_namespace(name)).collect(),
            None => pods.in_order().collect(),
        };
        candidates.retain(|slot| {
            let entry = pods.get(*slot);
            let labels = self.namespace_labels(&entry.pod);
            match selector {
                CounterSelector::Carriers(term) => {
                    entry.pod.node.is_empty() && is_kept_away(term, &entry.pod, labels)
                }
                _ => selector.counts(&entry.pod, labels),
            }
        });
        self.dirty.pods.extend(candidates);
    }

    /// Marks pods of ours without a node.
    pub(crate) fn mark_unplaced(&mut self) {
        let is_unplaced = |slot: &Slot| {
            let pod = &self.pods.get(*slot).pod;
            pod.node.is_empty() && self.is_ours(pod)
        };
        let unplaced: Vec<Slot> = self.pods.in_order().filter(is_unplaced).collect();
        self.dirty.pods.extend(unplaced);
    }

    fn mark_unplaced_with_claims(&mut self) {
        self.dirty.pods.extend(self.pods.unplaced_with_claims());
    }

    /// Marks the pods whose claims are bound to a volume, those that could take it, and attachments
    /// of it.
    fn mark_volume(&mut self, name: &str) {
        let Self { facts, pods, dirty, .. } = self;
        dirty.pods.extend(
            facts
                .claims_of(name)
                .flat_map(|claim| pods.with_claim(&claim.meta.namespace, &claim.meta.name)),
        );
        self.attachments.mark_volume(name);
        self.mark_unplaced_with_claims();
    }

    pub(crate) fn mark_gangs(&mut self) {
        self.dirty.gangs.extend(self.members.names().map(Arc::clone));
    }

    /// Marks a gang, with its pods or without.
    fn mark_gang(&mut self, noted: Option<(GangName, bool)>) {
        let Some((gang, with_pods)) = noted else { return };
        let Some(name) = self.members.name(&gang) else { return };
        self.dirty.gangs.insert(Arc::clone(name));
        if with_pods {
            self.dirty.pods.extend(self.members.of(&gang));
        }
    }

    /// Marks what a workload concerns.
    fn mark_workload(
        &mut self,
        kind: WorkloadKind,
        namespace: &str,
        name: &str,
        noted: &WorkloadNoted,
    ) {
        let Self { pods, members, dirty, .. } = self;
        let gangs = members.gangs_of(kind, namespace, name);
        // A label of the workload may name their queue.
        dirty.pods.extend(gangs.iter().flat_map(|gang| members.of(gang)));
        dirty.gangs.extend(gangs);
        let of_namespace = || pods.of_namespace(namespace);
        // What a Job says may concern pods that are in no gang of it.
        if noted.concerns_others && kind == WorkloadKind::Job {
            let of_job = |slot: &Slot| job_of(&pods.get(*slot).pod) == Some(name);
            dirty.pods.extend(of_namespace().filter(of_job));
        }
        // All pods that a workload made are concerned when it is suspended or resumed.
        if noted.is_turned {
            let is_of_it =
                |slot: &Slot| made_by(&pods.get(*slot).pod).any(|made| made == (kind, name));
            dirty.pods.extend(of_namespace().filter(is_of_it));
        }
    }
}

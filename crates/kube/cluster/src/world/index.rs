//! The parts of the index, and what changes several of them: objects come and go, and events
//! report the difference to the engine.

use std::collections::BTreeSet;
use std::sync::Arc;

use dovetail_model::{Event, JobId, PodId};
use dovetail_objects::{Kind, Object, Pod, Strange};

use super::feed::Feed;
use super::feed::running::Running;
use super::gangs::Gangs;
use super::key::{ClaimKey, PodKey};
use super::objects::Objects;
use super::objects::device_changes::DeviceChanges;
use super::objects::listing::Key;
use super::objects::pods::{PodEntry, PodPause, Slot};
use super::readings::device_claims::is_any_to_ask_again;
use super::report::{ObjectReport, names_of};
use dovetail_translate::gang::gang_of;
use dovetail_translate::unreadable_run_time;

/// Facts, and what was reported to the engine.
#[derive(Debug, Default)]
pub(crate) struct Index {
    pub(crate) objects: Objects,
    pub(crate) feed: Feed,
    pub(crate) gangs: Gangs,
    /// Pods without the condition any more that the server refused to evict them.
    pub(crate) evictable_again: Vec<PodKey>,
    /// Pods that say since lately that their own scheduler is about to stop them.
    pub(crate) marked: Vec<PodKey>,
}

impl Index {
    /// Takes in an object that is there or different.
    pub(crate) fn put(&mut self, object: Object) {
        let meta = object.meta();
        self.objects.unreadable.remove(object.kind(), &meta.namespace, &meta.name);
        match object {
            Object::Pod(pod) => self.put_pod(pod, false),
            Object::Strange(kind, strange) => self.put_unreadable(kind, strange),
            object => {
                DeviceChanges::of(&mut self.objects).note(&object);
                self.objects.receipts.take(object.meta());
                self.objects.put(object);
            }
        }
    }

    /// Takes out an object that is gone.
    pub(crate) fn remove(&mut self, kind: Kind, namespace: &str, name: &str) {
        self.objects.unreadable.remove(kind, namespace, name);
        match kind {
            Kind::Pod => {
                if let Some(slot) = self.objects.pods.find(namespace, name) {
                    self.drop_pod(slot);
                }
            }
            kind => {
                DeviceChanges::of(&mut self.objects).note_gone(kind, namespace, name);
                self.objects.remove(kind, namespace, name);
            }
        }
    }

    /// Takes out all of these.
    pub(crate) fn remove_all(&mut self, kind: Kind, gone: Vec<Key>) {
        for (namespace, name) in gone {
            self.remove(kind, &namespace, &name);
        }
    }

    /// The server has the kind of queues, or does not. Without it, all pods are in the one queue
    /// that there is then; with it, what runs is in the queue that it names.
    pub(crate) fn note_kind(&mut self, kind: Kind, is_absent: bool) {
        let Self { objects, feed, .. } = self;
        if kind != Kind::Queue || !objects.queues.set_absent(is_absent) {
            return;
        }
        if is_absent {
            feed.counted.forget_missing();
        }
        if objects.is_ready || !is_absent {
            feed.counted.count_anew(objects);
        }
    }

    /// An object that cannot be read counts as gone; of a pod its name and node are kept.
    fn put_unreadable(&mut self, kind: Kind, strange: Box<Strange>) {
        let meta = strange.meta.clone();
        if kind == Kind::Pod {
            let pod = Pod { meta, node: strange.node.clone(), ..Pod::default() };
            self.put_pod(Arc::new(pod), true);
        } else {
            self.remove(kind, &meta.namespace, &meta.name);
            self.objects.unreadable.put(kind, strange.clone());
        }
        self.feed.reports.push(ObjectReport::Strange(strange));
    }

    fn put_pod(&mut self, pod: Arc<Pod>, is_unreadable: bool) {
        let mut known = self.objects.pods.find(&pod.meta.namespace, &pod.meta.name);
        if let Some(slot) = known
            && self.objects.pods.get(slot).pod.meta.uid != pod.meta.uid
        {
            self.drop_pod(slot);
            known = None;
        }
        self.report_run_time(known, &pod);
        let objects = &mut self.objects;
        let was_odd = known.is_some_and(|slot| objects.pods.get(slot).is_odd());
        let node = pod.node.clone();
        let is_marked = pod.preemption.is_own_target;
        let slot = match known {
            Some(slot) => {
                let before = objects.pods.replace(slot, pod, is_unreadable);
                if is_marked && !before.preemption.is_own_target {
                    self.marked.push(PodKey::of(&objects.pods.get(slot).pod));
                }
                let pod = &objects.pods.get(slot).pod;
                let is_kept = pod.preemption.kept_ms.is_some() || pod.preemption.is_disrupted;
                if before.preemption.kept_ms.is_some() && !is_kept {
                    self.evictable_again.push(PodKey::of(pod));
                }
                slot
            }
            None => objects.pods.insert(PodEntry::new(pod, is_unreadable)),
        };
        let uid = objects.pods.get(slot).pod.meta.uid.clone();
        DeviceChanges::of(objects).pod_changed(&uid, &node);
        if objects.pods.extended.take_newly_asked() {
            objects.dirty.all_nodes(&objects.nodes);
        }
        if (was_odd || objects.pods.get(slot).is_odd()) && !node.is_empty() {
            objects.dirty.nodes.insert(node);
        }
        objects.use_selectors(slot);
        self.join_gang(slot);
        self.objects.dirty.pods.insert(slot);
    }

    /// Says of a pod of ours that its annotations cannot be read, if that is new. Pods that ran
    /// before this leader have said it to another one.
    fn report_run_time(&mut self, known: Option<Slot>, pod: &Pod) {
        if !pod.node.is_empty() && known.is_none() || !self.objects.is_ours(pod) {
            return;
        }
        let Some(problem) = unreadable_run_time(pod) else { return };
        let before = known.and_then(|slot| unreadable_run_time(&self.objects.pods.get(slot).pod));
        if before.as_ref() != Some(&problem) {
            let pod = PodKey::of(pod);
            self.feed.reports.push(ObjectReport::RunTimeUnreadable { pod, problem });
        }
    }

    /// Forgets a pod; what was reported of it to the engine is taken back first.
    fn drop_pod(&mut self, slot: Slot) {
        let Self { objects, feed, .. } = self;
        feed.release(objects, slot);
        objects.replace_selectors(slot, BTreeSet::new());
        objects.leave_gang(slot);
        objects.dirty.pods.remove(&slot);
        objects.pods.set_id(slot, None, false);
        let entry = objects.pods.remove(slot);
        DeviceChanges::of(objects).pod_gone(&entry.pod);
        if entry.is_odd() && !entry.pod.node.is_empty() {
            objects.dirty.nodes.insert(entry.pod.node.clone());
        }
    }

    /// Notes the gang of a pod that is new or different.
    fn join_gang(&mut self, slot: Slot) {
        let Self { objects, feed, gangs, .. } = self;
        let entry = objects.pods.get(slot);
        let wanted = match entry.is_unreadable {
            true => None,
            // Pods of two gangs are refused where they are read.
            false => gang_of(&entry.pod).ok().flatten(),
        };
        if wanted.as_ref() == entry.gang.as_deref() {
            return;
        }
        objects.leave_gang(slot);
        let Some(wanted) = wanted else { return };
        let meta = &objects.pods.get(slot).pod.meta;
        // What the first list shows has been there.
        let appeared_ms = match objects.is_ready {
            true => objects.now_ms,
            false => meta.created_ms.min(objects.now_ms),
        };
        let (name, is_new) = objects.members.join(wanted, (slot, meta), appeared_ms);
        if is_new {
            gangs.add(Arc::clone(&name));
        }
        if is_new && objects.is_ready {
            gangs.reserve_job(&name, feed);
        }
        objects.pods.get_mut(slot).gang = Some(name);
    }

    /// Compares what is marked with what was reported, and reports the difference.
    pub(crate) fn settle(&mut self) -> Vec<Event> {
        let Self { objects, feed, .. } = self;
        if !objects.is_ready {
            return Vec::new();
        }
        feed.events.freed.extend(objects.budgets.take_events());
        feed.events.freed.extend(objects.reservations.take_events());
        if is_any_to_ask_again(objects) {
            objects.dirty.pods.extend(objects.pods.claimants.all());
        }
        objects.dirty.nodes.extend(objects.device_claims.surveys.take_to_label());
        self.settle_queues();
        self.settle_levels_and_nodes();
        let Self { objects, feed, .. } = self;
        for slot in std::mem::take(&mut objects.dirty.pods) {
            feed.settle_pod(objects, slot);
        }
        self.settle_rest();
        self.label_nodes();
        self.feed.take_events()
    }

    /// Says of nodes what they have devices for, where pods asked that no pod had asked before.
    fn label_nodes(&mut self) {
        let Self { objects, feed, .. } = self;
        let nodes = objects.device_claims.surveys.take_to_label();
        if !nodes.is_empty() {
            objects.dirty.nodes.extend(nodes);
            feed.settle_nodes(objects);
        }
    }

    /// The state of everything when the first lists are complete; the engine learns it by the
    /// snapshot.
    pub(crate) fn open(&mut self) {
        self.objects.is_ready = true;
        self.feed.events.unheard = true;
        self.settle_queues();
        self.objects.place_nodes();
        self.settle_levels_and_nodes();
        let Self { objects, feed, gangs, .. } = self;
        // All pods are asked about below.
        is_any_to_ask_again(objects);
        let mut slots: Vec<Slot> = std::mem::take(&mut objects.dirty.pods).into_iter().collect();
        let keeps_list_order = objects.settings.keeps_list_order;
        let age = |slot: &Slot| {
            let meta = &objects.pods.get(*slot).pod.meta;
            let name = || (meta.namespace.clone(), meta.name.clone());
            (meta.created_ms, (!keeps_list_order).then(name), *slot)
        };
        slots.sort_by_cached_key(age);
        for slot in slots {
            if let Some(gang) = objects.pods.get(slot).gang.clone() {
                gangs.reserve_job(&gang, feed);
            }
            feed.settle_pod(objects, slot);
        }
        Running { objects, feed }.recognize_gangs();
        self.settle_rest();
        self.label_nodes();
        drop(self.objects.budgets.take_events());
        drop(self.objects.reservations.take_events());
        drop(self.feed.take_events());
    }

    /// Reports which queues are different, and reconsiders all pending pods.
    fn settle_queues(&mut self) {
        let Self { objects, feed, .. } = self;
        if let Some(noted) = feed.counted.settle(objects) {
            feed.note_queues(noted);
            objects.mark_unplaced();
        }
    }

    fn settle_levels_and_nodes(&mut self) {
        let Self { objects, feed, .. } = self;
        // Labels of nodes mean other levels than before.
        if objects.network.settle_labels() {
            objects.mark_gangs();
        }
        feed.settle_nodes(objects);
    }

    fn settle_rest(&mut self) {
        let Self { objects, feed, gangs, .. } = self;
        for gang in std::mem::take(&mut objects.dirty.gangs) {
            gangs.settle(&gang, objects, feed);
        }
        let (held, freed) = objects.attachments.settle(&objects.facts);
        feed.events.held.extend(held);
        feed.events.freed.extend(freed);
        if let Some(noted) = feed.counted.settle_missing(objects) {
            feed.note_queues(noted);
        }
    }

    /// A pod is left alone for a while, or takes part again.
    pub(crate) fn pause_pod(&mut self, pod: &PodKey, pause: Option<PodPause>) -> Vec<Event> {
        let objects = &mut self.objects;
        let Some(slot) = objects.pods.by_key(pod) else { return Vec::new() };
        objects.pods.get_mut(slot).held_back = pause;
        objects.dirty.pods.insert(slot);
        self.settle()
    }

    /// Other pods of these jobs may be preempted than before.
    pub(crate) fn note_protection(&mut self, jobs: BTreeSet<JobId>) -> Vec<Event> {
        let Self { objects, feed, .. } = self;
        Running { objects, feed }.note_protection(jobs);
        self.settle()
    }

    /// Nodes are decided for these pods, and they start when these devices are ready.
    pub(crate) fn wait_for_devices(&mut self, pods: &[PodId], devices: &[String]) {
        let known = &self.objects.pods;
        for entry in pods.iter().filter_map(|pod| known.by_id(*pod)).map(|slot| known.get(slot)) {
            let Some(decision) = known.decision_of(entry) else { continue };
            let (pod, node) = (PodKey::of(&entry.pod), decision.bind.node.to_string());
            let devices = devices.to_vec();
            self.feed.reports.push(ObjectReport::WaitsForDevices { pod, devices, node });
        }
    }

    /// A node is decided for a pod, and it waits for volumes there: for those of its `own` claims,
    /// or, if it has none without, for those `of_all` that start with it.
    pub(crate) fn wait_for_volumes(&mut self, pod: PodId, own: &[ClaimKey], of_all: &[ClaimKey]) {
        let pods = &self.objects.pods;
        let Some(entry) = pods.by_id(pod).map(|slot| pods.get(slot)) else { return };
        let Some(node) = pods.decision_of(entry).map(|it| it.bind.node.to_string()) else { return };
        let pod = PodKey::of(&entry.pod);
        self.feed.reports.push(match own.is_empty() {
            false => ObjectReport::WaitsForVolumes { pod, claims: names_of(own), node },
            true => ObjectReport::WaitsForVolumesOfOthers { pod, claims: names_of(of_all), node },
        });
    }
}

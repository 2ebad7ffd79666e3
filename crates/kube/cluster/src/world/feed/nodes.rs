//! What is reported to the engine when a node is different.

use dovetail_model::Event;

use super::Feed;
use crate::world::objects::Objects;
use crate::world::objects::nodes::OddPods;
use crate::world::objects::pods::Slot;
use crate::world::objects::reported::Reported;
use crate::world::readings::extended::supply;

impl Feed {
    /// Reports what is different of the nodes that are marked.
    pub(crate) fn settle_nodes(&mut self, objects: &mut Objects) {
        let nodes = std::mem::take(&mut objects.dirty.nodes);
        nodes.iter().for_each(|name| self.settle_node(objects, name));
        if !nodes.is_empty() {
            self.reports.extend(objects.nodes.note_selection(&objects.settings.rules));
        }
    }

    fn settle_node(&mut self, objects: &mut Objects, name: &str) {
        if let Some(was_reported) = objects.nodes.take_gone(name) {
            if was_reported {
                self.free_gangs_on(objects, name);
                self.events.nodes.push(Event::NodeRemoved { node: name.into() });
                self.forget_what_was_on(objects, name);
            }
            return;
        }
        let there = objects.pods.on_node(name).map(|slot| objects.pods.get(slot));
        let there: Vec<_> = there.filter(|entry| *entry.pod.node == *name).collect();
        let unreadable = there.iter().find(|entry| entry.is_unreadable);
        let of_vgpus =
            there.iter().find(|entry| !entry.pod.is_over() && entry.pod.vgpu().is_some());
        let odd = OddPods {
            unreadable: unreadable.map(|entry| &*entry.pod),
            of_vgpus: of_vgpus.map(|entry| &*entry.pod),
            ignores_vgpus: objects.settings.ignores_vgpus,
        };
        let rules = &objects.settings.rules;
        let by_claims: Vec<_> = supply(objects, name).into_iter().collect();
        let devices_for = objects.device_claims.surveys.labels_of(name);
        let by_devices = (&*by_claims, &*devices_for);
        let reading = objects.nodes.reading(name, &odd, by_devices, rules);
        let Some((node, wrong)) = reading else { return };
        let noted = objects.nodes.note(name, node, wrong);
        self.events.nodes.extend(noted.event);
        self.reports.extend(noted.reports);
        if noted.concerns_pods {
            objects.dirty.pods.extend(objects.pods.on_node(name));
        }
    }

    /// In the engine a job is over when a node it was on is gone. A gang is not: only its pods
    /// there are.
    fn free_gangs_on(&mut self, objects: &Objects, node: &str) {
        let there = objects.pods.on_node(node).map(|slot| objects.pods.get(slot));
        let runs = there.filter(|entry| entry.reported.runs() && entry.reported.is_on(node));
        let in_gangs = runs.filter(|entry| entry.is_in_job).filter_map(|entry| entry.id);
        self.events.freed.extend(in_gangs.map(Event::pod_ended));
    }

    /// In the engine nothing is left of what was on a node that is gone. A pod whose bind may have
    /// taken effect is still decided for it: a node of this name can come back before the watch
    /// shows the pod.
    fn forget_what_was_on(&mut self, objects: &mut Objects, node: &str) {
        for slot in objects.pods.on_node(node).collect::<Vec<Slot>>() {
            let entry = objects.pods.get(slot);
            if entry.reported.node().is_some() {
                let decision = objects.pods.decision_of(entry);
                if !decision.is_some_and(|decision| decision.stage.may_have_bound()) {
                    objects.pods.unassign(slot);
                }
                self.note(objects, slot, Reported::Nothing);
            }
            objects.pods.index(slot);
            objects.dirty.pods.insert(slot);
        }
        objects.attachments.forget_node(node);
    }
}

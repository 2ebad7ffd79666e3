//! Nodes for many pods that request several instances, before any plan is made: where all of them
//! have room beside each other, one plan is enough for all.

use std::collections::BTreeMap;

use dovetail_model::{Layout, MigTable};

use crate::fleet::Fleet;
use crate::node_room::NodeRoom;
use crate::waiting::SeveralInstances;

/// What nodes have beside the pods with several instances that a plan serves, and beside those that
/// are placed here.
pub(crate) struct BatchRoom<'f> {
    fleet: &'f Fleet,
    room: &'f NodeRoom,
    /// Instances of these pods on each node, by profile.
    there: Vec<BTreeMap<String, u32>>,
    /// CPU, memory, disk and pod slots that these pods leave on each node.
    free: Vec<Vec<i64>>,
    /// Whether so many GPUs of a table, all of which may change, surely have some instances.
    known: BTreeMap<(usize, usize, BTreeMap<String, u32>), bool>,
}

impl<'f> BatchRoom<'f> {
    pub(crate) fn of(fleet: &'f Fleet, room: &'f NodeRoom) -> Self {
        let mut free = fleet.free.clone();
        for (node, pods, count) in fleet.pinned.instances() {
            take(&mut free[node], &pods.each, count);
        }
        let there = fleet.pinned.by_node(free.len());
        Self { fleet, room, there, free, known: BTreeMap::new() }
    }

    /// Nodes for up to so many equal pods: as many as fit on the first of them that could have
    /// their instances, then on the next.
    pub(crate) fn place(&mut self, pod: &SeveralInstances, most: usize) -> Vec<usize> {
        let mut nodes = Vec::new();
        for node in self.room.candidates_beside(self.fleet, pod, &self.there) {
            while nodes.len() < most && self.takes(pod, node) {
                nodes.push(node);
            }
        }
        nodes
    }

    /// Takes what one pod needs from a node; false if it does not fit there.
    fn takes(&mut self, pod: &SeveralInstances, node: usize) -> bool {
        let mut amounts = self.free[node].iter().zip(&pod.each);
        if amounts.any(|(free, each)| *each > 0 && free < each) {
            return false;
        }
        let mut all = self.there[node].clone();
        for (profile, count) in &pod.instances {
            let known = all.entry(profile.clone()).or_default();
            *known = known.saturating_add(*count);
        }
        if !self.room.has_idle(node, &all) && !self.has_layouts(node, &all) {
            return false;
        }
        self.there[node] = all;
        take(&mut self.free[node], &pod.each, 1);
        true
    }

    /// Whether the GPUs of a node that may change as a whole surely have some instances.
    fn has_layouts(&mut self, node: usize, instances: &BTreeMap<String, u32>) -> bool {
        let (table, gpus) = self.room.changing[node];
        if gpus == 0 || !instances.keys().all(|profile| self.fleet.may_create(profile)) {
            return false;
        }
        let key = (table, gpus, instances.clone());
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let has_them = has_layouts(&self.fleet.world.tables[table], gpus, instances);
        self.known.insert(key, has_them);
        has_them
    }
}

/// Whether the largest instances first, each on the first GPU that has room, all find one.
fn has_layouts(table: &MigTable, gpus: usize, instances: &BTreeMap<String, u32>) -> bool {
    let mut order: Vec<usize> = Vec::new();
    for (profile, count) in instances {
        let Some(place) = table.profile(profile) else { return false };
        let most = usize::from(table.memory_slices) * gpus;
        if *count as usize > most {
            return false;
        }
        order.extend(std::iter::repeat_n(place, *count as usize));
    }
    order.sort_by_key(|place| (std::cmp::Reverse(table.profiles[*place].memory_slices), *place));
    let mut layouts: Vec<Layout> = vec![vec![0; table.profiles.len()]; gpus];
    order.into_iter().all(|place| {
        layouts.iter_mut().any(|layout| {
            layout[place] += 1;
            let is_legal = table.is_legal(layout);
            layout[place] -= u16::from(!is_legal);
            is_legal
        })
    })
}

fn take(free: &mut [i64], each: &[i64], count: u32) {
    let amounts = free.iter_mut().zip(each);
    amounts.for_each(|(free, each)| *free -= each.saturating_mul(i64::from(count)));
}

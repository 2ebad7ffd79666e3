//! Nodes for many pods that request several instances, before any plan is made: where all of them
//! have room beside each other, one plan is enough for all.

use std::collections::BTreeMap;

use dovetail_model::{Layout, MigTable};

use crate::eligible::fits;
use crate::fleet::Fleet;
use crate::node_room::{NodeRoom, OnNodes};
use crate::waiting::SeveralInstances;

/// All pods that are placed at once, and those before them, are on so many nodes at most. Each of
/// these nodes is a pool of its own, and the time of a plan grows with the third power of their
/// number, until there are so many that its bound no longer tells them apart.
const MOST_NODES: usize = 64;

/// What nodes have beside the pods with several instances that a plan serves, and beside those that
/// are placed here.
pub(crate) struct BatchRoom<'f> {
    fleet: &'f Fleet,
    room: &'f NodeRoom,
    /// Instances of these pods on the nodes that have some.
    there: OnNodes,
    /// CPU, memory, disk and pod slots that these pods leave on each node.
    free: Vec<Vec<i64>>,
    /// How many nodes without instances of these pods may get some.
    nodes_left: usize,
    /// Whether so many GPUs of a table, all of which may change, surely have some instances.
    known: BTreeMap<(usize, usize, BTreeMap<String, u32>), bool>,
}

impl<'f> BatchRoom<'f> {
    pub(crate) fn of(fleet: &'f Fleet, room: &'f NodeRoom) -> Self {
        let mut free = fleet.free.clone();
        for (node, pods, count) in fleet.pinned.instances() {
            take(&mut free[node], &pods.each, count);
        }
        let there = room.pinned.clone();
        let nodes_left = MOST_NODES.saturating_sub(there.len());
        Self { fleet, room, there, free, nodes_left, known: BTreeMap::new() }
    }

    /// Nodes for up to so many equal pods: as many as fit on the first of them that could have
    /// their instances, then on the next.
    pub(crate) fn place(&mut self, pod: &SeveralInstances, most: usize) -> Vec<usize> {
        let mut nodes = Vec::new();
        let (room, may_be_new) = (self.room, self.nodes_left > 0);
        for node in room.candidates_beside(self.fleet, pod, &self.there, may_be_new) {
            if nodes.len() >= most {
                break;
            }
            while nodes.len() < most && self.takes(pod, node) {
                nodes.push(node);
            }
        }
        nodes
    }

    /// Takes what one pod needs from a node; false if it does not fit there.
    fn takes(&mut self, pod: &SeveralInstances, node: usize) -> bool {
        let is_new = !self.there.contains_key(&node);
        if is_new && self.nodes_left == 0 {
            return false;
        }
        if !fits(&pod.each, &self.free[node]) {
            return false;
        }
        let mut all = self.there.get(&node).cloned().unwrap_or_default();
        for (profile, count) in &pod.instances {
            let known = all.entry(profile.clone()).or_default();
            *known = known.saturating_add(*count);
        }
        if !self.room.has_idle(node, &all) && !self.has_layouts(node, &all) {
            return false;
        }
        self.there.insert(node, all);
        self.nodes_left -= usize::from(is_new);
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

#[cfg(test)]
mod tests {
    use dovetail_partition::{Change, Gpu, PartitionInput};

    use super::*;

    #[test]
    fn pods_that_are_placed_at_once_are_on_few_nodes_and_fill_these() {
        let nodes = 2 * MOST_NODES;
        let change = Change::Idle;
        let gpu = Gpu { table: 0, pool: 0, is_whole: true, held: vec![], idle: vec![], change };
        let tables = vec![MigTable::of_model("A100-80GB").unwrap()];
        let world = PartitionInput { tables, gpus: vec![gpu; nodes], demand: Vec::new() };
        let names = (0..nodes).map(|number| (format!("n{number:03}"), 0)).collect();
        let fleet = Fleet { world, names, free: vec![vec![0]; nodes], ..Fleet::default() };
        let room = NodeRoom::of(&fleet);
        let two = |profile: &str| SeveralInstances {
            nodes: vec![true; nodes],
            instances: BTreeMap::from([(profile.to_owned(), 2)]),
            priority: 0,
            each: vec![0],
            gang: None,
        };
        let mut batch = BatchRoom::of(&fleet, &room);
        let first: Vec<usize> = (0..MOST_NODES).collect();
        assert_eq!(batch.place(&two("2g.20gb"), nodes), first);
        // Two sevenths fit beside four on each of these.
        assert_eq!(batch.place(&two("1g.10gb"), 3), first[..3]);
        assert!(batch.place(&two("3g.40gb"), 3).is_empty());
    }
}

//! Which nodes could have all instances of a pod that requests several, before any plan is made.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use dovetail_model::Layout;
use dovetail_partition::{Change, Instance, least_gpus};

use crate::fleet::Fleet;
use crate::together::node_of_gpu;
use crate::waiting::SeveralInstances;

/// Instances by profile that a plan gives to pods on some nodes; nodes without any are left out.
pub(crate) type OnNodes = BTreeMap<usize, BTreeMap<String, u32>>;

/// What the GPUs of each node of a fleet can provide. Many nodes provide the same.
pub(crate) struct NodeRoom {
    /// The nodes that provide the same, in their order.
    kinds: Vec<(Provided, Vec<usize>)>,
    /// For each node, its place in `kinds`.
    kind_of: Vec<usize>,
    /// Instances of the pods with several that the plan serves on each node.
    pub(crate) pinned: OnNodes,
    /// The table of the GPUs of each node, and how many of them may change as a whole.
    pub(crate) changing: Vec<(usize, usize)>,
}

/// What the GPUs of a node can provide.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Provided {
    /// Compute slices.
    slices: i64,
    may_change: bool,
    /// Idle instances by profile.
    idle: BTreeMap<String, u32>,
}

impl Provided {
    /// How many instances of a pod, which needs so many compute slices, are not idle beside others;
    /// `None` if not all of them can be provided.
    fn lacks(
        &self,
        fleet: &Fleet,
        (pod, needed): (&SeveralInstances, i64),
        before: &BTreeMap<String, u32>,
    ) -> Option<u32> {
        let taken = before.iter().map(|(profile, count)| fleet.slices(profile) * i64::from(*count));
        let has_room = needed <= self.slices - taken.sum::<i64>();
        let missing = pod.instances.iter().fold(0, |missing: u32, (profile, count)| {
            let used = before.get(profile).copied().unwrap_or(0);
            let idle = self.idle.get(profile).copied().unwrap_or(0);
            missing.saturating_add(count.saturating_sub(idle.saturating_sub(used)))
        });
        (has_room && (missing == 0 || self.may_change)).then_some(missing)
    }

    /// Idle instances of all profiles.
    fn idle_count(&self) -> usize {
        self.idle.values().map(|count| *count as usize).sum()
    }
}

impl NodeRoom {
    pub(crate) fn of(fleet: &Fleet) -> Self {
        let nodes = fleet.free.len();
        let mut provided = vec![Provided::default(); nodes];
        let mut changing = vec![(0, 0); nodes];
        for (gpu, node) in fleet.world.gpus.iter().zip(node_of_gpu(fleet)) {
            let table = &fleet.world.tables[gpu.table];
            let of = |one: &Instance| i64::from(table.profiles[one.profile].compute_slices);
            let of_node = &mut provided[node];
            of_node.slices += match gpu.change {
                Change::Never => gpu.idle.iter().map(of).sum::<i64>(),
                Change::Idle | Change::WhenEmpty => {
                    i64::from(table.compute_slices) - gpu.held.iter().map(of).sum::<i64>()
                }
            };
            of_node.may_change |= gpu.change != Change::Never;
            for one in &gpu.idle {
                let profile = table.profiles[one.profile].name.clone();
                *of_node.idle.entry(profile).or_default() += 1;
            }
            let is_changing = gpu.change != Change::Never && gpu.held.is_empty();
            changing[node] = (gpu.table, changing[node].1 + usize::from(is_changing));
        }
        let mut kinds: BTreeMap<Provided, Vec<usize>> = BTreeMap::new();
        for (node, provided) in provided.into_iter().enumerate() {
            kinds.entry(provided).or_default().push(node);
        }
        let kinds: Vec<(Provided, Vec<usize>)> = kinds.into_iter().collect();
        let mut kind_of = vec![0; nodes];
        for (kind, (_, nodes)) in kinds.iter().enumerate() {
            nodes.iter().for_each(|node| kind_of[*node] = kind);
        }
        Self { kinds, kind_of, pinned: fleet.pinned.by_node(), changing }
    }

    /// The nodes that could provide all instances of a pod beside those of the pods before it:
    /// those that have them idle, then those that lack the fewest and have the fewest idle ones to
    /// lose.
    pub(crate) fn candidates<'r>(
        &'r self,
        fleet: &Fleet,
        pod: &'r SeveralInstances,
    ) -> impl Iterator<Item = usize> + use<'r> {
        self.candidates_beside(fleet, pod, &self.pinned, true)
    }

    /// The same beside these instances; without `may_be_new`, only of the nodes that have some of
    /// them. Before the first node, each kind of node is asked once, and each node with instances.
    pub(crate) fn candidates_beside<'r>(
        &'r self,
        fleet: &Fleet,
        pod: &'r SeveralInstances,
        given: &OnNodes,
        may_be_new: bool,
    ) -> impl Iterator<Item = usize> + use<'r> {
        let asked = (pod, slices_of(fleet, pod));
        // The first of some nodes that provide the same comes before what is left of them.
        let mut next = BinaryHeap::new();
        for (node, before) in given {
            let (provided, alike) = &self.kinds[self.kind_of[*node]];
            if let (Some(missing), Ok(place)) =
                (provided.lacks(fleet, asked, before), alike.binary_search(node))
            {
                let alone = &alike[place..=place];
                next.push(Reverse((missing, provided.idle_count(), alone, true)));
            }
        }
        for (provided, alike) in self.kinds.iter().filter(|_| may_be_new) {
            if let Some(missing) = provided.lacks(fleet, asked, &BTreeMap::new()) {
                next.push(Reverse((missing, provided.idle_count(), alike.as_slice(), false)));
            }
        }
        let given: BTreeSet<usize> = given.keys().copied().collect();
        let in_order = std::iter::from_fn(move || {
            let Reverse((missing, idle, nodes, is_given)) = next.pop()?;
            let (node, rest) = nodes.split_first()?;
            if !rest.is_empty() {
                next.push(Reverse((missing, idle, rest, is_given)));
            }
            Some((*node, is_given))
        });
        let may_go = move |(node, is_given): (usize, bool)| {
            let is_once = is_given || !given.contains(&node);
            (is_once && pod.nodes[node]).then_some(node)
        };
        in_order.filter_map(may_go)
    }

    /// Whether a node has all of these instances idle.
    pub(crate) fn has_idle(&self, node: usize, instances: &BTreeMap<String, u32>) -> bool {
        let (Provided { idle, .. }, _) = &self.kinds[self.kind_of[node]];
        let mut instances = instances.iter();
        instances.all(|(profile, count)| idle.get(profile).is_some_and(|there| there >= count))
    }
}

/// Takes nodes from pods whose instances the GPUs of the node cannot all have, whatever their
/// layouts are: no plan is needed to find that.
pub(crate) fn rule_out(fleet: &Fleet, pods: &mut [SeveralInstances]) {
    let mut of_nodes = vec![(0, 0); fleet.free.len()];
    for (gpu, node) in fleet.world.gpus.iter().zip(node_of_gpu(fleet)) {
        let (_, gpus) = of_nodes[node];
        of_nodes[node] = (gpu.table, gpus + 1);
    }
    let mut least = LeastGpus { fleet, full: BTreeMap::new(), known: BTreeMap::new() };
    for pod in pods {
        let mut tables: BTreeMap<usize, u64> = BTreeMap::new();
        for (may_go, (table, gpus)) in pod.nodes.iter_mut().zip(&of_nodes).filter(|(may, _)| **may)
        {
            let needed = *tables.entry(*table).or_insert_with(|| least.of(*table, &pod.instances));
            *may_go = needed <= *gpus;
        }
    }
}

/// The fewest GPUs that can have some instances, by table and instances.
struct LeastGpus<'f> {
    fleet: &'f Fleet,
    full: BTreeMap<usize, Vec<Layout>>,
    known: BTreeMap<(usize, BTreeMap<String, u32>), u64>,
}

impl LeastGpus<'_> {
    /// 0 where the table does not say it.
    fn of(&mut self, table: usize, instances: &BTreeMap<String, u32>) -> u64 {
        let key = (table, instances.clone());
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let of_gpus = &self.fleet.world.tables[table];
        let full = self.full.entry(table).or_insert_with(|| of_gpus.fullest_layouts());
        let list = instances.iter().map(|(profile, count)| (profile.clone(), u64::from(*count)));
        let list: Vec<(String, u64)> = list.collect();
        let least = least_gpus(of_gpus, full, &list).unwrap_or(0);
        self.known.insert(key, least);
        least
    }
}

/// Compute slices of all instances of a pod.
pub(crate) fn slices_of(fleet: &Fleet, pod: &SeveralInstances) -> i64 {
    let slices = |(profile, count): (&String, &u32)| fleet.slices(profile) * i64::from(*count);
    pod.instances.iter().map(slices).sum()
}

#[cfg(test)]
mod tests {
    use dovetail_model::MigTable;
    use dovetail_partition::{Gpu, PartitionInput};

    use super::*;

    /// Nodes of one GPU that differ in what is idle, in use, and may change.
    fn fleet(nodes: usize) -> Fleet {
        let table = MigTable::of_model("A100-80GB").unwrap();
        let one = |profile: &str| Instance { profile: table.profile(profile).unwrap(), start: 0 };
        let gpu = |node: usize| Gpu {
            table: 0,
            pool: 0,
            is_whole: false,
            held: vec![one("1g.10gb"); node % 3],
            idle: [vec![one("2g.20gb"); node / 3 % 2], vec![one("1g.10gb"); node / 6 % 3]].concat(),
            change: [Change::Idle, Change::WhenEmpty, Change::Never][node / 18 % 3],
        };
        let gpus = (0..nodes).map(gpu).collect();
        let world = PartitionInput { tables: vec![table.clone()], gpus, demand: Vec::new() };
        let names = (0..nodes).map(|number| (format!("n{number:03}"), 0)).collect();
        Fleet { world, names, free: vec![vec![0]; nodes], ..Fleet::default() }
    }

    /// All nodes, each asked and then sorted.
    fn one_by_one(
        fleet: &Fleet,
        pod: &SeveralInstances,
        given: &OnNodes,
        may_be_new: bool,
    ) -> Vec<usize> {
        let table = &fleet.world.tables[0];
        let mut found = Vec::new();
        for (node, gpu) in fleet.world.gpus.iter().enumerate().filter(|(node, _)| pod.nodes[*node])
        {
            let none = BTreeMap::new();
            let before = match given.get(&node) {
                None if !may_be_new => continue,
                before => before.unwrap_or(&none),
            };
            let of = |some: &[Instance]| -> i64 {
                some.iter().map(|one| i64::from(table.profiles[one.profile].compute_slices)).sum()
            };
            let all = |some: &BTreeMap<String, u32>| -> i64 {
                some.iter().map(|(name, count)| fleet.slices(name) * i64::from(*count)).sum()
            };
            let may_change = gpu.change != Change::Never;
            let has = if may_change { 7 - of(&gpu.held) } else { of(&gpu.idle) };
            let missing = pod.instances.iter().map(|(name, count)| {
                let is_it = |one: &&Instance| table.profiles[one.profile].name == *name;
                let idle = gpu.idle.iter().filter(is_it).count() as u32;
                count.saturating_sub(idle.saturating_sub(before.get(name).copied().unwrap_or(0)))
            });
            let missing: u32 = missing.sum();
            if all(&pod.instances) <= has - all(before) && (missing == 0 || may_change) {
                found.push((missing, gpu.idle.len(), node));
            }
        }
        found.sort_unstable();
        found.into_iter().map(|(.., node)| node).collect()
    }

    #[test]
    fn candidates_are_in_the_order_in_which_all_nodes_sorted_are() {
        let fleet = fleet(120);
        let some = |counts: &[(&str, u32)]| -> BTreeMap<String, u32> {
            counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
        };
        let on = |step: usize| -> OnNodes {
            let given = [some(&[("1g.10gb", 1)]), some(&[("2g.20gb", 1), ("1g.10gb", 2)])];
            (0..120).step_by(step).map(|node| (node, given[node % 2].clone())).collect()
        };
        let room = NodeRoom::of(&fleet);
        for instances in [
            some(&[("1g.10gb", 2)]),
            some(&[("2g.20gb", 1), ("1g.10gb", 1)]),
            some(&[("3g.40gb", 2)]),
        ] {
            let nodes = (0..120).map(|node| node % 7 != 0).collect();
            let (each, gang) = (vec![0], None);
            let pod = SeveralInstances { nodes, instances, priority: 0, each, gang };
            for given in [OnNodes::new(), on(5), on(9)] {
                for may_be_new in [true, false] {
                    let found = room.candidates_beside(&fleet, &pod, &given, may_be_new);
                    let expected = one_by_one(&fleet, &pod, &given, may_be_new);
                    assert_eq!(found.collect::<Vec<_>>(), expected, "{pod:?} {given:?}");
                }
            }
        }
    }
}

//! GPUs of a node that can get other MIG layouts, and how many pods they serve then.
//!
//! Nobody reports which GPU a pod uses, so instances in use are assigned to GPUs in order, as
//! `dovetail partition show` does. A GPU all of whose instances are in use stays as it is: before a
//! pod there ends, no layout serves anything on it.

use std::collections::BTreeMap;

use dovetail_facts::Node;
use dovetail_model::{Layout, MigTable, labels};
use dovetail_partition::layouts_of_counts;

/// Steps of the search for places of the instances of one pod. Each instance takes one at least.
const MOST_STEPS: u32 = 2_000;

/// The GPUs of a node that can get other layouts.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CutGpus {
    /// For each GPU in MIG mode that has free instances, or none at all: the instances in use,
    /// which stay.
    open: Vec<Layout>,
    /// Free whole GPUs.
    whole: usize,
}

impl CutGpus {
    /// Those of a node; `free`: how many units are free of each resource. None where something
    /// of the node is missing or shared, or where nobody knows what is in use.
    pub(super) fn of(
        node: &Node,
        table: &MigTable,
        free: &BTreeMap<&str, i64>,
        known: &mut KnownLayouts,
    ) -> Self {
        match stays(node) {
            true => Self::default(),
            false => Self::read(node, table, free, known).unwrap_or_default(),
        }
    }

    /// `None` if the table does not allow what the node reports.
    fn read(
        node: &Node,
        table: &MigTable,
        free: &BTreeMap<&str, i64>,
        known: &mut KnownLayouts,
    ) -> Option<Self> {
        let free_of = |resource: &str| free.get(resource).copied().unwrap_or(0);
        let whole = node.gpus.get(labels::NVIDIA_GPU).map_or(0, |gpus| gpus.built_in);
        // More whole GPUs than there are would be parts of them.
        let in_mig_mode = node.devices.len().checked_sub(usize::try_from(whole).ok()?)?;
        let mut counts: Layout = vec![0; table.profiles.len()];
        let mut used = counts.clone();
        for (resource, gpus) in node.gpus.iter().filter(|(_, gpus)| gpus.built_in > 0) {
            let Some(name) = resource.strip_prefix(labels::NVIDIA_MIG) else { continue };
            let place = table.profile(name)?;
            let of_resource = u16::try_from(gpus.built_in).ok()?;
            counts[place] = counts[place].checked_add(of_resource)?;
            used[place] += u16::try_from(gpus.built_in - free_of(resource)).ok()?;
        }
        let layouts = match in_mig_mode {
            0 if counts.iter().all(|count| *count == 0) => Vec::new(),
            _ => known.of_counts(table, counts, in_mig_mode)?,
        };
        let mut open = Vec::new();
        for layout in layouts {
            let stays: Layout =
                layout.iter().zip(&used).map(|(count, used)| *count.min(used)).collect();
            used.iter_mut().zip(&stays).for_each(|(used, of_gpu)| *used -= of_gpu);
            if stays != layout || layout.iter().all(|count| *count == 0) {
                open.push(stays);
            }
        }
        Some(Self { open, whole: usize::try_from(free_of(labels::NVIDIA_GPU)).ok()? })
    }

    /// How many free whole GPUs it has.
    pub(super) fn whole(&self) -> usize {
        self.whole
    }

    /// Only so many whole GPUs are left at most.
    pub(super) fn keep_whole(&mut self, most: usize) {
        self.whole = self.whole.min(most);
    }

    /// Whether a GPU at a place of [`CutGpus::layouts`] is whole.
    pub(super) fn is_whole(&self, place: usize) -> bool {
        place >= self.open.len()
    }

    /// What stays on each of the GPUs, so many whole ones at most, which come last.
    pub(super) fn layouts(&self, table: &MigTable, most_whole: usize) -> Vec<Layout> {
        let none: Layout = vec![0; table.profiles.len()];
        let whole = std::iter::repeat_n(none, self.whole.min(most_whole));
        self.open.iter().cloned().chain(whole).collect()
    }

    /// Gives its GPUs, in the order of [`CutGpus::layouts`], further instances that stay. Returns
    /// how many whole GPUs are cut for that.
    pub(super) fn set(&mut self, mut layouts: Vec<Layout>) -> usize {
        let mut whole = layouts.split_off(self.open.len());
        whole.retain(|layout| layout.iter().any(|count| *count > 0));
        let cut = whole.len();
        self.whole -= cut;
        layouts.extend(whole);
        self.open = layouts;
        cut
    }
}

/// Whether the GPUs of a node stay as they are, whatever pods use them.
fn stays(node: &Node) -> bool {
    let counted = node.node.label(labels::NVIDIA_COUNT).and_then(|text| text.parse().ok());
    // As the plan does, where instances need more GPUs than the node says that it has.
    let is_doubtful = counted.is_some_and(|count: usize| (1..node.devices.len()).contains(&count));
    if is_doubtful || node.node.label(labels::NOS).is_some() {
        return true;
    }
    let is_of_others = node.gpus.values().any(|gpus| gpus.by_claims || gpus.set_apart > 0);
    let is_broken = node.gpus.values().any(|gpus| gpus.allocatable < gpus.built_in)
        || node.uncounted_gpus > 0 && !node.lacks_instances();
    let is_shared = node.has_unclear_layout || node.offers_instances_as_gpus();
    is_of_others || is_broken || is_shared || node.may_be_held || node.is_between_layouts()
}

/// How many instances one pod asks for, by the place of their profile in a table.
pub(super) type Places = Vec<(usize, i64)>;

/// What is known of layouts, so that none is computed twice.
#[derive(Default)]
pub(super) struct KnownLayouts {
    /// Whether a layout is legal, by the name of its table.
    legal: BTreeMap<String, BTreeMap<Layout, bool>>,
    fullest: BTreeMap<String, Vec<Layout>>,
    /// Layouts of so many GPUs that have so many instances: most nodes are like others.
    counted: BTreeMap<(String, Layout, usize), Option<Vec<Layout>>>,
    /// The number of each state of the GPUs of a node.
    states: BTreeMap<CutGpus, usize>,
    /// The first GPU that changes, and its instances then.
    changes: BTreeMap<ChangeKey, Option<(usize, Layout)>>,
}

/// The name of a table, what stays on each of some GPUs, and what one pod asks for.
type ChangeKey = (String, Vec<Layout>, Places);

impl KnownLayouts {
    fn is_legal(&mut self, table: &MigTable, layout: &Layout) -> bool {
        let known = self.legal.entry(table.name.clone()).or_default();
        if let Some(is_legal) = known.get(layout) {
            return *is_legal;
        }
        let is_legal = table.is_legal(layout);
        known.insert(layout.clone(), is_legal);
        is_legal
    }

    fn of_counts(&mut self, table: &MigTable, counts: Layout, gpus: usize) -> Option<Vec<Layout>> {
        let key = (table.name.clone(), counts, gpus);
        if let Some(known) = self.counted.get(&key) {
            return known.clone();
        }
        let layouts = layouts_of_counts(table, &key.1, gpus);
        self.counted.insert(key, layouts.clone());
        layouts
    }

    /// The number of a state of the GPUs of a node.
    pub(super) fn number_of(&mut self, gpus: &CutGpus) -> usize {
        if let Some(known) = self.states.get(gpus) {
            return *known;
        }
        let next = self.states.len();
        self.states.insert(gpus.clone(), next);
        next
    }

    /// If GPUs on which these instances stay serve as many pods as they can: the first GPU that
    /// changes, and its instances then; `None` if they serve none.
    pub(super) fn first_change(
        &mut self,
        table: &MigTable,
        stay: Vec<Layout>,
        places: &[(usize, i64)],
    ) -> Option<(usize, Layout)> {
        let key = (table.name.clone(), stay, places.to_vec());
        if let Some(known) = self.changes.get(&key) {
            return known.clone();
        }
        let mut layouts = key.1.clone();
        self.add_pods(table, &mut layouts, places, i64::MAX);
        let first = key.1.iter().zip(&layouts).position(|(before, after)| before != after);
        let first = first.map(|place| (place, layouts.swap_remove(place)));
        self.changes.insert(key, first.clone());
        first
    }

    /// A layout with these instances to which none can be added, with the most compute slices.
    pub(super) fn full_with(&mut self, table: &MigTable, layout: &[u16]) -> Layout {
        let fullest =
            self.fullest.entry(table.name.clone()).or_insert_with(|| table.fullest_layouts());
        let has_all = |full: &&Layout| full.iter().zip(layout).all(|(has, asked)| has >= asked);
        let best = fullest.iter().filter(has_all).max_by_key(|full| table.compute_of(full));
        best.cloned().unwrap_or_else(|| layout.to_vec())
    }

    /// Adds the instances of so many pods at most to the layouts of a node's GPUs, and returns how
    /// many pods got all of theirs. `places`: what one pod asks for.
    pub(super) fn add_pods(
        &mut self,
        table: &MigTable,
        gpus: &mut [Layout],
        places: &[(usize, i64)],
        most_pods: i64,
    ) -> i64 {
        let of_pod = places.iter().fold(0i64, |sum, (_, count)| sum.saturating_add(*count));
        let most = i64::from(table.compute_slices) * gpus.len() as i64;
        if of_pod <= 0 || of_pod > most {
            return 0;
        }
        let mut order: Vec<usize> = Vec::new();
        for (place, count) in places {
            order.extend(std::iter::repeat_n(*place, *count as usize));
        }
        // The largest first: the others fit beside them.
        order
            .sort_by_key(|place| (std::cmp::Reverse(table.profiles[*place].memory_slices), *place));
        let mut pods = 0;
        while pods < most_pods && has_slices(table, gpus, &order) {
            let mut search = PodSearch { table, known: self, steps: MOST_STEPS };
            if !search.add(gpus, &order) {
                break;
            }
            pods += 1;
        }
        pods
    }
}

/// Whether GPUs have as many slices left as some instances need. If not, no search finds places.
fn has_slices(table: &MigTable, gpus: &[Layout], profiles: &[usize]) -> bool {
    let of = |place: usize| {
        let profile = &table.profiles[place];
        [i64::from(profile.compute_slices), i64::from(profile.memory_slices)]
    };
    let mut left = [i64::from(table.compute_slices), i64::from(table.memory_slices)];
    left.iter_mut().for_each(|left| *left *= gpus.len() as i64);
    for layout in gpus {
        for (place, count) in layout.iter().enumerate().filter(|(_, count)| **count > 0) {
            left.iter_mut().zip(of(place)).for_each(|(left, one)| *left -= one * i64::from(*count));
        }
    }
    for place in profiles {
        left.iter_mut().zip(of(*place)).for_each(|(left, one)| *left -= one);
    }
    left.iter().all(|left| *left >= 0)
}

/// A search for places of the instances of one pod.
struct PodSearch<'k> {
    table: &'k MigTable,
    known: &'k mut KnownLayouts,
    steps: u32,
}

impl PodSearch<'_> {
    /// Adds instances of these profiles to the layouts, or leaves them as they are.
    fn add(&mut self, gpus: &mut [Layout], profiles: &[usize]) -> bool {
        let Some((first, rest)) = profiles.split_first() else { return true };
        let mut tried: Vec<Layout> = Vec::new();
        for number in 0..gpus.len() {
            if self.steps == 0 {
                return false;
            }
            if tried.contains(&gpus[number]) {
                continue;
            }
            self.steps -= 1;
            tried.push(gpus[number].clone());
            gpus[number][*first] += 1;
            let is_legal = self.known.is_legal(self.table, &gpus[number]);
            if is_legal && self.add(gpus, rest) {
                return true;
            }
            gpus[number][*first] -= 1;
            // Of one profile alone, as many fit whichever of the GPUs come first.
            if is_legal && rest.iter().all(|profile| profile == first) {
                return false;
            }
        }
        false
    }
}

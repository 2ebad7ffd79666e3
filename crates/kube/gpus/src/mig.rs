//! MIG instances of a node: which of its GPUs each lies on, and how much of that GPU it is.
//!
//! An instance pays for `compute / (s + r)` of its GPU, where `s` are the compute slices of all
//! instances on the GPU and `r` those that further instances could still take: so the instances of
//! a full GPU are exactly one GPU, also where its compute slices cannot all be used, and
//! `r / (s + r)` is what the layout leaves over.

use std::collections::BTreeMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use dovetail_model::device::WHOLE_DEVICE_MILLI;
use dovetail_model::{Layout, MigTable, to_nearest};

/// A node has no more GPUs than these; more instances are laid out only where all GPUs are cut
/// alike.
const MOST_SEARCHED: i64 = 64;

/// Steps of the search for the fewest GPUs.
const MOST_STEPS: u32 = 50_000;

/// The instances of a node on its GPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OnGpus {
    /// GPUs that are cut.
    pub(super) gpus: i64,
    /// For each profile, in the order in which they were asked, each of its instances in milli-GPU.
    pub(super) instances: Vec<Vec<i64>>,
    /// What the layouts leave over, in milli-GPU.
    pub(super) rest_milli: i64,
    /// GPUs that have no instance, however the instances lie: all that these leave over is in
    /// `rest_milli`.
    pub(super) empty: i64,
}

/// So many layouts are remembered.
const MOST_KNOWN: usize = 4_096;

/// The name of a table, instances by profile in the order in which they are asked, and how many
/// GPUs somebody counts.
type LayoutKey = (String, Vec<(String, i64)>, Option<i64>);

/// Where the instances of nodes lie, for those that are read together: most nodes are like others,
/// and to find a layout takes a while. What is known changes no answer.
#[derive(Debug, Default)]
pub struct KnownLayouts {
    of: Mutex<BTreeMap<LayoutKey, Option<OnGpus>>>,
}

impl KnownLayouts {
    /// The same as [`on_gpus`].
    pub(super) fn on_gpus(
        &self,
        table: &MigTable,
        instances: &[(&str, i64)],
        gpus: Option<i64>,
    ) -> Option<OnGpus> {
        let named = instances.iter().map(|(name, count)| ((*name).to_owned(), *count));
        let key: LayoutKey = (table.name.clone(), named.collect(), gpus);
        if let Some(known) = self.of.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return known.clone();
        }
        let found = on_gpus(table, instances, gpus);
        let mut known = self.of.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() < MOST_KNOWN {
            known.insert(key, found.clone());
        }
        found
    }
}

/// Puts instances, by the name of their profile, on GPUs: on so many where somebody counts those
/// that are cut, else on the fewest. `None` where the tables do not say how such GPUs are cut.
fn on_gpus(table: &MigTable, instances: &[(&str, i64)], gpus: Option<i64>) -> Option<OnGpus> {
    let places: Vec<usize> =
        instances.iter().map(|(name, _)| table.profile(name)).collect::<Option<_>>()?;
    let mut all: Layout = vec![0; table.profiles.len()];
    for (place, (_, count)) in places.iter().zip(instances) {
        all[*place] += u16::try_from(*count).ok()?;
    }
    let layouts = layouts(table, &all, gpus)?;
    let mut of_place: Vec<Vec<i64>> = vec![Vec::new(); all.len()];
    let mut known: BTreeMap<&Layout, (Vec<Vec<i64>>, i64)> = BTreeMap::new();
    let mut rest_milli = 0;
    for layout in &layouts {
        let (parts, rest) = known.entry(layout).or_insert_with(|| one_gpu(table, layout));
        of_place.iter_mut().zip(parts).for_each(|(all, of_gpu)| all.extend_from_slice(of_gpu));
        rest_milli += *rest;
    }
    // Two names of one profile share its instances in the order in which they are asked.
    let taken = places.iter().zip(instances).map(|(place, (_, count))| {
        let count = usize::try_from(*count).unwrap_or(0).min(of_place[*place].len());
        of_place[*place].drain(..count).collect()
    });
    let instances = taken.collect();
    let empty = empty(&all, &layouts, &known);
    Some(OnGpus { gpus: layouts.len() as i64, instances, rest_milli, empty })
}

/// How many GPUs have no instance. Instances that fill GPUs lie on these alone; others may be
/// spread, each on a GPU of its own.
fn empty(all: &Layout, layouts: &[Layout], known: &BTreeMap<&Layout, (Vec<Vec<i64>>, i64)>) -> i64 {
    let used = layouts.iter().filter(|layout| has_any(layout)).count() as i64;
    let are_full = known.iter().all(|(layout, (_, rest))| *rest == 0 || !has_any(layout));
    let instances: i64 = all.iter().map(|count| i64::from(*count)).sum();
    let most_used = if are_full { used } else { instances };
    (layouts.len() as i64 - most_used).max(0)
}

/// The instances of one GPU by profile, in milli-GPU, and what they leave over: together one GPU.
fn one_gpu(table: &MigTable, layout: &Layout) -> (Vec<Vec<i64>>, i64) {
    let rest = u64::from(table.left_over(layout).unwrap_or(0));
    let all = (table.compute_of(layout) + rest).max(1) as i64;
    let mut at = 0;
    let mut next = |compute: i64| {
        let from = to_nearest(WHOLE_DEVICE_MILLI * at, all);
        at += compute;
        to_nearest(WHOLE_DEVICE_MILLI * at, all) - from
    };
    let instances = table.profiles.iter().zip(layout).map(|(profile, count)| {
        (0..*count).map(|_| next(i64::from(profile.compute_slices))).collect()
    });
    (instances.collect(), next(rest as i64))
}

fn has_any(layout: &Layout) -> bool {
    layout.iter().any(|count| *count > 0)
}

/// One layout for each GPU, which together have all instances.
fn layouts(table: &MigTable, all: &Layout, gpus: Option<i64>) -> Option<Vec<Layout>> {
    let gpus = gpus.map(usize::try_from).transpose().ok()?;
    let known = |gpus| table.filled_layouts(all, gpus).or_else(|| table.alike_layouts(all, gpus));
    if let Some(known) = gpus.and_then(known) {
        return Some(known);
    }
    let mut found = fewest(table, all)?;
    if let Some(gpus) = gpus {
        if found.len() > gpus {
            return None;
        }
        // A GPU in MIG mode without an instance: the layout leaves all of it over.
        found.resize(gpus, vec![0; all.len()]);
    }
    Some(found)
}

/// Layouts of the fewest GPUs that can hold the instances.
fn fewest(table: &MigTable, all: &Layout) -> Option<Vec<Layout>> {
    let least = least_gpus(table, all);
    let full = fullest(table);
    for gpus in least.. {
        let alike = usize::try_from(gpus).ok().and_then(|gpus| table.alike_layouts(all, gpus));
        if let Some(alike) = alike {
            return Some(alike);
        }
        if gpus > MOST_SEARCHED {
            return None;
        }
        let mut search = Search { table, full: &full, steps: MOST_STEPS, found: Vec::new() };
        if search.run(all, gpus, 0) {
            return Some(search.found);
        }
    }
    None
}

/// No fewer GPUs have the compute and the memory slices.
fn least_gpus(table: &MigTable, layout: &Layout) -> i64 {
    let sum = |slices: fn(&dovetail_model::MigProfile) -> u8| -> i64 {
        let each = table.profiles.iter().zip(layout);
        each.map(|(profile, count)| i64::from(slices(profile)) * i64::from(*count)).sum()
    };
    let of = |slices: i64, of_gpu: u8| (slices + i64::from(of_gpu) - 1) / i64::from(of_gpu);
    let compute = of(sum(|profile| profile.compute_slices), table.compute_slices);
    compute.max(of(sum(|profile| profile.memory_slices), table.memory_slices))
}

/// The layouts of a table to which nothing can be added, which take a while to find.
fn fullest(table: &MigTable) -> Vec<Layout> {
    static KNOWN: LazyLock<Mutex<BTreeMap<String, Vec<Layout>>>> = LazyLock::new(Mutex::default);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known.entry(table.name.clone()).or_insert_with(|| table.fullest_layouts()).clone()
}

/// A search for layouts of so many GPUs, in the order of the fullest layouts.
struct Search<'t> {
    table: &'t MigTable,
    full: &'t [Layout],
    steps: u32,
    found: Vec<Layout>,
}

impl Search<'_> {
    fn run(&mut self, left: &Layout, gpus: i64, from: usize) -> bool {
        if left.iter().all(|count| *count == 0) {
            return true;
        }
        if self.steps == 0 || least_gpus(self.table, left) > gpus {
            return false;
        }
        self.steps -= 1;
        if self.table.is_legal(left) {
            self.found.push(left.clone());
            return true;
        }
        // GPUs that are as full as can be come first: less is left over.
        [true, false].into_iter().any(|is_full| self.take_one(left, gpus, from, is_full))
    }

    fn take_one(&mut self, left: &Layout, gpus: i64, from: usize, is_full: bool) -> bool {
        let full = self.full;
        for (place, layout) in full.iter().enumerate().skip(from) {
            let taken: Layout = layout.iter().zip(left).map(|(one, left)| *one.min(left)).collect();
            if (taken == *layout) != is_full || taken.iter().all(|count| *count == 0) {
                continue;
            }
            let rest: Layout = left.iter().zip(&taken).map(|(left, taken)| left - taken).collect();
            self.found.push(taken);
            if self.run(&rest, gpus - 1, place) {
                return true;
            }
            self.found.pop();
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(model: &str, instances: &[(&str, i64)], gpus: Option<i64>) -> OnGpus {
        on_gpus(&MigTable::of_model(model).unwrap(), instances, gpus).unwrap()
    }

    #[test]
    fn a_known_layout_is_the_one_that_is_found() {
        let (table, known) = (MigTable::of_model("A100-40GB").unwrap(), KnownLayouts::default());
        let asked: [&[(&str, i64)]; 3] =
            [&[("3g.20gb", 3)], &[("3g.20gb", 3), ("1g.5gb", 2)], &[("9g.20gb", 3)]];
        for _ in 0..2 {
            for (instances, gpus) in asked.into_iter().flat_map(|of| [(of, None), (of, Some(4))]) {
                assert_eq!(
                    known.on_gpus(&table, instances, gpus),
                    on_gpus(&table, instances, gpus)
                );
            }
        }
        assert_eq!(known.of.lock().unwrap().len(), 6);
    }

    #[test]
    fn instances_lie_on_the_fewest_gpus_and_pay_for_what_nobody_else_can_have() {
        // By hand: 4 + 3, 2 + 2 + 3, and a 2g beside which five slices stay free: two GPUs and 2/7.
        let mixed = [("4g.20gb", 1), ("3g.20gb", 2), ("2g.10gb", 3)];
        let found = cut("A100-40GB", &mixed, None);
        assert_eq!((found.gpus, found.rest_milli), (3, 714));
        // 3/7 and 4/7 of a GPU.
        assert_eq!(found.instances[0], [571]);
        let sum: i64 = found.instances.iter().flatten().sum();
        assert_eq!(sum + found.rest_milli, 3000);
        // Two 3g are half of it each, though they have six of seven slices.
        let halves = cut("A100-40GB", &[("3g.20gb", 16)], Some(8));
        assert_eq!((halves.gpus, halves.rest_milli), (8, 0));
        assert_eq!(halves.instances, [[500; 16]]);
        // One GPU is full, and one is left over as a whole.
        let half = cut("A30", &[("1g.6gb", 4)], Some(2));
        assert_eq!((half.gpus, half.rest_milli, half.empty), (2, 1000, 1));
        assert_eq!(half.instances, [[250; 4]]);
        // Half of each GPU.
        let half = cut("A30", &[("2g.12gb", 2)], Some(2));
        assert_eq!((half.gpus, half.rest_milli, half.empty), (2, 1000, 0));
        let empty = cut("A30", &[("4g.24gb", 1)], Some(2));
        assert_eq!((empty.gpus, empty.rest_milli, empty.empty), (2, 1000, 1));
        let table = MigTable::of_model("A30").unwrap();
        assert_eq!(on_gpus(&table, &[("4g.24gb", 3)], Some(2)), None);
        assert_eq!(on_gpus(&table, &[("3g.20gb", 1)], None), None);
    }

    #[test]
    fn gpus_without_instances_are_those_that_no_spread_of_the_instances_reaches() {
        let empty = |instances: &[(&str, i64)], gpus| cut("A100-80GB", instances, Some(gpus)).empty;
        assert_eq!(empty(&[("7g.80gb", 5)], 8), 3);
        // Seven slices are one GPU, which is full.
        assert_eq!(empty(&[("1g.10gb", 7)], 2), 1);
        assert_eq!(empty(&[("1g.10gb", 14)], 2), 0);
        // They fill four of eight, and one of two, where two on each would be a layout, too.
        assert_eq!(empty(&[("1g.10gb", 28)], 8), 4);
        let of_a30 = |instances: &[(&str, i64)]| cut("A30", instances, Some(2)).empty;
        assert_eq!(of_a30(&[("1g.6gb", 4)]), 1);
        assert_eq!(of_a30(&[("1g.6gb", 6)]), 0);
        // Nine of them may lie on eight GPUs, and two on no more than two.
        assert_eq!(empty(&[("3g.40gb", 9)], 8), 0);
        assert_eq!(empty(&[("3g.40gb", 8)], 8), 0);
        assert_eq!(empty(&[("3g.40gb", 1), ("2g.20gb", 1)], 8), 6);
        // The plugin offers none.
        assert_eq!(empty(&[("1g.10gb", 0)], 2), 2);
    }
}

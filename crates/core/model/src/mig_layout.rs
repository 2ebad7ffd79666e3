//! Which MIG instances a GPU can hold together, and what they leave over.
//!
//! Device plugins say how many instances of each profile a node has, not where on which GPU they
//! lie. So a layout is a number of instances for each profile of a [`MigTable`]; it is legal if
//! they can lie beside each other at some of their starts within the GPU's compute slices.

use std::collections::{BTreeMap, BTreeSet};

use crate::device::{MigProfile, MigTable};

/// How many instances of each profile, in the order of [`MigTable::profiles`].
pub type Layout = Vec<u16>;

/// A GPU with some instances on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct LayoutCut {
    /// Taken memory slices.
    mask: u16,
    compute: u8,
    has_media: bool,
}

impl LayoutCut {
    /// The same with one instance more, at each of its starts that is free.
    fn with(self, table: &MigTable, profile: &MigProfile) -> impl Iterator<Item = Self> {
        let compute = self.compute + profile.compute_slices;
        let is_open = compute <= table.compute_slices && !(self.has_media && profile.has_media());
        let starts = profile.starts.iter().filter(move |_| is_open);
        let masks = starts.map(|start| profile.mask_at(*start));
        let free = masks.filter(move |mask| self.mask & mask == 0);
        let has_media = self.has_media || profile.has_media();
        free.map(move |mask| Self { mask: self.mask | mask, compute, has_media })
    }

    /// The most compute slices that further instances can take.
    fn room(self, table: &MigTable, known: &mut BTreeMap<Self, u8>) -> u8 {
        if let Some(room) = known.get(&self) {
            return *room;
        }
        let more = table
            .profiles
            .iter()
            .flat_map(|profile| self.with(table, profile).map(|cut| (profile.compute_slices, cut)));
        let more: Vec<(u8, Self)> = more.collect();
        let room = more.into_iter().map(|(compute, cut)| compute + cut.room(table, known)).max();
        let room = room.unwrap_or(0);
        known.insert(self, room);
        room
    }
}

impl MigTable {
    /// Compute slices of all instances of a layout.
    pub fn compute_of(&self, layout: &[u16]) -> u64 {
        let each = self.profiles.iter().zip(layout);
        each.map(|(profile, count)| u64::from(profile.compute_slices) * u64::from(*count)).sum()
    }

    /// What further instances could still take on one GPU beside those of a layout, in compute
    /// slices: the least over all ways in which they can lie. `None` if the layout is not legal.
    pub fn left_over(&self, layout: &[u16]) -> Option<u8> {
        let mut known = BTreeMap::new();
        self.cuts(layout).into_iter().map(|cut| cut.room(self, &mut known)).min()
    }

    /// Whether one GPU can hold these instances together.
    pub fn is_legal(&self, layout: &[u16]) -> bool {
        !self.cuts(layout).is_empty()
    }

    /// The layout of full GPUs, and how many GPUs so many instances fill, where all are of one
    /// profile with one slice and none is left over. Device plugins only count instances: so many
    /// lie on these GPUs alone. Larger ones may as well lie on more GPUs, one on each.
    pub fn filled_gpus(&self, counts: &[u16]) -> Option<(Layout, usize)> {
        let place = counts.iter().position(|count| *count > 0)?;
        let profile = &self.profiles[place];
        let is_only = counts[place + 1..].iter().all(|count| *count == 0);
        let is_one_slice = (profile.compute_slices, profile.memory_slices) == (1, 1);
        let each = u16::from(self.compute_slices);
        if !is_only || !is_one_slice || counts[place].checked_rem(each) != Some(0) {
            return None;
        }
        let mut full: Layout = vec![0; counts.len()];
        full[place] = each;
        self.is_legal(&full).then(|| (full, usize::from(counts[place] / each)))
    }

    /// Layouts of so many GPUs of which some are full ([`MigTable::filled_gpus`]), and the others
    /// without instances.
    pub fn filled_layouts(&self, counts: &[u16], gpus: usize) -> Option<Vec<Layout>> {
        let (full, filled) = self.filled_gpus(counts).filter(|(_, filled)| *filled <= gpus)?;
        let mut layouts = vec![full; filled];
        layouts.resize(gpus, vec![0; counts.len()]);
        Some(layouts)
    }

    /// Layouts of so many GPUs that are all cut alike, as those of most nodes are.
    pub fn alike_layouts(&self, counts: &[u16], gpus: usize) -> Option<Vec<Layout>> {
        let each = u16::try_from(gpus).ok().filter(|gpus| *gpus > 0)?;
        let layout: Layout = counts.iter().map(|count| count / each).collect();
        let is_even = counts.iter().all(|count| count % each == 0);
        (is_even && self.is_legal(&layout)).then(|| vec![layout; gpus])
    }

    /// All ways in which the instances of a layout can lie on one GPU.
    fn cuts(&self, layout: &[u16]) -> BTreeSet<LayoutCut> {
        let mut cuts = BTreeSet::from([LayoutCut::default()]);
        if self.compute_of(layout) > u64::from(self.compute_slices) {
            return BTreeSet::new();
        }
        for (profile, count) in self.profiles.iter().zip(layout) {
            for _ in 0..*count {
                cuts = cuts.into_iter().flat_map(|cut| cut.with(self, profile)).collect();
            }
        }
        cuts
    }

    /// The legal layouts to which no instance can be added whatever their instances' places are.
    pub fn fullest_layouts(&self) -> Vec<Layout> {
        let none: Layout = vec![0; self.profiles.len()];
        let (mut found, mut seen, mut open) = (Vec::new(), BTreeSet::new(), vec![none]);
        while let Some(layout) = open.pop() {
            let more = (0..layout.len()).map(|place| {
                let mut more = layout.clone();
                more[place] += 1;
                more
            });
            let more: Vec<Layout> = more.filter(|more| self.is_legal(more)).collect();
            if more.is_empty() {
                found.push(layout);
            }
            open.extend(more.into_iter().filter(|more| seen.insert(more.clone())));
        }
        found.sort();
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// States of one GPU by brute force over the places of instances, one at a time; `profiles` are
    /// those that count.
    fn placements(table: &MigTable, profiles: &[usize]) -> BTreeSet<Vec<(usize, u8)>> {
        let mut found = BTreeSet::new();
        let mut open: Vec<Vec<(usize, u8)>> = vec![Vec::new()];
        while let Some(placed) = open.pop() {
            if !found.insert(placed.clone()) {
                continue;
            }
            for profile in profiles {
                for start in &table.profiles[*profile].starts {
                    let mut more = placed.clone();
                    more.push((*profile, *start));
                    more.sort_unstable();
                    if fits(table, &more) {
                        open.push(more);
                    }
                }
            }
        }
        found
    }

    fn fits(table: &MigTable, placed: &[(usize, u8)]) -> bool {
        let mut taken = [0u8; 8];
        let mut compute = 0;
        for (profile, start) in placed {
            let profile = &table.profiles[*profile];
            compute += profile.compute_slices;
            for slice in *start..*start + profile.memory_slices {
                taken[usize::from(slice)] += 1;
            }
        }
        compute <= table.compute_slices && taken.iter().all(|count| *count <= 1)
    }

    /// Published counts (`mig_profiles.json`, enumeration; docs.nvidia.com): states, layouts that
    /// nothing can be added to by place, and the same by number of instances.
    #[test]
    fn the_layouts_of_every_gpu_are_as_many_as_published() {
        for table in MigTable::all() {
            let plain: Vec<usize> =
                (0..table.profiles.len()).filter(|p| !table.profiles[*p].has_media()).collect();
            let basic: Vec<usize> = plain
                .iter()
                .copied()
                .filter(|place| {
                    let profile = &table.profiles[*place];
                    profile.compute_slices > 1 || profile.memory_slices == 1
                })
                .collect();
            let counts = |profiles: &[usize]| {
                let all = placements(&table, profiles);
                let is_full = |placed: &&Vec<(usize, u8)>| {
                    !profiles.iter().any(|profile| {
                        table.profiles[*profile].starts.iter().any(|start| {
                            let mut more = (*placed).clone();
                            more.push((*profile, *start));
                            fits(&table, &more)
                        })
                    })
                };
                let full: Vec<_> = all.iter().filter(is_full).collect();
                let multisets: BTreeSet<Vec<usize>> = full
                    .iter()
                    .map(|placed| placed.iter().map(|(profile, _)| *profile).collect())
                    .collect();
                (all.len(), full.len(), multisets.len())
            };
            match table.compute_slices {
                7 => {
                    assert_eq!(counts(&plain), (723, 78, 38), "{}", table.name);
                    let (_, places, multisets) = counts(&basic);
                    assert_eq!((places, multisets), (19, 14), "{}", table.name);
                }
                _ => assert_eq!(counts(&plain), (26, 5, 4), "{}", table.name),
            }
        }
    }

    #[test]
    fn instances_of_one_slice_fill_gpus_and_others_may_be_spread() {
        let filled = |model: &str, instances: &[(&str, u16)]| {
            let table = MigTable::of_model(model).unwrap();
            let mut counts = vec![0; table.profiles.len()];
            instances
                .iter()
                .for_each(|(name, count)| counts[table.profile(name).unwrap()] = *count);
            let (layout, gpus) = table.filled_gpus(&counts)?;
            assert_eq!(table.left_over(&layout), Some(0));
            Some((layout.iter().sum::<u16>(), gpus))
        };
        assert_eq!(filled("A100-80GB", &[("1g.10gb", 7)]), Some((7, 1)));
        assert_eq!(filled("A30", &[("1g.6gb", 4)]), Some((4, 1)));
        assert_eq!(filled("A30", &[("1g.6gb", 12)]), Some((4, 3)));
        let none: [(&str, &[(&str, u16)]); 7] = [
            ("A30", &[]),
            ("A30", &[("1g.6gb", 6)]),
            ("A30", &[("1g.6gb", 4), ("2g.12gb", 2)]),
            ("A30", &[("2g.12gb", 2)]),
            ("A100-80GB", &[("3g.40gb", 2)]),
            ("A100-80GB", &[("1g.20gb", 4)]),
            // A GPU has one set of media engines.
            ("A100-80GB", &[("1g.10gb+me", 7)]),
        ];
        for (model, instances) in none {
            assert_eq!(filled(model, instances), None, "{model} {instances:?}");
        }
    }

    #[test]
    fn what_a_layout_leaves_over_is_the_least_over_its_places() {
        let table = MigTable::of_model("A100-40GB").unwrap();
        let left = |names: &[&str]| {
            let mut layout = vec![0; table.profiles.len()];
            names.iter().for_each(|name| layout[table.profile(name).unwrap()] += 1);
            table.left_over(&layout)
        };
        assert_eq!(left(&[]), Some(7));
        assert_eq!(left(&["3g.20gb", "3g.20gb"]), Some(0));
        // Behind a 4g, or behind a 3g at its first start, there is room for three.
        assert_eq!(left(&["4g.20gb"]), Some(3));
        assert_eq!(left(&["3g.20gb"]), Some(3));
        assert_eq!(left(&["2g.10gb"; 3]), Some(1));
        assert_eq!(left(&["1g.10gb"; 4]), Some(0));
        assert_eq!(left(&["4g.20gb", "4g.20gb"]), None);
        assert_eq!(left(&["1g.5gb+me", "1g.5gb+me"]), None);
        assert_eq!(left(&["7g.40gb", "1g.5gb"]), None);
    }
}

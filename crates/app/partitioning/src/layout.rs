//! Layouts of GPUs whose instances are only counted, and legal places for them.

use dovetail_model::{Layout, MigTable};
use dovetail_partition::{Instance, size};

/// Legal places for a layout, the largest instances first, as drivers are asked to create them.
pub(crate) fn placed(table: &MigTable, layout: &[u16]) -> Option<Vec<Instance>> {
    let mut order: Vec<usize> = Vec::new();
    for (profile, count) in layout.iter().enumerate() {
        order.extend(std::iter::repeat_n(profile, usize::from(*count)));
    }
    order.sort_by_key(|profile| std::cmp::Reverse(table.profiles[*profile].memory_slices));
    let mut found = Vec::new();
    let compute = table.compute_of(layout) <= u64::from(table.compute_slices);
    (compute && place(table, &order, 0, &mut found)).then_some(found)
}

fn place(table: &MigTable, order: &[usize], taken: u16, found: &mut Vec<Instance>) -> bool {
    let Some((profile, rest)) = order.split_first() else { return true };
    // From the far end on, so that the places of the largest instances stay free.
    for start in table.profiles[*profile].starts.iter().rev() {
        let mask = table.profiles[*profile].mask_at(*start);
        if taken & mask != 0 {
            continue;
        }
        found.push(Instance { profile: *profile, start: *start });
        if place(table, rest, taken | mask, found) {
            return true;
        }
        found.pop();
    }
    false
}

/// The instances of a node on so many GPUs: alike where they can be, else on the fewest. `None` if
/// they do not fit.
pub(crate) fn spread(table: &MigTable, counts: &[u16], gpus: usize) -> Option<Vec<Layout>> {
    let each = u16::try_from(gpus).ok().filter(|gpus| *gpus > 0)?;
    let alike: Layout = counts.iter().map(|count| count / each).collect();
    if counts.iter().all(|count| count % each == 0) && table.is_legal(&alike) {
        return Some(vec![alike; gpus]);
    }
    let list: Vec<(String, u64)> = table
        .profiles
        .iter()
        .zip(counts)
        .filter(|(_, count)| **count > 0)
        .map(|(profile, count)| (profile.name.clone(), u64::from(*count)))
        .collect();
    let sizing = size(table, &list).ok()?;
    let layouts = sizing.layouts.into_iter();
    let mut all: Vec<Layout> =
        layouts.flat_map(|(layout, count)| vec![layout; count as usize]).collect();
    if all.len() > gpus {
        return None;
    }
    all.resize(gpus, vec![0; counts.len()]);
    Some(all)
}

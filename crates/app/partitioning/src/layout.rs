//! Legal places for the instances of layouts.

use dovetail_model::MigTable;
use dovetail_partition::Instance;

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

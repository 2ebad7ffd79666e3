//! Layouts of GPUs whose instances are only counted: device plugins say how many instances of each
//! profile a node has, not on which GPU they lie.

use dovetail_model::{Layout, MigTable};

use crate::sizing::size;

/// The instances of a node on so many GPUs, `counts` in the order of the table's profiles: on the
/// GPUs that they fill ([`MigTable::filled_gpus`]), else alike where they can be, else on the
/// fewest GPUs, and the others without instances. `None` if they do not fit.
pub fn layouts_of_counts(table: &MigTable, counts: &[u16], gpus: usize) -> Option<Vec<Layout>> {
    if gpus == 0 || u16::try_from(gpus).is_err() {
        return None;
    }
    let known = table.filled_layouts(counts, gpus).or_else(|| table.alike_layouts(counts, gpus));
    if known.is_some() {
        return known;
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

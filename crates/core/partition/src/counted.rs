//! Layouts of GPUs whose instances are only counted: device plugins say how many instances of each
//! profile a node has, not on which GPU they lie.

use dovetail_model::{Layout, MigTable};

use crate::sizing::size;

/// The instances of a node on so many GPUs, `counts` in the order of the table's profiles: on the
/// GPUs that they fill ([`MigTable::filled_gpus`]), else alike where they can be, else on the
/// fewest GPUs, and the others without instances. `None` if they do not fit.
pub fn layouts_of_counts(table: &MigTable, counts: &[u16], gpus: usize) -> Option<Vec<Layout>> {
    let each = u16::try_from(gpus).ok().filter(|gpus| *gpus > 0)?;
    if let Some((full, filled)) = table.filled_gpus(counts).filter(|(_, filled)| *filled <= gpus) {
        let mut all = vec![full; filled];
        all.resize(gpus, vec![0; counts.len()]);
        return Some(all);
    }
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

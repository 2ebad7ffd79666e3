//! How long changes of layouts take, by those that were made.

use crate::component::Component;
use crate::record::{Record, Step};

/// So many changes say how long the next one takes.
const ENOUGH: usize = 5;

/// For how long the GPUs of a node cannot be used when a component changes their layout, in
/// seconds: the 90th percentile of the changes in these records that were completed and moved no
/// pods; `None` where they are fewer than five.
pub fn change_seconds<'r>(
    records: impl IntoIterator<Item = &'r Record>,
    by: Component,
) -> Option<u64> {
    let is_like =
        |record: &&Record| record.step == Step::Done && record.by == by && !record.has_moves();
    let took_ms = |record: &Record| record.since_ms.saturating_sub(record.started_ms);
    let mut took_ms: Vec<u64> = records.into_iter().filter(is_like).map(took_ms).collect();
    took_ms.sort_unstable();
    let place = (took_ms.len() * 9).div_ceil(10).checked_sub(1)?;
    let is_enough = took_ms.len() >= ENOUGH;
    is_enough.then(|| took_ms[place].div_ceil(1_000).max(1))
}

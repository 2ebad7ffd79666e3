//! The dearest rows of a bill, and one for all others: what is not shown is still in the sum.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use dovetail_account::cost::CostSum;

use super::statement::Sums;

/// How many rows are shown.
#[derive(Clone, Copy, Debug)]
pub struct Top {
    pub most: u32,
    /// Others that nobody told apart: what they come to stands under the key without parts.
    pub(crate) told_as_one: u64,
}

/// Which rows are shown.
#[derive(Debug)]
pub struct ShownRows {
    keys: BTreeSet<Vec<String>>,
    others: u64,
}

impl Top {
    /// The dearest of some rows; of those that cost the same, the ones with most GPU-time.
    pub fn of(self, rows: &Sums) -> ShownRows {
        let named = rows.iter().filter(|(key, _)| !key.is_empty());
        let mut named: Vec<(&Vec<String>, &CostSum)> = named.collect();
        named.sort_by_key(|(_, sum)| Reverse((sum.cost(), sum.gpu_milli_ms)));
        let most = usize::try_from(self.most).unwrap_or(usize::MAX);
        let others = self.told_as_one + named.len().saturating_sub(most) as u64;
        let keys = named.into_iter().take(most).map(|(key, _)| key.clone()).collect();
        ShownRows { keys, others }
    }
}

impl ShownRows {
    /// Rows with all others under the key without parts.
    pub(crate) fn with_others_as_one(&self, rows: Sums) -> Sums {
        let mut told = Sums::new();
        for (key, sum) in rows {
            let key = if self.keys.contains(&key) { key } else { Vec::new() };
            *told.entry(key).or_default() += &sum;
        }
        told
    }

    /// The key of all others as people read it, of so many parts.
    pub fn others(&self, parts: usize) -> Vec<String> {
        let mut key = vec![String::new(); parts];
        if let Some(first) = key.first_mut() {
            *first = format!("others ({})", self.others);
        }
        key
    }
}

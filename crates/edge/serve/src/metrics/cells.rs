//! Sums by team, pool and cause, few enough for a time series database.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_account::split::SplitMethod;
use dovetail_model::Money;
use dovetail_store::{Party, SumRow};

/// The team and the pool of all that have no series of their own.
pub const OTHERS: &str = "(others)";
/// The team of what nobody had.
const NO_OWNER: &str = "(no owner)";
/// A team or a pool that nobody knows.
const UNKNOWN: &str = "(unknown)";

/// So many pairs of team and pool have series of their own; each has one for every cause.
const MOST_PAIRS: usize = 500;

/// Labels of a series.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SeriesLabels {
    pub cluster: String,
    /// The team; `(no owner)` of what nobody had.
    pub team: String,
    pub pool: String,
    /// What the GPUs were.
    pub cause: String,
}

/// A value of a series.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeriesValue {
    pub place: SeriesLabels,
    /// Device-time in milli-GPU × ms.
    pub gpu_milli_ms: i128,
    /// The part of it without a price: it is in no cost.
    pub unpriced_gpu_milli_ms: i128,
    /// What the rest of it cost; `None` where nothing of it has a price.
    pub cost: Option<Money>,
}

/// Rows of a ledger as series, under a split method.
pub fn cells<'r>(
    rows: impl IntoIterator<Item = &'r SumRow>,
    method: SplitMethod,
    team: &dyn Fn(&Party) -> Option<String>,
) -> Vec<SeriesValue> {
    let method = SplitMethod::ALL.iter().position(|known| *known == method).unwrap_or(0);
    let known = |text: Option<String>| {
        text.filter(|text| !text.is_empty()).unwrap_or_else(|| UNKNOWN.to_owned())
    };
    let cell = |row: &SumRow| SeriesValue {
        place: SeriesLabels {
            cluster: row.cluster.to_string(),
            team: row
                .party
                .as_deref()
                .map_or_else(|| NO_OWNER.to_owned(), |party| known(team(party))),
            pool: known(row.group.as_deref().map(|group| group.pool.clone())),
            cause: row.paid.name(),
        },
        gpu_milli_ms: row.gpu_milli_ms,
        unpriced_gpu_milli_ms: if row.costs[method].is_none() { row.gpu_milli_ms } else { 0 },
        cost: row.costs[method],
    };
    fewer(rows.into_iter().map(cell))
}

/// Each place once, and no more than a database should bear: those with the most GPU-time keep
/// their names.
pub fn fewer(cells: impl IntoIterator<Item = SeriesValue>) -> Vec<SeriesValue> {
    let all = joined(cells);
    let mut pairs: BTreeMap<(&str, &str), i128> = BTreeMap::new();
    for SeriesValue { place, gpu_milli_ms, .. } in &all {
        *pairs.entry((&place.team, &place.pool)).or_default() += gpu_milli_ms;
    }
    if pairs.len() <= MOST_PAIRS {
        return all;
    }
    let mut ranked: Vec<((&str, &str), i128)> = pairs.into_iter().collect();
    ranked.sort_by_key(|(pair, time)| (std::cmp::Reverse(*time), *pair));
    let kept: BTreeSet<(String, String)> = ranked[..MOST_PAIRS]
        .iter()
        .map(|((team, pool), _)| ((*team).to_owned(), (*pool).to_owned()))
        .collect();
    joined(all.into_iter().map(|mut cell| {
        let SeriesLabels { team, pool, .. } = &mut cell.place;
        if !kept.contains(&(team.clone(), pool.clone())) {
            (*team, *pool) = (OTHERS.to_owned(), OTHERS.to_owned());
        }
        cell
    }))
}

/// The same by cluster and team alone.
pub fn teams(cells: impl IntoIterator<Item = SeriesValue>) -> Vec<SeriesValue> {
    joined(cells.into_iter().map(|cell| {
        let SeriesLabels { cluster, team, .. } = cell.place;
        SeriesValue { place: SeriesLabels { cluster, team, ..SeriesLabels::default() }, ..cell }
    }))
}

fn joined(cells: impl IntoIterator<Item = SeriesValue>) -> Vec<SeriesValue> {
    let mut sums: BTreeMap<SeriesLabels, SeriesValue> = BTreeMap::new();
    for cell in cells {
        let sum = sums.entry(cell.place).or_default();
        sum.gpu_milli_ms += cell.gpu_milli_ms;
        sum.unpriced_gpu_milli_ms += cell.unpriced_gpu_milli_ms;
        if let Some(cost) = cell.cost {
            *sum.cost.get_or_insert_default() += cost;
        }
    }
    sums.into_iter().map(|(place, sum)| SeriesValue { place, ..sum }).collect()
}

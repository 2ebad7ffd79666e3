//! Sizing: the fewest GPUs of one model on which a list of instances fits.
//!
//! The lower bound is the dual of the covering program: prices of instances at which no layout
//! costs more than one GPU; then the list costs at least so many GPUs. Prices are made integers, so
//! that the bound holds exactly. The answer takes whole GPUs from the linear program and searches
//! for the rest, with fewer and fewer whole GPUs until the bound is met.

use std::collections::BTreeMap;

use dovetail_model::{Layout, MigTable};
use thiserror::Error;

use crate::simplex::{Simplex, Variable};

/// Prices are in units of one GPU divided by this.
const PRICE_SCALE: f64 = 1_099_511_627_776.0;

/// So many GPUs of each layout of the linear program are searched for again at the most.
const MOST_SLACK: u64 = 4;

/// Steps of the search altogether.
const MOST_STEPS: u64 = 2_000_000;

/// Why a list has no size.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SizingError {
    /// The GPU has no such profile.
    #[error("{gpu} has no profile `{profile}`; it has {known}")]
    Unknown {
        /// The table.
        gpu: String,
        /// What was asked for.
        profile: String,
        /// What there is.
        known: String,
    },
    /// More than can be counted.
    #[error("`{profile}`: {count} instances are too many: request at most 1000000")]
    TooMany {
        /// What was asked for.
        profile: String,
        count: u64,
    },
}

/// How many GPUs a list needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sizing {
    /// Layouts, as counts in the order of the table's profiles, and how many GPUs have each.
    pub layouts: Vec<(Layout, u64)>,
    pub gpus: u64,
    /// No fewer GPUs can hold the list.
    pub lower_bound: u64,
}

/// Most instances of one profile that a list may have.
const MOST_INSTANCES: u64 = 1_000_000;

/// The fewest GPUs of a table for a list of profiles and counts.
///
/// # Errors
/// A profile that the table does not have, or more instances than can be counted.
pub fn size(table: &MigTable, demand: &[(String, u64)]) -> Result<Sizing, SizingError> {
    let asked = asked(table, demand)?;
    let full = table.fullest_layouts();
    let (prices, shares) = prices(&full, &asked);
    let most = dearest(&full, &prices);
    let bound = |asked: &[u64]| cost(asked.iter().copied(), &prices).div_ceil(most) as u64;
    let lower_bound = bound(&asked);
    let mut steps = MOST_STEPS;
    let mut best: Option<Vec<(usize, u64)>> = None;
    for slack in 0..=MOST_SLACK {
        let whole: Vec<u64> =
            shares.iter().map(|share| (*share as u64).saturating_sub(slack)).collect();
        let found = complete(&full, &whole, &asked, &bound, &mut steps);
        let count = |found: &[(usize, u64)]| found.iter().map(|(_, gpus)| gpus).sum::<u64>();
        if best.as_ref().is_none_or(|known| count(&found) < count(known)) {
            best = Some(found);
        }
        let gpus = best.as_deref().map_or(0, count);
        if gpus <= lower_bound || steps == 0 || whole.iter().all(|gpus| *gpus == 0) {
            break;
        }
    }
    let best = best.unwrap_or_default();
    let gpus = best.iter().map(|(_, gpus)| gpus).sum();
    let layouts = trimmed(&full, &best, asked);
    Ok(Sizing { layouts, gpus, lower_bound })
}

/// Fewer GPUs of a table than this hold no list of profiles and counts, whatever their layouts are.
/// `full`: [`MigTable::fullest_layouts`].
///
/// # Errors
/// Those of [`size`].
pub fn least_gpus(
    table: &MigTable,
    full: &[Layout],
    demand: &[(String, u64)],
) -> Result<u64, SizingError> {
    let asked = asked(table, demand)?;
    let (prices, _) = prices(full, &asked);
    Ok(cost(asked.iter().copied(), &prices).div_ceil(dearest(full, &prices)) as u64)
}

/// How many instances of each profile of a table a list has.
fn asked(table: &MigTable, demand: &[(String, u64)]) -> Result<Vec<u64>, SizingError> {
    let mut asked = vec![0u64; table.profiles.len()];
    for (name, count) in demand {
        let Some(place) = table.profile(name) else {
            let known: Vec<&str> =
                table.profiles.iter().map(|profile| profile.name.as_str()).collect();
            let (gpu, profile) = (table.name.clone(), name.clone());
            return Err(SizingError::Unknown { gpu, profile, known: known.join(", ") });
        };
        asked[place] = asked[place].saturating_add(*count);
        if asked[place] > MOST_INSTANCES {
            return Err(SizingError::TooMany { profile: name.clone(), count: asked[place] });
        }
    }
    Ok(asked)
}

/// The price of the instances of the dearest layout.
fn dearest(full: &[Layout], prices: &[u128]) -> u128 {
    let costs = full.iter().map(|layout| cost(layout.iter().copied(), prices));
    costs.max().unwrap_or(1).max(1)
}

fn cost<C: Into<u128>>(counts: impl Iterator<Item = C>, prices: &[u128]) -> u128 {
    counts.zip(prices).map(|(count, price)| count.into() * price).sum()
}

/// Prices of instances, in parts of a GPU, and how often the program uses each layout.
fn prices(full: &[Layout], asked: &[u64]) -> (Vec<u128>, Vec<f64>) {
    let mut program = Simplex::new(&vec![1.0; full.len()]);
    for (place, count) in asked.iter().enumerate() {
        let entries = full.iter().enumerate().filter(|(_, layout)| layout[place] > 0);
        let entries = entries.map(|(row, layout)| (row, f64::from(layout[place]))).collect();
        program.add(Variable { profit: *count as f64, entries });
    }
    program.run(10_000);
    let mut prices = vec![0; asked.len()];
    for (number, value) in program.solution() {
        if let Some(place) = number.checked_sub(full.len()) {
            prices[place] = (value.max(0.0) * PRICE_SCALE) as u128;
        }
    }
    (prices, program.prices().iter().map(|share| share + 1e-6).collect())
}

/// These whole GPUs, and the fewest for the rest.
fn complete(
    full: &[Layout],
    whole: &[u64],
    asked: &[u64],
    bound: &dyn Fn(&[u64]) -> u64,
    steps: &mut u64,
) -> Vec<(usize, u64)> {
    let mut rest = asked.to_vec();
    for (layout, gpus) in full.iter().zip(whole) {
        rest.iter_mut()
            .zip(layout)
            .for_each(|(rest, count)| *rest = rest.saturating_sub(u64::from(*count) * gpus));
    }
    let mut used: BTreeMap<usize, u64> = BTreeMap::new();
    whole.iter().enumerate().filter(|(_, gpus)| **gpus > 0).for_each(|(layout, gpus)| {
        used.insert(layout, *gpus);
    });
    for gpus in bound(&rest).. {
        let mut search = Fill { full, bound, failed: BTreeMap::new(), chosen: Vec::new(), steps };
        if search.fill(&rest, gpus) {
            search.chosen.iter().for_each(|layout| *used.entry(*layout).or_insert(0) += 1);
            break;
        }
    }
    used.into_iter().collect()
}

/// A search for layouts of a given number of GPUs.
struct Fill<'f> {
    full: &'f [Layout],
    bound: &'f dyn Fn(&[u64]) -> u64,
    /// Rests that so many GPUs could not hold.
    failed: BTreeMap<Vec<u64>, u64>,
    chosen: Vec<usize>,
    steps: &'f mut u64,
}

impl Fill<'_> {
    fn fill(&mut self, rest: &[u64], gpus: u64) -> bool {
        let Some(first) = rest.iter().rposition(|count| *count > 0) else { return true };
        if (self.bound)(rest) > gpus || self.failed.get(rest).is_some_and(|failed| *failed >= gpus)
        {
            return false;
        }
        // The layouts that take most of the rest come first.
        let mut layouts: Vec<(u64, usize)> = Vec::new();
        for (number, layout) in self.full.iter().enumerate().filter(|(_, layout)| layout[first] > 0)
        {
            let taken = rest.iter().zip(layout).map(|(rest, count)| (*rest).min(u64::from(*count)));
            layouts.push((taken.sum(), number));
        }
        layouts.sort_by_key(|(taken, number)| (u64::MAX - taken, *number));
        for (_, layout) in layouts {
            // Without steps the first layout is taken: some answer, in which GPUs may be too many.
            if *self.steps == 0 && gpus < rest.iter().sum() {
                return false;
            }
            *self.steps = self.steps.saturating_sub(1);
            let left: Vec<u64> = rest
                .iter()
                .zip(&self.full[layout])
                .map(|(rest, count)| rest.saturating_sub(u64::from(*count)))
                .collect();
            self.chosen.push(layout);
            if self.fill(&left, gpus - 1) {
                return true;
            }
            self.chosen.pop();
        }
        self.failed.insert(rest.to_vec(), gpus);
        false
    }
}

/// The layouts without instances that nobody asked for.
fn trimmed(full: &[Layout], used: &[(usize, u64)], asked: Vec<u64>) -> Vec<(Layout, u64)> {
    let mut left = asked;
    let mut all: BTreeMap<Layout, u64> = BTreeMap::new();
    for (number, gpus) in used {
        let layout = &full[*number];
        let mut missing = *gpus;
        while missing > 0 {
            let taken: Layout = layout
                .iter()
                .zip(&left)
                .map(|(count, left)| u64::from(*count).min(*left) as u16)
                .collect();
            // So many GPUs in a row take the same.
            let alike = taken.iter().zip(&left).filter(|(taken, _)| **taken > 0);
            let alike =
                alike.map(|(taken, left)| left / u64::from(*taken)).min().unwrap_or(missing);
            let alike = alike.clamp(1, missing);
            left.iter_mut()
                .zip(&taken)
                .for_each(|(left, taken)| *left -= u64::from(*taken) * alike);
            *all.entry(taken).or_insert(0) += alike;
            missing -= alike;
        }
    }
    all.into_iter().rev().collect()
}

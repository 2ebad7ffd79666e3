//! One number, and how far the methods disagree about it.

use dovetail_model::Money;
use serde::Serialize;

use super::method::SplitMethod;

/// A figure under one method with its range over all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Headline {
    pub method: SplitMethod,
    /// The figure.
    pub cost: Money,
    /// The method with the least, and its figure.
    pub lowest: (SplitMethod, Money),
    /// The method with the most, and its figure.
    pub highest: (SplitMethod, Money),
}

impl Headline {
    /// Whether methods differ on the figure by more than they round.
    pub fn differs(&self) -> bool {
        is_range(self.lowest.1, self.highest.1)
    }
}

/// A cent, in micro-USD. Each charge of each hour is a whole number of micro-USD: sums of them
/// differ by less.
const ROUNDED_USD_MICROS: i64 = 10_000;

/// Whether two amounts are a range: they are further apart than by rounding.
pub fn is_range(lowest: Money, highest: Money) -> bool {
    highest.usd_micros.saturating_sub(lowest.usd_micros) >= ROUNDED_USD_MICROS
}

/// The figure of one method among the same figure of several; `None` if the method is not among
/// them. Ties go to the earlier.
pub fn headline(method: SplitMethod, figures: &[(SplitMethod, Money)]) -> Option<Headline> {
    let (_, cost) = *figures.iter().find(|(of, _)| *of == method)?;
    let lowest = *figures.iter().min_by_key(|(_, cost)| *cost)?;
    let highest = *figures.iter().rev().max_by_key(|(_, cost)| *cost)?;
    Some(Headline { method, cost, lowest, highest })
}

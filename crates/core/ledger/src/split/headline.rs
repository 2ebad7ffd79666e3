//! One number, and how far the methods disagree about it.

use dovetail_model::Money;
use serde::Serialize;

use super::method::SplitMethod;

/// A figure under one method with its range over all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Headline {
    /// The method of the figure.
    pub method: SplitMethod,
    /// The figure.
    pub cost: Money,
    /// The method with the least, and its figure.
    pub lowest: (SplitMethod, Money),
    /// The method with the most, and its figure.
    pub highest: (SplitMethod, Money),
}

impl Headline {
    /// Whether methods differ on the figure.
    pub fn differs(&self) -> bool {
        self.lowest.1 != self.highest.1
    }
}

/// The figure of one method among the same figure of several; `None` if the method is not among them. Ties
/// go to the earlier.
pub fn headline(method: SplitMethod, figures: &[(SplitMethod, Money)]) -> Option<Headline> {
    let (_, cost) = *figures.iter().find(|(of, _)| *of == method)?;
    let lowest = *figures.iter().min_by_key(|(_, cost)| *cost)?;
    let highest = *figures.iter().rev().max_by_key(|(_, cost)| *cost)?;
    Some(Headline { method, cost, lowest, highest })
}

//! Split costs as a FOCUS dataset: the FinOps Open Cost and Usage Specification, versions 1.2 to
//! 1.4.
//!
//! The origin charge is a node over a charge period. It is not in the dataset: the rows that it is
//! split into are, and together they are the origin, in every amount and quantity. The columns of
//! split cost allocation are FOCUS' own from 1.3 on; in 1.2 they are custom columns with the prefix
//! `x_`.
//!
//! A row that nobody can be charged for has no `AllocatedResourceId`, as the specification asks;
//! why is in `x_WasteCause`.

mod check;
mod columns;
#[cfg(test)]
mod tests;
mod write;

pub use check::{Violation, check};
pub use write::{FocusError, FocusRow, OriginShare, Pricing, SplitCharge, write};

use std::fmt;
use std::str::FromStr;

/// A version of the specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FocusVersion {
    /// 1.2, of May 2025.
    V1_2,
    /// 1.3, of December 2025: split cost allocation, host and service provider.
    V1_3,
    /// 1.4, of June 2026: without provider and publisher, with invoice details.
    V1_4,
}

impl FocusVersion {
    /// All versions.
    pub const ALL: [Self; 3] = [Self::V1_2, Self::V1_3, Self::V1_4];

    /// The number.
    pub fn name(self) -> &'static str {
        match self {
            Self::V1_2 => "1.2",
            Self::V1_3 => "1.3",
            Self::V1_4 => "1.4",
        }
    }
}

impl fmt::Display for FocusVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for FocusVersion {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|version| version.name() == text);
        known.ok_or_else(|| format!("unsupported FOCUS version `{text}`; use 1.2, 1.3 or 1.4"))
    }
}

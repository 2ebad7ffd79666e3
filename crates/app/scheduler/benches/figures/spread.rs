//! Several measurements of one thing.

use std::fmt;

/// Values in ascending order.
#[derive(Clone, Debug)]
pub(crate) struct Spread(Vec<f64>);

impl Spread {
    /// Of at least one value.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        assert!(!values.is_empty(), "something was measured");
        Self(values)
    }

    /// The value below which so many percent are, by the nearest rank.
    pub(crate) fn percentile(&self, percent: usize) -> f64 {
        let rank = (self.0.len() * percent).div_ceil(100).clamp(1, self.0.len());
        self.0[rank - 1]
    }

    pub(crate) fn median(&self) -> f64 {
        self.percentile(50)
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, last) = (self.0[0], self.0[self.0.len() - 1]);
        write!(out, "{:.0} ({first:.0} to {last:.0})", self.median())
    }
}

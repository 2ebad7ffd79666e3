//! What one unit of a resource is of a GPU.

use std::cmp::Ordering;

/// A part of a GPU: `part` of `of` equal slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GpuFraction {
    pub part: i64,
    /// Slices of a whole GPU, at least 1.
    pub of: i64,
}

impl GpuFraction {
    /// A whole GPU.
    pub const WHOLE: Self = Self { part: 1, of: 1 };

    /// How much of a GPU so many of them are, in thousandths, cut off.
    pub fn milli(self, count: i64) -> i64 {
        1000 * count * self.part / self.of.max(1)
    }

    /// The same to the nearest thousandth: of a GPU in two shares, on one node or on two, both
    /// together are exactly a whole one.
    pub fn nearest_milli(self, count: i64) -> i64 {
        to_nearest(1000 * count * self.part, self.of.max(1))
    }
}

/// The whole number that is nearest to a quotient; of two that are equally near, the even one.
pub fn to_nearest(amount: i64, of: i64) -> i64 {
    let (whole, rest) = (amount.div_euclid(of), amount.rem_euclid(of));
    match (rest * 2).cmp(&of) {
        Ordering::Less => whole,
        Ordering::Equal => whole + whole % 2,
        Ordering::Greater => whole + 1,
    }
}

/// What each unit of a resource is of the GPUs of its node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GpuParts {
    /// All units are alike.
    Equal(GpuFraction),
    /// Each is so many milli-GPU: instances of GPUs that are cut in different ways.
    Each(Vec<i64>),
}

impl GpuParts {
    /// The units from one place to another in milli-GPU. Places behind each other add up exactly.
    pub fn milli(&self, from: i64, to: i64) -> i64 {
        let (from, to) = (from.max(0), to.max(0));
        match self {
            _ if to <= from => 0,
            Self::Equal(slice) => slice.nearest_milli(to) - slice.nearest_milli(from),
            Self::Each(units) => {
                let place = |place: i64| usize::try_from(place).map_or(0, |p| p.min(units.len()));
                units[place(from)..place(to)].iter().sum()
            }
        }
    }

    /// All of so many units, cut off: of what is counted in GPUs, shares make up no further one.
    pub fn cut_off_milli(&self, count: i64) -> i64 {
        match self {
            Self::Equal(slice) => slice.milli(count),
            Self::Each(_) => self.milli(0, count),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_shares_of_a_gpu_are_all_of_it() {
        for of in 1..=64 {
            let slice = GpuFraction { part: 1, of };
            for one in 0..=of {
                let both = slice.nearest_milli(one) + slice.nearest_milli(of - one);
                assert_eq!(both, 1000, "{one} and {} of {of}", of - one);
            }
        }
        let seventh = GpuParts::Equal(GpuFraction { part: 8, of: 56 });
        assert_eq!((seventh.milli(0, 3), seventh.milli(0, 4)), (429, 571));
        assert_eq!((seventh.milli(3, 7), seventh.milli(0, 56)), (571, 8000));
        assert_eq!(seventh.cut_off_milli(3), 428);
    }
}

//! What one unit of a resource is of a GPU.

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
            Self::Equal(slice) => slice.milli(to) - slice.milli(from),
            Self::Each(units) => {
                let place = |place: i64| usize::try_from(place).map_or(0, |p| p.min(units.len()));
                units[place(from)..place(to)].iter().sum()
            }
        }
    }
}

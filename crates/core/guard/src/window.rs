//! Requests by latency over a window, one block of time after the other.

use std::fmt;

/// Requests of one block of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TimeBlock {
    /// Requests not slower than each bound of the window. `increase()` of Prometheus
    /// extrapolates, so they need not be whole numbers.
    pub below: Vec<f64>,
    /// All requests.
    pub total: f64,
}

/// Histograms of one window.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    bounds: Vec<f64>,
    blocks: Vec<Option<TimeBlock>>,
}

/// A window that is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowError {
    /// Bounds of buckets must be positive and ascend.
    Bounds,
    /// A block must have one count for each bound, and counts must not be negative.
    Counts {
        /// Which block, counted from 0.
        block: usize,
    },
}

impl fmt::Display for WindowError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bounds => write!(out, "the bounds of its buckets are not positive and ascending"),
            Self::Counts { block } => {
                write!(out, "block {block}: one count of at least 0 is needed for each bucket")
            }
        }
    }
}

impl std::error::Error for WindowError {}

impl Window {
    /// A window. `bounds`: the upper bounds of the buckets without `+Inf`, in any unit. `blocks`:
    /// equally long, in the order of time; `None` where nothing was measured.
    ///
    /// # Errors
    /// See [`WindowError`].
    pub fn new(bounds: Vec<f64>, blocks: Vec<Option<TimeBlock>>) -> Result<Self, WindowError> {
        let ascends = bounds.windows(2).all(|pair| pair[0] < pair[1]);
        let is_positive = bounds.iter().all(|bound| *bound > 0.0 && bound.is_finite());
        if !ascends || !is_positive {
            return Err(WindowError::Bounds);
        }
        let is_count = |count: &f64| count.is_finite() && *count >= 0.0;
        let mut blocks = blocks;
        for (place, block) in blocks.iter_mut().enumerate() {
            let Some(TimeBlock { below, total }) = block else { continue };
            if below.len() != bounds.len() || !below.iter().all(is_count) || !is_count(total) {
                return Err(WindowError::Counts { block: place });
            }
            // Each bucket is extrapolated on its own, so a count may be a little below the one
            // before it.
            let mut most = 0.0_f64;
            for count in below {
                most = most.max(*count);
                *count = most;
            }
            *total = most.max(*total);
        }
        Ok(Self { bounds, blocks })
    }

    /// Upper bounds of the buckets without `+Inf`.
    pub fn bounds(&self) -> &[f64] {
        &self.bounds
    }

    /// Its blocks, in the order of time.
    pub fn blocks(&self) -> &[Option<TimeBlock>] {
        &self.blocks
    }

    /// Requests in all blocks.
    pub fn requests(&self) -> f64 {
        self.blocks.iter().flatten().map(|block| block.total).sum()
    }
}

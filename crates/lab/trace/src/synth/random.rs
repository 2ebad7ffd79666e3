//! Random draws that are the same on every platform.
//!
//! The generator is PCG64 of `rand_pcg`. The transformations are written out here with `libm`,
//! because those of other crates call the platform's own logarithm or may change with a release.

use rand_pcg::Pcg64;
use rand_pcg::rand_core::Rng;

/// What a stream of draws is for; each has its own, so that one setting does not shift the others.
#[derive(Debug, Clone, Copy)]
pub(super) enum Purpose {
    Arrivals = 1,
    Shapes = 2,
    RunTimes = 3,
    People = 4,
    Estimates = 5,
    Objects = 6,
}

/// One stream of draws.
pub(super) struct Random(Pcg64);

impl Random {
    pub(super) fn new(seed: u64, purpose: Purpose) -> Self {
        Self(Pcg64::new(u128::from(seed), purpose as u128))
    }

    /// Uniform in (0, 1]: 53 bits.
    pub(super) fn uniform(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// True with this probability.
    pub(super) fn chance(&mut self, probability: f64) -> bool {
        self.uniform() <= probability
    }

    /// Exponential with mean 1, by inversion.
    pub(super) fn exponential(&mut self) -> f64 {
        -libm::log(self.uniform())
    }

    /// Standard normal (Box and Muller 1958).
    pub(super) fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(2.0 * self.exponential());
        radius * libm::cos(2.0 * std::f64::consts::PI * self.uniform())
    }

    /// An element, each with probability in proportion to its weight; the weights must not all be 0.
    pub(super) fn weighted<'t, T>(&mut self, items: &'t [T], weight: impl Fn(&T) -> f64) -> &'t T {
        let total: f64 = items.iter().map(&weight).sum();
        let mut left = self.uniform() * total;
        for item in &items[..items.len() - 1] {
            left -= weight(item);
            if left <= 0.0 {
                return item;
            }
        }
        &items[items.len() - 1]
    }
}

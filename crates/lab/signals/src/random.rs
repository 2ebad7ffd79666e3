//! Random draws that are the same on every platform, and ranges that are not tuned on.

use rand_pcg::Pcg64;
use rand_pcg::rand_core::Rng;

/// Which half of every range parameters are drawn from. A range is cut into ten bands; one half has
/// the even ones, the other the odd ones, so that both cover it and no value is in both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    /// On which the method may be tuned.
    Tuning,
    /// On which it is judged.
    HeldOut,
}

/// One stream of draws.
pub(crate) struct Random {
    stream: Pcg64,
    half: Half,
}

impl Random {
    pub(crate) fn new(seed: u64, half: Half) -> Self {
        Self { stream: Pcg64::new(u128::from(seed), half as u128), half }
    }

    /// Uniform in [0, 1).
    pub(crate) fn uniform(&mut self) -> f64 {
        (self.stream.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A parameter: uniform in the bands of the half.
    pub(crate) fn between(&mut self, low: f64, high: f64) -> f64 {
        const BANDS: f64 = 5.0;
        let place = self.uniform() * BANDS;
        let band = libm::floor(place);
        let half = if self.half == Half::Tuning { 0.0 } else { 0.5 };
        low + (high - low) * (band + half + (place - band) / 2.0) / BANDS
    }

    /// The same by order of magnitude.
    pub(crate) fn magnitude(&mut self, low: f64, high: f64) -> f64 {
        libm::exp(self.between(libm::log(low), libm::log(high)))
    }

    /// True with this probability.
    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        self.uniform() < probability
    }

    /// A whole number from `low` up to and without `high`.
    pub(crate) fn below(&mut self, low: usize, high: usize) -> usize {
        low + (self.uniform() * (high - low) as f64) as usize
    }

    /// Standard normal (Box and Muller 1958).
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - self.uniform()));
        radius * libm::cos(2.0 * std::f64::consts::PI * self.uniform())
    }
}

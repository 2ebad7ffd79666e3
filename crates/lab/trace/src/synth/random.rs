//! Random draws that are the same on every platform.
//!
//! The generator is PCG64 of `rand_pcg`. The transformations are written out here with `libm`,
//! because those of other crates call the platform's own logarithm or may change with a release.

use rand_pcg::Pcg64;
use rand_pcg::rand_core::Rng;

/// What a stream of draws is for; each has its own, so that one setting does not shift the others.
#[derive(Debug, Clone, Copy)]
pub enum Purpose {
    /// When jobs come.
    Arrivals = 1,
    /// What they ask for.
    Shapes = 2,
    /// How long they run.
    RunTimes = 3,
    /// Who submits them.
    People = 4,
    /// What users say of their run times.
    Estimates = 5,
    /// The objects of a generated cluster.
    Objects = 6,
    /// Which machines there are, and in which order.
    Machines = 7,
}

/// One stream of draws.
#[derive(Debug)]
pub struct Random(Pcg64);

impl Random {
    /// The draws of a seed for a purpose.
    pub fn new(seed: u64, purpose: Purpose) -> Self {
        Self(Pcg64::new(u128::from(seed), purpose as u128))
    }

    /// Uniform in (0, 1]: 53 bits.
    pub fn uniform(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// True with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.uniform() <= probability
    }

    /// A number below `count`, which must not be 0, each with the same probability.
    pub fn below(&mut self, count: usize) -> usize {
        (((1.0 - self.uniform()) * count as f64) as usize).min(count - 1)
    }

    /// Any order, each with the same probability (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }

    /// Exponential with mean 1, by inversion.
    pub fn exponential(&mut self) -> f64 {
        -libm::log(self.uniform())
    }

    /// Standard normal (Box and Muller 1958).
    pub fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(2.0 * self.exponential());
        radius * libm::cos(2.0 * std::f64::consts::PI * self.uniform())
    }

    /// An element, each with probability in proportion to its weight; the weights must not all be
    /// 0.
    pub fn weighted<'t, T>(&mut self, items: &'t [T], weight: impl Fn(&T) -> f64) -> &'t T {
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

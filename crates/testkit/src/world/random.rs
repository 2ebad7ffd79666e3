//! Draws that are the same on every platform, from one seed.

use rand_pcg::Pcg64;
use rand_pcg::rand_core::Rng;

/// One stream of draws. Whatever is drawn takes it as its last argument, behind what it is about.
pub(super) struct Draw(Pcg64);

impl Draw {
    pub(super) fn new(seed: u64) -> Self {
        Self(Pcg64::new(u128::from(seed), 0x77_6f72_6c64))
    }

    /// A number below `bound`, which must not be 0. The remainder's bias does not matter to tests.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        (self.0.next_u64() % bound as u64) as usize
    }

    /// A number from `low` to `high`, both included.
    pub(super) fn between(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1) as usize) as i64
    }

    /// True in `percent` of 100 draws.
    pub(super) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of the items, each as likely as the others.
    pub(super) fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        *self.one(items)
    }

    /// The same, by reference.
    pub(super) fn one<'t, T>(&mut self, items: &'t [T]) -> &'t T {
        &items[self.below(items.len())]
    }

    /// At least one and at most `most` of the items, without repetition, in their order.
    pub(super) fn some<'t, T>(&mut self, items: &'t [T], most: usize) -> Vec<&'t T> {
        let wanted = 1 + self.below(most.min(items.len()));
        let mut left = wanted;
        let mut chosen = Vec::with_capacity(wanted);
        for (position, item) in items.iter().enumerate() {
            if left > 0 && self.below(items.len() - position) < left {
                chosen.push(item);
                left -= 1;
            }
        }
        chosen
    }
}

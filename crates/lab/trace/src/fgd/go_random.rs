//! The pseudo-random generator of Go's `math/rand`, bit for bit.
//!
//! Published orders of the FGD experiments were made with it. Algorithm: additive lagged Fibonacci
//! generator with lags 607 and 273 (D. P. Mitchell and J. A. Reeds), seeded by a Lehmer generator;
//! bounded draws as in Go 1.0 to 1.26 (`Int31n` by rejection, `Shuffle` by Lemire's method).

use super::go_random_table::START_VALUES;

const LENGTH: usize = 607;
const TAP: usize = 273;
/// Modulus of the Lehmer generator that seeds the state, 2^31 - 1.
const LEHMER_MODULUS: i64 = i32::MAX as i64;
const LEHMER_FACTOR: i64 = 48_271;

/// The generator behind `rand.New(rand.NewSource(seed))`.
#[derive(Debug, Clone)]
pub struct GoRandom {
    state: Vec<u64>,
    tap: usize,
    feed: usize,
}

impl GoRandom {
    /// The generator for a seed.
    pub fn new(seed: i64) -> Self {
        let mut x = seed.rem_euclid(LEHMER_MODULUS);
        if x == 0 {
            // Zero is the one value the Lehmer generator cannot leave.
            x = 89_482_311;
        }
        let mut next = || {
            x = x * LEHMER_FACTOR % LEHMER_MODULUS;
            x as u64
        };
        for _ in 0..20 {
            next();
        }
        let state = START_VALUES
            .iter()
            .map(|start| (next() << 40) ^ (next() << 20) ^ next() ^ start)
            .collect();
        Self { state, tap: 0, feed: LENGTH - TAP }
    }

    /// `Uint64`: the next 64 bits.
    pub fn uint64(&mut self) -> u64 {
        self.tap = self.tap.checked_sub(1).unwrap_or(LENGTH - 1);
        self.feed = self.feed.checked_sub(1).unwrap_or(LENGTH - 1);
        let sum = self.state[self.feed].wrapping_add(self.state[self.tap]);
        self.state[self.feed] = sum;
        sum
    }

    /// `Int63`: the next 63 bits.
    pub fn int63(&mut self) -> u64 {
        self.uint64() & (u64::MAX >> 1)
    }

    /// `Intn` for `bound` below 2^31: a number below `bound`, which must not be 0.
    pub fn below(&mut self, bound: u32) -> u32 {
        debug_assert!(bound > 0 && bound <= i32::MAX as u32);
        let mut draw = || (self.int63() >> 32) as u32;
        if bound.is_power_of_two() {
            return draw() & (bound - 1);
        }
        let largest = (1 << 31) - 1 - (1 << 31) % bound;
        loop {
            let value = draw();
            if value <= largest {
                return value % bound;
            }
        }
    }

    /// `Shuffle`: exchanges elements from the last to the second.
    pub fn shuffle<T>(&mut self, values: &mut [T]) {
        for last in (1..values.len()).rev() {
            let other = self.below_by_lemire(last as u32 + 1);
            values.swap(last, other as usize);
        }
    }

    /// `Perm`: a permutation of 0, 1, ..., `length` - 1.
    pub fn permutation(&mut self, length: u32) -> Vec<u32> {
        let mut values: Vec<u32> = Vec::with_capacity(length as usize);
        for next in 0..length {
            let place = self.below(next + 1) as usize;
            values.push(next);
            values[next as usize] = values[place];
            values[place] = next;
        }
        values
    }

    /// `int31n`: a number below `bound`, by multiplication (Lemire 2019).
    fn below_by_lemire(&mut self, bound: u32) -> u32 {
        let mut draw = || u64::from((self.int63() >> 31) as u32) * u64::from(bound);
        let mut product = draw();
        if (product as u32) < bound {
            let threshold = bound.wrapping_neg() % bound;
            while (product as u32) < threshold {
                product = draw();
            }
        }
        (product >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_values_of_published_seeds() {
        // Printed by Go: rand.New(rand.NewSource(seed)).Int63(), twice.
        for (seed, first, second) in [
            (42, 3_440_579_354_231_278_675, 608_747_136_543_856_411),
            (0, GO_SEED_0.0, GO_SEED_0.1),
            (-7, GO_SEED_MINUS_7.0, GO_SEED_MINUS_7.1),
        ] {
            let mut random = GoRandom::new(seed);
            assert_eq!((random.int63(), random.int63()), (first, second), "seed {seed}");
        }
    }

    #[test]
    fn bounded_draws_as_in_go() {
        let mut random = GoRandom::new(42);
        assert_eq!(random.permutation(10), GO_PERMUTATION);
        let mut values: Vec<u32> = (0..10).collect();
        random.shuffle(&mut values);
        assert_eq!(values, GO_SHUFFLE);
        let draws: Vec<u32> = [1, 2, 1000, 1 << 30, (1 << 31) - 1].map(|n| random.below(n)).into();
        assert_eq!(draws, GO_BELOW);
    }

    const GO_SEED_0: (u64, u64) = (8717895732742165505, 2259404117704393152);
    const GO_SEED_MINUS_7: (u64, u64) = (747107023976529931, 7084732931963018726);
    const GO_PERMUTATION: [u32; 10] = [7, 5, 8, 9, 2, 1, 6, 0, 3, 4];
    const GO_SHUFFLE: [u32; 10] = [6, 8, 5, 4, 9, 3, 0, 2, 1, 7];
    const GO_BELOW: [u32; 5] = [0, 0, 934, 615445444, 487741275];
}

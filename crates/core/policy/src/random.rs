//! A sequence of random picks by seed and number.

/// How often a random pick was made; part of the sequence, so that replays agree.
#[derive(Clone, Copy, Debug, Default)]
pub struct RandomSequence {
    /// Picks made so far.
    pub drawn: u64,
}

impl RandomSequence {
    /// A number below `count`, from the seed and how many were drawn before (SplitMix64, Steele et
    /// al. 2014; the bias of the multiplication is below 2^-32).
    pub fn below(&mut self, seed: u64, count: usize) -> usize {
        self.drawn += 1;
        let mut z = seed.wrapping_add(self.drawn.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^= z >> 31;
        ((u128::from(z) * count as u128) >> 64) as usize
    }
}

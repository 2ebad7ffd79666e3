//! Draws that depend on the seed and on what they are about, not on the order of other draws.

use rustc_hash::FxHashMap;

/// Draws of one history.
#[derive(Debug)]
pub(crate) struct Dice {
    seed: u64,
    /// How often was drawn about something.
    drawn: FxHashMap<u64, u32>,
}

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, drawn: FxHashMap::default() }
    }

    /// The next number about something, and which one it is.
    pub(crate) fn draw(&mut self, what: &str, about: &str) -> (u64, u32) {
        let key = hash(hash(0xcbf2_9ce4_8422_2325, what), about);
        let drawn = self.drawn.entry(key).or_default();
        *drawn += 1;
        (mix(self.seed ^ mix(key.wrapping_add(u64::from(*drawn)))), *drawn)
    }

    pub(crate) fn below(&mut self, what: &str, about: &str, bound: u64) -> u64 {
        self.draw(what, about).0 % bound.max(1)
    }
}

/// Numbers in a row, for what is drawn before anything happens.
#[derive(Debug)]
pub(crate) struct DrawSequence(u64);

impl DrawSequence {
    pub(crate) fn new(seed: u64) -> Self {
        Self(mix(seed))
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0) % bound.max(1)
    }

    pub(crate) fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most - least + 1)
    }

    pub(crate) fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    pub(crate) fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len() as u64) as usize]
    }
}

/// FNV-1a over a text and its end.
fn hash(start: u64, text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    step(text.bytes().fold(start, step), 0xff)
}

/// The finaliser of SplitMix64.
pub(crate) fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

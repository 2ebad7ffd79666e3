//! Numbers and letters that look random and follow from others.

/// Numbers that follow from others and look random (splitmix64, Steele et al. 2014).
pub(super) fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// Letters and digits as Kubernetes puts behind generated names.
pub(super) fn letters(number: u64, length: usize) -> String {
    let mut left = mixed(number);
    let mut text = String::with_capacity(length);
    for _ in 0..length {
        text.push(char::from(LETTERS[(left % 27) as usize]));
        left /= 27;
    }
    text
}

/// Five of them behind the name of a pod: no two numbers below 14 million have the same.
pub(super) fn ending(number: u32) -> String {
    const ALL: u64 = 27 * 27 * 27 * 27 * 27;
    // Any factor without a common divisor with 27 gives each number its own.
    let mut left = u64::from(number) * 9_973_577 % ALL;
    let mut text = String::with_capacity(5);
    for _ in 0..5 {
        text.push(char::from(LETTERS[(left % 27) as usize]));
        left /= 27;
    }
    text
}

//! Names without what was generated.

/// What Kubernetes draws names from: no vowels, and no digits that look like them.
const DRAWN: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
/// `generateName` appends so many letters.
const DRAWN_LETTERS: usize = 5;
/// A time is at least so long (minutes since 1970, a date, seconds), and so is the begin of a hash.
/// Shorter numbers were chosen by somebody: `sweep-1` and `sweep-2` are two.
const FEWEST_LETTERS: usize = 8;

/// A name without one generated suffix: five letters as `generateName` draws them, a time, a part
/// of a hash.
pub fn stem(name: &str) -> &str {
    let Some((rest, last)) = name.rsplit_once('-') else { return name };
    let letters = last.as_bytes();
    let is_drawn = letters.len() == DRAWN_LETTERS && letters.iter().all(|b| DRAWN.contains(b));
    let is_hex = letters.iter().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(b));
    let has_digit = letters.iter().any(u8::is_ascii_digit);
    let is_long = letters.len() >= FEWEST_LETTERS && is_hex && has_digit;
    if !rest.is_empty() && (is_drawn || is_long) { rest } else { name }
}

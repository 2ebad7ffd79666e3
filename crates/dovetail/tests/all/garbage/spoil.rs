//! Good input, spoiled: cut off, mistyped, hostile, or changed here and there by a seed.

use std::ops::Range;

use crate::program::is_soak;

/// What stands where a value was.
const HOSTILE: [&str; 22] = [
    "",
    "NaN",
    "-1",
    "-0",
    "+Inf",
    "1e999",
    "1e-999",
    "0.0000000000000000000000000001",
    "99999999999999999999999999999999",
    "9223372036854775807",
    "18446744073709551615",
    "253402300799000",
    "4000000000",
    "null",
    "true",
    "[]",
    "{}",
    "\"text\"",
    "=HYPERLINK(\"http://a.example\")",
    "\u{1b}[31mred\u{202e}",
    "a\u{0}b",
    "9999-12-31T23:59:59Z",
];

/// How many inputs are spoiled by chance.
fn by_chance_count() -> u64 {
    if is_soak() { 4_000 } else { 150 }
}

/// Spoiled forms of an input, each with what was done to it.
pub(super) fn spoiled(good: &str) -> Vec<(String, Vec<u8>)> {
    let mut all = whole(good);
    all.extend(cut(good));
    all.extend(values(good));
    all.extend((0..by_chance_count()).map(|seed| (format!("seed {seed}"), by_chance(good, seed))));
    all
}

/// What has nothing to do with the form.
fn whole(good: &str) -> Vec<(String, Vec<u8>)> {
    let wide = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let first = good.lines().next().unwrap_or_default();
    let all: [(&str, Vec<u8>); 14] = [
        ("nothing", Vec::new()),
        ("blanks", b" \t\r\n\n  ".to_vec()),
        ("a zero byte", vec![0]),
        ("zero bytes", vec![0; 100_000]),
        ("no text", (0..=255).collect()),
        ("two bytes a letter", wide(good)),
        ("the first line alone", first.as_bytes().to_vec()),
        ("the first line twice", format!("{first}\n{good}").into_bytes()),
        ("twice", format!("{good}{good}").into_bytes()),
        ("begun as gzip", [&[0x1f, 0x8b, 8, 0][..], good.as_bytes()].concat()),
        ("deep", vec![b'['; 200_000]),
        ("deep objects", b"{\"a\":".repeat(100_000)),
        ("one long line", vec![b'7'; 3_000_000]),
        ("commas", vec![b','; 1_000_000]),
    ];
    all.into_iter().map(|(what, bytes)| (what.to_owned(), bytes)).collect()
}

/// Cut off at sixty places.
fn cut(good: &str) -> Vec<(String, Vec<u8>)> {
    let step = (good.len() / 60).max(1);
    let places = (1..good.len()).step_by(step);
    places.map(|at| (format!("cut off at {at}"), good.as_bytes()[..at].to_vec())).collect()
}

/// Every value, hostile. Of each kind of input some hundreds.
fn values(good: &str) -> Vec<(String, Vec<u8>)> {
    let places = places_of_values(good);
    let step = places.len().div_ceil(60).max(1);
    let mut all = Vec::new();
    for place in places.into_iter().step_by(step) {
        for hostile in HOSTILE {
            let (before, after) = (&good[..place.start], &good[place.end..]);
            let what = format!("{hostile:?} for {:?} at {}", &good[place.clone()], place.start);
            all.push((what, format!("{before}{hostile}{after}").into_bytes()));
        }
    }
    all
}

/// Runs of letters, digits and what numbers and times are written with; and what stands in quotes,
/// with them.
fn places_of_values(good: &str) -> Vec<Range<usize>> {
    let bytes = good.as_bytes();
    let is_value = |byte: u8| byte.is_ascii_alphanumeric() || b".+-:/_*".contains(&byte);
    let (mut places, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let rest = &bytes[at..];
        let length = match rest[0] {
            b'"' => {
                rest[1..].iter().position(|byte| *byte == b'"').map_or(rest.len(), |end| end + 2)
            }
            _ => rest.iter().position(|byte| !is_value(*byte)).unwrap_or(rest.len()),
        };
        if length > 0 {
            places.push(at..at + length);
        }
        at += length.max(1);
    }
    places
}

/// Some bytes changed, left out, doubled or moved.
fn by_chance(good: &str, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut below = |bound: usize| {
        // Xorshift: enough to choose places.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % bound.max(1) as u64) as usize
    };
    let mut bytes = good.as_bytes().to_vec();
    for _ in 0..=below(6) {
        let (from, length) = (below(bytes.len()), 1 + below(12));
        let to = (from + length).min(bytes.len());
        match below(5) {
            0 => bytes[from] = below(256) as u8,
            1 => bytes[from] ^= 1 << below(8),
            2 => drop(bytes.drain(from..to)),
            3 => {
                let part = bytes[from..to].to_vec();
                let at = below(bytes.len());
                bytes.splice(at..at, part);
            }
            _ => {
                let hostile = HOSTILE[below(HOSTILE.len())];
                bytes.splice(from..to, hostile.bytes());
            }
        }
        if bytes.is_empty() {
            break;
        }
    }
    bytes
}

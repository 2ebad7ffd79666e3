//! Lists of seeds: `42-46`, `1,2,7`.

use std::str::FromStr;

/// Most seeds of one list.
const MAX_SEEDS: u64 = 10_000;

/// Seeds, each once, in the order given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seeds(pub Vec<u64>);

impl FromStr for Seeds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let seed = |text: &str| {
            let seed = text.parse().ok().filter(|seed| i64::try_from(*seed).is_ok());
            seed.ok_or_else(|| {
                format!("`{text}` is not a seed: expected a list such as 42-46 or 1,2,7")
            })
        };
        let mut seeds: Vec<u64> = Vec::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last): (u64, u64) = (seed(first)?, seed(last)?);
            if last < first {
                return Err(format!("`{part}` ends before it starts"));
            }
            if last - first >= MAX_SEEDS {
                return Err(format!("`{part}` has more than {MAX_SEEDS} seeds"));
            }
            seeds.extend(first..=last);
        }
        let mut once = seeds.clone();
        once.sort_unstable();
        once.dedup();
        if once.len() == seeds.len() {
            Ok(Self(seeds))
        } else {
            Err("a seed is listed twice".into())
        }
    }
}

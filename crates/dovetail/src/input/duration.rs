//! Durations as people write them: `90s`, `10m`, `1h30m`.

use std::str::FromStr;

/// A duration from the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DurationFlag {
    pub(crate) ms: u64,
}

/// Units with their length in ms, the longer name of two before its beginning.
const UNITS: [(&str, u64); 5] =
    [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// A century: beyond it sums of GPU-time could overflow, and nobody means it.
const LONGEST_MS: u64 = 100 * 366 * 86_400_000;

impl FromStr for DurationFlag {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let example =
            "write a whole number with a unit (ms, s, m, h, d), such as 90s, 10m or 1h30m";
        let bad = || format!("`{text}` is not a duration: {example}");
        let (mut rest, mut ms) = (text, 0_u64);
        while !rest.is_empty() || text.is_empty() {
            let digits = rest.find(|letter: char| !letter.is_ascii_digit()).ok_or_else(bad)?;
            let number: u64 = rest[..digits].parse().map_err(|_| bad())?;
            let unit = UNITS.iter().find(|(unit, _)| rest[digits..].starts_with(unit));
            let (unit, length_ms) = unit.ok_or_else(bad)?;
            ms = number
                .checked_mul(*length_ms)
                .and_then(|part| ms.checked_add(part))
                .ok_or_else(bad)?;
            rest = &rest[digits + unit.len()..];
        }
        match ms <= LONGEST_MS {
            true => Ok(Self { ms }),
            false => Err(format!("`{text}` is longer than a century: check the unit")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        for (text, ms) in
            [("0s", 0), ("500ms", 500), ("10m", 600_000), ("1h30m", 5_400_000), ("2d", 172_800_000)]
        {
            assert_eq!(text.parse(), Ok(DurationFlag { ms }), "{text}");
        }
        for text in ["", "10", "m", "-1m", "1.5h", "10 m", "1w", "99999999999999999999s", "1h30"] {
            assert!(text.parse::<DurationFlag>().unwrap_err().contains("not a duration"), "{text}");
        }
        assert!("40000d".parse::<DurationFlag>().unwrap_err().contains("century"));
    }
}

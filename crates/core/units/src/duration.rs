//! Durations: `90 s`, `15 min`, `1.5 h`, `12 d`; read from `90s`, `15m`, `1h30m`.

use dovetail_model::grouped;

/// Units with their length in ms, the number of them from which on the next one is used, and their
/// name.
const SHOWN: [(u64, u64, &str); 4] =
    [(1_000, 120, "s"), (60_000, 120, "min"), (3_600_000, 48, "h"), (86_400_000, u64::MAX, "d")];

/// A duration in the unit in which a person would say it, rounded half up: to tenths below a
/// hundred, else to whole units. What is shorter than 50 ms is `0 s`.
pub fn duration(ms: u64) -> String {
    in_words(ms, |unit_ms| unit_ms / 2)
}

/// As [`duration`], rounded down: for what lasted at least so long.
pub fn duration_at_least(ms: u64) -> String {
    in_words(ms, |_| 0)
}

/// As [`duration`], of seconds; what is negative or no number is nothing.
pub fn duration_of_seconds(seconds: f64) -> String {
    // A cast from a float stops at the ends of what it can hold, and makes 0 of what is no number.
    duration((seconds * 1_000.0 + 0.5) as u64)
}

/// `more` of a unit is added before what is not whole is cut off.
fn in_words(ms: u64, more: fn(u64) -> u64) -> String {
    let mut text = String::new();
    for (unit_ms, below, name) in SHOWN {
        let parts = |parts: u64| {
            let sum = u128::from(ms) * u128::from(parts) + u128::from(more(unit_ms));
            u64::try_from(sum / u128::from(unit_ms)).unwrap_or(u64::MAX)
        };
        let (tenths, whole) = (parts(10), parts(1));
        text = match (tenths / 10, tenths % 10) {
            (100.., _) => format!("{} {name}", grouped(whole)),
            (units, 0) => format!("{units} {name}"),
            (units, rest) => format!("{units}.{rest} {name}"),
        };
        if whole < below {
            break;
        }
    }
    text
}

/// Units as people write them, with their length in ms; the longer name of two before its
/// beginning.
const WRITTEN: [(&str, u64); 5] =
    [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// A century: beyond it sums of GPU-time could overflow, and nobody means it.
const LONGEST_MS: u64 = 100 * 366 * 86_400_000;

/// Reads whole numbers with units, such as `90s`, `10m` or `1h30m`, as ms.
///
/// # Errors
/// A sentence that says what is wrong with the text and how to write it.
pub fn parse_duration(text: &str) -> Result<u64, String> {
    let example = "write a whole number with a unit (ms, s, m, h, d), such as 90s, 10m or 1h30m";
    let bad = || format!("`{text}` is not a duration: {example}");
    let (mut rest, mut ms) = (text, 0_u64);
    while !rest.is_empty() || text.is_empty() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit()).ok_or_else(bad)?;
        let number: u64 = rest[..digits].parse().map_err(|_| bad())?;
        let unit = WRITTEN.iter().find(|(unit, _)| rest[digits..].starts_with(unit));
        let (unit, length_ms) = unit.ok_or_else(bad)?;
        ms =
            number.checked_mul(*length_ms).and_then(|part| ms.checked_add(part)).ok_or_else(bad)?;
        rest = &rest[digits + unit.len()..];
    }
    match ms <= LONGEST_MS {
        true => Ok(ms),
        false => Err(format!("`{text}` is longer than a century: check the unit")),
    }
}

#[cfg(test)]
mod tests {
    use dovetail_cases::cases;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_duration_is_said_in_the_unit_of_a_person() {
        for (ms, text) in [
            (0, "0 s"),
            (49, "0 s"),
            (50, "0.1 s"),
            (800, "0.8 s"),
            (90_000, "90 s"),
            (119_400, "119 s"),
            (119_500, "2 min"),
            (300_000, "5 min"),
            (5_292_000, "88.2 min"),
            (119 * 60_000, "119 min"),
            (7_200_000, "2 h"),
            (53_280_000, "14.8 h"),
            (47 * 3_600_000, "47 h"),
            (48 * 3_600_000, "2 d"),
            (596_160_000, "6.9 d"),
            (1_795_110_000_000, "20,777 d"),
        ] {
            assert_eq!(duration(ms), text, "{ms} ms");
        }
        assert_eq!(duration_at_least(119_999), "119 s");
        assert_eq!(duration_at_least(48 * 3_600_000 - 1), "47.9 h");
        assert_eq!(duration_of_seconds(89.96), "90 s");
        assert_eq!(duration_of_seconds(f64::NAN), "0 s");
        assert_eq!(duration_of_seconds(-1.0), "0 s");
    }

    #[test]
    fn a_duration_is_read_with_its_units() {
        for (text, ms) in
            [("0s", 0), ("500ms", 500), ("10m", 600_000), ("1h30m", 5_400_000), ("2d", 172_800_000)]
        {
            assert_eq!(parse_duration(text), Ok(ms), "{text}");
        }
        for text in ["", "10", "m", "-1m", "1.5h", "10 m", "1w", "99999999999999999999s", "1h30"] {
            assert!(parse_duration(text).unwrap_err().contains("not a duration"), "{text}");
        }
        assert!(parse_duration("40000d").unwrap_err().contains("century"));
    }

    proptest! {
        #![proptest_config(cases(256))]

        /// Half a tenth, or half a unit from a hundred on, is all that is lost, and longer is never
        /// said shorter.
        #[test]
        fn what_is_shown_is_near_what_is_meant(ms in 0_u64..10_000_000_000, more in 0_u64..1_000_000) {
            let shown = |ms: u64| {
                let text = duration(ms);
                let (number, unit) = text.split_once(' ').expect("a number and a unit");
                let (unit_ms, ..) = SHOWN.iter().find(|(.., name)| *name == unit).expect("a unit");
                let number: f64 = number.replace(',', "").parse().expect("a number");
                (number, number * *unit_ms as f64, *unit_ms as f64)
            };
            let (number, shown_ms, unit_ms) = shown(ms);
            let step = if number < 100.0 { 0.1 } else { 1.0 };
            prop_assert!((shown_ms - ms as f64).abs() <= step * unit_ms / 2.0 + 1.0);
            prop_assert!(shown(ms + more).1 + 1e-3 >= shown_ms);
        }
    }
}

//! Decimal amounts without a detour through binary fractions.

use dovetail_units::number::{Number, Rest};

/// Decimals of an amount that are kept: millionths of a micro-dollar.
const DECIMALS: u32 = 12;

/// Parts of a whole unit in an amount.
pub(crate) const PICO: i128 = 1_000_000_000_000;

/// A number in 10⁻¹²; more decimals are cut off. `None` for what is no number or larger than any
/// bill.
pub(crate) fn pico(text: &str) -> Option<i128> {
    // A trillion dollars are 10²⁴.
    let most = 1_000_000_000_000 * PICO;
    let pico = Number::read(text).ok()?.units(DECIMALS, Rest::CutOff);
    pico.filter(|pico| (-most..=most).contains(pico))
}

/// 10⁻¹² as millionths, half away from zero.
pub(crate) fn micros(pico: i128) -> i64 {
    const PER_MICRO: i128 = 1_000_000;
    let half = if pico < 0 { -PER_MICRO / 2 } else { PER_MICRO / 2 };
    i64::try_from((pico + half) / PER_MICRO).unwrap_or(if pico < 0 { i64::MIN } else { i64::MAX })
}

/// A number of millionths with all its decimals, without those that are zero at the end.
pub(crate) fn decimal(number: i128, decimals: usize) -> String {
    let sign = if number < 0 { "-" } else { "" };
    let digits = format!("{:0>width$}", number.unsigned_abs(), width = decimals + 1);
    let (whole, fraction) = digits.split_at(digits.len() - decimals);
    let fraction = fraction.trim_end_matches('0');
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{whole}{point}{fraction}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_digit_by_digit() {
        for (text, expected) in [
            ("0", Some(0)),
            ("55.04", Some(55_040_000_000_000)),
            ("-1.5", Some(-1_500_000_000_000)),
            (".25", Some(250_000_000_000)),
            ("1E-7", Some(100_000)),
            ("2.5e2", Some(250 * PICO)),
            ("0.1234567890129", Some(123_456_789_012)),
            ("0e99", Some(0)),
            ("1e99", None),
            ("", None),
            (".", None),
            ("1,5", None),
            ("NaN", None),
            ("1e", None),
            ("--1", None),
            ("9999999999999999999999999999999999999999999", None),
        ] {
            assert_eq!(pico(text), expected, "{text}");
        }
        assert_eq!([micros(500_000), micros(499_999), micros(-500_000)], [1, 0, -1]);
    }

    #[test]
    fn numbers_are_written_without_what_says_nothing() {
        let cases =
            [(27_520_000, 6, "27.52"), (0, 6, "0"), (-1, 6, "-0.000001"), (1_000_000, 6, "1")];
        for (number, decimals, text) in cases {
            assert_eq!(decimal(number, decimals), text);
        }
    }
}

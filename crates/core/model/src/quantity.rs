//! Kubernetes quantities: `500m`, `1.5`, `64Gi`, `12e3`.
//!
//! Grammar and canonical form follow `k8s.io/apimachinery/pkg/api/resource`: a decimal number, then
//! a binary suffix (`Ki Mi Gi Ti Pi Ei`), a decimal suffix (`n u m k M G T P E`) or an exponent.
//! Values are kept exactly, in billionths, as Kubernetes rounds anything finer up.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// An exact amount, in billionths of the unit (cores, bytes, devices).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Quantity {
    nano: i128,
    format: QuantityFormat,
}

/// How a quantity was written, which decides how it prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
enum QuantityFormat {
    Binary,
    Decimal,
    Exponent,
}

/// Why a text is not a quantity.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum QuantityError {
    /// The text has no digits where a number must stand.
    #[error("`{text}` is not a quantity: expected a number such as 500m, 1.5 or 64Gi")]
    NotANumber {
        /// The text as given.
        text: String,
    },
    /// The part behind the number is no unit of Kubernetes.
    #[error(
        "`{text}` has the unknown suffix `{suffix}`: use one of n u m k M G T P E Ki Mi Gi Ti Pi Ei"
    )]
    UnknownSuffix {
        /// The text as given.
        text: String,
        /// The part that is not understood.
        suffix: String,
    },
    /// The value does not fit.
    #[error("`{text}` is too large: at most {most_units} units are representable")]
    TooLarge {
        /// The text as given.
        text: String,
        /// The largest value, in units.
        most_units: i128,
    },
}

/// The most units of a capacity or a counter of devices. Kubernetes reads such amounts without a
/// limit; below this one, the sum of ten million of them fits.
pub const MOST_OF_DEVICES: i128 = 1 << 73;

const NANO: i128 = 1_000_000_000;
const BINARY: [(&str, u32); 6] =
    [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];
const DECIMAL: [(&str, i32); 10] = [
    ("n", -9),
    ("u", -6),
    ("m", -3),
    ("", 0),
    ("k", 3),
    ("M", 6),
    ("G", 9),
    ("T", 12),
    ("P", 15),
    ("E", 18),
];

impl Quantity {
    /// Reads an amount of at most so many units, at most [`MOST_OF_DEVICES`]; `from_str` reads at
    /// most 2^63-1.
    ///
    /// # Errors
    ///
    /// The text is not a quantity, or it is more.
    pub fn read(text: &str, most_units: i128) -> Result<Self, QuantityError> {
        let (negative, body) = match text.as_bytes().first() {
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            _ => (false, text),
        };
        let end = body.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(body.len());
        let (number, suffix) = body.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return Err(QuantityError::NotANumber { text: text.to_owned() });
        }
        let (scale, format) = parse_suffix(text, suffix)?;
        let most_units = most_units.min(MOST_OF_DEVICES);
        let nano = scaled(whole, fraction, scale)
            .filter(|nano| *nano <= most_units * NANO)
            .ok_or_else(|| QuantityError::TooLarge { text: text.to_owned(), most_units })?;
        Ok(Self { nano: if negative { -nano } else { nano }, format })
    }

    /// A whole number of units, printed with decimal suffixes.
    pub fn units(units: i64) -> Self {
        Self { nano: i128::from(units) * NANO, format: QuantityFormat::Decimal }
    }

    /// Thousandths of a unit, as CPU and GPU shares are counted.
    pub fn milli(milli: i64) -> Self {
        Self { nano: i128::from(milli) * (NANO / 1000), format: QuantityFormat::Decimal }
    }

    /// Bytes, printed with binary suffixes.
    pub fn bytes(bytes: i64) -> Self {
        Self { nano: i128::from(bytes) * NANO, format: QuantityFormat::Binary }
    }

    /// The amount in billionths, exact.
    pub fn to_billionths(self) -> i128 {
        self.nano
    }

    /// As many billionths, written as this one is.
    pub fn with_billionths(self, billionths: i128) -> Self {
        Self { nano: billionths, ..self }
    }

    /// The sum, exact; as far as it goes where it would not fit.
    pub fn saturating_add(self, other: Self) -> Self {
        Self { nano: self.nano.saturating_add(other.nano), format: self.format }
    }

    /// Whether it is more than another, however both were written.
    pub fn is_more_than(self, other: Self) -> bool {
        self.nano > other.nano
    }

    /// The amount in whole units, rounded away from zero as Kubernetes' `Value()` does.
    pub fn to_units(self) -> i64 {
        ceil_away(self.nano, NANO)
    }

    /// The amount in thousandths, rounded away from zero as Kubernetes' `MilliValue()` does;
    /// saturates at the limits of `i64`.
    pub fn to_milli(self) -> i64 {
        ceil_away(self.nano, NANO / 1000)
    }
}

fn ceil_away(value: i128, unit: i128) -> i64 {
    let whole = value / unit;
    let rounded = if value % unit == 0 { whole } else { whole + value.signum() };
    rounded.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        Self::read(text, i128::from(i64::MAX))
    }
}

/// Power of two or of ten that a suffix stands for.
#[derive(Clone, Copy)]
enum Scale {
    Two(u32),
    Ten(i32),
}

fn parse_suffix(text: &str, suffix: &str) -> Result<(Scale, QuantityFormat), QuantityError> {
    if let Some((_, power)) = BINARY.iter().find(|(name, _)| *name == suffix) {
        return Ok((Scale::Two(*power), QuantityFormat::Binary));
    }
    if let Some((_, power)) = DECIMAL.iter().find(|(name, _)| *name == suffix) {
        return Ok((Scale::Ten(*power), QuantityFormat::Decimal));
    }
    let unknown =
        || QuantityError::UnknownSuffix { text: text.to_owned(), suffix: suffix.to_owned() };
    let exponent = suffix.strip_prefix(['e', 'E']).ok_or_else(unknown)?;
    let power: i32 = exponent.parse().map_err(|_| unknown())?;
    Ok((Scale::Ten(power), QuantityFormat::Exponent))
}

/// `whole.fraction` times the scale, in billionths, anything finer rounded up; `None` on overflow.
fn scaled(whole: &str, fraction: &str, scale: Scale) -> Option<i128> {
    let fraction = fraction.trim_end_matches('0');
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return Some(0);
    }
    let mantissa: i128 = digits.parse().ok()?;
    let places = i32::try_from(fraction.len()).ok()?;
    match scale {
        Scale::Two(power) => {
            let value = mantissa.checked_mul(1i128 << power)?;
            times_ten_to(value, 9 - places)
        }
        Scale::Ten(power) => times_ten_to(mantissa, power.checked_add(9)?.checked_sub(places)?),
    }
}

fn times_ten_to(value: i128, power: i32) -> Option<i128> {
    if power >= 0 {
        return value.checked_mul(10i128.checked_pow(power.unsigned_abs())?);
    }
    match 10i128.checked_pow(power.unsigned_abs()) {
        Some(divisor) => Some(value / divisor + i128::from(value % divisor != 0)),
        None => Some(1),
    }
}

impl fmt::Display for Quantity {
    /// Canonical form: no fraction, the largest suffix that keeps the value exact.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nano == 0 {
            return write!(out, "0");
        }
        if self.format == QuantityFormat::Binary && self.nano % (1024 * NANO) == 0 {
            let units = self.nano / NANO;
            let (name, power) = BINARY
                .iter()
                .rev()
                .find(|(_, power)| units % (1i128 << power) == 0)
                .unwrap_or(&("Ki", 10));
            return write!(out, "{}{name}", units >> power);
        }
        let mut power = -9;
        let mut value = self.nano;
        while value % 1000 == 0 && power < 18 {
            value /= 1000;
            power += 3;
        }
        if self.format == QuantityFormat::Exponent && power != 0 {
            return write!(out, "{value}e{power}");
        }
        let name = DECIMAL.iter().find(|(_, p)| *p == power).map_or("", |(name, _)| name);
        write!(out, "{value}{name}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dovetail_cases::cases;
    use proptest::prelude::*;

    #[test]
    fn documented_examples_parse_and_print_canonically() {
        // Left: text; middle: milli-units; right: canonical text.
        let table = [
            ("500m", 500, "500m"),
            ("0.5", 500, "500m"),
            ("1.5", 1500, "1500m"),
            ("2", 2000, "2"),
            ("64Gi", 68_719_476_736_000, "64Gi"),
            ("1.5Gi", 1_610_612_736_000, "1536Mi"),
            ("12e3", 12_000_000, "12e3"),
            ("1000k", 1_000_000_000, "1M"),
            ("-1", -1000, "-1"),
            ("1n", 1, "1n"),
            ("1.", 1000, "1"),
            (".5", 500, "500m"),
            ("0", 0, "0"),
            ("129e6", 129_000_000_000, "129e6"),
            ("123Mi", 128_974_848_000, "123Mi"),
        ];
        for (text, milli, canonical) in table {
            let quantity: Quantity = text.parse().unwrap();
            assert_eq!(quantity.to_milli(), milli, "{text}");
            assert_eq!(quantity.to_string(), canonical, "{text}");
        }
    }

    #[test]
    fn nonsense_is_refused_with_the_text() {
        for text in ["", "Gi", "1..2", "abc", "1Xi", "1 Gi", "1e", "--1", "9e99", "1e400"] {
            let error = text.parse::<Quantity>().unwrap_err().to_string();
            assert!(error.contains(&format!("`{text}`")), "{error}");
        }
    }

    #[test]
    fn amounts_of_devices_may_be_larger_than_other_amounts() {
        for text in ["10E", "1000000000000000000002", "-36893488147419103232"] {
            text.parse::<Quantity>().unwrap_err();
            assert_eq!(Quantity::read(text, MOST_OF_DEVICES).unwrap().to_string(), text);
        }
        for text in ["1e22", "9444732965739290427393", "1e400"] {
            Quantity::read(text, i128::MAX).unwrap_err();
        }
    }

    proptest! {
        #![proptest_config(cases(256))]

        #[test]
        fn printing_keeps_the_value(milli in any::<i64>(), bytes in any::<i64>()) {
            for quantity in [Quantity::milli(milli), Quantity::bytes(bytes)] {
                let again: Quantity = quantity.to_string().parse().unwrap();
                prop_assert_eq!(again.nano, quantity.nano);
                prop_assert_eq!(again.to_string(), quantity.to_string());
            }
        }

        #[test]
        fn any_text_parses_or_is_refused(text in "\\PC{0,12}") {
            let _ = text.parse::<Quantity>();
        }
    }
}

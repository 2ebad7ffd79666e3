//! How a number is written, for every reader: the same texts are numbers everywhere, and what is
//! wrong with the others is said in the same words.
//!
//! Digits with at most one point, a sign, an exponent up to 400, and blanks around the whole. A
//! number counts for its value, however it is written: `-0` and `+0.0` are 0, `1e3` is whole,
//! `1e-400` is not. It is read digit by digit, never through a binary fraction.

use std::borrow::Cow;
use std::fmt;

/// Larger exponents are not read: beyond the range of binary fractions nobody means the number.
pub const LARGEST_EXPONENT: usize = 400;

/// A number as its digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Number<'t> {
    is_negative: bool,
    /// Without zeros in front; empty for 0.
    whole: Cow<'t, str>,
    /// Without zeros at the end.
    fraction: Cow<'t, str>,
}

/// Why a text is no number, as the end of a sentence that begins with the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotANumber {
    Empty,
    /// `NaN`, `inf` and the like.
    NotFinite,
    HugeExponent,
    NoNumber,
}

/// What to do with decimals that are not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// Cut off, so that 4.999… stays below 5.
    CutOff,
    /// Half of the last kept unit and more make one of it.
    HalfUp,
}

impl<'t> Number<'t> {
    /// # Errors
    /// The text is no number.
    pub fn read(text: &'t str) -> Result<Self, NotANumber> {
        let text = text.trim_matches([' ', '\t']);
        let wrong = || NotANumber::of(text);
        let (is_negative, unsigned) = signed(text);
        let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let (is_small, shift) = signed(exponent);
        let has_digits = !(whole.is_empty() && fraction.is_empty() || shift.is_empty());
        if !has_digits || ![whole, fraction, shift].into_iter().all(are_digits) {
            return Err(wrong());
        }
        let shift: usize = shift.parse().map_err(|_| wrong())?;
        if shift > LARGEST_EXPONENT {
            return Err(wrong());
        }
        let (whole, fraction) = shifted(whole, fraction, is_small, shift);
        let is_zero = whole.is_empty() && fraction.is_empty();
        Ok(Self { is_negative: is_negative && !is_zero, whole, fraction })
    }

    /// Whether it is below 0.
    pub fn is_negative(&self) -> bool {
        self.is_negative
    }

    /// Whether it has no decimals but zeros.
    pub fn is_whole(&self) -> bool {
        self.fraction.is_empty()
    }

    /// How many decimals it has.
    pub fn decimals(&self) -> usize {
        self.fraction.len()
    }

    /// As a multiple of 10^−`decimals`; `None` where that has more digits than 128 bits hold.
    pub fn units(&self, decimals: u32, rest: Rest) -> Option<i128> {
        let kept = decimals as usize;
        let fraction = self.fraction.bytes().chain(std::iter::repeat(b'0')).take(kept);
        let mut value: i128 = 0;
        for byte in self.whole.bytes().chain(fraction) {
            value = value.checked_mul(10)?.checked_add(i128::from(byte - b'0'))?;
        }
        let next = self.fraction.as_bytes().get(kept);
        let is_up = rest == Rest::HalfUp && next.is_some_and(|byte| *byte >= b'5');
        let value = value.checked_add(i128::from(is_up))?;
        Some(if self.is_negative { -value } else { value })
    }
}

/// The digits before and behind a point that moves through digits that are there or zeros.
fn shifted<'t>(
    whole: &'t str,
    fraction: &'t str,
    is_small: bool,
    shift: usize,
) -> (Cow<'t, str>, Cow<'t, str>) {
    if shift == 0 {
        return (whole.trim_start_matches('0').into(), fraction.trim_end_matches('0').into());
    }
    let zeros = "0".repeat(shift);
    let (whole, fraction) = match is_small {
        true => {
            let padded = format!("{zeros}{whole}");
            let (left, right) = padded.split_at(padded.len() - shift);
            (left.to_owned(), format!("{right}{fraction}"))
        }
        false => {
            let padded = format!("{fraction}{zeros}");
            let (left, right) = padded.split_at(shift);
            (format!("{whole}{left}"), right.to_owned())
        }
    };
    let whole = whole.trim_start_matches('0').to_owned();
    (whole.into(), fraction.trim_end_matches('0').to_owned().into())
}

impl fmt::Display for Number<'_> {
    /// In plain digits.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.is_negative { "-" } else { "" };
        let whole = if self.whole.is_empty() { "0" } else { &*self.whole };
        let point = if self.fraction.is_empty() { "" } else { "." };
        write!(out, "{sign}{whole}{point}{}", self.fraction)
    }
}

impl NotANumber {
    fn of(text: &str) -> Self {
        match text.parse::<f64>() {
            _ if text.is_empty() => Self::Empty,
            Ok(_) if has_huge_exponent(text) => Self::HugeExponent,
            Ok(value) if !value.is_finite() => Self::NotFinite,
            _ => Self::NoNumber,
        }
    }

    /// The end of the sentence.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Empty => "is empty",
            Self::NotFinite => "is not a finite number",
            Self::HugeExponent => "has an exponent above 400",
            Self::NoNumber => "is not a number",
        }
    }
}

impl fmt::Display for NotANumber {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.in_words())
    }
}

/// Whether there is a minus sign, and what follows the sign.
fn signed(text: &str) -> (bool, &str) {
    match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    }
}

fn are_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

fn has_huge_exponent(text: &str) -> bool {
    let Some((_, exponent)) = text.split_once(['e', 'E']) else { return false };
    let (_, digits) = signed(exponent);
    !digits.is_empty()
        && are_digits(digits)
        && digits.parse().map_or(true, |size: usize| size > LARGEST_EXPONENT)
}

#[cfg(test)]
mod tests {
    use dovetail_cases::cases;
    use proptest::prelude::*;

    use super::*;

    fn plain(text: &str) -> Result<String, NotANumber> {
        Number::read(text).map(|number| number.to_string())
    }

    #[test]
    fn a_number_counts_for_its_value() {
        for (text, expected) in [
            ("1e3", "1000"),
            ("1.5E3", "1500"),
            ("1.25e1", "12.5"),
            ("12e-1", "1.2"),
            ("5e-4", "0.0005"),
            ("-2.50e+2", "-250"),
            ("0e99", "0"),
            ("007e0", "7"),
            ("17", "17"),
            ("-0", "0"),
            ("-0.0e5", "0"),
            (" 5\t", "5"),
            ("007.50", "7.5"),
            ("+5", "5"),
            (".5", "0.5"),
            ("5.", "5"),
            ("1.e3", "1000"),
        ] {
            assert_eq!(plain(text).as_deref(), Ok(expected), "{text}");
        }
        let tiny = Number::read("1e-400").expect("a number");
        assert!(!tiny.is_whole() && tiny.decimals() == 400);
        assert_eq!(tiny.units(6, Rest::CutOff), Some(0));
        assert_eq!(Number::read("1e400").expect("a number").units(0, Rest::CutOff), None);
        let long = format!("{}1", "0".repeat(1_000));
        let long = Number::read(&long).expect("a number");
        assert_eq!(long.units(6, Rest::CutOff), Some(1_000_000));
    }

    #[test]
    fn what_is_no_number_says_why() {
        use NotANumber::{Empty, HugeExponent, NoNumber, NotFinite};
        for (text, why) in [
            ("", Empty),
            (" ", Empty),
            ("NaN", NotFinite),
            ("-inf", NotFinite),
            ("1e401", HugeExponent),
            ("1E-401", HugeExponent),
            ("0e+999", HugeExponent),
            ("1e99999999999999999999", HugeExponent),
            (".", NoNumber),
            ("+", NoNumber),
            ("+-1", NoNumber),
            (".e3", NoNumber),
            ("1e", NoNumber),
            ("e3", NoNumber),
            ("1e3.5", NoNumber),
            ("1e--4", NoNumber),
            ("--1", NoNumber),
            ("5%", NoNumber),
            ("1 2", NoNumber),
            ("0x10", NoNumber),
            ("1_000", NoNumber),
            ("१", NoNumber),
        ] {
            assert_eq!(plain(text), Err(why), "{text}");
        }
    }

    proptest! {
        #![proptest_config(cases(256))]

        #[test]
        fn units_are_those_that_were_written(
            whole in 0i128..1_000_000_000_000,
            fraction in 0i128..1_000_000,
        ) {
            let text = format!("{whole}.{fraction:06}");
            let number = Number::read(&text).expect("a number");
            prop_assert_eq!(number.units(6, Rest::CutOff), Some(whole * 1_000_000 + fraction));
            let milli = whole * 1_000 + fraction / 1_000;
            prop_assert_eq!(number.units(3, Rest::CutOff), Some(milli));
            let up = i128::from(fraction % 1_000 >= 500);
            prop_assert_eq!(number.units(3, Rest::HalfUp), Some(milli + up));
        }
    }
}

//! One cell of a table, and strict ways to read it.

use dovetail_units::exponent::{has_huge_exponent, without_exponent};

use crate::job::Violation;
use crate::limits::MAX_TIME_MS;

/// What is wrong with a row, before its place is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowProblem {
    pub(crate) column: Option<String>,
    pub(crate) text: String,
    pub(crate) problem: String,
    pub(crate) expected: String,
}

impl RowProblem {
    pub(crate) fn in_column(
        column: &str,
        text: &str,
        problem: impl Into<String>,
        expected: impl Into<String>,
    ) -> Self {
        Self {
            column: Some(column.to_owned()),
            text: text.to_owned(),
            problem: problem.into(),
            expected: expected.into(),
        }
    }

    pub(crate) fn whole_row(
        text: impl Into<String>,
        problem: impl Into<String>,
        expected: impl Into<String>,
    ) -> Self {
        Self { column: None, text: text.into(), problem: problem.into(), expected: expected.into() }
    }
}

impl From<Violation> for RowProblem {
    fn from(violation: Violation) -> Self {
        Self::in_column(violation.field, &violation.text, violation.problem, violation.expected)
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Cell<'a> {
    pub(crate) column: &'a str,
    pub(crate) text: &'a str,
}

impl<'a> Cell<'a> {
    pub(crate) fn is_empty(self) -> bool {
        self.text.is_empty()
    }

    pub(crate) fn bad(self, problem: impl Into<String>, expected: impl Into<String>) -> RowProblem {
        RowProblem::in_column(self.column, self.text, problem, expected)
    }

    /// Text as it stands; `None` when empty. Control characters are refused.
    pub(crate) fn text(self) -> Result<Option<String>, RowProblem> {
        if self.text.chars().any(char::is_control) {
            return Err(self.bad("has a control character", "printable text"));
        }
        Ok((!self.is_empty()).then(|| self.text.to_owned()))
    }

    /// Text that must be there.
    pub(crate) fn name(self) -> Result<String, RowProblem> {
        self.text()?.ok_or_else(|| self.bad("is empty", "a name"))
    }

    /// A whole number from 0 to `highest`: digits, with or without an exponent.
    pub(crate) fn whole(self, highest: u64) -> Result<u64, RowProblem> {
        self.whole_within(0, highest)
    }

    /// Digits like those of [`Cell::whole`]; both ends are allowed.
    pub(crate) fn whole_within(self, lowest: u64, highest: u64) -> Result<u64, RowProblem> {
        let expected = || format!("a whole number from {lowest} to {highest}");
        match digits(&without_exponent(self.text)) {
            Some(value) if value > u128::from(highest) => Err(self.bad("is too large", expected())),
            Some(value) if value < u128::from(lowest) => Err(self.bad("is too small", expected())),
            Some(value) => Ok(value as u64),
            None => Err(self.bad(number_problem(self.text, highest), expected())),
        }
    }

    /// As [`Cell::whole`], or `None` when the cell is empty.
    pub(crate) fn optional_whole(self, highest: u64) -> Result<Option<u64>, RowProblem> {
        if self.is_empty() { Ok(None) } else { self.whole(highest).map(Some) }
    }

    /// A whole number that may be negative.
    pub(crate) fn signed(self) -> Result<i32, RowProblem> {
        let text = without_exponent(self.text);
        let (negative, magnitude) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, &*text),
        };
        let value = digits(magnitude).and_then(|value| i128::try_from(value).ok());
        value
            .map(|value| if negative { -value } else { value })
            .and_then(|value| i32::try_from(value).ok())
            .ok_or_else(|| {
                let expected = format!("a whole number from {} to {}", i32::MIN, i32::MAX);
                self.bad("is not such a number", expected)
            })
    }

    /// Seconds with or without decimals, as ms, half a millisecond rounded up.
    pub(crate) fn seconds_as_ms(self) -> Result<u64, RowProblem> {
        self.seconds(3)
    }

    /// The same as microseconds, half a microsecond rounded up.
    pub(crate) fn seconds_as_us(self) -> Result<u64, RowProblem> {
        self.seconds(6)
    }

    /// Seconds in units of so many decimals, at most 6.
    ///
    /// The decimals are read as digits, never through a binary fraction.
    fn seconds(self, kept: u32) -> Result<u64, RowProblem> {
        let expected = || format!("seconds from 0 to {}, such as 12 or 12.5", MAX_TIME_MS / 1000);
        let text = without_exponent(self.text);
        let (whole, decimals) = match text.split_once('.') {
            Some((whole, decimals)) if digits(decimals).is_some() => (whole, decimals),
            Some(_) => return Err(self.bad(time_problem(self.text), expected())),
            None => (&*text, ""),
        };
        let Some(seconds) = digits(whole) else {
            return Err(self.bad(time_problem(self.text), expected()));
        };
        let digit = |index: u32| {
            u128::from(decimals.as_bytes().get(index as usize).map_or(0, |byte| byte - b'0'))
        };
        let units = (0..kept).fold(seconds, |units, index| units * 10 + digit(index));
        let units = units + u128::from(digit(kept) >= 5);
        let most = u128::from(MAX_TIME_MS / 1000) * 10_u128.pow(kept);
        if units > most {
            return Err(self.bad("is too large", expected()));
        }
        // A century has fewer microseconds than 64 bits hold.
        Ok(units as u64)
    }

    /// As [`Cell::seconds_as_ms`], or `None` when the cell is empty.
    pub(crate) fn optional_seconds_as_ms(self) -> Result<Option<u64>, RowProblem> {
        if self.is_empty() { Ok(None) } else { self.seconds_as_ms().map(Some) }
    }
}

/// The value of a text of ASCII digits alone, capped far above every limit.
fn digits(text: &str) -> Option<u128> {
    const CAP: u128 = 1 << 96;
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some(text.bytes().fold(0, |value: u128, byte| (value * 10 + u128::from(byte - b'0')).min(CAP)))
}

/// True for decimals with or without a sign, such as -1, 0.25 or 1e3.
pub(crate) fn is_decimal(text: &str) -> bool {
    let text = &*without_exponent(text);
    let text = text.strip_prefix('-').unwrap_or(text);
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    digits(whole).is_some() && digits(decimals).is_some()
}

fn number_problem(text: &str, highest: u64) -> &'static str {
    match text.parse::<f64>() {
        _ if text.is_empty() => "is empty",
        Ok(_) if has_huge_exponent(text) => "has an exponent above 400",
        Ok(value) if !value.is_finite() => "is not a finite number",
        Ok(value) if value < 0.0 => "is negative",
        Ok(value) if value > highest as f64 => "is too large",
        Ok(value) if value.fract() != 0.0 => "is not whole",
        Ok(_) => "is not written with digits alone",
        Err(_) => "is not a number",
    }
}

fn time_problem(text: &str) -> &'static str {
    match number_problem(text, MAX_TIME_MS / 1000) {
        "is not whole" | "is not written with digits alone" => {
            "is not written with digits and one point"
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(text: &str) -> Cell<'_> {
        Cell { column: "c", text }
    }

    #[test]
    fn seconds() {
        for (text, ms) in [
            ("0", 0),
            ("12", 12_000),
            ("941386.66419", 941_386_664),
            ("0.0005", 1),
            ("0.00049", 0),
            ("1.9996", 2_000),
        ] {
            assert_eq!(cell(text).seconds_as_ms(), Ok(ms), "{text}");
        }
        for text in [
            "",
            "-1",
            "nan",
            "inf",
            "1e",
            "1e999",
            "1.",
            ".5",
            "1.2.3",
            "+1",
            " 1",
            "1.-2",
            "3162240000.0005",
        ] {
            assert!(cell(text).seconds_as_ms().is_err(), "{text}");
        }
        assert_eq!(cell("3162240000").seconds_as_ms(), Ok(MAX_TIME_MS));
        for (text, ms) in [("1e3", 1_000_000), ("1.5E-3", 2), ("15e-4", 2), ("1e-9", 0)] {
            assert_eq!(cell(text).seconds_as_ms(), Ok(ms), "{text}");
        }
        assert_eq!(cell("+1").seconds_as_ms().expect_err("a sign").problem, {
            "is not written with digits and one point"
        });
        for (text, us) in [
            ("0", 0),
            ("941386.66419", 941_386_664_190),
            ("0.0000005", 1),
            ("0.00000049", 0),
            ("1.9999996", 2_000_000),
            ("3162240000", MAX_TIME_MS * 1000),
        ] {
            assert_eq!(cell(text).seconds_as_us(), Ok(us), "{text}");
        }
    }

    #[test]
    fn problems_are_named() {
        for (text, problem) in [
            ("", "is empty"),
            ("-3", "is negative"),
            ("NaN", "is not a finite number"),
            ("1.5", "is not whole"),
            ("300", "is too large"),
            ("99999999999999999999999999999999999999999999", "is too large"),
            ("x", "is not a number"),
            ("+7", "is not written with digits alone"),
            ("1.e1", "is not written with digits alone"),
            ("0e999999999999", "has an exponent above 400"),
            ("1E-401", "has an exponent above 400"),
        ] {
            assert_eq!(cell(text).whole(255).expect_err(text).problem, problem);
        }
        assert_eq!(cell("1.2e2").whole(255), Ok(120));
        assert_eq!(cell("0").whole_within(1, 9).expect_err("0").problem, "is too small");
        assert_eq!(cell("1.25e1").whole(255).expect_err("a fraction").problem, "is not whole");
        assert_eq!(cell("1e3").whole(255).expect_err("1000").problem, "is too large");
        assert_eq!(cell("-1e3").signed(), Ok(-1000));
        assert_eq!(cell("-2147483648").signed(), Ok(i32::MIN));
        assert!(cell("2147483648").signed().is_err());
        assert!(cell("--1").signed().is_err());
    }
}

//! One cell of a table, and strict ways to read it.

use dovetail_units::number::{NotANumber, Number, Rest};

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
pub(crate) struct TextCell<'a> {
    pub(crate) column: &'a str,
    pub(crate) text: &'a str,
}

impl<'a> TextCell<'a> {
    pub(crate) fn is_empty(self) -> bool {
        self.text.is_empty()
    }

    /// Whether no number stands in it: blanks do not count there.
    pub(crate) fn has_no_number(self) -> bool {
        self.text.trim_matches([' ', '\t']).is_empty()
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

    /// A whole number from 0 to `highest`.
    pub(crate) fn whole(self, highest: u64) -> Result<u64, RowProblem> {
        self.whole_within(0, highest)
    }

    /// A whole number; both ends are allowed.
    pub(crate) fn whole_within(self, lowest: u64, highest: u64) -> Result<u64, RowProblem> {
        Ok(self.integer(lowest.into(), highest.into())? as u64)
    }

    /// As [`TextCell::whole`], or `None` when the cell is empty.
    pub(crate) fn optional_whole(self, highest: u64) -> Result<Option<u64>, RowProblem> {
        if self.has_no_number() { Ok(None) } else { self.whole(highest).map(Some) }
    }

    /// A whole number that may be negative.
    pub(crate) fn signed(self) -> Result<i32, RowProblem> {
        Ok(self.integer(i32::MIN.into(), i32::MAX.into())? as i32)
    }

    fn integer(self, lowest: i128, highest: i128) -> Result<i128, RowProblem> {
        let read = Number::read(self.text).map_err(NotANumber::in_words).and_then(|number| {
            // What has too many digits for 128 bits is far beyond every limit.
            let beyond = if number.is_negative() { i128::MIN } else { i128::MAX };
            match number.units(0, Rest::CutOff).unwrap_or(beyond) {
                _ if number.is_negative() && lowest >= 0 => Err("is negative"),
                value if value > highest => Err("is too large"),
                value if value < lowest => Err("is too small"),
                _ if !number.is_whole() => Err("is not whole"),
                value => Ok(value),
            }
        });
        let expected = || format!("a whole number from {lowest} to {highest}");
        read.map_err(|problem| self.bad(problem, expected()))
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
    fn seconds(self, kept: u32) -> Result<u64, RowProblem> {
        let most = u128::from(MAX_TIME_MS / 1000) * 10_u128.pow(kept);
        let read = Number::read(self.text).map_err(NotANumber::in_words).and_then(|number| {
            let units = number.units(kept, Rest::HalfUp).map(i128::unsigned_abs);
            match units.filter(|units| *units <= most) {
                _ if number.is_negative() => Err("is negative"),
                None => Err("is too large"),
                // A century has fewer microseconds than 64 bits hold.
                Some(units) => Ok(units as u64),
            }
        });
        let expected = || format!("seconds from 0 to {}, such as 12 or 12.5", MAX_TIME_MS / 1000);
        read.map_err(|problem| self.bad(problem, expected()))
    }

    /// As [`TextCell::seconds_as_ms`], or `None` when the cell is empty.
    pub(crate) fn optional_seconds_as_ms(self) -> Result<Option<u64>, RowProblem> {
        if self.has_no_number() { Ok(None) } else { self.seconds_as_ms().map(Some) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(text: &str) -> TextCell<'_> {
        TextCell { column: "c", text }
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
            ".",
            "1.2.3",
            "+-1",
            "1 1",
            "1.-2",
            "3162240000.0005",
        ] {
            assert!(cell(text).seconds_as_ms().is_err(), "{text}");
        }
        assert_eq!(cell("3162240000").seconds_as_ms(), Ok(MAX_TIME_MS));
        for (text, ms) in [
            ("1e3", 1_000_000),
            ("1.5E-3", 2),
            ("15e-4", 2),
            ("1e-9", 0),
            ("1e-400", 0),
            ("-0", 0),
            (" 1", 1_000),
            ("+1", 1_000),
            (".5", 500),
        ] {
            assert_eq!(cell(text).seconds_as_ms(), Ok(ms), "{text}");
        }
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
            ("0e999999999999", "has an exponent above 400"),
            ("1E-401", "has an exponent above 400"),
        ] {
            assert_eq!(cell(text).whole(255).expect_err(text).problem, problem);
        }
        for text in ["1.2e2", " 120", "120.0", "+1.2e+2"] {
            assert_eq!(cell(text).whole(255), Ok(120), "{text}");
        }
        assert_eq!([cell("-0").whole(255), cell("-0").signed().map(|_| 0)], [Ok(0), Ok(0)]);
        assert_eq!(cell("1e-400").whole(255).expect_err("a fraction").problem, "is not whole");
        assert_eq!([cell(" ").optional_whole(9), cell("").optional_whole(9)], [Ok(None), Ok(None)]);
        assert_eq!(cell("0").whole_within(1, 9).expect_err("0").problem, "is too small");
        assert_eq!(cell("1.25e1").whole(255).expect_err("a fraction").problem, "is not whole");
        assert_eq!(cell("1e3").whole(255).expect_err("1000").problem, "is too large");
        assert_eq!(cell("-1e3").signed(), Ok(-1000));
        assert_eq!(cell("-2147483648").signed(), Ok(i32::MIN));
        for (text, problem) in [
            ("2147483648", "is too large"),
            ("-2147483649", "is too small"),
            ("-1e99", "is too small"),
            ("-0.5", "is not whole"),
            ("--1", "is not a number"),
        ] {
            assert_eq!(cell(text).signed().expect_err(text).problem, problem);
        }
    }
}

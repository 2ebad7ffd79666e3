//! Numbers with an exponent, digit by digit: never through a binary fraction.

use std::borrow::Cow;

/// Exponents above it are not read: beyond the range of binary fractions nobody means the number.
pub const LARGEST_EXPONENT: usize = 400;

/// A number with an exponent such as `1.5e3` or `1E-7` in plain digits; any other text as it
/// stands.
pub fn without_exponent(text: &str) -> Cow<'_, str> {
    expanded(text).map_or(Cow::Borrowed(text), Cow::Owned)
}

/// Whether a number is not read for the size of its exponent alone.
pub fn has_huge_exponent(text: &str) -> bool {
    let Some((_, exponent)) = text.split_once(['e', 'E']) else { return false };
    let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    let is_whole = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_whole && digits.parse().map_or(true, |size: usize| size > LARGEST_EXPONENT)
}

fn expanded(text: &str) -> Option<String> {
    let (mantissa, exponent) = text.split_once(['e', 'E'])?;
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, "0"));
    let (is_negative, shift) = match exponent.strip_prefix('-') {
        Some(shift) => (true, shift),
        None => (false, exponent.strip_prefix('+').unwrap_or(exponent)),
    };
    let are_digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if ![whole, fraction, shift].into_iter().all(are_digits) {
        return None;
    }
    let shift: usize = shift.parse().ok().filter(|shift| *shift <= LARGEST_EXPONENT)?;
    let zeros = "0".repeat(shift);
    // The point stands behind `whole`; it moves through digits that are there or zeros.
    let (whole, fraction) = match is_negative {
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
    let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
    let whole = if whole.is_empty() { "0" } else { whole };
    let point = if fraction.is_empty() { "" } else { "." };
    Some(format!("{sign}{whole}{point}{fraction}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponents_move_the_point() {
        for (text, plain) in [
            ("1e3", "1000"),
            ("1.5E3", "1500"),
            ("1.25e1", "12.5"),
            ("12e-1", "1.2"),
            ("5e-4", "0.0005"),
            ("-2.50e+2", "-250"),
            ("0e99", "0"),
            ("007e0", "7"),
            ("17", "17"),
            ("1e", "1e"),
            ("e3", "e3"),
            ("1.e3", "1.e3"),
            ("1e3.5", "1e3.5"),
            ("1e401", "1e401"),
        ] {
            assert_eq!(without_exponent(text), plain, "{text}");
        }
    }

    #[test]
    fn an_exponent_above_400_is_huge_whatever_its_sign() {
        let huge = ["1e401", "1E-401", "0e+999", "1e99999999999999999999"];
        assert!(huge.into_iter().all(has_huge_exponent));
        let others = ["1e400", "1e-400", "401", "1e", "1e4x1", "e"];
        assert!(!others.into_iter().any(has_huge_exponent));
    }
}

//! Decimal numbers as whole multiples of a small unit, without a detour through binary fractions.

use dovetail_units::exponent::{has_huge_exponent, without_exponent};

/// Reads a number such as `12`, `0.5` or `1.25e-7` as a multiple of 10^−`decimals`, cut off after
/// the last decimal (so that `4.999…` stays below 5 whatever the unit). Digits, one point, a minus
/// sign and an exponent up to 400, as every reader takes them, nothing else.
///
/// # Errors
/// The end of a sentence that begins with the text: `is not a number`.
pub fn parse_decimal(text: &str, decimals: u32) -> Result<i128, &'static str> {
    let plain = without_exponent(text);
    let (negative, magnitude) = match plain.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, &*plain),
    };
    let (whole, fraction) = magnitude.split_once('.').unwrap_or((magnitude, ""));
    let lacks_digits = whole.is_empty() || magnitude.contains('.') && fraction.is_empty();
    let all_digits = whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit());
    if lacks_digits || !all_digits {
        return Err(problem_of(text));
    }
    // How many digits, from the left, stand before the cut.
    let kept = whole.len() + decimals as usize;
    let mut value: i128 = 0;
    for byte in whole.bytes().chain(fraction.bytes()).take(kept) {
        let next = value.checked_mul(10).and_then(|tens| tens.checked_add(i128::from(byte - b'0')));
        value = next.ok_or("is too large")?;
    }
    let zeros = kept.saturating_sub(whole.len() + fraction.len());
    if value != 0 {
        let power = u32::try_from(zeros).ok().and_then(|zeros| 10i128.checked_pow(zeros));
        value = power.and_then(|power| value.checked_mul(power)).ok_or("is too large")?;
    }
    Ok(if negative { -value } else { value })
}

fn problem_of(text: &str) -> &'static str {
    match text.parse::<f64>() {
        _ if text.is_empty() => "is empty",
        Ok(_) if has_huge_exponent(text) => "has an exponent above 400",
        Ok(value) if !value.is_finite() => "is not a finite number",
        Ok(_) => "is not written with plain digits and one point",
        Err(_) => "is not a number",
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_are_cut_off_and_never_rounded() {
        for (text, micros) in [
            ("0", 0),
            ("5", 5_000_000),
            ("4.999999999999999", 4_999_999),
            ("99.66666666666669", 99_666_666),
            ("1e-05", 10),
            ("1E-7", 0),
            ("1.5e2", 150_000_000),
            ("1662858720.0", 1_662_858_720_000_000),
            ("-0.0000019", -1),
            ("0e400", 0),
            ("1e-400", 0),
            ("007.50", 7_500_000),
        ] {
            assert_eq!(parse_decimal(text, 6), Ok(micros), "{text}");
        }
    }

    #[test]
    fn what_is_no_plain_number_says_why() {
        for (text, problem) in [
            ("", "is empty"),
            ("NaN", "is not a finite number"),
            ("-inf", "is not a finite number"),
            ("1e999", "has an exponent above 400"),
            ("1e-401", "has an exponent above 400"),
            ("1e400", "is too large"),
            ("1.", "is not written with plain digits and one point"),
            (".5", "is not written with plain digits and one point"),
            ("+5", "is not written with plain digits and one point"),
            ("5%", "is not a number"),
            ("1 2", "is not a number"),
            ("0x10", "is not a number"),
            ("1e", "is not a number"),
            ("1e--4", "is not a number"),
            ("--1", "is not a number"),
            ("५", "is not a number"),
        ] {
            assert_eq!(parse_decimal(text, 6), Err(problem), "{text}");
        }
        assert_eq!(parse_decimal(&"9".repeat(1_000), 6), Err("is too large"));
        assert_eq!(parse_decimal(&format!("{}1", "0".repeat(1_000)), 6), Ok(1_000_000));
    }

    proptest! {
        #[test]
        fn it_reads_what_was_written(whole in 0i128..1_000_000_000_000, fraction in 0i128..1_000_000) {
            let text = format!("{whole}.{fraction:06}");
            prop_assert_eq!(parse_decimal(&text, 6), Ok(whole * 1_000_000 + fraction));
            prop_assert_eq!(parse_decimal(&text, 3), Ok(whole * 1_000 + fraction / 1_000));
        }
    }
}

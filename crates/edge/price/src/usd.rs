//! Money in and out of text, exactly.

use dovetail_units::number::{Number, Rest};

/// The highest price the book accepts: one million USD per GPU-hour, in micro-USD. It leaves room
/// for a century of 100,000 GPUs in 128-bit sums and catches amounts entered in the wrong unit.
pub const MAX_USD_MICROS_PER_GPU_HOUR: i64 = 1_000_000 * MICROS_PER_USD;

const MICROS_PER_USD: i64 = 1_000_000;
const DECIMALS: usize = 6;

/// Reads an amount of USD such as `6.88` as micro-USD: a number of at most six decimals; a seventh
/// significant decimal is refused, never rounded.
///
/// # Errors
/// A sentence that says what is wrong with the text and how to write it.
pub fn parse_usd_micros(text: &str) -> Result<i64, String> {
    parse_micros(text, "USD")
}

/// The same in another currency, whose millionths it answers with.
pub(crate) fn parse_micros(text: &str, currency: &str) -> Result<i64, String> {
    let number = Number::read(text).ok().filter(|number| !number.is_negative());
    let number = number.ok_or_else(|| {
        format!("`{text}` is not an amount of {currency}; expected a number such as 6.88")
    })?;
    if number.decimals() > DECIMALS {
        return Err(format!(
            "`{text}` has more than six decimal places: round it to a millionth of a {currency}"
        ));
    }
    let micros = number.units(DECIMALS as u32, Rest::CutOff);
    match micros.and_then(|micros| i64::try_from(micros).ok()) {
        Some(micros) if micros <= MAX_USD_MICROS_PER_GPU_HOUR => Ok(micros),
        _ => Err(format!("`{text}` is above 1000000 {currency} per GPU-hour: check the unit")),
    }
}

/// A number that is not negative and has at most twelve decimals, in 10⁻¹²; `None` for anything
/// else and for a billion and more.
pub(crate) fn decimal_pico(text: &str) -> Option<i128> {
    const BILLION_PICO: i128 = 1_000_000_000_000_000_000_000;
    let number = Number::read(text).ok()?;
    let pico = number.units(12, Rest::CutOff).filter(|pico| (0..BILLION_PICO).contains(pico));
    pico.filter(|_| number.decimals() <= 12 && !number.is_negative())
}

/// Writes micro-USD as USD with as many decimals as the amount has, at least two.
pub fn format_usd_micros(usd_micros: i64) -> String {
    let sign = if usd_micros < 0 { "-" } else { "" };
    let micros_per_usd = MICROS_PER_USD.unsigned_abs();
    let (usd, rest) =
        (usd_micros.unsigned_abs() / micros_per_usd, usd_micros.unsigned_abs() % micros_per_usd);
    let decimals = format!("{rest:0DECIMALS$}");
    let decimals = decimals.trim_end_matches('0');
    format!("{sign}{usd}.{decimals:0<2}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_exact_to_the_micro_usd() {
        let cases = [("6.88", 6_880_000), ("0.706832", 706_832), ("3", 3_000_000), ("0", 0)];
        for (text, usd_micros) in cases {
            assert_eq!(parse_usd_micros(text), Ok(usd_micros), "{text}");
        }
        assert_eq!(parse_usd_micros("1.5000000000"), Ok(1_500_000));
        for text in ["1.5e1", " 15", "+15", "15.", "15.0000000"] {
            assert_eq!(parse_usd_micros(text), Ok(15_000_000), "{text}");
        }
        assert_eq!(parse_usd_micros("-0"), Ok(0));
        assert!(parse_usd_micros("1e-7").is_err() && parse_usd_micros("1e7").is_err());
        assert_eq!(parse_usd_micros("1000000"), Ok(MAX_USD_MICROS_PER_GPU_HOUR));
    }

    #[test]
    fn anything_but_a_plain_amount_is_refused() {
        let huge = "9".repeat(40);
        let long = format!("0.{}1", "0".repeat(40));
        let cases = ["", ".", "-1", "1e", "1_000", "$2", "2,5", "2 0", "1.2.3", "NaN", "1e401"];
        for text in cases {
            assert!(
                parse_usd_micros(text).unwrap_err().contains("is not an amount of USD"),
                "{text}"
            );
        }
        assert!(parse_usd_micros("0.1234567").unwrap_err().contains("six decimal places"));
        assert!(parse_usd_micros(&long).unwrap_err().contains("six decimal places"));
        assert!(parse_usd_micros("1000000.000001").unwrap_err().contains("check the unit"));
        assert!(parse_usd_micros(&huge).unwrap_err().contains("check the unit"));
    }

    #[test]
    fn printed_amounts_have_at_least_two_decimals() {
        assert_eq!(format_usd_micros(6_880_000), "6.88");
        assert_eq!(format_usd_micros(3_000_000), "3.00");
        assert_eq!(format_usd_micros(706_832), "0.706832");
        assert_eq!(format_usd_micros(-50_000), "-0.05");
    }
}

//! Exact reading of decimal seconds as whole microseconds.

use thiserror::Error;

/// Microseconds in a second.
pub const MICROS_PER_SECOND: u64 = 1_000_000;

const FRACTION_DIGITS: usize = 6;

/// Reads plain decimal seconds such as `941386.66419` as microseconds, without a detour through
/// floating point; digits beyond the sixth are rounded half up.
///
/// # Errors
/// When the text is not digits with at most one point between digits, or does not fit.
pub fn micros_from_decimal_seconds(text: &str) -> Result<u64, MicrosError> {
    let malformed = || MicrosError::Malformed { text: text.to_owned() };
    let too_large = || MicrosError::TooLarge { text: text.to_owned() };
    let (whole, fraction) = match text.split_once('.') {
        Some((whole, fraction)) if !fraction.is_empty() => (whole, fraction),
        Some(_) => return Err(malformed()),
        None => (text, ""),
    };
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !all_digits(whole) || !all_digits(fraction) {
        return Err(malformed());
    }
    let digit = |position: usize| {
        fraction.as_bytes().get(position).map_or(0, |byte| u64::from(byte - b'0'))
    };
    let below_second =
        (0..FRACTION_DIGITS).fold(0, |micros, position| micros * 10 + digit(position));
    let rounding = u64::from(digit(FRACTION_DIGITS) >= 5);
    whole
        .parse::<u64>()
        .ok()
        .and_then(|seconds| seconds.checked_mul(MICROS_PER_SECOND))
        .and_then(|micros| micros.checked_add(below_second + rounding))
        .ok_or_else(too_large)
}

/// Why a text is not a time in seconds.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MicrosError {
    /// Not a plain decimal number.
    #[error(
        "\"{text}\" is not a time in seconds; write digits with at most one decimal point, such as 941386.66419"
    )]
    Malformed {
        /// The text that was read.
        text: String,
    },
    /// More than 64-bit microseconds can hold.
    #[error("\"{text}\" seconds exceed what 64-bit microseconds can hold; correct the value")]
    TooLarge {
        /// The text that was read.
        text: String,
    },
}

//! Numbers of exporters as millionths of a percent.

use thiserror::Error;

use super::kind::Scale;

/// Why a number is no reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ReadingProblem {
    /// A driver's way to say that it has no value (DCGM's blanks of 32 and 64 bits and of
    /// fractions).
    #[error("is a placeholder that drivers write for a missing value")]
    Blank,
    /// NaN or infinite.
    #[error("is not a finite number")]
    NotFinite,
    /// Below zero.
    #[error("is negative")]
    Negative,
    /// More than all, beyond rounding: the series has another scale than its name says.
    #[error("exceeds 100% of the device")]
    MoreThanAll,
}

/// Exporters round; so much above all is all.
const TOLERANCE: f64 = 0.01;

/// A reading in millionths of a percent, cut off.
///
/// # Errors
/// See [`ReadingProblem`]: such a number counts as no reading, and is never repaired.
pub fn micro_percent(value: f64, scale: Scale) -> Result<u32, ReadingProblem> {
    const FULL: f64 = 100_000_000.0;
    let is_blank = is_blank(value);
    let share = match scale {
        Scale::Ratio => value,
        Scale::Percent => value / 100.0,
    };
    match share {
        _ if is_blank => Err(ReadingProblem::Blank),
        share if !share.is_finite() => Err(ReadingProblem::NotFinite),
        share if share < 0.0 => Err(ReadingProblem::Negative),
        share if share > 1.0 + TOLERANCE => Err(ReadingProblem::MoreThanAll),
        share => Ok((share.min(1.0) * FULL) as u32),
    }
}

/// DCGM has four blanks of each width, from the value below upwards: blank, not found, not
/// supported, not permitted.
fn is_blank(value: f64) -> bool {
    const BLANKS_32: f64 = 2_147_483_632.0;
    const BLANKS_64: f64 = 9_223_372_036_854_775_792.0;
    const BLANKS_FRACTION: f64 = 140_737_488_355_328.0;
    let among = |first: f64| value >= first && value <= first + 4.0;
    // A 64-bit blank in floating point is the power of two above all four.
    among(BLANKS_32) || among(BLANKS_FRACTION) || value == BLANKS_64
}

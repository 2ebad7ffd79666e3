//! Money in integer micro-dollars.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};

use serde::{Deserialize, Serialize};

/// Milliseconds in an hour.
pub const MS_PER_HOUR: i128 = 3_600_000;

/// An amount of money in micro-USD.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Money {
    /// Micro-USD; negative is a credit.
    pub usd_micros: i64,
}

impl Money {
    /// Nothing.
    pub const ZERO: Self = Self { usd_micros: 0 };

    /// An amount of micro-USD.
    pub fn micros(usd_micros: i64) -> Self {
        Self { usd_micros }
    }

    /// Price of `gpu_milli_ms` (milli-GPU × milliseconds) at a price per GPU-hour, rounded half up.
    ///
    /// Unit: micro-USD = milli-GPU·ms × (micro-USD / GPU-hour) / (1000 × 3,600,000).
    pub fn of_gpu_time(gpu_milli_ms: i128, usd_micros_per_gpu_hour: i64) -> Self {
        let divisor = 1000 * MS_PER_HOUR;
        let product = gpu_milli_ms * i128::from(usd_micros_per_gpu_hour);
        Self { usd_micros: ((product + divisor / 2).div_euclid(divisor)) as i64 }
    }
}

impl Add for Money {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self { usd_micros: self.usd_micros + other.usd_micros }
    }
}

impl Sub for Money {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self { usd_micros: self.usd_micros - other.usd_micros }
    }
}

impl AddAssign for Money {
    fn add_assign(&mut self, other: Self) {
        self.usd_micros += other.usd_micros;
    }
}

impl Sum for Money {
    fn sum<I: Iterator<Item = Self>>(items: I) -> Self {
        items.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Money {
    /// Dollars and cents, half a cent rounded away from zero: `$1,234.57`.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cents = (self.usd_micros.unsigned_abs() + 5_000) / 10_000;
        let dollars = (cents / 100).to_string();
        let mut grouped = String::new();
        for (index, digit) in dollars.chars().enumerate() {
            if index > 0 && (dollars.len() - index).is_multiple_of(3) {
                grouped.push(',');
            }
            grouped.push(digit);
        }
        let sign = if self.usd_micros < 0 && cents > 0 { "-" } else { "" };
        out.pad(&format!("{sign}${grouped}.{:02}", cents % 100))
    }
}

/// Splits `total` into parts in proportion to `weights`, to the micro-dollar.
///
/// Largest remainder method (Hamilton): the parts always sum to `total`; ties go to the earlier part.
/// All weights zero gives everything to the first part. `weights` must not be empty or negative.
pub fn split(total: Money, weights: &[i128]) -> Vec<Money> {
    assert!(!weights.is_empty(), "money must be split among at least one part");
    let sum: i128 = weights.iter().sum();
    if sum == 0 {
        let mut parts = vec![Money::ZERO; weights.len()];
        parts[0] = total;
        return parts;
    }
    let amount = i128::from(total.usd_micros);
    let mut parts: Vec<i128> = weights.iter().map(|w| (amount * w).div_euclid(sum)).collect();
    let mut rest = amount - parts.iter().sum::<i128>();
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by_key(|i| (std::cmp::Reverse((amount * weights[*i]).rem_euclid(sum)), *i));
    for index in order {
        if rest == 0 {
            break;
        }
        parts[index] += 1;
        rest -= 1;
    }
    parts.into_iter().map(|micros| Money::micros(micros as i64)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn prices_an_hour_and_prints_it() {
        let hour = Money::of_gpu_time(1000 * MS_PER_HOUR, 2_744_710);
        assert_eq!(hour, Money::micros(2_744_710));
        assert_eq!(hour.to_string(), "$2.74");
        assert_eq!(Money::micros(-1_234_567_890_000).to_string(), "-$1,234,567.89");
    }

    proptest! {
        #[test]
        fn parts_sum_to_the_total(
            total in -1_000_000_000_000i64..1_000_000_000_000,
            weights in prop::collection::vec(0i128..1_000_000_000, 1..20),
        ) {
            let parts = split(Money::micros(total), &weights);
            prop_assert_eq!(parts.iter().copied().sum::<Money>(), Money::micros(total));
            let sum: i128 = weights.iter().sum();
            if sum > 0 {
                for (part, weight) in parts.iter().zip(&weights) {
                    let exact = i128::from(total) * weight;
                    let error = i128::from(part.usd_micros) * sum - exact;
                    prop_assert!(error.abs() < sum, "a part is off by a micro-dollar or more");
                }
            }
        }
    }
}

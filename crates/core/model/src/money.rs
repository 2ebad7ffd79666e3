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
    /// Unit: micro-USD = milli-GPU·ms × (micro-USD / GPU-hour) / (1000 × 3,600,000). The product
    /// must fit 128 bits: a century of a million GPUs at a million USD an hour does. What is beyond
    /// 9.2 × 10¹² USD becomes that much; who reads times and prices from files refuses it before.
    pub fn of_gpu_time(gpu_milli_ms: i128, usd_micros_per_gpu_hour: i64) -> Self {
        let divisor = 1000 * MS_PER_HOUR;
        let product = gpu_milli_ms * i128::from(usd_micros_per_gpu_hour);
        let micros = (product + divisor / 2).div_euclid(divisor);
        let most = if micros < 0 { i64::MIN } else { i64::MAX };
        Self { usd_micros: i64::try_from(micros).unwrap_or(most) }
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
/// Largest remainder method (Hamilton): the parts always sum to `total`; ties go to the earlier
/// part. All weights zero gives everything to the first part. `weights` must not be empty or
/// negative.
pub fn split(total: Money, weights: &[i128]) -> Vec<Money> {
    assert!(!weights.is_empty(), "money must be split among at least one part");
    let sum: i128 = weights.iter().sum();
    if sum == 0 {
        let mut parts = vec![Money::ZERO; weights.len()];
        parts[0] = total;
        return parts;
    }
    let amount = i128::from(total.usd_micros);
    let shares: Vec<(i128, i128)> = weights.iter().map(|w| share(amount, *w, sum)).collect();
    let mut parts: Vec<i128> = shares.iter().map(|(part, _)| *part).collect();
    let mut rest = amount - parts.iter().sum::<i128>();
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by_key(|i| (std::cmp::Reverse(shares[*i].1), *i));
    for index in order {
        if rest == 0 {
            break;
        }
        parts[index] += 1;
        rest -= 1;
    }
    parts.into_iter().map(|micros| Money::micros(micros as i64)).collect()
}

/// `amount` × `weight` divided by `sum`, with the remainder; `weight` is from 0 to `sum`.
fn share(amount: i128, weight: i128, sum: i128) -> (i128, i128) {
    if let Some(product) = amount.checked_mul(weight) {
        return (product.div_euclid(sum), product.rem_euclid(sum));
    }
    // Long division bit by bit: no step exceeds twice the sum, which is below 2^127.
    let (amount_bits, weight, whole) =
        (amount.unsigned_abs(), weight.unsigned_abs(), sum.unsigned_abs());
    let add = |(quotient, rest): (u128, u128), value: u128| match rest + value {
        rest if rest >= whole => (quotient + 1, rest - whole),
        rest => (quotient, rest),
    };
    let (mut quotient, mut rest) = (0, 0);
    for bit in (0..u128::BITS - amount_bits.leading_zeros()).rev() {
        (quotient, rest) = add((quotient * 2, rest), rest);
        if amount_bits >> bit & 1 == 1 {
            (quotient, rest) = add((quotient, rest), weight);
        }
    }
    let (quotient, rest) = (quotient as i128, rest as i128);
    match (amount < 0, rest) {
        (false, _) => (quotient, rest),
        (true, 0) => (-quotient, 0),
        (true, rest) => (-quotient - 1, sum - rest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dovetail_cases::cases;
    use proptest::prelude::*;

    #[test]
    fn prices_an_hour_and_prints_it() {
        let hour = Money::of_gpu_time(1000 * MS_PER_HOUR, 2_744_710);
        assert_eq!(hour, Money::micros(2_744_710));
        assert_eq!(hour.to_string(), "$2.74");
        assert_eq!(Money::micros(-1_234_567_890_000).to_string(), "-$1,234,567.89");
    }

    #[test]
    fn a_century_of_a_million_gpus_is_split_to_the_micro_dollar() {
        // Twice the same weights, the second time too large for a product within 128 bits.
        let weights = [3_i128, 0, 1, 7, 7];
        let huge: Vec<i128> = weights.iter().map(|weight| weight << 121).collect();
        for total in [i64::MAX, i64::MIN, 1_000_003, -1_000_003, 0] {
            let total = Money::micros(total);
            assert_eq!(split(total, &huge), split(total, &weights), "{total}");
        }
        let century_of_gpus_ms = 1_000_000_000 * 3_162_240_000_000;
        let most = Money::of_gpu_time(century_of_gpus_ms, 1_000_000_000_000);
        assert_eq!(most.usd_micros, i64::MAX);
    }

    proptest! {
        #![proptest_config(cases(256))]

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

//! Summary of one list of numbers.

use serde::Serialize;

/// Count, mean and quantiles.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Quantiles {
    /// How many values there are, at least 1.
    pub count: u64,
    pub mean: f64,
    pub p50: f64,
    /// Nine of ten values are at most about this.
    pub p90: f64,
    /// 99 of 100 values are at most about this.
    pub p99: f64,
    pub max: f64,
}

impl Quantiles {
    /// Summary in s of values in ms; `None` without values.
    pub(crate) fn of_ms(mut values: Vec<u64>) -> Option<Self> {
        values.sort_unstable();
        let count = values.len();
        let at = |percent: usize| values[(count * percent / 100).min(count - 1)] as f64 / 1000.0;
        let max = *values.last()? as f64 / 1000.0;
        let sum: u128 = values.iter().map(|value| u128::from(*value)).sum();
        Some(Self {
            count: count as u64,
            mean: sum as f64 / count as f64 / 1000.0,
            p50: at(50),
            p90: at(90),
            p99: at(99),
            max,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn index_is_floor_of_q_times_n() {
        let values: Vec<u64> = (0..1000).rev().map(|value| value * 1000).collect();
        let q = Quantiles::of_ms(values).expect("values");
        assert_eq!((q.p50, q.p90, q.p99, q.max, q.mean), (500.0, 900.0, 990.0, 999.0, 499.5));
        assert_eq!(
            Quantiles::of_ms(vec![7]).map(|q| (q.p50, q.p99, q.max)),
            Some((0.007, 0.007, 0.007))
        );
        assert_eq!(Quantiles::of_ms(Vec::new()), None);
    }
}

//! Means with their intervals.
//!
//! The seeds of a regime are independent draws; the orders of the machines within a seed are not,
//! so they are averaged first and a seed counts once. The interval is Student's t over the seeds,
//! 95%.

use serde::Serialize;

/// A mean and its 95% interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// Mean over the seeds.
    pub mean: f64,
    /// Lower end of the interval; `None` with one seed.
    pub low: Option<f64>,
    /// Upper end of the interval; `None` with one seed.
    pub high: Option<f64>,
}

/// Quantiles 0.975 of Student's t with 1, 2, ... degrees of freedom (NIST/SEMATECH e-Handbook,
/// 1.3.6.7.2).
const T_975: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];
/// The same of the normal distribution.
const NORMAL_975: f64 = 1.959_963_984_540_054;

/// Quantile 0.975 with so many degrees of freedom, at least 1: above those of the table four terms
/// of its expansion (Abramowitz and Stegun 26.7.5), good to four decimals there.
fn t_975(freedom: usize) -> f64 {
    if let Some(t) = T_975.get(freedom - 1) {
        return *t;
    }
    let (z, n) = (NORMAL_975, freedom as f64);
    let square = z * z;
    let terms = [
        (square + 1.0) / 4.0,
        ((5.0 * square + 16.0) * square + 3.0) / 96.0,
        (((3.0 * square + 19.0) * square + 17.0) * square - 15.0) / 384.0,
    ];
    z * (1.0 + (terms[0] + (terms[1] + terms[2] / n) / n) / n)
}

impl Estimate {
    /// Of values of independent seeds; `None` without any.
    pub fn of(values: &[f64]) -> Option<Self> {
        let mean = mean(values)?;
        let count = values.len() as f64;
        if values.len() < 2 {
            return Some(Self { mean, low: None, high: None });
        }
        let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
        let error = (squares / (count - 1.0) / count).sqrt();
        let t = t_975(values.len() - 1);
        Some(Self { mean, low: Some(mean - t * error), high: Some(mean + t * error) })
    }

    /// Of amounts, none of which is negative or above `most`: neither is their mean, so the
    /// interval ends there.
    pub fn of_amounts(values: &[f64], most: f64) -> Option<Self> {
        let Self { mean, low, high } = Self::of(values)?;
        Some(Self { mean, low: low.map(|low| low.max(0.0)), high: high.map(|high| high.min(most)) })
    }
}

/// Mean; `None` of nothing.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_a_worked_example() {
        // 2, 4, 6, 8: mean 5, variance 20/3, standard error sqrt(20/12) = 1.29099, t(3) = 3.182.
        let estimate = Estimate::of(&[2.0, 4.0, 6.0, 8.0]).unwrap();
        assert_eq!(estimate.mean, 5.0);
        assert!((estimate.low.unwrap() - 0.892_06).abs() < 1e-4, "{estimate:?}");
        assert!((estimate.high.unwrap() - 9.107_94).abs() < 1e-4, "{estimate:?}");
    }

    #[test]
    fn quantiles_are_those_of_the_published_table() {
        // NIST/SEMATECH e-Handbook, 1.3.6.7.2.
        for (freedom, t) in
            [(1, 12.706), (30, 2.042), (31, 2.040), (39, 2.023), (60, 2.000), (100, 1.984)]
        {
            assert!((t_975(freedom) - t).abs() < 5.1e-4, "{freedom}: {}", t_975(freedom));
        }
        assert!((t_975(100_000) - NORMAL_975).abs() < 1e-4);
    }

    #[test]
    fn an_interval_of_amounts_ends_at_nothing_and_at_the_most() {
        let capped = Estimate::of_amounts(&[0.0, 0.0, 30.0], 35.0).unwrap();
        assert_eq!(capped.high, Some(35.0));
        let estimate = Estimate::of_amounts(&[0.0, 0.0, 30.0], f64::INFINITY).unwrap();
        // Mean 10, standard error 10, t(2) = 4.303.
        assert_eq!((estimate.mean, estimate.low), (10.0, Some(0.0)));
        assert!((estimate.high.unwrap() - 53.03).abs() < 1e-9, "{estimate:?}");
    }

    #[test]
    fn one_seed_has_a_mean_and_no_interval() {
        let one = Estimate::of(&[3.0]).unwrap();
        assert_eq!((one.mean, one.low, one.high), (3.0, None, None));
        assert_eq!(Estimate::of(&[]), None);
    }
}

//! Means with their intervals.
//!
//! The seeds of a regime are independent draws; the orders of the machines within a seed are not,
//! so they are averaged first and a seed counts once. The interval is Student's t over the seeds,
//! 95 %.

use serde::Serialize;

/// A mean and its 95 % interval.
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
/// The same with infinitely many.
const NORMAL_975: f64 = 1.960;

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
        let t = T_975.get(values.len() - 2).copied().unwrap_or(NORMAL_975);
        Some(Self { mean, low: Some(mean - t * error), high: Some(mean + t * error) })
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
    fn one_seed_has_a_mean_and_no_interval() {
        let one = Estimate::of(&[3.0]).unwrap();
        assert_eq!((one.mean, one.low, one.high), (3.0, None, None));
        assert_eq!(Estimate::of(&[]), None);
    }
}

//! Mean, spread, and the sign test.

use serde::Serialize;

/// What many replays of one policy gave. Runs without the figure are not counted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// Replays that have the figure.
    pub runs: usize,
    pub mean: f64,
    /// Of the sample (n - 1); absent for a single run.
    pub standard_deviation: Option<f64>,
    pub min: f64,
    pub max: f64,
}

impl Spread {
    /// The spread of some figures, if there are any.
    pub fn of(figures: &[f64]) -> Option<Self> {
        let runs = figures.len();
        if runs == 0 {
            return None;
        }
        let mean = figures.iter().sum::<f64>() / runs as f64;
        let squares: f64 = figures.iter().map(|figure| (figure - mean).powi(2)).sum();
        Some(Self {
            runs,
            mean,
            standard_deviation: (runs > 1).then(|| (squares / (runs - 1) as f64).sqrt()),
            min: figures.iter().copied().fold(f64::INFINITY, f64::min),
            max: figures.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        })
    }
}

/// Two policies on the same traces and seeds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Paired {
    pub mean_difference: f64,
    /// Pairs in which the figure is higher than that of the other policy.
    pub higher: usize,
    pub lower: usize,
    pub equal: usize,
    /// Probability of a split at least this uneven if both were alike: two-sided, equal pairs left
    /// out.
    pub sign_test_p: f64,
}

impl Paired {
    /// Compares pairs of (figure, the other policy's figure), if there are any.
    pub fn of(pairs: &[(f64, f64)]) -> Option<Self> {
        if pairs.is_empty() {
            return None;
        }
        let count =
            |wanted: fn(&(f64, f64)) -> bool| pairs.iter().filter(|pair| wanted(pair)).count();
        let (higher, lower) = (count(|(a, b)| a > b), count(|(a, b)| a < b));
        let differences = pairs.iter().map(|(figure, other)| figure - other);
        Some(Self {
            mean_difference: differences.sum::<f64>() / pairs.len() as f64,
            higher,
            lower,
            equal: pairs.len() - higher - lower,
            sign_test_p: sign_test(higher, lower),
        })
    }
}

/// Two-sided exact sign test: the binomial distribution with probability one half.
fn sign_test(higher: usize, lower: usize) -> f64 {
    let (count, fewer) = ((higher + lower) as f64, higher.min(lower));
    // Logarithms: 2^-n is too small for thousands of pairs.
    let mut log_term = -count * std::f64::consts::LN_2;
    let mut tail = 0.0;
    for drawn in 0..=fewer {
        if drawn > 0 {
            log_term += ((count - drawn as f64 + 1.0) / drawn as f64).ln();
        }
        tail += log_term.exp();
    }
    (2.0 * tail).min(1.0)
}

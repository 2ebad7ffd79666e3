//! Mean and spread over runs with different seeds.

use crate::number::UNKNOWN;

/// Figures of several runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) mean: f64,
    /// Of the sample (n - 1); `None` for a single run.
    pub(crate) deviation: Option<f64>,
}

impl Spread {
    /// Of the runs that have the figure; `None` if none has.
    pub(crate) fn of(figures: impl IntoIterator<Item = Option<f64>>) -> Option<Self> {
        let figures: Vec<f64> = figures.into_iter().flatten().collect();
        if figures.is_empty() {
            return None;
        }
        let count = figures.len() as f64;
        let mean = figures.iter().sum::<f64>() / count;
        let squares: f64 = figures.iter().map(|figure| (figure - mean) * (figure - mean)).sum();
        let deviation = (figures.len() > 1).then(|| (squares / (count - 1.0)).sqrt());
        Some(Self { mean, deviation })
    }

    /// The mean as text.
    pub(crate) fn text(this: Option<Self>, unit: impl Fn(f64) -> String) -> String {
        this.map_or_else(|| UNKNOWN.to_owned(), |spread| unit(spread.mean))
    }

    /// The deviation as text, empty where there is none.
    pub(crate) fn deviation_text(this: Option<Self>, unit: impl Fn(f64) -> String) -> String {
        let deviation = this.and_then(|spread| spread.deviation);
        deviation.map_or_else(String::new, |deviation| format!("± {}", unit(deviation)))
    }

    /// Both in one.
    pub(crate) fn full_text(this: Option<Self>, unit: impl Fn(f64) -> String) -> String {
        let deviation = Self::deviation_text(this, &unit);
        format!("{} {deviation}", Self::text(this, unit)).trim_end().to_owned()
    }
}

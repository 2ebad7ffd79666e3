//! Mean and spread over runs with different seeds.

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

    /// As text, with the deviation behind it where there is one.
    pub(crate) fn text(this: Option<Self>, unit: impl Fn(f64) -> String) -> String {
        match this {
            None => super::number::UNKNOWN.to_owned(),
            Some(Self { mean, deviation: None }) => unit(mean),
            Some(Self { mean, deviation: Some(deviation) }) => {
                format!("{} ± {}", unit(mean), unit(deviation))
            }
        }
    }
}

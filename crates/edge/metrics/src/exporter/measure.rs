//! Which series are asked for, and what their numbers mean.

use dovetail_account::signal::{ActivityRule, ReadingProblem, Scale, Signal, dcgm, micro_percent};

/// What a series measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SeriesMeasure {
    /// How busy the device is.
    Busy(Signal),
    /// Share of time in which memory was read or written.
    DramActive,
    /// Power drawn, in watts.
    Power,
}

/// Series beside the signals: name, meaning, scale (of power there is none).
const OTHERS: [(&str, SeriesMeasure, Scale); 4] = [
    (dcgm::DRAM_ACTIVE, SeriesMeasure::DramActive, Scale::Ratio),
    ("gpu_umc_activity", SeriesMeasure::DramActive, Scale::Percent),
    (dcgm::POWER_USAGE, SeriesMeasure::Power, Scale::Ratio),
    ("gpu_package_power", SeriesMeasure::Power, Scale::Ratio),
];

/// All series that are read, with their meaning and scale: every signal of the ledger under each of
/// its names, memory traffic and power.
pub fn measures() -> impl Iterator<Item = (&'static str, SeriesMeasure, Scale)> {
    let signals = Signal::ALL.into_iter().flat_map(|signal| {
        let series = signal.series().iter();
        series.map(move |(name, scale)| (*name, SeriesMeasure::Busy(signal), *scale))
    });
    signals.chain(OTHERS)
}

/// The query for the samples of a series in steps: the mean over each step, which is the sample
/// itself where a step has one. The window is open at its begin: until Prometheus 3 a window of a
/// whole step would also hold the last sample of the step before, and every change of holder would
/// count twice.
pub fn mean_over_steps(series: &str, step_ms: u64) -> String {
    format!("avg_over_time({series}[{}ms])", step_ms.saturating_sub(1).max(1))
}

/// The query for the highest sample of a series in each step in which some samples were above the
/// threshold of a rule and others were not. Other steps have no answer, so it is short where
/// devices work for long.
pub fn peaks_of_mixed_steps(
    series: &str,
    scale: Scale,
    rule: &ActivityRule,
    step_ms: u64,
) -> String {
    let window = format!("{series}[{}ms]", step_ms.saturating_sub(1).max(1));
    let full = match scale {
        Scale::Ratio => 1.0,
        Scale::Percent => 100.0,
    };
    let threshold = f64::from(rule.threshold_micro_percent) / 1e8 * full;
    format!("max_over_time({window}) > {threshold} and min_over_time({window}) <= {threshold}")
}

impl SeriesMeasure {
    /// What a number means: millionths of a percent, or milliwatts.
    ///
    /// # Errors
    /// Why the number is no reading.
    pub fn reading(self, value: f64, scale: Scale) -> Result<u32, ReadingProblem> {
        if self != Self::Power {
            return micro_percent(value, scale);
        }
        // A blank is far above any power, and no board draws a megawatt.
        match value * 1000.0 {
            milliwatts if !value.is_finite() || milliwatts.is_nan() => {
                Err(ReadingProblem::NotFinite)
            }
            milliwatts if milliwatts < 0.0 => Err(ReadingProblem::Negative),
            milliwatts if milliwatts > 1e9 => Err(ReadingProblem::Blank),
            milliwatts => Ok(milliwatts as u32),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_signal_of_the_ledger_is_read_under_each_of_its_names() {
        for signal in Signal::ALL {
            for (name, scale) in signal.series() {
                let wanted = (*name, SeriesMeasure::Busy(signal), *scale);
                assert!(measures().any(|measure| measure == wanted), "{name}");
            }
        }
    }

    #[test]
    fn power_that_cannot_be_is_no_reading() {
        let power = |watts| SeriesMeasure::Power.reading(watts, Scale::Ratio);
        assert_eq!(power(70.25), Ok(70_250));
        assert_eq!(power(-1.0), Err(ReadingProblem::Negative));
        assert_eq!(power(f64::NAN), Err(ReadingProblem::NotFinite));
        assert_eq!(power(9_223_372_036_854_775_794.0), Err(ReadingProblem::Blank));
    }
}

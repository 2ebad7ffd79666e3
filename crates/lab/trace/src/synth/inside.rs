//! How much of its run time a job can spend inside the stream.
//!
//! Run times have heavy tails: a job that comes on the last day and runs for a month asks for 30
//! GPU-days and can use one. Load counts what can be used, or a stream would never fill its
//! cluster. A job that comes at t and starts at once runs min(X, T − t) of its run time X before
//! the end T, on average H(T − t) = ∫ P(X > x) dx from 0 to T − t, which is averaged over the times
//! of arrival.

use super::arrivals::{hour_shares, week_factor};
use super::profile::{Parameters, SizeClass};

const HOUR_S: f64 = 3600.0;
/// Points of the integral over run times, evenly on a logarithmic scale.
const POINTS: usize = 240;
/// Points of the integral over the part of its run time that a failed or stopped job gets through.
const PARTS: usize = 32;

/// Mean seconds that one job of a size can run before the end of a stream of so many days.
pub(super) fn mean_inside_s(profile: &Parameters, size: &SizeClass, days: u32) -> f64 {
    let end_s = f64::from(days) * 24.0 * HOUR_S;
    let table = IntegralTable::new(profile, size, end_s);
    let hours = hour_shares(profile);
    let (mut sum, mut weights) = (0.0, 0.0);
    for day in 0..days {
        for (hour, share) in hours.iter().enumerate() {
            let middle_s = (f64::from(day) * 24.0 + hour as f64 + 0.5) * HOUR_S;
            let weight = week_factor(day) * share;
            sum += weight * table.up_to(end_s - middle_s);
            weights += weight;
        }
    }
    sum / weights
}

/// H at points that grow by a constant factor, the first at 1 s.
struct IntegralTable {
    log_step: f64,
    seconds: Vec<f64>,
    integral_s: Vec<f64>,
}

impl IntegralTable {
    fn new(profile: &Parameters, size: &SizeClass, end_s: f64) -> Self {
        let log_step = libm::log(end_s) / (POINTS - 1) as f64;
        let seconds: Vec<f64> =
            (0..POINTS).map(|point| libm::exp(log_step * point as f64)).collect();
        let longer: Vec<f64> = seconds.iter().map(|s| longer_than(profile, size, *s)).collect();
        // Below one second nearly every job still runs.
        let mut integral_s = vec![longer[0].midpoint(1.0)];
        for point in 1..POINTS {
            let step_s = seconds[point] - seconds[point - 1];
            let last = integral_s[point - 1];
            integral_s.push(last + step_s * longer[point].midpoint(longer[point - 1]));
        }
        Self { log_step, seconds, integral_s }
    }

    fn up_to(&self, s: f64) -> f64 {
        if s <= 1.0 {
            return s.max(0.0) * self.integral_s[0];
        }
        let point = ((libm::log(s) / self.log_step) as usize).min(POINTS - 2);
        let (from, to) = (self.seconds[point], self.seconds[point + 1]);
        let part = ((s - from) / (to - from)).clamp(0.0, 1.0);
        self.integral_s[point] * (1.0 - part) + self.integral_s[point + 1] * part
    }
}

/// Probability that a job of this size runs longer than so many s, failures and stops included.
fn longer_than(profile: &Parameters, size: &SizeClass, seconds: f64) -> f64 {
    let planned = |s: f64| 1.0 - size.run_time.probability_up_to(s);
    if !size.run_time.of_successful_jobs {
        return planned(seconds);
    }
    let parts = (0..PARTS).map(|part| (part as f64 + 0.5) / PARTS as f64);
    let mean = |of: &dyn Fn(f64) -> f64| parts.clone().map(of).sum::<f64>() / PARTS as f64;
    let failed = mean(&|u| planned(seconds / (u * u * u)));
    let killed = mean(&|u| planned(seconds / u));
    (1.0 - profile.failed - profile.killed) * planned(seconds)
        + profile.failed * failed
        + profile.killed * killed
}

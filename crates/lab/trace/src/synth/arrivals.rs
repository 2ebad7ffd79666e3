//! Submission times: a Poisson process whose rate follows the day and the week, by thinning
//! (Lewis and Shedler 1979). Time 0 is a Monday at midnight.

use super::profile::{BUSIEST_HOUR, Parameters, WEEKEND};
use super::random::Random;

const DAY_S: f64 = 86_400.0;
const WORKDAY: f64 = (7.0 - 2.0 * WEEKEND) / 5.0;

/// Ascending times, in whole s, with `expected` of them on average.
pub(super) fn times(
    mut random: Random,
    profile: &Parameters,
    days: u32,
    expected: f64,
) -> Vec<u64> {
    let mean_week = (0..days).map(week_factor).sum::<f64>();
    let base = expected / (mean_week * DAY_S);
    let highest = base * (1.0 + profile.day_amplitude) * WORKDAY;
    let end = f64::from(days) * DAY_S;
    let mut times = Vec::new();
    let mut now = 0.0;
    loop {
        now += random.exponential() / highest;
        if now >= end {
            return times;
        }
        let rate = base * week_factor((now / DAY_S) as u32) * day_factor(profile, now);
        if random.chance(rate / highest) {
            times.push(now as u64);
        }
    }
}

/// Arrivals of a day against the mean day of whole weeks.
pub(super) fn week_factor(day: u32) -> f64 {
    if day % 7 >= 5 { WEEKEND } else { WORKDAY }
}

/// Arrivals at a time of day against the mean of the day.
fn day_factor(profile: &Parameters, seconds: f64) -> f64 {
    let hour = seconds / 3600.0;
    let angle = 2.0 * std::f64::consts::PI * (hour - BUSIEST_HOUR) / 24.0;
    1.0 + profile.day_amplitude * libm::cos(angle)
}

/// Share of the arrivals in each hour of the day.
pub(super) fn hour_shares(profile: &Parameters) -> Vec<f64> {
    use std::f64::consts::PI;
    // Integral of the rate over the hour.
    let angle = |hour: f64| 2.0 * PI * (hour - BUSIEST_HOUR) / 24.0;
    let share = |hour: f64| {
        let wave = libm::sin(angle(hour + 1.0)) - libm::sin(angle(hour));
        1.0 / 24.0 + profile.day_amplitude * wave / (2.0 * PI)
    };
    (0..24).map(|hour| share(f64::from(hour))).collect()
}

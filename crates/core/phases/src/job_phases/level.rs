//! How strong each signal of a job is while it works: what all other samples are compared with.
//!
//! A rank that waits in a collective keeps its engine busy, but neither its tensor cores nor its
//! memory. How much of a sample was work follows from how far its signals fell below the level of
//! work. That level is the job's own: the upper quartile of each member, and of these the highest,
//! because a member that always waits for a slower one never shows it.

use super::reading::{Channel, SampleReading};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct JobLevels {
    /// How busy a device is that is never without work: kernels have gaps.
    pub(super) full: f64,
    /// Tensor cores by busy time.
    pub(super) tensor: Option<f64>,
    /// Memory traffic by busy time.
    pub(super) dram: Option<f64>,
    /// Multiprocessors by busy time.
    pub(super) sm: Option<f64>,
    /// Power at work, in mW.
    pub(super) power_work: Option<f64>,
    /// Power when nothing runs: the lowest two in a hundred samples, in mW.
    pub(super) power_idle: Option<f64>,
}

/// Samples that are less busy say little about the level.
const BUSY_ENOUGH: f64 = 0.3;
/// Devices without gaps in their work are so busy.
const FULL: std::ops::Range<f64> = 0.92..1.0;
/// Where no such sample is.
const FULL_UNSEEN: f64 = 0.97;
/// A member with fewer busy samples has no level of its own.
const ENOUGH_SAMPLES: usize = 8;
/// Below, a job does not use this part of the device.
const USED: f64 = 0.03;
/// Below this share of multiprocessors even work cannot be told from kernels that spin.
const SM_USED: f64 = 0.3;

impl JobLevels {
    pub(super) fn of(members: &[Vec<SampleReading>]) -> Self {
        let highest = |channel: Channel, by_busy: bool| {
            let level = |readings: &Vec<SampleReading>| upper_quartile(readings, channel, by_busy);
            members.iter().filter_map(level).max_by(f64::total_cmp)
        };
        let power = |readings: &Vec<SampleReading>| {
            let all: Vec<f64> =
                readings.iter().filter_map(|reading| reading.get(Channel::Power)).collect();
            quantile(all, 2, 100)
        };
        let above = |level: Option<f64>, least: f64| level.filter(|level| *level > least);
        let busy = members.iter().flatten().filter_map(SampleReading::busy);
        let full =
            quantile(busy.filter(|busy| *busy > FULL.start && *busy <= FULL.end).collect(), 1, 2);
        Self {
            full: full.unwrap_or(FULL_UNSEEN),
            tensor: above(highest(Channel::Tensor, true), USED),
            dram: above(highest(Channel::Dram, true), USED),
            sm: above(highest(Channel::Sm, true), SM_USED),
            power_work: highest(Channel::Power, false),
            power_idle: members.iter().filter_map(power).min_by(f64::total_cmp),
        }
    }
}

fn upper_quartile(readings: &[SampleReading], channel: Channel, by_busy: bool) -> Option<f64> {
    let level = |reading: &SampleReading| {
        let busy = reading.busy().filter(|busy| *busy > BUSY_ENOUGH)?;
        let value = reading.get(channel)?;
        Some(if by_busy { value / busy } else { value })
    };
    let found: Vec<f64> = readings.iter().filter_map(level).collect();
    if found.len() < ENOUGH_SAMPLES {
        return None;
    }
    quantile(found, 3, 4)
}

/// The value below which `part` of `of` lie.
fn quantile(mut values: Vec<f64>, part: usize, of: usize) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    let place = (values.len() - 1) * part / of;
    Some(*values.select_nth_unstable_by(place, f64::total_cmp).1)
}

//! All series of a period, device by device.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_account::signal::{DeviceMoment, Peaks, Scale};

use super::measure::SeriesMeasure;
use super::origin::{DeviceHolder, MigSlice, SeriesOrigin};
use super::pod_labels::PodLabels;
use crate::prometheus::Series;

/// What was read of devices. Memory grows with the number of samples.
#[derive(Debug, Default)]
pub struct Observation {
    pub(super) devices: BTreeMap<DeviceName, DeviceObservation>,
    refused: RefusedSeries,
}

/// What could not be used, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RefusedSeries {
    /// Series whose labels name no device or no node.
    pub series_without_device: u64,
    /// Numbers that are no readings: a driver's blank, NaN, below zero, more than all.
    pub samples: u64,
    /// Samples left out because two series of one measure, device and holder say different things.
    pub contradictions: u64,
}

/// A device, by node and its own name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DeviceName {
    pub(super) node: String,
    pub(super) device: String,
}

/// What was read of one device.
#[derive(Debug, Default)]
pub(super) struct DeviceObservation {
    pub(super) model: Option<String>,
    /// By slice (none: the whole device) and holder (none: nobody).
    pub(super) held: BTreeMap<(Option<MigSlice>, Option<DeviceHolder>), Readings>,
    /// The highest samples of steps with samples on both sides of the threshold, likewise.
    peaks: BTreeMap<(Option<MigSlice>, Option<DeviceHolder>), HighestSamples>,
    /// When a number came that is no reading, likewise: the device was there and held all the same.
    without_reading: BTreeMap<(Option<MigSlice>, Option<DeviceHolder>), BTreeSet<i64>>,
}

/// What is known of (a slice of) a device at one time.
#[derive(Debug, Default)]
pub(super) struct Look<'o> {
    pub(super) moment: DeviceMoment,
    pub(super) peaks: Peaks,
    pub(super) holders: Vec<&'o DeviceHolder>,
}

/// Highest samples of steps by measure and time.
type HighestSamples = BTreeMap<SeriesMeasure, BTreeMap<i64, u32>>;

/// Readings by time and measure.
pub(super) type Readings = BTreeMap<SeriesMeasure, BTreeMap<i64, Option<u32>>>;

impl Observation {
    /// Takes the series of one measure. `pods` is decided over all series of the period, with
    /// [`PodLabels::of`].
    pub fn take(
        &mut self,
        measure: SeriesMeasure,
        scale: Scale,
        pods: &PodLabels,
        series: Vec<Series>,
    ) {
        for series in series {
            self.take_one(measure, scale, pods, &series);
        }
    }

    /// Takes what [`super::peaks_of_mixed_steps`] asks for, after the means of the same measure:
    /// the readings are then means over steps. What is no reading is left out; its mean is none
    /// either.
    pub fn take_peaks(
        &mut self,
        measure: SeriesMeasure,
        scale: Scale,
        pods: &PodLabels,
        series: Vec<Series>,
    ) {
        for series in series {
            let Some(origin) = SeriesOrigin::of(&series.labels, pods) else { continue };
            let name = DeviceName { node: origin.node, device: origin.device };
            let Some(device) = self.devices.get_mut(&name) else { continue };
            let peaks = device.peaks.entry((origin.slice, origin.holder)).or_default();
            let peaks = peaks.entry(measure).or_default();
            for sample in &series.samples {
                let Ok(reading) = measure.reading(sample.value, scale) else { continue };
                let peak = peaks.entry(sample.at_ms).or_default();
                *peak = reading.max(*peak);
            }
        }
    }

    /// Whether anything of a measure was read.
    pub fn has(&self, measure: SeriesMeasure) -> bool {
        let mut readings = self.devices.values().flat_map(|device| device.held.values());
        readings.any(|readings| readings.contains_key(&measure))
    }

    /// What could not be used.
    pub fn refused(&self) -> RefusedSeries {
        self.refused
    }

    /// Devices that were seen.
    pub fn devices(&self) -> usize {
        self.devices.len()
    }

    /// How far apart samples lie: the median over the first thousand of series with several. `None`
    /// where no series has two.
    pub fn sample_distance_ms(&self) -> Option<u64> {
        const MOST: usize = 1000;
        let series = self.devices.values().flat_map(|device| device.held.values());
        let times = series.flat_map(BTreeMap::values).map(BTreeMap::keys);
        let apart = times.flat_map(|times| times.clone().zip(times.skip(1)));
        let mut apart: Vec<i64> = apart.map(|(one, next)| next - one).take(MOST).collect();
        apart.sort_unstable();
        apart.get(apart.len() / 2).and_then(|apart_ms| u64::try_from(*apart_ms).ok())
    }

    /// Every reading of a device while a pod held it, with its measure and moment; of slices of it
    /// too.
    pub(crate) fn each_reading(
        &self,
        node: &str,
        device: &str,
        (namespace, pod): (&str, &str),
        mut take: impl FnMut(SeriesMeasure, i64, u32),
    ) {
        let name = DeviceName { node: node.to_owned(), device: device.to_owned() };
        let Some(observed) = self.devices.get(&name) else { return };
        for ((_, holder), readings) in &observed.held {
            let is_it = |holder: &DeviceHolder| holder.namespace == namespace && holder.pod == pod;
            if !holder.as_ref().is_some_and(is_it) {
                continue;
            }
            for (measure, readings) in readings {
                for (at_ms, reading) in readings {
                    if let Some(reading) = reading {
                        take(*measure, *at_ms, *reading);
                    }
                }
            }
        }
    }

    fn take_one(
        &mut self,
        measure: SeriesMeasure,
        scale: Scale,
        pods: &PodLabels,
        series: &Series,
    ) {
        let Some(origin) = SeriesOrigin::of(&series.labels, pods) else {
            self.refused.series_without_device += 1;
            return;
        };
        let name = DeviceName { node: origin.node, device: origin.device };
        let device = self.devices.entry(name).or_default();
        device.model = device.model.take().or(origin.model);
        let who = (origin.slice, origin.holder);
        let mut refused = BTreeSet::new();
        let readings = device.held.entry(who.clone()).or_default();
        let readings = readings.entry(measure).or_default();
        for sample in &series.samples {
            let Ok(reading) = measure.reading(sample.value, scale) else {
                self.refused.samples += 1;
                refused.insert(sample.at_ms);
                continue;
            };
            let before = readings.entry(sample.at_ms).or_insert(Some(reading));
            if before.is_some_and(|before| !agree(before, reading)) {
                // Two sources, and nobody knows which one is right.
                *before = None;
                self.refused.contradictions += 1;
            }
        }
        if !refused.is_empty() {
            device.without_reading.entry(who).or_default().append(&mut refused);
        }
    }
}

impl DeviceObservation {
    /// Everything known of (a slice of) the device at its times, with the holders of that time.
    pub(super) fn looks(&self, slice: Option<&MigSlice>) -> BTreeMap<i64, Look<'_>> {
        let mut looks: BTreeMap<i64, Look<'_>> = BTreeMap::new();
        for (who, readings) in &self.held {
            let (of_slice, holder) = who;
            if of_slice.as_ref() != slice {
                continue;
            }
            let readings = readings.iter().flat_map(|(measure, readings)| {
                readings.iter().map(|(at_ms, reading)| (*at_ms, Some((*measure, *reading))))
            });
            let without = self.without_reading.get(who).into_iter().flatten();
            for (at_ms, reading) in readings.chain(without.map(|at_ms| (*at_ms, None))) {
                let Look { moment, holders, .. } = looks.entry(at_ms).or_default();
                moment.is_mig_slice = slice.is_some();
                if let Some(holder) = holder
                    && holders.last() != Some(&holder)
                {
                    holders.push(holder);
                    moment.holders = holders.len() as u32;
                }
                if let Some((measure, reading)) = reading {
                    set(moment, measure, reading);
                }
            }
        }
        for ((_, _), peaks) in self.peaks.iter().filter(|((of, _), _)| of.as_ref() == slice) {
            for (measure, peaks) in peaks {
                for (at_ms, peak) in peaks {
                    if let Some(look) = looks.get_mut(at_ms) {
                        set_peak(&mut look.peaks, *measure, *peak);
                    }
                }
            }
        }
        looks
    }
}

/// Holders of one device get the readings of all of it: the highest counts where they differ.
fn set(moment: &mut DeviceMoment, measure: SeriesMeasure, reading: Option<u32>) {
    let place = match measure {
        SeriesMeasure::Busy(signal) => &mut moment.readings[signal as usize],
        SeriesMeasure::DramActive => &mut moment.dram_active_micro_percent,
        SeriesMeasure::Power => &mut moment.power_milliwatts,
    };
    *place = (*place).max(reading);
}

fn set_peak(peaks: &mut Peaks, measure: SeriesMeasure, peak: u32) {
    let place = match measure {
        SeriesMeasure::Busy(signal) => &mut peaks.readings[signal as usize],
        SeriesMeasure::DramActive => &mut peaks.dram_active_micro_percent,
        SeriesMeasure::Power => return,
    };
    *place = (*place).max(Some(peak));
}

/// Two servers that scrape one exporter read it seconds apart.
fn agree(one: u32, other: u32) -> bool {
    const FIVE_PERCENT: u32 = 5_000_000;
    one.abs_diff(other) <= FIVE_PERCENT
}

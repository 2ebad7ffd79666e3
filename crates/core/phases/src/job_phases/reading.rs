//! Samples as plain numbers by channel, with short gaps held over.

use super::outcome::Evidence;
use super::record::DeviceSample;

const CHANNELS: usize = 13;

/// What a sample has numbers of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Channel {
    Engine,
    Util,
    Sm,
    Tensor,
    Dram,
    Nvlink,
    Power,
    Cpu,
    DiskBusy,
    Read,
    Written,
    Received,
    Sent,
}

/// One sample: shares from 0 to 1, everything else in the unit of [`DeviceSample`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct SampleReading {
    values: [Option<f64>; CHANNELS],
}

/// Channels of the host begin here; before it are those of the device.
const HOST: usize = Channel::Cpu as usize;

/// A sample that is missing takes the values of the one before it, for so many steps; beyond,
/// nobody knows.
const HELD_STEPS: u8 = 2;

impl SampleReading {
    /// All samples of a member.
    pub(super) fn all_of(samples: &[DeviceSample]) -> Vec<Self> {
        let mut ages = [0; CHANNELS];
        let mut last = Self::default();
        let hold = |sample: &DeviceSample| {
            let mut now = Self::of(sample);
            for (channel, age) in ages.iter_mut().enumerate() {
                if sample.is_of_several && channel < HOST {
                    // What it was before it was not then.
                    *age = HELD_STEPS;
                }
                if now.values[channel].is_some() {
                    *age = 0;
                } else if *age < HELD_STEPS {
                    *age += 1;
                    now.values[channel] = last.values[channel];
                }
            }
            last = now;
            now
        };
        let mut readings: Vec<Self> = samples.iter().map(hold).collect();
        for number in 1..samples.len().saturating_sub(1) {
            if !Self::of(&samples[number]).has_host() && Self::of(&samples[number + 1]).has_host() {
                take_likelier_host(&mut readings, number);
            }
        }
        readings
    }

    fn has_host(&self) -> bool {
        self.values[HOST..].iter().any(Option::is_some)
    }

    /// Without holding anything over.
    fn of(sample: &DeviceSample) -> Self {
        let share = |value: Option<u32>| value.map(|share| f64::from(share) / 1e8);
        let number = |value: Option<u64>| value.map(|number| number as f64);
        let mut reading = Self {
            values: [
                share(sample.engine_micro_percent),
                share(sample.util_micro_percent),
                share(sample.sm_micro_percent),
                share(sample.tensor_micro_percent),
                share(sample.dram_micro_percent),
                number(sample.nvlink_bytes_per_s),
                sample.power_milliwatts.map(f64::from),
                number(sample.cpu_milli),
                share(sample.disk_busy_micro_percent),
                number(sample.read_bytes_per_s),
                number(sample.written_bytes_per_s),
                number(sample.received_bytes_per_s),
                number(sample.sent_bytes_per_s),
            ],
        };
        if sample.is_of_several {
            reading.values[..HOST].fill(None);
        }
        reading
    }

    pub(super) fn get(&self, channel: Channel) -> Option<f64> {
        self.values[channel as usize]
    }

    /// How busy the device was, by what it is known from. An engine that reads zero beside kernels
    /// that ran is an exporter that lost it, which is no reading.
    pub(super) fn busy(&self) -> Option<f64> {
        let (engine, util) = (self.get(Channel::Engine), self.get(Channel::Util));
        match (engine, util) {
            (Some(engine), Some(util)) if engine == 0.0 && util > 0.5 => None,
            (engine, util) => engine.or(util).or(self.get(Channel::Sm)),
        }
    }

    /// Inwards: disk and network together, where either is known.
    pub(super) fn inwards(&self) -> Option<f64> {
        sum(self.get(Channel::Read), self.get(Channel::Received))
    }

    /// Outwards: disk and network together, where either is known.
    pub(super) fn outwards(&self) -> Option<f64> {
        sum(self.get(Channel::Written), self.get(Channel::Sent))
    }
}

/// A host that was not read did what it does before or after, whenever the device is busy as it is
/// now.
fn take_likelier_host(readings: &mut [SampleReading], number: usize) {
    let far = |other: usize| {
        let (now, then) = (readings[number].busy(), readings[other].busy());
        now.zip(then).map_or(1.0, |(now, then)| (now - then).abs())
    };
    if far(number + 1) < far(number - 1) {
        let after = readings[number + 1];
        readings[number].values[HOST..].copy_from_slice(&after.values[HOST..]);
    }
}

/// Means over readings.
pub(super) fn evidence(readings: &[SampleReading]) -> Evidence {
    let mean = |of: &dyn Fn(&SampleReading) -> Option<f64>, scale: f64| {
        let values: Vec<f64> = readings.iter().filter_map(of).collect();
        let sum: f64 = values.iter().sum();
        (!values.is_empty()).then(|| (sum * scale / values.len() as f64) as u64)
    };
    let share = |channel: Channel| mean(&|reading| reading.get(channel), 1e8);
    let number = |channel: Channel| mean(&|reading| reading.get(channel), 1.0);
    let is_read = |reading: &&SampleReading| reading.values.iter().any(Option::is_some);
    Evidence {
        samples: readings.iter().filter(is_read).count() as u64,
        busy_micro_percent: mean(&SampleReading::busy, 1e8),
        sm_micro_percent: share(Channel::Sm),
        tensor_micro_percent: share(Channel::Tensor),
        dram_micro_percent: share(Channel::Dram),
        nvlink_bytes_per_s: number(Channel::Nvlink),
        power_milliwatts: number(Channel::Power),
        cpu_milli: number(Channel::Cpu),
        disk_busy_micro_percent: share(Channel::DiskBusy),
        in_bytes_per_s: mean(&SampleReading::inwards, 1.0),
        out_bytes_per_s: mean(&SampleReading::outwards, 1.0),
    }
}

fn sum(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one + other),
        (one, other) => one.or(other),
    }
}

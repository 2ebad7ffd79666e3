//! What one sample is a mixture of: work, spinning, idling.

use super::level::JobLevels;
use super::reading::{Channel, SampleReading};

/// Shares of one sample; together 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Mixture {
    /// The device worked.
    pub(super) work: f64,
    /// Kernels ran and moved nothing: a collective that waits.
    pub(super) spin: f64,
    /// No kernel ran.
    pub(super) idle: f64,
    /// Kernels ran, and nothing tells which.
    pub(super) busy: f64,
    /// Nothing was read.
    pub(super) unknown: f64,
    /// Signals that are read apart from each other and tell work from spinning.
    pub(super) witnesses: u8,
    /// What the host did.
    pub(super) host: Host,
}

/// What the host did meanwhile.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Host {
    /// Anything was read of it.
    pub(super) is_known: bool,
    /// CPUs worked.
    pub(super) computes: bool,
    /// A disk was busy, and nothing was written.
    pub(super) reads_hard: bool,
    /// Disk and network inwards, in bytes per second, where it is more than background.
    pub(super) inwards: Option<f64>,
    pub(super) outwards: Option<f64>,
}

/// Less idling than this is noise.
const IDLE_NOISE: f64 = 0.04;
/// So near to its level a sample is all work; work varies by so much.
const WORK_NOISE: f64 = 0.08;
/// So far below its level a sample has no work in it.
const SPIN_NOISE: f64 = 0.06;
/// Signals so near to each other say the same.
const AGREE: f64 = 0.15;
/// Kernels that spin occupy so much of the multiprocessors that work does.
const SPIN_SM: f64 = 0.18;
/// Kernels that spin draw so much of the power that work draws above idle.
const SPIN_POWER: f64 = 0.2;
/// More CPUs than one that waits for the device, in thousandths.
const CPU_WORKS_MILLI: f64 = 1500.0;
/// A disk that is busy for longer is what somebody waits for: small pieces make a low rate.
const DISK_WORKS: f64 = 0.5;
/// More than logs and heartbeats, in bytes per second.
const TRAFFIC_BYTES_PER_S: f64 = 12e6;

impl Mixture {
    pub(super) fn of(reading: &SampleReading, levels: &JobLevels, ranks: u32) -> Self {
        let host = Host::of(reading);
        let Some(busy) = reading.busy() else {
            return Self { unknown: 1.0, host, ..Self::default() };
        };
        let idle = match 1.0 - busy / levels.full {
            idle if idle < IDLE_NOISE => 0.0,
            idle => idle,
        };
        let running = 1.0 - idle;
        if ranks < 2 {
            // Nobody to wait for.
            let witnesses = witnesses(reading, levels);
            return Self { work: running, idle, witnesses, host, ..Self::default() };
        }
        match working_part(reading, levels, busy) {
            Some((part, witnesses)) => {
                let work = running * part;
                Self { work, spin: running - work, idle, witnesses, host, ..Self::default() }
            }
            None => Self { busy: running, idle, host, ..Self::default() },
        }
    }

    /// Time without work of which something is known.
    pub(super) fn waiting(&self) -> f64 {
        self.spin + self.idle
    }
}

/// Which part of the busy time was work, and how many signals say so.
fn working_part(reading: &SampleReading, levels: &JobLevels, busy: f64) -> Option<(f64, u8)> {
    if busy < 0.02 {
        // Activity alone says no more of little than of much.
        let tells = [Channel::Tensor, Channel::Dram, Channel::Sm, Channel::Power];
        return tells.iter().any(|channel| reading.get(*channel).is_some()).then_some((0.0, 2));
    }
    let by_busy = |channel: Channel, level: Option<f64>| {
        let value = reading.get(channel)? / busy;
        Some(value / level?)
    };
    let (tensor, dram) =
        (by_busy(Channel::Tensor, levels.tensor), by_busy(Channel::Dram, levels.dram));
    let (part, witnesses) = match (tensor, dram) {
        // A device with a slow clock keeps its tensor cores as busy as others and its memory less
        // so, and others that wait for it look as if its memory were the level: tensor cores come
        // first.
        (Some(tensor), Some(dram)) => (tensor, 1 + u8::from((tensor - dram).abs() < AGREE)),
        (Some(one), None) | (None, Some(one)) => (one, 1),
        (None, None) => (by_sm(reading, levels, busy).or_else(|| by_power(reading, levels))?, 1),
    };
    Some((without_noise(part), witnesses))
}

fn witnesses(reading: &SampleReading, levels: &JobLevels) -> u8 {
    let has = |channel: Channel, level: Option<f64>| {
        u8::from(reading.get(channel).is_some() && level.is_some())
    };
    has(Channel::Tensor, levels.tensor) + has(Channel::Dram, levels.dram)
}

fn by_sm(reading: &SampleReading, levels: &JobLevels, busy: f64) -> Option<f64> {
    // Where it is all that is read, it says how busy the device was, and nothing else.
    reading.get(Channel::Engine).or(reading.get(Channel::Util))?;
    let part = reading.get(Channel::Sm)? / busy / levels.sm?;
    Some((part - SPIN_SM) / (1.0 - SPIN_SM))
}

fn by_power(reading: &SampleReading, levels: &JobLevels) -> Option<f64> {
    let (idle, work) = (levels.power_idle?, levels.power_work?);
    // A job that never idled or never worked shows one level alone.
    if work < 1.5 * idle {
        return None;
    }
    let part = (reading.get(Channel::Power)? - idle) / (work - idle);
    Some((part - SPIN_POWER) / (1.0 - SPIN_POWER))
}

fn without_noise(part: f64) -> f64 {
    match part {
        part if part > 1.0 - WORK_NOISE => 1.0,
        part if part < SPIN_NOISE => 0.0,
        part => part,
    }
}

impl Host {
    fn of(reading: &SampleReading) -> Self {
        let cpu = reading.get(Channel::Cpu);
        let (inwards, outwards) = (reading.inwards(), reading.outwards());
        let disk = reading.get(Channel::DiskBusy);
        let much = |rate: Option<f64>| rate.filter(|rate| *rate > TRAFFIC_BYTES_PER_S);
        Self {
            is_known: cpu.is_some() || inwards.is_some() || outwards.is_some(),
            computes: cpu.is_some_and(|cpu| cpu > CPU_WORKS_MILLI),
            reads_hard: disk.is_some_and(|busy| busy > DISK_WORKS) && much(outwards).is_none(),
            inwards: much(inwards),
            outwards: much(outwards),
        }
    }

    /// It read or computed: what a device waits for that has no data.
    pub(super) fn feeds(&self) -> bool {
        self.computes || self.reads_hard || self.inwards.is_some()
    }
}

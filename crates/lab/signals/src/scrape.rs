//! What a monitoring system keeps of what happened: means over windows that are never quite where
//! they should be, with samples that are missing.

use dovetail_account::device_time::Span;
use dovetail_phases::job_phases::{ContainerRun, DeviceSample, JobRecord, Member};

use crate::course::{Course, MemberCourse};
use crate::random::Random;
use crate::tape::{Levels, QUANTITIES, Quantity};

/// Which signals are collected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collected {
    All,
    /// What a stock exporter of devices gives, with the host: no share of multiprocessors.
    Stock,
    /// Whether any kernel ran, and nothing else; checkpoints are told by the job itself.
    UtilOnly,
}

/// Begin of every job, in ms since 1970.
pub(crate) const BEGIN_MS: u64 = 1_790_000_000_000;

pub(crate) fn scrape(
    course: &Course,
    random: &mut Random,
    step_ms: u64,
    collected: Collected,
) -> JobRecord {
    let members = course.members.iter().enumerate();
    let member = |(number, held): (usize, &MemberCourse)| {
        let (from_ms, to_ms) = (BEGIN_MS + held.span.from_ms, BEGIN_MS + held.span.to_ms);
        Member {
            name: format!("train-{} gpu {number}", held.rank),
            rank: held.rank as u32,
            gpu_milli: 1000,
            held: Span { from_ms, to_ms },
            runs: held.runs.iter().map(shifted).collect(),
            ran_before: false,
            samples: samples(held, random, step_ms, collected),
        }
    };
    let checkpoints = course.checkpoints_ms.iter().map(|at_ms| BEGIN_MS + at_ms);
    JobRecord {
        from_ms: BEGIN_MS,
        step_ms,
        ranks: course.nature.ranks as u32,
        members: members.map(member).collect(),
        checkpoints_ms: match collected {
            Collected::UtilOnly => checkpoints.collect(),
            _ => Vec::new(),
        },
    }
}

fn shifted(run: &ContainerRun) -> ContainerRun {
    let Span { from_ms, to_ms } = run.span;
    ContainerRun {
        span: Span { from_ms: BEGIN_MS + from_ms, to_ms: BEGIN_MS + to_ms },
        end: run.end,
    }
}

fn samples(
    held: &MemberCourse,
    random: &mut Random,
    step_ms: u64,
    collected: Collected,
) -> Vec<DeviceSample> {
    let sums = held.tape.sums();
    // Clocks of the exporter of devices and of that of hosts.
    let device_skew_ms = (random.uniform() - 0.5) * 10_000.0;
    let host_skew_ms = (random.uniform() - 0.5) * 10_000.0;
    let count = held.span.to_ms.div_ceil(step_ms);
    let mut samples = Vec::new();
    for number in 0..count {
        let mut window = |skew_ms: f64| {
            let jitter_ms = (random.uniform() - 0.5) * 1000.0;
            let from_ms = (number * step_ms) as f64 + skew_ms + jitter_ms;
            mean(&sums, from_ms / 1000.0, (from_ms + step_ms as f64) / 1000.0)
        };
        let (device, host) = (window(device_skew_ms), window(host_skew_ms));
        let is_held = number * step_ms + step_ms > held.span.from_ms;
        let mut sample = DeviceSample::default();
        if is_held && !random.chance(0.02) {
            read_device(&mut sample, &device, random, collected);
        }
        if is_held && !random.chance(0.02) && collected != Collected::UtilOnly {
            read_host(&mut sample, &host, random);
        }
        samples.push(sample);
    }
    samples
}

/// Mean between two moments, in seconds; before and after the tape nothing happened.
fn mean(sums: &[Levels], from_s: f64, to_s: f64) -> Levels {
    let last = (sums.len() - 1) as f64;
    let at = |second: f64, quantity: usize| {
        let second = second.clamp(0.0, last);
        let place = libm::floor(second) as usize;
        let (before, after) = (&sums[place], &sums[(place + 1).min(sums.len() - 1)]);
        before.0[quantity] + (after.0[quantity] - before.0[quantity]) * (second - place as f64)
    };
    let mut levels = Levels::default();
    for quantity in 0..QUANTITIES {
        levels.0[quantity] = (at(to_s, quantity) - at(from_s, quantity)) / (to_s - from_s);
    }
    levels
}

fn read_device(
    sample: &mut DeviceSample,
    mean: &Levels,
    random: &mut Random,
    collected: Collected,
) {
    let mut share = |quantity: Quantity, spread: f64| {
        let share = mean.get(quantity) * (1.0 + spread * random.normal());
        Some((share.clamp(0.0, 1.0) * 1e8) as u32)
    };
    sample.util_micro_percent = share(Quantity::Util, 0.003);
    if collected == Collected::UtilOnly {
        return;
    }
    sample.engine_micro_percent = share(Quantity::Engine, 0.003);
    sample.tensor_micro_percent = share(Quantity::Tensor, 0.025);
    sample.dram_micro_percent = share(Quantity::Dram, 0.025);
    if collected == Collected::All {
        sample.sm_micro_percent = share(Quantity::Sm, 0.02);
    }
    sample.nvlink_bytes_per_s = Some(mean.get(Quantity::Nvlink) as u64);
    let watts = mean.get(Quantity::Power) * (1.0 + 0.02 * random.normal());
    sample.power_milliwatts = Some((watts.max(0.0) * 1000.0) as u32);
}

fn read_host(sample: &mut DeviceSample, mean: &Levels, random: &mut Random) {
    let mut number = |quantity: Quantity, scale: f64| {
        let number = mean.get(quantity) * scale * (1.0 + 0.05 * random.normal());
        Some(number.max(0.0) as u64)
    };
    sample.cpu_milli = number(Quantity::Cpus, 1000.0);
    sample.read_bytes_per_s = number(Quantity::Read, 1.0);
    sample.written_bytes_per_s = number(Quantity::Written, 1.0);
    sample.received_bytes_per_s = number(Quantity::Received, 1.0);
    sample.sent_bytes_per_s = number(Quantity::Sent, 1.0);
}

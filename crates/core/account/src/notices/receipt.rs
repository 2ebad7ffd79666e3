//! What a job came to when it ended, and the one setting that would have saved most.

use std::collections::BTreeMap;

use dovetail_model::Money;
use dovetail_units::amount::{about_usd, gpu_hours, gpus, whole_percent};
use dovetail_units::duration::duration;

use crate::device_time::{DeviceInterval, DeviceState};

/// Everything that is known of a job that ended. Device-time is in milli-GPU × ms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobTotals {
    /// Kind, namespace and name of the owner.
    pub job: String,
    pub allocated: i128,
    /// Of it computing.
    pub active: i128,
    /// Of it held and not computing.
    pub idle: i128,
    /// Of the idle time that of devices which did not compute at all, though what they did is known
    /// throughout.
    pub never_used: i128,
    /// How many of these there were at most at a time, in milli-GPU, of how many that were held.
    pub never_used_of_gpu_milli: (i64, i64),
    /// From submission to the first GPU, in ms; `None` where nobody knows.
    pub waited_ms: Option<u64>,
    /// All attempts, failed ones too; `None` where nobody knows.
    pub attempts: Option<Attempts>,
    /// Cost of all attempts; `None` where a price is unknown.
    pub cost: Option<Money>,
}

/// Adds up what the devices of a job were.
#[derive(Clone, Debug, Default)]
pub struct ReceiptTally {
    /// Device-time by price of a GPU-hour.
    by_price: BTreeMap<Option<i64>, i128>,
    active: i128,
    idle: i128,
    devices: BTreeMap<u32, OfDevice>,
}

/// A device, for as long as the job held it.
#[derive(Clone, Copy, Debug, Default)]
struct OfDevice {
    time: i128,
    gpu_milli: i64,
    was_active: bool,
    has_unknown: bool,
}

impl ReceiptTally {
    /// Adds a part of a device that the job held; the price is that of a GPU-hour, in micro-USD.
    pub fn add(
        &mut self,
        device: u32,
        held: &DeviceInterval,
        usd_micros_per_gpu_hour: Option<i64>,
    ) {
        let time = held.gpu_milli_ms();
        *self.by_price.entry(usd_micros_per_gpu_hour).or_default() += time;
        let of_device = self.devices.entry(device).or_default();
        of_device.time += time;
        of_device.gpu_milli = of_device.gpu_milli.max(held.gpu_milli);
        match held.state {
            DeviceState::Active(_) => {
                self.active += time;
                of_device.was_active = true;
            }
            DeviceState::Idle => self.idle += time,
            _ => of_device.has_unknown = true,
        }
    }

    /// What it comes to. When it was submitted and how often it was tried, devices do not say.
    pub fn totals(&self, job: String) -> JobTotals {
        let never = |of: &&OfDevice| !of.was_active && !of.has_unknown;
        let devices = || self.devices.values();
        let of_gpu_milli = |of: &OfDevice| of.gpu_milli;
        let cost =
            |(price, time): (&Option<i64>, &i128)| Some(Money::of_gpu_time(*time, (*price)?));
        let costs: Option<Vec<Money>> = self.by_price.iter().map(cost).collect();
        JobTotals {
            job,
            allocated: self.by_price.values().sum(),
            active: self.active,
            idle: self.idle,
            never_used: devices().filter(never).map(|of| of.time).sum(),
            never_used_of_gpu_milli: (
                devices().filter(never).map(of_gpu_milli).sum(),
                devices().map(of_gpu_milli).sum(),
            ),
            waited_ms: None,
            attempts: None,
            cost: costs.map(|costs| costs.into_iter().sum()),
        }
    }
}

/// Attempts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attempts {
    pub count: u32,
    pub failed: u32,
    /// Device-time of the failed ones.
    pub failed_time: i128,
}

/// A setting that a person can change, with the device-time that it would have saved at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiptSetting {
    /// Ask for fewer GPUs.
    FewerGpus {
        /// Device-time of the GPUs that were never used.
        saves: i128,
        /// How many would have done, in milli-GPU.
        enough_gpu_milli: i64,
    },
    /// Give GPUs back while nothing computes.
    EndWhenIdle {
        /// Idle device-time.
        saves: i128,
    },
    /// Save work more often, so that a failed attempt is not repeated.
    Checkpoints {
        /// Device-time of failed attempts.
        saves: i128,
    },
}

impl ReceiptSetting {
    fn saves(self) -> i128 {
        match self {
            Self::FewerGpus { saves, .. }
            | Self::EndWhenIdle { saves }
            | Self::Checkpoints { saves } => saves,
        }
    }

    fn words(self) -> String {
        match self {
            Self::FewerGpus { enough_gpu_milli, .. } => {
                format!("a limit of {} instead", gpus(enough_gpu_milli))
            }
            Self::EndWhenIdle { .. } => {
                "stopping it when it is idle (activeDeadlineSeconds, or a culler)".to_owned()
            }
            Self::Checkpoints { .. } => {
                "checkpoints between attempts (dovetail.dev/checkpoint-interval)".to_owned()
            }
        }
    }
}

/// The setting that would have saved most, if it is at least a tenth of what was held. What one
/// setting saves, no other is given: idle time of GPUs that were never used counts for the first
/// alone.
pub fn setting(job: &JobTotals) -> Option<ReceiptSetting> {
    let (unused, held) = job.never_used_of_gpu_milli;
    let failed = job.attempts.map_or(0, |attempts| attempts.failed_time);
    let settings = [
        ReceiptSetting::FewerGpus {
            // Somebody has to be left.
            saves: if unused < held { job.never_used } else { 0 },
            enough_gpu_milli: held - unused,
        },
        ReceiptSetting::EndWhenIdle {
            saves: job.idle - if unused < held { job.never_used } else { 0 },
        },
        ReceiptSetting::Checkpoints { saves: failed },
    ];
    let best = settings.into_iter().max_by_key(|setting| (setting.saves(), order(*setting)));
    best.filter(|setting| setting.saves() > 0 && setting.saves() * 10 >= job.allocated)
}

/// The plainer one in a tie.
fn order(setting: ReceiptSetting) -> u8 {
    match setting {
        ReceiptSetting::FewerGpus { .. } => 2,
        ReceiptSetting::EndWhenIdle { .. } => 1,
        ReceiptSetting::Checkpoints { .. } => 0,
    }
}

/// A receipt in words. What nobody knows is said to be unknown.
pub fn receipt_text(job: &JobTotals) -> String {
    let hours = gpu_hours(job.allocated);
    let known = job.active + job.idle;
    let active = whole_percent(job.active, job.allocated);
    let active = match (active, known < job.allocated) {
        (None, _) => "unknown".to_owned(),
        (Some(_), _) if known == 0 => "unknown".to_owned(),
        (Some(active), false) => active,
        (Some(active), true) => {
            let most = whole_percent(job.allocated - job.idle, job.allocated).unwrap_or_default();
            format!("{active} to {most} (not all was measured)")
        }
    };
    let waited = job.waited_ms.map_or_else(|| "unknown".to_owned(), duration);
    let cost = job.cost.map_or_else(|| "unknown".to_owned(), about_usd);
    let attempts = match job.attempts {
        None => "; attempts: unknown".to_owned(),
        Some(Attempts { count, failed: 0, .. }) if count <= 1 => String::new(),
        Some(Attempts { count, failed, .. }) => {
            format!(", all {count} attempts, {failed} of them failed")
        }
    };
    let mut text = format!(
        "Receipt for {}: {hours} GPU-hours, active {active}, waited {waited}, cost {cost}{attempts}.",
        job.job
    );
    if let Some(setting) = setting(job) {
        let saved = match job.cost {
            Some(cost) => {
                let part = i128::from(cost.usd_micros) * setting.saves() / job.allocated.max(1);
                about_usd(Money::micros(i64::try_from(part).unwrap_or(i64::MAX)))
            }
            None => format!("{} GPU-hours", gpu_hours(setting.saves())),
        };
        text += &format!(" Largest saving: {}, up to {saved}.", setting.words());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device_time::{ActiveWork, Span};

    /// GPU-hours.
    const HOUR: i128 = 1000 * 3_600_000;

    fn job() -> JobTotals {
        JobTotals {
            job: "Job vision/train".to_owned(),
            allocated: 80 * HOUR,
            active: 50 * HOUR,
            idle: 30 * HOUR,
            never_used: 20 * HOUR,
            never_used_of_gpu_milli: (2_000, 8_000),
            waited_ms: Some(25 * 60_000),
            attempts: Some(Attempts { count: 3, failed: 2, failed_time: 15 * HOUR }),
            cost: Some(Money::micros(480_000_000)),
        }
    }

    #[test]
    fn a_receipt_says_what_is_known_and_what_is_not() {
        assert_eq!(
            receipt_text(&job()),
            "Receipt for Job vision/train: 80.0 GPU-hours, active 63%, waited 25 min, cost $480, all 3 attempts, 2 of \
             them failed. Largest saving: a limit of 6 GPUs instead, up to $120."
        );
        let blind = JobTotals {
            active: 0,
            idle: 0,
            never_used: 0,
            waited_ms: None,
            attempts: None,
            cost: None,
            ..job()
        };
        assert_eq!(
            receipt_text(&blind),
            "Receipt for Job vision/train: 80.0 GPU-hours, active unknown, waited unknown, cost unknown; attempts: \
             unknown."
        );
        let partly = JobTotals { active: 40 * HOUR, cost: None, ..job() };
        let text = receipt_text(&partly);
        assert!(text.contains("active 50% to 63% (not all was measured)"), "{text}");
        assert!(text.ends_with("up to 20.0 GPU-hours."), "{text}");
    }

    #[test]
    fn what_devices_were_adds_up_to_a_job() {
        let mut tally = ReceiptTally::default();
        let mut add = |device, hours: u64, state, price| {
            let span = Span { from_ms: 0, to_ms: hours * 3_600_000 };
            let held =
                DeviceInterval { span, gpu_milli: 1000, state, holder: Some(1), signal: None };
            tally.add(device, &held, price);
        };
        let active = DeviceState::Active(ActiveWork::NotSeparable);
        let price = Some(6_000_000);
        for (device, hours, state) in [
            (1, 5, active),
            (1, 3, DeviceState::Idle),
            (2, 8, DeviceState::Idle),
            (3, 7, DeviceState::Idle),
            (3, 1, DeviceState::Unknown),
        ] {
            add(device, hours, state, price);
        }
        let job = tally.totals("Job a/b".to_owned());
        assert_eq!((job.allocated, job.active, job.idle), (24 * HOUR, 5 * HOUR, 18 * HOUR));
        // Of the third nobody knows an hour: it may have been used.
        assert_eq!((job.never_used, job.never_used_of_gpu_milli), (8 * HOUR, (1_000, 3_000)));
        assert_eq!(job.cost, Some(Money::micros(144_000_000)));
        assert_eq!(setting(&job), Some(ReceiptSetting::EndWhenIdle { saves: 10 * HOUR }));
        let span = Span { from_ms: 0, to_ms: 1 };
        let held = DeviceInterval { span, gpu_milli: 1, state: active, holder: None, signal: None };
        tally.add(4, &held, None);
        assert_eq!(tally.totals(String::new()).cost, None);
    }

    #[test]
    fn the_setting_is_the_one_that_saves_most_and_is_worth_it() {
        let of = |change: fn(&mut JobTotals)| {
            let mut job = job();
            change(&mut job);
            setting(&job)
        };
        let fewer = ReceiptSetting::FewerGpus { saves: 20 * HOUR, enough_gpu_milli: 6_000 };
        assert_eq!(of(|_| {}), Some(fewer));
        // None of its GPUs was used: fewer than all cannot be asked for.
        let all =
            of(|job| (job.never_used, job.never_used_of_gpu_milli) = (30 * HOUR, (8_000, 8_000)));
        assert_eq!(all, Some(ReceiptSetting::EndWhenIdle { saves: 30 * HOUR }));
        let failed = of(|job| {
            job.attempts = Some(Attempts { count: 2, failed: 1, failed_time: 40 * HOUR });
        });
        assert_eq!(failed, Some(ReceiptSetting::Checkpoints { saves: 40 * HOUR }));
        let little = of(|job| {
            (job.idle, job.never_used, job.attempts) = (7 * HOUR, 0, None);
        });
        assert_eq!(little, None);
    }
}

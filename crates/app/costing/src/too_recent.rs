//! What a snapshot says nothing of for a month: states that are too recent, or that end by
//! themselves. Their GPUs are unmeasured in the month's figures; what they wasted so far is told
//! beside them.

use std::collections::BTreeMap;

use dovetail_account::device_time::DeviceState;
use dovetail_facts::PricedTime;
use dovetail_units::amount::{gpus, rounded, rounded_usd};
use serde::Serialize;

use crate::account::Account;
use crate::document::hours;

/// All such GPUs of an account.
#[derive(Debug, Default)]
pub(crate) struct TooRecent {
    pub(crate) gpu_milli: i64,
    /// What some of them wasted until now, by cause.
    pub(crate) wasted: BTreeMap<DeviceState, (i64, PricedTime)>,
}

/// What a cause wasted until now.
#[derive(Debug, Serialize)]
pub struct SoFarOut {
    pub cause: String,
    pub gpus: f64,
    pub gpu_hours: f64,
    pub usd_micros: Option<i64>,
}

impl TooRecent {
    /// Those of the pods that an account charges.
    pub(crate) fn of(account: &Account) -> Self {
        let mut all = Self::default();
        for (holder, part) in &account.too_recent {
            let pod = holder.and_then(|pod| account.pods.get(pod as usize));
            if !account.charges(pod.map(|pod| pod.namespace.as_str())) {
                continue;
            }
            all.gpu_milli += part.gpu_milli;
            if let Some((state, time)) = part.wasted {
                let (gpu_milli, sum) = all.wasted.entry(state).or_default();
                *gpu_milli += part.gpu_milli;
                *sum = *sum + time;
            }
        }
        all
    }

    /// All that was wasted until now.
    pub(crate) fn waste(&self) -> PricedTime {
        self.wasted.values().fold(PricedTime::default(), |sum, (_, time)| sum + *time)
    }

    /// The same by cause.
    pub(crate) fn by_cause(&self) -> Vec<SoFarOut> {
        let row = |(state, (gpu_milli, time)): (&DeviceState, &(i64, PricedTime))| SoFarOut {
            cause: state.name(),
            gpus: *gpu_milli as f64 / 1e3,
            gpu_hours: hours(time.gpu_milli_ms),
            usd_micros: time.cost().map(|cost| cost.usd_micros),
        };
        self.wasted.iter().map(row).collect()
    }

    /// A sentence for people; `None` where every state may be extrapolated.
    pub(crate) fn in_words(&self) -> Option<String> {
        let cause = |(state, (gpu_milli, time)): (&DeviceState, &(i64, PricedTime))| {
            let amount = match time.cost() {
                Some(cost) => rounded_usd(cost.usd_micros),
                None => format!("{} GPU-hours", rounded(hours(time.gpu_milli_ms))),
            };
            format!("{} {amount} ({})", state.name(), gpus(*gpu_milli))
        };
        let causes: Vec<String> = self.wasted.iter().map(cause).collect();
        let so_far = match causes.is_empty() {
            true => String::new(),
            false => format!("; wasted so far: {}", causes.join(", ")),
        };
        let are = if self.gpu_milli == 1000 { "is" } else { "are" };
        (self.gpu_milli > 0).then(|| {
            format!(
                "{} {are} in a state too recent or temporary to extrapolate to a month and not \
                 included in the waste{so_far}",
                gpus(self.gpu_milli)
            )
        })
    }
}

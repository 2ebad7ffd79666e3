//! GPU-time that can be kept in a file, added and subtracted: the ledger's sums as plain integers.

use std::collections::BTreeMap;

use dovetail_capacity::{States, Usage};
use dovetail_model::FreeCause;
use serde::{Deserialize, Deserializer, Serialize, de};

/// Milli-GPU × ms by cause, in the order of [`FreeCause::ALL`].
pub(crate) type ByCause = [i128; FreeCause::ALL.len()];

/// Reads time by cause; what was written before a cause was known has none of it.
pub(crate) fn by_cause<'de, D: Deserializer<'de>>(input: D) -> Result<ByCause, D::Error> {
    let written = Vec::<i128>::deserialize(input)?;
    let mut times = ByCause::default();
    if written.len() > times.len() {
        let known = times.len();
        return Err(de::Error::custom(format!(
            "{} causes; this version knows {known}",
            written.len()
        )));
    }
    times[..written.len()].copy_from_slice(&written);
    Ok(times)
}

/// GPU-time of one model, in milli-GPU × ms.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GpuTime {
    pub(crate) installed: i128,
    pub(crate) unavailable: i128,
    pub(crate) allocated_by_queue: BTreeMap<String, i128>,
    pub(crate) allocated_by_others: i128,
    #[serde(deserialize_with = "by_cause")]
    pub(crate) free_by_cause: ByCause,
}

impl GpuTime {
    /// GPU-time held by anybody.
    pub(crate) fn allocated(&self) -> i128 {
        self.allocated_by_queue.values().sum::<i128>() + self.allocated_by_others
    }

    fn of(states: &States<i128>) -> Self {
        Self {
            installed: states.installed,
            unavailable: states.unavailable,
            allocated_by_queue: states.allocated_by_queue.clone(),
            allocated_by_others: states.allocated_by_others,
            free_by_cause: FreeCause::ALL.map(|cause| states.free_by(cause)),
        }
    }

    fn add(&mut self, other: &Self, sign: i128) {
        self.installed += sign * other.installed;
        self.unavailable += sign * other.unavailable;
        self.allocated_by_others += sign * other.allocated_by_others;
        for (queue, amount) in &other.allocated_by_queue {
            *self.allocated_by_queue.entry(queue.clone()).or_default() += sign * amount;
        }
        let pairs = self.free_by_cause.iter_mut().zip(other.free_by_cause);
        pairs.for_each(|(sum, amount)| *sum += sign * amount);
    }

    fn states(&self) -> States<i128> {
        States {
            installed: self.installed,
            unavailable: self.unavailable,
            allocated: self.allocated(),
            allocated_by_queue: self.allocated_by_queue.clone(),
            allocated_by_others: self.allocated_by_others,
            free: self.free_by_cause.iter().sum(),
            free_by_cause: FreeCause::ALL.into_iter().zip(self.free_by_cause).collect(),
        }
    }
}

/// GPU-time by model; the empty name is an unknown model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ModelTimes {
    pub(crate) models: BTreeMap<String, GpuTime>,
}

impl ModelTimes {
    pub(crate) fn of(usage: &Usage) -> Self {
        let models = usage.models_gpu_milli_ms.iter();
        Self { models: models.map(|(name, states)| (name.clone(), GpuTime::of(states))).collect() }
    }

    /// What came since an earlier reading of the same account.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        let mut new = self.clone();
        for (model, time) in &earlier.models {
            new.models.entry(model.clone()).or_default().add(time, -1);
        }
        new
    }

    pub(crate) fn add(&mut self, other: &Self) {
        for (model, time) in &other.models {
            self.models.entry(model.clone()).or_default().add(time, 1);
        }
    }

    pub(crate) fn total(&self) -> GpuTime {
        let mut total = GpuTime::default();
        self.models.values().for_each(|time| total.add(time, 1));
        total
    }

    /// As the ledger states a period.
    pub(crate) fn usage(
        &self,
        (from_ms, to_ms): (u64, u64),
        (cause_period_ms, cause_samples): (u64, u64),
    ) -> Usage {
        let models = self.models.iter();
        Usage {
            from_ms,
            to_ms,
            cause_period_ms,
            cause_samples,
            total_gpu_milli_ms: self.total().states(),
            models_gpu_milli_ms: models.map(|(name, time)| (name.clone(), time.states())).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Thirteen causes were known when recordings first held times by cause.
    #[test]
    fn times_of_a_recording_without_the_newest_cause_are_read_and_more_than_known_are_refused() {
        let text = |causes: usize| {
            let all: Vec<usize> = (1..=causes).collect();
            format!(
                r#"{{"installed":9,"unavailable":1,"allocated_by_queue":{{}},
                "allocated_by_others":2,"free_by_cause":{all:?}}}"#
            )
        };
        let old: GpuTime = serde_json::from_str(&text(13)).unwrap();
        assert_eq!(old.free_by_cause[FreeCause::NoDemand as usize], 13);
        assert_eq!(old.free_by_cause[FreeCause::LayoutRest as usize], 0);
        let again = serde_json::to_string(&old).unwrap();
        assert_eq!(serde_json::from_str::<GpuTime>(&again).unwrap(), old);
        let newer = serde_json::from_str::<GpuTime>(&text(FreeCause::ALL.len() + 1));
        assert!(newer.unwrap_err().to_string().contains("this version knows 14"));
    }
}

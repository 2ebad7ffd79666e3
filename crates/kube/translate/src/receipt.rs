//! What preemption has cost the pods of an object: how often, how much GPU-time they had run, and
//! how much of it was lost.
//!
//! Pods are gone when they are preempted; what is to be remembered stands in annotations of the
//! object that outlives them: the group of their gang, or the workload that makes them.

use dovetail_model::{History, Job};
use dovetail_objects::json::timestamp;
use dovetail_objects::{Labels, labels};
use jiff::Timestamp;
use serde_json::{Value, json};

/// Sums over all preemptions of pods of one object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Receipt {
    /// How often pods of it were preempted; those that are preempted together count once.
    pub preemptions: u32,
    /// GPU-time that they had run, in milli-GPU times ms.
    pub attained_gpu_milli_ms: u64,
    /// GPU-time of that which was lost, in milli-GPU times ms.
    pub lost_gpu_milli_ms: u64,
    /// When the last one was, in milliseconds since 1970.
    pub last_ms: u64,
    /// When the job was submitted that was preempted first, in milliseconds since 1970; 0 is
    /// unknown.
    pub first_ms: u64,
}

/// One GPU for one second, in milli-GPU times ms.
const GPU_SECOND: u64 = 1_000_000;

impl Receipt {
    /// What annotations say. A part that is not there, or cannot be read, is nothing.
    pub fn of(annotations: &Labels) -> Self {
        let number = |key: &str| annotations.get(key).and_then(|text| text.parse::<u64>().ok());
        let gpu_time = |key| number(key).unwrap_or(0).saturating_mul(GPU_SECOND);
        let time_ms = |key: &str| {
            let time = annotations.get(key).and_then(|text| text.parse::<Timestamp>().ok());
            time.map_or(0, |time| time.as_millisecond().max(0).cast_unsigned())
        };
        Self {
            preemptions: number(labels::PREEMPTIONS)
                .map_or(0, |number| u32::try_from(number).unwrap_or(u32::MAX)),
            attained_gpu_milli_ms: gpu_time(labels::ATTAINED_GPU_SECONDS),
            lost_gpu_milli_ms: gpu_time(labels::LOST_GPU_SECONDS),
            last_ms: time_ms(labels::LAST_PREEMPTED),
            first_ms: time_ms(labels::FIRST_SUBMITTED),
        }
    }

    /// Both together.
    pub fn and(self, other: Self) -> Self {
        let sum = |of: fn(&Self) -> u64| of(&self).saturating_add(of(&other));
        Self {
            preemptions: self.preemptions.saturating_add(other.preemptions),
            attained_gpu_milli_ms: sum(|one| one.attained_gpu_milli_ms),
            lost_gpu_milli_ms: sum(|one| one.lost_gpu_milli_ms),
            last_ms: self.last_ms.max(other.last_ms),
            first_ms: [self.first_ms, other.first_ms]
                .into_iter()
                .filter(|ms| *ms > 0)
                .min()
                .unwrap_or(0),
        }
    }

    /// The annotations that say it. GPU-time is in whole seconds, rounded up: no more was lost than
    /// they say.
    pub fn annotations(&self) -> Value {
        let seconds = |gpu_milli_ms: u64| gpu_milli_ms.div_ceil(GPU_SECOND).to_string();
        let mut all = json!({
            labels::PREEMPTIONS: self.preemptions.to_string(),
            labels::ATTAINED_GPU_SECONDS: seconds(self.attained_gpu_milli_ms),
            labels::LOST_GPU_SECONDS: seconds(self.lost_gpu_milli_ms),
            labels::LAST_PREEMPTED: timestamp(self.last_ms),
        });
        if self.first_ms > 0 {
            all[labels::FIRST_SUBMITTED] = json!(timestamp(self.first_ms));
        }
        all
    }

    /// The same as the earlier attempts of a job, for an object that stands for one job. What was
    /// not lost is work that checkpoints keep, the time to write them, and that to come back.
    pub fn history(&self, job: &Job) -> History {
        let kept = self.attained_gpu_milli_ms.saturating_sub(self.lost_gpu_milli_ms);
        let kept_ms = kept / job.min_gpu_milli().unsigned_abs().max(1);
        History {
            attempts: self.preemptions,
            preemptions: self.preemptions,
            attained_gpu_milli_ms: self.attained_gpu_milli_ms,
            saved_ms: job.interruption.saved_ms(kept_ms, self.preemptions),
            last_end_ms: self.last_ms,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use dovetail_model::{DeviceRequest, JobId, Requirement};
    use dovetail_objects::Pod;

    use super::*;

    fn read(annotations: &Value) -> Receipt {
        let pod: Pod = serde_json::from_value(json!({"metadata": {"annotations": annotations}}))
            .expect("a pod");
        Receipt::of(&pod.meta.annotations)
    }

    #[test]
    fn what_is_written_is_read_again_in_whole_seconds() {
        let once = Receipt {
            preemptions: 1,
            attained_gpu_milli_ms: 7_200_000_001,
            lost_gpu_milli_ms: 600_000_000,
            last_ms: 1_796_000_000_000,
            first_ms: 1_795_000_000_000,
        };
        let expected = json!({"dovetail.dev/preemptions": "1",
            "dovetail.dev/attained-gpu-seconds": "7201", "dovetail.dev/lost-gpu-seconds": "600",
            "dovetail.dev/last-preempted": "2026-11-30T00:53:20Z",
            "dovetail.dev/first-submitted": "2026-11-18T11:06:40Z"});
        assert_eq!(once.annotations(), expected);
        let again = read(&expected);
        assert_eq!(again, Receipt { attained_gpu_milli_ms: 7_201_000_000, ..once });
        let twice = again.and(Receipt { last_ms: 5, first_ms: 0, ..once });
        assert_eq!((twice.preemptions, twice.last_ms), (2, once.last_ms));
        assert_eq!(twice.first_ms, once.first_ms);
        assert_eq!(twice.annotations()["dovetail.dev/lost-gpu-seconds"], "1200");
    }

    #[test]
    fn what_was_not_lost_is_saved_but_for_checkpoints_and_restarts() {
        let requirement = Requirement {
            device: DeviceRequest::Whole { count: 2, same_island: false },
            ..Requirement::default()
        };
        let mut job = Job::single(JobId(1), "train", 0, Arc::new(requirement));
        // Two GPUs for 2 h in two attempts, the second of which took 2 min to come back; 18 min of
        // them were lost, and of each 10 min checkpoints took 1.
        let receipt = Receipt {
            preemptions: 2,
            attained_gpu_milli_ms: 2_000 * 7_200_000,
            lost_gpu_milli_ms: 2_000 * 1_080_000,
            last_ms: 5,
            first_ms: 0,
        };
        job.interruption.restart_cost_ms = Some(120_000);
        assert_eq!(receipt.history(&job).saved_ms, 6_000_000);
        job.interruption.checkpoint_interval_ms = Some(540_000);
        job.interruption.checkpoint_cost_ms = Some(60_000);
        assert_eq!(receipt.history(&job).saved_ms, 5_400_000);
        assert_eq!(Receipt { lost_gpu_milli_ms: u64::MAX, ..receipt }.history(&job).saved_ms, 0);
    }

    #[test]
    fn what_cannot_be_read_is_nothing() {
        let bad = json!({"dovetail.dev/preemptions": "many", "dovetail.dev/last-preempted": "now",
            "dovetail.dev/attained-gpu-seconds": "-1", "dovetail.dev/lost-gpu-seconds": "1e9"});
        assert_eq!(read(&bad), Receipt::default());
        let most = json!({"dovetail.dev/preemptions": u64::MAX.to_string(),
            "dovetail.dev/attained-gpu-seconds": u64::MAX.to_string()});
        let most = read(&most);
        assert_eq!((most.preemptions, most.attained_gpu_milli_ms), (u32::MAX, u64::MAX));
        assert_eq!(most.and(most), Receipt { last_ms: 0, ..most });
    }
}

//! How long a job is left alone by queues that want their quota back.
//!
//! A quota is a promise, so the first time a job is preempted for it at once. From then on it is
//! preempted only when what it has lost in all, with what it may lose now, is at most a tenth of
//! the time that it has held its GPUs; after its respite in any case, so that no queue waits for
//! its quota longer than that.

use dovetail_model::Job;

/// Of what a job has held, so much of it may be lost: one of so many parts.
const PARTS: u64 = 10;

/// From when on a job that runs may be preempted so that another queue gets its quota back.
pub(super) fn ends_ms(job: &Job, respite_ms: u64) -> u64 {
    let (rules, history) = (job.preemption, job.history);
    let is_spent = rules.max_preemptions.is_some_and(|most| history.preemptions >= most);
    let alone_ms = match history.preemptions {
        _ if is_spent => respite_ms,
        0 => 0,
        _ => repaid_ms(job).unwrap_or(respite_ms),
    };
    let alone_ms = alone_ms.max(rules.min_run_ms.unwrap_or(0)).min(respite_ms);
    job.start_ms.unwrap_or(0).saturating_add(alone_ms)
}

/// How long an attempt must run until no more than a part of everything would be lost, wherever it
/// stands between two checkpoints; `None` if it saves nothing.
fn repaid_ms(job: &Job) -> Option<u64> {
    let cost = &job.interruption;
    let at_stake_ms = cost.most_at_stake_ms()?;
    let gpu_milli = job.min_gpu_milli().unsigned_abs().max(1);
    let held_ms = job.history.attained_gpu_milli_ms / gpu_milli;
    let kept_ms = cost.attempt_ms(job.history.saved_ms, true);
    // This attempt had to come back, and the next one will have to.
    let restarts_ms = cost.restart_ms(false).saturating_mul(2);
    let lost_ms = held_ms.saturating_sub(kept_ms);
    let lost_ms = lost_ms.saturating_add(at_stake_ms).saturating_add(restarts_ms);
    Some(lost_ms.saturating_mul(PARTS).saturating_sub(held_ms))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use dovetail_model::{
        DeviceRequest, History, InterruptionCost, JobId, PreemptionRules, Requirement, Resources,
    };

    use super::*;

    const MINUTE_MS: u64 = 60_000;

    fn minutes(preemptions: u32, saved: u64, interval: Option<u64>, rules: PreemptionRules) -> u64 {
        let requirement = Requirement {
            resources: Resources::pod(1, 1),
            device: DeviceRequest::Whole { count: 2, same_island: false },
            ..Requirement::default()
        };
        let job = Job {
            start_ms: Some(1_000 * MINUTE_MS),
            preemption: rules,
            // It held its two GPUs for 30 minutes.
            history: History {
                attempts: preemptions,
                preemptions,
                attained_gpu_milli_ms: u64::from(preemptions) * 30 * MINUTE_MS * 2_000,
                saved_ms: saved * MINUTE_MS,
                last_end_ms: 0,
            },
            interruption: InterruptionCost {
                checkpoint_interval_ms: interval.map(|minutes| minutes * MINUTE_MS),
                restart_cost_ms: Some(MINUTE_MS / 2),
                ..InterruptionCost::default()
            },
            ..Job::single(JobId(1), "job", 0, Arc::new(requirement))
        };
        ends_ms(&job, 1_440 * MINUTE_MS) / MINUTE_MS - 1_000
    }

    #[test]
    fn a_job_is_left_alone_until_it_has_lost_little() {
        let none = PreemptionRules::default();
        let once = PreemptionRules { max_preemptions: Some(1), ..none };
        let hour = PreemptionRules { min_run_ms: Some(60 * MINUTE_MS), ..none };
        let week = PreemptionRules { min_run_ms: Some(10_080 * MINUTE_MS), ..none };
        for (preemptions, saved, interval, rules, alone) in [
            (0, 0, None, none, 0),
            (0, 0, None, hour, 60),
            (0, 0, None, week, 1_440),
            (0, 0, Some(10), once, 0),
            (1, 20, Some(10), once, 1_440),
            // Without checkpoints everything is lost.
            (1, 0, None, none, 1_440),
            // Ten minutes are lost; ten more may be, and two restarts: a tenth of 210.
            (1, 20, Some(10), none, 180),
            (1, 20, Some(10), hour, 180),
            (1, 30, Some(3), none, 10),
        ] {
            let found = minutes(preemptions, saved, interval, rules);
            assert_eq!(found, alone, "{preemptions} {saved} {interval:?} {rules:?}");
        }
    }
}

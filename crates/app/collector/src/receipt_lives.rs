//! What objects tell of a job that ended, beside what its devices were: how long it waited, and how
//! often it was tried.

use dovetail_account::device_time::Span;
use dovetail_account::notices::Attempts;
use dovetail_costing::from_objects::words;
use dovetail_inventory::facts::{Gathered, PodLife};
use dovetail_phases::queue_wait::{QueuedPod, starts};
use dovetail_phases::runs::{PodEnd, RunOwner, RunPod, runs};

/// What the pods of a job tell that the API server still has; what some of them do not say is
/// unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobLives {
    /// From submission to the first GPU.
    pub waited_ms: Option<u64>,
    pub attempts: Option<Attempts>,
}

/// Looks at the pods of a job (kind, namespace and name of its owner). So many of its pods held
/// GPUs: where fewer are left, those that are gone may have come first or failed, and nothing is
/// told.
pub(crate) fn told_by_lives(gathered: &Gathered, job: &str, pods_held: usize) -> JobLives {
    let of_job = gathered.lives.iter().filter(|life| words(&life.owner) == job);
    let of_job: Vec<&PodLife> = of_job.collect();
    told(&of_job, pods_held)
}

fn told(lives: &[&PodLife], pods_held: usize) -> JobLives {
    let placed = lives.iter().filter(|life| life.node.is_some());
    if placed.clone().count() < pods_held.max(1) {
        return JobLives::default();
    }
    let pod = |life: &&&PodLife| {
        Some(QueuedPod {
            owner: String::new(),
            submitted_ms: life.owner_created_ms,
            created_ms: life.created_ms?,
            placed_ms: Some(life.scheduled_ms?),
            given_up_ms: None,
        })
    };
    let queued: Option<Vec<QueuedPod>> = placed.clone().map(|life| pod(&life)).collect();
    let first = queued.and_then(|pods| starts(&pods).into_iter().min_by_key(|s| s.from_ms));
    let held: Option<Vec<RunPod>> = placed.map(|life| run_pod(life)).collect();
    JobLives {
        waited_ms: first.and_then(|start| start.first_wait_ms()),
        attempts: held.map(|pods| attempts(&pods)),
    }
}

fn run_pod(life: &PodLife) -> Option<RunPod> {
    let (from_ms, to_ms) = (life.scheduled_ms?, life.ended_ms?);
    let held = Span { from_ms, to_ms: to_ms.max(from_ms) };
    let ms = i128::from(held.to_ms - held.from_ms);
    Some(RunPod {
        namespace: life.namespace.clone(),
        name: life.pod.clone(),
        owner: RunOwner { kind: life.owner.kind.clone(), name: life.owner.name.clone() },
        owner_uid: life.owner_uid.clone(),
        held: Some(held),
        end: if life.has_succeeded? { PodEnd::Completed } else { PodEnd::Failed },
        gpu_milli_ms: i128::from(life.gpu_milli?) * ms,
        ..RunPod::default()
    })
}

fn attempts(pods: &[RunPod]) -> Attempts {
    let runs = runs(pods);
    let all = || runs.iter().flat_map(|run| &run.attempts);
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    Attempts {
        count: number(all().count()),
        failed: number(all().filter(|attempt| attempt.end.is_lost()).count()),
        failed_time: runs.iter().map(|run| run.lost.gpu_milli_ms).sum(),
    }
}

#[cfg(test)]
mod tests {
    use dovetail_facts::ObjectRef;

    use super::*;

    const MINUTE_MS: u64 = 60_000;

    fn life(pod: &str, times: [u64; 3], has_succeeded: bool) -> PodLife {
        let [created, scheduled, ended] = times.map(|minute| minute * MINUTE_MS);
        PodLife {
            namespace: "vision".to_owned(),
            pod: pod.to_owned(),
            node: Some("n1".to_owned()),
            owner: ObjectRef::new("Job", "vision", "train"),
            owner_uid: Some("u".to_owned()),
            owner_created_ms: Some(5 * MINUTE_MS),
            is_by_timetable: false,
            created_ms: Some(created),
            scheduled_ms: Some(scheduled),
            ended_ms: Some(ended),
            has_succeeded: Some(has_succeeded),
            gpu_milli: Some(2000),
            labels: Default::default(),
        }
    }

    #[test]
    fn a_job_is_told_by_its_pods_and_not_where_some_of_them_are_gone() {
        // Two pods at a time, of which one waits for longer; both end when one fails, and are made
        // again.
        let lives = [
            life("a", [6, 20, 80], true),
            life("b", [6, 30, 80], false),
            life("c", [90, 95, 215], true),
            life("d", [90, 95, 215], true),
        ];
        let lives: Vec<&PodLife> = lives.iter().collect();
        let found = told(&lives, 4);
        assert_eq!(found.waited_ms, Some(15 * MINUTE_MS));
        // An hour and fifty minutes of two GPUs.
        let failed_time = i128::from(110 * MINUTE_MS) * 2000;
        assert_eq!(found.attempts, Some(Attempts { count: 2, failed: 1, failed_time }));
        // A fifth held GPUs, and nobody knows when and how it ended.
        assert_eq!(told(&lives, 5), JobLives::default());
        assert_eq!(told(&[], 0), JobLives::default());
        let silent = PodLife { ended_ms: None, ..lives[3].clone() };
        let with_silent = [lives[0], lives[1], lives[2], &silent];
        let found = told(&with_silent, 4);
        assert_eq!((found.waited_ms, found.attempts), (Some(15 * MINUTE_MS), None));
    }
}

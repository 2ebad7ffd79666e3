//! Time bounds against the best schedule of tiny instances, found by trying everything.

use std::collections::BTreeMap;

use dovetail_cases::cases;
use dovetail_exact::{BoundJob, completion_bounds, makespan_bounds};
use proptest::prelude::*;

/// Least sum of completion times and least makespan over all schedules that decide at every tick of
/// 1 ms which jobs run, preemption free of cost: fewer restrictions than any policy has.
struct Optimum {
    completion_sum_ms: i64,
    makespan_ms: i64,
}

type Best = (i64, i64);

fn best_from(
    jobs: &[BoundJob],
    capacity: u32,
    now_ms: i64,
    left_ms: &[i64],
    known: &mut BTreeMap<(i64, Vec<i64>), Best>,
) -> Best {
    if left_ms.iter().all(|&left| left == 0) {
        return (0, 0);
    }
    let key = (now_ms, left_ms.to_vec());
    if let Some(&best) = known.get(&key) {
        return best;
    }
    let mut best = (i64::MAX, i64::MAX);
    for chosen in 0..1_usize << jobs.len() {
        let runs = |job: usize| chosen >> job & 1 == 1;
        let legal = (0..jobs.len())
            .all(|job| !runs(job) || (left_ms[job] > 0 && jobs[job].submit_ms <= now_ms));
        let gpus: u32 =
            (0..jobs.len()).filter(|&job| runs(job)).map(|job| jobs[job].gpu_count).sum();
        let idle_forever = chosen == 0 && jobs.iter().all(|job| job.submit_ms <= now_ms);
        if !legal || gpus > capacity || idle_forever {
            continue;
        }
        let next: Vec<i64> =
            (0..jobs.len()).map(|job| left_ms[job] - i64::from(runs(job))).collect();
        let ended = (0..jobs.len()).filter(|&job| runs(job) && next[job] == 0).count() as i64;
        let rest = best_from(jobs, capacity, now_ms + 1, &next, known);
        best.0 = best.0.min(rest.0 + ended * (now_ms + 1));
        best.1 = best.1.min(rest.1.max(if ended > 0 { now_ms + 1 } else { 0 }));
    }
    known.insert(key, best);
    best
}

fn optimum(jobs: &[BoundJob], capacity: u32) -> Optimum {
    let left_ms: Vec<i64> = jobs.iter().map(|job| job.duration_ms).collect();
    let (completion_sum_ms, makespan_ms) =
        best_from(jobs, capacity, 0, &left_ms, &mut BTreeMap::new());
    Optimum { completion_sum_ms, makespan_ms }
}

fn job() -> impl Strategy<Value = BoundJob> {
    (0..5_i64, 1..5_i64, 1..5_u32).prop_map(|(submit_ms, duration_ms, gpu_count)| BoundJob {
        submit_ms,
        duration_ms,
        gpu_count,
    })
}

proptest! {
    #![proptest_config(cases(1000))]

    #[test]
    fn no_schedule_beats_a_time_bound(
        jobs in prop::collection::vec(job(), 1..5),
        spare in 0..4_u32,
    ) {
        let capacity = jobs.iter().map(|job| job.gpu_count).max().unwrap_or(0) + spare;
        let best = optimum(&jobs, capacity);
        let makespan = makespan_bounds(&jobs, capacity).unwrap().unwrap();
        prop_assert!(makespan.best_ms() <= best.makespan_ms, "{makespan:?} {}", best.makespan_ms);
        let completion = completion_bounds(&jobs, capacity).unwrap().unwrap();
        let sum_ms = i128::from(best.completion_sum_ms);
        prop_assert!(completion.best_ms() <= sum_ms, "{completion:?} {sum_ms}");
        if jobs.len() == 1 {
            prop_assert_eq!(makespan.best_ms(), best.makespan_ms);
            prop_assert_eq!(completion.best_ms(), sum_ms);
        }
        let total: u32 = jobs.iter().map(|job| job.gpu_count).sum();
        if total <= capacity {
            prop_assert_eq!(completion.no_waiting_ms, sum_ms);
        }
        if jobs.iter().all(|job| job.gpu_count == capacity) {
            prop_assert_eq!(completion.fast_machine_ms, sum_ms);
            prop_assert_eq!(makespan.work_ms, best.makespan_ms);
        }
    }
}

fn jobs(rows: &[(i64, i64, u32)]) -> Vec<BoundJob> {
    let job = |&(submit_ms, duration_ms, gpu_count): &(i64, i64, u32)| BoundJob {
        submit_ms,
        duration_ms,
        gpu_count,
    };
    rows.iter().map(job).collect()
}

#[test]
fn each_bound_has_the_value_worked_out_by_hand() {
    // 4 GPUs. Work from t=0: 40+60+12 = 112 GPU-ms -> 28; from t=2: 2 + 72/4 = 20.
    let list = jobs(&[(0, 10, 4), (2, 20, 3), (2, 6, 2)]);
    let makespan = makespan_bounds(&list, 4).unwrap().unwrap();
    assert_eq!((makespan.longest_job_ms, makespan.work_ms, makespan.wide_jobs_ms), (22, 28, 30));
    let completion = completion_bounds(&list, 4).unwrap().unwrap();
    assert_eq!(completion.no_waiting_ms, 10 + 22 + 8);
    // Shortest remaining: job 0 for 2 ms (32 left), job 2 until 5, job 0 until 13, job 1 until 28.
    assert_eq!(completion.fast_machine_ms, 5 + 13 + 28);
    // Least total work: the same order; mean busy times 1*0.2 + 9*0.8, 20.5, 3.5; plus half of 36.
    assert_eq!(completion.mean_busy_ms, (7.4_f64 + 20.5 + 3.5 + 18.0) as i128);
    assert!((completion.average_completion_ms() - 45.0 / 3.0).abs() < 1e-9);
}

#[test]
fn jobs_without_work_count_and_bad_jobs_are_named() {
    let idle = jobs(&[(5, 7, 0), (3, 0, 2)]);
    assert_eq!(completion_bounds(&idle, 2).unwrap().unwrap().best_ms(), 12 + 3);
    assert_eq!(makespan_bounds(&idle, 2).unwrap().unwrap().best_ms(), 12);
    assert!(completion_bounds(&[], 2).unwrap().is_none());
    let wide = makespan_bounds(&jobs(&[(0, 1, 1), (0, 1, 3)]), 2).unwrap_err().to_string();
    assert!(wide.contains("job 1") && wide.contains("gpu_count is 3"), "{wide}");
    let early = completion_bounds(&jobs(&[(-1, 1, 1)]), 2).unwrap_err().to_string();
    assert!(early.contains("job 0") && early.contains("submit_ms is -1"), "{early}");
}

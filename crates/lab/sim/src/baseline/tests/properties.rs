//! Random worlds: equality with the naive replay, and what must hold of any event stream.

use dovetail_cases::cases;
use proptest::prelude::*;

use super::*;

/// Few distinct times and sizes, so that ties, simultaneous events and full clusters are common.
/// Services reach both demotion limits.
fn worlds() -> impl Strategy<Value = (Vec<BaselineJob>, Vec<u32>, Vec<u64>)> {
    let nodes = prop::collection::vec(prop_oneof![Just(0_u32), Just(2), Just(4), Just(5)], 1..4)
        .prop_filter("a cluster has GPUs", |nodes| nodes.iter().sum::<u32>() > 0);
    nodes.prop_flat_map(|nodes| {
        let total: u32 = nodes.iter().sum();
        let times = prop_oneof![0_u64..6, (0_u64..12).prop_map(|step| step * 500)];
        let one = (times.clone(), times, 0_u64..1_000_000, 1..=total);
        (prop::collection::vec(one, 1..14), prop::collection::vec(0_u64..400, 15), any::<bool>())
            .prop_map(move |(mut rows, overheads_s, whole_seconds)| {
                rows.sort_by_key(|row| row.0);
                let jobs =
                    rows.iter().enumerate().map(|(index, &(submit, service, odd_us, gpus))| {
                        let mut job = job(&index.to_string(), submit, service, gpus);
                        job.service_us += if whole_seconds { 0 } else { odd_us };
                        job
                    });
                (jobs.collect(), nodes.clone(), overheads_s)
            })
    })
}

/// A table with the given overhead in seconds for each GPU count, and the overhead of each job.
fn table_of(jobs: &[BaselineJob], overheads_s: &[u64]) -> (StartOverheads, Vec<u64>) {
    let mut text = "num_gpu,model,overhead_s\n".to_owned();
    for (num_gpu, overhead_s) in (1..).zip(overheads_s) {
        text += &format!("{num_gpu},bert,{overhead_s}\n");
    }
    let of_job = |job: &BaselineJob| overheads_s[job.num_gpu as usize - 1] * MICROS_PER_SECOND;
    let table = super::overheads(&text).expect("a table");
    (table, jobs.iter().map(of_job).collect())
}

/// Replays the stream: never above capacity, legal changes only; returns each job's running time.
fn running_times(events: &[BaselineEvent], jobs: &[BaselineJob], total_gpus: u32) -> Vec<u64> {
    let mut since = vec![None; jobs.len()];
    let mut ran_us = vec![0; jobs.len()];
    let mut used_gpus = 0;
    let mut last_us = 0;
    for event in events {
        assert!(event.time_us >= last_us);
        last_us = event.time_us;
        let job = event.job as usize;
        if event.kind == BaselineEventKind::Start {
            assert_eq!(since[job].replace(event.time_us), None);
            used_gpus += jobs[job].num_gpu;
            assert!(used_gpus <= total_gpus);
        } else {
            ran_us[job] += event.time_us - since[job].take().expect("was running");
            used_gpus -= jobs[job].num_gpu;
        }
    }
    assert_eq!(used_gpus, 0);
    ran_us
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..cases(3000) })]

    #[test]
    fn every_order_agrees_with_the_naive_replay((jobs, nodes, overheads_s) in worlds()) {
        let (table, overhead_us) = table_of(&jobs, &overheads_s);
        let total_gpus = nodes.iter().sum();
        let published = |order: &BaselineOrder| *order != BaselineOrder::LasPlaced;
        for order in BaselineOrder::ALL.into_iter().filter(published) {
            for with_overhead in [false, true] {
                let charged = if with_overhead { overhead_us.clone() } else { vec![0; jobs.len()] };
                let expected = naive::replay(&jobs, &nodes, order, &charged);
                let (run, events) =
                    replay(&jobs, &nodes, order, with_overhead.then_some(&table));
                let times: Vec<(u64, u64)> =
                    run.outcomes.iter().map(|outcome| (outcome.start_us, outcome.end_us)).collect();
                prop_assert_eq!(&times, &expected, "{:?} overhead {}", order, with_overhead);
                let ran_us = running_times(&events, &jobs, total_gpus);
                if !with_overhead {
                    let service_us: Vec<u64> = jobs.iter().map(|job| job.service_us).collect();
                    prop_assert_eq!(ran_us, service_us);
                }
            }
        }
    }

    #[test]
    fn on_one_node_a_place_makes_no_difference((jobs, nodes, _) in worlds()) {
        let pool = [nodes.iter().sum()];
        let (las, events) = replay(&jobs, &pool, BaselineOrder::Las, None);
        let (placed, placed_events) = replay(&jobs, &pool, BaselineOrder::LasPlaced, None);
        prop_assert_eq!(events, placed_events);
        prop_assert_eq!(las, placed);
        let (_, events) = replay(&jobs, &nodes, BaselineOrder::LasPlaced, None);
        let service_us: Vec<u64> = jobs.iter().map(|job| job.service_us).collect();
        prop_assert_eq!(running_times(&events, &jobs, pool[0]), service_us);
    }

    /// Every stop costs what the attempts say, and time that is lost is held beside the work.
    #[test]
    fn what_jobs_hold_is_their_work_and_what_stops_cost(
        (jobs, nodes, _) in worlds(),
        interval_ms in proptest::option::of(1_u64..900_000),
        restart_ms in 0_u64..90_000,
    ) {
        let stop_costs = Some(StopCosts {
            checkpoint_interval_ms: interval_ms,
            checkpoint_cost_ms: None,
            restart_cost_ms: Some(restart_ms),
            save_on_notice_ms: None,
        });
        let charged: Vec<BaselineJob> =
            jobs.iter().map(|job| BaselineJob { stop_costs, ..job.clone() }).collect();
        for order in BaselineOrder::ALL {
            let (run, events) = replay(&charged, &nodes, order, None);
            let ran_us = running_times(&events, &charged, nodes.iter().sum());
            let gpu_us = |us: &[u64]| -> u128 {
                us.iter().zip(&jobs).map(|(us, job)| u128::from(*us) * u128::from(job.num_gpu)).sum()
            };
            let work: Vec<u64> = jobs.iter().map(|job| job.service_us).collect();
            prop_assert_eq!(gpu_us(&ran_us), gpu_us(&work) + run.lost_gpu_us, "{:?}", order);
            let stops = events.iter().filter(|event| event.kind == BaselineEventKind::Stop);
            prop_assert_eq!(stops.count() as u64, run.preemptions);
        }
    }

    #[test]
    fn unsorted_input_gives_the_same_times((jobs, nodes, _) in worlds()) {
        // Distinct submit times: only then is the order of arrival independent of the file.
        let mut jobs = jobs;
        for (index, job) in (0_u64..).zip(&mut jobs) {
            job.submit_us += index;
        }
        let mut reversed = jobs.clone();
        reversed.reverse();
        for order in BaselineOrder::ALL {
            let (run, _) = replay(&jobs, &nodes, order, None);
            let (mut backwards, _) = replay(&reversed, &nodes, order, None);
            backwards.outcomes.reverse();
            prop_assert_eq!(&run.outcomes, &backwards.outcomes);
            prop_assert_eq!(run.metrics, backwards.metrics);
        }
    }
}

//! Small schedules worked out by hand, one per order and one for the start overhead.

use super::{super::room::FreeGpus, *};

/// Events as `second:job+`, `-` for a stop and `.` for an end.
fn story(events: &[BaselineEvent], jobs: &[BaselineJob]) -> String {
    let words: Vec<String> = events
        .iter()
        .map(|event| {
            let sign = match event.kind {
                BaselineEventKind::Start => '+',
                BaselineEventKind::Stop => '-',
                BaselineEventKind::End => '.',
            };
            let name = &jobs[event.job as usize].name;
            assert_eq!(event.time_us % MICROS_PER_SECOND, 0);
            format!("{}:{name}{sign}", event.time_us / MICROS_PER_SECOND)
        })
        .collect();
    words.join(" ")
}

#[test]
fn shortest_remaining_time_preempts_skips_and_keeps_the_earlier_of_equals() {
    let jobs = [job("a", 0, 10, 2), job("b", 2, 3, 1), job("c", 4, 9, 1)];
    let (run, events) = replay(&jobs, &[2], BaselineOrder::Srtf, None);
    // At 5 s both a and c have 8 s left; a stood ahead, so it runs.
    assert_eq!(story(&events, &jobs), "0:a+ 2:a- 2:b+ 4:c+ 5:b. 5:c- 5:a+ 13:a. 13:c+ 21:c.");
    assert_eq!(run.metrics.average_jct_s, 11.0);
    assert_eq!(run.metrics.p99_jct_s, 17.0);
    assert_eq!(run.metrics.makespan_s, 21.0);
    assert_eq!(run.metrics.average_queue_s, 0.0);
    assert_eq!(run.metrics.gpu_occupancy, 32.0 / 42.0);
}

#[test]
fn shortest_remaining_service_weighs_time_with_gpus() {
    let jobs = [job("a", 100, 4, 2), job("b", 100, 6, 1), job("c", 101, 2, 1)];
    let (run, events) = replay(&jobs, &[2], BaselineOrder::Srsf, None);
    assert_eq!(story(&events, &jobs), "100:b+ 101:c+ 103:c. 106:b. 106:a+ 110:a.");
    assert_eq!(run.metrics.average_jct_s, 6.0);
    assert_eq!(run.metrics.makespan_s, 110.0);
    assert_eq!(run.metrics.average_queue_s, 2.0);
    assert_eq!(run.metrics.gpu_occupancy, 16.0 / 20.0);
}

#[test]
fn start_overhead_is_charged_in_every_interval_and_completion_ignores_it() {
    let jobs = [job("a", 0, 10, 1), job("b", 4, 20, 1)];
    let table = super::overheads("num_gpu,model,overhead_s\n1,bert,2\n");
    let (run, events) = replay(&jobs, &[2], BaselineOrder::Srtf, Some(&table.expect("a table")));
    // At 4 s a lost 4 − 2 of its 10 s, so 8 are left and it ends at 12; then b lost 8 − 2 of 20.
    assert_eq!(story(&events, &jobs), "0:a+ 4:b+ 12:a. 26:b.");
    assert_eq!(run.metrics.average_jct_s, (12.0 + 22.0) / 2.0);
    assert_eq!(run.metrics.gpu_occupancy, (12.0 + 22.0) / 52.0);
}

#[test]
fn least_attained_service_demotes_at_3250_gpu_seconds() {
    let jobs = [job("a", 0, 5000, 1), job("b", 1000, 100, 1)];
    let (run, events) = replay(&jobs, &[1], BaselineOrder::Las, None);
    assert_eq!(story(&events, &jobs), "0:a+ 3250:a- 3250:b+ 3350:b. 3350:a+ 5100:a.");
    assert_eq!(run.metrics.average_queue_s, 1125.0);
    assert_eq!(run.metrics.gpu_occupancy, 1.0);
}

#[test]
fn least_attained_service_has_three_queues_and_counts_gpus_of_one_pool() {
    // 3 GPUs reach 3,250 GPU-seconds at ceil(1083.3) s and 7,200 at 2,400 s of running.
    let jobs = [job("a", 0, 3000, 3), job("b", 10, 5, 1), job("c", 1090, 1200, 3)];
    let (_, events) = replay(&jobs, &[2, 1], BaselineOrder::Las, None);
    assert_eq!(
        story(&events, &jobs),
        "0:a+ 1084:a- 1084:b+ 1089:b. 1089:a+ 1090:a- 1090:c+ 2174:c- 2174:a+ 3489:a- 3489:c+ \
         3605:c. 3605:a+ 4205:a."
    );
}

#[test]
fn first_fit_uses_whole_idle_nodes_for_large_jobs_and_the_first_other_node_for_the_rest() {
    let fills = |gpus: &[u32], sizes: &[u32]| {
        let cluster = cluster(gpus);
        let mut room = FreeGpus::new(&cluster);
        sizes.iter().map(|&size| room.place(size)).collect::<Vec<bool>>()
    };
    assert_eq!(fills(&[8, 8, 8], &[12, 8, 4, 1]), [true, true, true, false]);
    assert_eq!(fills(&[8, 8, 8], &[1, 1, 17, 16, 6, 1]), [true, true, true, false, false, true]);
    assert_eq!(fills(&[8, 8, 8], &[5, 5, 5, 9, 4, 3]), [true, true, true, false, false, true]);
    assert_eq!(fills(&[4, 8], &[10, 3, 2]), [true, false, true]);
}

#[test]
fn p99_is_the_entry_at_floor_of_99_percent_of_the_jobs() {
    // Each job has a GPU of its own and a service of its position from 1, so entry k is k + 1 s.
    let p99_s = |count: u32| {
        let jobs: Vec<BaselineJob> =
            (1..=count).map(|second| job("j", 7, u64::from(second), 1)).collect();
        replay(&jobs, &[count], BaselineOrder::Srtf, None).0.metrics.p99_jct_s
    };
    assert_eq!([1, 99, 100, 101, 200, 201].map(p99_s), [1.0, 99.0, 100.0, 100.0, 199.0, 199.0]);
}

#[test]
fn a_stop_costs_what_no_checkpoint_keeps_and_the_time_to_come_back() {
    let stop_costs = Some(StopCosts {
        checkpoint_interval_ms: Some(20_000),
        checkpoint_cost_ms: None,
        restart_cost_ms: Some(5_000),
        save_on_notice_ms: None,
    });
    let jobs = [job("a", 0, 100, 2), job("b", 30, 10, 2)];
    let jobs = jobs.map(|job| BaselineJob { stop_costs, ..job });
    let (run, events) = replay(&jobs, &[2], BaselineOrder::Srtf, None);
    // At 30 s the checkpoint of 20 s is kept; 80 s are left, after 5 s to come back.
    assert_eq!(story(&events, &jobs), "0:a+ 30:a- 30:b+ 40:b. 40:a+ 125:a.");
    assert_eq!((run.preemptions, run.lost_gpu_us), (1, 2 * 15 * 1_000_000));
}

#[test]
fn a_job_that_runs_keeps_its_nodes_and_one_behind_it_makes_room() {
    // After 3,250 GPU-seconds b and c are in the second queue; d takes the first place that is free
    // of those before it, which is c's, not b's: b stays.
    let jobs =
        [job("a", 0, 10, 2), job("b", 0, 4_000, 2), job("c", 0, 4_000, 2), job("d", 2_000, 5, 2)];
    let (_, events) = replay(&jobs, &[2, 2], BaselineOrder::LasPlaced, None);
    let story = story(&events, &jobs);
    assert!(story.starts_with("0:a+ 0:b+ 10:a. 10:c+"), "{story}");
    assert!(story.contains("2000:c- 2000:d+ 2005:d. 2005:c+"), "{story}");
}

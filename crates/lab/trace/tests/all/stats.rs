//! Figures of the report against a slow second reckoning and against published totals.

use dovetail_cases::cases;
use dovetail_trace::stats::{describe, stats_table};
use dovetail_trace::{
    KnownFields, ReadOptions, RecordedOutcome, Trace, TraceJob, read_cluster, read_trace,
};
use proptest::prelude::*;

use crate::shared::{jobs, traces};

fn job() -> impl Strategy<Value = TraceJob> {
    (0..200_u64, proptest::option::of(0..50_u64), 1..4_u32, 0..10_u32, 1..=1000_i64).prop_map(
        |(submit, duration, pod_count, gpu_count, milli)| TraceJob {
            id: "j".into(),
            submit_ms: submit * 1000,
            duration_ms: duration.map(|seconds| seconds * 1000),
            pod_count,
            cpu_milli: milli,
            gpu_count,
            gpu_milli: match gpu_count {
                0 => 0,
                1 => milli,
                _ => 1000,
            },
            ..TraceJob::default()
        },
    )
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn demand_is_what_a_second_by_second_count_finds(
        jobs in proptest::collection::vec(job(), 1..30),
    ) {
        let trace = Trace { jobs, ..Trace::default() };
        let stats = describe(&trace, None);
        let at = |second: u64| -> u128 {
            let running = trace.jobs.iter().filter(|job| {
                let end = job.submit_ms + job.duration_ms.unwrap_or(0);
                (job.submit_ms..end).contains(&(second * 1000))
            });
            running.map(TraceJob::total_gpu_milli).sum()
        };
        let peak = (0..300).map(at).max().unwrap_or(0) as f64 / 1000.0;
        let gpu_hours = (0..300).map(at).sum::<u128>() as f64 / 1000.0 / 3600.0;
        let runs = trace.jobs.iter().any(|job| job.duration_ms.is_some_and(|ms| ms > 0));
        match stats.demand {
            Some(demand) => {
                prop_assert_eq!(demand.peak_gpus, peak);
                let submits = || trace.jobs.iter().map(|job| job.submit_ms / 1000);
                let window = submits().min().expect("jobs")..submits().max().expect("jobs");
                let seconds = window.clone().count() as f64;
                let sum = window.map(at).sum::<u128>() as f64 / 1000.0;
                match demand.mean_gpus {
                    Some(mean) => prop_assert!((mean - sum / seconds).abs() < 1e-9),
                    None => prop_assert_eq!(seconds, 0.0),
                }
            }
            None => prop_assert!(!runs),
        }
        let known = stats.gpu_hours.unwrap_or(0.0);
        prop_assert!((known - gpu_hours).abs() < 1e-9, "{known} {gpu_hours}");
        let by_size: f64 = stats.sizes.iter().filter_map(|size| size.gpu_hours).sum();
        prop_assert!((by_size - known).abs() < 1e-9);
        prop_assert_eq!(stats.sizes.iter().map(|size| size.jobs).sum::<u64>(), stats.jobs);
    }
}

#[test]
fn unknown_is_not_zero() {
    let header = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n";
    let trace = jobs(format!("{header}a,1,1,1,500\n").as_bytes(), &ReadOptions::default());
    let stats = describe(&trace.expect("pods"), None);
    assert!(stats.arrivals.is_none() && stats.demand.is_none() && stats.users.is_none());
    assert!(stats.gpu_hours.is_none() && stats.waiting_s.is_none() && stats.estimates.is_none());
    let text = stats_table(&stats);
    assert!(text.lines().any(|line| line.contains("GPU-hours") && line.contains("unknown")));
    let json = serde_json::to_value(&stats).expect("JSON");
    assert!(
        json["gpu_hours"].is_null() && json["jobs"] == 1 && json["sizes"][0]["gpus"] == "share"
    );
}

#[test]
fn tables_fit_a_terminal_whatever_the_names() {
    let long = "a-very-long-name-without-any-place-to-break-it/".repeat(6);
    let jobs = (0..30_u32).map(|index| TraceJob {
        id: index.to_string(),
        submit_ms: u64::from(index) * 1_000_000_000_000,
        duration_ms: Some(1_000_000_000_000_000),
        pod_count: 1_000_000,
        cpu_milli: 1_000_000_000_000,
        gpu_count: 1_000_000 - index,
        gpu_milli: 1000,
        user: Some(format!("{long}{index}")),
        queue: Some("漢字".repeat(60)),
        outcome: RecordedOutcome::Killed,
        ..TraceJob::default()
    });
    let trace = Trace {
        jobs: jobs.collect(),
        source: long.clone(),
        known: KnownFields { memory: false, ..KnownFields::default() },
        ..Trace::default()
    };
    let text = stats_table(&describe(&trace, None));
    for line in text.lines() {
        // Letters beyond ASCII may take two columns.
        let width: usize = line.chars().map(|letter| 1 + usize::from(!letter.is_ascii())).sum();
        assert!(width <= 100, "{width}: {line}");
    }
}

#[test]
fn empty_traces_have_a_report() {
    let stats = describe(&Trace::default(), None);
    assert_eq!((stats.jobs, stats.sizes.len()), (0, 0));
    assert!(stats_table(&stats).contains("unknown"));
}

#[test]
fn published_totals() {
    let Some(folder) = traces("published_totals") else { return };
    let read = |name: &str| {
        let trace = read_trace(&folder.join(name), &ReadOptions::default()).expect(name);
        describe(&trace, None)
    };
    let philly = read("jobs/philly_pass_82k.csv");
    assert_eq!(philly.gpu_model_constrained_share, None, "the table has no such column");
    assert_eq!(philly.demand.expect("demand").peak_gpus, 1243.0);
    assert_eq!(philly.run_time_s.expect("times").p50, 1144.0);
    assert_eq!(philly.queues.expect("virtual clusters").largest[0].jobs, 41_226);
    let share = |label: &str| philly.sizes.iter().find(|size| size.gpus == label);
    assert_eq!(share("1").expect("one GPU").jobs, 76_627);
    assert_eq!(share("3-4").expect("four GPUs").jobs, 1_870);

    let pods = folder.join("openb/openb_pod_list_default.csv");
    let nodes = folder.join("openb/openb_node_list_gpu_node.csv");
    let trace = read_trace(&pods, &ReadOptions::default()).expect("pods");
    let cluster = read_cluster(&nodes, &ReadOptions::default()).expect("nodes");
    let openb = describe(&trace, Some(&cluster));
    assert_eq!(openb.jobs_without_run_time, 897);
    assert_eq!(openb.gpu_hours.expect("GPU-hours").round(), 51_471.0);
    assert_eq!(openb.run_time_s.expect("times").p50, 616.0);
    assert_eq!(openb.waiting_s.expect("waits").p50, 2.0);
    let cluster = openb.cluster.expect("machines");
    assert_eq!((cluster.gpus, cluster.gpu_models.len()), (6212, 7));
    assert_eq!(cluster.gpu_models[0].model.as_deref(), Some("G2"));
}

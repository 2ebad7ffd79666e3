//! Writing and reading back gives the same; what cannot come back is refused when writing.

use dovetail_cases::cases;
use dovetail_trace::limits::{
    MAX_CPU_MILLI, MAX_GPUS, MAX_JOB_MEMORY_BYTES, MAX_MEMORY_BYTES, MAX_NODE_GPUS, MAX_PODS,
    MAX_TIME_MS,
};
use dovetail_trace::{
    ExactTimes, KnownFields, ReadOptions, RecordedOutcome, StopCosts, Trace, TraceCluster,
    TraceError, TraceFormat, TraceJob, TraceNode, UnseenEnds, write_cluster, write_job_table,
    write_trace,
};
use proptest::prelude::*;

use crate::shared::{jobs, nodes};

fn text() -> impl Strategy<Value = Option<String>> {
    // Blanks, quotes, commas, separators and letters beyond ASCII all have to survive.
    proptest::option::of(proptest::collection::vec(
        proptest::sample::select(vec![
            'a', 'Z', '0', ' ', ',', '"', ';', '\'', '|', '-', 'é', '漢',
        ]),
        1..12,
    ))
    .prop_map(|letters| letters.map(|letters| letters.into_iter().collect()))
}

fn time() -> impl Strategy<Value = u64> {
    prop_oneof![0..10_000_u64, 0..=MAX_TIME_MS]
}

fn gpus() -> impl Strategy<Value = (u32, i64, Vec<String>)> {
    let models = proptest::collection::vec("[A-Z0-9, -]{1,6}", 0..3);
    prop_oneof![
        Just((0, 0, Vec::new())),
        (1..=1000_i64, models.clone()).prop_map(|(milli, models)| (1, milli, models)),
        (1..=MAX_GPUS, models).prop_map(|(count, models)| (count, 1000, models)),
    ]
}

prop_compose! {
    fn job()(
        stop_costs in (proptest::option::of(time()), proptest::option::of(time()), proptest::option::of(time())),
        times in (time(), proptest::option::of(time()), proptest::option::of(time()), proptest::option::of(time())),
        wait in proptest::option::of(0..1000_u64),
        pod_count in 1..=MAX_PODS,
        cpu_milli in 0..=MAX_CPU_MILLI,
        memory_bytes in 0..=MAX_MEMORY_BYTES,
        gpus in gpus(),
        texts in (text(), text(), text(), text()),
        priority in any::<i32>(),
        outcome in proptest::sample::select(vec![
            RecordedOutcome::Completed,
            RecordedOutcome::Failed,
            RecordedOutcome::Killed,
            RecordedOutcome::Unknown,
        ]),
        cut in proptest::sample::select(vec![
            UnseenEnds::Nowhere,
            UnseenEnds::Begin,
            UnseenEnds::End,
            UnseenEnds::Both,
        ]),
    ) -> TraceJob {
        let submit_ms = times.0.min(MAX_TIME_MS - 1000);
        let pod_count = pod_count.min(MAX_GPUS / gpus.0.max(1));
        let memory_bytes = memory_bytes.min(MAX_JOB_MEMORY_BYTES / i64::from(pod_count));
        TraceJob {
            id: String::new(),
            submit_ms,
            duration_ms: times.1,
            estimate_ms: times.2,
            start_ms: wait.map(|wait| submit_ms + wait),
            pod_count,
            cpu_milli,
            memory_bytes,
            gpu_count: gpus.0,
            gpu_milli: gpus.1,
            gpu_models: gpus.2,
            user: texts.0,
            queue: texts.1,
            model: texts.2,
            service_class: texts.3,
            priority,
            deadline_ms: times.3,
            stop_costs: StopCosts {
                checkpoint_interval_ms: stop_costs.0,
                checkpoint_cost_ms: stop_costs.1,
                restart_cost_ms: stop_costs.2,
                save_on_notice_ms: stop_costs.2.map(|ms| ms / 2),
            },
            outcome,
            cut,
            exact: None,
        }
    }
}

fn trace() -> impl Strategy<Value = Trace> {
    (proptest::collection::vec((job(), text()), 1..8), any::<[bool; 5]>()).prop_map(
        |(rows, known)| {
            let known = KnownFields {
                submit_times: known[0],
                cpu: known[1],
                memory: known[2],
                gpu_models: known[3],
                cuts: known[4],
            };
            let jobs = rows.into_iter().enumerate().map(|(index, (mut job, name))| {
                job.id = format!("{}{index}", name.unwrap_or_default());
                if !known.submit_times {
                    (job.submit_ms, job.start_ms) = (0, None);
                }
                if !known.gpu_models {
                    job.gpu_models.clear();
                }
                if !known.cuts {
                    job.cut = UnseenEnds::Nowhere;
                }
                job.cpu_milli *= i64::from(known.cpu);
                job.memory_bytes *= i64::from(known.memory);
                job
            });
            Trace { jobs: jobs.collect(), source: "jobs.csv".into(), known, ..Trace::default() }
        },
    )
}

fn node() -> impl Strategy<Value = TraceNode> {
    let gpu = (1..=MAX_NODE_GPUS, text(), proptest::option::of(1..=MAX_MEMORY_BYTES));
    let gpu = prop_oneof![Just((0, None, None)), gpu];
    (text(), 0..=MAX_CPU_MILLI, 0..=MAX_MEMORY_BYTES, gpu, text(), text()).prop_map(
        |(name, cpu_milli, memory_bytes, gpu, rack, zone)| TraceNode {
            name: name.unwrap_or_default(),
            cpu_milli,
            memory_bytes,
            gpu_count: gpu.0,
            gpu_model: gpu.1,
            gpu_memory_bytes: gpu.2,
            rack,
            zone,
        },
    )
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn jobs_come_back(trace in trace()) {
        let mut file = Vec::new();
        write_trace(&trace, &mut file).expect("writable");
        let back = jobs(&file, &ReadOptions::default()).expect("readable");
        // What was read also knows the place of each job.
        let lines = (2..).take(trace.jobs.len()).collect();
        prop_assert_eq!(back, Trace { format: Some(TraceFormat::Jobs), lines, ..trace });
    }

    #[test]
    fn machines_come_back(rows in proptest::collection::vec(node(), 1..8)) {
        let source = "nodes.csv".into();
        let mut cluster = TraceCluster { nodes: rows, source, ..TraceCluster::default() };
        for (index, node) in cluster.nodes.iter_mut().enumerate() {
            node.name = format!("{}{index}", node.name);
        }
        let mut file = Vec::new();
        write_cluster(&cluster, &mut file).expect("writable");
        prop_assert_eq!(nodes(&file, &ReadOptions::default()).expect("readable"), cluster);
    }

    #[test]
    fn job_tables_keep_what_they_promise(
        mut trace in trace(),
        micros in proptest::collection::vec((0..1000_u64, 0..1000_u64), 8),
    ) {
        trace.known = KnownFields::default();
        for (job, (submit, duration)) in trace.jobs.iter_mut().zip(micros) {
            // Times as a table may have them, up to half a millisecond away from whole ones.
            let duration_ms = job.duration_ms.unwrap_or(1).min(MAX_TIME_MS - 1);
            job.duration_ms = Some(duration_ms);
            let near = |ms: u64, us: u64| (ms * 1000 + us).saturating_sub(500);
            let exact = ExactTimes {
                submit_us: near(job.submit_ms, submit),
                duration_us: near(duration_ms, duration),
            };
            let is_finer =
                exact.submit_us != job.submit_ms * 1000 || exact.duration_us != duration_ms * 1000;
            job.exact = is_finer.then_some(exact);
            // The table counts GPUs over the whole job, within the limit of one count.
            job.pod_count = job.pod_count.min(1_000_000 / job.gpu_count.max(1));
            if job.gpu_count == 1 && job.gpu_milli < 1000 {
                job.pod_count = 1;
            }
        }
        let mut file = Vec::new();
        let lost = write_job_table(&trace, &mut file).expect("writable");
        let back = jobs(&file, &ReadOptions::default());
        // A job without GPUs on several nodes has nothing to share out but is still a job.
        let back = back.expect("readable");
        for (job, back) in trace.jobs.iter_mut().zip(back.jobs) {
            for name in &lost {
                match *name {
                    "cpu_milli" => job.cpu_milli = 0,
                    "memory_bytes" => job.memory_bytes = 0,
                    "gpu_models" => job.gpu_models.clear(),
                    "service_class" => job.service_class = None,
                    "cut" => job.cut = UnseenEnds::Nowhere,
                    _ => job.start_ms = None,
                }
            }
            prop_assert_eq!(&*job, &back);
        }
    }
}

#[test]
fn job_tables_have_priorities_where_some_job_has_one() {
    let job = |id: &str, priority| TraceJob {
        id: id.into(),
        duration_ms: Some(1_000),
        pod_count: 1,
        gpu_count: 1,
        gpu_milli: 1_000,
        priority,
        ..TraceJob::default()
    };
    let written = |jobs: Vec<TraceJob>| {
        let trace = Trace { jobs, ..Trace::default() };
        let mut file = Vec::new();
        let lost = write_job_table(&trace, &mut file).expect("writable");
        assert_eq!(lost, Vec::<&str>::new());
        String::from_utf8(file).expect("text")
    };
    let table = written(vec![job("low", 0), job("high", -7)]);
    assert!(table.lines().next().is_some_and(|line| line.ends_with(",priority")), "{table}");
    let back = jobs(table.as_bytes(), &ReadOptions::default()).expect("readable");
    assert_eq!(back.jobs.iter().map(|job| job.priority).collect::<Vec<_>>(), [0, -7]);
    assert!(!written(vec![job("low", 0)]).contains("priority"));
}

#[test]
fn what_cannot_come_back_is_refused() {
    let good = TraceJob { id: "a".into(), pod_count: 1, ..TraceJob::default() };
    let cases: [(&str, TraceJob); 6] = [
        ("user", TraceJob { user: Some(String::new()), ..good.clone() }),
        ("queue", TraceJob { queue: Some("a\nb".into()), ..good.clone() }),
        ("job_id", TraceJob { id: "a\rb".into(), ..good.clone() }),
        ("pod_count", TraceJob { pod_count: 0, ..good.clone() }),
        (
            "gpu_models",
            TraceJob { gpu_count: 1, gpu_milli: 9, gpu_models: vec!["A|B".into()], ..good.clone() },
        ),
        ("gpu_models", TraceJob { gpu_models: vec!["A".into()], ..good.clone() }),
    ];
    for (wanted, job) in cases {
        let trace = Trace { jobs: vec![job], ..Trace::default() };
        match write_trace(&trace, Vec::new()) {
            Err(TraceError::Unwritable { column, .. }) => assert_eq!(column, wanted),
            other => panic!("{wanted}: {other:?}"),
        }
    }
    let trace = Trace { jobs: vec![good], ..Trace::default() };
    let error = write_job_table(&trace, Vec::new()).expect_err("no run time");
    assert!(error.to_string().contains("duration_s"), "{error}");
}

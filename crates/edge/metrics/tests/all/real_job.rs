//! What a real Prometheus answers about the pods of a job.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use dovetail_account::device_time::Span;
use dovetail_account::signal::{ActivityRule, Scale, Signal};
use dovetail_metrics::exporter::{Observation, PodLabels, SeriesMeasure, mean_over_steps};
use dovetail_metrics::job::{
    DeviceHolding, Grid, JobReadings, NODE_NAMES, NodeNames, job_queries, node_queries, records,
};
use dovetail_metrics::prometheus::{
    Direct, DirectOptions, Limits, PrometheusClient, RangeQuery, Series,
};
use dovetail_phases::job_phases::{ContainerRun, RunEnd};
use dovetail_testkit::PrometheusServer;

const ENGINE: &str = "DCGM_FI_PROF_GR_ENGINE_ACTIVE";
/// 2026-01-01.
const FROM_S: u64 = 1_767_225_600;
const MINUTES: u64 = 60;
const STEP_MS: u64 = 60_000;
/// The container starts after five minutes and fails after 40; it comes back at 45 and is done at
/// 58.
const STARTS: [u64; 2] = [5, 45];
const ENDS: [u64; 2] = [40, 58];

fn runs_at(minute: u64) -> bool {
    STARTS.iter().zip(ENDS).any(|(start, end)| (*start..end).contains(&minute))
}

/// An hour of two GPUs of one pod, scraped every 30 s, with all that is known of their host;
/// another pod beside.
fn history() -> String {
    let mut text = String::new();
    gpus_and_hosts(&mut text);
    nodes(&mut text);
    events(&mut text);
    text + "# EOF\n"
}

/// Rows of one metric; OpenMetrics wants each series in one piece.
fn family(text: &mut String, name: &str, kind: &str, rows: &dyn Fn(u64) -> Vec<(String, f64)>) {
    _ = writeln!(text, "# TYPE {} {kind}", name.strip_suffix("_total").unwrap_or(name));
    let labels: Vec<String> = rows(0).into_iter().map(|(labels, _)| labels).collect();
    for (place, labels) in labels.iter().enumerate() {
        for half in 0..2 * MINUTES {
            let value = rows(half)[place].1;
            _ = writeln!(text, "{name}{{{labels}}} {value} {}", FROM_S + half * 30);
        }
    }
}

fn of_host(container: &str, more: &str) -> String {
    format!("namespace=\"ml\",pod=\"train-0\",container=\"{container}\"{more}")
}

fn gpus_and_hosts(text: &mut String) {
    let mut family = |name: &str, kind: &str, rows: &dyn Fn(u64) -> Vec<(String, f64)>| {
        family(text, name, kind, rows);
    };
    let of_gpu = |gpu: u64| {
        format!(
            "UUID=\"GPU-{gpu}\",Hostname=\"n1\",pod=\"exporter-x\",exported_namespace=\"ml\",\
             exported_pod=\"train-0\",exported_container=\"main\""
        )
    };
    let gpus = |value: f64| {
        move |half: u64| -> Vec<(String, f64)> {
            let now = if runs_at(half / 2) { value } else { 0.0 };
            (0..2).map(|gpu| (of_gpu(gpu), now)).collect()
        }
    };
    family(ENGINE, "gauge", &gpus(0.9));
    family("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "gauge", &gpus(0.4));
    family("DCGM_FI_PROF_NVLINK_TX_BYTES", "gauge", &gpus(3e9));
    family("DCGM_FI_PROF_NVLINK_RX_BYTES", "gauge", &gpus(2e9));
    family("DCGM_FI_DEV_FB_USED", "gauge", &gpus(1024.0));
    // Per second, by container; the pod's own row and the pause container say it again.
    let containers = |rate: f64| {
        move |half: u64| -> Vec<(String, f64)> {
            let all = [("main", 0.75), ("helper", 0.25), ("", 1.0), ("POD", 0.5)];
            let so_far = (half * 30) as f64 * rate;
            let mut rows: Vec<(String, f64)> =
                all.iter().map(|(name, part)| (of_host(name, ""), so_far * part)).collect();
            rows.push((
                "namespace=\"ml\",pod=\"other\",container=\"main\"".to_owned(),
                so_far * 7.0,
            ));
            rows
        }
    };
    family("container_cpu_usage_seconds_total", "counter", &containers(6.0));
    family("container_fs_reads_bytes_total", "counter", &containers(2e6));
    family("container_fs_writes_bytes_total", "counter", &containers(4e6));
    let network = |rate: f64| {
        move |half: u64| -> Vec<(String, f64)> {
            let so_far = (half * 30) as f64 * rate;
            let of = |interface: &str| of_host("POD", &format!(",interface=\"{interface}\""));
            vec![(of("eth0"), so_far), (of("lo"), so_far * 9.0)]
        }
    };
    family("container_network_receive_bytes_total", "counter", &network(8e6));
    family("container_network_transmit_bytes_total", "counter", &network(1e6));
}

/// What node_exporter says of the node: a disk with what lies on it, and a network with that of a
/// pod in it.
fn nodes(text: &mut String) {
    let mut counter = |name: &str, of: &'static [(&str, f64)]| {
        family(text, name, "counter", &|half: u64| {
            let row = |(more, rate): &(&str, f64)| {
                (format!("instance=\"10.0.0.1:9100\",{more}"), (half * 30) as f64 * rate)
            };
            of.iter().map(row).collect()
        });
    };
    counter(
        "node_disk_io_time_seconds_total",
        &[("device=\"nvme0n1\"", 0.75), ("device=\"nvme1n1\"", 0.5)],
    );
    counter(
        "node_disk_read_bytes_total",
        &[("device=\"nvme0n1\"", 40e6), ("device=\"dm-0\"", 40e6)],
    );
    counter(
        "node_network_receive_bytes_total",
        &[("device=\"eth0\"", 60e6), ("device=\"veth1\"", 8e6)],
    );
    counter(
        "node_cpu_seconds_total",
        &[("cpu=\"0\",mode=\"user\"", 1.0), ("cpu=\"0\",mode=\"idle\"", 0.0)],
    );
}

/// What kube-state-metrics says of the pod.
fn events(text: &mut String) {
    let mut family = |name: &str, rows: &dyn Fn(u64) -> Vec<(String, f64)>| {
        family(text, name, "gauge", rows);
    };
    let main = of_host("main", "");
    family("kube_pod_container_state_started", &|half| {
        let start = STARTS.iter().rfind(|start| **start * 2 <= half).unwrap_or(&STARTS[0]);
        vec![(main.clone(), (FROM_S + start * 60) as f64)]
    });
    family("kube_pod_container_status_running", &|half| {
        vec![(main.clone(), f64::from(u8::from(runs_at(half / 2))))]
    });
    family("kube_pod_status_phase", &|half| {
        let of = |phase: &str| format!("namespace=\"ml\",pod=\"train-0\",phase=\"{phase}\"");
        let is_over = f64::from(u8::from(half >= 2 * ENDS[1]));
        vec![(of("Succeeded"), is_over), (of("Failed"), 0.0), (of("Running"), 1.0 - is_over)]
    });
    // It saved after 20 minutes and told it itself, and after 30, which an annotation tells.
    family("dovetail_last_checkpoint_timestamp_seconds", &|half| {
        let last = if half >= 40 { FROM_S + 20 * 60 } else { 0 };
        vec![("namespace=\"ml\",pod=\"train-0\"".to_owned(), last as f64)]
    });
    family("kube_pod_annotations", &|_| {
        let note = "annotation_dovetail_dev_last_checkpoint=\"2026-01-01T00:30:00Z\"";
        vec![(format!("namespace=\"ml\",pod=\"train-0\",{note}"), 1.0)]
    });
    family("node_uname_info", &|_| {
        vec![("instance=\"10.0.0.1:9100\",nodename=\"n1\"".to_owned(), 1.0)]
    });
    family("kube_pod_container_status_last_terminated_reason", &|half| {
        let was = f64::from(u8::from(half >= 2 * ENDS[0]));
        vec![(of_host("main", ",reason=\"OOMKilled\""), was)]
    });
}

fn server(folder: &std::path::Path) -> PrometheusServer {
    let file = folder.join("history.txt");
    std::fs::write(&file, history()).unwrap();
    PrometheusServer::write_blocks(folder, &file);
    PrometheusServer::start(folder, "scrape_configs: []\n")
}

fn range(period: Span, query: String) -> RangeQuery {
    RangeQuery {
        query,
        from_ms: period.from_ms as i64,
        to_ms: period.to_ms as i64 - 1,
        step_ms: STEP_MS as i64,
    }
}

/// Everything that is asked about the pod.
async fn readings(
    client: &mut PrometheusClient<Direct>,
    pods: &PodLabels,
    period: Span,
) -> JobReadings {
    let mut readings = JobReadings::default();
    for asked in job_queries(pods, "ml", &["train-0"], STEP_MS, period.to_ms - period.from_ms) {
        let mut series = Vec::new();
        if asked.is_instant {
            series = client.instant(&asked.query, period.to_ms as i64 - 1).await.unwrap();
        } else {
            client.range(&range(period, asked.query), |found| series.extend(found)).await.unwrap();
        }
        readings.take(asked.series, pods, series);
    }
    let mut named = Vec::new();
    for name in NODE_NAMES {
        named.extend(client.instant(name, period.to_ms as i64 - 1).await.unwrap());
    }
    let names = NodeNames::of(&named, &BTreeSet::from(["n1"]));
    for asked in node_queries(&names, STEP_MS) {
        let mut series = Vec::new();
        client.range(&range(period, asked.query), |found| series.extend(found)).await.unwrap();
        readings.take_nodes(asked.series, &names, series);
    }
    readings
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_about_a_pod_is_read_of_a_real_server() {
    if !PrometheusServer::is_there() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path());
    let direct = Direct::new(&DirectOptions::at(&server.url)).unwrap();
    let mut client = PrometheusClient::new(direct, Limits::default());
    let period = Span { from_ms: FROM_S * 1000, to_ms: (FROM_S + MINUTES * 60) * 1000 };
    let mut found: Vec<Series> = Vec::new();
    let engine = range(period, mean_over_steps(ENGINE, STEP_MS));
    client.range(&engine, |series| found.extend(series)).await.unwrap();
    let pods = PodLabels::of(found.iter().map(|series| &series.labels));
    let mut observation = Observation::default();
    observation.take(SeriesMeasure::Busy(Signal::GrEngineActive), Scale::Ratio, &pods, found);
    let time = observation.histories(period, STEP_MS, &ActivityRule::default());
    let readings = readings(&mut client, &pods, period).await;
    let holdings: Vec<DeviceHolding<'_>> = time
        .devices
        .iter()
        .map(|device| DeviceHolding {
            device,
            namespace: "ml",
            pod: "train-0",
            uid: "",
            container: "main",
            gpu_milli: 1000,
            held: device.history.holdings[0].held,
        })
        .collect();
    assert_eq!(holdings.len(), 2);
    let grid = Grid { from_ms: period.from_ms, step_ms: STEP_MS, count: MINUTES as usize };
    let groups = records(&holdings, true, &readings, &observation, grid);
    let [group] = &groups[..] else { panic!("{groups:?}") };
    assert_eq!((group.record.ranks, group.record.members.len()), (2, 2));
    let saved = [20, 30].map(|minute| period.from_ms + (minute + 1) * STEP_MS);
    assert_eq!(group.record.checkpoints_ms, saved);
    for member in &group.record.members {
        // One step late, like all means of a step.
        let at = |minute: u64| period.from_ms + (minute + 1) * STEP_MS;
        let run = |place: usize, end| ContainerRun {
            span: Span { from_ms: at(STARTS[place]), to_ms: at(ENDS[place]) },
            end,
        };
        assert_eq!(member.runs, [run(0, RunEnd::Lost), run(1, RunEnd::Completed)]);
        // In the middle of a run, far from its ends.
        let sample = member.samples[20];
        assert_eq!(sample.engine_micro_percent, Some(90_000_000));
        assert_eq!(sample.tensor_micro_percent, Some(40_000_000));
        assert_eq!(sample.nvlink_bytes_per_s, Some(5_000_000_000));
        assert_eq!(sample.memory_bytes, Some(1 << 30));
        // Each of two GPUs has half of the pod's host.
        let near = |value: Option<u64>, wanted: f64| {
            let value = value.expect("a rate") as f64;
            assert!((value / wanted - 1.0).abs() < 0.01, "{value}, not {wanted}");
        };
        near(sample.cpu_milli, 3_000.0);
        near(sample.written_bytes_per_s, 2e6);
        // More than the pod's own: half of what the node does, on which it is alone.
        near(sample.read_bytes_per_s, 20e6);
        near(sample.received_bytes_per_s, 30e6);
        near(sample.disk_busy_micro_percent.map(u64::from), 75e6);
        near(sample.sent_bytes_per_s, 0.5e6);
    }
}

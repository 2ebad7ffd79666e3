//! What a real Prometheus makes of exporters' labels, and what is read back.

use dovetail_account::device_time::{DeviceState, DeviceTime, Span, device_intervals};
use dovetail_account::signal::{ActivityRule, Scale, Signal};
use dovetail_metrics::exporter::{
    Observation, PodLabels, SeriesMeasure, mean_over_steps, peaks_of_mixed_steps,
};
use dovetail_metrics::prometheus::{
    Direct, DirectOptions, Limits, PrometheusClient, RangeQuery, Series,
};
use dovetail_testkit::{FakeExporter, PrometheusServer};

const SERIES: &str = "DCGM_FI_PROF_GR_ENGINE_ACTIVE";
const BUSY: SeriesMeasure = SeriesMeasure::Busy(Signal::GrEngineActive);

async fn read(url: &str, query: &str, span: (i64, i64), step_ms: i64, points: u32) -> Vec<Series> {
    let direct = Direct::new(&DirectOptions::at(url)).unwrap();
    let limits = Limits { points, ..Limits::default() };
    let mut client = PrometheusClient::new(direct, limits);
    let range = RangeQuery { query: query.to_owned(), from_ms: span.0, to_ms: span.1, step_ms };
    let mut found = Vec::new();
    client.range(&range, |series| found.extend(series)).await.unwrap();
    found
}

fn observe(series: Vec<Series>) -> Observation {
    let mut observation = Observation::default();
    let pods = PodLabels::of(series.iter().map(|series| &series.labels));
    observation.take(BUSY, Scale::Ratio, &pods, series);
    observation
}

/// Two GPUs, one held, from an exporter with its own pod label on the target.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_holder_is_found_whether_labels_are_honoured_or_not() {
    if !PrometheusServer::is_there() {
        return;
    }
    let page = format!(
        "# TYPE {SERIES} gauge\n\
         {SERIES}{{gpu=\"0\",UUID=\"GPU-a\",modelName=\"NVIDIA H100\",Hostname=\"n1\",namespace=\"ml\",pod=\"train-0\",container=\"c\"}} 0.9\n\
         {SERIES}{{gpu=\"1\",UUID=\"GPU-b\",modelName=\"NVIDIA H100\",Hostname=\"n1\"}} 0\n"
    );
    let exporter = FakeExporter::start(vec![page]);
    let job = |honour: bool| {
        format!(
            "- job_name: honour-{honour}\n  honor_labels: {honour}\n  static_configs:\n  - targets: ['{}']\n    \
             labels: {{pod: dcgm-exporter-x7, namespace: gpu-operator, container: exporter}}\n",
            exporter.address
        )
    };
    let configuration =
        format!("global: {{scrape_interval: 1s}}\nscrape_configs:\n{}{}", job(true), job(false));
    let folder = tempfile::tempdir().unwrap();
    let server = PrometheusServer::start(folder.path(), &configuration);
    // The scrape before the last one is stored by then.
    exporter.wait_for_scrapes(6);
    let now_ms = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let now_ms = now_ms.as_millis() as i64;
    for honour in [true, false] {
        let query = format!("{SERIES}{{job=\"honour-{honour}\"}}");
        let series = read(&server.url, &query, (now_ms - 20_000, now_ms), 1_000, 100).await;
        assert_eq!(series.len(), 2, "honour {honour}: {series:?}");
        let observation = observe(series);
        let period = Span { from_ms: 0, to_ms: now_ms as u64 + 1_000 };
        let time = observation.histories(period, 1_000, &ActivityRule::default());
        let found: Vec<(&str, &str, usize)> = time
            .devices
            .iter()
            .map(|d| (d.node.as_str(), d.device.as_str(), d.history.holdings.len()))
            .collect();
        assert_eq!(found, [("n1", "GPU-a", 1), ("n1", "GPU-b", 0)], "honour {honour}");
        let holders: Vec<(&str, &str)> =
            time.holders.iter().map(|h| (h.namespace.as_str(), h.pod.as_str())).collect();
        assert_eq!(holders, [("ml", "train-0")], "honour {honour}");
    }
}

/// Two days of two GPUs, written into blocks: what is read back is what was written, to the minute.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn days_of_history_are_read_in_chunks_and_add_up() {
    if !PrometheusServer::is_there() {
        return;
    }
    const MINUTES: i64 = 2_880;
    // 2026-01-01, far from any clock.
    const FROM_S: i64 = 1_767_225_600;
    let mut text = format!("# TYPE {SERIES} gauge\n");
    let (mut active, mut idle) = (0, 0);
    for (gpu, pod) in [("a", "train-0"), ("b", "serve-0")] {
        for minute in 0..MINUTES {
            // Held for three hours of four; of what is held, every third minute is idle.
            let is_held = minute / 60 % 4 != 3;
            let is_idle = minute % 3 == 0;
            let value = if is_idle { "0" } else { "0.75" };
            let holder = format!(",exported_pod=\"{pod}\",exported_namespace=\"ml\"");
            let holder = if is_held { holder } else { String::new() };
            text.push_str(&format!(
                "{SERIES}{{UUID=\"GPU-{gpu}\",Hostname=\"n1\",pod=\"x\"{holder}}} {value} {}\n",
                FROM_S + minute * 60
            ));
            active += i128::from(is_held && !is_idle);
            idle += i128::from(is_held && is_idle);
        }
    }
    text.push_str("# EOF\n");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.txt");
    std::fs::write(&file, text).unwrap();
    PrometheusServer::write_blocks(folder.path(), &file);
    let server = PrometheusServer::start(folder.path(), "scrape_configs: []\n");
    let span = (FROM_S * 1000, (FROM_S + (MINUTES - 1) * 60) * 1000);
    let series = read(&server.url, &mean_over_steps(SERIES, 60_000), span, 60_000, 700).await;
    let observation = observe(series);
    let period = Span { from_ms: span.0 as u64, to_ms: span.1 as u64 + 60_000 };
    let time = observation.histories(period, 60_000, &ActivityRule::default());
    // Of each GPU twelve ends, and as many begins but for the first, which is the period's.
    assert_eq!(time.holder_changes(period), 2 * 23);
    let mut sum = DeviceTime::default();
    for device in &time.devices {
        let intervals = device_intervals(&device.history, period).unwrap();
        sum.add(&DeviceTime::of_device(&device.history, period, &intervals));
    }
    let minutes = |time: i128| time / 60_000_000;
    assert_eq!(minutes(sum.installed), 2 * i128::from(MINUTES));
    assert_eq!(minutes(sum.active()), active);
    assert_eq!(minutes(sum.of(DeviceState::Idle)), idle);
    assert_eq!(minutes(sum.allocated()), active + idle);
}

/// By minute: half on, one in seven, on but for one in nine, a restless one that is never high,
/// always on.
fn level(gpu: usize, minute: i64) -> f64 {
    match gpu {
        0 => [0.9, 0.0][(minute.rem_euclid(4) / 2) as usize],
        1 => [0.6, 0.0][usize::from(minute % 7 != 0)],
        2 => [0.0, 0.8][usize::from(minute % 9 != 0)],
        3 => [0.0, 0.008, 0.012, 0.05][(minute * minute % 11 % 4) as usize],
        _ => 0.7,
    }
}

/// A day of five GPUs whose work comes and goes faster than they are looked at: bounds hold, and on
/// or off is told apart to a hundredth.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_that_stops_and_goes_within_a_step_is_counted_within_stated_bounds() {
    if !PrometheusServer::is_there() {
        return;
    }
    const MINUTES: i64 = 1_440;
    const FROM_S: i64 = 1_767_225_600;
    const STEP_MS: u64 = 300_000;
    let mut text = format!("# TYPE {SERIES} gauge\n");
    let mut active = [0_i128; 5];
    for (gpu, active) in active.iter_mut().enumerate() {
        // The step before the period was another's, in the way it always goes.
        for minute in -5..MINUTES {
            // The holder of an odd one changes every 77 minutes, between two looks.
            let pod = if gpu % 2 == 1 { minute.max(0) / 77 } else { 0 };
            let value = level(gpu, minute);
            let holder = format!("pod=\"p-{gpu}-{pod}\",namespace=\"ml\"");
            let at_s = FROM_S + minute * 60;
            text.push_str(&format!(
                "{SERIES}{{UUID=\"GPU-{gpu}\",Hostname=\"n1\",{holder}}} {value} {at_s}\n"
            ));
            *active += i128::from(minute >= 0 && value > 0.01);
        }
    }
    text.push_str("# EOF\n");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.txt");
    std::fs::write(&file, text).unwrap();
    PrometheusServer::write_blocks(folder.path(), &file);
    let server = PrometheusServer::start(folder.path(), "scrape_configs: []\n");
    let rule = ActivityRule::default();
    let span = (FROM_S * 1000, (FROM_S + MINUTES * 60) * 1000 - 1);
    let period = Span { from_ms: span.0 as u64, to_ms: span.1 as u64 + 1 };
    let mut apart = Vec::new();
    for (gpu, active) in active.into_iter().enumerate() {
        let series = format!("{SERIES}{{UUID=\"GPU-{gpu}\"}}");
        let step_ms = STEP_MS as i64;
        let means = mean_over_steps(&series, STEP_MS);
        let mut observation = observe(read(&server.url, &means, span, step_ms, 700).await);
        let before = observation.histories(period, STEP_MS, &rule);
        let peaks = peaks_of_mixed_steps(&series, Scale::Ratio, &rule, STEP_MS);
        let peaks = read(&server.url, &peaks, span, step_ms, 700).await;
        observation.take_peaks(BUSY, Scale::Ratio, &PodLabels::default(), peaks);
        let time = observation.histories(period, STEP_MS, &rule);
        let minutes = |time: &dovetail_metrics::exporter::ObservedTime| {
            let device = &time.devices[0].history;
            let intervals = device_intervals(device, period).unwrap();
            let sum = DeviceTime::of_device(device, period, &intervals);
            sum.check(|time| time).unwrap();
            assert_eq!(sum.allocated() / 60_000_000, i128::from(MINUTES));
            sum.active() as f64 / 6e7
        };
        let (truth, within) = (active as f64, time.active_within(period, STEP_MS) as f64 / 6e7);
        let found = minutes(&time);
        assert!((found - truth).abs() <= within, "{gpu}: {found}, not {truth}, within {within}");
        apart.push(((minutes(&before) - truth) / truth, (found - truth) / truth));
    }
    // Which steps stand for: any work at all, and what is estimated instead.
    assert!(apart[0].0 > 0.9 && apart[1].0 > 3.0, "{apart:?}");
    for place in [0, 2, 4] {
        assert!(apart[place].1.abs() < 0.01, "{place}: {apart:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_wrong_with_a_query_is_said_in_the_servers_words() {
    if !PrometheusServer::is_there() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let server = PrometheusServer::start(folder.path(), "scrape_configs: []\n");
    let direct = Direct::new(&DirectOptions::at(&server.url)).unwrap();
    let mut client = PrometheusClient::new(direct, Limits::default());
    let problem = client.instant("sum(", 0).await.unwrap_err().to_string();
    assert!(problem.contains("bad_data") && problem.contains("`sum(`"), "{problem}");
    let other = Direct::new(&DirectOptions::at(&format!("{}/nowhere", server.url))).unwrap();
    let mut client = PrometheusClient::new(other, Limits::default());
    let problem = client.instant("up", 0).await.unwrap_err().to_string();
    assert!(problem.contains("404") && problem.contains("/api/v1/query is served"), "{problem}");
    let url = server.url.clone();
    drop(server);
    let limits = Limits { tries: 2, first_pause: std::time::Duration::ZERO, ..Limits::default() };
    let mut client = PrometheusClient::new(Direct::new(&DirectOptions::at(&url)).unwrap(), limits);
    let problem = client.instant("up", 0).await.unwrap_err().to_string();
    assert!(problem.contains("no response from") && problem.contains("attempts: 2"), "{problem}");
}

//! The first report on a cluster that nobody prepared: a real Prometheus with two weeks of 200
//! GPUs, and no earlier state.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use dovetail_testkit::PrometheusServer;
use serde_json::Value;

use crate::timed::{Timed, timed};

const NODES: usize = 25;
const DAYS: u64 = 14;
const DAY_MINUTES: u64 = 24 * 60;
const MINUTES: u64 = DAYS * DAY_MINUTES;
/// Sizes of the jobs that a node has at a time.
const LANES: [usize; 4] = [4, 2, 1, 1];
const TEAMS: [&str; 6] = ["vision", "speech", "search", "ads", "research", "robotics"];

/// Prints how long the first report takes, how much memory it needs, and how far it is from the
/// truth.
pub(crate) fn print() {
    if !PrometheusServer::is_there() {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_secs();
    // A whole number of the program's steps.
    let from_s = now / 300 * 300 - MINUTES * 60;
    let tenancies = tenancies();
    let wrote = Instant::now();
    let samples: u64 = (0..DAYS).map(|day| write_day(folder.path(), from_s, day, &tenancies)).sum();
    let server = PrometheusServer::start(folder.path(), "scrape_configs: []\n");
    println!(
        "{} GPUs, {DAYS} days, {} pods, {samples} samples (written in {:.0} s)\n",
        NODES * LANES.iter().sum::<usize>(),
        tenancies.len(),
        wrote.elapsed().as_secs_f64()
    );
    println!("| report | seconds (target 30) | memory at most (target 500 MB) |");
    println!("|---|---|---|");
    let call = format!(
        "cost --prometheus {} --period {DAYS}d --gpu-price *=3 --by namespace,job --output json",
        server.url
    );
    let arguments: Vec<&str> = call.split(' ').collect();
    let Timed { took_s, peak_mib, output } = timed(&arguments);
    let peak = peak_mib.map_or("unknown".to_owned(), |mib| format!("{mib} MiB"));
    println!("| cost of {DAYS} days by namespace and job | {took_s:.1} | {peak} |");
    compare(&serde_json::from_slice(&output).expect("JSON"), &tenancies, from_s);
}

/// A pod on some GPUs of a node for some minutes.
struct Tenancy {
    node: usize,
    gpus: std::ops::Range<usize>,
    minutes: std::ops::Range<u64>,
    team: &'static str,
    number: usize,
    /// Of every ten minutes so many are busy; none of the last hour of an odd pod.
    busy_of_ten: u64,
}

impl Tenancy {
    fn is_busy(&self, minute: u64) -> bool {
        let is_forgotten = self.number % 2 == 1 && minute + 60 >= self.minutes.end;
        !is_forgotten && minute / 5 % 10 < self.busy_of_ten
    }

    fn pod(&self) -> String {
        format!("train-{}-0", self.number)
    }
}

/// Who held what, from a fixed seed.
fn tenancies() -> Vec<Tenancy> {
    let mut seed: u64 = 2026;
    let mut below = move |count: u64| {
        // Knuth's MMIX generator; its upper bits are the good ones.
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % count
    };
    let mut all: Vec<Tenancy> = Vec::new();
    for node in 0..NODES {
        let mut first = 0;
        for size in LANES {
            let mut minute = below(300);
            while minute < MINUTES {
                let end = (minute + 60 + below(36 * 60)).min(MINUTES);
                let team = TEAMS[below(TEAMS.len() as u64) as usize];
                let (number, busy_of_ten) = (all.len(), 3 + below(7));
                let (gpus, minutes) = (first..first + size, minute..end);
                all.push(Tenancy { node, gpus, minutes, team, number, busy_of_ten });
                minute = end + below(6 * 60);
            }
            first += size;
        }
    }
    all
}

/// Writes one day of every series into blocks; how many samples that are.
fn write_day(folder: &Path, from_s: u64, day: u64, tenancies: &[Tenancy]) -> u64 {
    let path = folder.join("day.txt");
    let minutes = day * DAY_MINUTES..(day + 1) * DAY_MINUTES;
    let mut day = Day {
        file: BufWriter::new(File::create(&path).expect("a file")),
        from_s,
        minutes: minutes.clone(),
        samples: 0,
    };
    let of_day: Vec<&Tenancy> = tenancies
        .iter()
        .filter(|held| held.minutes.start < minutes.end && held.minutes.end > minutes.start)
        .collect();
    day.gpus(&of_day);
    day.pods(&of_day);
    day.nodes();
    day.file.write_all(b"# EOF\n").and_then(|()| day.file.flush()).expect("room on the disk");
    PrometheusServer::write_blocks(folder, &path);
    day.samples
}

struct Day {
    file: BufWriter<File>,
    from_s: u64,
    minutes: std::ops::Range<u64>,
    samples: u64,
}

impl Day {
    fn kind(&mut self, series: &str) {
        writeln!(self.file, "# TYPE {series} gauge").expect("room on the disk");
    }

    fn sample(&mut self, series: &str, labels: &str, value: f64, minute: u64) {
        let at_s = self.from_s + minute * 60;
        writeln!(self.file, "{series}{{{labels}}} {value} {at_s}").expect("room on the disk");
        self.samples += 1;
    }

    /// Four signals of every GPU, as dcgm-exporter labels them.
    fn gpus(&mut self, of_day: &[&Tenancy]) {
        let signals: [(&str, f64, f64); 4] = [
            ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", 0.81, 0.0),
            ("DCGM_FI_DEV_GPU_UTIL", 93.0, 0.0),
            ("DCGM_FI_PROF_DRAM_ACTIVE", 0.42, 0.0),
            ("DCGM_FI_DEV_POWER_USAGE", 540.0, 70.0),
        ];
        for (series, busy, idle) in signals {
            self.kind(series);
            for node in 0..NODES {
                for gpu in 0..LANES.iter().sum() {
                    let device = format!(
                        "gpu=\"{gpu}\",UUID=\"GPU-{node}-{gpu}\",modelName=\"NVIDIA H100 80GB HBM3\",\
                         Hostname=\"node-{node}\""
                    );
                    let held: Vec<&&Tenancy> = of_day
                        .iter()
                        .filter(|held| held.node == node && held.gpus.contains(&gpu))
                        .collect();
                    for minute in self.minutes.clone() {
                        let holder = held.iter().find(|held| held.minutes.contains(&minute));
                        let labels = holder.map_or(device.clone(), |held| {
                            let (team, pod) = (held.team, held.pod());
                            format!("{device},exported_namespace=\"{team}\",exported_pod=\"{pod}\"")
                        });
                        let is_busy = holder.is_some_and(|held| held.is_busy(minute));
                        let value = if is_busy { busy } else { idle };
                        self.sample(series, &labels, value, minute);
                    }
                }
            }
        }
    }

    /// What kube-state-metrics says of pods: twice an hour would do, it is scraped as often as
    /// everything else.
    fn pods(&mut self, of_day: &[&Tenancy]) {
        let families: [(&str, &str, f64); 5] = [
            ("kube_pod_info", "", 1.0),
            ("kube_pod_status_phase", ",phase=\"Running\"", 1.0),
            ("kube_pod_container_resource_requests", ",resource=\"cpu\",unit=\"core\"", 12.0),
            ("kube_pod_container_resource_requests", ",resource=\"memory\",unit=\"byte\"", 128e9),
            ("kube_pod_container_resource_requests", ",resource=\"nvidia_com_gpu\"", 1.0),
        ];
        let mut last = "";
        for (series, more, value) in families {
            if series != last {
                self.kind(series);
            }
            last = series;
            for held in of_day {
                let (team, pod, number) = (held.team, held.pod(), held.number);
                let mut labels =
                    format!("namespace=\"{team}\",pod=\"{pod}\",node=\"node-{}\"{more}", held.node);
                if series == "kube_pod_info" {
                    labels += &format!(
                        ",created_by_kind=\"Job\",created_by_name=\"train-{number}\",uid=\"{number}\""
                    );
                }
                let day = self.minutes.clone();
                let from = held.minutes.start.max(day.start);
                for minute in from..held.minutes.end.min(day.end) {
                    self.sample(series, &labels, value, minute);
                }
            }
        }
    }

    fn nodes(&mut self) {
        let families: [(&str, &str, f64); 4] = [
            ("kube_node_info", ",provider_id=\"aws:///us-east-1a/i-0\"", 1.0),
            (
                "kube_node_labels",
                ",label_node_kubernetes_io_instance_type=\"p5.48xlarge\",label_topology_kubernetes_io_region=\"us-east-1\"",
                1.0,
            ),
            ("kube_node_status_allocatable", ",resource=\"cpu\",unit=\"core\"", 190.0),
            ("kube_node_status_allocatable", ",resource=\"memory\",unit=\"byte\"", 2e12),
        ];
        let mut last = "";
        for (series, more, value) in families {
            if series != last {
                self.kind(series);
            }
            last = series;
            for node in 0..NODES {
                let labels = format!("node=\"node-{node}\"{more}");
                for minute in self.minutes.clone() {
                    self.sample(series, &labels, value, minute);
                }
            }
        }
    }
}

/// Prints the GPU-hours of the report beside those that were written, and ends if they are further
/// apart than the report says they can be.
fn compare(report: &Value, tenancies: &[Tenancy], from_s: u64) {
    let number = |of: &Value| of.as_f64().expect("a number");
    let said_from = report["from"].as_str().expect("a time");
    let mut truth: BTreeMap<&str, u64> = BTreeMap::new();
    let (mut held_minutes, mut busy_minutes) = (0, 0);
    for held in tenancies {
        let gpus = held.gpus.len() as u64;
        let minutes = held.minutes.end - held.minutes.start;
        held_minutes += gpus * minutes;
        busy_minutes +=
            gpus * held.minutes.clone().filter(|minute| held.is_busy(*minute)).count() as u64;
        *truth.entry(held.team).or_default() += gpus * minutes;
    }
    let total = &report["total"];
    let within = number(&report["allocated_within_gpu_hours"]);
    println!("\nfrom {said_from} ({from_s} s was the first sample); GPU-hours:\n");
    println!("| | written | reported | at most apart, as reported |");
    println!("|---|---|---|---|");
    let hours = |minutes: u64| minutes as f64 / 60.0;
    let allocated = number(&total["allocated_gpu_hours"]);
    println!("| allocated | {:.1} | {allocated:.1} | {within:.1} |", hours(held_minutes));
    let active = number(&total["active_gpu_hours"]);
    let active_within = number(&report["active_within_gpu_hours"]);
    println!("| active | {:.1} | {active:.1} | {active_within:.1} |", hours(busy_minutes));
    for (team, minutes) in truth {
        let rows = report["rows"].as_array().expect("rows").iter();
        let of_team: f64 = rows
            .filter(|row| row["key"]["namespace"] == team)
            .map(|row| number(&row["allocated_gpu_hours"]))
            .sum();
        println!("| {team} | {:.1} | {of_team:.1} | |", hours(minutes));
    }
    assert!((allocated - hours(held_minutes)).abs() <= within, "further apart than reported");
    assert!((active - hours(busy_minutes)).abs() <= active_within, "further apart than reported");
}

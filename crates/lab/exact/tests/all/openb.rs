//! The published openb cluster: its nodes, pods and arrival orders, and bounds computed elsewhere.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use dovetail_exact::{
    BoundNode, BoundPod, PrefixBound, PrefixBounds, combined_prefix_bounds, prefix_bounds,
};
use flate2::read::GzDecoder;

/// One row of the expected bounds.
#[derive(Debug)]
struct Row {
    workload: String,
    seed: u64,
    pods: usize,
    arrived: f64,
}

#[test]
fn prefix_bounds_meet_every_expected_row() {
    let Some(openb) = openb_folder() else { return };
    let nodes = read_nodes(&openb);
    let lp_rows = expected_rows(&openb, "bounds_lp_prefix.txt", "feasible", "arrive ");
    let device_rows = expected_rows(&openb, "bounds_device_cg_prefix.txt", "pods", "arrive=");
    assert_eq!((lp_rows.len(), device_rows.len()), (30, 42), "rows of the expected files");
    let mut bounds: BTreeMap<(String, u64), PrefixBounds> = BTreeMap::new();
    for row in lp_rows.iter().chain(&device_rows) {
        bounds.entry((row.workload.clone(), row.seed)).or_insert_with(|| {
            let pods = read_arrivals(&openb, &row.workload, row.seed);
            let bounds = prefix_bounds(&nodes, &pods).unwrap();
            assert!(bounds.device.tight && bounds.lp.tight, "{} {}", row.workload, row.seed);
            bounds
        });
    }
    for row in &lp_rows {
        let lp = bounds[&(row.workload.clone(), row.seed)].lp;
        assert!(lp.pods.abs_diff(row.pods) <= 2, "{row:?} {lp:?}");
        assert_arrived(row, lp);
    }
    for row in &device_rows {
        // The search behind these rows stopped up to 4 pods before the exact value.
        let device = bounds[&(row.workload.clone(), row.seed)].device;
        assert!((row.pods..=row.pods + 4).contains(&device.pods), "{row:?} {device:?}");
        assert_arrived(row, device);
    }
}

/// The expected files round the arrived share to four decimals.
fn assert_arrived(row: &Row, bound: PrefixBound) {
    let difference = bound.arrived_percent / 100.0 - row.arrived;
    // A pod asks for at most 8 of 6,212 GPUs.
    let of_other_pods = bound.pods.abs_diff(row.pods) as f64 * 8.0 / 6212.0;
    assert!(difference.abs() <= 0.000_051 + of_other_pods, "{row:?} {bound:?}");
}

#[test]
fn cutting_devices_per_class_tightens_the_limit_where_pods_name_models() {
    let Some(openb) = openb_folder() else { return };
    let pods = read_arrivals(&openb, "gpuspec33", 44);
    let bounds = combined_prefix_bounds(&read_nodes(&openb), &pods).unwrap();
    let combined = bounds.combined.unwrap();
    assert!(combined.tight && combined.pods + 100 < bounds.limit().pods, "{bounds:?}");
}

fn openb_folder() -> Option<PathBuf> {
    let folder = std::env::var_os("DOVETAIL_TRACES").map(|traces| Path::new(&traces).join("openb"));
    if folder.is_none() {
        // Not by `eprintln!`, which the test harness hides for tests that pass.
        let skipped = "skipped: DOVETAIL_TRACES is not set, so the openb cluster cannot be read\n";
        std::io::stderr().write_all(skipped.as_bytes()).unwrap();
    }
    folder
}

fn expected_rows(openb: &Path, file: &str, before_pods: &str, before_arrived: &str) -> Vec<Row> {
    let text = std::fs::read_to_string(openb.join("expected").join(file)).unwrap();
    let number_after = |line: &str, mark: &str| -> String {
        let at = line.find(mark).unwrap_or_else(|| panic!("{file}: no '{mark}' in '{line}'"));
        line[at + mark.len()..].split_whitespace().next().unwrap().to_owned()
    };
    text.lines()
        .map(|line| {
            let mut words = line.split_whitespace();
            Row {
                workload: words.next().unwrap().to_owned(),
                seed: words.next().unwrap().parse().unwrap(),
                pods: number_after(line, before_pods).parse().unwrap(),
                arrived: number_after(line, before_arrived).parse().unwrap(),
            }
        })
        .collect()
}

fn records(path: &Path) -> Vec<BTreeMap<String, String>> {
    let mut reader = csv::Reader::from_path(path).unwrap();
    reader.deserialize().map(|record| record.unwrap()).collect()
}

fn integer(record: &BTreeMap<String, String>, column: &str) -> i64 {
    record[column].parse().unwrap_or_else(|_| panic!("{column} is '{}'", record[column]))
}

fn read_nodes(openb: &Path) -> Vec<BoundNode> {
    records(&openb.join("openb_node_list_gpu_node.csv"))
        .iter()
        .map(|record| BoundNode {
            cpu_milli: integer(record, "cpu_milli"),
            memory_bytes: integer(record, "memory_mib") << 20,
            gpu_count: integer(record, "gpu") as u32,
            model: Some(record["model"].clone()),
        })
        .collect()
}

fn read_arrivals(openb: &Path, workload: &str, seed: u64) -> Vec<BoundPod> {
    let pods: Vec<BoundPod> = records(&openb.join(format!("openb_pod_list_{workload}.csv")))
        .iter()
        .map(|record| BoundPod {
            cpu_milli: integer(record, "cpu_milli"),
            memory_bytes: integer(record, "memory_mib") << 20,
            gpu_count: integer(record, "num_gpu") as u32,
            gpu_milli: integer(record, "gpu_milli").min(1000),
            models: record
                .get("gpu_spec")
                .filter(|spec| !spec.is_empty())
                .map(|spec| spec.split('|').map(str::to_owned).collect())
                .unwrap_or_default(),
        })
        .collect();
    let file = File::open(openb.join("arrivals").join(format!("{workload}.csv.gz"))).unwrap();
    let mut text = String::new();
    GzDecoder::new(file).read_to_string(&mut text).unwrap();
    let prefix = format!("{seed},");
    let order = text.lines().find_map(|line| line.strip_prefix(&prefix)).unwrap();
    order.split_whitespace().map(|row| pods[row.parse::<usize>().unwrap()].clone()).collect()
}

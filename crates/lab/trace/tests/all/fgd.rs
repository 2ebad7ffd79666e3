//! Orders and typical pods against the published files, and against what cannot be computed.

use std::path::Path;

use dovetail_trace::fgd::{
    fgd_orders, read_arrival_order, read_node_order, trace_name, typical_pods,
};
use dovetail_trace::{
    ReadOptions, Trace, TraceCluster, TraceError, TraceJob, TraceNode, read_cluster, read_trace,
};

use crate::shared::traces;

const SEEDS: std::ops::RangeInclusive<i64> = 42..=46;

fn pod_files(openb: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(openb).expect("the folder of openb files");
    let mut files: Vec<_> = entries
        .map(|entry| entry.expect("entry").path())
        .filter(|path| path.to_string_lossy().contains("openb_pod_list_"))
        .collect();
    files.sort();
    assert_eq!(files.len(), 14);
    files
}

fn read_both(openb: &Path, pods: &Path) -> (Trace, TraceCluster) {
    let options = ReadOptions::default();
    let nodes = openb.join("openb_node_list_gpu_node.csv");
    let cluster = read_cluster(&nodes, &options).expect("nodes");
    (read_trace(pods, &options).expect("pods"), cluster)
}

#[test]
fn orders_equal_the_published_ones() {
    let Some(folder) = traces("orders_equal_the_published_ones") else { return };
    let openb = folder.join("openb");
    for file in pod_files(&openb) {
        let (trace, cluster) = read_both(&openb, &file);
        let name = trace_name(&file);
        let arrivals = openb.join("arrivals").join(format!("{name}.csv.gz"));
        for seed in SEEDS {
            let orders = fgd_orders(&trace.jobs, &cluster.nodes, seed).expect("orders");
            let published = read_arrival_order(&arrivals, seed, trace.jobs.len());
            assert_eq!(orders.arrivals, published.expect("arrivals"), "{name} {seed}");
            let file = openb.join("node_order.csv.gz");
            let published = read_node_order(&file, &name, seed, cluster.nodes.len());
            assert_eq!(orders.nodes, published.expect("node order"), "{name} {seed}");
        }
    }
}

#[test]
fn typical_pods_equal_the_published_ones() {
    let Some(folder) = traces("typical_pods_equal_the_published_ones") else { return };
    let openb = folder.join("openb");
    for file in pod_files(&openb) {
        let name = trace_name(&file);
        let trace = read_trace(&file, &ReadOptions::default()).expect("pods");
        let published = openb.join("typical_pods").join(format!("{name}.csv"));
        let published = std::fs::read_to_string(published).expect("typical pods");
        let computed: Vec<String> = typical_pods(&trace.jobs)
            .iter()
            .map(|pod| {
                let models = pod.gpu_models.join("|");
                format!("{},{},{},{models}", pod.cpu_milli, pod.gpu_count, pod.gpu_milli)
            })
            .collect();
        let rows: Vec<(&str, &str)> =
            published.lines().skip(1).map(|line| line.rsplit_once(',').expect("weight")).collect();
        assert_eq!(computed, rows.iter().map(|row| row.0).collect::<Vec<_>>(), "{name}");
        for (pod, (_, weight)) in typical_pods(&trace.jobs).iter().zip(&rows) {
            let weight: f64 = weight.parse().expect("weight");
            assert!((pod.weight / weight - 1.0).abs() < 1e-14, "{name}: {pod:?}");
        }
    }
}

fn pod(id: &str, gpu_count: u32) -> TraceJob {
    TraceJob {
        id: id.into(),
        pod_count: 1,
        cpu_milli: 1000,
        gpu_count,
        gpu_milli: if gpu_count == 0 { 0 } else { 1000 },
        ..TraceJob::default()
    }
}

fn node(name: &str, gpu_count: u32) -> TraceNode {
    TraceNode { name: name.into(), gpu_count, ..TraceNode::default() }
}

#[test]
fn typical_pods_stop_as_soon_as_95_percent_are_covered() {
    let kinds = |many: u32, few: u32| {
        let pods: Vec<TraceJob> =
            (0..many + few).map(|n| pod(&n.to_string(), 1 + u32::from(n < few))).collect();
        typical_pods(&pods).iter().map(|kind| (kind.gpu_count, kind.weight)).collect::<Vec<_>>()
    };
    assert_eq!(kinds(95, 5), [(1, 1.0)]);
    assert_eq!(kinds(94, 6), [(1, 0.94), (2, 0.06)]);
    assert_eq!(kinds(0, 0), []);
}

#[test]
fn demand_is_tuned_from_both_sides() {
    let nodes = [node("b", 8), node("a", 2)];
    for pod_count in [1, 5, 12, 14, 40] {
        let pods: Vec<TraceJob> = (0..pod_count).map(|n| pod(&format!("p{n:02}"), 1)).collect();
        let orders = fgd_orders(&pods, &nodes, 7).expect("orders");
        // 1.3 times ten GPUs, with pods of one GPU each.
        assert_eq!(orders.arrivals.len(), 13, "{pod_count} pods");
    }
}

#[test]
fn impossible_tasks_are_refused_not_tried_for_ever() {
    let refused = |pods: &[TraceJob], nodes: &[TraceNode]| {
        let result = fgd_orders(pods, nodes, 42);
        assert!(matches!(result, Err(TraceError::Protocol { .. })), "{result:?}");
    };
    refused(&[], &[node("a", 1)]);
    refused(&[pod("p", 0)], &[node("a", 1)]);
    refused(&[pod("p", 1)], &[]);
    refused(&[TraceJob { pod_count: 2, ..pod("p", 1) }], &[node("a", 1)]);
}

#[test]
fn bad_order_files_are_named() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let file = folder.join("order.csv");
    let message = |text: &str, of_nodes: bool| {
        std::fs::write(&file, text).expect("file");
        let result = if of_nodes {
            read_node_order(&file, "default", 42, 3)
        } else {
            read_arrival_order(&file, 42, 3)
        };
        result.expect_err(text).to_string()
    };
    let found = |text, of_nodes, parts: &[&str]| {
        let message = message(text, of_nodes);
        assert!(parts.iter().all(|part| message.contains(part)), "{text:?}: {message}");
    };
    found("41,0 1\n43,2\n", false, &["seed 42", "41, 43"]);
    found("", false, &["order.csv:1: the file is empty", "seed,row row"]);
    found("41,0\n42,0 3\n", false, &["order.csv:2: column `row`: `3`", "0 to 2"]);
    found("42,0 -1\n", false, &["order.csv:1: column `row`: `-1`", "negative"]);
    found("42,0  1\n", false, &["order.csv:1: column `row`: the cell is empty"]);
    found("nonsense\n", false, &["order.csv:1: `nonsense`", "seed,row row"]);
    found("default,42,0 1 1\n", true, &["order.csv:1: column `row`: `1`", "twice"]);
    found(
        "default,42,0 1\n",
        true,
        &["order.csv:1: the line names 2 of the nodes; expected all 3", "missing is row 2"],
    );
    found("cpu,42,0 1 2\n", true, &["trace default, seed 42"]);
    let twice = "42,0 1\n7,1\n42,1 0\n";
    found(twice, false, &["order.csv:3: column `seed`: `42` is a duplicate of line 1"]);
    found(
        "default,42,0 1 2\ndefault,42,2 1 0\n",
        true,
        &["order.csv:2: ", "a duplicate of line 1"],
    );
    found("x,0 1\n42,0\n", false, &["order.csv:1: column `seed`: `x` is not a number"]);
    // Also of a seed that nobody asked for.
    found("42,0\n7,1\n7,1\n", false, &["order.csv:3: column `seed`: `7` is a duplicate of line 2"]);
    found("42,0\n4.2e1,1\n", false, &["order.csv:2: column `seed`: `42` is a duplicate of line 1"]);
    found("default,-42,0 1 2\n", true, &["order.csv:1: column `seed`: `-42` is negative"]);
}

/// As the published orders of twelve traces repeat pods and those of two leave pods out.
#[test]
fn arrivals_repeat_pods_or_leave_pods_out_but_not_both() {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("arrivals_twice.csv");
    let read = |text: &str| {
        std::fs::write(&file, text).expect("file");
        read_arrival_order(&file, 42, 4).map_err(|error| error.to_string())
    };
    assert_eq!(read("42,2 0 1 0 3 0\n"), Ok(vec![2, 0, 1, 0, 3, 0]));
    assert_eq!(read("42,2 0\n"), Ok(vec![2, 0]));
    let error = read("41,0 1 2 3\n42,3 0 0 3\n").expect_err("a pod twice, two pods never");
    let told = "arrivals_twice.csv:2: column `row`: `0` is listed twice, but 2 of the pods are \
                left out; expected an order that repeats pods or leaves pods out, not both (the \
                first pod that is left out is row 1)";
    assert!(error.ends_with(told), "{error}");
}

/// Every extreme in an order file is taken or refused with its line.
#[test]
fn extremes_in_order_files_never_panic() {
    let extremes = [
        "",
        "0",
        "-1",
        "1e0",
        "2",
        "4294967295",
        "4294967296",
        "9223372036854775807",
        "18446744073709551616",
        "340282366920938463463374607431768211456",
        "0.5",
        "NaN",
        "+1",
        "-0",
        "1e-400",
    ];
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("extreme_order.csv");
    for extreme in extremes {
        for (text, is_nodes) in [
            (format!("7,0 1\n8,{extreme}\n"), false),
            (format!("7,0 1\n8,0 {extreme} 1\n"), false),
            (format!("7,0 1\n{extreme},0 1\n"), false),
            (format!("a,7,0 1\na,8,{extreme} 0\n"), true),
            (format!("{extreme},7,0 1\na,{extreme},1 0\n"), true),
        ] {
            std::fs::write(&path, &text).expect("written");
            let read = match is_nodes {
                true => read_node_order(&path, "a", 8, 2),
                false => read_arrival_order(&path, 8, 2),
            };
            match read {
                Ok(rows) => assert!(rows.iter().all(|row| *row < 2), "{text}"),
                Err(TraceError::Row(error)) => assert_eq!(error.line, 2, "{text}: {error}"),
                Err(TraceError::NoOrder { .. }) => {}
                Err(other) => panic!("{text}: {other}"),
            }
        }
    }
}

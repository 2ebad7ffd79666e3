//! The public traces as they are: every file reads whole, and known totals come out.

use std::path::Path;

use dovetail_trace::{
    ReadOptions, RecordedOutcome, TraceFormat, detect_format, read_cluster, read_trace,
};

use crate::shared::traces;

#[test]
fn every_public_table_reads_without_a_bad_row() {
    let Some(folder) = traces("every_public_table_reads_without_a_bad_row") else { return };
    let mut tables = 0;
    for entry in std::fs::read_dir(folder.join("jobs")).expect("job tables") {
        let path = entry.expect("entry").path();
        assert_eq!(detect_format(&path).expect("format"), TraceFormat::JobTable);
        let trace = read_trace(&path, &ReadOptions::default()).expect("table");
        let lines = std::fs::read_to_string(&path).expect("text").lines().count();
        assert_eq!(trace.jobs.len(), lines - 1, "{}", path.display());
        assert!(trace.notes.is_empty(), "{:?}", trace.notes);
        tables += 1;
    }
    assert_eq!(tables, 11);
}

#[test]
fn philly_totals() {
    let Some(folder) = traces("philly_totals") else { return };
    let path = folder.join("jobs/philly_pass_82k.csv");
    let trace = read_trace(&path, &ReadOptions::default()).expect("table");
    assert_eq!(trace.jobs.len(), 82_247);
    assert!(trace.jobs.iter().all(|job| job.outcome == RecordedOutcome::Completed));
    let gpu_ms: u128 = trace.jobs.iter().filter_map(|job| job.gpu_milli_ms()).sum::<u128>() / 1000;
    assert_eq!(gpu_ms / 3_600_000, 978_078);
    let gangs = trace.jobs.iter().filter(|job| job.total_gpus() > 8).count();
    assert_eq!(gangs, 289);
}

#[test]
fn kalos_gangs_are_pods() {
    let Some(folder) = traces("kalos_gangs_are_pods") else { return };
    let path = folder.join("jobs/acme_kalos_319.csv");
    let trace = read_trace(&path, &ReadOptions::default()).expect("table");
    let of_512 = trace.jobs.iter().filter(|job| job.total_gpus() == 512);
    assert_eq!(of_512.filter(|job| job.pod_count == 64 && job.gpu_count == 8).count(), 73);
}

#[test]
fn openb_totals() {
    let Some(folder) = traces("openb_totals") else { return };
    let openb = folder.join("openb");
    let cluster =
        |name: &str| read_cluster(&openb.join(name), &ReadOptions::default()).expect("nodes");
    let gpu_nodes = cluster("openb_node_list_gpu_node.csv");
    assert_eq!((gpu_nodes.nodes.len(), gpu_nodes.total_gpus()), (1213, 6212));
    assert_eq!(gpu_nodes.nodes.iter().map(|node| node.cpu_milli).sum::<i64>(), 107_018_000);
    assert_eq!(cluster("openb_node_list_all_node.csv").nodes.len(), 1523);
    let pods = openb.join("openb_pod_list_default.csv");
    let trace = read_trace(&pods, &ReadOptions::default()).expect("pods");
    assert_eq!(trace.jobs.len(), 8152);
    assert_eq!(trace.jobs.iter().filter(|job| job.start_ms.is_none()).count(), 897);
    assert_eq!(trace.jobs.iter().filter(|job| job.gpu_count == 0).count(), 1088);
    assert_eq!(trace.jobs.iter().filter(|job| job.is_share()).count(), 3078);
    assert_eq!(
        trace.jobs.iter().filter(|job| job.outcome == RecordedOutcome::Failed).count(),
        1870
    );
    let without_times = openb.join("openb_pod_list_multigpu50.csv");
    let trace = read_trace(&without_times, &ReadOptions::default()).expect("pods");
    assert!(!trace.known.submit_times && trace.jobs.iter().all(|job| job.duration_ms.is_none()));
    let wrong = read_trace(Path::new(&gpu_nodes.source), &ReadOptions::default());
    assert!(wrong.expect_err("nodes").to_string().contains("the file contains nodes"));
}

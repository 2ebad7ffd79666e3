//! Equality with published and reference figures, on the traces of `$DOVETAIL_TRACES`.

use std::{collections::BTreeMap, path::PathBuf};

use dovetail_trace::{ReadOptions, read_trace};

use super::*;

type Row = BTreeMap<String, String>;

fn traces(test: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("DOVETAIL_TRACES").map(PathBuf::from);
    if folder.is_none() {
        #[allow(clippy::print_stderr, reason = "a skipped test must say so")]
        {
            eprintln!("SKIPPED {test}: DOVETAIL_TRACES is not set, so there are no real traces");
        }
    }
    folder
}

fn rows(path: PathBuf) -> Vec<Row> {
    let mut reader = csv::Reader::from_path(&path).expect("a file of the traces");
    reader.deserialize().map(|row| row.expect("a row")).collect()
}

/// The jobs as `dovetail sim run` reads them.
fn jobs(path: PathBuf) -> Vec<BaselineJob> {
    let trace = read_trace(&path, &ReadOptions::default()).expect("a file of the traces");
    BaselineJob::of_trace(&trace).expect("jobs of whole GPUs with times")
}

fn number(row: &Row, column: &str) -> f64 {
    row[column].parse().expect("a number")
}

fn assert_near(value: f64, expected: f64, tolerance: f64, what: &str) {
    assert!((value - expected).abs() <= tolerance, "{what}: {value}, expected {expected}");
}

#[test]
fn published_muri_rows_are_reproduced() {
    let Some(folder) = traces("published_muri_rows_are_reproduced") else { return };
    let expected = folder.join("expected");
    let overheads = StartOverheads::open(&expected.join("muri_start_overhead_s.csv"));
    let overheads = overheads.expect("the published table");
    let mut compared = 0;
    for row in rows(expected.join("muri_published.csv")) {
        let order = match row["policy"].as_str() {
            "SRTF" => BaselineOrder::Srtf,
            "SRSF" => BaselineOrder::Srsf,
            "Tiresias" => BaselineOrder::Las,
            _ => continue,
        };
        let jobs = jobs(folder.join(format!("jobs/muri_{}.csv", row["trace"])));
        let (run, _) = replay(&jobs, &[8; 8], order, Some(&overheads));
        let what = format!("{} {}", row["trace"], row["policy"]);
        // The table prints ten significant digits or fewer.
        for (value, column) in [
            (run.metrics.average_jct_s, "avg_jct_s"),
            (run.metrics.p99_jct_s, "p99_jct_s"),
            (run.metrics.makespan_s, "makespan_s"),
        ] {
            let published = number(&row, column);
            assert_near(value, published, published * 1e-9, &format!("{what} {column}"));
        }
        compared += 1;
    }
    assert_eq!(compared, 6);
}

#[test]
fn reference_rows_without_overhead_are_reproduced() {
    let Some(folder) = traces("reference_rows_without_overhead_are_reproduced") else { return };
    let mut compared = 0;
    for row in rows(folder.join("expected/reference_jct.csv")) {
        let Ok(order) = row["policy"].parse::<BaselineOrder>() else { continue };
        let jobs = jobs(folder.join(format!("jobs/{}.csv", row["case"])));
        let nodes = number(&row, "nodes") as usize;
        let gpus = number(&row, "gpus_per_node") as u32;
        let (run, _) = replay(&jobs, &vec![gpus; nodes], order, None);
        let what = format!("{} {}", row["case"], row["policy"]);
        assert_eq!(run.metrics.jobs, number(&row, "n") as usize, "{what}");
        // The table prints four decimals.
        let tolerance_s = 1e-4;
        for (value, column) in [
            (run.metrics.average_jct_s, "avg_jct_s"),
            (run.metrics.p99_jct_s, "p99_jct_s"),
            (run.metrics.makespan_s, "makespan_end_s"),
        ] {
            assert_near(value, number(&row, column), tolerance_s, &format!("{what} {column}"));
        }
        compared += 1;
    }
    assert_eq!(compared, 6);
}

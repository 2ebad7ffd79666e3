//! What readers accept, and the place and reason they give for what they refuse.

use std::io::Write;
use std::num::NonZeroU32;

use dovetail_trace::{
    ReadOptions, RecordedOutcome, SwfProcessors, TraceError, TraceFormat, read_trace,
};
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::shared::{jobs, nodes, skipping};

const PODS: &str = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n";
const TABLE: &str = "job_id,submit_s,duration_s,num_gpu,nodes,status\n";

/// Reads `header` + a good row + `row`, and returns the error's text.
fn refusal(header: &str, good: &str, row: &str) -> String {
    let text = format!("{header}{good}\n{row}\n");
    let is_nodes = header.starts_with("sn") || header.starts_with("node_name");
    let result = if is_nodes {
        nodes(text.as_bytes(), &ReadOptions::default()).map(|_| ())
    } else {
        jobs(text.as_bytes(), &ReadOptions::default()).map(|_| ())
    };
    result.expect_err(row).to_string()
}

#[test]
fn pods_of_openb() {
    let text = format!(
        "{PODS}a,4000,512,1,460,T4|P100,LS,Succeeded,10,40,12\n\
         b,1000,0,0,700,T4,BE,Pending,5,99,\nc,1,1,2,1500,,,Failed,0,0,0\n"
    );
    let trace = jobs(text.as_bytes(), &ReadOptions::default()).expect("pods");
    let [a, b, c] = &trace.jobs[..] else { panic!("three pods") };
    assert_eq!((a.submit_ms, a.start_ms, a.duration_ms), (10_000, Some(12_000), Some(28_000)));
    assert_eq!(
        (a.memory_bytes, a.gpu_milli, a.outcome),
        (512 << 20, 460, RecordedOutcome::Completed)
    );
    assert_eq!(a.gpu_models, ["T4", "P100"]);
    assert_eq!((b.gpu_milli, b.gpu_models.len(), b.duration_ms), (0, 0, None));
    assert_eq!((c.gpu_milli, c.duration_ms, c.outcome), (1000, Some(0), RecordedOutcome::Failed));
}

#[test]
fn refusals_name_line_column_text_and_expectation() {
    let good = "a,4000,512,1,460,,LS,Running,10,40,12";
    let cases = [
        ("b,-4,512,1,460,,,Running,1,2,1", "jobs.csv:3: column `cpu_milli`: `-4` is negative"),
        ("b,4,5x,1,460,,,Running,1,2,1", "jobs.csv:3: column `memory_mib`: `5x` is not a number"),
        ("b,4,5,1.5,460,,,Running,1,2,1", "jobs.csv:3: column `num_gpu`: `1.5` is not whole"),
        ("b,4,5,1,0,,,Running,1,2,1", "jobs.csv:3: column `gpu_milli`: `0` requests nothing"),
        ("b,4,5,2,500,,,Running,1,2,1", "jobs.csv:3: column `gpu_milli`: `500` requests a part"),
        ("b,4,5,1,NaN,,,Running,1,2,1", "jobs.csv:3: column `gpu_milli`: `NaN` is not a finite"),
        ("b,4,5,1,1,A||B,,Running,1,2,1", "jobs.csv:3: column `gpu_spec`: `A||B` has an empty"),
        ("b,4,5,1,1,,,Gone,1,2,1", "jobs.csv:3: column `pod_phase`: `Gone` is not a pod phase"),
        (
            "b,4,5,1,1,,,Running,inf,2,1",
            "jobs.csv:3: column `creation_time`: `inf` is not a finite",
        ),
        ("b,4,5,1,1,,,Running,1,2,0", "jobs.csv:3: column `scheduled_time`: `0` is before"),
        (
            "b,4,5,1,1,,,Running,1,2,",
            "jobs.csv:3: column `scheduled_time`: the cell does not match",
        ),
        ("b,4,5,1,1,,,Running,3,2,3", "jobs.csv:3: column `deletion_time`: `2` is before"),
        ("b,99999999999999999999999,5,1,1,,,Running,1,2,1", "is too large"),
        ("a,4,5,1,1,,,Running,1,2,1", "jobs.csv:3: column `name`: `a` was already used on line 2"),
        (",4,5,1,1,,,Running,1,2,1", "jobs.csv:3: column `name`: the cell is empty"),
        ("b,4,5,1,1", "jobs.csv:3: `b,4,5,1,1` has 5 fields; expected 11"),
        ("b,4,5,1,1,,,Running,1,2,1,9", "has 12 fields; expected 11"),
        ("b\"c,4,5,1,1,,,Running,1,2,1", "has a quote inside a field"),
        ("\"b,4,5,1,1,,,Running,1,2,1", "has a quote that is not closed"),
    ];
    for (row, part) in cases {
        let message = refusal(PODS, good, row);
        assert!(message.contains(part) && message.contains("; expected "), "{row}: {message}");
        assert!(message.starts_with("jobs.csv:3: "), "{message}");
    }
}

#[test]
fn refusals_of_other_formats() {
    let good = "a,1,2.5,16,2,Pass";
    for (row, part) in [
        ("b,1,,1,,", "column `duration_s`: the cell is empty"),
        ("b,1,2,16,3,", "column `nodes`: `3` does not divide the"),
        ("b,1,2,0,0,", "column `nodes`: `0` does not divide the"),
        ("b,1,2,1,,maybe", "column `status`: `maybe` is not a known status"),
        ("b,-1,2,1,,", "column `submit_s`: `-1` is negative"),
        ("b,1e,2,1,,", "column `submit_s`: `1e` is not"),
        ("b,1,2,9999999999,,", "column `num_gpu`: `9999999999` is too large"),
    ] {
        let message = refusal(TABLE, good, row);
        assert!(message.contains(".csv:3: ") && message.contains(part), "{row}: {message}");
    }
    for (row, part) in [
        ("b,4,5,0,T4", "column `model`: `T4` needs a GPU"),
        ("a,4,5,1,T4", "column `sn`: `a` was already used"),
        ("b,4,5,-1,", "column `gpu`: `-1` is negative"),
    ] {
        let message = refusal("sn,cpu_milli,memory_mib,gpu,model\n", "a,1,1,1,T4", row);
        assert!(message.contains(".csv:3: ") && message.contains(part), "{row}: {message}");
    }
    let own = "job_id,duration_ms,gpu_count,gpu_milli,start_ms,submit_ms,pod_count\n";
    for (row, part) in [
        ("b,1,2,500,,0,1", "column `gpu_milli`: `500` does not match the number of GPUs"),
        ("b,1,0,,,0,1", "column `gpu_milli`: the cell is empty"),
        ("b,1,1,10,4,5,1", "column `start_ms`: `4` is before the submission"),
        ("b,1,1,10,5,5,0", "column `pod_count`: `0` is too small"),
    ] {
        let message = refusal(own, "a,,1,1000,,0,1", row);
        assert!(message.contains(".csv:3: ") && message.contains(part), "{row}: {message}");
    }
}

/// Whatever is wrong with a number, the message says the one range that the column has.
#[test]
fn a_column_has_one_range() {
    let century = "3162240000000";
    let own = "job_id,duration_ms,gpu_count,submit_ms,pod_count,cpu_milli,memory_bytes,estimate_ms,start_ms,deadline_ms\n";
    let job = ["b", "1", "1", "0", "1", "1", "1", "1", "1", "1"];
    let machine = "node_name,cpu_milli,memory_bytes,gpu_count,gpu_memory_bytes\n";
    let node = ["b", "1", "1", "1", "1"];
    let openb = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n";
    let pod = ["b", "1", "1", "1", "1000"];
    let table = [
        (own, &job[..], 1, "0", century),
        (own, &job, 2, "0", "1000000"),
        (own, &job, 3, "0", century),
        (own, &job, 4, "1", "1000000"),
        (own, &job, 5, "0", "1000000000"),
        (own, &job, 6, "0", "9007199254740992"),
        (own, &job, 7, "0", century),
        (own, &job, 8, "0", century),
        (own, &job, 9, "0", century),
        (machine, &node, 1, "0", "1000000000"),
        (machine, &node, 2, "0", "9007199254740992"),
        (machine, &node, 3, "0", "1024"),
        (machine, &node, 4, "1", "9007199254740992"),
        (openb, &pod, 3, "0", "1000000"),
        (openb, &pod, 4, "0", "1000000000"),
    ];
    for (header, row, column, lowest, highest) in table {
        let beyond = (highest.parse::<u64>().expect("a limit") + 1).to_string();
        for text in ["NaN", "x", "-1", "1.5", "0e999999999999", "18446744073709551616", &beyond] {
            let mut cells = row.to_vec();
            cells[column] = text;
            let message = refusal(header, &row.join(",").replace('b', "a"), &cells.join(","));
            let expected = format!("; expected a whole number from {lowest} to {highest}");
            assert!(message.ends_with(&expected), "{header}{}: {message}", cells.join(","));
        }
    }
}

#[test]
fn bad_headers() {
    let message =
        |text: &str| jobs(text.as_bytes(), &ReadOptions::default()).expect_err(text).to_string();
    for (text, part) in [
        ("", "jobs.csv:1: the file is empty; expected a header"),
        ("a,b\n1,2\n", "unknown format: header `a,b`"),
        ("job_id,submit_s,duration_s,num_gpu\n", "there is no row; expected at least one"),
        ("job_id,submit_s,num_gpu\na,1,1\n", "column `duration_s`: is missing"),
        ("job_id,submit_s,duration_s,service_s,num_gpu\n", "repeats duration_s"),
        ("job_id,submit_s,duration_s,num_gpu,num_gpu\n", "column `num_gpu`: duplicate"),
        ("job_id,duration_ms,gpu_count,colour\n", "column `colour`: is not a column"),
        ("name,num_gpu,gpu_milli,memory_mib\n", "column `cpu_milli`: is missing"),
    ] {
        assert!(message(text).contains(part), "{text:?}: {}", message(text));
    }
    let forced = ReadOptions { format: Some(TraceFormat::OpenbPods), ..ReadOptions::default() };
    let error = jobs(b"job_id,submit_s\n", &forced).expect_err("other format");
    assert!(error.to_string().contains("column `name`: is missing"), "{error}");
    assert!(error.is_bad_input());
}

#[test]
fn what_is_no_text_file_of_lines_has_its_own_message() {
    let old_mac = "job_id,submit_s,duration_s,num_gpu\ra,1,1,1\rb,1,1,1\r";
    let error = jobs(old_mac.as_bytes(), &ReadOptions::default()).expect_err("no line feed");
    assert!(
        error.to_string().starts_with("jobs.csv:1: lines end with a carriage return"),
        "{error}"
    );
    assert!(error.is_bad_input());
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let error = read_trace(folder, &ReadOptions::default()).expect_err("a folder");
    assert!(error.to_string().ends_with("is a directory; pass a file"), "{error}");
    assert!(!error.is_bad_input());
}

#[test]
fn the_limits_of_a_whole_cluster_and_of_a_whole_job_hold() {
    let header = "node_name,cpu_milli,memory_bytes,gpu_count\n";
    let machines: String = (0..977).map(|node| format!("n{node},0,0,1024\n")).collect();
    let text = format!("{header}{machines}");
    let error = nodes(text.as_bytes(), &ReadOptions::default()).expect_err("1000448 GPUs");
    let place = "nodes.csv:978: column `gpu_count`: `1024` exceeds 1000000 GPUs";
    assert!(error.to_string().starts_with(place), "{error}");
    let kept = nodes(text.as_bytes(), &skipping()).expect("the others");
    assert_eq!((kept.nodes.len(), kept.skipped.len()), (976, 1));
    let own = "job_id,duration_ms,gpu_count,pod_count,memory_bytes\n";
    for (row, part) in [
        ("b,1,1000000,2,0", "column `gpu_count`: `1000000` adds up to 2000000 GPUs over all pods"),
        (
            "b,1,0,129,9007199254740992",
            "column `memory_bytes`: `9007199254740992` adds up to 11619",
        ),
        ("b,1,0,1,9007199254740993", "column `memory_bytes`: `9007199254740993` is too large"),
        ("b,3162240000001,0,1,0", "column `duration_ms`: `3162240000001` is too large"),
    ] {
        let message = refusal(own, "a,1,1,1,0", row);
        assert!(message.starts_with(&format!("jobs.csv:3: {part}")), "{message}");
    }
    let message = refusal(header, "a,1,1,1", "b,1,1,1025");
    assert!(
        message.starts_with("nodes.csv:3: column `gpu_count`: `1025` is too large"),
        "{message}"
    );
}

#[test]
fn times_of_a_job_table_are_kept_to_the_microsecond() {
    let text = "job_id,submit_s,service_s,num_gpu\na,0.0000004,941386.6641905,1\nb,1,2.5e0,1\n";
    let trace = jobs(text.as_bytes(), &ReadOptions::default()).expect("jobs");
    let [a, b] = &trace.jobs[..] else { panic!("two jobs") };
    assert_eq!((a.submit_us(), a.duration_us()), (0, Some(941_386_664_191)));
    assert_eq!((a.submit_ms, a.duration_ms), (0, Some(941_386_664)));
    assert_eq!((b.duration_us(), b.exact), (Some(2_500_000), None));
}

#[test]
fn bad_rows_are_left_out_and_listed_only_on_request() {
    let text = format!("{TABLE}a,1,2,1,,\nb,x,2,1,,\n\nc,1\na,5,6,1,,\nd,1,2,1,,\n");
    let mut bytes = text.into_bytes();
    bytes.extend(b"\xff,1,2,1,,\ne,3,4,0,,killed\n\n\n");
    let trace = jobs(&bytes, &skipping()).expect("good rows remain");
    let ids: Vec<&str> = trace.jobs.iter().map(|job| job.id.as_str()).collect();
    assert_eq!(ids, ["a", "d", "e"]);
    let lines: Vec<u64> = trace.skipped.iter().map(|row| row.line).collect();
    assert_eq!(lines, [3, 4, 5, 6, 8]);
    assert_eq!(trace.skipped[0].column.as_deref(), Some("submit_s"));
    assert!(trace.skipped[4].reason.contains("UTF-8"));
    let error = jobs(&bytes, &ReadOptions::default()).expect_err("a bad row stops");
    assert!(matches!(&error, TraceError::Row(row) if row.line == 3), "{error}");
    let none = jobs(format!("{TABLE}b,x,2,1,,\n").as_bytes(), &skipping()).expect_err("no row");
    assert!(none.to_string().contains("no usable row (1 bad row skipped: line 2"), "{none}");
}

#[test]
fn every_repeated_name_points_at_the_row_that_counts() {
    let text = "job_id,submit_s,duration_s,num_gpu\na,1,1,1\na,2,1,1\na,3,1,1\n";
    let trace = jobs(text.as_bytes(), &skipping()).expect("one job");
    assert_eq!((trace.jobs.len(), trace.jobs[0].submit_ms, trace.skipped.len()), (1, 1000, 2));
    assert!(trace.skipped.iter().all(|row| row.reason.contains("line 2")), "{:?}", trace.skipped);
}

#[test]
fn gzip_line_ends_and_byte_order_mark() {
    let text = "\u{feff}job_id,submit_s,duration_s,num_gpu\r\na,0.5,2,1\r\nb,1,2,1";
    let plain = jobs(text.as_bytes(), &ReadOptions::default()).expect("plain");
    assert_eq!(plain.jobs[0].submit_ms, 500);
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text.as_bytes()).expect("gzip");
    let packed = encoder.finish().expect("gzip");
    assert_eq!(jobs(&packed, &ReadOptions::default()).expect("packed"), plain);
    for length in 2..packed.len() {
        let cut = jobs(&packed[..length], &ReadOptions::default());
        assert!(matches!(cut, Err(TraceError::Read { .. })), "cut at {length}: {cut:?}");
    }
}

const SWF: &str = "; Version: 2.2\n\
    1 0 5 60 16 -1 -1 32 120 2048 1 3 1 -1 2 -1 -1 -1\n\
    ; a comment between\n\
    2  10 -1 -1 -1 -1 -1 4 -1 -1 5 -1 -1 -1 -1 -1 -1 -1\n\
    1 0 5 30 16 -1 -1 16 120 2048 2 3 1 -1 2 -1 -1 -1\n";

#[test]
fn standard_workload_format() {
    let trace = jobs(SWF.as_bytes(), &ReadOptions::default()).expect("jobs");
    let [first, second] = &trace.jobs[..] else { panic!("two jobs") };
    assert_eq!((first.start_ms, first.duration_ms), (Some(5_000), Some(60_000)));
    assert_eq!((first.estimate_ms, first.memory_bytes), (Some(120_000), 2048 * 1024 * 16));
    assert_eq!((first.gpu_count, first.cpu_milli), (16, 0));
    assert_eq!((first.user.as_deref(), first.queue.as_deref()), (Some("3"), Some("2")));
    assert_eq!((second.gpu_count, second.outcome), (4, RecordedOutcome::Killed));
    assert_eq!((second.duration_ms, second.start_ms, second.user.as_deref()), (None, None, None));
    assert_eq!(trace.notes.len(), 1);
    // The same numbers, written with exponents.
    let written =
        SWF.replace(" -1 -1 5 -1", " -1 -1 50e-1 -1").replace(" 10 -1 -1", " 1e1 -1e0 -1");
    assert_ne!(written, SWF);
    let again = jobs(written.as_bytes(), &ReadOptions::default()).expect("jobs");
    assert_eq!(again.jobs, trace.jobs);
    let with = |swf_processors| {
        let options = ReadOptions { swf_processors, ..ReadOptions::default() };
        let trace = jobs(SWF.as_bytes(), &options).expect("jobs");
        (trace.jobs[0].gpu_count, trace.jobs[0].cpu_milli, trace.jobs[1].gpu_count)
    };
    assert_eq!(with(SwfProcessors::AsCpuCores), (0, 16_000, 0));
    let six = NonZeroU32::new(6).expect("six");
    assert_eq!(with(SwfProcessors::PerGpu(six)), (3, 16_000, 1));
}

#[test]
fn refusals_of_standard_workload_format() {
    let good = "1 0 5 60 16 -1 -1 16 120 -1 1 3 1 -1 2 -1 -1 -1";
    for (row, part) in [
        ("2 0 5 60 16 -1 -1 16", "has 8 fields; expected 18"),
        ("2 -1 5 60 16 -1 -1 16 120 -1 1 3 1 -1 2 -1 -1 -1", "column `submit_time`: `-1`"),
        ("2 0 5 -2 16 -1 -1 16 120 -1 1 3 1 -1 2 -1 -1 -1", "column `run_time`: `-2` is negative"),
        ("2 0 5 60 -1 -1 -1 -1 120 -1 1 3 1 -1 2 -1 -1 -1", "column `allocated_processors`"),
        ("2 0 5 60 16 -1 -1 16 120 -1 7 3 1 -1 2 -1 -1 -1", "column `status`: `7`"),
        ("2 0 5 60 16 x -1 16 120 -1 1 3 1 -1 2 -1 -1 -1", "column `average_cpu_time`: `x`"),
        ("1 0 5 60 16 -1 -1 16 120 -1 1 3 1 -1 2 -1 -1 -1", "already used on line 2"),
    ] {
        let message = refusal("; comment\n", good, row);
        assert!(message.contains(".csv:3: ") && message.contains(part), "{row}: {message}");
    }
}

#[test]
fn a_job_without_run_time_is_named_with_its_place_or_left_out() {
    let own = "job_id,duration_ms,gpu_count\na,5,1\nb,,1\nc,7,1\nd,,2\n";
    let swf = "; comment\n1 0 0 60 4 -1 -1 4 -1 -1 1 1 1 1 1 1 -1 -1\n\
               2 5 -1 -1 4 -1 -1 4 -1 -1 1 1 1 1 1 1 -1 -1\n";
    for (file, place, kept) in [
        (
            own,
            "jobs.csv:3: column `duration_ms`: the cell has no run time of job b",
            vec!["a", "c"],
        ),
        (swf, "jobs.csv:3: column `run_time`: `-1` has no run time of job 2", vec!["1"]),
    ] {
        let trace = jobs(file.as_bytes(), &ReadOptions::default()).expect("readable");
        let error = trace.clone().with_run_times(false, "a test").expect_err("jobs lack it");
        assert!(error.to_string().contains(place) && error.is_bad_input(), "{error}");
        let unknown = trace.jobs.len() - kept.len();
        let trace = trace.with_run_times(true, "a test").expect("some jobs have it");
        let names: Vec<&str> = trace.jobs.iter().map(|job| job.id.as_str()).collect();
        assert_eq!((names, trace.skipped.len()), (kept, unknown));
        assert_eq!((trace.skipped[0].line, trace.lines.len()), (3, trace.jobs.len()));
    }
    let none = jobs(b"job_id,duration_ms,gpu_count\na,,1\n", &ReadOptions::default());
    let error =
        none.expect("readable").with_run_times(true, "a test").expect_err("nothing is left");
    assert!(matches!(error, TraceError::NoRows { .. }), "{error}");
}

use std::collections::BTreeMap;
use std::io::{BufReader, Read};

use dovetail_account::ActivitySample;
use dovetail_cases::cases;
use proptest::prelude::*;

use super::*;

const HEADER: &str = "timestamp_s,pod,gpu,activity_percent,memory_bytes,namespace,node\n";
const STRICT: UsageFileOptions =
    UsageFileOptions { skip_bad_rows: false, latest_ms: 2_000_000_000_000 };
const LENIENT: UsageFileOptions = UsageFileOptions { skip_bad_rows: true, ..STRICT };

fn read(
    text: impl AsRef<[u8]>,
    options: &UsageFileOptions,
) -> Result<UsageSamples, UsageFileError> {
    read_usage_file(text.as_ref(), "usage.csv", options)
}

#[test]
fn columns_and_rows_stand_in_any_order() {
    let text = "\u{feff}activity_percent,\"gpu\",pod,timestamp_s,memory_bytes\r\n\
                7.5,0,b,60.0004,\r\n\r\n0,1,a,1970-01-01T02:02:00+02:00,1024\r\n4.999999999,\"0\",b,0,2e3\n";
    let found = read(text, &STRICT).unwrap();
    let series = |pod: &str, gpu: &str, rows: &[(u64, u32, Option<u64>)]| UsageSeries {
        namespace: None,
        pod: pod.to_owned(),
        gpu: gpu.to_owned(),
        node: None,
        activity: rows
            .iter()
            .map(|(at_ms, percent, _)| ActivitySample {
                at_ms: *at_ms,
                activity_micro_percent: *percent,
            })
            .collect(),
        memory_bytes: rows.iter().map(|(.., memory_bytes)| *memory_bytes).collect(),
        gpu_milli: 1000,
    };
    let expected = [
        series("a", "1", &[(120_000, 0, Some(1024))]),
        series("b", "0", &[(0, 4_999_999, Some(2_000)), (60_000, 7_500_000, None)]),
    ];
    assert_eq!(found.series, expected);
}

#[test]
fn a_bad_cell_is_named_with_its_place_and_the_way_out() {
    for (row, column, says) in [
        ("x,p,0,5,,n,m", "timestamp_s", "is not a number: write seconds since 1970"),
        ("NaN,p,0,5,,n,m", "timestamp_s", "is not a finite number"),
        ("-1,p,0,5,,n,m", "timestamp_s", "is negative"),
        ("2000000000.001,p,0,5,,n,m", "timestamp_s", "is in the future"),
        ("1700000000000,p,0,5,,n,m", "timestamp_s", "is in the future"),
        ("1e300,p,0,5,,n,m", "timestamp_s", "is too large"),
        ("2024-01-01 noon,p,0,5,,n,m", "timestamp_s", "is not a number"),
        ("2222-01-01T00:00:00Z,p,0,5,,n,m", "timestamp_s", "is in the future"),
        (",p,0,5,,n,m", "timestamp_s", "is empty"),
        ("1,,0,5,,n,m", "pod", "is empty: write a name"),
        ("1,a\u{7}b,0,5,,n,m", "pod", "has a control character"),
        ("1,p,,5,,n,m", "gpu", "is empty"),
        ("1,p,0,,,n,m", "activity_percent", "is empty"),
        ("1,p,0,NaN,,n,m", "activity_percent", "is not a finite number"),
        ("1,p,0,+Inf,,n,m", "activity_percent", "is not a finite number"),
        ("1,p,0,-0.5,,n,m", "activity_percent", "is negative: write 0 to 100"),
        ("1,p,0,100.000001,,n,m", "activity_percent", "exceeds 100"),
        (
            "1,p,0,9223372036854775794,,n,m",
            "activity_percent",
            "is a placeholder that drivers write",
        ),
        ("1,p,0,true,,n,m", "activity_percent", "is not a number"),
        ("1,p,0,5%,,n,m", "activity_percent", "is not a number"),
        ("1,p,0,5,-1,n,m", "memory_bytes", "is negative"),
        ("1,p,0,5,8GiB,n,m", "memory_bytes", "is not a number"),
        ("1,p,0,5,9223372036854775794,n,m", "memory_bytes", "is more than any GPU has"),
    ] {
        let error = read(format!("{HEADER}1,good,0,5,,n,m\n{row}\n"), &STRICT).unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with(&format!("usage.csv:3: column `{column}`: `")), "{row}: {text}");
        assert!(text.contains(says) && error.is_bad_input(), "{row}: {text}");
        assert!(!text.contains('\u{7}'), "{text}");
    }
    let long = format!("{HEADER}1,{},0,5,,n,m\n", "p".repeat(254));
    let text = read(long, &STRICT).unwrap_err().to_string();
    assert!(text.contains("longer than any name") && text.len() < 250, "{text}");
}

/// Every extreme in every column is taken or refused with its line.
#[test]
fn extremes_in_a_usage_file_never_panic() {
    const EXTREMES: [&str; 21] = [
        "+1",
        "-0",
        " 1",
        ".5",
        "1e-400",
        "",
        "0",
        "-1",
        "100",
        "100.0000001",
        "1e3",
        "1e-9",
        "1e400",
        "2000000000",
        "1125899906842624",
        "9223372036854775807",
        "18446744073709551616",
        "340282366920938463463374607431768211456",
        "0.0000000005",
        "NaN",
        "inf",
    ];
    let good = ["1", "p", "0", "5", "1000", "n", "m"];
    for column in 0..good.len() {
        for extreme in EXTREMES {
            let mut cells = good;
            cells[column] = extreme;
            // Two moments of one GPU, so that both meet in one series.
            let text = format!("{HEADER}2,p,0,5,1000,n,m\n{}\n", cells.join(","));
            match read(&text, &STRICT) {
                Ok(samples) => assert!(!samples.series.is_empty(), "{text}"),
                Err(error) => {
                    let error = error.to_string();
                    assert!(error.starts_with("usage.csv:3: "), "{text}: {error}");
                }
            }
        }
    }
}

#[test]
fn lines_that_end_with_a_carriage_return_alone_are_named() {
    let text = format!("{HEADER}1,p,0,5,,n,m\n").replace('\n', "\r");
    let error = read(text, &STRICT).unwrap_err();
    let told = error.to_string();
    assert!(told.starts_with("usage.csv:1: lines end with a carriage return alone"), "{told}");
    assert!(error.is_bad_input() && !told.contains('\r'), "{told}");
}

#[test]
fn a_bad_row_is_named_as_a_whole() {
    for (row, says) in [
        ("1,p,0,5", "has 4 cells: the header has 7"),
        ("1,p,0,5,,n,m,", "has 8 cells"),
        ("1,\"p,0,5,,n,m", "has a stray quote"),
        ("{\"timestamp_s\": 1}", "has a stray quote"),
    ] {
        let text = read(format!("{HEADER}{row}\n"), &STRICT).unwrap_err().to_string();
        assert!(text.starts_with("usage.csv:2: `") && text.contains(says), "{row}: {text}");
    }
    let text = read(b"timestamp_s,pod,gpu,activity_percent\n1,\xff,0,5\n", &STRICT).unwrap_err();
    assert!(text.to_string().contains("usage.csv:2: ") && text.to_string().contains("UTF-8"));
}

#[test]
fn headers_are_complete_and_known() {
    for (header, says) in [
        ("", "the file is empty"),
        ("timestamp_s,pod,gpu\n", "column `activity_percent` is missing"),
        ("timestamp_s,pod,gpu,activity_percent,pod\n", "column `pod`: duplicate"),
        (
            "value,timestamp_anon,container_ip\n",
            "unknown column `value`: the columns are timestamp_s, pod",
        ),
        ("\"timestamp_s\n", "the header has a stray quote"),
    ] {
        let text = read(header, &STRICT).unwrap_err().to_string();
        assert!(text.starts_with("usage.csv:1: ") && text.contains(says), "{header}: {text}");
    }
    let none = read(HEADER, &STRICT).unwrap_err().to_string();
    assert_eq!(none, "usage.csv: no usable sample: add at least one valid row");
}

#[test]
fn rows_that_disagree_are_bad_and_equal_rows_count_once() {
    let equal = format!("{HEADER}1,p,0,5,,n,\n1,p,0,5,,n,m\n1,p,1,6,,n,m\n1,p,0,5,,o,m\n");
    let found = read(equal, &STRICT).unwrap();
    assert_eq!((found.series.len(), found.duplicate_rows), (3, 1));
    let other = format!("{HEADER}2,p,0,5,,n,m\n1,p,0,5,,n,m\n1,p,0,6,,n,m\n");
    let text = read(&other, &STRICT).unwrap_err().to_string();
    assert!(text.starts_with("usage.csv:4: column `pod`: `p` has another value"), "{text}");
    assert!(text.contains("on line 3"), "{text}");
    let found = read(&other, &LENIENT).unwrap();
    assert_eq!((found.series[0].activity.len(), found.skipped_rows), (2, 1));
    let moved = read(format!("{HEADER}1,p,0,5,,n,m\n2,p,0,5,,n,k\n"), &STRICT).unwrap_err();
    assert!(
        moved.to_string().contains("usage.csv:3: column `node`: `k` differs from `m`"),
        "{moved}"
    );
}

#[test]
fn bad_rows_that_are_left_out_are_counted_and_the_first_are_listed() {
    let mut text = HEADER.to_owned();
    for row in 0..500 {
        text += if row % 2 == 0 { "1,p,0,NaN,,n,m\n" } else { "nobody,knows\n" };
    }
    let all_bad = read(&text, &LENIENT).unwrap_err();
    assert!(all_bad.to_string().contains("(500 bad rows skipped)"), "{all_bad}");
    let found = read(text + "7,p,0,5,,n,m", &LENIENT).unwrap();
    assert_eq!((found.skipped_rows, found.skipped.len()), (500, MAX_LISTED_ROWS));
    assert_eq!(found.skipped[1].line, 3);
    assert_eq!(found.series[0].activity.len(), 1);
}

#[test]
fn a_line_without_end_costs_no_memory_and_stops_the_reader() {
    // What the reader takes in is counted: a gigabyte would show.
    struct Counted<R>(R, u64);
    impl<R: Read> Read for Counted<R> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let count = self.0.read(buffer)?;
            self.1 += count as u64;
            Ok(count)
        }
    }
    let endless = HEADER.as_bytes().chain(std::io::repeat(b'7').take(1 << 30));
    let mut counted = Counted(endless, 0);
    let error = read_usage_file(BufReader::new(&mut counted), "usage.csv", &LENIENT).unwrap_err();
    assert!(error.to_string().starts_with("usage.csv:2: the line is longer than"), "{error}");
    assert!(counted.1 < 4 * MAX_LINE_BYTES, "{} bytes were read", counted.1);
}

/// Rows by series and time, values as whole percent.
type World = BTreeMap<(u8, u8), BTreeMap<u32, u8>>;

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn what_was_written_is_read_whatever_the_order(
        world in prop::collection::btree_map(
            (0u8..4, 0u8..3),
            prop::collection::btree_map(0u32..100_000, 0u8..=100, 1..20),
            1..8,
        ),
        mix in any::<u64>(),
        double in any::<bool>(),
    ) {
        let world: World = world;
        let mut rows: Vec<String> = Vec::new();
        for ((pod, gpu), samples) in &world {
            rows.extend(samples.iter().map(|(at_s, percent)| format!("{at_s},p{pod},{gpu},{percent}")));
        }
        if double {
            rows.extend(rows.clone());
        }
        rows.sort_by_key(|row| row.bytes().fold(mix | 1, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        }));
        let text = format!("timestamp_s,pod,gpu,activity_percent\n{}\n", rows.join("\n"));
        let found = read(text, &STRICT).unwrap();
        let samples: usize = world.values().map(BTreeMap::len).sum();
        prop_assert_eq!(found.duplicate_rows, if double { samples as u64 } else { 0 });
        prop_assert_eq!(found.series.len(), world.len());
        for (series, ((pod, gpu), samples)) in found.series.iter().zip(&world) {
            prop_assert_eq!((&series.pod, &series.gpu), (&format!("p{pod}"), &gpu.to_string()));
            let read = series.activity.iter().map(|sample| (sample.at_ms, sample.activity_micro_percent));
            let written = samples.iter().map(|(at_s, p)| (u64::from(*at_s) * 1000, u32::from(*p) * 1_000_000));
            prop_assert!(read.eq(written));
        }
    }

    #[test]
    fn garbage_is_refused_or_counted_and_never_a_panic(
        rows in prop::collection::vec(
            prop_oneof![
                prop::collection::vec(any::<u8>(), 0..60),
                "[-+0-9eE.,\"nNaAinf ]{0,40}".prop_map(String::into_bytes),
                Just(b"1,p,0,5,,n,m".to_vec()),
            ],
            0..20,
        ),
    ) {
        let mut text = HEADER.as_bytes().to_vec();
        for row in rows {
            text.extend(row);
            text.push(b'\n');
        }
        let lenient = read(&text, &LENIENT);
        if let Ok(found) = &lenient {
            let samples: u64 = found.series.iter().map(|series| series.activity.len() as u64).sum();
            let lines = text.split(|byte| *byte == b'\n');
            let rows = lines.filter(|line| !line.is_empty() && *line != b"\r").count() as u64 - 1;
            prop_assert_eq!(samples + found.skipped_rows + found.duplicate_rows, rows);
        }
        if let Err(error) = read(&text, &STRICT) {
            prop_assert!(error.to_string().starts_with("usage.csv"));
            prop_assert!(error.is_bad_input());
        }
    }
}

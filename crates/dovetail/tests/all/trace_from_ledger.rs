//! A ledger as a trace: what GPUs were, whatever scheduled them.

use std::collections::BTreeMap;

use dovetail_account::device_time::Span;
use dovetail_store::{Address, Store};
use dovetail_testkit::PostgresServer;
use dovetail_trace::{ReadOptions, UnseenEnds, read_cluster, read_trace};
use serde_json::json;

use crate::ledger_world::{START_MS, STEP_MS, World};
use crate::program::Folder;

fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(future)
}

/// Thirty hours of the small world, but for what was not read.
fn fill(address: &Address, world: &World, read: &[Span]) {
    run(async {
        let mut store = Store::open(address).await.expect("a ledger");
        for span in read {
            store.keep(&world.reading(*span), world.period().to_ms).await.expect("kept");
        }
        store.close().await;
    });
}

#[test]
fn a_ledger_becomes_a_trace_of_the_same_gpu_time() {
    let folder = Folder::new();
    let server = PostgresServer::start();
    let file = Address::File(folder.path("ledger.db"));
    let ledgers = [(file, "ledger.db".to_owned())].into_iter();
    let on_server = server.iter().map(|server| (Address::Server(server.url()), server.url()));
    for (address, name) in ledgers.chain(on_server) {
        let world = World::new("west", 5);
        let hour_ms = 3_600_000;
        let gap = Span { from_ms: START_MS + 7 * hour_ms, to_ms: START_MS + 8 * hour_ms };
        let before = Span { to_ms: gap.from_ms, ..world.period() };
        let after = Span { from_ms: gap.to_ms, ..world.period() };
        fill(&address, &world, &[before, after]);
        let call = format!(
            "trace export --from-ledger {name} --period 28h --until 2024-10-05T05:00:00Z --to jobs.csv \
             --to-nodes nodes.csv"
        );
        let told = folder.json(&call);
        let trace = read_trace(&folder.path("jobs.csv"), &ReadOptions::default());
        let trace = trace.expect("jobs.csv is a trace");
        // The same time by pod, counted step by step of the world.
        let asked = Span { from_ms: START_MS + hour_ms, to_ms: START_MS + 29 * hour_ms };
        let mut expected: BTreeMap<String, i128> = BTreeMap::new();
        for part in [Span { to_ms: gap.from_ms, ..asked }, Span { from_ms: gap.to_ms, ..asked }] {
            for ((pod, _), gpu_milli_ms) in world.times(part) {
                let plain = |pod: String| pod.replace('\0', "?");
                let Some(pod) = pod.map(plain) else { continue };
                *expected.entry(pod).or_default() += gpu_milli_ms;
            }
        }
        let mut found: BTreeMap<String, i128> = BTreeMap::new();
        for job in &trace.jobs {
            let name = job.id.split_once('/').expect("namespace/pod").1;
            let pod = name.split('#').next().unwrap_or_default().to_owned();
            *found.entry(pod).or_default() += job.gpu_milli_ms().expect("a run time") as i128;
            assert_eq!((job.submit_ms % STEP_MS, job.start_ms), (0, None));
        }
        assert_eq!(found, expected);
        let hours = expected.values().sum::<i128>() as f64 / 3.6e9;
        assert_eq!((&told["gpu_hours"], &told["hours_never_read"]), (&json!(hours), &json!(1.0)));
        // What runs into the gap or the end of the period is marked, and only that or the ends of
        // devices.
        let end_ms = gap.from_ms - asked.from_ms;
        let into_gap = |job: &&dovetail_trace::TraceJob| {
            job.submit_ms + job.duration_ms.unwrap_or(0) == end_ms
        };
        assert!(trace.jobs.iter().filter(into_gap).count() > 0);
        let is_marked = |cut: UnseenEnds| matches!(cut, UnseenEnds::End | UnseenEnds::Both);
        assert!(trace.jobs.iter().filter(into_gap).all(|job| is_marked(job.cut)));
        assert!(trace.jobs.iter().any(|job| job.cut == UnseenEnds::Nowhere));
        assert!(trace.known.cuts && trace.known.cpu && !trace.known.gpu_models);

        let nodes = read_cluster(&folder.path("nodes.csv"), &ReadOptions::default());
        let nodes = nodes.expect("nodes.csv has machines").nodes;
        let about = |place: usize| {
            let node = &nodes[place];
            (node.gpu_count, node.cpu_milli, node.gpu_model.as_deref())
        };
        assert_eq!([about(0), about(2)], [(2, 64_000, Some("H100")), (2, 64_000, None)]);
        // And it runs.
        let replay = "sim run --protocol timed --jobs jobs.csv --nodes nodes.csv --order fifo-skip";
        let done = folder.call(replay);
        assert_eq!(done.code, Some(0), "{}", done.err);
    }
}

#[test]
fn a_ledger_that_has_no_such_trace_says_why() {
    let folder = Folder::new();
    let world = World::new("west", 5);
    let address = Address::File(folder.path("ledger.db"));
    fill(&address, &world, &[world.period()]);
    let other = World::new("east", 6);
    fill(&address, &other, &[other.period()]);
    let export = "trace export --to out.csv --from-ledger";
    for (call, code, expected) in [
        (format!("{export} none.db"), 1, "none.db: file does not exist"),
        (format!("{export} mysql://a:secret@b/c"), 2, "--from-ledger: ledger mysql://a@b/c"),
        (format!("{export} ledger.db"), 2, "east, west"),
        (format!("{export} ledger.db --cluster north"), 2, "the ledger, which has east, west"),
        (format!("{export} ledger.db --cluster west --until soon"), 2, "--until"),
        (format!("{export} ledger.db --cluster west --period 1h"), 1, "had no allocated GPUs"),
        ("trace export --to ledger.db --from-ledger ledger.db".to_owned(), 2, "both name"),
        // Each of these is of a ledger, and a file with jobs has no such thing.
        ("trace export jobs.csv --to out.csv --period 5h".to_owned(), 2, "--period"),
        (
            "trace export jobs.csv --to out.csv --until 2024-10-05T05:00:00Z".to_owned(),
            2,
            "--until",
        ),
        ("trace export jobs.csv --to out.csv --cluster west".to_owned(), 2, "--cluster"),
        ("trace export jobs.csv --to out.csv --to-nodes n.csv".to_owned(), 2, "--to-nodes"),
    ] {
        let done = folder.call(&call);
        assert_eq!(done.code, Some(code), "{call}: {}", done.err);
        assert!(done.err.contains(expected), "{call}: {}", done.err);
        assert!(!done.err.contains("secret"), "{call}: {}", done.err);
    }
    assert!(!folder.has("out.csv"));
}

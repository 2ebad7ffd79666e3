//! How busy GPUs were: readings that overlap count a moment once, and those that follow each other
//! add up.

use dovetail_account::device_time::Span;
use dovetail_store::{
    Address, Detail, ReadNode, ReadPod, ReadUsed, Reading, SumQuery, USED_SLOT_MS,
};

use crate::databases::{open, run};

/// 2026-11-18T00:00:00Z.
const BEGIN_MS: u64 = 1_794_960_000_000;
const MINUTE_MS: u64 = 60_000;

/// A reading of some minutes with used time by slot.
fn reading(from_minute: u64, to_minute: u64, slots: &[(u64, i64, i64)]) -> Reading {
    let at = |minute: u64| BEGIN_MS + minute * MINUTE_MS;
    let used = |(slot, measured, used): &(u64, i64, i64)| ReadUsed {
        node: 0,
        pod: 0,
        slot_ms: BEGIN_MS + slot * USED_SLOT_MS,
        measured_gpu_milli_ms: *measured,
        used_gpu_milli_ms: *used,
    };
    Reading {
        cluster: "west".to_owned(),
        source: "exporters".to_owned(),
        span: Span { from_ms: at(from_minute), to_ms: at(to_minute) },
        nodes: vec![ReadNode { name: "a".to_owned(), ..ReadNode::default() }],
        pods: vec![ReadPod { namespace: "ml".into(), name: "p".into(), ..ReadPod::default() }],
        used: slots.iter().map(used).collect(),
        ..Reading::default()
    }
}

#[test]
fn usage_counts_a_moment_once_however_it_was_read() {
    let folder = tempfile::tempdir().unwrap();
    run(async {
        let mut store = open(&Address::File(folder.path().join("ledger.db"))).await;
        let mut sums = Vec::new();
        for reading in [
            reading(0, 10, &[(0, 300, 100), (1, 300, 300)]),
            // From the begin of the second slot: it is read again, and idle this time.
            reading(5, 13, &[(1, 300, 0), (2, 180, 150)]),
            // From within the third slot: the rest of it.
            reading(13, 15, &[(2, 120, 0)]),
        ] {
            store.keep(&reading, BEGIN_MS + 60 * MINUTE_MS).await.unwrap();
            let hour = BEGIN_MS / (60 * MINUTE_MS);
            let detail = Detail { pod: true, node: true, ..Detail::default() };
            let question = SumQuery { cluster: None, from_hour: hour, to_hour: hour + 1, detail };
            let rows = store.used(&question).await.unwrap();
            let [row] = &rows[..] else { panic!("{rows:?}") };
            assert_eq!((row.of.pod.as_deref(), row.of.node.as_deref()), (Some("p"), Some("a")));
            assert_eq!(row.of.party.as_ref().unwrap().namespace, "ml");
            sums.push((row.of.gpu_milli_ms, row.used_gpu_milli_ms));
        }
        assert_eq!(sums, [(600, 400), (780, 250), (900, 250)]);
        let more = reading(0, 5, &[(0, 1, 2)]);
        let told = store.keep(&more, BEGIN_MS + 60 * MINUTE_MS).await.unwrap_err();
        assert!(told.to_string().contains("more than was measured"), "{told}");
        store.close().await;
    });
}

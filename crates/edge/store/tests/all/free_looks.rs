//! Why what was free was free: causes that objects told stand in the ledger, however and in which
//! order it is filled.

use std::collections::BTreeMap;

use dovetail_account::device_time::{DeviceInterval, DeviceState, Span};
use dovetail_account::rollup::{DAY_MS, FreeLook, HOUR_MS};
use dovetail_model::FreeCause;
use dovetail_store::{
    Detail, HistoryHour, ReadDevice, ReadFree, ReadNode, ReadPod, Reading, Retention, Store,
    SumQuery,
};

use crate::databases::{Databases, open, run};
use crate::world::{START_HOUR, START_MS};

const MINUTE_MS: u64 = 60_000;
const HOURS: u64 = 3;

/// Two nodes of two GPUs for three hours. Of the first node one GPU is free all the time, the other
/// from 1:30; the second is free throughout.
fn reading(cluster: &str, from_minute: u64, to_minute: u64, looks: &[usize]) -> Reading {
    let at = |minute: u64| START_MS + minute * MINUTE_MS;
    let span = Span { from_ms: at(from_minute), to_ms: at(to_minute) };
    let within = |from: u64, to: u64, state, holder| {
        let span = Span { from_ms: at(from).max(span.from_ms), to_ms: at(to).min(span.to_ms) };
        let signal = None;
        let interval = DeviceInterval { span, gpu_milli: 1000, state, holder, signal };
        (span.from_ms < span.to_ms).then_some(interval)
    };
    let free = DeviceState::Free(None);
    let intervals = |node: usize, gpu: usize| match (node, gpu) {
        (0, 1) => [within(0, 90, DeviceState::Idle, Some(0)), within(90, 180, free, None)],
        _ => [within(0, 180, free, None), None],
    };
    let device = |(node, gpu): (usize, usize)| ReadDevice {
        node,
        name: format!("GPU-{gpu}"),
        intervals: intervals(node, gpu).into_iter().flatten().collect(),
    };
    let all = all_looks();
    Reading {
        cluster: cluster.to_owned(),
        source: "http://prometheus.example".to_owned(),
        span,
        nodes: ["a", "b"]
            .map(|name| ReadNode { name: name.to_owned(), ..ReadNode::default() })
            .into(),
        pods: vec![ReadPod { namespace: "ml".into(), name: "p".into(), ..ReadPod::default() }],
        devices: [(0, 0), (0, 1), (1, 0), (1, 1)].map(device).into(),
        free: looks.iter().map(|place| all[*place].clone()).collect(),
        ..Reading::default()
    }
}

/// What was said, in the order in which it was.
fn all_looks() -> Vec<ReadFree> {
    let look = |node, from: u64, to: u64, gpu_milli: &[(FreeCause, i64)]| ReadFree {
        node,
        look: FreeLook {
            span: Span { from_ms: START_MS + from * MINUTE_MS, to_ms: START_MS + to * MINUTE_MS },
            gpu_milli: gpu_milli.to_vec(),
        },
    };
    vec![
        look(0, 0, 40, &[(FreeCause::Quota, 1000)]),
        // More than exporters see as free, and across an hour.
        look(0, 40, 80, &[(FreeCause::StrandedByCpu, 500), (FreeCause::NoDemand, 9000)]),
        // Nothing was free, and yet something was.
        look(0, 80, 100, &[]),
        look(0, 100, 180, &[(FreeCause::GangShort, 1500)]),
        look(1, 30, 90, &[(FreeCause::NoDemand, 2000)]),
        // A cause that ledgers of earlier versions do not have.
        look(1, 90, 150, &[(FreeCause::LayoutRest, 2000)]),
    ]
}

/// GPU-minutes by cause, worked out by hand.
fn expected() -> BTreeMap<String, i128> {
    let minutes = [
        ("idle", 90),
        ("free_quota", 40),
        ("free_stranded_by_cpu", 20),
        // The rest of the first node's GPU for 40 minutes, and two for an hour.
        ("free_no_demand", 20 + 120),
        ("free_layout_rest", 120),
        ("free_gang_short", 120),
        // From 1:20 one and from 1:30 two, until 1:40; half a GPU from then on; an hour of the
        // second node.
        ("free_of_unknown_cause", 10 + 20 + 40 + 120),
    ];
    minutes.into_iter().map(|(name, minutes)| (name.to_owned(), minutes)).collect()
}

async fn minutes_by_cause(store: &mut Store, cluster: &str) -> BTreeMap<String, i128> {
    let mut found = BTreeMap::new();
    let (from_hour, to_hour) = (START_HOUR, START_HOUR + HOURS);
    let detail = Detail { node: true, ..Detail::default() };
    let question = SumQuery { cluster: Some(cluster.to_owned()), from_hour, to_hour, detail };
    for row in store.sums(&question).await.unwrap() {
        if row.gpu_milli_ms > 0 {
            *found.entry(row.paid.name()).or_default() += row.gpu_milli_ms / 60_000_000;
        }
    }
    found
}

/// Every cause is kept and adds up in a ledger that an earlier version wrote.
pub(crate) async fn causes_are_kept_in(store: &mut Store) {
    let now_ms = START_MS + HOURS * HOUR_MS;
    store.keep(&reading("later", 0, 180, &[0, 1, 2, 3, 4, 5]), now_ms).await.unwrap();
    assert_eq!(minutes_by_cause(store, "later").await, expected());
}

#[test]
fn causes_are_kept_whatever_is_read_again_and_by_whom() {
    let databases = Databases::start();
    for address in &databases.addresses {
        run(async {
            let mut store = open(address).await;
            let now_ms = START_MS + HOURS * HOUR_MS;
            // All at once; round by round with edges read again; devices first and again when
            // something was said of them; everything read again by somebody who looked at nothing.
            let fills: [&[(u64, u64, &[usize])]; 4] = [
                &[(0, 180, &[0, 1, 2, 3, 4, 5])],
                &[(0, 40, &[0]), (35, 100, &[0, 1, 2, 4]), (95, 180, &[2, 3, 5])],
                &[(0, 180, &[]), (170, 180, &[3]), (110, 180, &[3, 5]), (0, 120, &[0, 1, 2, 4])],
                &[(0, 180, &[0, 1, 2, 3, 4, 5]), (0, 180, &[]), (55, 65, &[])],
            ];
            for (place, fill) in fills.into_iter().enumerate() {
                let cluster = format!("c{place}");
                for (from, to, looks) in fill {
                    let reading = reading(&cluster, *from, *to, looks);
                    store.keep(&reading, now_ms).await.unwrap();
                }
                assert_eq!(minutes_by_cause(&mut store, &cluster).await, expected(), "{place}");
                // Devices have them too, and again nothing changes.
                let hour = HistoryHour::of(&mut store, &cluster, START_HOUR + 1).await.unwrap();
                let causes = hour.devices.iter().flat_map(|device| &device.intervals);
                let free = DeviceState::Free(Some(FreeCause::NoDemand));
                assert!(causes.filter(|interval| interval.state == free).count() >= 2);
                let again = reading(&cluster, 0, 180, &[0, 1, 2, 3, 4, 5]);
                let kept = store.keep(&again, now_ms).await.unwrap();
                assert_eq!((kept.device_hours, kept.charges), (0, 0), "{place}");
            }
            // They go with the devices that they are of.
            let later_ms = START_MS + 40 * DAY_MS;
            Retention::default().apply(&mut store, later_ms).await.unwrap();
            assert_eq!(minutes_by_cause(&mut store, "c0").await, expected());
        });
    }
}

#[test]
fn what_cannot_be_free_is_refused() {
    let databases = Databases::start();
    run(async {
        let mut store = open(&databases.addresses[0]).await;
        let now_ms = START_MS + HOURS * HOUR_MS;
        type Spoil = fn(&mut ReadFree);
        let spoils: [(Spoil, &str); 3] = [
            (|free| free.node = 7, "on a node that is missing"),
            (|free| free.look.span.to_ms += HOUR_MS, "after the period"),
            (
                |free| free.look.gpu_milli = vec![(FreeCause::Quota, -1)],
                "a free amount is out of range",
            ),
        ];
        for (spoil, expected) in spoils {
            let mut spoiled = reading("c", 0, 180, &[3]);
            spoil(&mut spoiled.free[0]);
            let told = store.keep(&spoiled, now_ms).await.unwrap_err().to_string();
            assert!(told.contains(expected), "{told}");
        }
    });
}

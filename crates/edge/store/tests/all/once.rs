//! Every second counts once, whatever comes twice, late, in any order or not at all.

use std::cell::Cell;
use std::collections::BTreeMap;

use dovetail_account::device_time::Span;
use dovetail_account::rollup::{DAY_MS, HOUR_MS};
use dovetail_cases::cases;
use dovetail_store::{
    Address, Detail, LedgerChanges, Reading, Retention, Store, StoreError, SumRow,
};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use crate::databases::{Databases, open, run};
use crate::world::{START_HOUR, START_MS, STEP_MS, World, everything, mixed, question};

const FINEST: Detail = Detail { workload: true, group: true, pod: true, node: true };

/// Time by pod, or nobody, and state.
type Times = BTreeMap<(Option<String>, String), i128>;

/// Time and costs under each method, of the rows that have them.
fn added(rows: &[SumRow]) -> (Times, Vec<i128>) {
    let (mut times, mut costs) = (Times::new(), vec![0; 5]);
    for row in rows {
        if row.gpu_milli_ms > 0 {
            let key = (row.pod.as_deref().map(str::to_owned), row.paid.name());
            *times.entry(key).or_default() += row.gpu_milli_ms;
        }
        for (sum, cost) in costs.iter_mut().zip(row.costs) {
            *sum += i128::from(cost.unwrap_or_default().usd_micros);
        }
    }
    (times, costs)
}

async fn is_the_truth(store: &mut Store, world: &World) {
    let rows = store.sums(&question(world, FINEST, world.hours)).await.unwrap();
    let (times, costs) = added(&rows);
    assert_eq!(times, world.times(world.period()));
    assert_eq!(costs, vec![world.price(world.period()); 5]);
    // Days are their hours, to the ms and the micro-dollar.
    let day = Span { from_ms: START_MS, to_ms: START_MS + DAY_MS };
    let by_job = Detail { workload: true, group: true, ..Detail::default() };
    for detail in [by_job, Detail::default()] {
        let rows = store.sums(&question(world, detail, 24)).await.unwrap();
        let (_, costs) = added(&rows);
        assert_eq!(costs, vec![world.price(day); 5]);
        let time: i128 = rows.iter().map(|row| row.gpu_milli_ms).sum();
        assert_eq!(time, world.times(day).values().sum::<i128>());
        let hours = Detail { pod: true, ..detail };
        let hours = store.sums(&question(world, hours, 24)).await.unwrap();
        let charges = |rows: &[SumRow]| rows.iter().map(|row| row.charges).sum::<u64>();
        assert_eq!(charges(&rows), charges(&hours));
    }
    // What has no price is unknown, and not nothing.
    let unpriced = rows.iter().filter(|row| row.node.as_deref() == Some("node-2"));
    assert!(unpriced.clone().count() > 0);
    assert!(unpriced.clone().all(|row| row.costs == [None; 5]));
}

fn some_windows(hours: u64) -> impl Strategy<Value = Vec<(u64, u64)>> {
    let steps = hours * HOUR_MS / STEP_MS;
    prop::collection::vec((0..steps, 1..steps / 2), 0..8)
}

#[test]
fn readings_in_any_order_leave_what_one_reading_leaves() {
    let databases = Databases::start();
    for (place, address) in databases.addresses.iter().enumerate() {
        let mut runner = TestRunner::new(cases(if place == 0 { 24 } else { 12 }));
        let turn = Cell::new(0);
        let case = (any::<u64>(), some_windows(30), some_windows(30));
        let found = runner.run(&case, |(seed, wrong, windows)| {
            turn.set(turn.get() + 1);
            run(one_history(address, turn.get(), seed, &wrong, &windows));
            Ok(())
        });
        found.unwrap();
    }
}

async fn one_history(
    address: &Address,
    turn: u32,
    seed: u64,
    wrong: &[(u64, u64)],
    windows: &[(u64, u64)],
) {
    let mut store = open(address).await;
    let once = World::new(&format!("once {turn}"), seed);
    let now_ms = once.period().to_ms;
    store.keep(&once.reading(once.period()), now_ms).await.unwrap();
    is_the_truth(&mut store, &once).await;

    let often = World { cluster: format!("often {turn}"), ..once.clone() };
    // A source that was wrong about what the devices did.
    let liar = World { film: seed ^ 1, ..often.clone() };
    for (world, windows) in [(&liar, wrong), (&often, windows)] {
        for (from, length) in windows {
            let from_ms = START_MS + from * STEP_MS;
            let to_ms = (from_ms + length * STEP_MS).min(now_ms);
            let mut reading = world.reading(Span { from_ms, to_ms });
            if world.film != seed {
                reading.source = "liar".to_owned();
            }
            store.keep(&reading, now_ms).await.unwrap();
        }
    }
    let source = often.reading(often.period()).source;
    for span in store.missing(&often.cluster, Some(&source), often.period()).await.unwrap() {
        store.keep(&often.reading(span), now_ms).await.unwrap();
    }
    is_the_truth(&mut store, &often).await;
    // Once more: nothing is there that changes.
    let before = everything(&mut store, &often).await;
    let again = store.keep(&often.reading(often.period()), now_ms).await.unwrap();
    assert_eq!(again, LedgerChanges { hours: 30, ..LedgerChanges::default() });
    assert_eq!(everything(&mut store, &often).await, before);
    store.close().await;
}

#[test]
fn clusters_stand_beside_each_other_and_a_gap_is_known_as_one() {
    let databases = Databases::start();
    for address in &databases.addresses {
        run(async {
            let mut store = open(address).await;
            let (one, other) = (World::new("one", 1), World::new("other", 2));
            let now_ms = one.period().to_ms;
            for world in [&one, &other] {
                store.keep(&world.reading(world.period()), now_ms).await.unwrap();
            }
            is_the_truth(&mut store, &one).await;
            is_the_truth(&mut store, &other).await;
            let both = store
                .sums(&dovetail_store::SumQuery { cluster: None, ..question(&one, FINEST, 30) })
                .await
                .unwrap();
            let sum = one.price(one.period()) + other.price(other.period());
            assert_eq!(added(&both).1, vec![sum; 5]);
            assert_eq!(store.clusters().await.unwrap(), ["one", "other"]);

            let gapped = World::new("gapped", 3);
            let span = |from: u64, to: u64| Span {
                from_ms: START_MS + from * HOUR_MS,
                to_ms: START_MS + to * HOUR_MS,
            };
            for part in [span(7, 9), span(0, 3), span(3, 5)] {
                store.keep(&gapped.reading(part), now_ms).await.unwrap();
            }
            let source = gapped.reading(span(0, 1)).source;
            let missing = store.missing("gapped", Some(&source), span(0, 12)).await.unwrap();
            assert_eq!(missing, [span(5, 7), span(9, 12)]);
            let other = store.missing("gapped", Some("file.csv"), span(0, 12)).await.unwrap();
            assert_eq!(other, [span(0, 12)]);
            let unknown = store.sums(&question(&World::new("two", 1), FINEST, 30)).await;
            let told = unknown.unwrap_err().to_string();
            assert!(told.contains("`two`; it has gapped, one, other"), "{told}");
        });
    }
}

#[test]
fn what_is_forgotten_is_gone_and_its_sums_stay() {
    let databases = Databases::start();
    for address in &databases.addresses {
        run(async {
            let mut store = open(address).await;
            let world = World { hours: 72, ..World::new("one", 7) };
            let now_ms = world.period().to_ms;
            store.keep(&world.reading(world.period()), now_ms).await.unwrap();
            let by_job = Detail { workload: true, ..Detail::default() };
            let before = store.sums(&question(&world, by_job, 48)).await.unwrap();
            // The third day is over: 1 more is kept beside the fourth, which begins.
            let retention = Retention { devices_days: 1, nodes_days: 2 };
            let forgotten = retention.apply(&mut store, now_ms).await.unwrap();
            assert!(forgotten.device_hours > 200 && forgotten.charges > 0, "{forgotten:?}");
            let after = store.sums(&question(&world, by_job, 48)).await.unwrap();
            assert_eq!(format!("{after:?}"), format!("{before:?}"));
            let by_pod = Detail { pod: true, ..by_job };
            let told = store.sums(&question(&world, by_pod, 48)).await.unwrap_err();
            assert!(matches!(told, StoreError::NoLongerKept { .. }), "{told}");
            assert!(told.to_string().contains("2024-10-05T00:00:00Z"), "{told}");
            // Sums of days whose devices are gone cannot be made anew, so nobody may try.
            let told = store.keep(&world.reading(world.period()), now_ms).await.unwrap_err();
            assert!(matches!(told, StoreError::TooOld { .. }), "{told}");
            let late = Span { from_ms: (START_HOUR + 48) * HOUR_MS, to_ms: now_ms };
            store.keep(&world.reading(late), now_ms).await.unwrap();
            let again = store.sums(&question(&world, by_job, 48)).await.unwrap();
            assert_eq!(format!("{again:?}"), format!("{before:?}"));
        });
    }
}

#[test]
fn what_cannot_be_is_refused_by_name_and_leaves_nothing() {
    let databases = Databases::start();
    for address in &databases.addresses {
        run(async {
            let mut store = open(address).await;
            let world = World::new("one", 1);
            let now_ms = world.period().to_ms;
            let good = world.reading(world.period());
            type Spoil<'s> = &'s dyn Fn(&mut Reading);
            let cases: [(&str, Spoil<'_>); 9] = [
                ("has no name", &|r| r.cluster.clear()),
                ("control characters", &|r| r.cluster.push('\u{1b}')),
                ("a name of 5000 bytes", &|r| r.pods[1].job = "j".repeat(5000)),
                ("node `node-0` occurs twice", &|r| r.nodes[1].name = "node-0".to_owned()),
                ("-1 micro-USD is not a price", &|r| {
                    r.nodes[0].terms.usd_micros_per_gpu_hour = Some(-1)
                }),
                ("device `node-0/GPU-0`: an interval from", &|r| {
                    r.devices[0].intervals[0].span.to_ms += DAY_MS * 9;
                }),
                ("milli-GPU", &|r| r.devices[0].intervals[0].gpu_milli = 1001),
                ("holder 77", &|r| r.devices[0].intervals[0].holder = Some(77)),
                ("its node is missing", &|r| r.devices[0].node = 9),
            ];
            for (expected, spoil) in cases {
                let mut reading = good.clone();
                spoil(&mut reading);
                let told = store.keep(&reading, now_ms).await.unwrap_err().to_string();
                assert!(told.contains(expected), "{told}");
            }
            let told = store.keep(&good, now_ms - 1500).await.unwrap_err().to_string();
            assert!(told.contains("ends 2 s in the future"), "{told}");
            assert_eq!(store.clusters().await.unwrap(), Vec::<String>::new());
            // Names of any kind are names.
            let odd = World::new("'; DROP TABLE hourly; --", mixed(1, 2, 3));
            store.keep(&odd.reading(odd.period()), now_ms).await.unwrap();
            is_the_truth(&mut store, &odd).await;
        });
    }
}

//! How devices were left, told apart by node and by moment.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_account::device_time::{DeviceInterval, DeviceState, Span};
use dovetail_account::rollup::HOUR_MS;
use dovetail_store::{DeviceKey, HistoryPod, LastSeen, ReadDevice, Reading};

use crate::databases::{Databases, open, run};
use crate::world::{START_HOUR, START_MS, World};

const MINUTE_MS: u64 = 60_000;

fn interval(from: u64, to: u64, holder: Option<u32>) -> DeviceInterval {
    let span = Span { from_ms: START_MS + from * MINUTE_MS, to_ms: START_MS + to * MINUTE_MS };
    let state = if holder.is_some() { DeviceState::Idle } else { DeviceState::Free(None) };
    DeviceInterval { span, gpu_milli: 1000, state, holder, signal: None }
}

#[test]
fn a_device_that_comes_back_says_how_it_was_left() {
    let databases = Databases::start();
    for address in &databases.addresses {
        run(async {
            let mut store = open(address).await;
            let world = World::new("one", 1);
            let span = Span { from_ms: START_MS, to_ms: START_MS + 6 * HOUR_MS };
            // The same name on two nodes: one is left in the first hour, the other in the third.
            let devices = [
                (0, vec![interval(0, 20, None), interval(20, 50, Some(1))]),
                (1, vec![interval(0, 150, Some(2)), interval(150, 170, None)]),
            ];
            let devices = devices.into_iter().map(|(node, intervals)| ReadDevice {
                node,
                name: "GPU-0".to_owned(),
                intervals,
            });
            let reading =
                Reading { span, devices: devices.collect(), kept: None, ..world.reading(span) };
            store.keep(&reading, span.to_ms).await.unwrap();
            let key = |node: usize, name: &str| -> DeviceKey {
                (reading.nodes[node].name.clone(), name.to_owned())
            };
            let at = |minute: u64| START_MS + minute * MINUTE_MS;
            let asked = BTreeMap::from([
                (key(0, "GPU-0"), at(300)),
                (key(1, "GPU-0"), at(160)),
                (key(2, "GPU-0"), at(300)),
                (key(0, "another"), at(300)),
            ]);
            let found = LastSeen::of(&mut store, "one", &asked, START_HOUR).await.unwrap();
            assert_eq!(found.len(), 2, "{found:?}");
            let (left, before) = (&found[&key(0, "GPU-0")], &found[&key(1, "GPU-0")]);
            assert_eq!((left.until_ms, before.until_ms), (at(50), at(160)));
            assert_eq!(before.intervals[0].holder, None);
            let holder = left.intervals[0].holder.expect("a pod had it");
            let pods = HistoryPod::of(&mut store, "one", &BTreeSet::from([holder])).await.unwrap();
            assert_eq!(pods[&holder].name, reading.pods[1].name);
            // Who looks back less far does not see it.
            let found = LastSeen::of(&mut store, "one", &asked, START_HOUR + 1).await.unwrap();
            assert_eq!(found.keys().collect::<Vec<_>>(), [&key(1, "GPU-0")]);
            let nothing = LastSeen::of(&mut store, "two", &asked, START_HOUR).await.unwrap();
            assert!(nothing.is_empty());
        });
    }
}

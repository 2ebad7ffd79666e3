//! Devices that no exporter measures, in worlds small enough to see who holds what.

use dovetail_account::device_time::{DeviceTime, device_intervals};
use dovetail_account::signal::{ActivityRule, Scale, Signal};

use super::*;
use crate::exporter::{Observation, PodLabels, SeriesMeasure};
use crate::prometheus::{Labels, Series, SeriesSample};

const HOURS: u64 = 10;
const HOUR_MS: u64 = 3_600_000;
const PERIOD: Span = Span { from_ms: 0, to_ms: HOURS * HOUR_MS };
const TIME: SampleTime =
    SampleTime { step_ms: HOUR_MS / 60, longest_ms: HOUR_MS / 20, until_ms: PERIOD.to_ms };

fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// A sample each minute of these hours.
fn series(pairs: &[(&str, &str)], hours: std::ops::Range<u64>, value: f64) -> Vec<Series> {
    let minutes = hours.start * 60..hours.end * 60;
    let sample = |minute: u64| SeriesSample { at_ms: (minute * 60_000) as i64, value };
    vec![Series { labels: labels(pairs), samples: minutes.map(sample).collect() }]
}

/// What a world has: the exporter's devices with their holders and hours, what nodes have, and what
/// pods ask for.
struct World {
    seen: ObservedTime,
    amounts: DeviceAmounts,
}

impl World {
    fn new(measured: &[(&str, Option<&str>, std::ops::Range<u64>)]) -> Self {
        let mut observation = Observation::default();
        for (uuid, pod, hours) in measured {
            let mut pairs = vec![("Hostname", "n1"), ("UUID", *uuid)];
            pairs.extend(pod.map(|pod| ("pod", pod)));
            pairs.extend(pod.map(|_| ("namespace", "ml")));
            let busy = SeriesMeasure::Busy(Signal::GrEngineActive);
            let all = series(&pairs, hours.clone(), 0.9);
            observation.take(busy, Scale::Ratio, &PodLabels::default(), all);
        }
        let seen = observation.histories(PERIOD, TIME.step_ms, &ActivityRule::default());
        Self { seen, amounts: DeviceAmounts::default() }
    }

    fn has(mut self, resource: &str, count: f64, hours: std::ops::Range<u64>) -> Self {
        self.amounts.take_nodes(series(&[("node", "n1"), ("resource", resource)], hours, count));
        self
    }

    fn asks(mut self, pod: &str, resource: &str, count: f64, hours: std::ops::Range<u64>) -> Self {
        let pairs = [("namespace", "ml"), ("pod", pod), ("node", "n1"), ("resource", resource)];
        self.amounts.take_pods(series(&pairs, hours, count));
        self
    }

    /// Adds what is not measured; answers with GPU-minutes of everything, by pod and state.
    fn minutes(mut self, node: &KubeNode, is_kept: bool) -> BTreeMap<(String, String), i128> {
        let names = BTreeSet::from(["n1"]);
        let found = self.seen.unmeasured("n1", &names, &self.amounts, Some(node), TIME);
        let asked = self.amounts.of_pods("n1", TIME);
        self.seen.add_unmeasured(&found, &names, is_kept.then_some(&asked));
        let mut minutes: BTreeMap<(String, String), i128> = BTreeMap::new();
        for device in &self.seen.devices {
            let intervals = device_intervals(&device.history, PERIOD).expect("a history");
            let sum = DeviceTime::of_device(&device.history, PERIOD, &intervals);
            sum.check(|time| time).expect("time that adds up");
            for interval in intervals {
                let holder =
                    interval.holder.map(|place| self.seen.holders[place as usize].pod.clone());
                let key = (holder.unwrap_or_default(), interval.state.name());
                *minutes.entry(key).or_default() += interval.gpu_milli_ms();
            }
        }
        // Milli-GPU x ms, and slices are cut to whole thousandths.
        minutes.values_mut().for_each(|time| *time = (*time + 30_000_000) / 60_000_000);
        minutes
    }
}

fn told(rows: &[(&str, &str, i128)]) -> BTreeMap<(String, String), i128> {
    let rows = rows
        .iter()
        .map(|(pod, state, minutes)| (((*pod).to_owned(), (*state).to_owned()), *minutes));
    rows.collect()
}

const FREE: &str = "free_of_unknown_cause";
const ACTIVE: &str = "active_not_separable";
const GPU: &str = "nvidia_com_gpu";

fn of_labels(pairs: &[(&str, &str)]) -> KubeNode {
    KubeNode { labels: labels(pairs), ..KubeNode::default() }
}

/// Eight GPUs for ten hours are 4,800 minutes; a pod has three of them for four hours, another one
/// for two.
#[test]
fn a_node_without_an_exporter_is_there_and_held_by_who_asked() {
    let world = || {
        let world = World::new(&[]).has(GPU, 8.0, 0..10);
        world.asks("a", GPU, 3.0, 2..6).asks("b", GPU, 1.0, 5..7)
    };
    let held = world().minutes(&KubeNode::default(), true);
    let expected = [("a", "unknown", 720), ("b", "unknown", 120), ("", FREE, 3960)];
    assert_eq!(held, told(&expected));
    // Where nobody keeps what pods ask for, nobody knows that one is free.
    let blind = world().minutes(&KubeNode::default(), false);
    assert_eq!(blind, told(&[("", "unknown", 4800)]));
}

/// An exporter speaks of one of two GPUs for six hours. Pod `a` asked for both: it has one that is
/// not measured, too.
#[test]
fn what_an_exporter_leaves_out_is_added_and_nothing_twice() {
    let world = World::new(&[("x", Some("a"), 0..6)]).has(GPU, 2.0, 0..10);
    let found = world.asks("a", GPU, 2.0, 0..8).minutes(&KubeNode::default(), true);
    // Two GPUs of which one is measured might be one that is shared, and nobody says that it is
    // not.
    assert_eq!(found, told(&[("a", ACTIVE, 360), ("a", "unknown", 120), ("", FREE, 120)]));
    let whole = of_labels(&[("label_nvidia_com_gpu_replicas", "1")]);
    let world = World::new(&[("x", Some("a"), 0..6)]).has(GPU, 2.0, 0..10);
    let found = world.asks("a", GPU, 2.0, 0..8).minutes(&whole, true);
    // Measured 6 h; not measured 6 h beside it and 2 x 2 h after; then both are free for 2 h.
    let expected = [("a", ACTIVE, 360), ("a", "unknown", 600), ("", FREE, 240)];
    assert_eq!(found, told(&expected));
    // Three of which two are measured are no multiple.
    let world = World::new(&[("x", Some("a"), 0..10), ("y", None, 0..10)]).has(GPU, 3.0, 0..10);
    let found = world.asks("b", GPU, 1.0, 0..10).minutes(&KubeNode::default(), true);
    assert_eq!(found, told(&[("a", ACTIVE, 600), ("b", "unknown", 600), ("", FREE, 600)]));
}

/// Samples of two servers begin and end some minutes apart: that is no GPU beside those that are
/// measured.
#[test]
fn what_samples_bridge_is_no_device() {
    let mut world = World::new(&[("x", Some("a"), 1..9)]);
    let minutes = |from: u64, to: u64| -> Vec<SeriesSample> {
        (from..to)
            .map(|minute| SeriesSample { at_ms: (minute * 60_000) as i64, value: 1.0 })
            .collect()
    };
    let pairs = [("node", "n1"), ("resource", GPU)];
    let samples = minutes(58, 9 * 60 + 2);
    world.amounts.take_nodes(vec![Series { labels: labels(&pairs), samples }]);
    assert_eq!(world.minutes(&KubeNode::default(), true), told(&[("a", ACTIVE, 480)]));
}

/// Seven slices are one GPU, of which pods have three and one; two replicas are one, of which a pod
/// has one.
#[test]
fn slices_and_replicas_are_parts_of_a_device() {
    let (small, large) = ("nvidia_com_mig_1g_10gb", "nvidia_com_mig_3g_40gb");
    let world = World::new(&[]).has(small, 4.0, 0..10).has(large, 1.0, 0..10);
    let world = world.asks("a", large, 1.0, 0..10).asks("b", small, 1.0, 0..10);
    let found = world.minutes(&KubeNode::default(), true);
    let time = |pod: &str, state: &str| found[&(pod.to_owned(), state.to_owned())];
    for (found, sevenths) in
        [(time("a", "unknown"), 3), (time("b", "unknown"), 1), (time("", FREE), 3)]
    {
        assert!((found - 600 * sevenths / 7).abs() <= 1, "{found}, not {sevenths} of 7");
    }
    let shared = of_labels(&[("label_nvidia_com_gpu_replicas", "2")]);
    let world = World::new(&[]).has(GPU, 2.0, 0..10).asks("a", GPU, 1.0, 0..10);
    assert_eq!(world.minutes(&shared, true), told(&[("a", "unknown", 300), ("", FREE, 300)]));
}

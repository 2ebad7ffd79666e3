use dovetail_account::device_time::{DeviceState, DeviceTime, device_intervals};
use dovetail_account::signal::{Scale, Signal};

use super::*;
use crate::exporter::{PodLabels, SeriesMeasure};
use crate::prometheus::{Labels, Series, SeriesSample};

const MINUTE_MS: u64 = 60_000;

fn series(labels: &[(&str, &str)], values: &[(u64, f64)]) -> Series {
    let labels: Labels = labels.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
    let samples = values
        .iter()
        .map(|(minute, value)| SeriesSample { at_ms: (minute * MINUTE_MS) as i64, value: *value })
        .collect();
    Series { labels, samples }
}

fn account(observation: &Observation, minutes: u64) -> (DeviceTime<i128>, ObservedTime) {
    let period = Span { from_ms: 0, to_ms: minutes * MINUTE_MS };
    let time = observation.histories(period, MINUTE_MS, &ActivityRule::default());
    let mut sum = DeviceTime::default();
    for device in &time.devices {
        let intervals = device_intervals(&device.history, period).unwrap();
        sum.add(&DeviceTime::of_device(&device.history, period, &intervals));
    }
    sum.check(|time| time).unwrap();
    (sum, time)
}

/// In minutes of whole devices.
fn minutes(time: i128) -> f64 {
    time as f64 / 1000.0 / MINUTE_MS as f64
}

#[test]
fn a_pod_holds_a_device_from_its_first_sample_to_the_first_without_it() {
    let device = [("Hostname", "n1"), ("UUID", "d1")];
    let held = [("Hostname", "n1"), ("UUID", "d1"), ("pod", "a-0"), ("namespace", "ml")];
    let mut observation = Observation::default();
    let busy = SeriesMeasure::Busy(Signal::GrEngineActive);
    // Ten minutes: free, five held of which two idle, free.
    let free: Vec<(u64, f64)> = [0, 1, 7, 8, 9].map(|minute| (minute, 0.0)).to_vec();
    let work = [(2, 0.9), (3, 0.9), (4, 0.0), (5, 0.0), (6, 0.5)];
    let all = vec![series(&device, &free), series(&held, &work)];
    observation.take(busy, Scale::Ratio, &PodLabels::default(), all);
    let (sum, time) = account(&observation, 10);
    assert_eq!(minutes(sum.installed), 10.0);
    assert_eq!((minutes(sum.allocated()), minutes(sum.active())), (5.0, 3.0));
    assert_eq!(minutes(sum.of(DeviceState::Idle)), 2.0);
    assert_eq!(minutes(sum.of(DeviceState::Free(None))), 5.0);
    assert_eq!(time.holders.len(), 1);
    assert_eq!(time.holders[0].pod, "a-0");
}

#[test]
fn a_gap_ends_what_was_known_and_a_blank_is_no_reading() {
    let held = [("Hostname", "n1"), ("UUID", "d1"), ("pod", "a-0")];
    let mut observation = Observation::default();
    let busy = SeriesMeasure::Busy(Signal::GpuUtil);
    // Ten minutes without samples; then the driver has no value.
    let values = [(0, 80.0), (1, 80.0), (12, 80.0), (13, 9_223_372_036_854_775_794.0)];
    let all = vec![series(&held, &values)];
    observation.take(busy, Scale::Percent, &PodLabels::default(), all);
    assert_eq!(observation.refused().samples, 1);
    let (sum, _) = account(&observation, 20);
    assert_eq!(minutes(sum.installed), 14.0);
    assert_eq!(minutes(sum.active()), 3.0);
    // The same pod held it before and after.
    assert_eq!(minutes(sum.of(DeviceState::Unknown)), 11.0);
    assert_eq!(sum.of(DeviceState::Free(None)), 0);
}

/// An exporter is silent from minute 2 until minute 12. Whoever is named on both sides held the
/// device; what is free on both sides was free; of everything else nobody knows.
#[test]
fn while_an_exporter_is_silent_nobody_knows_what_a_device_did() {
    let labels = |pod: &'static str| match pod {
        "" => vec![("Hostname", "n1"), ("UUID", "d1")],
        pod => vec![("Hostname", "n1"), ("UUID", "d1"), ("pod", pod), ("namespace", "ml")],
    };
    let busy = SeriesMeasure::Busy(Signal::GrEngineActive);
    for (before, after, of_a, of_nobody) in [
        ("a", "a", 10.0, 0.0),
        ("a", "b", 0.0, 10.0),
        ("a", "", 0.0, 10.0),
        ("", "b", 0.0, 10.0),
        ("", "", 0.0, 0.0),
    ] {
        let mut observation = Observation::default();
        let all = vec![
            series(&labels(before), &[(0, 0.9), (1, 0.9)]),
            series(&labels(after), &[(12, 0.9), (13, 0.9)]),
        ];
        observation.take(busy, Scale::Ratio, &PodLabels::default(), all);
        let (sum, time) = account(&observation, 14);
        let period = Span { from_ms: 0, to_ms: 14 * MINUTE_MS };
        let intervals = device_intervals(&time.devices[0].history, period).unwrap();
        let unknown = |is_held: bool| {
            let of = intervals.iter().filter(|interval| interval.holder.is_some() == is_held);
            let of = of.filter(|interval| interval.state == DeviceState::Unknown);
            minutes(of.map(|interval| interval.gpu_milli_ms()).sum())
        };
        assert_eq!((unknown(true), unknown(false)), (of_a, of_nobody), "{before}, {after}");
        assert_eq!(minutes(sum.installed), 14.0);
        let held = [before, after].iter().filter(|pod| !pod.is_empty()).count();
        assert_eq!(minutes(sum.active()), 2.0 * held as f64);
    }
}

/// Whatever an exporter writes instead of a reading: the device is there, and somebody holds it.
#[test]
fn a_device_without_one_usable_reading_is_held_and_unknown() {
    let blank = 9_223_372_036_854_775_794.0;
    for wrong in [blank, f64::NAN, f64::INFINITY, -0.5, 80.0] {
        let held = [("Hostname", "n1"), ("UUID", "d1"), ("pod", "a-0"), ("namespace", "ml")];
        let values: Vec<(u64, f64)> = (0..10).map(|minute| (minute, wrong)).collect();
        let mut observation = Observation::default();
        let busy = SeriesMeasure::Busy(Signal::GrEngineActive);
        observation.take(busy, Scale::Ratio, &PodLabels::default(), vec![series(&held, &values)]);
        let (sum, time) = account(&observation, 10);
        assert_eq!(minutes(sum.installed), 10.0, "{wrong}");
        assert_eq!(minutes(sum.of(DeviceState::Unknown)), 10.0, "{wrong}");
        assert_eq!(time.holders[0].pod, "a-0");
    }
    // What one name of a measure does not say another may.
    let labels = [("Hostname", "n1"), ("UUID", "d1"), ("pod", "a-0")];
    let mut observation = Observation::default();
    let busy = SeriesMeasure::Busy(Signal::GpuUtil);
    for (scale, value) in [(Scale::Percent, blank), (Scale::Ratio, 0.5), (Scale::Percent, -1.0)] {
        let one = vec![series(&labels, &[(0, value)])];
        observation.take(busy, scale, &PodLabels::default(), one);
    }
    let (sum, _) = account(&observation, 1);
    assert_eq!(minutes(sum.active()), 1.0);
}

#[test]
fn who_was_elsewhere_had_no_device_here_and_nobody_knows_who_had_it() {
    let labels = |node| [("Hostname", node), ("UUID", "d1"), ("pod", "a-0"), ("namespace", "ml")];
    let values: Vec<(u64, f64)> = (0..10).map(|minute| (minute, 0.9)).collect();
    let mut observation = Observation::default();
    let busy = SeriesMeasure::Busy(Signal::GrEngineActive);
    let all = vec![series(&labels("n1"), &values), series(&labels("n2"), &values)];
    observation.take(busy, Scale::Ratio, &PodLabels::default(), all);
    let (_, mut time) = account(&observation, 10);
    let taken = time.distrust(|node, holder, held| {
        let is_it = node == "n1" && holder.pod == "a-0" && held.to_ms == 10 * MINUTE_MS;
        is_it.then_some(HolderDoubt::Elsewhere)
    });
    assert_eq!(taken.len(), 1);
    let period = Span { from_ms: 0, to_ms: 10 * MINUTE_MS };
    let of = |place: usize| {
        let history = &time.devices[place].history;
        let intervals = device_intervals(history, period).unwrap();
        intervals.iter().map(|interval| (interval.state, interval.holder)).collect::<Vec<_>>()
    };
    assert_eq!(of(0), [(DeviceState::Unknown, None)]);
    assert_eq!(of(1).len(), 1);
    assert!(matches!(of(1)[0], (DeviceState::Active(_), Some(_))));
    // Who was scraped held nothing: the device was free.
    let (_, mut time) = account(&observation, 10);
    assert_eq!(time.distrust(|_, _, _| Some(HolderDoubt::Scraped)), []);
    let intervals = device_intervals(&time.devices[0].history, period).unwrap();
    assert!(matches!(intervals[..], [one] if one.state == DeviceState::Free(None)));
}

#[test]
fn slices_weigh_what_they_are_and_shared_activity_is_nobodys() {
    let slice = |id, profile, pod| {
        [
            ("Hostname", "n1"),
            ("UUID", "d1"),
            ("GPU_I_ID", id),
            ("GPU_I_PROFILE", profile),
            ("pod", pod),
        ]
    };
    let busy = SeriesMeasure::Busy(Signal::GrEngineActive);
    let mut observation = Observation::default();
    let all = vec![
        series(&slice("1", "3g.40gb", "a"), &[(0, 0.8)]),
        series(&slice("2", "1g.11gb", "b"), &[(0, 0.0)]),
    ];
    observation.take(busy, Scale::Ratio, &PodLabels::default(), all);
    let (sum, _) = account(&observation, 1);
    assert_eq!(sum.active(), 429 * i128::from(MINUTE_MS));
    assert_eq!(sum.of(DeviceState::Idle), 143 * i128::from(MINUTE_MS));

    let pod = |pod| [("Hostname", "n1"), ("UUID", "d2"), ("pod", pod)];
    let mut shared = Observation::default();
    let all =
        vec![series(&pod("a"), &[(0, 0.8), (1, 0.0)]), series(&pod("b"), &[(0, 0.8), (1, 0.0)])];
    shared.take(busy, Scale::Ratio, &PodLabels::default(), all);
    let (sum, _) = account(&shared, 2);
    assert_eq!(minutes(sum.of(DeviceState::Unknown)), 1.0);
    assert_eq!(minutes(sum.of(DeviceState::Idle)), 1.0);
}

#[test]
fn two_servers_that_disagree_leave_the_matter_unknown() {
    let from = |replica| [("Hostname", "n1"), ("UUID", "d1"), ("pod", "a"), ("replica", replica)];
    let mut observation = Observation::default();
    let busy = SeriesMeasure::Busy(Signal::GrEngineActive);
    let all = vec![
        series(&from("0"), &[(0, 0.52), (1, 0.9)]),
        series(&from("1"), &[(0, 0.50), (1, 0.1)]),
    ];
    observation.take(busy, Scale::Ratio, &PodLabels::default(), all);
    assert_eq!(observation.refused().contradictions, 1);
    let (sum, _) = account(&observation, 2);
    assert_eq!((minutes(sum.active()), minutes(sum.of(DeviceState::Unknown))), (1.0, 1.0));
}

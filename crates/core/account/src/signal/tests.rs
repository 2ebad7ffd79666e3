use dovetail_cases::cases;
use proptest::prelude::*;

use super::*;

const RULE: ActivityRule =
    ActivityRule { threshold_micro_percent: 1_000_000, max_gap_intervals: 3 };

/// Percent as millionths.
fn percent(percent: u32) -> u32 {
    percent * 1_000_000
}

fn alone() -> DeviceMoment {
    DeviceMoment { holders: 1, ..DeviceMoment::default() }
}

/// Draws so much power; 70 W when nothing runs.
fn drawing(moment: DeviceMoment, watts: u32) -> DeviceMoment {
    let (power, idle) = (Some(watts * 1000), Some(70_000));
    DeviceMoment { power_milliwatts: power, idle_power_milliwatts: idle, ..moment }
}

fn answer(moment: DeviceMoment) -> (Activity, Option<Signal>, Option<UnknownReason>) {
    let verdict = judge(&moment, &RULE);
    assert_eq!(verdict.intensity_micro_percent.is_none(), verdict.activity == Activity::Unknown);
    (verdict.activity, verdict.signal, verdict.reason)
}

#[test]
fn the_finest_signal_decides_and_is_named() {
    use Signal::{GpuUtil, GrEngineActive, SmActive};
    let tiny_kernel = alone().with(GpuUtil, percent(100)).with(SmActive, 400_000);
    assert_eq!(answer(tiny_kernel), (Activity::Idle, Some(SmActive), None));
    let without_sm = alone().with(GpuUtil, percent(100)).with(GrEngineActive, percent(99));
    assert_eq!(answer(without_sm), (Activity::Active, Some(GrEngineActive), None));
    assert_eq!(answer(alone().with(GpuUtil, percent(2))), (Activity::Active, Some(GpuUtil), None));
    // The threshold itself is the heartbeat of a loaded model, not work.
    assert_eq!(answer(alone().with(SmActive, percent(1))).0, Activity::Idle);
    assert_eq!(answer(alone().with(SmActive, percent(1) + 1)).0, Activity::Active);
    for signal in Signal::ALL {
        for (series, scale) in signal.series() {
            assert_eq!(Signal::of_series(series), Some((signal, *scale)));
        }
    }
    assert_eq!(Signal::of_series("DCGM_FI_DEV_SM_CLOCK"), None);
}

#[test]
fn work_in_memory_is_work() {
    let moment = alone().with(Signal::SmActive, 0);
    let moment = DeviceMoment { dram_active_micro_percent: Some(percent(30)), ..moment };
    assert_eq!(answer(moment), (Activity::Active, Some(Signal::SmActive), None));
}

#[test]
fn no_signal_is_unknown_and_never_idle() {
    assert_eq!(answer(alone()), (Activity::Unknown, None, Some(UnknownReason::NoSignal)));
}

#[test]
fn a_profiling_counter_that_died_at_zero_is_not_believed() {
    let dead = alone().with(Signal::GrEngineActive, 0);
    let contradicts =
        (Activity::Unknown, Some(Signal::GrEngineActive), Some(UnknownReason::SignalsContradict));
    assert_eq!(answer(dead.with(Signal::GpuUtil, percent(51))), contradicts);
    assert_eq!(answer(drawing(dead, 141)), contradicts);
    // Nearly: kernels for half of the time, or twice the idle power, happen around an idle moment.
    assert_eq!(answer(dead.with(Signal::GpuUtil, percent(50))).0, Activity::Idle);
    assert_eq!(answer(drawing(dead, 140)).0, Activity::Idle);
    // A low value that moves is no dead counter.
    let alive = alone().with(Signal::GrEngineActive, 1).with(Signal::GpuUtil, percent(100));
    assert_eq!(answer(alive).0, Activity::Idle);
    let both = dead.with(Signal::SmActive, 0).with(Signal::GrEngineActive, percent(90));
    assert_eq!(answer(both).2, Some(UnknownReason::SignalsContradict));
}

#[test]
fn a_utilisation_of_the_whole_gpu_says_nothing_about_a_mig_slice() {
    let slice = DeviceMoment { is_mig_slice: true, ..alone() };
    let util = slice.with(Signal::GpuUtil, percent(100));
    assert_eq!(answer(util), (Activity::Unknown, None, Some(UnknownReason::NoSignal)));
    let engine = util.with(Signal::GrEngineActive, 0);
    assert_eq!(answer(engine), (Activity::Idle, Some(Signal::GrEngineActive), None));
    // The power of the GPU is drawn by any of its slices.
    let hot = drawing(engine, 600);
    assert_eq!(answer(hot).0, Activity::Idle);
}

#[test]
fn on_a_shared_device_nobody_knows_who_was_active() {
    let shared = DeviceMoment { holders: 4, ..alone() };
    let busy = shared.with(Signal::GrEngineActive, percent(80));
    let unknown =
        (Activity::Unknown, Some(Signal::GrEngineActive), Some(UnknownReason::SharedDevice));
    assert_eq!(answer(busy), unknown);
    // An idle device is idle for each of its holders.
    assert_eq!(answer(shared.with(Signal::GrEngineActive, 0)).0, Activity::Idle);
    // The utilisation of one holder's processes says who.
    let own = |util: u32| DeviceMoment { is_per_process: true, ..busy.with(Signal::GpuUtil, util) };
    assert_eq!(answer(own(percent(40))), (Activity::Active, Some(Signal::GpuUtil), None));
    assert_eq!(answer(own(0)), (Activity::Idle, Some(Signal::GpuUtil), None));
}

#[test]
fn a_series_of_something_else_is_unknown_whatever_it_says() {
    for value in [0, percent(100)] {
        let moment =
            DeviceMoment { contradicts_placement: true, ..alone().with(Signal::SmActive, value) };
        assert_eq!(answer(moment).2, Some(UnknownReason::PlacementContradicts));
    }
}

#[test]
fn blanks_and_impossible_numbers_are_no_readings() {
    use ReadingProblem::{Blank, MoreThanAll, Negative, NotFinite};
    for blank in
        [9_223_372_036_854_775_794.0, 2_147_483_632.0, 2_147_483_634.0, 140_737_488_355_328.0]
    {
        assert_eq!(micro_percent(blank, Scale::Percent), Err(Blank), "{blank}");
        assert_eq!(micro_percent(blank, Scale::Ratio), Err(Blank), "{blank}");
    }
    assert_eq!(micro_percent(f64::NAN, Scale::Ratio), Err(NotFinite));
    assert_eq!(micro_percent(f64::INFINITY, Scale::Ratio), Err(NotFinite));
    assert_eq!(micro_percent(-0.01, Scale::Ratio), Err(Negative));
    // A ratio of 50 is percent under a wrong name: not to be guessed.
    assert_eq!(micro_percent(50.0, Scale::Ratio), Err(MoreThanAll));
    assert_eq!(micro_percent(101.5, Scale::Percent), Err(MoreThanAll));
    assert_eq!(micro_percent(1.0000001, Scale::Ratio), Ok(percent(100)));
    assert_eq!(micro_percent(0.5, Scale::Ratio), Ok(percent(50)));
    assert_eq!(micro_percent(0.5, Scale::Percent), Ok(500_000));
}

#[test]
fn mig_profiles_are_read_by_their_compute_slices() {
    for (profile, slices) in [
        ("7g.80gb", Some(7)),
        ("7g.79gb", Some(7)),
        ("1g.11gb", Some(1)),
        ("1g.10gb+me", Some(1)),
        ("mig-3g.40gb", Some(3)),
        ("MIG 2g.20gb", Some(2)),
        ("1c.3g.40gb", Some(1)),
        ("8g.80gb", None),
        ("0g.5gb", None),
        ("gb", None),
        ("-1g.5gb", None),
        ("", None),
    ] {
        assert_eq!(mig_compute_slices(profile), slices, "{profile}");
    }
}

fn verdict(percent_active: u32) -> ActivityVerdict {
    judge(&alone().with(Signal::SmActive, percent(percent_active)), &RULE)
}

#[test]
fn a_sample_holds_until_the_next_and_a_long_gap_is_unknown() {
    let samples = [(100, verdict(50)), (130, verdict(50)), (220, verdict(0)), (311, verdict(0))];
    let segments = activity_over(&samples, (0, 400), 30, &RULE);
    let shape: Vec<_> = segments.iter().map(|s| (s.from_ms, s.to_ms, s.verdict.activity)).collect();
    use Activity::{Active, Idle, Unknown};
    // 220 is three intervals after 130 and holds; 311 is later than three after 220.
    let expected = [
        (0, 100, Unknown),
        (100, 220, Active),
        (220, 250, Idle),
        (250, 311, Unknown),
        (311, 341, Idle),
        (341, 400, Unknown),
    ];
    assert_eq!(shape, expected);
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn segments_cover_the_period_as_a_look_at_every_moment_does(
        gaps in prop::collection::vec((0u64..50, 0u32..3), 0..12),
        from_ms in 0u64..60,
        length_ms in 0u64..200,
        interval_ms in 1u64..20,
    ) {
        let mut at_ms = 0;
        let samples: Vec<(u64, ActivityVerdict)> = gaps.into_iter().map(|(gap_ms, percent_active)| {
            at_ms += gap_ms + 1;
            (at_ms, verdict(percent_active))
        }).collect();
        let segments = activity_over(&samples, (from_ms, from_ms + length_ms), interval_ms, &RULE);
        let mut at_ms = from_ms;
        for segment in &segments {
            prop_assert_eq!(segment.from_ms, at_ms);
            prop_assert!(segment.length_ms() > 0);
            at_ms = segment.to_ms;
        }
        prop_assert_eq!(at_ms, from_ms + length_ms);
        for moment in from_ms..from_ms + length_ms {
            let last = samples.iter().rposition(|(at_ms, _)| *at_ms <= moment);
            let holds = |index: usize| {
                let (since, verdict) = samples[index];
                let next = samples.get(index + 1).map(|(at_ms, _)| *at_ms);
                let near = next.is_some_and(|next| next - since <= 3 * interval_ms);
                (near || moment < since + interval_ms).then_some(verdict.activity)
            };
            let expected = last.and_then(holds).unwrap_or(Activity::Unknown);
            let found = segments.iter().find(|s| (s.from_ms..s.to_ms).contains(&moment)).unwrap();
            prop_assert_eq!(found.verdict.activity, expected, "at {}", moment);
        }
    }
}

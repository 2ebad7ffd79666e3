use std::collections::BTreeMap;

use dovetail_cases::cases;
use dovetail_check::{DeviceLife, DevicePiece, judge_device_time};
use dovetail_model::FreeCause;
use proptest::prelude::*;

use super::*;
use crate::price::{GpuPrice, Priced};
use crate::signal::{Activity, ActivitySegment, ActivityVerdict, Signal};

fn span(from_ms: u64, to_ms: u64) -> Span {
    Span { from_ms, to_ms }
}

fn segment(span: Span, activity: Activity) -> ActivitySegment {
    let known = activity != Activity::Unknown;
    let verdict = ActivityVerdict {
        activity,
        signal: known.then_some(Signal::SmActive),
        intensity_micro_percent: known.then_some(0),
        reason: None,
    };
    ActivitySegment { from_ms: span.from_ms, to_ms: span.to_ms, verdict }
}

fn holding(holder: u32, share: Share, held: Span) -> HoldingTime {
    HoldingTime {
        holder,
        share,
        held,
        ready_ms: Some(held.from_ms),
        gang_ready_ms: Some(held.from_ms),
        activity: Vec::new(),
        work: Vec::new(),
    }
}

fn device(installed: Span, holdings: Vec<HoldingTime>) -> DeviceHistory {
    DeviceHistory {
        name: "node-0/gpu-0".to_owned(),
        installed,
        unavailable: Vec::new(),
        free_causes: Vec::new(),
        unseen: Vec::new(),
        holdings,
    }
}

fn states(device: &DeviceHistory, period: Span) -> BTreeMap<DeviceState, i128> {
    let intervals = device_intervals(device, period).unwrap();
    let account = DeviceTime::of_device(device, period, &intervals);
    account.check(|time| time).unwrap();
    account.by_state
}

#[test]
fn a_training_job_goes_through_every_state() {
    let job = HoldingTime {
        ready_ms: Some(130),
        gang_ready_ms: Some(150),
        activity: vec![
            segment(span(120, 300), Activity::Active),
            segment(span(300, 340), Activity::Idle),
        ],
        work: vec![
            WorkSpan { span: span(150, 200), work: ActiveWork::Useful },
            WorkSpan { span: span(200, 210), work: ActiveWork::Checkpointing },
            WorkSpan { span: span(210, 250), work: ActiveWork::Repeated },
        ],
        ..holding(7, Share::Whole, span(100, 360))
    };
    let mut device = device(span(0, 1_000), vec![job]);
    device.unavailable = vec![span(400, 500)];
    device.free_causes = vec![CauseSpan { span: span(0, 90), cause: FreeCause::NoDemand }];
    let all = DeviceState::Free(Some(FreeCause::NoDemand));
    let expected = [
        (DeviceState::Unavailable, 100),
        (all, 90),
        // Nobody looked: from 90 to 100, from 360 to 400, from 500 to 600.
        (DeviceState::Free(None), 150),
        (DeviceState::Provisioning, 30),
        (DeviceState::GangWait, 20),
        (DeviceState::Active(ActiveWork::Useful), 50),
        (DeviceState::Active(ActiveWork::Checkpointing), 10),
        (DeviceState::Active(ActiveWork::Repeated), 40),
        (DeviceState::Active(ActiveWork::NotSeparable), 50),
        (DeviceState::Idle, 40),
        (DeviceState::Unknown, 20),
    ];
    let expected: BTreeMap<_, i128> =
        expected.into_iter().map(|(state, ms)| (state, ms * 1000)).collect();
    assert_eq!(states(&device, span(0, 600)), expected);
    let intervals = device_intervals(&device, span(0, 600)).unwrap();
    let account = DeviceTime::of_device(&device, span(0, 600), &intervals);
    assert_eq!(account.allocated(), 260_000);
    assert_eq!(account.unknown(), 170_000);
    // Idle, provisioning, gang-wait, repeated, unavailable, no demand.
    assert_eq!(account.of_all(DeviceState::is_waste), (40 + 30 + 20 + 40 + 100 + 90) * 1000);
}

#[test]
fn a_lost_device_is_lost_as_a_whole_also_while_it_is_held() {
    let half = holding(1, Share::Fraction { compute_milli: 500 }, span(0, 100));
    let mut device = device(span(0, 100), vec![half]);
    device.unavailable = vec![span(50, 100)];
    let found = states(&device, span(0, 100));
    let expected = [
        (DeviceState::Unavailable, 50_000),
        (DeviceState::Free(None), 25_000),
        (DeviceState::Unknown, 25_000),
    ];
    assert_eq!(found, expected.into());
}

#[test]
fn shares_weigh_what_they_are_and_a_full_device_is_full() {
    let free_of = |shares: Vec<Share>| {
        let held = span(0, 1);
        let holdings = shares
            .into_iter()
            .enumerate()
            .map(|(holder, share)| holding(holder as u32, share, held));
        let found = states(&device(held, holdings.collect()), held);
        found.get(&DeviceState::Free(None)).copied().unwrap_or(0)
    };
    let slice = |slices| Share::MigSlices { slices, of: 7 };
    let replica = |of| Share::Replicas { held: 1, of };
    assert_eq!(free_of(vec![slice(1); 7]), 0);
    assert_eq!(free_of(vec![slice(3), slice(2)]), 285);
    for of in [1, 2, 3, 4, 7, 8, 10, 11, 13, 48] {
        assert_eq!(free_of(vec![replica(of); of as usize]), 0, "{of} replicas");
    }
    assert_eq!(free_of(vec![replica(4); 3]), 250);
    assert_eq!(free_of(vec![Share::Fraction { compute_milli: 1 }]), 999);
    // The scarcest counter decides: half of the memory with a tenth of the compute is half a
    // device.
    assert_eq!(free_of(vec![Share::Counters(vec![(10, 100), (40 << 30, 80 << 30)])]), 500);
    assert_eq!(free_of(vec![Share::Replicas { held: 0, of: 4 }]), 1000);
    // More than there is: everybody has less than they were told.
    assert_eq!(free_of(vec![Share::Fraction { compute_milli: 800 }; 2]), 0);
}

#[test]
fn histories_that_cannot_be_are_named() {
    let held = span(10, 20);
    let fails =
        |device: DeviceHistory| device_intervals(&device, span(0, 99)).unwrap_err().to_string();
    let mut torn = device(span(0, 99), Vec::new());
    torn.unavailable = vec![span(10, 20), span(19, 30)];
    assert!(fails(torn).starts_with("node-0/gpu-0: the spans of unavailable time overlap"));
    let backwards = device(span(0, 99), vec![holding(4, Share::Whole, span(20, 10))]);
    assert!(fails(backwards).contains("a holding"));
    let of_nothing = holding(4, Share::Replicas { held: 1, of: 0 }, held);
    assert!(fails(device(span(0, 99), vec![of_nothing])).contains("holder 4"));
}

#[test]
fn money_is_split_to_the_micro_dollar_and_unknown_stays_unknown() {
    let thirds = vec![holding(1, Share::Replicas { held: 1, of: 3 }, span(0, 3_600_000))];
    let device = device(span(0, 3_600_000), thirds);
    let period = device.installed;
    let intervals = device_intervals(&device, period).unwrap();
    let account = DeviceTime::of_device(&device, period, &intervals);
    let price = Priced::Known(GpuPrice {
        usd_micros_per_gpu_hour: 1_000_001,
        source: "list".to_owned(),
        assumed: false,
    });
    let priced = account.priced(&price);
    priced.check(|amount| amount.usd_micros().unwrap().into()).unwrap();
    assert_eq!(priced.installed.usd_micros(), Some(1_000_001));
    assert_eq!(priced.allocated().usd_micros(), Some(334_000));
    assert_eq!(account.priced(&Priced::Unknown).allocated().usd_micros(), None);
}

fn some_spans(end_ms: u64) -> impl Strategy<Value = Vec<Span>> {
    prop::collection::btree_set(0..end_ms, 0..6).prop_map(|cuts| {
        let cuts: Vec<u64> = cuts.into_iter().collect();
        cuts.chunks_exact(2).map(|pair| span(pair[0], pair[1])).collect()
    })
}

fn some_share() -> impl Strategy<Value = Share> {
    prop_oneof![
        Just(Share::Whole),
        (0u32..9).prop_map(|slices| Share::MigSlices { slices, of: 7 }),
        (0u32..3, 1u32..14).prop_map(|(held, of)| Share::Replicas { held, of }),
        (0u32..1_200).prop_map(|compute_milli| Share::Fraction { compute_milli }),
    ]
}

fn some_holding(end_ms: u64) -> impl Strategy<Value = HoldingTime> {
    let times = (0..end_ms, 0..end_ms, prop::option::of(0..end_ms), prop::option::of(0..end_ms));
    let what =
        (0u32..3, some_share(), some_spans(end_ms), some_spans(end_ms), 0usize..3, 0usize..4);
    (times, what).prop_map(
        |((a, b, ready_ms, gang_ready_ms), (holder, share, seen, known, what, kind))| {
            let activity = [Activity::Active, Activity::Idle, Activity::Unknown][what];
            HoldingTime {
                ready_ms,
                gang_ready_ms,
                activity: seen.into_iter().map(|span| segment(span, activity)).collect(),
                work: known
                    .into_iter()
                    .map(|span| WorkSpan { span, work: ActiveWork::ALL[kind] })
                    .collect(),
                ..holding(holder, share, span(a.min(b), a.max(b)))
            }
        },
    )
}

fn some_device(end_ms: u64) -> impl Strategy<Value = DeviceHistory> {
    let causes = (some_spans(end_ms), 0..FreeCause::ALL.len());
    let lists = (some_spans(end_ms), causes, some_spans(end_ms));
    let holdings = prop::collection::vec(some_holding(end_ms), 0..4);
    (0..end_ms, 0..end_ms, lists, holdings).prop_map(
        |(a, b, (unavailable, (free, cause), unseen), holdings)| {
            let cause = FreeCause::ALL[cause];
            DeviceHistory {
                unavailable,
                unseen,
                free_causes: free.into_iter().map(|span| CauseSpan { span, cause }).collect(),
                ..device(span(a.min(b), a.max(b)), holdings)
            }
        },
    )
}

/// What the definitions say of one millisecond, looked up in the lists as they are: milli-GPU of
/// each state but the held ones, which are only known together to the milli-GPU.
fn at(device: &DeviceHistory, at_ms: u64) -> (Vec<DeviceState>, i128, bool) {
    let lies = |span: &Span| (span.from_ms..span.to_ms).contains(&at_ms);
    if device.unavailable.iter().any(lies) {
        return (Vec::new(), 0, true);
    }
    let live: Vec<_> = device.holdings.iter().filter(|holding| lies(&holding.held)).collect();
    let states = live.iter().map(|holding| {
        let ready = holding.ready_ms.is_some_and(|ready_ms| ready_ms <= at_ms);
        let gang = holding.gang_ready_ms.is_some_and(|ready_ms| ready_ms <= at_ms);
        let seen = holding.activity.iter().find(|s| (s.from_ms..s.to_ms).contains(&at_ms));
        match (ready, gang, seen.map(|seen| seen.verdict.activity)) {
            (false, ..) => DeviceState::Provisioning,
            (true, false, _) => DeviceState::GangWait,
            (.., Some(Activity::Idle)) => DeviceState::Idle,
            (.., None | Some(Activity::Unknown)) => DeviceState::Unknown,
            (.., Some(Activity::Active)) => {
                let work = holding.work.iter().find(|work| lies(&work.span));
                DeviceState::Active(work.map_or(ActiveWork::NotSeparable, |work| work.work))
            }
        }
    });
    // Free is what is left of the device, in floating point and cut off; a full device is full.
    let taken: f64 = live
        .iter()
        .map(|holding| match &holding.share {
            Share::Whole => 1.0,
            Share::MigSlices { slices, of } => f64::from(*slices) / f64::from(*of),
            Share::Replicas { held, of } => f64::from(*held) / f64::from(*of),
            Share::Fraction { compute_milli } => f64::from(*compute_milli) / 1000.0,
            Share::Counters(_) => unreachable!("not generated"),
        })
        .sum();
    let free_milli = ((1.0 - taken).max(0.0) * 1000.0 + 1e-6).floor() as i128;
    (states.collect(), free_milli, false)
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn every_moment_is_what_the_definitions_say_and_the_judge_agrees(
        devices in prop::collection::vec(some_device(60), 1..4),
        from_ms in 0u64..40,
        length_ms in 0u64..40,
    ) {
        let period = span(from_ms, from_ms + length_ms);
        let (mut pieces, mut lives) = (Vec::new(), Vec::new());
        let mut total = DeviceTime::default();
        for (number, device) in devices.iter().enumerate() {
            let number = number as u32;
            let intervals = device_intervals(device, period).unwrap();
            let account = DeviceTime::of_device(device, period, &intervals);
            account.check(|time| time).unwrap();
            total.add(&account);
            let Span { from_ms, to_ms } = device.installed;
            lives.push(DeviceLife { device: number, from_ms, to_ms });
            pieces.extend(intervals.iter().map(|interval| DevicePiece {
                device: number,
                from_ms: interval.span.from_ms,
                to_ms: interval.span.to_ms,
                gpu_milli: interval.gpu_milli,
                is_unavailable: interval.state == DeviceState::Unavailable,
            }));
            for at_ms in from_ms.max(period.from_ms)..to_ms.min(period.to_ms) {
                let (mut held, free_milli, is_lost) = at(device, at_ms);
                let now: Vec<_> = intervals
                    .iter()
                    .filter(|i| (i.span.from_ms..i.span.to_ms).contains(&at_ms))
                    .collect();
                if is_lost {
                    prop_assert_eq!(now.len(), 1);
                    prop_assert_eq!(now[0].state, DeviceState::Unavailable);
                    continue;
                }
                let free: Vec<_> = now.iter().filter(|i| i.holder.is_none()).collect();
                let found: i64 = free.iter().map(|i| i.gpu_milli).sum();
                prop_assert_eq!(i128::from(found), free_milli, "at {}", at_ms);
                let cause = device.free_causes.iter().find(|c| (c.span.from_ms..c.span.to_ms).contains(&at_ms));
                let is_unseen = device.unseen.iter().any(|span| (span.from_ms..span.to_ms).contains(&at_ms));
                let rest = match is_unseen {
                    true => DeviceState::Unknown,
                    false => DeviceState::Free(cause.map(|c| c.cause)),
                };
                prop_assert!(free.iter().all(|i| i.state == rest), "at {}", at_ms);
                // A holder of nothing leaves no interval.
                let mut shown: Vec<_> = now.iter().filter(|i| i.holder.is_some()).map(|i| i.state).collect();
                shown.sort();
                held.sort();
                shown.dedup();
                held.dedup();
                prop_assert!(shown.iter().all(|state| held.contains(state)), "at {}", at_ms);
            }
        }
        prop_assert_eq!(judge_device_time(&lives, (period.from_ms, period.to_ms), &pieces), []);
        total.check(|time| time).unwrap();
        let waste = total.of_all(DeviceState::is_waste);
        prop_assert!(waste + total.unknown() <= total.installed);
    }
}

use std::collections::BTreeMap;

use dovetail_cases::cases;
use dovetail_model::{FreeCause, Money};
use proptest::prelude::*;

use super::*;
use crate::cost::{HeldTime, Paid};
use crate::device_time::{ActiveWork, DeviceInterval, DeviceState, Span};
use crate::split::{ListPrices, SplitMethod};

/// What the parts of a device are at one moment: milli-GPU, state and holder, sorted.
type Instant = Vec<(i64, DeviceState, Option<u32>)>;

/// A device moment by moment; `None` where nobody saw it.
type Film = Vec<Option<Instant>>;

const END_MS: usize = 40;

fn span(from_ms: u64, to_ms: u64) -> Span {
    Span { from_ms, to_ms }
}

fn some_instant() -> impl Strategy<Value = Instant> {
    let state = prop_oneof![
        Just(DeviceState::Idle),
        Just(DeviceState::Unknown),
        Just(DeviceState::Active(ActiveWork::NotSeparable)),
    ];
    let free = DeviceState::Free(Some(FreeCause::NoDemand));
    prop_oneof![
        Just(vec![(1000, DeviceState::Unavailable, None)]),
        Just(vec![(1000, free, None)]),
        (state.clone(), 0u32..3).prop_map(|(state, holder)| vec![(1000, state, Some(holder))]),
        (state, 0u32..2).prop_map(move |(state, holder)| {
            let mut parts = vec![(400, free, None), (600, state, Some(holder))];
            parts.sort();
            parts
        }),
    ]
}

/// A reading sees a device from its first to its last moment, in runs of some length.
fn some_reading() -> impl Strategy<Value = (usize, Vec<Instant>)> {
    let runs = prop::collection::vec((some_instant(), 1usize..6), 0..6);
    (0usize..END_MS, runs).prop_map(|(from, runs)| {
        let moments =
            runs.into_iter().flat_map(|(instant, length)| std::iter::repeat_n(instant, length));
        (from, moments.take(END_MS - from).collect())
    })
}

/// One interval for each part and moment: nothing is joined.
fn intervals(from: usize, moments: &[Instant]) -> Vec<DeviceInterval> {
    let at = |(offset, instant): (usize, &Instant)| {
        let at_ms = (from + offset) as u64;
        let parts = instant.iter().map(move |(gpu_milli, state, holder)| DeviceInterval {
            span: span(at_ms, at_ms + 1),
            gpu_milli: *gpu_milli,
            state: *state,
            holder: *holder,
            signal: None,
        });
        parts.collect::<Vec<_>>()
    };
    moments.iter().enumerate().flat_map(at).collect()
}

fn film(intervals: &[DeviceInterval]) -> Film {
    let at = |at_ms: u64| {
        let lies = |i: &&DeviceInterval| (i.span.from_ms..i.span.to_ms).contains(&at_ms);
        let parts = intervals.iter().filter(lies);
        let mut parts: Instant = parts.map(|i| (i.gpu_milli, i.state, i.holder)).collect();
        parts.sort();
        (!parts.is_empty()).then_some(parts)
    };
    (0..END_MS as u64).map(at).collect()
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn the_last_reading_of_a_moment_counts_and_the_same_film_is_the_same_list(
        readings in prop::collection::vec(some_reading(), 1..6),
        cut in 0..END_MS as u64,
    ) {
        let mut expected: Film = vec![None; END_MS];
        let mut found: Vec<DeviceInterval> = Vec::new();
        for (from, moments) in &readings {
            for (offset, instant) in moments.iter().enumerate() {
                expected[from + offset] = Some(instant.clone());
            }
            let seen = span(*from as u64, (from + moments.len()) as u64);
            found = overlay(&found, &intervals(*from, moments), seen);
        }
        prop_assert_eq!(&film(&found), &expected);
        // Read again in another cut, or all at once: nothing changes.
        let again = overlay(&found, &found, span(0, cut));
        prop_assert_eq!(&again, &found);
        let again = overlay(&found, &found, span(cut, END_MS as u64));
        prop_assert_eq!(&again, &found);
        // What touches and is the same was joined.
        let longest = |i: &DeviceInterval| !found.iter().any(|other| {
            let same = DeviceInterval { span: i.span, ..*other };
            other.span.from_ms == i.span.to_ms && same == *i
        });
        prop_assert!(found.iter().all(longest));
    }

    #[test]
    fn a_period_is_what_was_read_and_what_is_missing(
        spans in prop::collection::vec((0u64..30, 0u64..12), 0..8),
        from_ms in 0u64..40,
        length_ms in 0u64..20,
    ) {
        let spans = spans.into_iter().map(|(from_ms, length)| span(from_ms, from_ms + length));
        let spans: Vec<Span> = spans.collect();
        let read = |at_ms: u64| spans.iter().any(|s| (s.from_ms..s.to_ms).contains(&at_ms));
        let coverage: Coverage = spans.iter().copied().collect();
        let list: Vec<Span> = coverage.spans().collect();
        prop_assert!(list.windows(2).all(|pair| pair[0].to_ms < pair[1].from_ms));
        let missing = coverage.missing(span(from_ms, from_ms + length_ms));
        for at_ms in 0u64..60 {
            let lies = |list: &[Span]| list.iter().any(|s| (s.from_ms..s.to_ms).contains(&at_ms));
            prop_assert_eq!(lies(&list), read(at_ms), "at {}", at_ms);
            let asked = (from_ms..from_ms + length_ms).contains(&at_ms);
            prop_assert_eq!(lies(&missing), asked && !read(at_ms), "at {}", at_ms);
        }
        let hour = hours(span(from_ms * HOUR_MS / 4, (from_ms + length_ms) * HOUR_MS / 4));
        let hour: Vec<Span> = hour.collect();
        prop_assert!(hour.windows(2).all(|pair| pair[0].to_ms == pair[1].from_ms));
        prop_assert!(hour.iter().all(|s| s.from_ms / HOUR_MS == (s.to_ms - 1) / HOUR_MS));
        let length: u64 = hour.iter().map(|s| s.to_ms - s.from_ms).sum();
        prop_assert_eq!(length, length_ms * HOUR_MS / 4);
    }

    #[test]
    fn an_hour_is_its_intervals_to_the_ms_and_its_price_to_the_micro_dollar(
        readings in prop::collection::vec(some_reading(), 1..5),
        price in prop::option::of(0i64..200_000_000),
        is_listed in any::<bool>(),
        kept in prop::collection::btree_map(0u32..4, (0i128..900_000, 0i128..1 << 40), 0..3),
    ) {
        let devices: Vec<Vec<DeviceInterval>> =
            readings.iter().map(|(from, moments)| intervals(*from, moments)).collect();
        let list_prices = is_listed.then_some(ListPrices {
            usd_micros_per_vcpu_hour: 40_000,
            usd_micros_per_gib_hour: 5_000,
        });
        let terms = NodeTerms {
            usd_micros_per_gpu_hour: price,
            cpu_milli: 96_000,
            memory_bytes: 1 << 40,
            list_prices,
        };
        let kept: BTreeMap<u32, HeldTime> = kept
            .into_iter()
            .map(|(holder, (cpu_milli_ms, memory_byte_ms))| {
                (holder, HeldTime { cpu_milli_ms, memory_byte_ms })
            })
            .collect();
        let rows = roll_up(devices.iter().map(Vec::as_slice), &terms, &kept).unwrap();
        let mut expected: BTreeMap<(Option<u32>, DeviceState), i128> = BTreeMap::new();
        for i in devices.iter().flatten() {
            let ms = i128::from(i.span.to_ms - i.span.from_ms);
            *expected.entry((i.holder, i.state)).or_default() += i128::from(i.gpu_milli) * ms;
        }
        let found = rows.iter().filter_map(|row| match row.paid {
            Paid::Gpus(state) => Some(((row.holder, state), row.gpu_milli_ms)),
            _ => None,
        });
        prop_assert_eq!(found.collect::<BTreeMap<_, _>>(), expected.clone());
        let time: i128 = expected.values().sum();
        for (place, method) in SplitMethod::ALL.into_iter().enumerate() {
            let knows = price.is_some() && (is_listed || method != SplitMethod::Residual);
            let mut sum = Money::ZERO;
            for row in &rows {
                prop_assert_eq!(row.costs[place].is_some(), knows, "{}", method);
                sum += row.costs[place].unwrap_or_default();
            }
            let whole = price.filter(|_| knows && time > 0).unwrap_or(0);
            prop_assert_eq!(sum, Money::of_gpu_time(time, whole), "{}", method);
        }
    }
}

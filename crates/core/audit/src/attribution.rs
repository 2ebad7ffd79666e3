//! Wasted time, claimed once.
//!
//! A claim says which wasted time a finding would end. Findings are served by [`crate::Layer`],
//! then in the order given; what an earlier one has taken is gone, so the findings together never
//! claim more than is wasted. What a finding asked for and did not get is *contested*: it is also
//! affected, and another finding has the time.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_account::device_time::{DeviceInterval, Span};
use dovetail_facts::{DeviceWaste, PricedTime};

use crate::finding::{Attribution, Finding};

/// All that is wasted, whoever claims it.
pub fn all_waste(intervals: &[DeviceWaste]) -> PricedTime {
    let mut all = PricedTime::default();
    for waste in intervals.iter().filter(|waste| waste.interval.state.is_waste()) {
        all.add_interval(waste);
    }
    all
}

/// What one finding got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// Its own.
    pub claimed: PricedTime,
    /// Wasted time it explains too, and that an earlier finding has: “also affected”.
    pub contested: PricedTime,
}

/// Wasted time that one finding got.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    /// Place of the finding.
    pub(crate) finding: usize,
    pub(crate) waste: DeviceWaste,
}

/// Serves the claims of findings; the answers stand in the order of the findings.
pub fn settle(intervals: &[DeviceWaste], findings: &[Finding]) -> Vec<Settled> {
    settle_and_tell(intervals, findings).0
}

/// As [`settle`], and says which parts of which devices each finding got.
pub(crate) fn settle_and_tell(
    intervals: &[DeviceWaste],
    findings: &[Finding],
) -> (Vec<Settled>, Vec<Taken>) {
    let mut left = WasteLeft::new();
    for waste in intervals.iter().filter(|waste| waste.interval.state.is_waste()) {
        let DeviceWaste { device, interval, usd_micros_per_gpu_hour, since_ms } = *waste;
        let piece = WastePiece { interval, usd_micros_per_gpu_hour, since_ms, taken_milli: 0 };
        left.entry((device, interval.holder)).or_default().push(piece);
    }
    let mut order: Vec<usize> = (0..findings.len()).collect();
    order.sort_by_key(|index| findings[*index].check.layer);
    let mut settled = vec![Settled::default(); findings.len()];
    let mut taken = Vec::new();
    for index in order {
        let Finding { claims, most_milli, fills, fills_milli, .. } = &findings[index];
        let most_price = if fills.is_empty() { None } else { lowest_price(&left, claims) };
        let own = (claims, most_milli.unwrap_or(i64::MAX), None);
        for (claims, mut left_milli, most_price) in [own, (fills, *fills_milli, most_price)] {
            for claim in claims {
                let Some(pieces) = left.get_mut(&(claim.device, claim.holder)) else { continue };
                let gpu_milli = claim.gpu_milli.min(left_milli);
                // Parts of one device are wasted side by side.
                let mut got_milli: BTreeMap<u64, i64> = BTreeMap::new();
                let most = (gpu_milli, most_price);
                serve((claim, most), pieces, &mut settled[index], |waste| {
                    let DeviceInterval { span, gpu_milli, .. } = waste.interval;
                    *got_milli.entry(span.from_ms).or_default() += gpu_milli;
                    taken.push(Taken { finding: index, waste });
                });
                left_milli -= got_milli.into_values().max().unwrap_or(0);
            }
        }
    }
    (settled, taken)
}

/// Wasted time by device and holder.
type WasteLeft = BTreeMap<(u32, Option<u32>), Vec<WastePiece>>;

/// The lowest price of the devices of claims; unknown if that of one is.
fn lowest_price(left: &WasteLeft, claims: &[Attribution]) -> Option<Option<i64>> {
    let pieces = claims.iter().filter_map(|claim| left.get(&(claim.device, claim.holder)));
    pieces.flatten().map(|piece| piece.usd_micros_per_gpu_hour).min()
}

/// A part of wasted time that is wholly before, in or after any claim that was served.
#[derive(Clone, Copy, Debug)]
struct WastePiece {
    interval: DeviceInterval,
    usd_micros_per_gpu_hour: Option<i64>,
    since_ms: Option<u64>,
    taken_milli: i64,
}

/// Serves so much of a claim, at no higher price than this where there is one.
fn serve(
    (claim, (gpu_milli, most_price)): (&Attribution, (i64, Option<Option<i64>>)),
    pieces: &mut Vec<WastePiece>,
    settled: &mut Settled,
    mut got: impl FnMut(DeviceWaste),
) {
    let wanted = |piece: &WastePiece| {
        let Span { from_ms, to_ms } = piece.interval.span;
        let overlaps = from_ms < claim.span.to_ms && claim.span.from_ms < to_ms;
        overlaps && claim.states.contains(&piece.interval.state)
    };
    // Most claims are on all devices of nodes of which few are in the state that is claimed.
    if !pieces.iter().any(wanted) {
        return;
    }
    let mut cuts = BTreeSet::from([claim.span.from_ms, claim.span.to_ms]);
    for piece in pieces.iter().filter(|piece| wanted(piece)) {
        cuts.extend([piece.interval.span.from_ms, piece.interval.span.to_ms]);
    }
    let mut cut: Vec<WastePiece> = Vec::with_capacity(pieces.len());
    for piece in pieces.drain(..) {
        let Span { from_ms, to_ms } = piece.interval.span;
        let mut since_ms = from_ms;
        let inner = cuts.range(from_ms + 1..to_ms).copied().filter(|_| wanted(&piece));
        for until_ms in inner.chain([to_ms]) {
            let mut part = piece;
            part.interval.span = Span { from_ms: since_ms, to_ms: until_ms };
            cut.push(part);
            since_ms = until_ms;
        }
    }
    *pieces = cut;
    // By moment: how much of the claim is left to take, and to contest.
    let mut open: BTreeMap<u64, i64> = BTreeMap::new();
    for piece in pieces.iter_mut().filter(|piece| wanted(piece)) {
        let (span, price) = (piece.interval.span, piece.usd_micros_per_gpu_hour);
        let price = most_price.map_or(price, |most| price.min(most));
        let open_milli = open.entry(span.from_ms).or_insert(gpu_milli.max(0));
        let free_milli = piece.interval.gpu_milli - piece.taken_milli;
        let got_milli = free_milli.min(*open_milli);
        let contested_milli = piece.taken_milli.min(*open_milli - got_milli);
        piece.taken_milli += got_milli;
        *open_milli -= got_milli + contested_milli;
        settled.claimed.add_part(got_milli, span, price);
        if got_milli > 0 {
            let interval = DeviceInterval { gpu_milli: got_milli, ..piece.interval };
            let (usd_micros_per_gpu_hour, since_ms) = (price, piece.since_ms);
            got(DeviceWaste { device: claim.device, interval, usd_micros_per_gpu_hour, since_ms });
        }
        settled.contested.add_part(contested_milli, span, price);
    }
}

#[cfg(test)]
mod tests {
    use dovetail_account::device_time::DeviceState;
    use dovetail_cases::cases;
    use dovetail_facts::ObjectRef;
    use dovetail_model::{FreeCause, Money};
    use proptest::prelude::*;

    use super::*;
    use crate::catalogue::check;

    const DRAINING: DeviceState = DeviceState::Free(Some(FreeCause::DrainingOrCordoned));
    /// A guard, a right-sizing, a scaling to zero.
    const IDS: [&str; 3] = ["AUT-06", "REQ-04", "AUT-04"];

    fn finding(id: &str, claims: Vec<Attribution>) -> Finding {
        let new = Finding::new(check(id).unwrap(), &ObjectRef::new("NodePool", "", "a"));
        Finding { claims, ..new }
    }

    fn waste(from_ms: u64, to_ms: u64, gpu_milli: i64, state: DeviceState) -> DeviceWaste {
        let span = Span { from_ms, to_ms };
        let interval = DeviceInterval { span, gpu_milli, state, holder: None, signal: None };
        DeviceWaste { device: 0, interval, usd_micros_per_gpu_hour: None, since_ms: None }
    }

    fn times(settled: &Settled) -> (i128, i128) {
        (settled.claimed.gpu_milli_ms, settled.contested.gpu_milli_ms)
    }

    fn claim(from_ms: u64, to_ms: u64, gpu_milli: i64) -> Attribution {
        let span = Span { from_ms, to_ms };
        Attribution { device: 0, holder: None, states: BTreeSet::from([DRAINING]), span, gpu_milli }
    }

    #[test]
    fn the_earlier_layer_gets_the_second_and_the_later_is_also_affected() {
        let wasted = [waste(0, 100, 1000, DRAINING), waste(100, 200, 1000, DeviceState::Unknown)];
        // Listed last, served first.
        let later = finding("AUT-04", vec![claim(0, 200, 1000)]);
        let guard = finding("AUT-06", vec![claim(50, 90, 600)]);
        let settled = settle(&wasted, &[later, guard]);
        assert_eq!(times(&settled[1]), (24_000, 0));
        assert_eq!(times(&settled[0]), (76_000, 24_000));
        // Nobody knows the price: no cost, which is not a cost of zero.
        assert_eq!(settled[0].claimed.cost(), None);
        assert_eq!(settled[1].contested.cost(), Some(Money::ZERO));
    }

    #[test]
    fn cost_is_that_of_the_time_claimed_and_is_cut_off() {
        // Two devices at $2.50 and at an unknown price, half an hour of each; a third of a
        // micro-dollar.
        let half_hour_ms = 1_800_000;
        let mut wasted = [
            waste(0, half_hour_ms, 1000, DRAINING),
            DeviceWaste { device: 1, ..waste(0, half_hour_ms, 1000, DRAINING) },
        ];
        wasted[0].usd_micros_per_gpu_hour = Some(2_500_000);
        let claims = [0, 1].map(|device| Attribution { device, ..claim(0, half_hour_ms, 1000) });
        let settled = settle(&wasted, &[finding("AUT-06", claims.into())]);
        assert_eq!(settled[0].claimed.cost(), Some(Money::micros(1_250_000)));
        assert_eq!(settled[0].claimed.priced_gpu_milli_ms, 1_800_000_000);
        assert_eq!(settled[0].claimed, all_waste(&wasted));
        let mut little = [waste(0, 1_200_000, 1000, DRAINING)];
        little[0].usd_micros_per_gpu_hour = Some(2);
        let settled = settle(&little, &[finding("AUT-06", vec![claim(0, 1_200_000, 1000)])]);
        assert_eq!(settled[0].claimed.cost(), Some(Money::ZERO));
    }

    /// A node goes, and its pod fills a GPU of another node: the bill falls by no more than the
    /// GPUs of the node that goes cost.
    #[test]
    fn gpus_that_moved_pods_fill_count_at_no_higher_price_than_those_of_their_node() {
        let hour_ms = 3_600_000;
        let of = |device: u32, price: Option<i64>| DeviceWaste {
            device,
            usd_micros_per_gpu_hour: price,
            ..waste(0, hour_ms, 1000, DRAINING)
        };
        let cost = |from: Option<i64>, to: Option<i64>| {
            let mut moved = finding("AUT-06", vec![claim(0, hour_ms, 1000)]);
            moved.fills = vec![Attribution { device: 1, ..claim(0, hour_ms, 1000) }];
            moved.fills_milli = 1000;
            settle(&[of(0, from), of(1, to)], &[moved])[0].claimed.cost()
        };
        assert_eq!(cost(Some(2), Some(7)), Some(Money::micros(4)));
        assert_eq!(cost(Some(7), Some(2)), Some(Money::micros(9)));
        assert_eq!(cost(None, Some(7)), None);
    }

    /// A state of waste, another one, and one that nobody can claim.
    const STATES: [DeviceState; 3] = [DRAINING, DeviceState::Unavailable, DeviceState::Unknown];

    fn some_claim() -> impl Strategy<Value = (usize, Attribution)> {
        (0..IDS.len(), 0u32..2, 0usize..4, 0u64..30, 0u64..30, 0i64..1_200).prop_map(
            |(layer, device, states, a, b, gpu_milli)| {
                let states = STATES[..states.min(3)].iter().copied().collect();
                (layer, Attribution { device, states, ..claim(a.min(b), a.max(b), gpu_milli) })
            },
        )
    }

    proptest! {
        #![proptest_config(cases(256))]

        #[test]
        fn no_second_is_sold_twice(
            lengths in prop::collection::vec((1u64..8, 0usize..3, 0u32..2), 0..8),
            claims in prop::collection::vec(some_claim(), 0..8),
        ) {
            let mut ends = [0; 2];
            let wasted: Vec<DeviceWaste> = lengths.into_iter().map(|(length_ms, state, device)| {
                let from_ms = ends[device as usize];
                ends[device as usize] += length_ms;
                DeviceWaste {
                    device,
                    usd_micros_per_gpu_hour: [Some(2_500_001), None][device as usize],
                    ..waste(from_ms, from_ms + length_ms, 1000, STATES[state])
                }
            }).collect();
            let findings: Vec<Finding> =
                claims.iter().map(|(layer, claim)| finding(IDS[*layer], vec![claim.clone()])).collect();
            let settled = settle(&wasted, &findings);
            // Millisecond by millisecond: the whole device is there, and each claim takes what is
            // left.
            let mut expected = vec![(0, 0); findings.len()];
            let mut order: Vec<usize> = (0..findings.len()).collect();
            order.sort_by_key(|index| claims[*index].0);
            for device in 0..2 {
                for at_ms in 0..64 {
                    let piece = wasted.iter().find(|w| {
                        w.device == device && (w.interval.span.from_ms..w.interval.span.to_ms).contains(&at_ms)
                    });
                    let state = piece.map(|piece| piece.interval.state);
                    let Some(state) = state.filter(|state| *state != DeviceState::Unknown) else { continue };
                    let mut left_milli = 1000;
                    for index in &order {
                        let claim = &claims[*index].1;
                        let meant = claim.device == device && claim.states.contains(&state)
                            && (claim.span.from_ms..claim.span.to_ms).contains(&at_ms);
                        if meant {
                            let got = left_milli.min(claim.gpu_milli);
                            let contested = (1000 - left_milli).min(claim.gpu_milli - got);
                            left_milli -= got;
                            expected[*index].0 += i128::from(got);
                            expected[*index].1 += i128::from(contested);
                        }
                    }
                }
            }
            prop_assert_eq!(settled.iter().map(times).collect::<Vec<_>>(), expected);
            // In time and in money: together never more than there is.
            let claimed: i128 = settled.iter().map(|settled| settled.claimed.gpu_milli_ms).sum();
            let cost = |time: PricedTime| time.cost().unwrap_or(Money::ZERO);
            let claimed_cost: Money = settled.iter().map(|settled| cost(settled.claimed)).sum();
            let all = all_waste(&wasted);
            prop_assert!(claimed <= all.gpu_milli_ms);
            prop_assert!(claimed_cost <= cost(all));
        }
    }
}

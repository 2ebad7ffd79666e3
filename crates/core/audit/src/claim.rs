//! Wasted time, claimed once.
//!
//! A claim says which wasted time a finding would end. Findings are served by [`crate::Layer`], then in the
//! order given; what an earlier one has taken is gone, so the findings together never claim more than is
//! wasted. What a finding asked for and did not get is *contested*: it is also affected, and another
//! finding has the time.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_ledger::device_time::{DeviceInterval, DeviceState, Span};

use crate::finding::Finding;

/// An interval of a device; only those whose state is waste can be claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceWaste {
    /// Number of the device.
    pub device: u32,
    /// What it was.
    pub interval: DeviceInterval,
}

/// Wasted time that a finding explains. Claims of one finding do not overlap: what it asks for twice would
/// be contested by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Number of the device.
    pub device: u32,
    /// The holder whose time it is; `None` is time that nobody held.
    pub holder: Option<u32>,
    /// In which states.
    pub states: BTreeSet<DeviceState>,
    /// When.
    pub span: Span,
    /// At most so much at any moment.
    pub gpu_milli: i64,
}

/// What one finding got, in milli-GPU × ms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// Its own.
    pub claimed_gpu_milli_ms: i128,
    /// Wasted time it explains too, and that an earlier finding has.
    pub contested_gpu_milli_ms: i128,
}

/// Serves the claims of findings; the answers stand in the order of the findings.
pub fn settle(intervals: &[DeviceWaste], findings: &[Finding]) -> Vec<Settled> {
    let mut left: BTreeMap<(u32, Option<u32>), Vec<Piece>> = BTreeMap::new();
    for DeviceWaste { device, interval } in intervals {
        if interval.state.is_waste() {
            let piece = Piece { interval: *interval, taken_milli: 0 };
            left.entry((*device, interval.holder)).or_default().push(piece);
        }
    }
    let mut order: Vec<usize> = (0..findings.len()).collect();
    order.sort_by_key(|index| findings[*index].check.layer);
    let mut settled = vec![Settled::default(); findings.len()];
    for index in order {
        for claim in &findings[index].claims {
            if let Some(pieces) = left.get_mut(&(claim.device, claim.holder)) {
                serve(claim, pieces, &mut settled[index]);
            }
        }
    }
    settled
}

/// A part of wasted time that is wholly before, in or after any claim that was served.
#[derive(Clone, Copy, Debug)]
struct Piece {
    interval: DeviceInterval,
    taken_milli: i64,
}

fn serve(claim: &Claim, pieces: &mut Vec<Piece>, settled: &mut Settled) {
    let wanted = |piece: &Piece| {
        let Span { from_ms, to_ms } = piece.interval.span;
        let overlaps = from_ms < claim.span.to_ms && claim.span.from_ms < to_ms;
        overlaps && claim.states.contains(&piece.interval.state)
    };
    let mut cuts = BTreeSet::from([claim.span.from_ms, claim.span.to_ms]);
    for piece in pieces.iter().filter(|piece| wanted(piece)) {
        cuts.extend([piece.interval.span.from_ms, piece.interval.span.to_ms]);
    }
    let mut cut: Vec<Piece> = Vec::with_capacity(pieces.len());
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
        let Span { from_ms, to_ms } = piece.interval.span;
        let open_milli = open.entry(from_ms).or_insert(claim.gpu_milli.max(0));
        let length_ms = i128::from(to_ms - from_ms);
        let free_milli = piece.interval.gpu_milli - piece.taken_milli;
        let got_milli = free_milli.min(*open_milli);
        let contested_milli = piece.taken_milli.min(*open_milli - got_milli);
        piece.taken_milli += got_milli;
        *open_milli -= got_milli + contested_milli;
        settled.claimed_gpu_milli_ms += i128::from(got_milli) * length_ms;
        settled.contested_gpu_milli_ms += i128::from(contested_milli) * length_ms;
    }
}

#[cfg(test)]
mod tests {
    use dovetail_ledger::FreeCause;
    use proptest::prelude::*;

    use super::*;
    use crate::catalogue::check;
    use crate::facts::ObjectRef;

    const DRAINING: DeviceState = DeviceState::Free(Some(FreeCause::DrainingOrCordoned));
    /// A guard, a right-sizing, a scaling to zero.
    const IDS: [&str; 3] = ["AUT-06", "REQ-11", "AUT-04"];

    fn finding(id: &str, claims: Vec<Claim>) -> Finding {
        let new = Finding::new(check(id).unwrap(), &ObjectRef::new("NodePool", "", "a"));
        Finding { claims, ..new }
    }

    fn waste(from_ms: u64, to_ms: u64, gpu_milli: i64, state: DeviceState) -> DeviceWaste {
        let span = Span { from_ms, to_ms };
        let interval = DeviceInterval { span, gpu_milli, state, holder: None, signal: None };
        DeviceWaste { device: 0, interval }
    }

    fn claim(from_ms: u64, to_ms: u64, gpu_milli: i64) -> Claim {
        let span = Span { from_ms, to_ms };
        Claim { device: 0, holder: None, states: BTreeSet::from([DRAINING]), span, gpu_milli }
    }

    #[test]
    fn the_earlier_layer_gets_the_second_and_the_later_is_also_affected() {
        let wasted = [waste(0, 100, 1000, DRAINING), waste(100, 200, 1000, DeviceState::Unknown)];
        // Listed last, served first.
        let later = finding("AUT-04", vec![claim(0, 200, 1000)]);
        let guard = finding("AUT-06", vec![claim(50, 90, 600)]);
        let settled = settle(&wasted, &[later, guard]);
        assert_eq!(settled[1], Settled { claimed_gpu_milli_ms: 24_000, contested_gpu_milli_ms: 0 });
        let expected = Settled { claimed_gpu_milli_ms: 76_000, contested_gpu_milli_ms: 24_000 };
        assert_eq!(settled[0], expected);
    }

    /// A state of waste, another one, and one that nobody can claim.
    const STATES: [DeviceState; 3] = [DRAINING, DeviceState::Unavailable, DeviceState::Unknown];

    fn some_claim() -> impl Strategy<Value = (usize, Claim)> {
        (0..IDS.len(), 0u32..2, 0usize..4, 0u64..30, 0u64..30, 0i64..1_200).prop_map(
            |(layer, device, states, a, b, gpu_milli)| {
                let states = STATES[..states.min(3)].iter().copied().collect();
                (layer, Claim { device, states, ..claim(a.min(b), a.max(b), gpu_milli) })
            },
        )
    }

    proptest! {
        #[test]
        fn no_second_is_sold_twice(
            lengths in prop::collection::vec((1u64..8, 0usize..3, 0u32..2), 0..8),
            claims in prop::collection::vec(some_claim(), 0..8),
        ) {
            let mut ends = [0; 2];
            let wasted: Vec<DeviceWaste> = lengths.into_iter().map(|(length_ms, state, device)| {
                let from_ms = ends[device as usize];
                ends[device as usize] += length_ms;
                DeviceWaste { device, ..waste(from_ms, from_ms + length_ms, 1000, STATES[state]) }
            }).collect();
            let findings: Vec<Finding> =
                claims.iter().map(|(layer, claim)| finding(IDS[*layer], vec![claim.clone()])).collect();
            let settled = settle(&wasted, &findings);
            // Millisecond by millisecond: the whole device is there, and each claim takes what is left.
            let mut expected = vec![Settled::default(); findings.len()];
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
                            expected[*index].claimed_gpu_milli_ms += i128::from(got);
                            expected[*index].contested_gpu_milli_ms += i128::from(contested);
                        }
                    }
                }
            }
            prop_assert_eq!(&settled, &expected);
            let claimed: i128 = settled.iter().map(|settled| settled.claimed_gpu_milli_ms).sum();
            let is_waste = |waste: &&DeviceWaste| waste.interval.state.is_waste();
            let there: i128 = wasted.iter().filter(is_waste).map(|w| w.interval.gpu_milli_ms()).sum();
            prop_assert!(claimed <= there);
        }
    }
}

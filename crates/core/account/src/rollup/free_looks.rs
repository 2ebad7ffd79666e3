//! Why what was free was free: what objects said of a node now and then, laid over what its devices
//! were.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_model::FreeCause;

use crate::device_time::{DeviceInterval, DeviceState, Span, joined};

/// What was free on a node for some time, by cause; more that was free has a cause that nobody
/// knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreeLook {
    pub span: Span,
    /// How much for which cause, in milli-GPU; by cause, each once.
    pub gpu_milli: Vec<(FreeCause, i64)>,
}

/// The devices of a node with the causes of what was free. Within a look the amounts go to the free
/// parts in the order of the devices, cause by cause, and what nothing is left for has no cause;
/// outside of looks everything stays what it is. So the time of each cause is that of the looks, as
/// far as so much was free, however the devices stand.
pub fn with_causes(
    devices: &[Vec<DeviceInterval>],
    looks: &[FreeLook],
) -> Vec<Vec<DeviceInterval>> {
    let cuts = cuts(devices, looks);
    let mut found: Vec<Vec<DeviceInterval>> = vec![Vec::new(); devices.len()];
    // What is in hands stays as it is; what is free is cut where anything that is free begins or
    // ends.
    let mut free: BTreeMap<(u64, usize), Vec<DeviceInterval>> = BTreeMap::new();
    for (place, intervals) in devices.iter().enumerate() {
        for interval in intervals {
            if !matches!(interval.state, DeviceState::Free(_)) {
                found[place].push(*interval);
                continue;
            }
            let Span { from_ms, to_ms } = interval.span;
            if from_ms >= to_ms {
                continue;
            }
            let inside = cuts.range(from_ms + 1..to_ms).copied();
            let ends: Vec<u64> = inside.chain([to_ms]).collect();
            let mut from_ms = from_ms;
            for to_ms in ends {
                let piece = DeviceInterval { span: Span { from_ms, to_ms }, ..*interval };
                free.entry((from_ms, place)).or_default().push(piece);
                from_ms = to_ms;
            }
        }
    }
    let mut looks = looks.iter().peekable();
    let mut left: Vec<(FreeCause, i64)> = Vec::new();
    let mut at_ms = None;
    for ((from_ms, place), pieces) in free {
        while looks.next_if(|look| look.span.to_ms <= from_ms).is_some() {}
        let look = looks.peek().filter(|look| look.span.from_ms <= from_ms);
        let Some(look) = look else {
            found[place].extend(pieces);
            continue;
        };
        if at_ms.replace(from_ms) != Some(from_ms) {
            left.clone_from(&look.gpu_milli);
        }
        // Whatever causes they had before: they end together.
        let gpu_milli = pieces.iter().map(|piece| piece.gpu_milli).sum();
        found[place].extend(taken(&mut left, DeviceInterval { gpu_milli, ..pieces[0] }));
    }
    found.into_iter().map(joined).collect()
}

/// Parts of a free piece, as far as amounts are left.
fn taken(left: &mut [(FreeCause, i64)], piece: DeviceInterval) -> Vec<DeviceInterval> {
    let mut parts = Vec::new();
    let mut open_milli = piece.gpu_milli;
    for (cause, amount) in left {
        let gpu_milli = open_milli.min(*amount).max(0);
        (open_milli, *amount) = (open_milli - gpu_milli, *amount - gpu_milli);
        parts.push(DeviceInterval { gpu_milli, state: DeviceState::Free(Some(*cause)), ..piece });
    }
    parts.push(DeviceInterval { gpu_milli: open_milli, state: DeviceState::Free(None), ..piece });
    parts.retain(|part| part.gpu_milli > 0);
    parts
}

/// Every moment at which what is free, or a look, begins or ends.
fn cuts(devices: &[Vec<DeviceInterval>], looks: &[FreeLook]) -> BTreeSet<u64> {
    let is_free = |interval: &&DeviceInterval| matches!(interval.state, DeviceState::Free(_));
    let free = devices.iter().flatten().filter(is_free).map(|interval| interval.span);
    let spans = free.chain(looks.iter().map(|look| look.span));
    spans.flat_map(|span| [span.from_ms, span.to_ms]).collect()
}

/// Looks of one node laid over those that were there: of one moment the later one counts.
/// Ascending, apart from each other, and one where nothing changes but the time; empty ones are
/// kept, since somebody looked.
pub fn looks_over(before: &[FreeLook], later: &[FreeLook]) -> Vec<FreeLook> {
    let mut all: Vec<FreeLook> = before.to_vec();
    for look in later.iter().filter(|look| look.span.from_ms < look.span.to_ms) {
        let around = |old: FreeLook| {
            let Span { from_ms, to_ms } = old.span;
            let head = Span { from_ms, to_ms: to_ms.min(look.span.from_ms) };
            let tail = Span { from_ms: from_ms.max(look.span.to_ms), to_ms };
            let rests = [head, tail].into_iter().filter(|span| span.from_ms < span.to_ms);
            let gpu_milli = old.gpu_milli;
            rests.map(move |span| FreeLook { span, gpu_milli: gpu_milli.clone() })
        };
        all = all.into_iter().flat_map(around).collect();
        all.push(look.clone());
    }
    all.sort_by_key(|look| look.span.from_ms);
    let mut merged: Vec<FreeLook> = Vec::with_capacity(all.len());
    for look in all {
        match merged.last_mut() {
            Some(last)
                if last.span.to_ms == look.span.from_ms && last.gpu_milli == look.gpu_milli =>
            {
                last.span.to_ms = look.span.to_ms;
            }
            _ => merged.push(look),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use dovetail_cases::cases;
    use proptest::prelude::*;

    const END_MS: u64 = 24;

    fn some_looks() -> impl Strategy<Value = Vec<FreeLook>> {
        let cause = prop::sample::select(FreeCause::ALL.to_vec());
        let amounts = prop::collection::btree_map(cause, 1i64..2_500, 0..3);
        let look = (0..END_MS, 1..12u64, amounts).prop_map(|(from_ms, length, amounts)| FreeLook {
            span: Span { from_ms, to_ms: from_ms + length },
            gpu_milli: amounts.into_iter().collect(),
        });
        prop::collection::vec(look, 0..5)
    }

    /// A device that is free, held or half of each, in runs.
    fn some_device() -> impl Strategy<Value = Vec<DeviceInterval>> {
        prop::collection::vec((0..4u8, 1..9u64), 0..6).prop_map(|runs| {
            let mut from_ms = 0;
            let mut all = Vec::new();
            for (kind, length) in runs {
                let span = Span { from_ms, to_ms: from_ms + length };
                from_ms = span.to_ms;
                let part = |gpu_milli, state, holder| DeviceInterval {
                    span,
                    gpu_milli,
                    state,
                    holder,
                    signal: None,
                };
                let free = DeviceState::Free((kind == 1).then_some(FreeCause::Taint));
                match kind {
                    0 | 1 => all.push(part(1000, free, None)),
                    2 => all.push(part(1000, DeviceState::Idle, Some(1))),
                    _ => all.extend([part(300, free, None), part(700, DeviceState::Idle, Some(2))]),
                }
            }
            joined(all)
        })
    }

    fn at(intervals: &[DeviceInterval], ms: u64) -> BTreeMap<(DeviceState, Option<u32>), i64> {
        let mut found = BTreeMap::new();
        let lies = |i: &&DeviceInterval| (i.span.from_ms..i.span.to_ms).contains(&ms);
        for i in intervals.iter().filter(lies) {
            *found.entry((i.state, i.holder)).or_default() += i.gpu_milli;
        }
        found
    }

    proptest! {
        #![proptest_config(cases(256))]

        /// Millisecond by millisecond: amounts of the last look at it, as far as so much is free.
        #[test]
        fn what_is_free_has_the_causes_of_the_last_look(
            devices in prop::collection::vec(some_device(), 1..4),
            looks in some_looks(),
            cut in 0..5usize,
        ) {
            let (first, second) = looks.split_at(cut.min(looks.len()));
            let all = looks_over(&looks_over(&[], first), second);
            prop_assert_eq!(&all, &looks_over(&[], &looks));
            prop_assert!(all.windows(2).all(|pair| pair[0].span.to_ms <= pair[1].span.from_ms));
            let found = with_causes(&devices, &all);
            // Told again, nothing changes.
            prop_assert_eq!(&with_causes(&found, &all), &found);
            for ms in 0..2 * END_MS {
                let last = looks.iter().rfind(|look| (look.span.from_ms..look.span.to_ms).contains(&ms));
                let mut free_milli = 0;
                let mut causes: BTreeMap<Option<FreeCause>, i64> = BTreeMap::new();
                for (before, after) in devices.iter().zip(&found) {
                    let (before, after) = (at(before, ms), at(after, ms));
                    if last.is_none() {
                        prop_assert_eq!(&before, &after);
                    }
                    for ((state, _), milli) in &before {
                        free_milli += if matches!(state, DeviceState::Free(_)) { *milli } else { 0 };
                    }
                    for ((state, holder), milli) in after {
                        match state {
                            DeviceState::Free(cause) => *causes.entry(cause).or_default() += milli,
                            _ => prop_assert_eq!(before.get(&(state, holder)), Some(&milli)),
                        }
                    }
                }
                prop_assert_eq!(causes.values().sum::<i64>(), free_milli);
                let Some(look) = last else { continue };
                let mut left = free_milli;
                for (cause, amount) in &look.gpu_milli {
                    let wanted = left.min(*amount);
                    prop_assert_eq!(causes.get(&Some(*cause)).copied().unwrap_or(0), wanted);
                    left -= wanted;
                }
                prop_assert_eq!(causes.get(&None).copied().unwrap_or(0), left);
            }
        }
    }
}

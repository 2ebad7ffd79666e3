//! Time that series give to a holder and that is not its own: somebody else had its name then.

use std::collections::BTreeMap;

use dovetail_account::device_time::{HoldingTime, Span};
use dovetail_account::rollup::Coverage;
use dovetail_account::signal::{ActivitySegment, UnknownReason};

use super::history::ObservedTime;
use super::origin::DeviceHolder;

impl ObservedTime {
    /// Leaves each holder what lies in its own time; who had the device in the rest of it nobody
    /// knows. Answers with what was taken from whom.
    pub fn keep_own(&mut self, own: impl Fn(&DeviceHolder) -> Span) -> Vec<(DeviceHolder, Span)> {
        let mut taken = Vec::new();
        let holders = &self.holders;
        for device in &mut self.devices {
            let history = &mut device.history;
            let mut unseen: Coverage = history.unseen.iter().copied().collect();
            history.holdings.retain_mut(|time| {
                let Some(holder) = holders.get(time.holder as usize) else { return true };
                let (said, own) = (time.held, own(holder));
                let before = Span { from_ms: said.from_ms, to_ms: said.to_ms.min(own.from_ms) };
                let after = Span { from_ms: said.from_ms.max(own.to_ms), to_ms: said.to_ms };
                for span in [before, after].into_iter().filter(|span| span.from_ms < span.to_ms) {
                    unseen.add(span);
                    taken.push((holder.clone(), span));
                }
                clip(time, own)
            });
            history.unseen = unseen.spans().collect();
        }
        taken
    }

    /// Tells holders apart that had one name one after the other: `begins_ms` has when each after
    /// the first began, ascending, and what a device was held for is parted there.
    pub fn tell_apart(&mut self, begins_ms: impl Fn(&DeviceHolder) -> Vec<u64>) {
        let begins_ms: Vec<Vec<u64>> = self.holders.iter().map(begins_ms).collect();
        let mut numbers: BTreeMap<(u32, u32), u32> = BTreeMap::new();
        for device in &mut self.devices {
            let history = &mut device.history;
            let mut unseen: Coverage = history.unseen.iter().copied().collect();
            for time in std::mem::take(&mut history.holdings) {
                let begins_ms = begins_ms.get(time.holder as usize).map_or(&[][..], Vec::as_slice);
                let ends_ms = begins_ms.iter().copied().chain([u64::MAX]);
                let mut from_ms = 0;
                for (turn, to_ms) in (0..).zip(ends_ms) {
                    let own = Span { from_ms, to_ms };
                    from_ms = to_ms;
                    let mut part = time.clone();
                    if !clip(&mut part, own) {
                        continue;
                    }
                    if part.held.to_ms == to_ms
                        && let Some(silence) = silence_before_next(&mut part)
                    {
                        unseen.add(silence);
                    }
                    if turn > 0 {
                        part.holder = *numbers.entry((time.holder, turn)).or_insert_with(|| {
                            let holder = self.holders[time.holder as usize].clone();
                            self.holders.push(DeviceHolder { turn, ..holder });
                            (self.holders.len() - 1) as u32
                        });
                    }
                    history.holdings.push(part);
                }
            }
            history.unseen = unseen.spans().collect();
        }
    }
}

/// Takes off a holding the silence between its last word and the next pod of its name: it was
/// bridged as if both were one, and nobody knows who had the device then. Nothing of what was never
/// measured.
fn silence_before_next(part: &mut HoldingTime) -> Option<Span> {
    let is_gap = |segment: &&ActivitySegment| segment.verdict.reason == Some(UnknownReason::Gap);
    let gaps = part.activity.iter().rev().take_while(is_gap).count();
    part.activity.truncate(part.activity.len() - gaps);
    let said_ms = part.activity.last()?.to_ms;
    let silence = Span { from_ms: said_ms, to_ms: part.held.to_ms };
    (silence.from_ms < silence.to_ms).then(|| {
        part.held.to_ms = said_ms;
        silence
    })
}

/// Leaves of a holding what lies within a span; `false` where nothing does.
fn clip(time: &mut HoldingTime, within: Span) -> bool {
    let clipped = |span: Span| Span {
        from_ms: span.from_ms.max(within.from_ms),
        to_ms: span.to_ms.min(within.to_ms),
    };
    time.held = clipped(time.held);
    let begin_ms = time.held.from_ms;
    time.ready_ms = time.ready_ms.map(|at_ms| at_ms.max(begin_ms));
    time.gang_ready_ms = time.gang_ready_ms.map(|at_ms| at_ms.max(begin_ms));
    for segment in &mut time.activity {
        let span = clipped(Span { from_ms: segment.from_ms, to_ms: segment.to_ms });
        (segment.from_ms, segment.to_ms) = (span.from_ms, span.to_ms);
    }
    time.activity.retain(|segment| segment.from_ms < segment.to_ms);
    time.work.iter_mut().for_each(|work| work.span = clipped(work.span));
    time.work.retain(|work| work.span.from_ms < work.span.to_ms);
    time.held.from_ms < time.held.to_ms
}

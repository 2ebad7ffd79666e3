//! Time that series give to a holder and that is not its own: somebody else had its name then.

use dovetail_ledger::device_time::{HoldingTime, Span};
use dovetail_ledger::rollup::Coverage;

use super::history::ObservedTime;
use super::origin::Holder;

impl ObservedTime {
    /// Leaves each holder what lies in its own time; who had the device in the rest of it nobody knows. Answers with what
    /// was taken from whom.
    pub fn keep_own(&mut self, own: impl Fn(&Holder) -> Span) -> Vec<(Holder, Span)> {
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

//! What objects said of free GPUs lately, for a ledger.

use std::collections::BTreeMap;

use dovetail_account::device_time::{DeviceState, Span};
use dovetail_account::rollup::{FreeLook, HOUR_MS};
use dovetail_facts::NodeGpus;
use dovetail_model::FreeCause;

use super::from_objects::Parts;

/// A moment holds until the next, and no longer than this: then nobody knows.
const HOLDS_MS: u64 = 900_000;
/// So far back they are remembered for readings that come late, as when a server did not answer.
const REMEMBERED_MS: u64 = 24 * HOUR_MS;

/// Milli-GPU of a node by cause.
type Amounts = Vec<(FreeCause, i64)>;

/// What a single moment says of a period: of the step that it lies in, as a sample does. Objects
/// that were read shortly after the period say it of its last step; others say nothing of it.
pub(crate) fn of_one_moment(
    now_ms: u64,
    (nodes, parts): (&[NodeGpus], &Parts<'_>),
    period: Span,
    step_ms: u64,
) -> Vec<(String, FreeLook)> {
    let is_known = period.from_ms < period.to_ms
        && (period.from_ms..=period.to_ms.saturating_add(HOLDS_MS)).contains(&now_ms);
    if !is_known {
        return Vec::new();
    }
    let from_ms = now_ms.min(period.to_ms - 1) / step_ms * step_ms;
    let span =
        Span { from_ms: from_ms.max(period.from_ms), to_ms: (from_ms + step_ms).min(period.to_ms) };
    let look = |(node, gpu_milli)| (node, FreeLook { span, gpu_milli });
    amounts(nodes, parts).into_iter().map(look).collect()
}

/// What is free on each node, by cause.
fn amounts(nodes: &[NodeGpus], parts: &Parts<'_>) -> BTreeMap<String, Amounts> {
    let of_nodes = nodes.iter().zip(parts).map(|(node, parts)| {
        let mut amounts: BTreeMap<FreeCause, i64> = BTreeMap::new();
        for part in parts {
            if let DeviceState::Free(Some(cause)) = part.state {
                *amounts.entry(cause).or_default() += part.gpu_milli;
            }
        }
        (node.node.clone(), amounts.into_iter().collect())
    });
    of_nodes.collect()
}

/// Moments, each as the time for which it holds.
#[derive(Debug, Default)]
pub struct FreeMoments {
    /// By node, ascending; joined while nothing changes.
    looks: Vec<(String, FreeLook)>,
    /// The last moment, which holds until the next.
    last: Option<(u64, BTreeMap<String, Amounts>)>,
}

impl FreeMoments {
    /// Another moment: the one before it is over.
    pub fn add(&mut self, now_ms: u64, nodes: &[NodeGpus], parts: &Parts<'_>) {
        let new = (now_ms, amounts(nodes, parts));
        if let Some((from_ms, of_nodes)) = self.last.replace(new) {
            let to_ms = now_ms.min(from_ms + HOLDS_MS);
            // A clock that was set back says nothing.
            if from_ms < to_ms {
                self.remember(Span { from_ms, to_ms }, of_nodes);
            }
        }
        self.looks.retain(|(_, look)| look.span.to_ms + REMEMBERED_MS > now_ms);
    }

    /// All that is over.
    pub fn looks(&self) -> &[(String, FreeLook)] {
        &self.looks
    }

    fn remember(&mut self, span: Span, of_nodes: BTreeMap<String, Amounts>) {
        let places = self.looks.iter().enumerate();
        let lasts: BTreeMap<String, usize> =
            places.map(|(place, (node, _))| (node.clone(), place)).collect();
        for (node, gpu_milli) in of_nodes {
            let last = lasts.get(&node).map(|place| &mut self.looks[*place].1);
            match last.filter(|last| last.span.to_ms == span.from_ms && last.gpu_milli == gpu_milli)
            {
                Some(last) => last.span.to_ms = span.to_ms,
                None => self.looks.push((node, FreeLook { span, gpu_milli })),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use dovetail_facts::{Lasting, NodePart};

    use super::*;

    #[test]
    fn a_moment_holds_until_the_next_and_not_for_ever() {
        let node = |name: &str| NodeGpus { node: name.to_owned(), ..NodeGpus::default() };
        let nodes = [node("a"), node("b")];
        let lasting = Lasting::ALWAYS;
        let part =
            |gpu_milli, state| NodePart { gpu_milli, state, held: None, used: None, lasting };
        let free = |gpu_milli, cause| part(gpu_milli, DeviceState::Free(Some(cause)));
        let parts = |quota_milli| -> Parts<'_> {
            let unknown = part(500, DeviceState::Free(None));
            let a = vec![free(quota_milli, FreeCause::Quota), unknown, free(7, FreeCause::Quota)];
            vec![a, vec![part(8000, DeviceState::Unknown)]]
        };
        let mut moments = FreeMoments::default();
        let minute = 60_000;
        for (at, quota) in [(0, 1000), (5, 1000), (10, 2000), (9, 2000), (60, 2000), (65, 1000)] {
            moments.add(at * minute, &nodes, &parts(quota));
        }
        let look = |name: &str, from: u64, to: u64, amounts: &[(FreeCause, i64)]| {
            let span = Span { from_ms: from * minute, to_ms: to * minute };
            (name.to_owned(), FreeLook { span, gpu_milli: amounts.to_vec() })
        };
        let quota = |milli| [(FreeCause::Quota, milli)];
        let expected = [
            look("a", 0, 10, &quota(1007)),
            look("b", 0, 10, &[]),
            look("a", 9, 24, &quota(2007)),
            look("b", 9, 24, &[]),
            look("a", 60, 65, &quota(2007)),
            look("b", 60, 65, &[]),
        ];
        assert_eq!(moments.looks(), expected);
        // Alone it says something of one step: that in which it lies, or the last one, and of
        // nothing long before it.
        let period = Span { from_ms: 10 * minute, to_ms: 30 * minute };
        for (at_s, expected) in [
            (9 * 60, None),
            (10 * 60, Some((10, 15))),
            (17 * 60 + 3, Some((15, 20))),
            (30 * 60 + 20, Some((25, 30))),
            (45 * 60, Some((25, 30))),
            (45 * 60 + 1, None),
        ] {
            let seen = (&nodes[..], &parts(1000));
            let found = of_one_moment(at_s * 1000, seen, period, 5 * minute);
            let expected = expected.map(|(from, to)| {
                vec![look("a", from, to, &quota(1007)), look("b", from, to, &[])]
            });
            assert_eq!(found, expected.unwrap_or_default(), "{at_s}");
        }
        moments.add(25 * 60 * minute, &nodes, &parts(1000));
        // Of a day ago: what reached beyond the first hour, and what followed.
        assert_eq!(moments.looks().len(), 3);
    }
}

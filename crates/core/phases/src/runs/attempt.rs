//! The times in which pods of one owner ran together.

use dovetail_account::device_time::Span;

use super::pod::{PodEnd, RunPod};
use super::run::{AttemptEnd, RunAmount, RunAttempt};

/// Pods that end so shortly before the last of an attempt ended with it: what tells others of a
/// failure takes minutes.
const END_SLACK_MS: u64 = 10 * 60_000;

/// Pods of one owner as attempts in the order of their begins: at least one. A new one begins when
/// all pods before it are over and have not completed: what follows after success is more of the
/// same work.
pub(super) fn attempts(pods: &[RunPod], places: &[usize]) -> Vec<RunAttempt> {
    let mut order = places.to_vec();
    order.sort_by_key(|place| (pods[*place].held.map(|held| (held.from_ms, held.to_ms)), *place));
    let mut groups: Vec<(Vec<usize>, Option<Span>)> = Vec::new();
    for place in order {
        let held = pods[place].held;
        let is_new = groups.last().is_none_or(|(group, of_group)| {
            let is_after = held.zip(*of_group).is_some_and(|(held, of)| held.from_ms >= of.to_ms);
            is_after && end(pods, group, *of_group) != AttemptEnd::Completed
        });
        if is_new {
            groups.push((vec![place], held));
            continue;
        }
        let Some((group, of_group)) = groups.last_mut() else { continue };
        group.push(place);
        *of_group = match (*of_group, held) {
            (Some(of), Some(held)) => {
                Some(Span { from_ms: of.from_ms, to_ms: of.to_ms.max(held.to_ms) })
            }
            (of, held) => of.or(held),
        };
    }
    groups.into_iter().map(|(group, held)| attempt(pods, group, held)).collect()
}

fn attempt(pods: &[RunPod], mut places: Vec<usize>, held: Option<Span>) -> RunAttempt {
    places.sort_unstable();
    let end = end(pods, &places, held);
    let has_failed = |place: &usize| pods[*place].end == PodEnd::Failed;
    let failed_pods = match end {
        AttemptEnd::Failed => Vec::new(),
        _ => places.iter().copied().filter(has_failed).collect(),
    };
    RunAttempt {
        owner: places.first().map(|place| pods[*place].owner.clone()).unwrap_or_default(),
        total: RunAmount::of(places.iter().map(|place| &pods[*place])),
        pods: places,
        held,
        end,
        failed_pods,
    }
}

/// How the last of some pods ended.
fn end(pods: &[RunPod], places: &[usize], held: Option<Span>) -> AttemptEnd {
    let is_last = |place: &&usize| match (pods[**place].held, held) {
        (Some(one), Some(all)) => one.to_ms >= all.to_ms.saturating_sub(END_SLACK_MS),
        (None, None) => true,
        _ => false,
    };
    if places.iter().any(|place| pods[*place].end == PodEnd::Open) {
        return AttemptEnd::Open;
    }
    let mut ends: Vec<PodEnd> =
        places.iter().filter(is_last).map(|place| pods[*place].end).collect();
    ends.sort_unstable();
    match ends.last() {
        Some(PodEnd::Failed) => AttemptEnd::Failed,
        Some(PodEnd::Completed) => AttemptEnd::Completed,
        _ => AttemptEnd::Unknown,
    }
}

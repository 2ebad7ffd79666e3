//! Owners of one run.

use std::collections::BTreeMap;

use dovetail_account::device_time::Span;

use super::instance::{JoinedPods, parts};
use super::pod::RunPod;
use super::run::{AttemptEnd, Join, Run, RunAmount, RunAttempt};
use super::stem::stem;

/// Names join what begins so long after the last end, at most.
pub const MOST_APART_MS: u64 = 24 * 3_600_000;

/// What follows may begin so long before the last end was seen: a retry is often made while the
/// pods before it are told to go.
const MOST_OVERLAP_MS: u64 = 5 * 60_000;

/// Gives every pod to one run. The result depends on the pods and not on their order, but for the
/// places by which it names them. Runs are in the order of their namespaces, names and begins.
pub fn runs(pods: &[RunPod]) -> Vec<Run> {
    let mut labelled: BTreeMap<(String, String), Vec<JoinedPods>> = BTreeMap::new();
    let mut experiments: BTreeMap<(String, String), Vec<JoinedPods>> = BTreeMap::new();
    let mut by_stem: BTreeMap<(String, String, String), Vec<JoinedPods>> = BTreeMap::new();
    let mut found = Vec::new();
    for part in parts(pods) {
        let Some(first) = part.pods.first().map(|place| &pods[*place]) else { continue };
        let namespace = first.namespace.clone();
        if let Some(label) = part.label.clone() {
            labelled.entry((namespace, label)).or_default().push(part);
        } else if let Some(experiment) = part.experiment.clone() {
            experiments.entry((namespace, experiment)).or_default().push(part);
        } else if first.is_by_timetable {
            found.push(run(pods, None, vec![part], Join::Name));
        } else {
            let key = (namespace, first.owner.kind.clone(), stem(&first.owner.name).to_owned());
            by_stem.entry(key).or_default().push(part);
        }
    }
    let of_label = labelled.into_iter();
    found.extend(of_label.map(|((_, label), parts)| run(pods, Some(label), parts, Join::Label)));
    let of_experiment = experiments.into_iter();
    found.extend(
        of_experiment
            .map(|((_, experiment), parts)| run(pods, Some(experiment), parts, Join::Experiment)),
    );
    for ((.., stem), parts) in by_stem {
        let chains = chains(pods, parts).into_iter();
        found.extend(chains.map(|parts| run(pods, Some(stem.clone()), parts, Join::Name)));
    }
    found.sort_by_cached_key(|run| order(pods, run));
    found
}

/// Namespace, name, begin, join, owner and first pod of a run: no two runs have all of them in
/// common.
fn order(pods: &[RunPod], run: &Run) -> impl Ord + use<> {
    let first = run.attempts.first();
    let begin_ms = first.and_then(|attempt| attempt.held).map(|held| held.from_ms);
    let owner = first.map(|attempt| attempt.owner.clone());
    let names = first.into_iter().flat_map(|attempt| &attempt.pods);
    let name = names.map(|place| pods[*place].name.clone()).min();
    (run.namespace.clone(), run.name.clone(), begin_ms, run.join, owner, name)
}

/// What followed each other: each part is joined to the one run that was there within the time
/// before it, if that is over and did not complete. Where there are several, nobody can say which.
fn chains(pods: &[RunPod], parts: Vec<JoinedPods>) -> Vec<Vec<JoinedPods>> {
    let mut timed: Vec<(Option<Span>, JoinedPods)> =
        parts.into_iter().map(|part| (part.held(pods), part)).collect();
    let names = |part: &JoinedPods| -> Vec<&str> {
        let mut names: Vec<&str> = part.pods.iter().map(|place| &*pods[*place].name).collect();
        names.sort_unstable();
        names
    };
    timed.sort_by(|(one, of_one), (other, of_other)| {
        let key = |held: &Option<Span>| held.map(|held| (held.from_ms, held.to_ms));
        key(one).cmp(&key(other)).then_with(|| names(of_one).cmp(&names(of_other)))
    });
    let mut chains: Vec<(Vec<JoinedPods>, Option<u64>)> = Vec::new();
    for (held, part) in timed {
        let Some(held) = held else {
            chains.push((vec![part], None));
            continue;
        };
        let near: Vec<usize> = chains
            .iter()
            .enumerate()
            .filter(|(_, (_, end_ms))| {
                end_ms.is_some_and(|end_ms| held.from_ms <= end_ms.saturating_add(MOST_APART_MS))
            })
            .map(|(place, _)| place)
            .collect();
        let followed = match near.as_slice() {
            [one] => chains.get_mut(*one).filter(|(parts, end_ms)| {
                let is_over = end_ms.is_some_and(|end_ms| end_ms <= held.from_ms + MOST_OVERLAP_MS);
                is_over && parts.last().is_some_and(can_be_followed)
            }),
            _ => None,
        };
        match followed {
            Some((parts, end_ms)) => {
                parts.push(part);
                *end_ms = (*end_ms).max(Some(held.to_ms));
            }
            None => chains.push((vec![part], Some(held.to_ms))),
        }
    }
    chains.into_iter().map(|(parts, _)| parts).collect()
}

fn can_be_followed(part: &JoinedPods) -> bool {
    let last = part.attempts.last().map(|attempt| attempt.end);
    !matches!(last, Some(AttemptEnd::Completed | AttemptEnd::Open))
}

/// Parts as a run. `name` is what they have in common.
fn run(pods: &[RunPod], name: Option<String>, parts: Vec<JoinedPods>, joined_by: Join) -> Run {
    let is_one = parts.len() == 1;
    let mut has_uids = true;
    let mut attempts: Vec<RunAttempt> = Vec::new();
    for part in parts {
        has_uids &= part.has_uid;
        attempts.extend(part.attempts);
    }
    attempts.sort_by(|one, other| {
        let key = |attempt: &RunAttempt| attempt.held.map(|held| (held.from_ms, held.to_ms));
        key(one).cmp(&key(other)).then_with(|| one.owner.cmp(&other.owner))
    });
    let join = match joined_by {
        Join::Label => Join::Label,
        _ if is_one && (has_uids || attempts.len() == 1) => Join::Owner,
        _ if is_one => Join::OwnerName,
        join => join,
    };
    let last = attempts.len().saturating_sub(1);
    for attempt in &mut attempts[..last] {
        if attempt.end == AttemptEnd::Unknown {
            attempt.end = AttemptEnd::Replaced;
        }
    }
    let (mut total, mut lost) = (RunAmount::default(), RunAmount::default());
    for attempt in &attempts {
        total += attempt.total;
        lost += match attempt.end.is_lost() {
            true => attempt.total,
            false => RunAmount::of(attempt.failed_pods.iter().map(|place| &pods[*place])),
        };
    }
    let first = attempts.first();
    let of_owner = || first.map(|attempt| attempt.owner.name.clone()).unwrap_or_default();
    let name = name.filter(|_| !matches!(join, Join::Owner | Join::OwnerName));
    let namespace = first.and_then(|attempt| attempt.pods.first());
    let namespace = namespace.map(|place| pods[*place].namespace.clone()).unwrap_or_default();
    Run { namespace, name: name.unwrap_or_else(of_owner), join, attempts, total, lost }
}

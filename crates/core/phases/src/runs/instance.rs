//! Pods of one owner, parted where one label names several runs.

use std::collections::{BTreeMap, BTreeSet};

use dovetail_account::device_time::Span;

use super::attempt::attempts;
use super::join::MOST_APART_MS;
use super::pod::RunPod;
use super::run::RunAttempt;

/// What is joined to others as a whole.
pub(super) struct JoinedPods {
    /// Places in the list of pods, ascending.
    pub(super) pods: Vec<usize>,
    /// The run that a label names.
    pub(super) label: Option<String>,
    /// The one experiment that its pods name.
    pub(super) experiment: Option<String>,
    /// Whether all pods are known to have the same owner.
    pub(super) has_uid: bool,
    /// In the order of their begins; at least one.
    pub(super) attempts: Vec<RunAttempt>,
}

impl JoinedPods {
    fn of(pods: &[RunPod], mut places: Vec<usize>, label: Option<String>) -> Self {
        places.sort_unstable();
        let experiments: BTreeSet<&String> =
            places.iter().filter_map(|place| pods[*place].experiment.as_ref()).collect();
        let mut experiments = experiments.into_iter();
        let experiment = experiments.next().filter(|_| experiments.next().is_none()).cloned();
        let uids: BTreeSet<Option<&str>> =
            places.iter().map(|place| pods[*place].owner_uid.as_deref()).collect();
        Self {
            has_uid: uids.len() == 1 && !uids.contains(&None),
            attempts: attempts(pods, &places),
            pods: places,
            label,
            experiment,
        }
    }

    /// From its first moment with devices to its last.
    pub(super) fn held(&self, pods: &[RunPod]) -> Option<Span> {
        let held = self.pods.iter().filter_map(|place| pods[*place].held);
        held.reduce(|all, one| Span {
            from_ms: all.from_ms.min(one.from_ms),
            to_ms: all.to_ms.max(one.to_ms),
        })
    }
}

pub(super) fn parts(pods: &[RunPod]) -> Vec<JoinedPods> {
    let mut by_owner: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (place, pod) in pods.iter().enumerate() {
        by_owner.entry((&pod.namespace, &pod.owner)).or_default().push(place);
    }
    let instances = by_owner.into_values().flat_map(|places| instances(pods, places));
    instances.flat_map(|places| by_label(pods, places)).collect()
}

/// Owners that had the same name one after the other.
fn instances(pods: &[RunPod], places: Vec<usize>) -> Vec<Vec<usize>> {
    let mut by_uid: BTreeMap<Option<&str>, Vec<usize>> = BTreeMap::new();
    for place in &places {
        by_uid.entry(pods[*place].owner_uid.as_deref()).or_default().push(*place);
    }
    let nameless = by_uid.remove(&None).unwrap_or_default();
    match by_uid.len() {
        // Some of one owner's pods told whose they are.
        0 | 1 => {
            let has_uid = |places: &Vec<usize>| places.iter().any(|p| pods[*p].owner_uid.is_some());
            let spans = without_long_gaps(pods, places);
            let (known, mut found): (Vec<_>, Vec<_>) = spans.into_iter().partition(has_uid);
            let known = known.concat();
            found.extend((!known.is_empty()).then_some(known));
            found
        }
        _ => {
            let of_uids = by_uid.into_values();
            of_uids.chain(without_long_gaps(pods, nameless)).collect()
        }
    }
}

/// Pods that nobody can tell from those of a later owner: cut where nothing ran for long.
fn without_long_gaps(pods: &[RunPod], mut places: Vec<usize>) -> Vec<Vec<usize>> {
    places.sort_by_key(|place| (pods[*place].held.map(|held| held.from_ms), *place));
    let mut found: Vec<Vec<usize>> = Vec::new();
    let mut end_ms: Option<u64> = None;
    for place in places {
        let held = pods[place].held;
        let is_far = held
            .zip(end_ms)
            .is_some_and(|(held, end_ms)| held.from_ms.saturating_sub(end_ms) > MOST_APART_MS);
        match found.last_mut().filter(|_| !is_far) {
            Some(last) => last.push(place),
            None => found.push(vec![place]),
        }
        end_ms = end_ms.max(held.map(|held| held.to_ms));
    }
    found
}

/// Where pods of one owner name several runs, each label has its own; where they name one, it is
/// that of all.
fn by_label(pods: &[RunPod], places: Vec<usize>) -> Vec<JoinedPods> {
    let mut by_label: BTreeMap<Option<&str>, Vec<usize>> = BTreeMap::new();
    for place in places {
        by_label.entry(pods[place].run.as_deref()).or_default().push(place);
    }
    if by_label.len() == 2
        && let Some(unnamed) = by_label.remove(&None)
    {
        by_label.values_mut().for_each(|places| places.extend(&unnamed));
    }
    let parts = by_label.into_iter();
    parts.map(|(label, places)| JoinedPods::of(pods, places, label.map(str::to_owned))).collect()
}

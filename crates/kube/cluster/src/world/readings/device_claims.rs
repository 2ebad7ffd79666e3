//! Where the claims of a pod can have their devices.

use std::borrow::Cow;
use std::sync::Arc;

use dovetail_devices::{
    AllocationOutcome, Allotment, CandidateNode, ClaimedDevices, Reached, RequestLook, explain,
};
use dovetail_model::node::NAME_LABEL;
use dovetail_model::requirement::Operator;
use dovetail_model::{ConditionCause, CounterRule, NodeCondition, SelectorTerm};
use dovetail_objects::{Allocation, Pod, ResourceClaim};

use crate::world::objects::Objects;
use crate::world::objects::device_claims::{ClaimAvailability, MOST_CONSUMERS};
use crate::world::objects::pods::Slot;
use crate::world::objects::surveys::{
    AlikePods, ClaimFit, ClaimRefusal, ClaimSurvey, CountedPods, FoundSurvey, PodKind,
    SurveyedClaims,
};
use crate::world::readings::device_copies::{CountedClaims, at_most};
use crate::world::readings::device_mix::most_together;
use dovetail_translate::NotYet;

/// Units of claims that are counted for a node.
const MOST_COPIES: usize = 512;
/// States that a search looks at for one node before it is given up undecided.
const STEPS: u64 = 20_000;

/// What the claims of a pod ask of its node; nothing if it has no claims. `counted_as`: what counts
/// it and the pods of its gang that are like it.
pub(crate) fn asked_of_node(
    objects: &Objects,
    slot: Slot,
    counted_as: Option<&CountedClaims>,
) -> Result<(Vec<NodeCondition>, Option<CounterRule>), NotYet> {
    let pod = &*objects.pods.get(slot).pod;
    let claims = objects.device_claims.of_pod(pod)?;
    let (mut conditions, mut to_allocate) = (Vec::new(), Vec::new());
    if !pod.node.is_empty() {
        let has = claims.into_iter().filter_map(|claim| claim.allocation.as_ref());
        return Ok((has.filter_map(|has| has.nodes.clone()).map(condition).collect(), None));
    }
    for claim in claims {
        match objects.device_claims.standing(claim, pod) {
            ClaimAvailability::Open | ClaimAvailability::Own => to_allocate.push(claim),
            ClaimAvailability::Pledged(node) => conditions.push(named([&*node].into_iter())),
            ClaimAvailability::Shared => {
                let is_reserved = claim.reserved_for.iter().any(|one| one.uid == pod.meta.uid);
                if !is_reserved && claim.reserved_for.len() >= MOST_CONSUMERS {
                    let problem = format!(
                        "claim {} is already reserved for the maximum of {MOST_CONSUMERS} pods",
                        claim.meta.name
                    );
                    return Err(NotYet::NoDevices { problem });
                }
                let nodes = claim.allocation.as_ref().and_then(|has| has.nodes.clone());
                conditions.extend(nodes.map(condition));
            }
        }
    }
    if to_allocate.is_empty() {
        return Ok((conditions, None));
    }
    let alike = |of: &CountedClaims| AlikePods { has: of.units, unit: of.unit.clone() };
    let more = counted_as.map(|of| CountedPods::Alike(alike(of)));
    let FoundSurvey { survey, label } = fitting(objects, pod, (&to_allocate, more.as_ref()))?;
    conditions.push(match &label {
        Some(label) => labelled(label),
        None => named(survey.fitting().map(|(node, _)| node)),
    });
    let rule = counted_as.and_then(|alike| at_most(objects, slot, &alike.selector, &survey));
    Ok((conditions, rule))
}

fn condition(any_of: Vec<Vec<SelectorTerm>>) -> NodeCondition {
    NodeCondition { any_of, cause: ConditionCause::DeviceClaims }
}

fn named<'a>(nodes: impl Iterator<Item = &'a str>) -> NodeCondition {
    let values = nodes.map(str::to_owned).collect();
    let term = SelectorTerm { key: NAME_LABEL.to_owned(), operator: Operator::In, values };
    condition(vec![vec![term]])
}

/// Nodes that have devices by a survey.
fn labelled(label: &str) -> NodeCondition {
    let (key, operator) = (label.to_owned(), Operator::Exists);
    condition(vec![vec![SelectorTerm { key, operator, values: Vec::new() }]])
}

/// Nodes on which these claims get devices, or have them.
fn fitting(
    objects: &Objects,
    pod: &Pod,
    (claims, counted): (&[&ResourceClaim], Option<&CountedPods>),
) -> Result<FoundSurvey, NotYet> {
    let held = without(&objects.device_claims.held, claims);
    let surveys = &objects.device_claims.surveys;
    let found = surveys.get((claims, counted), || survey(objects, &held, (claims, counted)));
    let Some(ClaimRefusal { looked_at, telling }) = found.survey.refusal() else {
        return Ok(found);
    };
    let count = match looked_at {
        1 => "1 node".to_owned(),
        many => format!("{many} nodes"),
    };
    let outcome = telling.as_deref().and_then(|node| {
        let place = CandidateNode { node, labels: &objects.nodes.get(node)?.meta.labels };
        Some((node, on_node(objects, &held, place, claims)))
    });
    Err(match outcome {
        Some((_, AllocationOutcome::Error(problem))) => {
            NotYet::DeviceClaimNotUnderstood { problem }
        }
        Some((node, AllocationOutcome::No(_))) => NotYet::NoDevices {
            problem: format!(
                "{node} comes closest of {count} with devices: {}",
                in_words(&explained(objects, &held, node, claims))
            ),
        },
        _ if looked_at > 0 => NotYet::NoDevices {
            problem: format!(
                "dovetail could not determine within {STEPS} steps whether {count} with devices can serve pod {}",
                pod.meta.name
            ),
        },
        _ => NotYet::NoDevices {
            problem: "no driver offers devices on any node (kubectl get resourceslices)".to_owned(),
        },
    })
}

/// The most devices that pods of several kinds get together on each node.
pub(crate) fn together(objects: &Objects, kinds: Vec<PodKind>) -> Arc<ClaimSurvey> {
    let devices = &objects.device_claims;
    let counted = CountedPods::Together(kinds);
    let none: &[&ResourceClaim] = &[];
    let asked = (none, Some(&counted));
    devices.surveys.get(asked, || survey(objects, &devices.held, asked)).survey
}

/// Whether pods with claims have to be asked about again, by what has changed since they were.
pub(crate) fn is_any_to_ask_again(objects: &Objects) -> bool {
    let held = &objects.device_claims.held;
    let mut scratch = Cow::Borrowed(held);
    let names = || objects.nodes.names().map(Box::from).collect();
    // What a node reaches is the same for all claims.
    let mut last: Option<(Box<str>, Option<Reached<'_>>)> = None;
    objects.device_claims.surveys.renew(names, |SurveyedClaims { claims, counted }, node| {
        if last.as_ref().is_none_or(|(of, _)| **of != *node) {
            last = Some((node.into(), reached(objects, held, node)));
        }
        let (_, reached) = last.as_ref()?;
        let claims: Vec<_> = claims.iter().collect();
        Some(answer(objects, reached.as_ref()?, &mut scratch, (&claims, counted.as_ref())))
    })
}

/// Asks every node that has devices; also how many pods of a gang get some, if they are counted.
fn survey(
    objects: &Objects,
    held: &ClaimedDevices,
    asked: (&[&ResourceClaim], Option<&CountedPods>),
) -> ClaimSurvey {
    let mut survey = ClaimSurvey::default();
    let mut scratch = Cow::Borrowed(held);
    for node in objects.nodes.names() {
        let reached = reached(objects, held, node);
        let answer = reached.map(|reached| answer(objects, &reached, &mut scratch, asked));
        survey.note(node, answer);
    }
    survey
}

/// What a node reaches when `held` is what others have, if it is there and has devices.
fn reached<'o>(objects: &'o Objects, held: &'o ClaimedDevices, node: &str) -> Option<Reached<'o>> {
    let object = objects.nodes.get(node).filter(|_| objects.device_claims.may_reach(node))?;
    let place = CandidateNode { node: &object.meta.name, labels: &object.meta.labels };
    Some(Reached::left_of(&objects.device_claims.catalog, held, place))
}

/// What a node answers. `held` is what others have, as in `reached`, and is so again in the end.
fn answer(
    objects: &Objects,
    reached: &Reached<'_>,
    held: &mut Cow<'_, ClaimedDevices>,
    (claims, counted): (&[&ResourceClaim], Option<&CountedPods>),
) -> ClaimFit {
    let alike = match counted {
        Some(CountedPods::Together(kinds)) => {
            return match most_together(reached, kinds) {
                0 => ClaimFit::No(0),
                devices => ClaimFit::Fits(devices),
            };
        }
        Some(CountedPods::Alike(alike)) => Some(alike),
        None => None,
    };
    let place = reached.place();
    let outcome = match claims.iter().any(|claim| claim.allocation.is_some()) {
        true => on_node(objects, held, place, claims),
        false => reached.allocate(claims, STEPS),
    };
    match outcome {
        AllocationOutcome::Fits(given) => ClaimFit::Fits(match alike {
            None => 1,
            Some(AlikePods { has, unit }) => {
                has.saturating_add(more_units(objects, held.to_mut(), place, (given, unit)))
            }
        }),
        AllocationOutcome::Undecided => ClaimFit::Undecided,
        AllocationOutcome::Error(_) => ClaimFit::Error,
        AllocationOutcome::No(looks) => {
            ClaimFit::No(looks.iter().map(|look| look.left().min(look.wanted)).sum())
        }
    }
}

/// For how many more units a node has devices, after one pod got these: counted in the order in
/// which they are set aside. `held` is what others have, then as before.
fn more_units(
    objects: &Objects,
    held: &mut ClaimedDevices,
    place: CandidateNode<'_>,
    (first, unit): (Vec<Allotment>, &[ResourceClaim]),
) -> u32 {
    let unit: Vec<&ResourceClaim> = unit.iter().collect();
    let mut given = vec![first];
    while let Some(last) = given.last().filter(|_| given.len() <= MOST_COPIES) {
        last.iter().for_each(|allotment| held.add(&allotment.allocation()));
        let reached = Reached::left_of(&objects.device_claims.catalog, held, place);
        match reached.allocate(&unit, STEPS) {
            AllocationOutcome::Fits(next) => given.push(next),
            _ => break,
        }
    }
    let counted = given.len().min(MOST_COPIES);
    given[..counted].iter().flatten().for_each(|one| held.remove(&one.allocation()));
    counted as u32 - 1
}

/// The requests that lack devices; all where each has enough by itself.
fn in_words(looks: &[RequestLook]) -> String {
    let lacks = |look: &&RequestLook| look.left() < look.wanted.max(1);
    let short: Vec<String> = looks.iter().filter(lacks).map(ToString::to_string).collect();
    match short.is_empty() {
        false => short.join("; "),
        true => {
            let all: Vec<String> = looks.iter().map(ToString::to_string).collect();
            format!(
                "{}; constraints or shared counters prevent allocating them together",
                all.join("; ")
            )
        }
    }
}

/// What excludes how many devices of a node for claims that do not fit there.
fn explained(
    objects: &Objects,
    held: &ClaimedDevices,
    node: &str,
    claims: &[&ResourceClaim],
) -> Vec<RequestLook> {
    let Some(object) = objects.nodes.get(node) else { return Vec::new() };
    let place = CandidateNode { node, labels: &object.meta.labels };
    let catalog = &objects.device_claims.catalog;
    beside_kept(held, place, claims, |held, open| explain(catalog, held, place, open))
}

/// What claims get on a node together: those that have devices which it reaches keep them.
pub(crate) fn on_node(
    objects: &Objects,
    held: &ClaimedDevices,
    place: CandidateNode<'_>,
    claims: &[&ResourceClaim],
) -> AllocationOutcome {
    let catalog = &objects.device_claims.catalog;
    beside_kept(held, place, claims, |held, open| match open.is_empty() {
        true => AllocationOutcome::Fits(Vec::new()),
        false => Reached::left_of(catalog, held, place).allocate(open, STEPS),
    })
}

/// Asks about the claims that have no devices which a node reaches, when the others keep theirs.
fn beside_kept<T>(
    held: &ClaimedDevices,
    place: CandidateNode<'_>,
    claims: &[&ResourceClaim],
    ask: impl FnOnce(&ClaimedDevices, &[&ResourceClaim]) -> T,
) -> T {
    let keeps =
        |claim: &ResourceClaim| claim.allocation.as_ref().is_some_and(|has| is_reached(has, place));
    let (kept, open): (Vec<&ResourceClaim>, Vec<&ResourceClaim>) =
        claims.iter().copied().partition(|claim| keeps(claim));
    if kept.is_empty() || open.is_empty() {
        return ask(held, &open);
    }
    let mut held = held.clone();
    kept.iter().filter_map(|claim| claim.allocation.as_ref()).for_each(|has| held.add(has));
    ask(&held, &open)
}

/// Whether a node reaches what was allocated.
pub(crate) fn is_reached(has: &Allocation, place: CandidateNode<'_>) -> bool {
    has.nodes.as_ref().is_none_or(|any_of| place.satisfies(any_of))
}

/// What others hold: without what these claims have.
pub(crate) fn without<'h>(
    held: &'h ClaimedDevices,
    claims: &[&ResourceClaim],
) -> Cow<'h, ClaimedDevices> {
    let mut others = Cow::Borrowed(held);
    for has in claims.iter().filter_map(|claim| claim.allocation.as_ref()) {
        others.to_mut().remove(has);
    }
    others
}
